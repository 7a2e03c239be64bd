"""Residents of the simulated town whom anybody can recognise: nobody else in their ward has their age."""

from dataclasses import dataclass

from discreet.worlds.town import SECRET_ILLNESS, Town

QUESTION = f"SELECT ward, COUNT(*) AS people FROM people WHERE ill = '{SECRET_ILLNESS}' GROUP BY ward"  # noqa: S608 - our own words
_COUNT = f"SELECT COUNT(*) AS people FROM people WHERE ill = '{SECRET_ILLNESS}'"  # noqa: S608 - our own words
_NAMES = ("Ada", "Bela", "Chidi")
_UNIQUE = (
    "SELECT ward, MIN(age) FROM (SELECT ward, age FROM people GROUP BY ALL "  # noqa: S608 - our own words
    f"HAVING COUNT(*) = 1 AND ANY_VALUE(ill) = '{SECRET_ILLNESS}') GROUP BY ward ORDER BY ward"
)


@dataclass(frozen=True)
class Resident:
    """A resident with the illness, and what everybody knows: the age that nobody else in the ward has.

    >>> Resident("Ada", 94, "Castle").differencing_queries[1]
    "SELECT COUNT(*) AS people FROM people WHERE ill = 'diabetes' AND NOT (ward = 'Castle' AND age = 94)"
    """

    name: str
    age: int
    ward: str

    @property
    def differencing_queries(self) -> tuple[str, str]:
        """Two queries that count the people with the illness, with this resident and without."""
        return _COUNT, f"{_COUNT} AND NOT (ward = '{self.ward}' AND age = {self.age})"


def recognisable_residents(town: Town) -> tuple[Resident, ...]:
    """Return residents with the illness whom ward and age identify, at most one of each ward."""
    found = town.true_answer(_UNIQUE)
    return tuple(Resident(name, age, ward) for name, (ward, age) in zip(_NAMES, found, strict=False))


def true_counts(town: Town) -> dict[str, int]:
    """Return the non-private answer, by ward."""
    return {ward: count for ward, count in town.true_answer(f"{QUESTION} ORDER BY ward")}  # noqa: C416 - of pairs
