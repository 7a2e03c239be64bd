"""The rows on private learning: mixtures, the report's DP-EM and what it is compared with, and a recommender."""

import functools
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.mixture import GaussianMixture as ExactMixture

from discreet.kernel.purse import STEPS
from discreet.learn import GaussianMixture, Recommender
from discreet.learn.mixture import dpem
from mission.rows import NeedsDataError, row

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
DELTA = 1e-6
BOX = (-12, 12)
NEW_YORK = ([40.4774, -74.2589], [40.9176, -73.7004])  # the declared map: what everybody knows of the city
EPSILONS = (0.5, 1, 4)


def columns(name, *wanted):
    """Return columns of a real data set."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        raise NeedsDataError(f"{name} in DISCREET_DATA")
    table = pq.read_table(path, columns=list(wanted))
    return [table[column].to_numpy() for column in wanted]


@row("E1", "The breach: a cluster of one person gives the person away; a private mixture does not")
def e1():
    rng = np.random.default_rng(7)
    crowd = np.concatenate([rng.normal(centre, 1, (600, 2)) for centre in ([-5, -4], [4, -3])])
    person = np.array([8.25, 9.5])
    everybody = np.concatenate([crowd, person[np.newaxis]])
    exact = ExactMixture(3, means_init=[[-5, -4], [4, -3], [8, 9]]).fit(everybody)
    found = np.linalg.norm(exact.means_ - person, axis=1).min()
    private = {
        kind: np.median(
            [_nearest(GaussianMixture(3, epsilon=1, delta=DELTA, bounds=BOX).fit(data), person) for _ in range(9)]
        )
        for kind, data in (("with", everybody), ("without", crowd))
    }
    return (
        f"exact parameters: the person's place to {found:.3f}; private at epsilon 1: nearest mean at "
        f"{private['with']:.1f} with the person in the data, {private['without']:.1f} without"
    )


def _nearest(mixture, place):
    return np.linalg.norm(mixture.means_ - place, axis=1).min()


@functools.cache
def made_up(rows=40_000):
    """Return points of a mixture of four, half to learn from and half to judge by, and the truth's own score."""
    rng = np.random.default_rng(11)
    centres = np.array([[-7, -6], [6, -5], [-2, 7], [7, 6]])
    truth = ExactMixture(4)
    points = np.concatenate([rng.normal(centre, 1.3, (rows // 4, 2)) for centre in centres])
    points = rng.permutation(points)
    truth.fit(points)
    return points[::2], points[1::2], truth.score(points[1::2])


def gaps(draws=3, **settings):
    """Return the median gap of the test log-likelihood to scikit-learn's mixture, for each epsilon."""
    learn, judge, best = made_up()
    found = []
    for epsilon in EPSILONS:
        model = GaussianMixture(4, epsilon=epsilon, delta=DELTA, bounds=BOX, **settings)
        found.append(np.median([model.fit(learn).score(judge) - best for _ in range(draws)]))
    return found


def listed(found):
    return " / ".join(f"{gap:.3f}" for gap in found)


REPORT = {"method": "dp-em", "neighbours": "replacement"}


@row("E6", "DP-EM as in the report: noisy weights, means and covariances, Gaussian or Laplace noise")
def e6():
    return (
        f"replacement neighbours, N public; gap to scikit-learn at epsilon .5 / 1 / 4: GGG {listed(gaps(**REPORT))}, "
        f"LLG {listed(gaps(noise='laplace', **REPORT))}"
    )


@row("E7", "Composition compared: linear, advanced, zCDP")
def e7():
    kinds = ("linear", "advanced", "zcdp")
    ends = np.full(2, BOX[0]), np.full(2, BOX[1])
    plans = {kind: dpem.plan(4, *ends, epsilon=1, delta=DELTA, composition=kind) for kind in kinds}
    noise = ", ".join(f"{kind} {float(plans[kind].noises[0].scale / STEPS):.0f}" for kind in kinds)
    found = ", ".join(f"{kind} {np.mean(gaps(composition=kind, **REPORT)):.2f}" for kind in kinds)
    return f"noise (sd) on a component's size at epsilon 1: {noise}; mean gap at epsilon .5, 1, 4: {found}"


@row("E8", "Noise on the input instead")
def e8():
    return f"gap at epsilon .5 / 1 / 4: {listed(gaps(method='input-noise', neighbours='replacement'))}"


@row("E9", "Gowalla check-ins clustered, one person hidden")
def e9():
    user, lat, lon = columns("gowalla_nyc_checkins", "user", "lat", "lon")
    people = np.random.default_rng(3).permutation(np.unique(user))
    held = np.isin(user, people[: len(people) // 5])
    points = np.column_stack([lat, lon])
    exact = ExactMixture(8, random_state=0, n_init=3).fit(points[~held]).score(points[held])
    said = []
    for epsilon in (1, 4):
        model = GaussianMixture(8, epsilon=epsilon, delta=DELTA, bounds=NEW_YORK)
        found = [model.fit(points[~held], unit=user[~held]).score(points[held]) for _ in range(3)]
        said.append(f"{np.median(found):.2f} at epsilon {epsilon}")
    return (
        f"8 components, log-likelihood of held-out people's check-ins: {' and '.join(said)}, a person's all hidden; "
        f"exact, by check-ins, {exact:.2f}: [map](pictures/checkins.svg)"
    )


@row("E10", "A private Gaussian mixture that a practitioner would use")
def e10():
    return f"gap to scikit-learn at epsilon .5 / 1 / 4, for the removal of one row: {listed(gaps())}"


def rmse(errors):
    return float(np.sqrt(np.mean(errors**2)))


@row("C4", "A private recommender that hides one rating, or a person's whole taste")
def c4():
    user, item, rating = columns("movielens_latest_small_ratings", "userId", "movieId", "rating")
    (movies,) = columns("movielens_latest_small_movies", "movieId")
    order = np.random.default_rng(5).permutation(len(user))
    held, rest = np.split(order, [len(order) // 5])
    constant = rmse(rating[held] - rating[rest].mean())
    said = []
    for level in ("event", "user"):
        model = Recommender(epsilon=1, items=movies, bounds=(0.5, 5), level=level)
        learn, judge = (np.column_stack([user[part], item[part], rating[part]]) for part in (rest, held[:3000]))
        errors = []
        for _ in range(3):
            found = model.fit(learn).knowing(learn).predict(judge[:, :2])  # each person's own ratings, at home
            errors.append([rmse(found - judge[:, 2]), rmse(model.predict(judge[:, 1]) - judge[:, 2])])
        own, alone = np.median(errors, axis=0)
        said.append(f"{level} level {own:.3f} ({alone:.3f} for somebody who rated nothing)")
    return (
        f"MovieLens RMSE at epsilon 1: {', '.join(said)}; the same for every film {constant:.3f}: "
        "[picture](pictures/ratings.svg)"
    )
