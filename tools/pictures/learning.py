"""The pictures of private learning; some need the data named by DISCREET_DATA.

mixture: log-likelihood of new data against epsilon, for every method and composition.
checkins: check-ins as private ellipses over private counts, at user level.
ratings: the error of a recommender at event level and at user level.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.patheffects import withStroke
from sklearn.mixture import GaussianMixture as ExactMixture

import discreet as dc
from discreet.learn import GaussianMixture, Recommender, draw
from discreet.plotting import BLUE, GREY, INK, ORANGE, add_legend, panels, set_epsilon_ticks, set_title, style

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
EPSILONS = (0.1, 0.5, 1.0, 4.0)
NON_PRIVATE = "non-private (scikit-learn)"
DRAWS = 5  # fits for each point; their median is drawn
SEEDS = (201, 202, 203, 204, 205)  # of splits and simulated data; not used for tuning
METHODS = {
    "whitened": ({}, ORANGE, "-"),
    "DP-EM, zCDP": ({"method": "dp-em", "composition": "zcdp"}, BLUE, "-"),
    "DP-EM, zCDP, Laplace": ({"method": "dp-em", "noise": "laplace"}, BLUE, "-."),
    "DP-EM, advanced": ({"method": "dp-em", "composition": "advanced"}, BLUE, "--"),
    "DP-EM, linear": ({"method": "dp-em", "composition": "linear"}, BLUE, ":"),
    "noise on the input": ({"method": "input-noise"}, GREY, "-"),
}
RATED = (0.1, 0.25, 0.5, 1, 2, 4, 8)
Split = tuple[np.ndarray, np.ndarray]


def simulated(seed: int, rows: int = 20_000, components: int = 5) -> Split:
    """Return training and test points of a mixture in a square."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.8, 0.8, (components, 2))
    spreads = rng.uniform(0.04, 0.15, (components, 2))
    label = rng.choice(components, rows, p=rng.dirichlet(np.full(components, 5.0)))
    points = centres[label] + spreads[label] * rng.standard_normal((rows, 2))
    return points[: rows // 2], points[rows // 2 :]


def life_science(seed: int) -> Split:
    """Return the ten columns of the Life Science data: 90 % for training, 10 % for testing."""
    table = pq.read_table(DATA / "lifesci_dpem.parquet")
    points = np.random.default_rng(seed).permutation(np.column_stack([table[f"x{j}"] for j in range(1, 11)]))
    return points[len(points) // 10 :], points[: len(points) // 10]


def curves(split: Callable[[int], Split], bounds: Any, components: int, delta: float) -> dict[str, list[float]]:
    """Return the median test score of each method at each epsilon, and that of scikit-learn."""
    splits = [split(seed) for seed in SEEDS]
    exact = [ExactMixture(components, n_init=5, random_state=0).fit(learn).score(judge) for learn, judge in splits]
    found = {NON_PRIVATE: [float(np.median(exact))] * len(EPSILONS)}
    for name, (settings, _, _) in METHODS.items():
        found[name] = []
        for epsilon in EPSILONS:
            model = GaussianMixture(
                components, epsilon=epsilon, delta=delta, bounds=bounds, neighbours="replacement", **settings
            )
            scores = [model.fit(learn).score(judge) for learn, judge in splits]
            found[name].append(float(np.median(scores)))
    return found


def mixtures() -> dict[str, dict[str, list[float]]]:
    """Score every method on two data sets."""
    return {
        "simulated, 2 columns, 5 components": curves(simulated, (-1.5, 1.5), 5, 1e-6),
        "Life Science, 10 columns, 3 components": curves(life_science, (-15, 15), 3, 1e-4),
    }


def mixtures_figure(found: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """Draw the score of every method against epsilon, one panel for each data set."""
    figure, every = panels(len(found), height=3.8)
    with style():
        for axes, (title, scores) in zip(every, found.items(), strict=True):
            for name, (_, colour, line) in METHODS.items():
                axes.plot(EPSILONS, scores[name], line, color=colour, label=name, lw=2 if name == "whitened" else 1.2)
            axes.axhline(scores[NON_PRIVATE][0], color=INK, lw=0.8, ls="--", label=NON_PRIVATE)
            set_epsilon_ticks(axes, EPSILONS)
            axes.set_title(title)
        every[0].set_ylabel("log-likelihood of new data, per row")
        add_legend(figure, every[:1], columns=3)
        *_, scores = found.values()
        gaps = (scores[NON_PRIVATE][0] - scores[name][EPSILONS.index(1.0)] for name in ("whitened", "DP-EM, zCDP"))
        set_title(
            figure,
            f"At epsilon 1, whitening comes within {next(gaps):.1f} of the non-private log-likelihood, DP-EM within "
            f"{next(gaps):.1f} ({list(found)[-1].partition(',')[0]})",
        )
    return figure


@dataclass(frozen=True)
class Map:
    """A set of check-ins with its declared bounds, the part that is drawn, and landmarks."""

    name: str
    file: str
    low: tuple[float, float]
    high: tuple[float, float]
    shown: tuple[tuple[float, float], tuple[float, float]]
    places: Mapping[str, tuple[float, float]]  # longitude and latitude

    def table(self) -> pa.Table:
        """Return the check-ins."""
        return pq.read_table(DATA / f"{self.file}.parquet", columns=["user", "lat", "lon"])

    @property
    def aspect(self) -> float:
        """Ratio of the lengths of a degree of latitude and one of longitude in the middle of the map."""
        south, north = self.shown[1]
        return float(1 / np.cos(np.radians((south + north) / 2)))


CITY = Map(
    "New York",
    "gowalla_nyc_checkins",
    (40.4774, -74.2589),
    (40.9176, -73.7004),
    ((-74.1, -73.75), (40.6, 40.9)),
    {
        "Midtown": (-73.984, 40.755),
        "Wall Street": (-74.009, 40.706),
        "Prospect Park": (-73.969, 40.660),
        "LaGuardia": (-73.874, 40.777),
        "JFK": (-73.779, 40.641),
        "the Bronx": (-73.865, 40.845),
    },
)
WORLD = Map(
    "the world",
    "gowalla_world_1k_users_checkins",
    (-90, -180),
    (90, 180),
    ((-135, 45), (0, 72)),
    {
        "San Francisco": (-122.4, 37.8),
        "Austin": (-97.7, 30.3),
        "New York": (-74.0, 40.7),
        "London": (-0.1, 51.5),
        "Stockholm": (18.1, 59.3),
    },
)
Fitted = tuple[tuple[np.ndarray, np.ndarray, np.ndarray], GaussianMixture]


def fitted(maps: Sequence[Map] = (CITY, WORLD), epsilons: Sequence[float] = (0.5, 1, 4)) -> dict[float, list[Fitted]]:
    """Count people in cells and fit ellipses to their check-ins, both privately, for each map at each epsilon."""
    tables = [each.table() for each in maps]
    return {
        epsilon: [_fit(each, table, epsilon) for each, table in zip(maps, tables, strict=True)] for epsilon in epsilons
    }


def _fit(each: Map, table: pa.Table, epsilon: float) -> Fitted:
    points = np.column_stack([table["lat"].to_numpy(), table["lon"].to_numpy()])
    model = GaussianMixture(8, epsilon=epsilon, delta=1e-6, bounds=(each.low, each.high))
    return _cells(each, table, epsilon), _turned(model.fit(points, unit=table["user"].to_numpy()))


def maps_figure(found: Mapping[float, Sequence[Fitted]], maps: Sequence[Map] = (CITY, WORLD)) -> Any:
    """Draw private ellipses over private counts, one row for each epsilon."""
    ratios = [each.aspect * np.ptp(each.shown[1]) / np.ptp(each.shown[0]) for each in maps]
    figure, every = panels(len(maps), len(found), height=2.75, width_ratios=[1 / ratio for ratio in ratios])
    with style():
        for line, (epsilon, fits) in enumerate(found.items()):
            for place, (each, (cells, model)) in enumerate(zip(maps, fits, strict=True)):
                axes = every[line * len(maps) + place]
                axes.pcolormesh(*cells, cmap="Blues", rasterized=True)
                draw(model, axes=axes)
                axes.set(xlim=each.shown[0], ylim=each.shown[1], aspect=each.aspect)
                axes.set_title(f"{each.name}, epsilon {epsilon:g}")
                _name_places(axes, each)
                if line == len(found) - 1:
                    axes.set_xlabel("longitude (degrees)")
                if place == 0:
                    axes.set_ylabel("latitude (degrees)")
        set_title(
            figure,
            "Private check-ins as 8 ellipses over people per cell (blue), with user-level privacy: "
            f"detail grows from epsilon {min(found):g} to {max(found):g}",
        )
    return figure


def _name_places(axes: Any, each: Map) -> None:
    """Mark landmarks."""
    west, east = each.shown[0]
    for name, (lon, lat) in each.places.items():
        left = lon > west + 0.75 * (east - west)  # a name stays inside
        axes.plot(lon, lat, "+", color=INK, ms=5, mew=0.8)
        look = {"ha": "right" if left else "left", "va": "center", "fontsize": 7, "color": INK}
        look["path_effects"] = [withStroke(linewidth=1.5, foreground="white", alpha=0.8)]
        axes.annotate(name, (lon, lat), (-4 if left else 4, 0), textcoords="offset points", **look)


def _turned(model: GaussianMixture) -> GaussianMixture:
    """Put longitude on the horizontal axis, as on maps."""
    model.means_ = model.means_[:, ::-1]
    model.covariances_ = model.covariances_[:, ::-1, ::-1]
    return model


def _cells(each: Map, table: pa.Table, epsilon: float, side: int = 64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return private counts of people per cell from a curator, at the same epsilon again."""
    ends = dict(zip(("lat", "lon"), zip(each.low, each.high, strict=True), strict=True))
    words = [
        f"CAST(FLOOR(({name} - ({low})) / {(high - low) / side!r}) AS INTEGER)" for name, (low, high) in ends.items()
    ]
    sql = f"SELECT {words[0]} AS r, {words[1]} AS c, COUNT(*) AS n FROM data GROUP BY r, c"  # noqa: S608
    budget = dc.Budget(10, "1e-6")
    with dc.open(table, unit="user", budget=budget, columns=ends, groups=5, rows=1, ledger=":memory:") as curator:
        answer = curator.ask(sql, epsilon=epsilon).to_arrow()
    cells = np.zeros((side + 1, side + 1))
    cells[answer["r"].to_numpy(), answer["c"].to_numpy()] = answer["n"].to_numpy()
    edges = [np.linspace(low, high, side + 1) for low, high in reversed(ends.values())]
    return edges[0], edges[1], np.sqrt(np.maximum(cells[:side, :side], 0))


def rating_errors(epsilons: Sequence[float] = RATED) -> tuple[dict[str, list[float]], float]:
    """Return the error of a recommender on new ratings at each epsilon, for both levels, and that of a constant."""
    table = pq.read_table(DATA / "movielens_latest_small_ratings.parquet")
    movies = pq.read_table(DATA / "movielens_latest_small_movies.parquet")["movieId"].to_numpy()
    user, item, rating = (table[name].to_numpy() for name in ("userId", "movieId", "rating"))
    held, rest = np.split(np.random.default_rng(SEEDS[0]).permutation(len(user)), [len(user) // 5])
    learn, judge = (np.column_stack([user[part], item[part], rating[part]]) for part in (rest, held[:5000]))
    found: dict[str, list[float]] = {"event": [], "user": []}
    for level, errors in found.items():
        for epsilon in epsilons:
            model = Recommender(epsilon=epsilon, items=movies, bounds=(0.5, 5), level=level)
            each = [model.fit(learn).with_ratings(learn).predict(judge[:, :2]) - judge[:, 2] for _ in range(DRAWS)]
            errors.append(float(np.sqrt(np.median([np.mean(one**2) for one in each]))))
    return found, float(np.sqrt(np.mean((rating[held] - rating[rest].mean()) ** 2)))


def ratings_figure(found: Mapping[str, Sequence[float]], constant: float, epsilons: Sequence[float] = RATED) -> Any:
    """Draw the error of both levels against epsilon."""
    figure, (axes,) = panels()
    with style():
        axes.plot(epsilons, found["event"], "o-", color=BLUE, label="event level (one rating)")
        axes.plot(epsilons, found["user"], "s-", color=ORANGE, label="user level (all ratings of a person)")
        axes.axhline(constant, color=INK, lw=0.8, ls="--", label="one constant for all films")
        set_epsilon_ticks(axes, epsilons)
        axes.set(ylabel="RMSE of new ratings")
        add_legend(figure, [axes], columns=3)
        one = list(epsilons).index(1)
        set_title(
            figure,
            f"At epsilon 1, the RMSE is {found['event'][one]:.3f} at event level and {found['user'][one]:.3f} at user "
            f"level; that of a constant is {constant:.3f}",
        )
    return figure


PICTURES = {
    "mixture": (mixtures, mixtures_figure),
    "checkins": (fitted, maps_figure),
    "ratings": (rating_errors, lambda found: ratings_figure(*found)),
}
