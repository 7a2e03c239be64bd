"""Infer a patient's genotype from the dose: facts about the population, and what a model memorises of its members."""

from fractions import Fraction
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    EventEvidence,
    Game,
    choice,
    whole,
)
from discreet.attacks.data.dose_cohort import COHORT, DoseCohort
from discreet.attacks.models.adapters import Predictor, checked_predictor
from discreet.attacks.models.plots import draw_member_rates
from discreet.attacks.private_answers import ask_curator
from discreet.attacks.result import format_gain
from discreet.kernel.numbers import Number, as_integer

_MIN_PATIENTS = 40  # both halves should have patients with every genotype
_CANDIDATE_DEVIATIONS = np.geomspace(1, 60, 40)  # standard deviations of doses around the prediction, in mg per week
DoseModelKind = Literal["linear", "tree"]
_ROUNDING_STEP = 2.5  # mg: doses are rounded to halves of a tablet
_MIN_LEAF_SIZE = 5  # patients
_BAND_COUNT = 4  # equal-width bands of the first field, for the curator's table of averages
_AVERAGES_SQL = "SELECT genotype, band, AVG(dose) AS dose FROM data GROUP BY genotype, band"


def correlation(  # noqa: PLR0913 - the common arguments and two settings
    data: DoseCohort | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    model: DoseModelKind = "linear",
    splits: int = 5,
) -> AttackResult:
    """Infer patients' genotypes from their dose: the genotype for which the model predicts that dose best.

    `data` is a `DoseCohort`, simulated by default; a coin decides who is in the training data. The release is a model
    of the dose: linear regression or a full tree ("nothing"), doses rounded to 2.5 mg or leaves of five patients
    ("easy"), or private linear regression or a private table of averages ("curator"). A function as defence gets the
    members' `DoseCohort` and returns an object with `predict`, which takes the known fields and the genotype last.

    >>> result = correlation(random_state=0)
    >>> result.success > result.baseline + 0.15, result.implied.low
    (True, 0.0)
    >>> correlation(model="tree", random_state=0).implied.low > 0.5
    True
    """
    return ATTACK.run(data, defence, epsilon, random_state, model=model, splits=splits)


def _play(game: Game) -> AttackResult:
    patients = game.data
    as_integer(len(patients), "the number of patients", _MIN_PATIENTS)
    prior = np.bincount(patients.genotype, minlength=3) / len(patients)  # public knowledge
    outcomes = [_attack_one_split(game, prior) for _ in range(game.settings.splits)]
    members_right, non_members_right, errors = (np.array(each) for each in zip(*outcomes, strict=True))
    rarity, guessing = _rarity(patients), float(prior.max())
    # With independent draws, membership is the addition or removal of one row. Every patient is a member once and a
    # non-member once in each split. Where the two models disagree, one is right and the other wrong, so the difference
    # varies up to 1.4 times as much as between different people. The implied epsilon accounts for it: each of the two
    # intervals has half of the error probability, so both hold together under any dependence.
    evidence = EventEvidence.from_outcomes(members_right, non_members_right)
    return game.result(
        "of patients' genotypes inferred",
        evidence,
        _details(members_right, non_members_right, errors, rarity),
        guessing=guessing,
        hit=members_right[0],
        rarity=rarity,
        rarity_label="rare genotype and dose",
        labels=[f"patient {index}" for index in range(len(patients))],
        draw=partial(draw_member_rates, evidence_by_defence={str(game.defence): evidence}, guessing=guessing),
    )


