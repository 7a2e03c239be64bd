"""What is asked of a service, whatever the interface that it came through."""

from dataclasses import dataclass
from typing import TypedDict

from discreet.kernel.numbers import Number
from discreet.policy.declarations import Bound
from discreet.pricing import Margins


class QueryArguments(TypedDict):
    """The arguments that `Curator.ask` and `Curator.explain` have in common, besides the SQL."""

    by: str
    epsilon: Number | None
    rho: Number | None
    margin: Margins | None
    groups: Bound | None
    rows: Bound | None


@dataclass(frozen=True)
class QueryRequest:
    """A query with its cost or margin, its idempotency key, its contribution bounds and its stated purpose.

    >>> QueryRequest("SELECT COUNT(*) AS n FROM visits", epsilon="1/10").epsilon
    '1/10'
    """

    sql: str
    epsilon: Number | None = None
    rho: Number | None = None
    margin: Margins | None = None
    key: str | None = None
    groups: Bound | None = None
    rows: Bound | None = None
    purpose: str | None = None

    @property
    def states_no_cost(self) -> bool:
        """Whether neither a cost nor a margin is given beside the SQL."""
        return (self.epsilon, self.rho, self.margin) == (None, None, None)

    def arguments(self, by: str) -> QueryArguments:
        """Return the arguments for a curator."""
        return {
            "by": by,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "margin": self.margin,
            "groups": self.groups,
            "rows": self.rows,
        }
