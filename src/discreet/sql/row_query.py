"""A query that gives private rows: for what learns from rows, and never shows them."""

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.event import OWNER
from discreet.policy import Policy
from discreet.sql import text
from discreet.sql.places import refuse
from discreet.sql.read import understood
from discreet.sql.rows.leaves import Publics
from discreet.sql.rows.scope import Rows
from discreet.sql.separate import understand
from discreet.sql.world import World


def rows_of(words: str, policy: Policy, publics: Publics, *, by: str = OWNER) -> Rows:
    """Read a SELECT without aggregates; whatever gives anything but private rows is Refused."""
    return understood(lambda: _rows(words, World(policy, publics, by)))


def _rows(words: str, world: World) -> Rows:
    parsed = text.parse(words)
    if parsed.explain:
        raise Refused("EXPLAIN: it is for questions; a model's price is the epsilon that it is given.")
    found = understand(exp.Subquery(this=parsed.query.copy()), {}, world)
    if not isinstance(found, Rows):
        cause = "a model learns from rows, and this gives none"
        raise refuse(parsed.query, "SELECT", cause, "Write SELECT column, … FROM a private table, without aggregates.")
    return found
