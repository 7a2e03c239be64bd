"""Draw the pictures of private learning: `make pictures`, for which some need the data named by DISCREET_DATA.

mixture.svg: how well mixtures explain new data, against epsilon, for every method and composition.
checkins.svg: a city's check-ins as private ellipses, over a private map, with each person's check-ins hidden together.
ratings.svg: the error of a recommender that hides one rating, or a person's whole taste.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.mixture import GaussianMixture as ExactMixture

import discreet as dc
from discreet.cli.tour.pictures import INK, WITH, WITHOUT, panels, saved
from discreet.learn import GaussianMixture, Recommender, draw

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
EPSILONS = (0.1, 0.5, 1.0, 4.0)
DRAWS = 5  # fits for each point; their median is drawn
SEEDS = (201, 202, 203, 204, 205)  # of splits and made-up data; none of them chose anything in the methods
METHODS = {
    "whitened": ({}, WITH, "-"),
    "DP-EM, zCDP": ({"method": "dp-em", "composition": "zcdp"}, WITHOUT, "-"),
    "DP-EM, zCDP, Laplace": ({"method": "dp-em", "noise": "laplace"}, WITHOUT, "-."),
    "DP-EM, advanced": ({"method": "dp-em", "composition": "advanced"}, WITHOUT, "--"),
    "DP-EM, linear": ({"method": "dp-em", "composition": "linear"}, WITHOUT, ":"),
    "noise on the input": ({"method": "input-noise"}, "#999999", "-"),
}
Split = tuple[np.ndarray, np.ndarray]


def made_up(seed: int, rows: int = 20_000, components: int = 5) -> Split:
    """Return points of a mixture in a square, to learn from and to judge by."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.8, 0.8, (components, 2))
    spreads = rng.uniform(0.04, 0.15, (components, 2))
    label = rng.choice(components, rows, p=rng.dirichlet(np.full(components, 5.0)))
    points = centres[label] + spreads[label] * rng.standard_normal((rows, 2))
    return points[: rows // 2], points[rows // 2 :]


def life_science(seed: int) -> Split:
    """Return the ten columns of the Life Science set, split in ten parts: nine to learn from, one to judge by."""
    table = pq.read_table(DATA / "lifesci_dpem.parquet")
    points = np.random.default_rng(seed).permutation(np.column_stack([table[f"x{j}"] for j in range(1, 11)]))
    return points[len(points) // 10 :], points[: len(points) // 10]


def curves(split: Callable[[int], Split], bounds: Any, components: int, delta: float) -> dict[str, list[float]]:
    """Return for each method the median score on new data, at each epsilon; and what scikit-learn reaches."""
    splits = [split(seed) for seed in SEEDS]
    exact = [ExactMixture(components, n_init=5, random_state=0).fit(learn).score(judge) for learn, judge in splits]
    found = {"not private": [float(np.median(exact))] * len(EPSILONS)}
    for name, (settings, _, _) in METHODS.items():
        found[name] = []
        for epsilon in EPSILONS:
            model = GaussianMixture(
                components, epsilon=epsilon, delta=delta, bounds=bounds, neighbours="replacement", **settings
            )
            scores = [model.fit(learn).score(judge) for learn, judge in splits]
            found[name].append(float(np.median(scores)))
        print(f"  {name:22}" + "".join(f"{score:9.3f}" for score in found[name]), flush=True)
    print(f"  {'not private':22}{found['not private'][0]:9.3f}")
    return found


def draw_mixtures(folder: Path, found: dict[str, dict[str, list[float]]]) -> Path:
    """Draw the score of every method against epsilon, one panel for each data set."""
    figure, every = panels(len(found))
    for axes, (title, scores) in zip(np.atleast_1d(every), found.items(), strict=True):
        for name, (_, colour, style) in METHODS.items():
            axes.plot(EPSILONS, scores[name], style, color=colour, label=name, lw=2 if name == "whitened" else 1.2)
        axes.axhline(scores["not private"][0], color=INK, lw=0.8, ls="--", label="not private (scikit-learn)")
        axes.set(xscale="log", xlabel="price (epsilon)")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_title(title, fontsize=10)
    np.atleast_1d(every)[0].set_ylabel("log-likelihood of new data, per row")
    np.atleast_1d(every)[-1].legend(frameon=False, fontsize=7, loc="lower right")
    return saved(figure, folder / "mixture.svg")


@dataclass(frozen=True)
class Map:
    """A set of check-ins, the declared ends of its latitudes and longitudes, and the part that is drawn."""

    file: str
    low: tuple[float, float]
    high: tuple[float, float]
    shown: tuple[tuple[float, float], tuple[float, float]]
    aspect: float

    def table(self) -> pa.Table:
        """Return the check-ins."""
        return pq.read_table(DATA / f"{self.file}.parquet", columns=["user", "lat", "lon"])


CITY = Map("gowalla_nyc_checkins", (40.4774, -74.2589), (40.9176, -73.7004), ((-74.1, -73.8), (40.6, 40.9)), aspect=1.3)
WORLD = Map("gowalla_world_1k_users_checkins", (-90, -180), (90, 180), ((-180, 180), (-60, 80)), aspect=1.2)


def draw_maps(folder: Path, maps: Sequence[Map] = (CITY, WORLD), epsilons: Sequence[float] = (0.5, 1, 4)) -> Path:
    """Draw private ellipses over private maps, at several prices: no point in them is anybody's."""
    figure, every = panels(len(epsilons), len(maps))
    for each, line in zip(maps, every, strict=True):
        table = each.table()
        points = np.column_stack([table["lat"].to_numpy(), table["lon"].to_numpy()])
        for axes, epsilon in zip(line, epsilons, strict=True):
            axes.pcolormesh(*_cells(each, table, epsilon), cmap="Blues", rasterized=True)
            model = GaussianMixture(8, epsilon=epsilon, delta=1e-6, bounds=(each.low, each.high))
            draw(_turned(model.fit(points, unit=table["user"].to_numpy())), axes=axes)
            axes.set(xlim=each.shown[0], ylim=each.shown[1], aspect=each.aspect, xticks=[], yticks=[])
            axes.set_title(f"epsilon {epsilon:g}", fontsize=10)
    return saved(figure, folder / "checkins.svg")


def _turned(model: GaussianMixture) -> GaussianMixture:
    """Put longitude on the horizontal axis, as on maps."""
    model.means_ = model.means_[:, ::-1]
    model.covariances_ = model.covariances_[:, ::-1, ::-1]
    return model


def _cells(each: Map, table: pa.Table, epsilon: float, side: int = 64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a private map: how many people were in each cell, from a curator, for as much again."""
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


def rating_errors(epsilons: Sequence[float]) -> tuple[dict[str, list[float]], float]:
    """Return the error of a recommender on new ratings at each price, for both levels, and that of a constant."""
    table = pq.read_table(DATA / "movielens_latest_small_ratings.parquet")
    movies = pq.read_table(DATA / "movielens_latest_small_movies.parquet")["movieId"].to_numpy()
    user, item, rating = (table[name].to_numpy() for name in ("userId", "movieId", "rating"))
    held, rest = np.split(np.random.default_rng(SEEDS[0]).permutation(len(user)), [len(user) // 5])
    learn, judge = (np.column_stack([user[part], item[part], rating[part]]) for part in (rest, held[:5000]))
    found: dict[str, list[float]] = {"event": [], "user": []}
    for level, errors in found.items():
        for epsilon in epsilons:
            model = Recommender(epsilon=epsilon, items=movies, bounds=(0.5, 5), level=level)
            each = [model.fit(learn).knowing(learn).predict(judge[:, :2]) - judge[:, 2] for _ in range(DRAWS)]
            errors.append(float(np.sqrt(np.median([np.mean(one**2) for one in each]))))
        print(f"  {level} level" + "".join(f"{error:8.3f}" for error in errors), flush=True)
    return found, float(np.sqrt(np.mean((rating[held] - rating[rest].mean()) ** 2)))


def draw_ratings(folder: Path, epsilons: Sequence[float], found: dict[str, list[float]], constant: float) -> Path:
    """Draw the error of both levels against epsilon."""
    figure, axes = panels(1)
    axes.plot(epsilons, found["event"], color=WITHOUT, label="one rating is hidden (event level)")
    axes.plot(epsilons, found["user"], color=WITH, label="a person's whole taste is hidden (user level)")
    axes.axhline(constant, color=INK, lw=0.8, ls="--", label="the same for every film")
    axes.set(xscale="log", xlabel="price (epsilon)", ylabel="error of a new rating (RMSE)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize=8)
    return saved(figure, folder / "ratings.svg")


def main() -> int:
    """Measure, print and draw."""
    if not DATA.exists():
        print(f"the pictures of private learning need the data in DISCREET_DATA ({DATA} is not there)")
        return 0
    print("made-up points, two columns, K = 5, delta 1e-6, at epsilon " + ", ".join(f"{e:g}" for e in EPSILONS))
    two = curves(made_up, (-1.5, 1.5), 5, 1e-6)
    print("Life Science, ten columns, K = 3, delta 1e-4")
    ten = curves(life_science, (-15, 15), 3, 1e-4)
    paths = [draw_mixtures(FOLDER, {"made-up points, two columns": two, "Life Science, ten columns": ten})]
    paths.append(draw_maps(FOLDER))
    epsilons = (0.1, 0.25, 0.5, 1, 2, 4, 8)
    paths.append(draw_ratings(FOLDER, epsilons, *rating_errors(epsilons)))
    for path in paths:
        print(f"drew docs/pictures/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
