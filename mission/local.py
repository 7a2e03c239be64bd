"""The rows on the local model."""

import numpy as np

import discreet as dc
from mission.rows import rate, record, row

PEOPLE, SURVEYS = 5_000, 400
HIGHEST = 200_000
MEANS = {
    "NoisyMean": {},
    "NoisyMean with Gaussian noise at delta 1e-6": {"delta": "1e-6"},
    "Duchi": {},
    "Piecewise": {},
    "Hybrid": {},
}


@row("B4", "Randomized response: a bit, many categories, many bits")
def b4():
    bit = np.arange(PEOPLE) % 5 == 0
    surveys = {
        "a bit by two coins": (dc.local.RandomizedResponse("1/2"), bit, 0.2),
        "8 values by GRR at epsilon 1": _categories("GRR", 8),
        "32 values by OUE at epsilon 1": _categories("OUE", 32),
    }
    found = {name: _repeated(*each) for name, each in surveys.items()}
    shown = (
        f"{name}: ± {each['margin']:.2%}, within the 95 % margin in {each['inside']}, mean error at most "
        f"{each['off']:.1f} standard errors from 0"
        for name, each in found.items()
    )
    return record(
        "{people:,} people, {surveys} surveys. {shown}",
        people=PEOPLE,
        surveys=SURVEYS,
        found=found,
        shown="; ".join(shown),
    )


def _categories(name, size):
    values = np.arange(PEOPLE) % (size // 2)  # half of the values do not occur
    return getattr(dc.local, name)(size, epsilon=1), values, np.repeat([2 / size, 0], size // 2)


@row("B5", "Numbers in the local model: the mean salary")
def b5():
    paid = np.random.default_rng(5).gamma(4, 15_000, PEOPLE).clip(0, HIGHEST)
    found = {}
    for name, noise in MEANS.items():
        survey = getattr(dc.local, name.split()[0])(0, HIGHEST, epsilon=1, **noise)
        fewer = survey.estimate(survey.perturb(paid[: PEOPLE // 4])).margins
        found[name] = _repeated(survey, paid, paid.mean())
        found[name]["fewer"] = float(fewer) / found[name]["margin"]
    shown = (
        f"{name} ± {each['margin']:,.0f}, within the margin in {each['inside']}, with a quarter of the people "
        f"{each['fewer']:.2f} times the margin"
        for name, each in found.items()
    )
    return record(
        "{people:,} salaries up to {highest:,} at epsilon 1, {surveys} surveys: {shown}",
        people=PEOPLE,
        highest=HIGHEST,
        surveys=SURVEYS,
        found=found,
        shown="; ".join(shown),
    )


def _repeated(survey, values, truth):
    """Repeat a survey; return the margin, its coverage, and the mean error in standard errors.

    Coverage is counted for the first value only, because the values of one survey are not independent.
    """
    made = [survey.estimate(survey.perturb(values)) for _ in range(SURVEYS)]
    errors = np.array([np.atleast_1d(estimates - truth) for estimates, _ in made])
    margins = np.array([np.atleast_1d(margin) for _, margin in made])
    off = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(SURVEYS))
    return {
        "margin": float(margins.mean()),
        "inside": rate((np.abs(errors[:, 0]) <= margins[:, 0]).sum(), SURVEYS),
        "off": float(np.abs(off).max()),
        "values": errors.shape[1],
    }
