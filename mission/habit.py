"""The row on a habit: Mr. T buys bread, and what is protected decides whether it shows."""

import secrets
from contextlib import ExitStack
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.cli.tour.copies import Copies
from discreet.cli.tour.tradeoff import ONE
from mission.rows import row

MR_T, LOAVES, DAYS, PLAYS = 7, 12, 60, 400
FIRST = date(2026, 1, 1)
EPSILON = Fraction(1, 2)
SEEN = 0.95
UNITS = {
    "row": 'unit = "row"',
    "person-day": 'unit = "person"\nwindow = "1 day"\ntime = "day"',
    "person": 'unit = "person"',
}
POLICY = """
[data]
name = "bakery"
ledger = ":memory:"
[budget]
epsilon = 1.0
bounds_report = 0
[tables.bread]
source = "bread"
{unit}
groups = 1
rows = 1
[tables.bread.columns]
person = {{ type = "integer" }}
day = {{ type = "date", between = [2026-01-01, 2026-12-31] }}
"""


@row("C10", "A habit (Mr. T and his bread) under unit row, person-day, person")
def c10():
    after = next(days for days in range(1, DAYS) if _by_law(days) >= SEEN)
    shown = {(unit, days): guessed(unit, days) for unit, days in _cases(after)}
    day, ceiling = "person-day", dc.privacy.posterior_bound(0.5, float(EPSILON))
    return (
        f"{LOAVES} loaves a day, one count at epsilon {EPSILON}, {PLAYS} plays: row: seen on day 1 "
        f"({shown['row', 1]:.1%} right); person-day: {shown[day, 1]:.1%} on day 1, seen after {after} days "
        f"({shown[day, after]:.1%}); person: hidden, {shown['person', DAYS]:.1%} after {DAYS} days (ceiling "
        f"{ceiling:.1%})"
    )


def _cases(after):
    return [("row", 1), ("person-day", 1), ("person-day", after), ("person", DAYS)]


def _by_law(signal):
    """Return how often a guess is right if the habit adds so much to the count."""
    noise = dc.laplace_for(ONE, EPSILON)
    reach = noise.margin(1 - 1e-9)
    right = [has_habit(signal + k, signal) + (not has_habit(k, signal)) for k in range(-reach, reach + 1)]
    return sum(noise.pmf(k) * each / 2 for k, each in zip(range(-reach, reach + 1), right, strict=True))


def has_habit(answer, signal):
    """Guess from a count; a habit adds so much to it."""
    return answer >= (signal + 1) / 2


def guessed(unit, days):
    """Return how often it is guessed from one count whether Mr. T has the habit; a coin decides whether he has."""
    until = FIRST + timedelta(days=days)
    sql = f"SELECT COUNT(*) FROM bread WHERE person = {MR_T} AND day < DATE '{until}'"  # noqa: S608 - our own words
    policy = dc.policy.Policy.parse(POLICY.format(unit=UNITS[unit]))
    signal = {"row": LOAVES * days, "person-day": days, "person": 1}[unit]  # as the policy, which is public, weighs him
    with ExitStack() as opened:
        bakeries = [opened.enter_context(dc.open(policy, data={"bread": _bread(loaves)})) for loaves in (0, LOAVES)]
        asked = [Copies(curator).counts([sql], EPSILON) for curator in bakeries]
        tossed = [secrets.randbelow(2) for _ in range(PLAYS)]
        return sum(has_habit(asked[habit].ask()[0], signal) == bool(habit) for habit in tossed) / PLAYS


def _bread(loaves):
    """Return who bought bread when: many customers now and then, and Mr. T every day."""
    rng = np.random.default_rng(40)
    person = np.concatenate([rng.integers(100, 3000, 5000), np.full(DAYS * loaves, MR_T)])
    day = np.concatenate([rng.integers(0, DAYS, 5000), np.repeat(np.arange(DAYS), loaves)])
    return pa.table({"person": person, "day": np.datetime64(FIRST) + day.astype("timedelta64[D]")})
