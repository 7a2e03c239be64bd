"""The list of what may be computed row by row above a release; every other node of a syntax tree is refused.

No rule can fail on a value: what has no result is NULL, because the answer is paid for when it is computed.
"""

from discreet.sql.after.dates import DATES
from discreet.sql.after.env import Rules
from discreet.sql.after.logic import LOGIC
from discreet.sql.after.numbers import NUMERIC
from discreet.sql.after.texts import TEXTS

RULES: Rules = {**LOGIC, **NUMERIC, **TEXTS, **DATES}
