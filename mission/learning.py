"""The rows on private learning: mixtures, DP-EM as in the report and its alternatives, and a recommender."""

import functools
import math

import numpy as np
from sklearn.mixture import GaussianMixture as NonPrivateMixture

from discreet import attacks
from discreet.learn import GaussianMixture, Recommender
from mission.data import arrays
from mission.rows import Runs, rate, rate_of, record, row

DELTA = 1e-6
BOX = (-12, 12)
NEW_YORK = ([40.4774, -74.2589], [40.9176, -73.7004])  # declared bounds: public knowledge about the city
GLOBE = ([-90, -180], [90, 180])
EPSILONS = (0.5, 1, 4)
STARTS, DRAWS = 10, 3
CITY_STARTS = 10
REPORT = {"method": "dp-em", "neighbours": "replacement"}
LOCATED = "located"
AWARE, PLAIN = "EM that knows the noise", "plain EM"
HOME_EPSILONS = (1, 16)
FITS = 50  # of a recommender


@row("E1", "A cluster of one person reveals that person; a private mixture does not")
def e1():
    rng = np.random.default_rng(7)
    crowd = np.concatenate([rng.normal(centre, 1, (600, 2)) for centre in ([-5, -4], [4, -3])])
    person = np.array([8.25, 9.5])
    start = [[-5, -4], [4, -3], [8, 9]]
    fitted = NonPrivateMixture(3, means_init=start, random_state=0).fit(np.concatenate([crowd, [person]]))
    exact = attacks.lone_cluster(random_state=0, plays=4)
    private = attacks.lone_cluster(defence="curator", epsilon=1, random_state=0)
    return record(
        "one person apart from {crowd:,} others, scikit-learn: a mean is {found:.0e} away from the person. {people} "
        "lone people of a simulated city, each in the data or not: non-private parameters have a mean within 50 m of "
        "{located} of the members, and reveal membership (AUC {exact}); private at epsilon 1: {hidden} and {private}",
        crowd=len(crowd),
        found=float(np.linalg.norm(fitted.means_ - person, axis=1).min()),
        people=exact.details["lone people"],
        located=_located(exact),
        hidden=_located(private),
        exact=rate_of(exact),
        private=rate_of(private),
    )


def _located(result):
    people = result.details["lone people"] * result.details["mixtures"] // 2  # members of half of them
    return rate(round(result.details["located"] * people), people)


