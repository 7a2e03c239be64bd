"""What an outsider makes of a published mixture: who is where, and who is in. It sees parameters and its own rows."""

from dataclasses import dataclass

import numpy as np

from discreet.attacks.models.mixtures import Seen

REACH = 0.5  # kilometres, in each direction: so well the attacker who plants rows knows where to plant them
_METRE = 0.001  # no distance says more than this one


@dataclass(frozen=True)
class Planted:
    """What the attacker put in: where they think that each lone person is, within `REACH`, and rows around it."""

    about: np.ndarray  # people × 2
    rows: np.ndarray  # people × rows × 2

    @property
    def count(self) -> int:
        """How many rows are around each person."""
        return int(self.rows.shape[1])

    def nearest(self, seen: Seen) -> np.ndarray:
        """Return the mean that is nearest to the planted rows of each person."""
        far = np.linalg.norm(seen.means - self.rows.mean(axis=1)[:, None], axis=2)
        return np.asarray(seen.means[far.argmin(axis=1)])


def guesses(seen: Seen, planted: Planted, people: float) -> list[np.ndarray]:
    """Return the places that the attacker names for each lone person.

    Without planted rows these are the means of all components of about one person, for everybody. With rows planted
    around somebody, the nearest component is theirs and this person's: five times its mean, less the four rows. Where
    that is not where the person can be, the attacker names the place that they thought of beforehand.

    >>> seen = Seen(np.array([0.01, 0.99]), np.array([[9.0, 9.0], [1.0, 1.0]]), np.array([np.eye(2)] * 2))
    >>> guesses(seen, Planted(np.array([[5.0, 5.0]]), np.empty((1, 0, 2))), people=100)
    [array([[9., 9.]])]
    """
    if not planted.count:
        return [seen.means[seen.weights * people < 1.5]] * len(planted.rows)  # halfway between one person and two
    solved = (planted.count + 1) * planted.nearest(seen) - planted.rows.sum(axis=1)
    possible = (np.abs(solved - planted.about) <= REACH + _METRE).all(axis=1)
    return list(np.where(possible[:, None], solved, planted.about)[:, None])


def presence(seen: Seen, planted: Planted, places: np.ndarray) -> np.ndarray:
    """Return how strongly each person, whose place is known now, is taken to be in the data.

    The density at the place tells, and with planted rows it also tells whether the mean of their component is nearer
    to where it is with the person than to where it is without. If noise may be of any size, a mean at the distance d
    is about as likely as 1/d² in two dimensions; the ratio's logarithm is what is added.

    >>> seen = Seen(np.array([1.0]), np.array([[1.0, 1.0]]), np.array([np.eye(2)]))
    >>> none = Planted(np.zeros((2, 2)), np.empty((2, 0, 2)))
    >>> near, far = presence(seen, none, np.array([[1.0, 1.0], [5.0, 5.0]]))
    >>> bool(near > far)
    True
    """
    density = seen.log_density(places)
    if not planted.count:
        return density
    mean, total = planted.nearest(seen), planted.rows.sum(axis=1)
    away_with, away_without = (
        np.linalg.norm(mean - expected, axis=1) + _METRE
        for expected in ((total + places) / (planted.count + 1), total / planted.count)
    )
    return np.asarray(density + 2 * np.log(away_without / away_with))
