"""Private mixtures are nearly as good as the truth: the gap of the log-likelihood of new data, on fresh seeds."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.mixture import GaussianMixture as ExactMixture

from discreet.learn import GaussianMixture
from discreet.learn.mixture.density import log_densities

pytestmark = pytest.mark.slow
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))


def mixture(seed, d, components=5):
    """A mixture in a box of side 20: means anywhere in its inner half, spreads from 0.5 to 1.8, uneven weights."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(-6, 6, (components, d))
    turns = np.linalg.qr(rng.normal(size=(components, d, d)))[0]
    spreads = rng.uniform(0.5, 1.8, (components, 1, d)) ** 2
    covariances = (turns * spreads) @ turns.transpose(0, 2, 1)
    weights = np.maximum(rng.dirichlet(np.full(components, 4.0)), 0.03)
    return weights / weights.sum(), means, covariances


def sample(truth, rows, seed):
    rng = np.random.default_rng(seed)
    weights, means, covariances = truth
    label = rng.choice(len(weights), rows, p=weights)
    factors = np.linalg.cholesky(covariances)
    return means[label] + np.einsum("nij,nj->ni", factors[label], rng.standard_normal((rows, means.shape[1])))


def heavy_tailed(truth, rows, seed):
    """Points of Student's t-distributions with 2.5 degrees of freedom."""
    rng = np.random.default_rng(seed)
    weights, means, covariances = truth
    label = rng.choice(len(weights), rows, p=weights)
    spread = rng.standard_normal((rows, means.shape[1])) / np.sqrt(rng.chisquare(2.5, (rows, 1)) / 2.5)
    return means[label] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[label], spread)


def non_private(points, components):
    """The most likely of ten mixtures of scikit-learn."""
    fits = [ExactMixture(components, random_state=seed).fit(points) for seed in range(10)]
    return max(fits, key=lambda fit: fit.score(points))


def gap(seed, d, rows, epsilon):
    truth = mixture(seed, d)
    learn, judge = sample(truth, rows, seed + 1), np.clip(sample(truth, 20_000, seed + 2), -10, 10)
    model = GaussianMixture(5, epsilon=epsilon, delta=1e-6, bounds=(-10, 10)).fit(learn)
    best = np.logaddexp.reduce(log_densities(judge, *truth), axis=1).mean()
    return float(best - model.score(judge))


@pytest.mark.parametrize(
    ("d", "rows", "epsilon", "median", "worst"),
    [
        (2, 100_000, 0.1, 0.12, 0.15),
        (2, 100_000, 0.5, 0.01, 0.15),
        (2, 100_000, 1, 0.01, 0.15),
        (2, 10_000, 1, 0.10, None),
        (10, 100_000, 1, 0.05, 0.2),
    ],
)
def test_mixtures_reach_their_accuracy_targets(d, rows, epsilon, median, worst):
    found = [gap(7000 + 10 * place, d, rows, epsilon) for place in range(20)]
    print(f"\nd {d}, N {rows}, epsilon {epsilon}: median {np.median(found):.4f}, worst {max(found):.4f}")
    assert np.median(found) <= median
    assert worst is None or max(found) <= worst


@pytest.mark.parametrize(
    ("draw", "d", "true_components", "components", "inside", "bounds", "median", "worst"),
    [
        (heavy_tailed, 2, 5, 5, 20, 20, 0.1, 0.3),
        (heavy_tailed, 5, 5, 5, 20, 20, 0.1, 0.3),
        (sample, 20, 5, 5, 10, 10, 0.1, 0.3),
        (sample, 2, 5, 5, 10, 1000, 0.1, 0.1),
        (sample, 2, 8, 3, 10, 10, 0.1, 0.15),
    ],
    ids=["heavy tails", "heavy tails, 5 columns", "20 columns", "bounds 100 times too wide", "too few components"],
)
def test_mixtures_are_accurate_where_the_data_or_the_bounds_do_not_fit(
    *, draw, d, true_components, components, inside, bounds, median, worst
):
    found = []
    for place in range(10):
        truth = mixture(7300 + 10 * place, d, true_components)
        learn, judge = (np.clip(draw(truth, 20_000, 7300 + 10 * place + step), -inside, inside) for step in (1, 2))
        delta = 1e-4 if d == 20 else 1e-6
        model = GaussianMixture(components, epsilon=1, delta=delta, bounds=(-bounds, bounds)).fit(learn)
        found.append(non_private(learn, components).score(judge) - model.score(judge))
    print(f"\nmedian {np.median(found):.4f}, worst {max(found):.4f}")
    assert np.median(found) <= median
    assert max(found) <= worst


@pytest.mark.parametrize("name", ["gowalla_nyc_checkins", "gowalla_world_1k_users_checkins"])
def test_more_budget_fits_other_peoples_check_ins_better(name):
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"needs {path.name} in DISCREET_DATA")
    table = pq.read_table(path)
    user, points = table["user"].to_numpy(), np.column_stack([table["lat"].to_numpy(), table["lon"].to_numpy()])
    gaps = {0.1: [], 1: [], 1000: []}
    for fold in range(5):
        people = np.random.default_rng(7500 + fold).permutation(np.unique(user))
        judged = np.isin(user, people[: len(people) // 5])
        best = non_private(points[~judged], 5).score(points[judged])
        for epsilon, found in gaps.items():
            model = GaussianMixture(5, epsilon=epsilon, delta=1e-4, bounds=([-90, -180], [90, 180]))
            found.append(best - model.fit(points[~judged], unit=user[~judged]).score(points[judged]))
    print(f"\n{name}: " + ", ".join(f"epsilon {each} median {np.median(gaps[each]):.3f}" for each in gaps))
    assert np.median(gaps[0.1]) > np.median(gaps[1]) > np.median(gaps[1000])
    assert np.median(gaps[1000]) <= 0.05
    assert max(gaps[1]) <= 3  # 12 where people far from all components have no background


def test_life_science_in_ten_folds():
    path = DATA / "lifesci_dpem.parquet"
    if not path.exists():
        pytest.skip(f"needs {path.name} in DISCREET_DATA")
    table = pq.read_table(path)
    points = np.column_stack([table[f"x{j}"].to_numpy() for j in range(1, 11)])
    folds = np.array_split(np.random.default_rng(7777).permutation(len(points)), 10)
    found = {"mixture": [], "one": []}
    for fold in folds:
        learn, judge = np.delete(points, fold, axis=0), points[fold]
        exact = ExactMixture(3, n_init=3, random_state=0).fit(learn).score(judge)
        for name, components in (("mixture", 3), ("one", 1)):
            model = GaussianMixture(components, epsilon=1, delta=1e-4, bounds=(-15, 15)).fit(learn)
            found[name].append(exact - model.score(judge))
    print(f"\nLife Science: gap {np.mean(found['mixture']):.3f}, one Gaussian {np.mean(found['one']):.3f}")
    assert np.mean(found["mixture"]) <= 0.20
    assert np.mean(found["mixture"]) <= np.mean(found["one"])
