"""The owner's policy: a TOML file that says who is protected, how much may be learned, and what the tables are.

>>> from discreet.policy import Policy, hazards
>>> policy = Policy.parse('''
...     [data]
...     name = "visits"
...     [budget]
...     epsilon = 20
...     [tables.visits]
...     source = "visits.csv"
...     unit = "patient"
...     columns = { patient = { type = "integer" } }
... ''')
>>> [hazard.id for hazard in hazards(policy)]
['D005']

toml        the text: numbers as they were written, and the line of every key
problems    everything that is wrong, in one error
values      single values;  columns, entries: the keys of each section;  units: who owns a row
read        the parts of a file, each read apart;  check: what must hold between them
policy      Policy;  explain: the promise in sentences;  hazards: what to think about
"""

from discreet.policy.columns import Between, Declared, Domain, Keys, Open, References
from discreet.policy.entries import Analyst, Data, Spending
from discreet.policy.explain import explain
from discreet.policy.hazards import RULES, Hazard, hazards
from discreet.policy.policy import Policy, check_same_promise, read_policy
from discreet.policy.tables import Table
from discreet.policy.units import (
    Column,
    ColumnInWindow,
    Person,
    PersonInWindow,
    Protected,
    Public,
    Row,
    Through,
    Unit,
    Window,
)

__all__ = [
    "RULES",
    "Analyst",
    "Between",
    "Column",
    "ColumnInWindow",
    "Data",
    "Declared",
    "Domain",
    "Hazard",
    "Keys",
    "Open",
    "Person",
    "PersonInWindow",
    "Policy",
    "Protected",
    "Public",
    "References",
    "Row",
    "Spending",
    "Table",
    "Through",
    "Unit",
    "Window",
    "check_same_promise",
    "explain",
    "hazards",
    "read_policy",
]
