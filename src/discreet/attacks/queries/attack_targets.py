"""The targets of attacks by queries: people whose secret is a coin, inferred from noisy counts about them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import AttackResult, Game, GuessEvidence
from discreet.attacks.data.population import Population
from discreet.attacks.defences import Defence, epsilon_text
from discreet.attacks.validation import require

METRIC = "of unique people's secrets inferred"


@dataclass(frozen=True)
class AttackTargets:
    """People, and the targets among them, whose secrets are replaced by random bits.

    Guessing without the data is therefore right half of the time, whatever else is known about the target.
    """

    people: Population
    rows: np.ndarray
    secret_bits: np.ndarray

    @cached_property
    def known_values(self) -> list[Mapping[str, Any]]:
        """The known values of each target."""
        values: list[Mapping[str, Any]] = (
            self.people.table.select(self.people.known).take(pa.array(self.rows)).to_pylist()
        )
        return values

    @property
    def class_sizes(self) -> np.ndarray:
        """How many people match each target's known values, as a public register shows."""
        return np.asarray(self.people.class_sizes[self.rows])

    @property
    def secret_holders(self) -> np.ndarray:
        """How many of the people who match each target's known values have the secret."""
        holders = np.bincount(self.people.class_index, self.people.table[self.people.secret].to_numpy())
        return np.asarray(holders[self.people.class_index[self.rows]].astype(np.int64))


def draw_targets(people: Population, targets: int, rng: np.random.Generator) -> AttackTargets:
    """Draw at most `targets` people at random, and replace the secret of each by a random bit.

    >>> people = Population({"age": [30, 31], "ill": [0, 1]}, known=("age",), secret="ill")
    >>> draw_targets(people, 10, np.random.default_rng(0)).rows.size
    2
    """
    rows = np.sort(rng.permutation(people.table.num_rows)[:targets])
    require(
        (people.class_sizes[rows] == 1).any(),
        "known: no target is unique in these columns. Name more columns, or draw more targets.",
    )
    secret_bits = rng.integers(0, 2, rows.size)
    secrets = np.array(people.table[people.secret].to_numpy(), np.int64)
    secrets[rows] = secret_bits
    index = people.table.column_names.index(people.secret)
    table = people.table.set_column(index, people.secret, pa.array(secrets))
    return AttackTargets(replace(people, table=table), rows, secret_bits.astype(bool))


def guess_secrets(estimates: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
    """Guess that a target has the secret if more than half of their class does, by the estimated counts.

    >>> guess_secrets(np.array([0.9, 0.9, np.nan]), np.array([1, 2, 1])).tolist()
    [True, False, False]
    """
    return np.asarray(np.nan_to_num(estimates, nan=0.0) > class_sizes / 2)


def secrets_guessed(targets: AttackTargets, estimates: np.ndarray) -> np.ndarray:
    """Return whose secrets are guessed correctly from estimates of the people with the secret in their class."""
    return np.asarray(guess_secrets(estimates, targets.class_sizes) == targets.secret_bits)


def unique_success(targets: AttackTargets, estimates: np.ndarray) -> float:
    """Return the share of unique targets whose secrets are guessed correctly from these estimates."""
    return guess_evidence(targets, secrets_guessed(targets, estimates)).success


def most_likely_counts(answers: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
    """Return the maximum-likelihood count for each target's column of answers under Laplace noise.

    It minimises the sum of absolute deviations, whatever the scale of the noise, and unlike the mean it is robust to
    outliers.

    >>> answers = np.array([[0.9, 2.0], [0.9, 3.0], [-5.0, np.nan]])
    >>> most_likely_counts(answers, np.array([1, 2])).tolist(), float(answers[:, 0].mean().round(2))
    ([1, 2], -1.07)
    """
    best, smallest = np.zeros(class_sizes.size, np.int64), np.full(class_sizes.size, np.inf)
    for count in range(class_sizes.max() + 1):
        distance = np.nansum(np.abs(answers - count), axis=0)
        nearer = (distance < smallest) & (count <= class_sizes)
        best, smallest = np.where(nearer, count, best), np.where(nearer, distance, smallest)
    return best


def guess_evidence(targets: AttackTargets, is_right: np.ndarray) -> GuessEvidence:
    """Return the correct guesses about unique targets, who are known from a public register.

    The guarantee is for adding or removing a person, and here a secret is substituted. A person without the secret is
    not counted, as if they were removed, so epsilon also bounds this game.

    >>> people = Population({"age": [30, 31, 31], "ill": [0, 1, 1]}, known=("age",), secret="ill")
    >>> guess_evidence(draw_targets(people, 3, np.random.default_rng(0)), np.array([True, False, False]))
    GuessEvidence(right=1, plays=1, prior=0.5)
    """
    unique_right = is_right[targets.class_sizes == 1]
    return GuessEvidence(int(unique_right.sum()), unique_right.size)


def target_result(game: Game, targets: AttackTargets, is_right: np.ndarray, details: Mapping[str, Any]) -> AttackResult:
    """Return what guesses about the targets show; the fewer people share the known values, the rarer the target."""
    counts = {
        "targets": is_right.size,
        "unique targets": int((targets.class_sizes == 1).sum()),
        "inferred among all targets": float(is_right.mean()),
    }
    return game.result(
        METRIC,
        guess_evidence(targets, is_right),
        {**counts, **details},
        hit=is_right,
        rarity=-targets.class_sizes,
        rarity_label="small classes",
        labels=[f"row {row}" for row in targets.rows],
    )


def result_by_answer_count(
    game: Game, targets: AttackTargets, estimates: Mapping[int, np.ndarray], details: Mapping[str, Any], xlabel: str
) -> AttackResult:
    """Return what the last of these estimates shows; the details and the picture compare it with fewer answers."""
    success = {number: unique_success(targets, each) for number, each in estimates.items()}
    draw = partial(draw_success_by_answer_count, success=success, defence=game.defence, xlabel=xlabel)
    return replace(
        target_result(game, targets, secrets_guessed(targets, estimates[max(estimates)]), details), draw=draw
    )


def draw_success_by_answer_count(axes: Any, *, success: Mapping[int, float], defence: Defence, xlabel: str) -> None:
    """Draw success against the number of answers, and the bound from epsilon."""
    from discreet.attacks.plots import DEFENCE_COLOURS, share_label  # noqa: PLC0415 - only for figures
    from discreet.plotting import GREY, INK, format_plain_numbers  # noqa: PLC0415

    axes.plot(list(success), list(success.values()), "o-", color=DEFENCE_COLOURS[defence.kind], label="the attack")
    axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
    if defence.epsilon is not None:
        ceiling = GuessEvidence(1, 2).ceiling(float(defence.epsilon))
        axes.axhline(ceiling, color=INK, ls="--", lw=1, label=f"{epsilon_text(defence.epsilon)} allows")
    axes.set(xscale="log", xlabel=xlabel, ylim=(0.4, 1.05))
    axes.set_ylabel(share_label(METRIC))
    format_plain_numbers(axes.xaxis)
