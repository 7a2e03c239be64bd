"""Labelled training data, and the same with one sensitive column that the attacker lacks."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.validation import class_codes, column_bounds, data_file, float_matrix, random_generator
from discreet.kernel.numbers import as_integer

_LOCATIONS_FILE = "location30_mia.parquet"
_DEVIATION = 0.27  # the share of the products of its kind that a person buys or leaves differently, on average


@dataclass(frozen=True)
class LabelledData:
    """People with their numbers and a class each; `bounds` are what is known about the numbers without the data.

    `X` has a row for each person: an array, or a table, whose columns' names are kept. `y` has their classes: whole
    numbers from 0, or texts, which get numbers in the order of `names`. There are as many as `classes` says, or as `y`
    has. Numbers are from 0 to 1 unless `bounds` say otherwise, for all columns or for each.

    >>> LabelledData(np.eye(40), np.arange(40) % 2).classes
    2
    >>> people = LabelledData({"age": [30, 40], "smokes": [0, 1]}, ["ill", "well"], bounds=([0, 0], [120, 1]))
    >>> people.columns, people.names, people.y.tolist()
    (('age', 'smokes'), ('ill', 'well'), [0, 1])
    """

    X: Any
    y: Any
    bounds: Any = (0, 1)
    classes: int = 0
    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        (X, columns), (y, names) = float_matrix(self.X, "X"), class_codes(self.y, "y")
        if X.ndim != 2 or y.shape != X.shape[:1] or not X.size:
            raise ValueError("X must have a row for each person, and y a class for each row")
        if not np.isfinite(X).all():
            raise ValueError("X must have finite numbers only; fill in or leave out what is missing")
        column_names = columns or tuple(self.columns)
        _check_bounds(X, self.bounds, column_names)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "classes", max(as_integer(self.classes, "classes"), int(y.max()) + 1))
        object.__setattr__(self, "columns", column_names)
        object.__setattr__(self, "names", names or tuple(self.names))

    def __len__(self) -> int:
        return len(self.y)

    def subset(self, chosen: np.ndarray) -> "LabelledData":
        """Return the people at these places, or where this is true."""
        return replace(self, X=self.X[chosen], y=self.y[chosen])


def _check_bounds(X: np.ndarray, bounds: Any, columns: tuple[str, ...]) -> None:
    """Stop where numbers lie outside of their bounds: a private model would clip them, and learn something else."""
    low, high = column_bounds(bounds, X.shape[1])
    outside = np.flatnonzero((np.clip(X, low, high) != X).any(axis=0))
    if outside.size:
        place = int(outside[0])
        name = repr(columns[place]) if columns else place
        raise ValueError(
            f"X, column {name}, has numbers outside of its bounds, {low[place]:g} to {high[place]:g}: say "
            "bounds=(low, high), what is known of the numbers without the data, or clip them"
        )


def simulate_purchases(random_state: int | None, *, people: int = 1000, deviation: float = _DEVIATION) -> LabelledData:
    """Return people who bought some of 60 products, of ten kinds of customers; some are far from their kind.

    >>> simulate_purchases(0).X.shape, simulate_purchases(0).classes
    ((1000, 60), 10)
    """
    rng = random_generator(random_state)
    kinds = rng.random((10, 60)) < 0.5
    y = rng.integers(10, size=people)
    flip_rates = 2 * deviation * rng.beta(2, 2, people)  # outliers are what attacks live on
    bought = kinds[y] ^ (rng.random((people, 60)) < flip_rates[:, None])
    return LabelledData(bought.astype(float), y, classes=10)


def read_locations(folder: Path) -> LabelledData:
    """Return the people of the Location data of Shokri et al.: places visited, and one of 30 kinds of people."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - of the core, but slow to import

    table = pq.read_table(data_file(folder, _LOCATIONS_FILE))
    visited = np.stack(table["x"].to_numpy(zero_copy_only=False))
    return LabelledData(visited.astype(float), table["label"].to_numpy().astype(np.int64) - 1)


def rarity_within_class(people: LabelledData) -> np.ndarray:
    """Return how far each person is from the centre of their class: an overfitted model learns outliers by heart.

    >>> rarity_within_class(LabelledData([[0.0], [0.0], [0.0], [4.0]], [0, 0, 1, 1], bounds=(0, 4))).round(2).tolist()
    [0.0, 0.0, 1.15, 1.15]
    """
    member = np.arange(people.classes)[:, None] == people.y
    centres = member @ people.X / np.maximum(member.sum(axis=1), 1)[:, None]
    width = people.X.std(axis=0)
    return np.asarray(np.linalg.norm((people.X - centres[people.y]) / np.where(width > 0, width, 1), axis=1))


