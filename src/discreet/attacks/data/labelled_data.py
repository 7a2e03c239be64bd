"""Labelled training data, and the same with one sensitive column that the attacker does not know."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from discreet.attacks.attack import Source
from discreet.attacks.validation import (
    class_codes,
    column_bounds,
    float_matrix,
    random_generator,
    read_data_table,
    require,
    require_type,
    set_fields,
)
from discreet.kernel.numbers import as_integer

_LOCATIONS_FILE = "location30_mia.parquet"
_DEVIATION = 0.27  # the average share of products in which a person differs from their type


@dataclass(frozen=True)
class LabelledData:
    """Features and a class label for each person, with bounds of the features that are known without the data.

    `X` is an array or a table with one row per person. `y` are class labels: non-negative integers, or texts, which are
    numbered in the order of `names`. `classes` is the number of classes if it is larger than in `y`. `bounds` are (low,
    high), (0, 1) by default, for all columns or per column.

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
        require(
            X.ndim == 2 and y.shape == X.shape[:1] and X.size, "X must have one row per person, and y one class per row"
        )
        require(
            np.isfinite(X).all(), "X must contain only finite numbers: fill in missing values, or leave those rows out"
        )
        column_names = columns or tuple(self.columns)
        _check_bounds(X, self.bounds, column_names)
        classes = max(as_integer(self.classes, "classes"), int(y.max()) + 1)
        set_fields(self, X=X, y=y, classes=classes, columns=column_names, names=names or tuple(self.names))

    def __len__(self) -> int:
        return len(self.y)

    def subset(self, chosen: np.ndarray) -> "LabelledData":
        """Return the people at these indices, or where the mask is true."""
        return replace(self, X=self.X[chosen], y=self.y[chosen])


def _check_bounds(X: np.ndarray, bounds: Any, columns: tuple[str, ...]) -> None:
    """Raise if values are outside their bounds: a private model would clamp them and so learn from other data."""
    low, high = column_bounds(bounds, X.shape[1])
    outside = np.flatnonzero((np.clip(X, low, high) != X).any(axis=0))
    if outside.size:
        index = int(outside[0])
        name = repr(columns[index]) if columns else index
        raise ValueError(
            f"column {name} of X has values outside its bounds, {low[index]:g} to {high[index]:g}: give "
            "bounds=(low, high) that are known without the data, or clip the values"
        )


def simulate_purchases(random_state: int | None, *, people: int = 1000, deviation: float = _DEVIATION) -> LabelledData:
    """Simulate customers of ten types who bought some of 60 products; some are far from their type.

    >>> simulate_purchases(0).X.shape, simulate_purchases(0).classes
    ((1000, 60), 10)
    """
    rng = random_generator(random_state)
    kinds = rng.random((10, 60)) < 0.5
    y = rng.integers(10, size=people)
    flip_rates = 2 * deviation * rng.beta(2, 2, people)  # varies, so that there are outliers
    bought = kinds[y] ^ (rng.random((people, 60)) < flip_rates[:, None])
    return LabelledData(bought.astype(float), y, classes=10)


def read_locations(folder: Path) -> LabelledData:
    """Read the Location data of Shokri et al.: places visited, and one of 30 types of people."""
    table = read_data_table(folder, _LOCATIONS_FILE)
    visited = np.stack(table["x"].to_numpy(zero_copy_only=False))
    return LabelledData(visited.astype(float), table["label"].to_numpy().astype(np.int64) - 1)


