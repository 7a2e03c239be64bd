"""The people whom questions are asked about: what an outsider knows of each, and a secret."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.kernel.exact import whole

_TAKEN = ("game", "number")  # columns of ours, where there is a copy of the people for each target
_FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class People:
    """A table with one row for each person, the columns that an outsider knows of everybody, and a secret (0 or 1).

    `amount` may name a column of numbers from 0 to `highest`, such as salaries, for questions about sums.

    >>> people = People({"age": [30, 31, 31], "ill": [0, 1, 1]}, known=("age",), secret="ill")
    >>> people.alike.tolist()
    [1, 2, 2]
    """

    table: Any
    known: tuple[str, ...]
    secret: str
    amount: str | None = None
    highest: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", pa.table(self.table))
        object.__setattr__(self, "known", tuple(self.known))
        named = (*self.known, self.secret, *([] if self.amount is None else [self.amount]))
        if missing := [name for name in named if name not in self.table.column_names]:
            raise ValueError(
                f"table: there is no column {missing[0]!r}; there are {', '.join(self.table.column_names)}"
            )
        if not self.known or self.secret in self.known or self.table.num_rows < 2:
            raise ValueError("known: name at least one column, not the secret's, of a table of two people or more")
        if empty := [name for name in named if self.table[name].null_count]:
            raise ValueError(f"table: the column {empty[0]!r} has gaps: leave those people out")
        if odd := [name for name in self.known if not self._can_be_asked(name)]:
            raise ValueError(
                f"known: the column {odd[0]!r} cannot be asked about. Use numbers or texts, in a column whose name is "
                'a plain word, and not "game" or "number".'
            )
        if not np.isin(self.table[self.secret].to_numpy(), (0, 1)).all():
            raise ValueError(f"secret: the column {self.secret!r} must have 0 and 1 only")
        if self.amount is not None and not self._within():
            raise ValueError(f"amount: the column {self.amount!r} must lie between 0 and highest ({self.highest})")

    @cached_property
    def alike(self) -> np.ndarray:
        """For each person, how many people an outsider cannot tell apart: who is alone has 1."""
        listed = pa.table({name: self.table[name] for name in self.known})
        codes = np.stack([np.unique(listed[name].to_numpy(), return_inverse=True)[1] for name in self.known])
        _, place, sizes = np.unique(codes, axis=1, return_inverse=True, return_counts=True)
        return np.asarray(sizes[place.ravel()])

    def _can_be_asked(self, name: str) -> bool:
        kind = self.table.schema.field(name).type
        numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        return name.isidentifier() and name not in _TAKEN and (numbers or texts)

    def _within(self) -> bool:
        amounts = self.table[self.amount].to_numpy()
        return bool(((amounts >= 0) & (amounts <= self.highest)).all())


@dataclass(frozen=True)
class Targets:
    """People with the secrets of some of them drawn by coins, which the outsider is to find out.

    So a guess without the data is right in one of two cases, whatever else is known of the target.
    """

    people: People
    rows: np.ndarray
    coins: np.ndarray

    @cached_property
    def known(self) -> list[Mapping[str, Any]]:
        """What the outsider knows of each target."""
        found: list[Mapping[str, Any]] = (
            self.people.table.select(self.people.known).take(pa.array(self.rows)).to_pylist()
        )
        return found

    @property
    def alike(self) -> np.ndarray:
        """How many people fit what is known of each target, from a register that everybody can read."""
        return np.asarray(self.people.alike[self.rows])


def pick(people: Any, targets: int, rng: np.random.Generator) -> Targets:
    """Pick so many people by chance, all if there are fewer, and toss a coin for the secret of each.

    >>> people = People({"age": [30, 31], "ill": [0, 1]}, known=("age",), secret="ill")
    >>> pick(people, 10, np.random.default_rng(0)).rows.size
    2
    """
    if not isinstance(people, People):
        raise TypeError(f"data must be People(table, known, secret), not {type(people).__name__}")
    size = people.table.num_rows
    rows = np.sort(rng.permutation(size)[: whole(targets, "targets", 1)])
    if not (people.alike[rows] == 1).any():
        raise ValueError("known: no target can be singled out by these columns. Name more of them, or more targets.")
    coins = rng.integers(0, 2, rows.size)
    secrets = np.array(people.table[people.secret].to_numpy(), np.int64)
    secrets[rows] = coins
    place = people.table.column_names.index(people.secret)
    table = people.table.set_column(place, people.secret, pa.array(secrets))
    drawn = People(table, people.known, people.secret, people.amount, people.highest)
    return Targets(drawn, rows, coins.astype(bool))


def town(rng: np.random.Generator, size: int = 500) -> People:
    """Make up a town: age, sex and postcode, which the neighbours know, a salary, and whether somebody is ill.

    >>> made = town(np.random.default_rng(0))
    >>> made.table.column_names, float((made.alike == 1).mean())
    (['age', 'sex', 'postcode', 'salary', 'ill'], 0.804)
    """
    ages = np.clip(np.round(18 + rng.gamma(2.5, 12, size)), 18, 99)  # few are old
    table = {
        "age": ages.astype(np.int64),
        "sex": rng.choice(["f", "m"], size),
        "postcode": rng.integers(1001, 1021, size),
        "salary": np.clip(np.round(rng.lognormal(10.4, 0.6, size) / 100) * 100, 0, 200_000).astype(np.int64),
        "ill": rng.integers(0, 2, size),
    }
    return People(table, ("age", "sex", "postcode"), "ill", amount="salary", highest=200_000)


def load(folder: Path) -> People:
    """Read 1,000 people of a census: who knows age, sex, education and race asks whether somebody is married."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    path = Path(folder) / _FILE
    if not path.exists():
        raise FileNotFoundError(f"{_FILE} is not in {folder}")
    table = pq.read_table(path, columns=["age", "sex", "educ", "race", "income", "married"])
    return People(table, ("age", "sex", "educ", "race"), "married", amount="income", highest=1_000_000)


FILES = (_FILE,)
