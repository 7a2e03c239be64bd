"""Whom to trust with the rows: noise added at home, or by a curator; the learner's attack beside the accuracy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet.attacks.evidence import GuessEvidence
from discreet.attacks.validation import column_bounds, float_matrix, random_generator, require
from discreet.kernel.numbers import Number, as_fraction, as_integer, as_positive
from discreet.progress import track

CURATOR, GAUSSIAN, LAPLACE = "a curator", "Gaussian noise at home", "Laplace noise at home"
PRIVATE, AWARE, PLAIN = "private EM", "EM that knows the noise", "plain EM"
_NOISES: Mapping[str, Literal["gaussian", "laplace"]] = {GAUSSIAN: "gaussian", LAPLACE: "laplace"}
Density = Callable[[np.ndarray], np.ndarray]  # rows -> log-densities
_BOX = (-12, 12)  # of the simulated rows
_MIN_ROWS = 40


@dataclass(frozen=True)
class HiddenRowsPoint:
    """One way to learn a mixture at one epsilon: its accuracy, and how often two observers recognise a person's row.

    `score` is the log-likelihood of new rows. The `learner` fits the mixture and sees its input; a `reader` sees only
    the mixture.
    """

    trusted: str
    method: str
    epsilon: float
    delta: float
    score: float
    learner: GuessEvidence
    reader: GuessEvidence

    @property
    def ceiling(self) -> float:
        """The highest success that epsilon allows a reader, and a learner if the noise is added at home."""
        return self.reader.ceiling(self.epsilon, self.delta)


@dataclass(frozen=True)
class HiddenRowsStudy:
    """Mixtures learned from rows with noise at home, and by a curator, with the success of an attack on the rows."""

    points: tuple[HiddenRowsPoint, ...]
    exact_score: float  # of the non-private mixture of exact rows

    def __str__(self) -> str:
        head = f"{'trusted with the rows':24}{'method':26}{'epsilon':>8}{'score':>8}{'learner':>9}{'reader':>8}"
        lines = (
            f"{each.trusted:24}{each.method:26}{each.epsilon:8g}{each.score:8.2f}{each.learner.success:9.1%}"
            f"{each.reader.success:8.1%}"
            for each in self.points
        )
        return "\n".join([head, *lines, f"non-private mixture of exact rows: score {self.exact_score:.2f}"])

    def of(self, trusted: str, method: str) -> list[HiddenRowsPoint]:
        """Return the points of one way, by epsilon."""
        chosen = [each for each in self.points if (each.trusted, each.method) == (trusted, method)]
        return sorted(chosen, key=lambda each: each.epsilon)

    def figure(self) -> Any:
        """Draw accuracy against epsilon on the left, and the learner's success in recognising a row on the right."""
        from discreet.attacks.models.plots import hidden_rows_figure  # noqa: PLC0415 - matplotlib is an extra

        return hidden_rows_figure(self)


@dataclass(frozen=True)
class _RowGame:
    """Training rows, new rows, the people whose rows are attacked, and a decoy for each of them."""

    components: int
    train: np.ndarray
    test: np.ndarray
    own: np.ndarray
    decoys: np.ndarray
    low: np.ndarray
    high: np.ndarray


def hidden_rows(  # noqa: PLR0913 - each is a setting of the game
    data: Any = None,
    *,
    bounds: Any = _BOX,
    components: int = 4,
    epsilons: Sequence[Number] = (1, 4, 16),
    delta: Number = "1e-6",
    random_state: int | None = None,
    targets: int = 1000,
) -> HiddenRowsStudy:
    """Learn a mixture from rows that are noised at home or given to a curator, and attack the rows.

    `data` is an array of rows, a simulated mixture of four by default; half of them are for training. The attacker
    knows two rows and must say which of them a person has: the learner, who sees what the person sent, and a reader,
    who sees only the mixture. All methods protect against the replacement of one row, with Laplace noise by epsilon,
    otherwise by epsilon and `delta`. With noise at home, the mixture is fitted by EM that knows the noise, and by plain
    EM.

    >>> rows = np.random.default_rng(0).normal(size=(400, 2))
    >>> study = hidden_rows(rows, bounds=(-5, 5), components=1, epsilons=[8], random_state=0)
    >>> (curator,), (home,) = (study.of(who, how) for who, how in (("a curator", "private EM"),
    ...                        ("Laplace noise at home", "EM that knows the noise")))
    >>> curator.score > home.score, curator.learner.success, home.learner.success < 1
    (True, 1.0, True)
    """
    rng = random_generator(random_state)
    rows = _simulate_rows(rng) if data is None else float_matrix(data, "data")[0]
    game = _split_rows(rows, bounds, as_integer(components, "components", 1), as_integer(targets, "targets", 1), rng)
    exact_delta = as_positive(delta, "delta")
    jobs = [(as_fraction(each, "epsilons"), trusted) for each in epsilons for trusted in (CURATOR, *_NOISES)]
    points: list[HiddenRowsPoint] = []
    for epsilon, trusted in track(jobs, "fits"):
        points += (
            [_play_with_curator(game, epsilon, exact_delta)]
            if trusted == CURATOR
            else _play_at_home(game, trusted, epsilon, exact_delta, rng)
        )
    return HiddenRowsStudy(tuple(points), float(_plain_mixture(game.train, game.components, rng).score(game.test)))


