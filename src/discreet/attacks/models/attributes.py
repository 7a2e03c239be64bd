"""A person's missing value, by trying each and asking an oracle of membership which row the model has met."""

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, delta_of, shield
from discreet.attacks.evidence import Found
from discreet.attacks.listing import Attack
from discreet.attacks.models.difficulty import Levels, fit_levels, none_of, odds, scaled, seen_by
from discreet.attacks.models.imputing import Imputer, check_known, learn_imputer
from discreet.attacks.models.judging import Game, accuracies
from discreet.attacks.models.secrets import Secretive, adults, patients
from discreet.attacks.models.shadows import Models, check_game, flip, make, own_confidence, split
from discreet.attacks.models.targets import Fix, Making, Private, Target
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.audit.counting import Share
from discreet.kernel.exact import Number

_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # how far the oracle of membership may be believed


def attributes(  # noqa: PLR0913 - each is a setting of the game
    data: Secretive | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    target: Target = "forest",
    fix: Fix = "rounded",
    delta: Number | None = None,
    shadows: int = 6,
    targets: int = 3,
) -> AttackResult:
    """Guess a value that is missing of a known person: the one with which the row looks most like a member's.

    `data` is a `Secretive` record of people with one column that the attacker lacks. Coins choose members for each of
    so many `targets` from one half of the people; of the other half the attacker knows everything, makes `shadows`
    and learns to impute. What imputation says beforehand is weighed with what the oracle of membership says.

    Against "nothing" the service tells all confidences of an exact model, the `target`; against "easy" it tells what
    `fix` leaves of them (one digit, the highest one, or the label only). Behind "curator" is a logistic regression of
    all pairs of values, private at epsilon and `delta` (1e-5 unless given); an exact one leaks as well, and is the
    target "pairs". A function of yours gets the `Labelled` members and returns a fitted model with `predict_proba` and
    `classes_`.

    >>> from discreet import attacks
    >>> result = attacks.attributes(random_state=0)
    >>> result.success > result.baseline + 0.2
    True
    """
    rng = generator(random_state)
    secretive = patients(int(rng.integers(2**31))) if data is None else data
    if not isinstance(secretive, Secretive):
        raise TypeError(f"data must be a Secretive record of people and a column, not {type(secretive).__name__}")
    check_game(secretive.people, targets, shadows)
    protected = shield(defence, epsilon)
    private: Private = "logistic" if target == "logistic" else "pairs"  # of pairs, an exact one leaks
    making = Making(protected, target, fix, private, delta_of(protected, delta, "1e-5"))
    wanted, known = (secretive.some(half) for half in split(secretive.people, rng))
    check_known(known)
    attacked = make(making, wanted.people, flip(len(wanted.people), targets, rng), rng)
    own = make(making, known.people, flip(len(known.people), shadows, rng), rng)
    imputer = learn_imputer(known, int(rng.integers(2**31)))
    told = attack(own, known, wanted, attacked, imputer)
    return _judged(making, wanted, attacked, imputer.likely(wanted), told)


def attack(
    own: Models, known: Secretive, wanted: Secretive, attacked: Models, imputer: Imputer
) -> tuple[np.ndarray, float]:
    """Return the log-odds that each row with each value was met by each model, and how far they can be believed.

    The odds are targets × people × values. The attacker rehearses on the last of the shadows.
    """
    levels = fit_levels(scaled(own_confidence(own.tell(known.people.X), known.people.y)), own.inside)
    never = np.ones((len(own.inside), len(wanted.people)), bool)  # the attacker's models met none of these people
    rehearsal, rest = own.last(), own.but_last()
    met = rehearsal.inside[0]
    tried = oracle(levels, rest, ~rest.inside, known, rehearsal)[0]
    worth = trust(np.log(imputer.unseen)[met], tried[met], known.secret[met])
    return oracle(levels, own, never, wanted, attacked), worth


def oracle(levels: Levels, own: Models, unmet: np.ndarray, people: Secretive, asked: Models) -> np.ndarray:
    """Return the log-odds that each row, with each value filled in, was met by each model that is asked.

    `unmet` says which of the attacker's own models never met each person, and so show what is usual.
    """
    rows = np.concatenate([people.supposed(value) for value in range(people.values)])
    y = np.tile(people.people.y, people.values)
    usual = seen_by(scaled(own_confidence(own.tell(rows), y)), np.tile(unmet, people.values))
    shown = scaled(own_confidence(asked.tell(rows), y))
    told = np.array([odds(levels, none_of(usual), usual, each) for each in shown])
    return np.swapaxes(told.reshape(len(shown), people.values, -1), 1, 2)


def trust(before: np.ndarray, told: np.ndarray, truth: np.ndarray) -> float:
    """Return the weight of what the oracle told that makes the truth likeliest, 0 if it is of no use.

    >>> trust(np.zeros((3, 2)), np.array([[2.0, 0], [2, 0], [0, 2]]), np.array([0, 0, 1])) > 0
    True
    """
    places = np.arange(len(truth)), truth.astype(int)

    def doubt(weight: float) -> float:
        weighed = before + weight * told
        highest = weighed.max(axis=1)
        total = np.log(np.exp(weighed - highest[:, None]).sum(axis=1)) + highest
        return float((total - weighed[places]).sum())

    return min(_WEIGHTS, key=doubt)


def _judged(
    making: Making, wanted: Secretive, attacked: Models, before: np.ndarray, told: tuple[np.ndarray, float]
) -> AttackResult:
    inside, truth = attacked.inside, wanted.secret
    odds_of, worth = told
    imputed = before.argmax(axis=1) == truth
    right = (np.log(before) + worth * odds_of).argmax(axis=2) == truth
    alone = odds_of.argmax(axis=2) == truth
    guessing = np.broadcast_to(imputed, inside.shape)[inside]
    # Rare is whose value the rest of the row makes unlikely: whom imputation cannot find.
    rare = np.broadcast_to(-_chance(before, truth), inside.shape)[inside]
    labels = [f"person {place} in model {model}" for model, place in zip(*np.nonzero(inside), strict=True)]
    details = {
        "imputed right, without the model": float(guessing.mean()),
        "by the oracle of membership alone": float(alone[inside].mean()),
        "weight of the oracle beside imputation": worth,
        "values to choose from": wanted.values,
        **accuracies(Game(wanted.people, inside, attacked.tell(wanted.people.X))),
    }
    return AttackResult(
        attack="attributes",
        shield=making.shield,
        metric="of the missing values were found",
        evidence=Found(Share.of(right[inside]), Share.of(right[~inside])),
        guessing=float(guessing.mean()),
        details=details,
        exposure=exposure(rare, right[inside], labels=labels, by="how unlikely their value is"),
        delta=float(making.delta),
    )


def _chance(before: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.asarray(before[np.arange(len(truth)), truth.astype(int)])


ATTACK = Attack(
    run=attributes,
    topic="models",
    says="Finds what is missing of a known person by trying each value and asking which row the model has met.",
    nothing="all confidences of an overfitted random forest",
    easy="confidences rounded to one digit",
    curator='a private logistic regression of pairs of values; an exact one leaks as well: target="pairs"',
    built_in="2,000 generated patients with nine findings of five grades",
    files=("adult.parquet",),
    load=adults,
)