_ADULT_FILE = "adult.parquet"
_SENSITIVE_COLUMN = "occupation"
_TEXT_COLUMNS = (
    _SENSITIVE_COLUMN,
    "workclass",
    "education",
    "marital_status",
    "relationship",
    "race",
    "sex",
    "native_country",
)
_NUMBER_COLUMNS = {"age": 100, "hours_per_week": 100}  # with the highest that is known without the data
_PERSON_COUNT = 4000  # enough, and quick


@dataclass(frozen=True)
class SensitiveAttributeData:
    """People of whom an attacker knows all but one column of X, which has whole numbers from 0.

    `column` is its place, or its name if X came from a table; it has as many values as `values` says, or as X has.

    >>> SensitiveAttributeData(LabelledData(np.eye(2), np.array([0, 1])), column=0).values
    2
    >>> SensitiveAttributeData(LabelledData({"age": [0.3, 0.4], "smokes": [0, 1]}, [0, 1]), column="smokes").column
    1
    """

    people: LabelledData
    column: Any
    values: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.people, LabelledData):
            raise TypeError(f"people must be a Labelled record of X and y, not {type(self.people).__name__}")
        object.__setattr__(self, "column", _column_index(self.column, self.people))
        if (self.sensitive_values < 0).any() or (self.sensitive_values != np.floor(self.sensitive_values)).any():
            raise ValueError(f"column {self.column} of X must have whole numbers from 0: they are tried one by one")
        observed_values, declared_values = int(self.sensitive_values.max()) + 1, as_integer(self.values, "values")
        if not declared_values and (self.sensitive_values == self.sensitive_values[0]).all():
            raise ValueError(f"column {self.column} of X must have at least two different values")
        object.__setattr__(self, "values", max(observed_values, declared_values))

    @property
    def sensitive_values(self) -> np.ndarray:
        """What the attacker wants to know of each person."""
        return np.asarray(self.people.X[:, self.column])

    def subset(self, chosen: np.ndarray) -> "SensitiveAttributeData":
        """Return the people at these places."""
        return SensitiveAttributeData(self.people.subset(chosen), self.column, self.values)

    def rows_with_value(self, value: int) -> np.ndarray:
        """Return the rows as they would be if everybody's secret had this value."""
        rows: np.ndarray = self.people.X.copy()
        rows[:, self.column] = value
        return rows


def _column_index(column: Any, people: LabelledData) -> int:
    width = people.X.shape[1]
    if isinstance(column, str):
        if column not in people.columns:
            named = f"the columns {', '.join(people.columns)}" if people.columns else "those of a table; X has no names"
            raise ValueError(f"column: {column!r} is none of {named}")
        return people.columns.index(column)
    if as_integer(column, "column", 0) >= width:
        raise ValueError(f"column must be one of the {width} columns of X, from 0")
    return int(column)


def simulate_findings(random_state: int | None, *, people: int = 2000) -> SensitiveAttributeData:
    """Return patients with nine findings of five grades, the last of them secret, and whether a treatment helped.

    >>> simulate_findings(0).people.X.shape, simulate_findings(0).values
    ((2000, 9), 5)
    """
    rng = random_generator(random_state)
    severity = rng.normal(0, 1, people)
    grades = severity[:, None] * rng.uniform(0.2, 0.8, 9) + rng.normal(0, 1, (people, 9))
    X = np.clip(np.round(grades + 2), 0, 4)
    success_rate = 1 / (1 + np.exp(-(severity + 0.5 * (X[:, -1] - 2))))
    helped = rng.random(people) < success_rate
    return SensitiveAttributeData(LabelledData(X, helped.astype(np.int64), bounds=(0, 4)), column=8)


def read_adults(folder: Path) -> SensitiveAttributeData:
    """Return people of a census, whose income class is what models tell, and whose occupation is secret."""
    import pyarrow.compute as pc  # noqa: PLC0415 - of the core, but slow to import
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pq.read_table(
        data_file(folder, _ADULT_FILE), columns=[*_TEXT_COLUMNS, *_NUMBER_COLUMNS, "income"]
    ).drop_null()
    # Categories become their places in the alphabet; their lists are public, as is that of the census.
    codes = [
        np.unique(table[name].to_numpy(zero_copy_only=False).astype(str), return_inverse=True) for name in _TEXT_COLUMNS
    ]
    X = np.column_stack([*(places for _, places in codes), *(table[name].to_numpy() for name in _NUMBER_COLUMNS)])
    rich = pc.match_substring(table["income"], ">").to_numpy(zero_copy_only=False).astype(np.int64)
    highest = [*(len(names) - 1 for names, _ in codes), *_NUMBER_COLUMNS.values()]
    people = LabelledData(X[:_PERSON_COUNT], rich[:_PERSON_COUNT], bounds=(np.zeros(len(highest)), np.array(highest)))
    return SensitiveAttributeData(people, column=0)
