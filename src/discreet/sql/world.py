"""What is publicly known while a query is read, and the releases that were found in it so far."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from discreet.policy import Policy, Table
from discreet.sql.plan import Part
from discreet.sql.rows.leaves import Publics


@dataclass(frozen=True)
class Limits:
    """How much a unit may weigh, as far as the question says so."""

    groups: int | None = None
    rows: int | None = None


class Releases:
    """The releases of one query; equal ones are asked once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}
        self._parts: dict[Part, Part] = {}  # by what they are without their names

    def add(self, part: Part) -> Part:
        """Give a release its name: that of an equal one, or the next that the query does not use itself."""
        bare = replace(part, name="")
        if bare not in self._parts:
            names = (f"r{number}" for number in range(len(self._taken) + len(self._parts) + 1))
            used = self._taken | {known.name for known in self._parts.values()}
            self._parts[bare] = replace(part, name=next(name for name in names if name not in used))
        return self._parts[bare]

    @property
    def parts(self) -> tuple[Part, ...]:
        """All releases, in the order of their names."""
        return tuple(self._parts.values())


@dataclass(frozen=True)
class World:
    """The policy, the public tables, who asks, and what they said about limits."""

    policy: Policy
    publics: Publics
    by: str
    limits: Limits = Limits()
    releases: Releases = field(default_factory=Releases, compare=False)

    @property
    def most(self) -> int:
        """How many rows one private row may become through joins."""
        return self.policy.spending.join_limit

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that exist for who asks."""
        return self.policy.allowed(self.by)
