"""People with a secret bit, the targets among them, and inference of their secrets from noisy counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.defences import Defence, epsilon_text
from discreet.attacks.evidence import GuessEvidence
from discreet.attacks.result import ExposureByRarity, exposure_by_rarity
from discreet.attacks.validation import arrow_table, data_file
from discreet.kernel.numbers import as_integer

_FILE = "pums_ca_1000.parquet"


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
        object.__setattr__(self, "table", arrow_table(self.table, "table"))
        object.__setattr__(self, "known", _column_names(self.known))
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


@dataclass(frozen=True)
class AttackTargets:
    """People, and the targets among them, whose secrets are replaced by random bits.

    Guessing without the data is therefore right half of the time, whatever else is known about the target.
    """

    people: Population
    rows: np.ndarray
    secret_bits: np.ndarray

    @cached_property
    def known_values(self) -> list[Mapping[str, Any]]:
        """The known values of each target."""
        values: list[Mapping[str, Any]] = (
            self.people.table.select(self.people.known).take(pa.array(self.rows)).to_pylist()
        )
        return values

    @property
    def class_sizes(self) -> np.ndarray:
        """How many people match each target's known values, as a public register shows."""
        return np.asarray(self.people.class_sizes[self.rows])

    @property
    def secret_holders(self) -> np.ndarray:
        """How many of the people who match each target's known values have the secret."""
        holders = np.bincount(self.people.class_index, self.people.table[self.people.secret].to_numpy())
        return np.asarray(holders[self.people.class_index[self.rows]].astype(np.int64))


def require_population(people: Any) -> Population:
    """Return the people, or raise if they are no `Population`.

    >>> require_population([1, 2])
    Traceback (most recent call last):
        ...
    TypeError: data must be Population(table, known, secret), not list
    """
    if not isinstance(people, Population):
        raise TypeError(f"data must be Population(table, known, secret), not {type(people).__name__}")
    return people


def draw_targets(people: Any, targets: int, rng: np.random.Generator) -> AttackTargets:
    """Draw at most `targets` people at random, and replace the secret of each by a random bit.

    >>> people = Population({"age": [30, 31], "ill": [0, 1]}, known=("age",), secret="ill")
    >>> draw_targets(people, 10, np.random.default_rng(0)).rows.size
    2
    """
    size = require_population(people).table.num_rows
    rows = np.sort(rng.permutation(size)[: as_integer(targets, "targets", 1)])
    if not (people.class_sizes[rows] == 1).any():
        raise ValueError("known: no target is unique in these columns. Name more columns, or draw more targets.")
    secret_bits = rng.integers(0, 2, rows.size)
    secrets = np.array(people.table[people.secret].to_numpy(), np.int64)
    secrets[rows] = secret_bits
    index = people.table.column_names.index(people.secret)
    table = people.table.set_column(index, people.secret, pa.array(secrets))
    drawn = Population(table, people.known, people.secret, people.amount, people.max_amount)
    return AttackTargets(drawn, rows, secret_bits.astype(bool))


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
    if missing := [name for name in queried if name not in columns]:
        raise ValueError(f"table: there is no column {missing[0]!r}; its columns are {', '.join(columns)}")
    if not people.known or people.table.num_rows < 2:
        raise ValueError("known must name at least one column, and the table must have at least two rows")
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
    if not _is_numeric(types[people.secret]) or not np.isin(people.table[people.secret].to_numpy(), (0, 1)).all():
        raise ValueError(f"secret: column {people.secret!r} must contain only 0 and 1")
    if people.amount is not None:
        max_amount = as_integer(people.max_amount, "max_amount", 1)
        amounts = people.table[people.amount].to_numpy()
        is_amount = _is_numeric(types[people.amount]) and not pa.types.is_boolean(types[people.amount])
        if not is_amount or not ((amounts >= 0) & (amounts <= max_amount)).all():
            raise ValueError(
                f"amount: column {people.amount!r} must contain numbers from 0 to max_amount ({max_amount})"
            )


def _is_numeric(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_boolean(data_type))


def _has_gaps(column: pa.ChunkedArray) -> bool:
    if column.null_count:
        return True
    return pa.types.is_floating(column.type) and not np.isfinite(column.to_numpy()).all()


