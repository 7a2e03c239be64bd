"""The people whom questions are asked about: what an outsider knows of each, and a secret."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.checking import arrow_table, file_in
from discreet.kernel.exact import whole

_FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class People:
    """A table with one row for each person, the columns that an outsider knows of everybody, and a secret (0 or 1).

    The table is one of Arrow, pandas or polars, or a dict of columns. `amount` may name a column of numbers from 0 to
    `highest`, such as salaries, for questions about sums.

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
        object.__setattr__(self, "table", arrow_table(self.table, "table"))
        object.__setattr__(self, "known", _names(self.known))
        _check_names(self)
        _check_values(self)

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that questions are about."""
        return (*self.known, self.secret, *([] if self.amount is None else [self.amount]))

    @cached_property
    def alike(self) -> np.ndarray:
        """For each person, how many people an outsider cannot tell apart: who is alone has 1."""
        listed = pa.table({name: self.table[name] for name in self.known})
        codes = np.stack([np.unique(listed[name].to_numpy(), return_inverse=True)[1] for name in self.known])
        _, place, sizes = np.unique(codes, axis=1, return_inverse=True, return_counts=True)
        return np.asarray(sizes[place.ravel()])


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


def _names(known: Any) -> tuple[str, ...]:
    if not isinstance(known, Iterable):
        raise TypeError(f'known must be names of columns, such as ("age", "sex"), not {type(known).__name__}')
    return (known,) if isinstance(known, str) else tuple(known)


def _check_names(people: People) -> None:
    columns, named = people.table.column_names, people.named
    if missing := [name for name in named if name not in columns]:
        raise ValueError(f"table: there is no column {missing[0]!r}; there are {', '.join(columns)}")
    if not people.known or people.table.num_rows < 2:
        raise ValueError("known: name at least one column, of a table of two people or more")
    if twice := [name for name in named if named.count(name) > 1]:
        raise ValueError(f"known, secret and amount must be different columns: {twice[0]!r} is named twice")
    lower = [name.lower() for name in columns]
    if twins := [name for name in named if lower.count(name.lower()) > 1]:
        raise ValueError(f"table: {twins[0]!r} and another column differ in capitals only, as SQL cannot: rename one")
    if odd := [name for name in named if not name.strip() or len(name) > 200 or not name.isprintable()]:
        raise ValueError(f"table: rename the column {odd[0]!r:.40}: a name is one line of 1 to 200 characters")


def _check_values(people: People) -> None:
    kinds = {name: people.table.schema.field(name).type for name in people.named}
    if odd := [name for name in people.known if not (_is_number(kinds[name]) or pa.types.is_string(kinds[name]))]:
        raise ValueError(f"known: the column {odd[0]!r} cannot be asked about. Use numbers or texts.")
    if gaps := [name for name in people.named if _has_gaps(people.table[name])]:
        raise ValueError(f"table: the column {gaps[0]!r} has gaps, or numbers without an end: leave those people out")
    if not _is_number(kinds[people.secret]) or not np.isin(people.table[people.secret].to_numpy(), (0, 1)).all():
        raise ValueError(f"secret: the column {people.secret!r} must have 0 and 1 only")
    if people.amount is not None:
        highest = whole(people.highest, "highest", 1)
        amounts = people.table[people.amount].to_numpy()
        is_amount = _is_number(kinds[people.amount]) and not pa.types.is_boolean(kinds[people.amount])
        if not is_amount or not ((amounts >= 0) & (amounts <= highest)).all():
            raise ValueError(f"amount: the column {people.amount!r} must have numbers from 0 to highest ({highest})")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _has_gaps(column: pa.ChunkedArray) -> bool:
    if column.null_count:
        return True
    return pa.types.is_floating(column.type) and not np.isfinite(column.to_numpy()).all()


def load(folder: Path) -> People:
    """Read 1,000 people of a census: who knows age, sex, education and race asks whether somebody is married."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    table = pq.read_table(file_in(folder, _FILE), columns=["age", "sex", "educ", "race", "income", "married"])
    return People(table, ("age", "sex", "educ", "race"), "married", amount="income", highest=1_000_000)


FILES = (_FILE,)
