"""How exact a column will be, before anything is asked: by its noise alone, or by counts that are public already."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from discreet.kernel.errors import Refused
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import Discover, Question, Sum, Units, highest
from discreet.kernel.relation import MOST
from discreet.kernel.release import Key
from discreet.pricing.combining import columns_of
from discreet.pricing.draws import Known
from discreet.sql import after
from discreet.sql.columns import origins, sources
from discreet.sql.estimates import CONFIDENCE, Statistic
from discreet.sql.estimates import Kind as Shown
from discreet.sql.intervals import Noise
from discreet.sql.plan import (
    Averaged,
    Counted,
    Measure,
    Part,
    Plan,
    Spread,
    Summed,
    assemble,
    centre,
    parts_of,
    total_of,
)
from discreet.sql.price import Kind
from discreet.sql.rows.prune import pruned

Recall = Callable[[tuple[Part, ...]], tuple[Known, ...]]
_BITS = 200
_ANY = Laplace(1)  # where no noise is looked at


@dataclass(frozen=True, eq=False)
class Foreseen:
    """A column of an answer, and rows of totals as they may come out: its margin is the widest of theirs."""

    name: str
    number: int
    part: Part
    measure: Measure
    kind: Kind
    rows: np.ndarray

    @property
    def places(self) -> tuple[int, ...]:
        """The totals that it is made of."""
        return parts_of(self.measure.recipe)

    def margin(self, noises: Mapping[int, Noise]) -> float:
        """Return the 95 % margin with these noises; infinite if nothing could be told."""
        every = tuple(noises.get(place, next(iter(noises.values()))) for place in range(self.rows.shape[1]))
        alone = replace(self.part, measures=(self.measure,))
        keys: list[Key] = [tuple(None for _ in self.part.keys)] * len(self.rows)
        _, found = assemble(alone, keys, self.rows, every)
        widest = float(np.max(found[self.measure.name].margins, initial=0.0))
        return math.inf if math.isnan(widest) else widest

    def reaches(self, noises: Mapping[int, Noise], wanted: Fraction) -> bool:
        """Tell whether the margin is at most this; of one total by a single look at the exact tail of its noise."""
        if len(self.places) > 1:
            return self.margin(noises) <= float(wanted)
        steps, noise = self.steps(wanted), noises[self.places[0]]
        return steps >= 0 and 2 * noise.tail_bounds(steps + 1, _BITS)[1] <= (1 - CONFIDENCE) * (1 << _BITS)

    def steps(self, wanted: Fraction) -> int:
        """Return how many steps of its one total a margin has room for, below 0 if rounding alone takes more."""
        (place,) = self.places
        step = _step(self.part, place)
        recipe = self.measure.recipe
        whole = isinstance(recipe, Counted) or (isinstance(recipe, Summed) and recipe.kind is Shown.WHOLE)
        rounding = Fraction(step.denominator // 2, step.denominator) if whole else Fraction(0)
        return math.floor((wanted - rounding) / step)


def foresee(plan: Plan, known: tuple[Known, ...], name: str, recall: Recall) -> Foreseen:
    """Return what can be told of a column beforehand, or refuse."""
    origin = origins(plan)[name]
    if not isinstance(origin, after.Carried):
        raise Refused(
            f"margin: {name!r} is computed from noisy numbers, and how exact it is depends on them. Give margins for "
            "the aggregates that it is made of, as columns of their own; or give epsilon."
        )
    ((part, measure),) = sources(plan, origin)
    number = plan.parts.index(part)
    match measure.recipe:
        case Counted() | Summed():
            rows = np.zeros((1, len(part.question.totals)), np.int64)
        case Averaged() | Spread():
            rows = _likely(name, part, measure, known[number], recall)
        case _:
            raise Refused(
                f"margin: how exact {name!r} is depends on how the values lie, and cannot be told beforehand. Give "
                "epsilon; explain() tells what can be known of it."
            )
    return Foreseen(name, number, part, measure, known[number].kind, rows)


def _likely(name: str, part: Part, measure: Measure, known: Known, recall: Recall) -> np.ndarray:
    """Return totals of groups as they may come out, none of them better than what is public lets expect."""
    recipe, places = measure.recipe, parts_of(measure.recipe)
    assert isinstance(recipe, Averaged | Spread)
    counting = f"COUNT{measure.label[measure.label.find('(') :]}"
    if known.shares and all(known.having(place) for place in places):
        return _as_before(name, known, recipe)
    count = _count(part, recipe.count, known, recall)
    if count is None:
        raise Refused(
            f"margin: how exact {name!r} is depends on the number of values in each group, which is not known. Ask "
            f"{counting} for the same groups first: its answer, however rough, turns a margin into a price."
        )
    _check_size(name, count)
    return np.array([_row(part, recipe, count, *each) for each in _cases(part, recipe)], np.int64)


def by_size(part: Part, measure: Measure, noises: Sequence[Noise]) -> tuple[float, float]:
    """Return what the margin of a mean or a variance is, times the number of values in a group, where that is large.

    It is least where the values lie in the middle of their range, and greatest where they lie at its ends.
    """
    recipe, asked = measure.recipe, part.question
    assert isinstance(recipe, Averaged | Spread)
    largest = max(highest(asked.totals[place]) << asked.bits(asked.totals[place]) for place in parts_of(recipe))
    count = float(max(1, min(asked.relation.shape.rows, MOST // (8 * largest))))  # what 64 bits hold
    if isinstance(recipe, Spread):  # a deviation follows from its variance
        measure = replace(measure, recipe=replace(recipe, statistic=Statistic.VAR_POP))
    rows = np.array([_row(part, recipe, count, *each) for each in _cases(part, recipe)], np.int64)
    found = [
        Foreseen("", 0, part, measure, type(noises[0]), rows[place : place + 1]).margin(dict(enumerate(noises)))
        for place in range(len(rows))
    ]
    return count * min(found), count * max(found)


def _cases(part: Part, recipe: Averaged | Spread) -> list[tuple[float, float]]:
    """Return where the values of a group may lie: means, from the centre, and variances."""
    low, high = (float(end - _centre(part, recipe.total)) for end in (recipe.low, recipe.high))
    return list(product((low, 0.0, high), (0.0, (high - low) ** 2 / 4)))


def _as_before(name: str, known: Known, recipe: Averaged | Spread) -> np.ndarray:
    """Return the totals that were released already, scaled down to the lower end of the count's margin."""
    columns = {place: columns_of(known, place)[0] for place in parts_of(recipe)}
    values, noise = columns[recipe.count]
    _check_size(name, float(values.min() - noise.margin(CONFIDENCE)))
    less = (values - noise.margin(CONFIDENCE)) / values
    rows = np.zeros((len(values), len(known.topics)), np.int64)
    for place, (column, _) in columns.items():
        rows[:, place] = np.rint(column * less)
    return rows


