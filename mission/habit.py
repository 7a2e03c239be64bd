"""The row on a habit: Mr. T buys bread, and the privacy unit decides whether that is hidden."""

import math
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa

import discreet as dc
from mission.rows import rate, record, row

LOAVES, DAYS, CUSTOMERS = 12, 60, 1500
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
card = {{ type = "integer", between = [0, {last}] }}
day = {{ type = "date", between = [2026-01-01, 2026-12-31] }}
"""


@row("C10", "A habit (Mr. T and his bread) with the units row, person-day and person")
def c10():
    after = next(days for days in range(1, DAYS) if in_theory(days) >= SEEN)
    habits = np.random.default_rng(40).integers(0, 2, CUSTOMERS) == 1
    bread = bought(habits)
    cases = [("row", 1), ("person-day", 1), ("person-day", after), ("person", DAYS)]
    rates = {(unit, days): guessed(bread, habits, unit, days) for unit, days in cases}
    shown = (
        f"unit {unit}, {days} {'day' if days == 1 else 'days'}: {'hidden' if each.holds else 'seen'}, {each}"
        for (unit, days), each in rates.items()
    )
    return record(
        "{customers:,} customers, {buyers:,} of whom buy {loaves} loaves a day; one count for each at epsilon "
        "{epsilon:g}. Correct guesses; the ceiling is that of epsilon for one unit: {shown}",
        customers=CUSTOMERS,
        loaves=LOAVES,
        buyers=int(habits.sum()),
        epsilon=float(EPSILON),
        after=after,
        ceiling=rates["person", DAYS].ceiling,
        rates=rates,
        shown="; ".join(shown),
    )


def in_theory(signal):
    """Return the probability of a correct guess if the habit adds `signal` to the count.

    The curator draws noise on a fine grid and rounds counts, which is close to rounded Laplace noise.
    """
    least = math.ceil((signal + 1) / 2)  # the smallest count from which the habit is guessed
    missed, invented = (math.exp(-float(EPSILON) * far) / 2 for far in (signal + 0.5 - least, least - 0.5))
    return 1 - (missed + invented) / 2


def has_habit(answer, signal):
    """Guess the habit from a count to which it adds `signal`."""
    return answer >= (signal + 1) / 2


def signal_of(unit, days):
    """Return how much the habit adds to a customer's count under the contribution bounds."""
    return {"row": LOAVES * days, "person-day": days, "person": 1}[unit]


def guessed(bread, habits, unit, days):
    """Return the share of customers whose habit is guessed correctly from one noisy count.

    Each customer has their own card, so one query returns the counts of all customers at the cost of one count
    (parallel composition).
    """
    until = FIRST + timedelta(days=days)
    sql = f"SELECT card, COUNT(*) AS n FROM bread WHERE day < DATE '{until}' GROUP BY card ORDER BY card"  # noqa: S608 - our own words
    policy = dc.policy.Policy.parse(POLICY.format(unit=UNITS[unit], last=len(habits) - 1))
    with dc.open(policy, data={"bread": bread}) as curator:
        counts = np.asarray(curator.ask(sql, epsilon=EPSILON).frame["n"])
    right = (has_habit(counts, signal_of(unit, days)) == habits).sum()
    return rate(right, len(habits), dc.privacy.posterior_bound(0.5, float(EPSILON)))


def bought(habits):
    """Return the purchases: customers with the habit buy every day."""
    who = np.repeat(np.flatnonzero(habits), DAYS * LOAVES)
    day = np.tile(np.repeat(np.arange(DAYS), LOAVES), habits.sum())
    return pa.table({"person": who, "card": who, "day": np.datetime64(FIRST) + day.astype("timedelta64[D]")})