@functools.cache
def simulated(rows=40_000):
    """Return training and test points of a mixture of four, and the test score of scikit-learn."""
    rng = np.random.default_rng(11)
    centres = np.array([[-7, -6], [6, -5], [-2, 7], [7, 6]])
    points = rng.permutation(np.concatenate([rng.normal(centre, 1.3, (rows // 4, 2)) for centre in centres]))
    train, test = points[::2], points[1::2]
    best = NonPrivateMixture(4, random_state=0, n_init=STARTS).fit(train)
    return train, test, best.score(test)


REFERENCE = (
    "simulated mixture of four, 20,000 training and 20,000 test points; difference of the mean test log-likelihood "
    f"from scikit-learn's best of {STARTS} starts on the same points, median of {DRAWS} fits (range)"
)


@functools.cache
def gap(epsilon, **settings):
    """Return the differences of a private mixture's test log-likelihood from scikit-learn's, in several fits."""
    train, test, best = simulated()
    model = GaussianMixture(4, epsilon=epsilon, delta=DELTA, bounds=BOX, **settings)
    return Runs(tuple(model.fit(train).score(test) - best for _ in range(DRAWS)))


def gaps(**settings):
    """Return the differences for each epsilon."""
    return {epsilon: gap(epsilon, **settings) for epsilon in EPSILONS}


def by_epsilon(found):
    """Format results by epsilon."""
    return ", ".join(f"{each} at epsilon {epsilon:g}" for epsilon, each in found.items())


@row("E6", "DP-EM as in the report: noisy weights, means and covariances, Gaussian or Laplace noise")
def e6():
    gaussian, laplace = gaps(**REPORT), gaps(noise="laplace", **REPORT)
    return record(
        "substitution neighbours, public N; {reference}: GGG {ggg}; LLG {llg}",
        reference=REFERENCE,
        gaussian=gaussian,
        laplace=laplace,
        ggg=by_epsilon(gaussian),
        llg=by_epsilon(laplace),
    )


@row("E7", "Composition compared: linear, advanced, zCDP")
def e7():
    kinds = ("linear", "advanced", "zcdp")
    train = simulated()[0]
    rho = {}
    for kind in kinds:
        model = GaussianMixture(4, epsilon=1, delta=DELTA, bounds=BOX, composition=kind, **REPORT)
        rho[kind] = float(model.fit(train).loss_.rho)  # inversely proportional to the variance of Gaussian noise
    noise = {kind: math.sqrt(rho["zcdp"] / rho[kind]) for kind in kinds}
    found = {kind: gap(1, **REPORT, **({} if kind == "zcdp" else {"composition": kind})) for kind in kinds}
    order = sorted(kinds, key=lambda kind: found[kind].median, reverse=True)
    return record(
        "noise at epsilon 1, relative to zCDP: {shown}; {reference}: {gaps}; best to worst: {order}",
        noise=noise,
        found=found,
        reference=REFERENCE,
        shown=", ".join(f"{kind} {each:.1f}" for kind, each in noise.items()),
        gaps=", ".join(f"{kind} {each}" for kind, each in found.items()),
        order=", ".join(order),
    )


@row("E8", "Data hidden even from the learner: noise added to the rows at home")
def e8():
    study = attacks.hidden_rows(epsilons=HOME_EPSILONS, delta=DELTA, random_state=8)
    homes = [(place, each) for place in ("Gaussian", "Laplace") for each in study.of(f"{place} noise at home", AWARE)]
    plain = [each for place in ("Gaussian", "Laplace") for each in study.of(f"{place} noise at home", PLAIN)]
    curator = study.of("a curator", "private EM")
    won = sum(each.score > other.score for (_, each), other in zip(homes, plain, strict=True))
    found = [rate(each.learner.right, each.learner.plays, each.ceiling) for _, each in homes]
    shown = (
        f"{place} noise at epsilon {each.epsilon:g}: EM that knows the noise {each.score - study.exact_score:.2f}, "
        f"plain EM {other.score - study.exact_score:.2f}, the learner tells a person's row from another in {learner}"
        for (place, each), other, learner in zip(homes, plain, found, strict=True)
    )
    return record(
        "simulated mixture of four, 6,000 training rows; difference of the log-likelihood of new rows from the "
        "non-private mixture. {shown}. With a curator, who sees the rows: {curator_shown}. EM that knows the noise is "
        "better than plain EM in {won} of {trials}",
        homes=homes,
        plain=plain,
        found=found,
        curator=curator,
        exact=study.exact_score,
        won=won,
        trials=len(homes),
        shown="; ".join(shown),
        curator_shown=", ".join(
            f"{each.score - study.exact_score:.2f} at epsilon {each.epsilon:g}" for each in curator
        ),
    )


@functools.cache
def checkins(name="gowalla_nyc_checkins", components=8):
    """Return training check-ins with their users, test check-ins of other people, and scikit-learn's score."""
    user, lat, lon = arrays(name, "user", "lat", "lon")
    people = np.random.default_rng(3).permutation(np.unique(user))
    tested = np.isin(user, people[: len(people) // 5])
    points = np.column_stack([lat, lon])
    best = NonPrivateMixture(components, random_state=0, n_init=CITY_STARTS).fit(points[~tested]).score(points[tested])
    return points[~tested], user[~tested], points[tested], best


@functools.cache
def city_scores(epsilon):
    """Return the log-likelihood of other people's check-ins in New York under user-level private mixtures."""
    train, user, test, _ = checkins()
    model = GaussianMixture(8, epsilon=epsilon, delta=DELTA, bounds=NEW_YORK)
    return Runs(tuple(model.fit(train, unit=user).score(test) for _ in range(DRAWS)))


def world_gaps(epsilon):
    """Return the differences from scikit-learn's score for check-ins anywhere in the world, with the globe's bounds."""
    train, user, test, best = checkins("gowalla_world_1k_users_checkins", 5)
    model = GaussianMixture(5, epsilon=epsilon, delta=1e-4, bounds=GLOBE)
    return Runs(tuple(model.fit(train, unit=user).score(test) - best for _ in range(DRAWS)))


@row("E9", "Clustering of Gowalla check-ins with user-level privacy")
def e9():
    train, user, test, best = checkins()
    scores = {epsilon: city_scores(epsilon) for epsilon in (1, 4)}
    return record(
        "8 components, fitted on {train:,} check-ins of {people:,} people; log-likelihood of the other people's "
        "{test:,} check-ins with user-level privacy: {shown}; non-private scikit-learn on the same "
        "check-ins, best of {starts} starts: {best:.3f}: [map](pictures/checkins.svg)",
        train=len(train),
        people=len(np.unique(user)),
        test=len(test),
        scores=scores,
        best=best,
        starts=CITY_STARTS,
        shown=by_epsilon(scores),
    )


@row("E10", "A private Gaussian mixture that is accurate enough to use")
def e10():
    found, best = gaps(), checkins()[-1]
    city = {epsilon: Runs(tuple(each - best for each in city_scores(epsilon).values)) for epsilon in (1, 4)}
    world = {epsilon: world_gaps(epsilon) for epsilon in (0.5, 1, 4)}
    return record(
        "{reference}, add/remove of one row: {shown}. Check-ins of New York with user-level privacy, difference from "
        "scikit-learn's best of {starts} starts on the same check-ins, tested on other people's: {city_shown}; "
        "check-ins of 1,000 people around the world, K = 5, with the bounds of the globe: {world_shown}",
        reference=REFERENCE,
        found=found,
        city=city,
        world=world,
        starts=CITY_STARTS,
        shown=by_epsilon(found),
        city_shown=by_epsilon(city),
        world_shown=by_epsilon(world),
    )


def rmse(errors):
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean(errors**2)))


def mean_of(values):
    """Return the mean of independent values with its 95 % interval."""
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return float(np.mean(values)), float(np.mean(values)) - half, float(np.mean(values)) + half


@row("C4", "A private recommender at event level (one rating) and at user level (all ratings of a person)")
def c4():
    user, item, rating = arrays("movielens_latest_small_ratings", "userId", "movieId", "rating")
    (movies,) = arrays("movielens_latest_small_movies", "movieId")
    order = np.random.default_rng(5).permutation(len(user))
    test, train = np.split(order, [len(order) // 5])
    fitted, judged = (np.column_stack([user[part], item[part], rating[part]]) for part in (train, test[:3000]))
    constant = rmse(judged[:, 2] - fitted[:, 2].mean())
    own, alone, means = {}, {}, {}
    for level in ("event", "user"):
        model = Recommender(epsilon=1, items=movies, bounds=(0.5, 5), level=level)
        errors = [rmse(model.fit(fitted).predict(judged[:, 1]) - judged[:, 2]) for _ in range(FITS)]
        alone[level], means[level] = Runs(tuple(errors)), mean_of(errors)
        # Each person's own ratings stay with that person.
        fits = [model.fit(fitted).with_ratings(fitted).predict(judged[:, :2]) for _ in range(DRAWS)]
        own[level] = Runs(tuple(rmse(predicted - judged[:, 2]) for predicted in fits))
    return record(
        "MovieLens RMSE at epsilon 1, median of {draws} fits: {shown}. For somebody without ratings, mean of {fits} "
        "fits (95 % interval): {alone_shown}; one constant for all films {constant:.4f}: "
        "[picture](pictures/ratings.svg)",
        draws=DRAWS,
        fits=FITS,
        own=own,
        alone=alone,
        means=means,
        constant=constant,
        shown=", ".join(f"{level} level {own[level]}" for level in own),
        alone_shown=", ".join(
            f"{level} level {mean:.4f} ({low:.4f} to {high:.4f})" for level, (mean, low, high) in means.items()
        ),
    )
