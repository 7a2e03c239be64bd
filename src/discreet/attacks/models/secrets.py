"""People with a secret: one column that the attacker does not know."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.checking import file_in, generator
from discreet.attacks.models.people import Labelled
from discreet.kernel.exact import whole

_ADULT = "adult.parquet"
_HIDDEN = "occupation"
_TEXTS = (_HIDDEN, "workclass", "education", "marital_status", "relationship", "race", "sex", "native_country")
_NUMBERS = {"age": 100, "hours_per_week": 100}  # with the highest that is known without the data
_PEOPLE = 4000  # enough, and quick


@dataclass(frozen=True)
class Secretive:
    """People of whom an attacker knows all but one column of X, which has whole numbers from 0.

    `column` is its place, or its name if X came from a table; it has as many values as `values` says, or as X has.

    >>> Secretive(Labelled(np.eye(2), np.array([0, 1])), column=0).values
    2
    >>> Secretive(Labelled({"age": [0.3, 0.4], "smokes": [0, 1]}, [0, 1]), column="smokes").column
    1
    """

    people: Labelled
    column: Any
    values: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.people, Labelled):
            raise TypeError(f"people must be a Labelled record of X and y, not {type(self.people).__name__}")
        object.__setattr__(self, "column", _place(self.column, self.people))
        if (self.secret < 0).any() or (self.secret != np.floor(self.secret)).any():
            raise ValueError(f"column {self.column} of X must have whole numbers from 0: they are tried one by one")
        seen, given = int(self.secret.max()) + 1, whole(self.values, "values")
        if not given and (self.secret == self.secret[0]).all():
            raise ValueError(f"column {self.column} of X must have at least two different values")
        object.__setattr__(self, "values", max(seen, given))

    @property
    def secret(self) -> np.ndarray:
        """What the attacker wants to know of each person."""
        return np.asarray(self.people.X[:, self.column])

    def some(self, chosen: np.ndarray) -> "Secretive":
        """Return the people at these places."""
        return Secretive(self.people.some(chosen), self.column, self.values)

    def supposed(self, value: int) -> np.ndarray:
        """Return the rows as they would be if everybody's secret had this value."""
        rows: np.ndarray = self.people.X.copy()
        rows[:, self.column] = value
        return rows


def _place(column: Any, people: Labelled) -> int:
    width = people.X.shape[1]
    if isinstance(column, str):
        if column not in people.columns:
            named = f"the columns {', '.join(people.columns)}" if people.columns else "those of a table; X has no names"
            raise ValueError(f"column: {column!r} is none of {named}")
        return people.columns.index(column)
    if whole(column, "column", 0) >= width:
        raise ValueError(f"column must be one of the {width} columns of X, from 0")
    return int(column)


def patients(random_state: int | None, *, people: int = 2000) -> Secretive:
    """Return patients with nine findings of five grades, the last of them secret, and whether a treatment helped.

    >>> patients(0).people.X.shape, patients(0).values
    ((2000, 9), 5)
    """
    rng = generator(random_state)
    severity = rng.normal(0, 1, people)
    grades = severity[:, None] * rng.uniform(0.2, 0.8, 9) + rng.normal(0, 1, (people, 9))
    X = np.clip(np.round(grades + 2), 0, 4)
    chance = 1 / (1 + np.exp(-(severity + 0.5 * (X[:, -1] - 2))))
    helped = rng.random(people) < chance
    return Secretive(Labelled(X, helped.astype(np.int64), bounds=(0, 4)), column=8)


def adults(folder: Path) -> Secretive:
    """Return people of a census, whose income class is what models tell, and whose occupation is secret."""
    import pyarrow.compute as pc  # noqa: PLC0415 - of the core, but slow to import
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pq.read_table(file_in(folder, _ADULT), columns=[*_TEXTS, *_NUMBERS, "income"]).drop_null()
    # Categories become their places in the alphabet; their lists are public, as is that of the census.
    codes = [np.unique(table[name].to_numpy(zero_copy_only=False).astype(str), return_inverse=True) for name in _TEXTS]
    X = np.column_stack([*(places for _, places in codes), *(table[name].to_numpy() for name in _NUMBERS)])
    rich = pc.match_substring(table["income"], ">").to_numpy(zero_copy_only=False).astype(np.int64)
    highest = [*(len(names) - 1 for names, _ in codes), *_NUMBERS.values()]
    people = Labelled(X[:_PEOPLE], rich[:_PEOPLE], bounds=(np.zeros(len(highest)), np.array(highest)))
    return Secretive(people, column=0)
