"""A study that publishes means of many attributes, for people with a secret and for people without it."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.fields import real, zeros_and_ones
from discreet.kernel.exact import whole

_SQL = "SELECT secret, item, COUNT(*) AS n FROM data GROUP BY secret, item ORDER BY secret, item"


@dataclass(frozen=True)
class Study:
    """Who took part: attributes of zeros and ones that others may know, and a secret bit; and equal strangers.

    `rates` are how frequent the attributes are among all people, which is public.

    >>> made = drawn_study(people=20, attributes=50, rng=np.random.default_rng(0))
    >>> made.values.shape, made.strangers.shape, made.secrets.shape
    ((20, 50), (80, 50), (20,))
    """

    values: np.ndarray
    secrets: np.ndarray
    strangers: np.ndarray
    rates: np.ndarray

    def __post_init__(self) -> None:
        names = ("values", "secrets", "strangers")
        values, secrets, strangers = (zeros_and_ones(getattr(self, name), name) for name in names)
        rates = real(self.rates, "rates")
        if values.ndim != 2 or secrets.shape != values.shape[:1] or not len(values):
            raise ValueError("values must have a row, and secrets an entry, for each person of the study")
        if strangers.shape[1:] != values.shape[1:] or rates.shape != values.shape[1:] or not len(strangers):
            raise ValueError("strangers and rates must be of the same attributes as values")
        if not ((rates > 0) & (rates < 1)).all() or len(np.unique(secrets)) < 2:
            raise ValueError("rates must lie between 0 and 1, and both secrets must occur")
        checked = {"values": values, "secrets": secrets.astype(np.int64), "strangers": strangers, "rates": rates}
        for name, array in checked.items():
            object.__setattr__(self, name, array)


def drawn_study(people: int, attributes: int, rng: np.random.Generator) -> Study:
    """Draw a study of people whose attributes are independent, with fair secrets, and four times as many strangers."""
    rates = rng.uniform(0.1, 0.9, whole(attributes, "attributes", 1))
    values, strangers = (rng.random((count, attributes)) < rates for count in (whole(people, "people", 2), 4 * people))
    return Study(values, rng.integers(0, 2, people), strangers, rates)


def means_by_secret(values: np.ndarray, secrets: np.ndarray) -> np.ndarray:
    """Return the exact means: a row for those without the secret, and a row for those with it.

    >>> means_by_secret(np.array([[1, 0], [1, 1], [0, 0]]), np.array([0, 0, 1])).tolist()
    [[1.0, 0.5], [0.0, 0.0]]
    """
    return np.stack([values[secrets == secret].mean(axis=0) for secret in (0, 1)])


def private_means(values: np.ndarray, secrets: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Ask the curator how many people of either kind have each attribute, and how many there are."""
    people, attributes = values.shape
    everybody = np.concatenate([values, np.ones((people, 1), bool)], axis=1)  # one more attribute, which counts people
    person, item = np.nonzero(everybody)
    table = pa.table({"person": person, "item": item, "secret": secrets[person]})
    with dc.open(
        table,
        unit="person",
        budget=epsilon,
        columns={"item": (0, attributes), "secret": (0, 1)},
        groups=attributes + 1,
        rows=1,
        ledger=":memory:",
    ) as curator:
        counts = curator.ask(_SQL, epsilon=epsilon).table["n"].to_numpy().reshape(2, attributes + 1)
    return np.asarray(counts[:, :-1] / np.maximum(counts[:, -1:], 1))
