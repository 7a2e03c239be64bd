"""A patient's genotype, guessed from the dose: what a model says about everybody, and what it remembers of its own."""

from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, shield
from discreet.attacks.evidence import Found
from discreet.attacks.listing import Attack
from discreet.attacks.models.doses import Kind, Model, trainer
from discreet.attacks.models.gains import gain
from discreet.attacks.models.patients import FILE, Treated, generated, load
from discreet.attacks.models.sides import draw_sides
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.audit.counting import Share
from discreet.kernel.exact import Number, whole

_FEWEST = 40  # patients: both halves should have some with every genotype
_SPREADS = np.geomspace(1, 60, 40)  # mg a week: how far a dose may be from what a model says


def correlation(  # noqa: PLR0913 - two settings of its own beside what every attack has
    data: Treated | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    model: Kind = "linear",
    splits: int = 5,
) -> AttackResult:
    """Guess patients' genotypes from their dose, by which genotype a model would have recommended that dose for.

    `data` are `Treated`, made up unless given; a coin decides who is in the model's data. Released is a model of the
    dose: least squares or a full tree ("nothing"), doses rounded to 2.5 mg or leaves of five patients ("easy"), private
    least squares or a private table of averages ("curator"), or what a function of yours makes of the `Treated` who
    are in: an object with `predict`, which gets the known fields and the genotype as the last column.

    >>> result = correlation(random_state=0)
    >>> result.success > result.baseline + 0.15, result.implied.low
    (True, 0.0)
    >>> correlation(model="tree", random_state=0).implied.low > 0.5
    True
    """
    protected = shield(defence, epsilon)
    make = trainer(protected, model)
    rng = generator(random_state)
    patients = generated(rng) if data is None else _checked(data)
    prior = np.bincount(patients.genotype, minlength=3) / len(patients)  # as a textbook gives it
    right = [_split(make, patients, prior, rng) for _ in range(whole(splits, "splits", 1))]
    inside, outside, errors = (np.array(each) for each in zip(*right, strict=True))
    rarity = _rarity(patients)
    # A coin for each patient: being in or out is the removal of one row, the others are as likely as before. Every
    # patient is in once and out once in each split. Where two models disagree, one is right where the other is wrong,
    # and the difference varies up to 1.4 times as much as that of different people would. The epsilon implied allows
    # for it: each of the two intervals has half of the error, so that both hold together whatever ties them.
    found = Found(Share.of(inside), Share.of(outside))
    return AttackResult(
        attack="correlation",
        shield=protected,
        metric="of the patients' genotypes were guessed",
        evidence=found,
        guessing=float(prior.max()),
        details=_details(inside, outside, errors, rarity),
        exposure=exposure(
            rarity,
            inside[0],
            labels=[f"patient {place}" for place in range(len(patients))],
            by="rarity of gene and dose",
        ),
        draw=partial(draw_sides, sides={str(protected): found}, guessing=float(prior.max())),
    )


def guess_genotypes(model: Model, known: np.ndarray, dose: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the likeliest genotype of each patient, given fields, dose, and how frequent genotypes are.

    >>> from discreet.attacks.models.doses import Averages
    >>> model = Averages(np.array([[20.0] * 4, [30.0] * 4, [40.0] * 4]), (0, 9))
    >>> guess_genotypes(model, np.full((3, 1), 5.0), np.array([18.0, 29.0, 55.0]), np.full(3, 1 / 3)).tolist()
    [0, 1, 2]
    """
    candidates = [np.column_stack([known, np.full(len(dose), genotype)]) for genotype in range(len(prior))]
    away = np.stack([(dose - np.asarray(model.predict(each))) ** 2 for each in candidates], axis=1)
    with np.errstate(divide="ignore"):
        before = np.log(prior)
    spread = max(_SPREADS, key=lambda each: _likelihood(away, before, each))
    return np.asarray((before - away / (2 * spread**2)).argmax(axis=1))


def _likelihood(away: np.ndarray, before: np.ndarray, spread: float) -> float:
    """Return how likely all doses are, their genotypes unknown, if doses spread so far around the model's."""
    terms = before - away / (2 * spread**2)
    top = terms.max(axis=1)
    return float((top + np.log(np.exp(terms - top[:, np.newaxis]).sum(axis=1)) - np.log(spread)).sum())


def _split(make: Any, patients: Treated, prior: np.ndarray, rng: np.random.Generator) -> Any:
    """Return whose genotype was guessed when in the data, whose when not, and how far doses of those outside were."""
    coins = rng.random(len(patients)) < 0.5
    inside, outside = np.zeros(len(patients), bool), np.zeros(len(patients), bool)
    errors = np.zeros(len(patients))
    for members in (coins, ~coins):
        model = make(patients.at(np.flatnonzero(members)))
        right = guess_genotypes(model, patients.known, patients.dose, prior) == patients.genotype
        inside[members], outside[~members] = right[members], right[~members]
        strangers = patients.at(np.flatnonzero(~members))
        errors[~members] = np.abs(np.asarray(model.predict(strangers.features())) - strangers.dose)
    return inside, outside, errors


def _details(inside: np.ndarray, outside: np.ndarray, errors: np.ndarray, rarity: np.ndarray) -> dict[str, Any]:
    beyond = (inside.astype(float) - outside).mean(axis=0)  # of one patient: what being in the data adds
    rarest = rarity >= np.quantile(rarity, 0.9)
    return {
        "members' genotypes guessed": float(inside.mean()),
        "strangers' genotypes guessed": float(outside.mean()),
        "members beyond strangers": gain(beyond),
        "members beyond strangers, rarest tenth": gain(beyond[rarest]),
        "the dose of strangers is missed by, mg a week": float(errors.mean()),
    }


def _rarity(patients: Treated) -> np.ndarray:
    """Return how surprising a patient's genotype and dose are: a rare genotype, or a dose unusual for it."""
    surprise = np.zeros(len(patients))
    for genotype in np.unique(patients.genotype):
        alike = patients.genotype == genotype
        dose = np.log(np.maximum(patients.dose[alike], 0.1))
        spread = max(float(dose.std()), 1e-9)
        surprise[alike] = ((dose - dose.mean()) / spread) ** 2 / 2 + np.log(spread) - np.log(alike.mean())
    return surprise


def _checked(data: Any) -> Treated:
    if not isinstance(data, Treated):
        raise TypeError(f"data must be Treated(known, genotype, dose, bounds), not {type(data).__name__}")
    whole(len(data), "the number of patients", _FEWEST)
    return data


ATTACK = Attack(
    run=correlation,
    topic="facts",
    says="Guesses a patient's genotype from the patient's dose and a model of doses.",
    nothing="a model of doses, by least squares",
    easy="its recommended doses are rounded to 2.5 mg",
    curator="private least squares",
    built_in="2,000 made-up patients whose genes, bodies and doses go together as real ones do",
    files=(FILE,),
    load=load,
)
