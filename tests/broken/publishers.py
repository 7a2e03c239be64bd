"""Publications of a tiny data set, sound and wrong on purpose; each claims EPSILON for the removal of one unit.

A release is two tables that add up, and synthetic rows; it is returned as the numbers that anybody can see.
"""

from functools import cache

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.kernel import model_release
from discreet.kernel.event import EventState, Receipt
from discreet.kernel.reservation import reserve
from discreet.publish import publication
from discreet.publish.family_tables import publish_family
from discreet.publish.parts import FamilyPart, SyntheticPart
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import plan_parts
from discreet.publish.synthesis.row_model import synthesise
from discreet.publish.synthetic import KernelMeasurer

EPSILON = 1
POLICY = """
[data]
name = "tiny"
ledger = ":memory:"
[budget]
{budget}
[tables.tiny]
source = "tiny.parquet"
unit = "person"
groups = 1
rows = 2
[tables.tiny.columns]
person = {{ type = "integer" }}
side = {{ type = "text", in = ["left", "right"] }}
size = {{ type = "integer", between = [0, 2] }}
"""
PLAN = f"""
[release]
name = "Tiny"
epsilon = {EPSILON}
[tables.everybody]
sql = "SELECT COUNT(*) AS n FROM tiny"
[tables.sides]
sql = "SELECT side, COUNT(*) AS n FROM tiny GROUP BY side"
[synthetic.rows]
table = "tiny"
columns = ["side", "size"]
"""


class Rows:
    """Rows of side and size with the numbers of their units, as the kernel reads them."""

    def __init__(self, rows):
        table = np.array(sorted(rows), float).reshape(-1, 3)
        self.units = np.unique(table[:, 0], return_inverse=True)[1]
        self.values, self.grouped = table[:, 1:], True

    def of(self, columns, bounds):
        """Return a source of some of the columns."""
        source = Rows([])
        source.values, source.units = self.values[:, columns], self.units
        source.low, source.high = np.array(bounds, float).reshape(-1, 2).T
        return source

    def batches(self, size):
        yield self.values, self.units


@cache
def parts(budget="epsilon = 100"):
    """Return the two parts of the plan: the family and the synthetic rows."""
    empty = pa.table(
        {"person": pa.array([], pa.int64()), "side": pa.array([], pa.string()), "size": pa.array([], pa.int64())}
    )
    with dc.open(dc.policy.Policy.parse(POLICY.format(budget=budget)), data={"tiny": empty}) as curator:
        family, rows = plan_parts(curator, PublicationPlan.parse(PLAN))
    assert isinstance(family, FamilyPart)
    assert isinstance(rows, SyntheticPart)
    return family, rows


class Sound:
    """What a release contains: the counts, and how often each synthetic row occurs."""

    def __init__(self, budget="epsilon = 100"):
        self.family, self.synthesis = parts(budget)

    def told(self, rows):
        """Return all numbers of a release."""
        return np.concatenate([self.tables(Rows(rows)), self.synthetic(Rows(rows))])

    def noisy(self, rows):
        part = self.family
        return part.family.release(rows.of([0], part.rows.bounds), reserve(part.noises, cost=part.cost))

    def tables(self, rows):
        found = publish_family(self.family.family, self.noisy(rows))
        return np.concatenate([table.table.column("n").to_numpy() for table in found])

    def codes(self, rows):
        part = self.synthesis
        source = rows.of([0, 1], part.rows.bounds)
        measurer = KernelMeasurer(part.releases, source, reserve(part.noises, cost=part.cost))
        return synthesise(part.releases.sizes, measurer, part.releases.settings).sample(self.count(rows))

    def count(self, rows):
        """None: the noisy number."""

    def synthetic(self, rows):
        codes = self.codes(rows)
        return np.bincount(codes[:, 0] * 3 + codes[:, 1], minlength=6).astype(float)


class KeepsTheExactTotal(Sound):
    """Counts are scaled so that they add up to the number of rows, which everybody knows anyway."""

    def tables(self, rows):
        counts = super().tables(rows)
        return counts * len(rows.values) / (counts[0] or 1)


class ExactNumberOfRows(Sound):
    """As many synthetic rows as there are real ones."""

    def count(self, rows):
        return len(rows.values)


class SolvesWithAnExactTable(Sound):
    """Least squares of noisy counts and an exact total."""

    def noisy(self, rows):
        noisy = super().noisy(rows)
        side = noisy[-1]
        return [*noisy[:-1], side + (len(rows.values) - side.sum()) / side.size]


def without_clipping(monkeypatch):
    """Count all rows of everybody, because few people have many."""
    monkeypatch.setattr(model_release, "_is_in_ball", lambda norms, **_: np.ones(len(norms), bool))


def draws_what_is_missing(curator, part, recorded, receipts):
    """Release a part that was charged, but has no result: it was paid for."""
    if part.name in recorded and recorded[part.name][0].state is not EventState.RELEASED:
        return part.release(curator, Receipt(recorded[part.name][0].id))
    return RESULT_OF(curator, part, recorded, receipts)


RESULT_OF = publication._result_of


def half_as_sensitive(distance):
    """Return a distance with noise for half of the radius: each row counts in one cell only, and is halved for it."""

    def half(*args, reservation, **named):
        noise = reservation.take_noise()
        return distance(*args, reservation=reserve([type(noise)(noise.scale / 2)]), **named)

    return half
