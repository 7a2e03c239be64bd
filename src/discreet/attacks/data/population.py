"""A population with a secret bit and columns that the attacker knows: your own, a simulated town, or census data."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import Source
from discreet.attacks.validation import arrow_table, read_data_table, require, require_columns, set_fields
from discreet.kernel.numbers import as_integer

FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class Population:
    """A table with one row per person, the columns that the attacker knows, and a secret column of 0 and 1.

    The table is an Arrow, pandas or polars table, or a dict of columns. `amount` may name a column of numbers from 0 to
    `max_amount`, such as salaries, for queries about sums.

    >>> people = Population({"age": [30, 31, 31], "ill": [0, 1, 1]}, known=("age",), secret="ill")
    >>> people.class_sizes.tolist()
    [1, 2, 2]
    """

    table: Any
    known: tuple[str, ...]
    secret: str
    amount: str | None = None
    max_amount: int = 0

    def __post_init__(self) -> None:
        set_fields(self, table=arrow_table(self.table, "table"), known=_column_names(self.known))
        _check_columns(self)
        _check_values(self)

    @property
    def queried_columns(self) -> tuple[str, ...]:
        """All columns used in queries."""
        return (*self.known, self.secret, *([] if self.amount is None else [self.amount]))

    @cached_property
    def class_index(self) -> np.ndarray:
        """For each person, the number of their class: people with the same known values."""
        codes = np.stack([np.unique(self.table[name].to_numpy(), return_inverse=True)[1] for name in self.known])
        return np.unique(codes, axis=1, return_inverse=True)[1].ravel()

    @cached_property
    def class_sizes(self) -> np.ndarray:
        """For each person, the number of people with the same known values, themselves included."""
        return np.asarray(np.bincount(self.class_index)[self.class_index])


def simulate_town(rng: np.random.Generator, size: int = 500) -> Population:
    """Simulate a town: age, sex and postcode, which neighbours know, a salary, and an illness.

    >>> town = simulate_town(np.random.default_rng(0))
    >>> town.table.column_names, float((town.class_sizes == 1).mean())
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
    return Population(table, ("age", "sex", "postcode"), "ill", amount="salary", max_amount=200_000)


def _column_names(known: Any) -> tuple[str, ...]:
    if not isinstance(known, Iterable):
        raise TypeError(f'known must be column names, such as ("age", "sex"), not {type(known).__name__}')
    return (known,) if isinstance(known, str) else tuple(known)


def _check_columns(people: Population) -> None:
    columns, queried = people.table.column_names, people.queried_columns
    require_columns(people.table, queried, "the table")
    require(
        people.known and people.table.num_rows >= 2,
        "known must name at least one column, and the table must have at least two rows",
    )
    if twice := [name for name in queried if queried.count(name) > 1]:
        raise ValueError(f"known, secret and amount must be different columns: {twice[0]!r} is named twice")
    lower = [name.lower() for name in columns]
    if twins := [name for name in queried if lower.count(name.lower()) > 1]:
        raise ValueError(f"table: column {twins[0]!r} and another one differ only in case: rename one of them")
    if odd := [name for name in queried if not name.strip() or len(name) > 200 or not name.isprintable()]:
        raise ValueError(f"table: rename column {odd[0]!r:.40}: a name must have 1 to 200 printable characters")


def _check_values(people: Population) -> None:
    types = {name: people.table.schema.field(name).type for name in people.queried_columns}
    if odd := [name for name in people.known if not (_is_numeric(types[name]) or pa.types.is_string(types[name]))]:
        raise ValueError(f"known: column {odd[0]!r} must be numeric or text")
    if gaps := [name for name in people.queried_columns if _has_gaps(people.table[name])]:
        raise ValueError(f"table: column {gaps[0]!r} has missing or infinite values: leave those people out")
    require(
        _is_numeric(types[people.secret]) and np.isin(people.table[people.secret].to_numpy(), (0, 1)).all(),
        f"secret: column {people.secret!r} must contain only 0 and 1",
    )
    if people.amount is not None:
        max_amount = as_integer(people.max_amount, "max_amount", 1)
        amounts = people.table[people.amount].to_numpy()
        is_amount = _is_numeric(types[people.amount]) and not pa.types.is_boolean(types[people.amount])
        require(
            is_amount and ((amounts >= 0) & (amounts <= max_amount)).all(),
            f"amount: column {people.amount!r} must contain numbers from 0 to max_amount ({max_amount})",
        )


def _is_numeric(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_boolean(data_type))


def _has_gaps(column: pa.ChunkedArray) -> bool:
    if column.null_count:
        return True
    return pa.types.is_floating(column.type) and not np.isfinite(column.to_numpy()).all()


def read_population(folder: Path) -> Population:
    """Read 1,000 people of a census: age, sex, education and race are known, marriage is secret."""
    table = read_data_table(folder, FILE, ["age", "sex", "educ", "race", "income", "married"])
    return Population(table, ("age", "sex", "educ", "race"), "married", amount="income", max_amount=1_000_000)


POPULATION = Source(
    Population,
    "Population(table, known, secret)",
    simulate_town,
    built_in="a simulated town of 500 people",
    files=(FILE,),
    read=read_population,
)