def rarity_within_class(people: LabelledData) -> np.ndarray:
    """Return the distance of each person from the centre of their class: overfitted models memorise outliers.

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
_NUMBER_COLUMNS = {"age": 100, "hours_per_week": 100}  # with upper bounds that are known without the data
_PERSON_COUNT = 4000


@dataclass(frozen=True)
class SensitiveAttributeData:
    """People about whom the attacker knows all but one column of X, which contains non-negative integers.

    `column` is its index, or its name if X is a table. `values` is the number of values if it is larger than in X.

    >>> SensitiveAttributeData(LabelledData(np.eye(2), np.array([0, 1])), column=0).values
    2
    >>> SensitiveAttributeData(LabelledData({"age": [0.3, 0.4], "smokes": [0, 1]}, [0, 1]), column="smokes").column
    1
    """

    people: LabelledData
    column: Any
    values: int = 0

    def __post_init__(self) -> None:
        require_type(self.people, LabelledData, "LabelledData(X, y)", "people")
        set_fields(self, column=_column_index(self.column, self.people))
        require(
            not (self.sensitive_values < 0).any()
            and not (self.sensitive_values != np.floor(self.sensitive_values)).any(),
            f"column {self.column} of X must contain non-negative integers, which are tried in turn",
        )
        observed_values, declared_values = int(self.sensitive_values.max()) + 1, as_integer(self.values, "values")
        require(
            declared_values or not (self.sensitive_values == self.sensitive_values[0]).all(),
            f"column {self.column} of X must have at least two distinct values",
        )
        set_fields(self, values=max(observed_values, declared_values))

    @property
    def sensitive_values(self) -> np.ndarray:
        """The sensitive value of each person."""
        return np.asarray(self.people.X[:, self.column])

    def subset(self, chosen: np.ndarray) -> "SensitiveAttributeData":
        """Return the people at these indices."""
        return SensitiveAttributeData(self.people.subset(chosen), self.column, self.values)

    def rows_with_value(self, value: int) -> np.ndarray:
        """Return the rows with everybody's sensitive value replaced by this one."""
        rows: np.ndarray = self.people.X.copy()
        rows[:, self.column] = value
        return rows


def _column_index(column: Any, people: LabelledData) -> int:
    width = people.X.shape[1]
    if isinstance(column, str):
        if column not in people.columns:
            reason = f"its columns are {', '.join(people.columns)}" if people.columns else "its columns have no names"
            raise ValueError(f"column {column!r} does not exist in X; {reason}")
        return people.columns.index(column)
    require(
        as_integer(column, "column", 0) < width,
        f"column must be an index of the {width} columns of X, from 0 to {width - 1}",
    )
    return int(column)


def simulate_findings(random_state: int | None, *, people: int = 2000) -> SensitiveAttributeData:
    """Simulate patients with nine findings of five grades, the last one secret, and whether a treatment helped.

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
    """Read people of the Adult census data; models predict the income class, and the occupation is secret."""
    table = read_data_table(folder, _ADULT_FILE, [*_TEXT_COLUMNS, *_NUMBER_COLUMNS, "income"]).drop_null()
    # Categories are numbered alphabetically; the lists of categories are public.
    codes = [
        np.unique(table[name].to_numpy(zero_copy_only=False).astype(str), return_inverse=True) for name in _TEXT_COLUMNS
    ]
    X = np.column_stack([*(places for _, places in codes), *(table[name].to_numpy() for name in _NUMBER_COLUMNS)])
    rich = pc.match_substring(table["income"], ">").to_numpy(zero_copy_only=False).astype(np.int64)
    highest = [*(len(names) - 1 for names, _ in codes), *_NUMBER_COLUMNS.values()]
    people = LabelledData(X[:_PERSON_COUNT], rich[:_PERSON_COUNT], bounds=(np.zeros(len(highest)), np.array(highest)))
    return SensitiveAttributeData(people, column=0)


LABELLED = Source(
    LabelledData,
    "LabelledData(X, y)",
    lambda rng: simulate_purchases(int(rng.integers(2**31)), people=2000),
    built_in="2,000 simulated customers of ten types, with 60 products bought or not",
    files=(_LOCATIONS_FILE,),
    read=read_locations,
)
SENSITIVE = Source(
    SensitiveAttributeData,
    "SensitiveAttributeData(people, column)",
    lambda rng: simulate_findings(int(rng.integers(2**31))),
    built_in="2,000 simulated patients with nine findings of five grades",
    files=(_ADULT_FILE,),
    read=read_adults,
)