def load(folder: Path) -> Population:
    """Read 1,000 people of a census: age, sex, education and race are known, marriage is secret."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    table = pq.read_table(data_file(folder, _FILE), columns=["age", "sex", "educ", "race", "income", "married"])
    return Population(table, ("age", "sex", "educ", "race"), "married", amount="income", max_amount=1_000_000)


FILES = (_FILE,)


METRIC = "of unique people's secrets inferred"


def guess_secrets(estimates: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
    """Guess that a target has the secret if more than half of their class does, by the estimated counts.

    >>> guess_secrets(np.array([0.9, 0.9, np.nan]), np.array([1, 2, 1])).tolist()
    [True, False, False]
    """
    return np.asarray(np.nan_to_num(estimates, nan=0.0) > class_sizes / 2)


def most_likely_counts(answers: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
    """Return the maximum-likelihood count for each target's column of answers under Laplace noise.

    It minimises the sum of absolute deviations, whatever the scale of the noise, and unlike the mean it is robust to
    outliers.

    >>> answers = np.array([[0.9, 2.0], [0.9, 3.0], [-5.0, np.nan]])
    >>> most_likely_counts(answers, np.array([1, 2])).tolist(), float(answers[:, 0].mean().round(2))
    ([1, 2], -1.07)
    """
    best, smallest = np.zeros(class_sizes.size, np.int64), np.full(class_sizes.size, np.inf)
    for count in range(class_sizes.max() + 1):
        distance = np.nansum(np.abs(answers - count), axis=0)
        nearer = (distance < smallest) & (count <= class_sizes)
        best, smallest = np.where(nearer, count, best), np.where(nearer, distance, smallest)
    return best


def guess_evidence(targets: AttackTargets, is_right: np.ndarray) -> GuessEvidence:
    """Return the correct guesses about unique targets, who are known from a public register.

    The guarantee is for adding or removing a person, and here a secret is substituted. A person without the secret is
    not counted, as if they were removed, so epsilon also bounds this game.

    >>> people = Population({"age": [30, 31, 31], "ill": [0, 1, 1]}, known=("age",), secret="ill")
    >>> guess_evidence(draw_targets(people, 3, np.random.default_rng(0)), np.array([True, False, False]))
    GuessEvidence(right=1, plays=1, prior=0.5)
    """
    unique_right = is_right[targets.class_sizes == 1]
    return GuessEvidence(int(unique_right.sum()), unique_right.size)


def target_exposure(targets: AttackTargets, is_right: np.ndarray) -> ExposureByRarity:
    """Return success by rarity: the fewer people share the known values, the rarer the target."""
    names = [f"row {row}" for row in targets.rows]
    return exposure_by_rarity(-targets.class_sizes, is_right, labels=names, rarity_label="small classes")


def target_details(targets: AttackTargets, is_right: np.ndarray) -> Mapping[str, Any]:
    """Return the number of targets, and the success over all of them, unique or not."""
    return {
        "targets": is_right.size,
        "unique targets": int((targets.class_sizes == 1).sum()),
        "inferred among all targets": float(is_right.mean()),
    }


def success_by_answer_count(estimates: Mapping[int, np.ndarray], targets: AttackTargets) -> dict[int, float]:
    """Return the attack's success by the number of answers."""
    hits = {
        number: guess_secrets(each, targets.class_sizes) == targets.secret_bits for number, each in estimates.items()
    }
    return {number: guess_evidence(targets, hit).success for number, hit in hits.items()}


def draw_success_by_answer_count(axes: Any, *, success: Mapping[int, float], defence: Defence, xlabel: str) -> None:
    """Draw success against the number of answers, and the bound from epsilon."""
    from discreet.attacks.plots import DEFENCE_COLOURS, share_label  # noqa: PLC0415 - only for figures
    from discreet.plotting import GREY, INK, format_plain_numbers  # noqa: PLC0415

    axes.plot(list(success), list(success.values()), "o-", color=DEFENCE_COLOURS[defence.kind], label="the attack")
    axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
    if defence.epsilon is not None:
        ceiling = GuessEvidence(1, 2).ceiling(float(defence.epsilon))
        axes.axhline(ceiling, color=INK, ls="--", lw=1, label=f"{epsilon_text(defence.epsilon)} allows")
    axes.set(xscale="log", xlabel=xlabel, ylim=(0.4, 1.05))
    axes.set_ylabel(share_label(METRIC))
    format_plain_numbers(axes.xaxis)
