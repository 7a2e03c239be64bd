"""Who was in a model's data, by the odds of its confidence among models that met the person and models that did not."""

from typing import Literal

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, delta_of, shield
from discreet.attacks.listing import Attack
from discreet.attacks.models.difficulty import fit_levels, odds, scaled, seen_by
from discreet.attacks.models.judging import Game, judge
from discreet.attacks.models.people import Labelled, locations, purchases
from discreet.attacks.models.shadows import check_game, flip, make, own_confidence, split
from discreet.attacks.models.targets import Fix, Making, Private, Target
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number

Shadowing = Literal["online", "offline"]


def likelihood_ratio(  # noqa: PLR0913 - each is a setting of the game
    data: Labelled | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    target: Target = "forest",
    fix: Fix = "rounded",
    delta: Number | None = None,
    shadows: int = 8,
    targets: int = 3,
    shadowing: Shadowing = "online",
) -> AttackResult:
    """Tell members of a model's data from equal strangers by the odds of its confidence in each person's own class.

    `data` is a `Labelled` record of people, of whom coins choose members for each of so many `targets`. The attacker
    knows everybody's row and makes `shadows`, models of the same kind: `online` of the same people, so that each of
    them is in about half of the shadows, or `offline` of other people only. How confident such models are about a
    person whom they met, and whom they did not, is learned for levels of difficulty (after Carlini et al. 2022).

    Against "nothing" the service tells all confidences of an exact model, the `target`; against "easy" it tells what
    `fix` leaves of them (rounded to one digit, the highest one, or the label only); behind "curator" is a logistic
    regression that is private at epsilon and `delta` (1e-5 unless given). A function of yours gets the `Labelled`
    members and returns a fitted model with `predict_proba` and `classes_`.

    >>> from discreet import attacks
    >>> result = attacks.likelihood_ratio(random_state=0)
    >>> result.success > 0.95, result.baseline
    (True, 0.5)
    """
    rng = generator(random_state)
    people = purchases(int(rng.integers(2**31)), people=2000) if data is None else data
    check_game(people, targets, shadows)
    protected = shield(defence, epsilon)
    private: Private = "pairs" if target == "pairs" else "logistic"
    making = Making(protected, target, fix, private, delta_of(protected, delta, "1e-5"))
    candidates, others = (people.some(places) for places in _parties(people, shadowing, rng))
    attacked = make(making, candidates, flip(len(candidates), targets, rng), rng)
    own = make(making, others, flip(len(others), shadows, rng), rng)
    told = attacked.tell(candidates.X)
    seen, met = own_confidence(own.tell(others.X), others.y), own.inside
    if shadowing == "offline":  # candidates come first; the attacker's models have met none of them
        seen = np.hstack([own_confidence(own.tell(candidates.X), candidates.y), seen])
        met = np.hstack([np.zeros((shadows, len(candidates)), bool), met])
    scores = attack(seen, met, own_confidence(told, candidates.y))
    details = {"people in each game": len(candidates), "models attacked": targets, "shadow models": shadows}
    return judge("likelihood_ratio", making, Game(candidates, attacked.inside, told), scores, details)


def attack(shadows: np.ndarray, met: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Return the log-odds of membership, targets × people, from the confidence that attacked models have shown.

    `shadows` are the confidences of the attacker's own models, of which `met` says who was in their data; both are
    models × people, and people of whom nothing is shown come last.
    """
    seen, asked = scaled(shadows), shown.shape[1]
    levels = fit_levels(seen, met)
    inside, outside = (seen_by(seen[:, :asked], which[:, :asked]) for which in (met, ~met))
    return np.array([odds(levels, inside, outside, scaled(confidences)) for confidences in shown])


def _parties(people: Labelled, shadowing: Shadowing, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if shadowing == "online":
        return np.arange(len(people)), np.arange(len(people))
    if shadowing == "offline":
        return split(people, rng)
    raise ValueError(f'shadowing must be "online" or "offline", not {shadowing!r}')


ATTACK = Attack(
    run=likelihood_ratio,
    topic="models",
    says="Tells who was in a model's data by comparing its confidence with that of models made with and without them.",
    nothing="all confidences of an overfitted random forest",
    easy="confidences rounded to one digit",
    curator='a private logistic regression; an exact one leaks as well: target="logistic"',
    built_in="2,000 generated customers of ten kinds, with 60 products bought or not",
    files=("location30_mia.parquet",),
    load=locations,
)