def _simulate_rows(rng: np.random.Generator) -> np.ndarray:
    centres = np.array([[-7, -6], [6, -5], [-2, 7], [7, 6]])
    return np.concatenate([rng.normal(centre, 1.3, (3000, 2)) for centre in centres])


def _split_rows(rows: np.ndarray, bounds: Any, components: int, targets: int, rng: np.random.Generator) -> _RowGame:
    require(
        rows.ndim == 2 and len(rows) >= _MIN_ROWS and np.isfinite(rows).all(),
        f"data must be a table of finite numbers with at least {_MIN_ROWS} rows",
    )
    low, high = column_bounds(bounds, rows.shape[1])
    mixed = np.clip(rng.permutation(rows), low, high)
    train, test = np.array_split(mixed, 2)
    count = min(targets, len(test))
    return _RowGame(components, train, test, train[:count], test[:count], low, high)


def _play_with_curator(game: _RowGame, epsilon: Fraction, delta: Fraction) -> HiddenRowsPoint:
    """Fit a private mixture to the rows; the curator who fits it sees them."""
    from discreet.learn import GaussianMixture  # noqa: PLC0415 - scikit-learn is an extra

    bounds = (game.low, game.high)
    model = GaussianMixture(game.components, epsilon=epsilon, delta=delta, bounds=bounds, neighbours="replacement")
    learner = _nearer(game.train[: len(game.own)], (game.own, game.decoys), 2)
    return _point(game, (CURATOR, PRIVATE), (epsilon, delta), model.fit(game.train).score_samples, learner)


def _play_at_home(
    game: _RowGame, trusted: str, epsilon: Fraction, delta: Fraction, rng: np.random.Generator
) -> list[HiddenRowsPoint]:
    """Let everybody add noise to their row, and fit mixtures to the noisy rows in both ways."""
    from scipy.special import logsumexp  # noqa: PLC0415 - an extra

    from discreet.learn.mixture import input_noise  # noqa: PLC0415
    from discreet.learn.mixture.density import log_densities  # noqa: PLC0415

    noise = _NOISES[trusted]
    plan = input_noise.plan(game.components, game.low, game.high, epsilon=epsilon, delta=delta, noise=noise)
    ball, noisy = plan.unit_ball, input_noise.noisy_rows(game.train, plan)
    candidates = [(each - ball.centre) / ball.radius for each in (game.own, game.decoys)]
    learner = _nearer(noisy[: len(game.own)], candidates, 1 if noise == "laplace" else 2)
    aware = input_noise.fit_noisy(noisy, plan)
    plain = _plain_mixture(noisy * ball.radius + ball.centre, game.components, rng)
    models = {
        AWARE: lambda rows: logsumexp(log_densities(rows, *aware), axis=1),
        PLAIN: plain.score_samples,
    }
    cost = (epsilon, plan.loss.delta)
    return [_point(game, (trusted, method), cost, model, learner) for method, model in models.items()]


def _nearer(sent: np.ndarray, candidates: Sequence[np.ndarray], norm: int) -> np.ndarray:
    """Return for whom the row that was sent is nearer to their own row than to the decoy: it is the likelier one."""
    own, decoy = (np.linalg.norm(sent - each, norm, axis=1) for each in candidates)
    return np.asarray(own < decoy)


def _point(
    game: _RowGame, way: tuple[str, str], cost: tuple[Fraction, Fraction], density: Density, learner: np.ndarray
) -> HiddenRowsPoint:
    own, decoys, new = (density(each) for each in (game.own, game.decoys, game.test))
    seen, read = (GuessEvidence(int(right.sum()), right.size) for right in (learner, own > decoys))
    epsilon, delta = map(float, cost)
    return HiddenRowsPoint(*way, epsilon, delta, float(new.mean()), seen, read)


def _plain_mixture(rows: np.ndarray, components: int, rng: np.random.Generator) -> Any:
    from sklearn.mixture import GaussianMixture as NonPrivateMixture  # noqa: PLC0415 - an extra
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped] # noqa: PLC0415 - of scikit-learn

    with threadpool_limits(1, "blas"):  # the matrices are too small for threads
        return NonPrivateMixture(components, n_init=3, max_iter=500, random_state=int(rng.integers(2**31))).fit(rows)
