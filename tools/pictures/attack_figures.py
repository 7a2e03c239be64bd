"""Figures that put several results of attacks side by side."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.attacks import AttackResult
from discreet.attacks.aggregates.membership import membership_power
from discreet.attacks.aggregates.reconstruct import ERROR_KEY, MIN_ERROR, draw_theory, finish_axes
from discreet.attacks.models.plots import LOCATED_KEY, ImageMosaic, draw_member_rates
from discreet.attacks.plots import DEFENCE_COLOURS, defence_label, draw_epsilon_bound, draw_roc_curve
from discreet.attacks.result import percent
from discreet.plotting import (
    BLUE,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    RED,
    add_legend,
    format_plain_numbers,
    panels,
    set_title,
    style,
)

_SIZE_COLOURS = (RED, ORANGE, BLUE)


def roc_figure(results: Sequence[AttackResult]) -> Any:
    """Draw ROC curves with the bound from the last result's epsilon on the left, and exposure on the right.

    >>> from discreet import attacks
    >>> from discreet.attacks.data.labelled_data import simulate_purchases
    >>> result = attacks.shadow(simulate_purchases(0, people=200), targets=1, shadows=2, random_state=0)
    >>> len(roc_figure([result]).axes)
    2
    """
    if not results or any(result.curve is None or result.exposure is None for result in results):
        raise ValueError("results must be at least one result of an attack with scores and exposure by rarity")
    figure, (left, right) = panels(2)
    with style():
        for result in results:
            draw_roc_curve(left, result, result.curve)
            shares = [share.value for share in result.exposure.deciles] if result.exposure is not None else []
            right.plot(range(1, len(shares) + 1), shares, "o-", color=DEFENCE_COLOURS[result.defence], ms=3)
        draw_epsilon_bound(left, results[-1])
        by = results[0].exposure.rarity_label if results[0].exposure is not None else ""
        right.set(xlabel=textwrap.fill(f"deciles by rarity ({by})", 40), ylabel="TPR at 1 % FPR", ylim=(-0.03, 1.05))
        right.set_xticks(range(1, 11))
        add_legend(figure, [left], columns=3)
        areas = [f"{result.success:.2f} against {defence_label(result)}" for result in results]
        set_title(figure, f"{results[0].attack.capitalize().replace('_', ' ')}: AUC {', '.join(areas)}")
    return figure


def member_rates_figure(results_by_title: Mapping[str, Sequence[Any]]) -> Any:
    """Draw members beside non-members for several models, one panel for each by its title."""
    figure, axes = panels(len(results_by_title), sharey=True)
    with style():
        for axis, (title, results) in zip(axes, results_by_title.items(), strict=True):
            evidence_by_defence = {str(result.against): result.evidence for result in results}
            draw_member_rates(axis, evidence_by_defence=evidence_by_defence, guessing=results[0].baseline)
            gaps = [evidence.members.value - evidence.non_members.value for evidence in evidence_by_defence.values()]
            axis.set_title(f"{title}: gaps up to {100 * max(gaps):.0f} points")
        axes[0].set_ylabel("genotypes inferred (95 % interval)")
        for axis in axes[1:]:
            axis.set_ylabel("")
        add_legend(figure, axes[:1])
        set_title(figure, "A fact about everybody is inferred for non-members as well; only memorisation is a leak")
    return figure


def city_maps_figure(results: Sequence[AttackResult]) -> Any:
    """Draw the maps of several results side by side, each with the share of located people."""
    if any(result.draw is None for result in results):
        raise ValueError("results must be results of lone_cluster: only they have a map")
    figure, axes = panels(min(len(results), 2), -(-len(results) // 2), height=3.4)
    with style():
        for axis, result in zip(axes, results, strict=False):
            if result.draw is not None:
                result.draw(axis)
            crowd, share = result.details["people of the crowd"], percent(result.details[LOCATED_KEY])
            axis.set_title(f"{defence_label(result)}, {crowd:,} people:\n{share} located")
        for axis in axes[len(results) :]:
            axis.set_axis_off()
        add_legend(figure, axes[:1], columns=3)
        shares = [
            f"{percent(each.details[LOCATED_KEY])} with {defence_label(each)}" for each in (results[0], results[-1])
        ]
        set_title(figure, f"Lone people located from the released mixture: {', '.join(shares)}")
    return figure


def mosaic_by_defence(results: Sequence[Any]) -> ImageMosaic:
    """Return the true images above the images recovered against each defence."""
    first = results[0].draw.rows
    real = list(first)[-1]
    recovered = {str(result.against): next(iter(result.draw.rows.values())) for result in results}
    return ImageMosaic({real: first[real], **recovered})


def mosaics_figure(results_by_title: Mapping[str, Sequence[Any]]) -> Any:
    """Draw the images that one attack recovered, one panel per title."""
    figure, axes = panels(1, len(results_by_title), height=2.7)
    with style():
        for each, (title, results) in zip(axes, results_by_title.items(), strict=True):
            mosaic_by_defence(results)(each)
            each.set_title(title)
        set_title(figure, "Images recovered from a classifier: privacy hides the look of a person, not that of a class")
    return figure


def accuracy_by_error_figure(
    by_least_squares: Sequence[AttackResult], by_linear_programme: Sequence[AttackResult], private: Any
) -> Any:
    """Draw runs of `reconstruct` with increasing noise, for both solvers, and runs against the curator.

    `private` maps labels to results. In these units the number of people does not matter, as long as all runs have the
    same number of queries per person.
    """
    figure, (axes,) = panels(height=3.4)
    details = by_least_squares[0].details
    with style():
        draw_theory(axes, (details["questions"], details["people"]), 1.5 * max(map(_error_of, private.values())))
        for results, mark, colour, label in (
            (by_least_squares, "o", RED, "least squares"),
            (by_linear_programme, "x", ORANGE, "linear programme"),
            (list(private.values()), "D", BLUE, "the curator"),
        ):
            errors, shares = [_error_of(each) for each in results], [each.success for each in results]
            axes.plot(errors, shares, mark, color=colour, ms=5, label=label)
        for name, result in private.items():
            above = result.success >= 1 / 2  # keep labels off the guessing line
            alignment = {"ha": "left", "va": "bottom"} if above else {"ha": "center", "va": "top"}
            offset = (6, 5) if above else (0, -6)
            axes.annotate(
                name, (_error_of(result), result.success), offset, textcoords="offset points", fontsize=8, **alignment
            )
        finish_axes(axes, 1 / 2, "guessing")
        add_legend(figure, [axes])
        worst, best = max(by_least_squares, key=lambda each: each.success), max(private.values(), key=_error_of)
        set_title(
            figure,
            f"{details['questions'] // details['people']} random subset sums per person: nearly exact answers "
            f"reconstruct {percent(worst.success)} of the bits, the curator's noisiest {percent(best.success)}",
        )
    return figure


def _error_of(result: AttackResult) -> float:
    return max(float(result.details[ERROR_KEY]), MIN_ERROR)


def membership_power_figure(
    *,
    d: Sequence[int] = (10, 30, 100, 300, 1000, 3000),
    n: Sequence[int] = (20, 60, 200),
    noise: Sequence[float] = (0.03, 0.1, 0.3, 1, 3, 10),
    random_state: int | None = None,
) -> Any:
    """Draw the AUC against d without noise, and against the noise in units of sqrt(d)/n, for each n."""
    figure, (left, right) = panels(2)
    largest_d = max(d)
    with style():
        for size, colour, marker in zip(n, _SIZE_COLOURS, MARKERS, strict=False):
            powers = [membership_power(each, size, random_state=random_state) for each in d]
            left.plot(d, powers, f"{marker}-", color=colour, label=f"n = {size}")
            left.axvline(size, color=colour, ls=":", lw=1)
            noisy_powers = [membership_power(largest_d, size, noise=each, random_state=random_state) for each in noise]
            right.plot(noise, noisy_powers, f"{marker}-", color=colour, label=f"n = {size}")
        right.axvline(1, color=INK, ls="--", lw=1)
        left.set(xscale="log", xlabel="published means (d); dotted: d = n", ylabel="membership inference (AUC)")
        left.set_title("no noise")
        right.set(xscale="log", xlabel="noise, in units of sqrt(d)/n")
        right.set_title(f"d = {largest_d:,}")
        for axes in (left, right):
            axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
            axes.set_ylim(0.42, 1.03)
            format_plain_numbers(axes.xaxis)
        add_legend(figure, [left])
        set_title(figure, "More means than people disclose membership; noise above sqrt(d)/n hides it")
    return figure
