"""What the attacks by questions have in common: how estimates become guesses, and guesses a result."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.attacks.defences import Shield
from discreet.attacks.evidence import Guesses
from discreet.attacks.queries.people import Targets
from discreet.attacks.rarity import Exposure, exposure

METRIC = "of unique people's secrets were found"


def guess(estimates: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """Guess that a target has the secret if more than half of those do who are like the target; one is, at least.

    >>> guess(np.array([0.9, 0.9, np.nan]), np.array([1, 2, 1])).tolist()
    [True, False, False]
    """
    return np.asarray(np.nan_to_num(estimates, nan=0.0) > alike / 2)


def likeliest(answers: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """Return the count that each target's column of answers speaks for most, if their noise is Laplace's.

    That is the one to which all of them together are nearest, however wide the noise is. A mean tells less: it follows
    the few answers that are far off.

    >>> answers = np.array([[0.9, 2.0], [0.9, 3.0], [-5.0, np.nan]])
    >>> likeliest(answers, np.array([1, 2])).tolist(), float(answers[:, 0].mean().round(2))
    ([1, 2], -1.07)
    """
    best, least = np.zeros(alike.size, np.int64), np.full(alike.size, np.inf)
    for count in range(alike.max() + 1):
        far = np.nansum(np.abs(answers - count), axis=0)
        nearer = (far < least) & (count <= alike)
        best, least = np.where(nearer, count, best), np.where(nearer, far, least)
    return best


def evidence(targets: Targets, hit: np.ndarray) -> Guesses:
    """Count the hits among targets whom nobody is like, as everybody can see in the register.

    A coin decided each secret. The promise is for the removal of a person, and here a secret is replaced: but who does
    not have it is not counted, as if not there, so that epsilon bounds this game, too.

    >>> from discreet.attacks.queries.people import People, pick
    >>> people = People({"age": [30, 31, 31], "ill": [0, 1, 1]}, known=("age",), secret="ill")
    >>> evidence(pick(people, 3, np.random.default_rng(0)), np.array([True, False, False]))
    Guesses(right=1, plays=1, prior=0.5)
    """
    found = hit[targets.alike == 1]
    return Guesses(int(found.sum()), found.size)


def who(targets: Targets, hit: np.ndarray) -> Exposure:
    """Tell success by rarity: the fewer people are like somebody, as far as an outsider knows, the rarer."""
    names = [f"row {row}" for row in targets.rows]
    return exposure(-targets.alike, hit, labels=names, by="how few are alike")


def all_targets(targets: Targets, hit: np.ndarray) -> Mapping[str, Any]:
    """Tell how many targets there are, and how many were found out, also of those whom others are like."""
    return {
        "targets": hit.size,
        "unique targets": int((targets.alike == 1).sum()),
        "found of all targets": float(hit.mean()),
    }


def hits_by_number(steps: Mapping[int, np.ndarray], targets: Targets) -> dict[int, float]:
    """Return the attack's success after so many answers."""
    hits = {number: guess(seen, targets.alike) == targets.coins for number, seen in steps.items()}
    return {number: evidence(targets, hit).success for number, hit in hits.items()}


def draw_steps(axes: Any, *, steps: Mapping[int, float], protected: Shield, asked: str) -> None:
    """Draw success against the number of answers, and what epsilon allows."""
    from discreet.attacks.drawing import COLOURS, share_label  # noqa: PLC0415 - only where a picture is drawn
    from discreet.figures import GREY, INK, plain_numbers  # noqa: PLC0415

    axes.plot(list(steps), list(steps.values()), "o-", color=COLOURS[protected.word], label="the attack")
    axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
    if protected.epsilon is not None:
        ceiling = Guesses(1, 2).ceiling(float(protected.epsilon))
        axes.axhline(ceiling, color=INK, ls="--", lw=1, label=f"epsilon {protected.epsilon} allows")
    axes.set(xscale="log", xlabel=asked, ylim=(0.4, 1.05))
    axes.set_ylabel(share_label(METRIC))
    plain_numbers(axes.xaxis)
