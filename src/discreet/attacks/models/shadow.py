"""Who was in a model's data, told by a model that learned it from models of the attacker's own."""

from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, delta_of, shield
from discreet.attacks.listing import Attack
from discreet.attacks.models.judging import Game, judge
from discreet.attacks.models.people import Labelled, locations, purchases
from discreet.attacks.models.shadows import Models, check_game, flip, make, own_confidence, split
from discreet.attacks.models.targets import Fix, Making, Private, Target
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number

Attacker = Literal["network", "forest", "logistic"]
ATTACKERS: tuple[Attacker, ...] = ("network", "forest", "logistic")


def shadow(  # noqa: PLR0913 - each is a setting of the game
    data: Labelled | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    attacker: Attacker = "network",
    target: Target = "forest",
    fix: Fix = "label",
    delta: Number | None = None,
    shadows: int = 4,
    targets: int = 3,
) -> AttackResult:
    """Tell members of a model's data from equal strangers with an oracle that was trained on shadow models.

    `data` is a `Labelled` record of people. Coins choose members for each of so many `targets` from one half of them;
    the other half is whom the attacker knows. Of these people the attacker makes `shadows`, models of the same kind,
    and trains the `attacker` to tell from a model's confidences who was in its data (Shokri et al. 2017).

    Against "nothing" the service tells all confidences of an exact model, the `target`; against "easy" it tells what
    `fix` leaves of them (the label only, one digit, or the highest one); behind "curator" is a logistic regression
    that is private at epsilon and `delta` (1e-5 unless given). A function of yours gets the `Labelled` members and
    returns a fitted model with `predict_proba` and `classes_`.

    >>> from discreet import attacks
    >>> result = attacks.shadow(random_state=0)
    >>> result.success > 0.85, result.baseline
    (True, 0.5)
    """
    if attacker not in ATTACKERS:
        raise ValueError(f"attacker must be one of {', '.join(ATTACKERS)}, not {attacker!r}")
    rng = generator(random_state)
    people = purchases(int(rng.integers(2**31)), people=2000) if data is None else data
    check_game(people, targets, shadows)
    protected = shield(defence, epsilon)
    private: Private = "pairs" if target == "pairs" else "logistic"
    making = Making(protected, target, fix, private, delta_of(protected, delta, "1e-5"))
    candidates, others = (people.some(half) for half in split(people, rng))
    attacked = make(making, candidates, flip(len(candidates), targets, rng), rng)
    own = make(making, others, flip(len(others), shadows, rng), rng)
    oracle = train(attacker, own, others, int(rng.integers(2**31)))
    told = attacked.tell(candidates.X)
    scores = attack(oracle, told, candidates.y)
    details = {"people in each game": len(candidates), "models attacked": targets, "shadow models": shadows}
    return judge("shadow", making, Game(candidates, attacked.inside, told), scores, details)


def attack(oracle: Any, told: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return how strongly the oracle takes each person for a member of each model, from what the models told."""
    return np.array([oracle.predict_proba(features(each, y))[:, 1] for each in told])


def train(attacker: Attacker, shadows: Models, people: Labelled, seed: int) -> Any:
    """Train an oracle of membership on models of which the attacker knows who was in their data."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    oracle = {
        "network": MLPClassifier((32,), alpha=1e-3, max_iter=40, learning_rate_init=0.01, random_state=seed),
        "forest": RandomForestClassifier(100, min_samples_leaf=20, random_state=seed),
        "logistic": LogisticRegression(max_iter=200),
    }[attacker]
    seen = np.concatenate([features(each, people.y) for each in shadows.tell(people.X)])
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # a little unsettled is good enough for an attacker
        return make_pipeline(StandardScaler(), oracle).fit(seen, shadows.inside.ravel())


def features(told: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what an oracle sees of each person: confidence in their own class, all in order of size, and the class.

    >>> features(np.array([[0.2, 0.8]]), np.array([0])).tolist()
    [[0.2, 0.8, 0.2, 1.0, 0.0]]
    """
    return np.column_stack([own_confidence(told, y), np.sort(told, axis=1)[:, ::-1], np.eye(told.shape[1])[y]])


ATTACK = Attack(
    run=shadow,
    topic="models",
    says="Tells who was in a model's data with a network that learned it from models of the attacker's own.",
    nothing="all confidences of an overfitted random forest",
    easy="the predicted label only",
    curator='a private logistic regression; an exact one leaks as well: target="logistic"',
    built_in="2,000 generated customers of ten kinds, with 60 products bought or not",
    files=("location30_mia.parquet",),
    load=locations,
)