def _check_size(name: str, count: float) -> None:
    if not count > 0:
        raise Refused(
            f"margin: a group has too few values, as far as is known, for {name!r} to be exact at any price. Count "
            "them more exactly, or group more coarsely; or give epsilon."
        )


def _row(part: Part, recipe: Averaged | Spread, count: float, offset: float, variance: float) -> list[int]:
    """Return the totals of a group of so many values with this mean, from the centre, and variance."""
    worth = {recipe.count: count, recipe.total: count * offset}
    if isinstance(recipe, Spread):
        squares = part.question.totals[recipe.squares]
        assert isinstance(squares, Sum)
        worth[recipe.squares] = count * (variance + offset**2 - float(squares.shift * squares.grid.step**2))
    return [round(worth.get(place, 0.0) / float(_step(part, place))) for place in range(len(part.question.totals))]


def _count(part: Part, place: int, known: Known, recall: Recall) -> float | None:
    """Return how many values the smallest group has at least, at 95 %, if that is public."""
    if not (known.mixes and known.having(place)):
        part, place = _counting(part, place)
        (known,) = recall((part,))
    if not known.having(place):
        return None
    found = [(values, noise.margin(CONFIDENCE)) for values, noise in columns_of(known, place) if len(values)]
    least = min((int(values.min()) - margin for values, margin in found), default=0)
    return float(least * _step(part, place))


def _counting(part: Part, place: int) -> tuple[Part, int]:
    """Return a part that asks for one count alone, as a question for it is read, and its place there."""
    asked = part.question
    first = (Units(),) if isinstance(asked.groups, Discover) else ()
    totals = (*first, asked.totals[place])
    question = pruned(Question(asked.relation, asked.by, asked.groups, asked.limit, totals))
    return replace(part, question=question, measures=(), weights=(), report=Fraction(0)), len(first)


def _step(part: Part, place: int) -> Fraction:
    zeros = np.zeros((1, len(part.question.totals)), np.int64)
    return total_of(part, place, zeros, (_ANY,) * len(part.question.totals)).step


def _centre(part: Part, place: int) -> Fraction:
    total = part.question.totals[place]
    return centre(total) if isinstance(total, Sum) else Fraction(0)
