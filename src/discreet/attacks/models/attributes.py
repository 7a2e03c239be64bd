"""Attribute inference: fill in each value of a missing column and test which row the model was trained on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.attack import Attack, AttackResult, DefenceChoice, EventEvidence, Game, Number
from discreet.attacks.data.labelled_data import SENSITIVE, SensitiveAttributeData
from discreet.attacks.models.adapters import EasyFix
from discreet.attacks.models.difficulty import (
    ConfidenceSums,
    DifficultyLevels,
    fit_levels,
    membership_log_odds,
    stabilise_variance,
    sum_confidences,
)
from discreet.attacks.models.membership_inference import (
    TrainedModels,
    accuracies,
    check_people,
    member_labels,
    own_confidence,
    split_in_halves,
    train_models,
)
from discreet.attacks.models.target_models import (
    DELTA,
    MODEL_SETTINGS,
    TargetKind,
    model_name,
    model_releases,
    user_service,
)
from discreet.attacks.result import MODEL
from discreet.attacks.validation import require

_FOLDS = 3


@dataclass(frozen=True)
class Imputer:
    """The average of a forest and a logistic regression that predict the missing value from the rest of the row.

    `out_of_fold` are the cross-validated predictions for the background people, people × values.
    """

    models: tuple[Any, ...]
    out_of_fold: np.ndarray

    def value_probabilities(self, people: SensitiveAttributeData) -> np.ndarray:
        """Return the probability of each value, people × values."""
        return _mean_probabilities(self.models, _known_columns(people), people.values)


def fit_imputer(background: SensitiveAttributeData, seed: int) -> Imputer:
    """Fit the imputer to people about whom everything is known.

    >>> from discreet.attacks.data.labelled_data import simulate_findings
    >>> background = simulate_findings(0, people=200)
    >>> fit_imputer(background, seed=0).value_probabilities(background).shape
    (200, 5)
    """
    known_columns, sensitive = _known_columns(background), background.sensitive_values.astype(np.int64)
    fold = np.empty(len(sensitive), int)
    # Stratified folds: a value that occurs twice is never missing from the training folds.
    fold[np.argsort(sensitive, kind="stable")] = np.arange(len(sensitive)) % _FOLDS
    out_of_fold = np.empty((len(sensitive), background.values))
    for held_out_fold in range(_FOLDS):
        is_held_out = fold == held_out_fold
        out_of_fold[is_held_out] = _mean_probabilities(
            _fit_imputation_models(known_columns[~is_held_out], sensitive[~is_held_out], seed),
            known_columns[is_held_out],
            background.values,
        )
    return Imputer(_fit_imputation_models(known_columns, sensitive, seed), out_of_fold)


def check_sensitive_column(background: SensitiveAttributeData) -> None:
    """Raise if nearly everybody has the same sensitive value."""
    counts = np.sort(np.bincount(background.sensitive_values.astype(int), minlength=2))
    require(
        counts[-2] >= _FOLDS,
        f"data: nearly everybody has the same value in column {background.column}: choose a column whose second "
        f"most frequent value occurs at least {2 * _FOLDS} times",
    )


def _fit_imputation_models(known_columns: np.ndarray, sensitive: np.ndarray, seed: int) -> tuple[Any, ...]:
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50)
    line = make_pipeline(encoder, LogisticRegression(C=0.3, max_iter=500))
    forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=seed)
    return forest.fit(known_columns, sensitive), line.fit(known_columns, sensitive)


def _mean_probabilities(models: tuple[Any, ...], known_columns: np.ndarray, values: int) -> np.ndarray:
    probabilities = np.full((len(known_columns), values), 1e-3)  # no value is impossible
    for model in models:
        probabilities[:, model.classes_] += model.predict_proba(known_columns)
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def _known_columns(data: SensitiveAttributeData) -> np.ndarray:
    return np.column_stack([np.delete(data.people.X, data.column, axis=1), data.people.y])


_ORACLE_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # candidate weights of the membership oracle


def attributes(  # noqa: PLR0913 - each is a setting of the game
    data: SensitiveAttributeData | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    target: TargetKind = "forest",
    fix: EasyFix = "rounded",
    delta: Number | None = None,
    shadows: int = 6,
    targets: int = 3,
) -> AttackResult:
    """Infer a missing value of known people: the value with which the row looks most like a member's.

    `data` is `SensitiveAttributeData` with one column that the attacker does not know. The members of each of the
    `targets` models are drawn at random from one half of the people; the attacker knows everything about the other
    half, trains `shadows` models on it and learns to impute. The imputed probabilities are combined with a membership
    oracle.

    The model under attack returns all confidences of a non-private model of kind `target` ("nothing"), what `fix`
    leaves of them ("easy": rounded to one digit, only the highest, or only the label), or those of a private model at
    epsilon and `delta` ("curator"; delta is 1e-5 by default): of the same kind, or a logistic regression on all pairs
    of values ("pairs") if there is no private model of that kind. A function as defence gets the members as
    `LabelledData` and returns a fitted model with `predict_proba` and `classes_`.

    >>> from discreet import attacks
    >>> result = attacks.attributes(random_state=0)
    >>> result.success > result.baseline + 0.2
    True
    """
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        target=target,
        fix=fix,
        substitute="pairs",  # on pairs, a non-private model leaks
        delta=delta,
        shadows=shadows,
        targets=targets,
    )


def _play(game: Game) -> AttackResult:
    check_people(game.data.people)
    candidates, background = (game.data.subset(half) for half in split_in_halves(game.data.people, game.rng))
    check_sensitive_column(background)
    target_models = train_models(game, candidates.people, game.settings.targets)
    shadow_models = train_models(game, background.people, game.settings.shadows)
    imputer = fit_imputer(background, int(game.rng.integers(2**31)))
    log_odds, weight = infer_log_odds(shadow_models, background, candidates, target_models, imputer)
    is_member, truth = target_models.is_member, candidates.sensitive_values
    imputed = imputer.value_probabilities(candidates)
    is_right = (np.log(imputed) + weight * log_odds).argmax(axis=2) == truth
    is_imputed = np.broadcast_to(imputed.argmax(axis=1) == truth, is_member.shape)[is_member]
    oracle_right = log_odds.argmax(axis=2) == truth
    probability_of_truth = imputed[np.arange(len(truth)), truth.astype(int)]
    confidences = target_models.confidences(candidates.people.X)
    return game.result(
        "of missing values inferred",
        EventEvidence.from_outcomes(is_right[is_member], is_right[~is_member]),
        {
            "inferred by imputation alone": float(is_imputed.mean()),
            "inferred by the membership oracle alone": float(oracle_right[is_member].mean()),
            "weight of the membership oracle": weight,
            "candidate values": candidates.values,
            MODEL: model_name(game),
            **accuracies(candidates.people, is_member, confidences),
        },
        guessing=float(is_imputed.mean()),
        hit=is_right[is_member],
        # People whose value is improbable given the rest of the row count as rare.
        rarity=np.broadcast_to(-probability_of_truth, is_member.shape)[is_member],
        rarity_label="improbable value",
        labels=member_labels(is_member),
    )


def infer_log_odds(
    shadow_models: TrainedModels,
    background: SensitiveAttributeData,
    candidates: SensitiveAttributeData,
    target_models: TrainedModels,
    imputer: Imputer,
) -> tuple[np.ndarray, float]:
    """Return the log-odds of membership of each row with each value, and the weight of the oracle.

    The log-odds are targets × people × values. The weight is chosen by attacking the last shadow model.
    """
    levels = fit_levels(
        stabilise_variance(own_confidence(shadow_models.confidences(background.people.X), background.people.y)),
        shadow_models.is_member,
    )
    # No shadow model was trained on the candidates.
    is_non_member = np.ones((len(shadow_models.is_member), len(candidates.people)), bool)
    rehearsal, rest = shadow_models[-1:], shadow_models[:-1]
    is_member = rehearsal.is_member[0]
    rehearsal_odds = log_odds_by_value(levels, rest, ~rest.is_member, background, rehearsal)[0]
    weight = best_oracle_weight(
        np.log(imputer.out_of_fold)[is_member], rehearsal_odds[is_member], background.sensitive_values[is_member]
    )
    return log_odds_by_value(levels, shadow_models, is_non_member, candidates, target_models), weight


def log_odds_by_value(
    levels: DifficultyLevels,
    shadow_models: TrainedModels,
    is_non_member: np.ndarray,
    people: SensitiveAttributeData,
    target_models: TrainedModels,
) -> np.ndarray:
    """Return the log-odds that each row, with each value filled in, was in the training data of each target model.

    `is_non_member` marks the shadow models that were not trained on each person and serve as a reference.
    """
    rows = np.concatenate([people.rows_with_value(value) for value in range(people.values)])
    y = np.tile(people.people.y, people.values)
    non_member_sums = sum_confidences(
        stabilise_variance(own_confidence(shadow_models.confidences(rows), y)), np.tile(is_non_member, people.values)
    )
    target_scores = stabilise_variance(own_confidence(target_models.confidences(rows), y))
    unseen = ConfidenceSums(*np.zeros((3, len(y))))  # nothing is known about the candidates as members
    log_odds = np.array([membership_log_odds(levels, unseen, non_member_sums, each) for each in target_scores])
    return np.swapaxes(log_odds.reshape(len(target_scores), people.values, -1), 1, 2)


def best_oracle_weight(log_prior: np.ndarray, log_odds: np.ndarray, truth: np.ndarray) -> float:
    """Return the weight of the oracle's log-odds that maximises the likelihood of the truth, 0 if it does not help.

    >>> best_oracle_weight(np.zeros((3, 2)), np.array([[2.0, 0], [2, 0], [0, 2]]), np.array([0, 0, 1])) > 0
    True
    """
    places = np.arange(len(truth)), truth.astype(int)

    def negative_log_likelihood(weight: float) -> float:
        log_posterior = log_prior + weight * log_odds
        return float((np.logaddexp.reduce(log_posterior, axis=1) - log_posterior[places]).sum())

    return min(_ORACLE_WEIGHTS, key=negative_log_likelihood)


ATTACK = Attack(
    function=attributes,
    docs_page="models",
    summary="Infers a missing value of a known person by testing which completed row was in the training data.",
    data=SENSITIVE,
    releases=model_releases(
        (
            "all confidences of a logistic regression on pairs of values, with hardly any penalty",
            "its confidences rounded to one digit",
            "all confidences of a private logistic regression on pairs of values",
        )
    ),
    own=user_service,
    play=_play,
    settings=MODEL_SETTINGS,
    default_delta=DELTA,
    comparison={"target": "pairs"},
)