def guess_genotypes(model: Predictor, known: np.ndarray, dose: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the most likely genotype of each patient, given the known fields, the dose, and the prior.

    >>> from discreet.attacks.models.correlation import average_doses
    >>> model = average_doses(np.array([[20.0] * 4, [30.0] * 4, [40.0] * 4]), (0, 9))
    >>> guess_genotypes(model, np.full((3, 1), 5.0), np.array([18.0, 29.0, 55.0]), np.full(3, 1 / 3)).tolist()
    [0, 1, 2]
    """
    candidates = [np.column_stack([known, np.full(len(dose), genotype)]) for genotype in range(len(prior))]
    squared_errors = np.stack([(dose - np.asarray(model.predict(each))) ** 2 for each in candidates], axis=1)
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    deviation = max(_CANDIDATE_DEVIATIONS, key=lambda each: _log_likelihood(squared_errors, log_prior, each))
    return np.asarray((log_prior - squared_errors / (2 * deviation**2)).argmax(axis=1))


def _log_likelihood(squared_errors: np.ndarray, log_prior: np.ndarray, deviation: float) -> float:
    """Return the log-likelihood of all doses, summed over genotypes, for this standard deviation."""
    terms = log_prior - squared_errors / (2 * deviation**2)
    return float((np.logaddexp.reduce(terms, axis=1) - np.log(deviation)).sum())


def _attack_one_split(game: Game, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return whose genotype was inferred as a member and as a non-member, and the error of non-members' doses."""
    patients = game.data
    coins = game.rng.random(len(patients)) < 0.5
    members_right, non_members_right = np.zeros((2, len(patients)), bool)
    errors = np.zeros(len(patients))
    for members in (coins, ~coins):
        model = game.release(patients.subset(np.flatnonzero(members)))
        is_right = guess_genotypes(model, patients.known, patients.dose, prior) == patients.genotype
        members_right[members], non_members_right[~members] = is_right[members], is_right[~members]
        non_members = patients.subset(np.flatnonzero(~members))
        errors[~members] = np.abs(np.asarray(model.predict(non_members.features())) - non_members.dose)
    return members_right, non_members_right, errors


def _details(
    members_right: np.ndarray, non_members_right: np.ndarray, errors: np.ndarray, rarity: np.ndarray
) -> dict[str, Any]:
    gains = (members_right.astype(float) - non_members_right).mean(axis=0)  # per patient: the effect of membership
    is_rarest = rarity >= np.quantile(rarity, 0.9)
    return {
        "members' genotypes inferred": float(members_right.mean()),
        "non-members' genotypes inferred": float(non_members_right.mean()),
        "members minus non-members": format_gain(gains),
        "members minus non-members, rarest tenth": format_gain(gains[is_rarest]),
        "mean error of non-members' doses, mg per week": float(errors.mean()),
    }


def _rarity(patients: DoseCohort) -> np.ndarray:
    """Return the rarity of each patient: a rare genotype, or a dose that is unusual for it."""
    surprise = np.zeros(len(patients))
    for genotype in np.unique(patients.genotype):
        same_genotype = patients.genotype == genotype
        dose = np.log(np.maximum(patients.dose[same_genotype], 0.1))
        deviation = max(float(dose.std()), 1e-9)
        surprise[same_genotype] = (
            ((dose - dose.mean()) / deviation) ** 2 / 2 + np.log(deviation) - np.log(same_genotype.mean())
        )
    return surprise


def rounded(model: Predictor, step: float) -> Predictor:
    """Return a model whose recommended doses are rounded."""
    return Predictor(lambda X: np.rint(np.asarray(model.predict(X)) / step) * step)


def average_doses(cells: np.ndarray, first_field_bounds: tuple[float, float]) -> Predictor:
    """Return a model that reads a table of average doses by genotype and band of the first field."""
    return Predictor(lambda X: cells[X[:, -1].astype(int), band_indices(X[:, 0], first_field_bounds)])


def band_indices(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Return the band of each value, clamped to the bounds.

    >>> band_indices(np.array([-1.0, 0, 3, 9]), (0, 9)).tolist()
    [0, 0, 1, 3]
    """
    low, high = bounds
    return np.clip((values - low) / (high - low) * _BAND_COUNT, 0, _BAND_COUNT - 1).astype(int)


def _fit_linear(patients: DoseCohort) -> Predictor:
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415 - an extra

    return Predictor(LinearRegression().fit(patients.features(), patients.dose).predict)


def _fit_tree(patients: DoseCohort, min_leaf_size: int) -> Predictor:
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - an extra

    # scikit-learn breaks ties between equal columns at random: fix the seed, so that the same patients give one tree.
    tree = DecisionTreeRegressor(min_samples_leaf=min_leaf_size, random_state=0)
    return Predictor(tree.fit(patients.features(), patients.dose).predict)


def _fit_easily(game: Game, patients: DoseCohort) -> Predictor:
    if game.settings.model == "tree":
        return _fit_tree(patients, _MIN_LEAF_SIZE)
    return rounded(_fit_linear(patients), _ROUNDING_STEP)


def _fit_privately(game: Game, patients: DoseCohort) -> Predictor:
    if game.settings.model == "tree":
        return private_averages(patients, game.epsilon)
    low, high = patients.bounds
    model = dc.learn.LinearRegression(
        epsilon=game.epsilon, bounds=([*low, 0], [*high, 2]), target_bounds=patients.dose_bounds
    )
    return Predictor(model.fit(patients.features(), patients.dose).predict)


def private_averages(patients: DoseCohort, epsilon: Fraction) -> Predictor:
    """Return the private counterpart of a tree: private averages in cells that do not depend on the data."""
    bounds = float(patients.bounds[0][0]), float(patients.bounds[1][0])
    band, dose = band_indices(patients.known[:, 0], bounds), np.clip(patients.dose, *patients.dose_bounds)
    columns = {"genotype": [0, 1, 2], "band": list(range(_BAND_COUNT)), "dose": patients.dose_bounds}
    frame = pa.table({"genotype": patients.genotype, "band": band, "dose": dose})
    cells = np.full((3, _BAND_COUNT), sum(patients.dose_bounds) / 2)
    for row in ask_curator(frame, _AVERAGES_SQL, epsilon, columns).to_pylist():
        if row["dose"] is not None:
            cells[row["genotype"], row["band"]] = row["dose"]
    return average_doses(cells, bounds)


def user_dose_model(game: Game, patients: DoseCohort) -> Predictor:
    """Return the model that the user's defence fits."""
    return checked_predictor(game.ask_user(patients))


RELEASES = {
    NOTHING: DefenceRelease(
        "a linear regression of the dose",
        lambda game, patients: _fit_tree(patients, 1) if game.settings.model == "tree" else _fit_linear(patients),
    ),
    EASY: DefenceRelease("the same model, with predictions rounded to 2.5 mg", _fit_easily),
    CURATOR: DefenceRelease("a private linear regression", _fit_privately),
}


ATTACK = Attack(
    function=correlation,
    docs_page="facts",
    summary="Infers a patient's genotype from their dose and a model of doses.",
    data=COHORT,
    releases=RELEASES,
    own=user_dose_model,
    play=_play,
    settings={"model": choice(get_args(DoseModelKind)), "splits": whole(1)},
)
