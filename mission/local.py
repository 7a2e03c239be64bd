"""The rows on answers that are perturbed at home."""

import numpy as np

import discreet as dc
from mission.rows import row

PEOPLE, SURVEYS = 100_000, 100
HIGHEST = 200_000
MEANS = ("NoisyMean", "Duchi", "Piecewise", "Hybrid")


@row("B4", "Randomized response: a bit, many categories, many bits")
def b4():
    coins = dc.local.RandomizedResponse("1/2")
    share, margin = coins.estimate(coins.perturb(np.arange(PEOPLE) % 5 == 0))
    said = [f"a bit by two coins: {share:.1%} ± {margin:.1%} (true 20.0%)"]
    for name, size in (("GRR", 8), ("OUE", 128)):
        survey = getattr(dc.local, name)(size, epsilon=1)
        values = np.arange(PEOPLE) % (size // 2)  # half of the values have nobody
        errors, margins = _surveyed(survey, values, np.repeat([2 / size, 0], size // 2))
        off = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(SURVEYS))
        inside = (np.abs(errors) <= margins).mean()
        said.append(
            f"{size} values by {name} at epsilon 1: ± {margins.mean():.2%}, mean error of {SURVEYS} surveys within "
            f"{np.abs(off).max():.1f} deviations of 0, {inside:.1%} inside the margin"
        )
    return "; ".join(said)


@row("B5", "Numbers perturbed at home: the mean salary")
def b5():
    paid = np.random.default_rng(5).gamma(4, 15_000, PEOPLE).clip(0, HIGHEST)
    said = []
    for name in MEANS:
        survey = getattr(dc.local, name)(0, HIGHEST, epsilon=1)
        errors, margins = _surveyed(survey, paid, paid.mean())
        fewer = survey.estimate(survey.perturb(paid[: PEOPLE // 4])).margins
        inside = (np.abs(errors) <= margins).mean()
        said.append(
            f"{name} ± {margins.mean():,.0f}, inside in {inside:.0%}, of a quarter of the people "
            f"{fewer / margins.mean():.2f} times that"
        )
    return f"{PEOPLE:,} salaries up to {HIGHEST:,} at epsilon 1, {SURVEYS} surveys: {'; '.join(said)}"


def _surveyed(survey, values, truth):
    """Ask the same people again and again; return errors and margins."""
    found = [survey.estimate(survey.perturb(values)) for _ in range(SURVEYS)]
    return np.array([each.estimates - truth for each in found]), np.array([each.margins for each in found])
