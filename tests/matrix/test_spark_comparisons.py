"""A value that is NULL because of 64-bit overflow stays NULL in comparisons, which optimizers tend to rewrite."""

from itertools import product

import pytest
import spark_under
import strategies
from compare import computed, expected
from servers import spark as servers
from strategies import INT, VISITS

from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, UnitAggregate
from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.kernel.relation import PerUnit, Where
from discreet.kernel.totals import Count

ENDS = [0, 5, -5, (1 << 63) - 1, -(1 << 63), 1 << 40, None]
N = Column("n", INT)


@pytest.fixture(scope="session")
def engine(sail):
    with servers.session(sail.url) as session:
        yield spark_under.under(spark_under.prepare(session))


def counted(relation, column, op, number):
    sides = (column, Constant(number, INT))
    condition = Call(op, sides)
    return Question(Where(relation, condition), (), PublicGroups(()), ContributionBounds(1, 100), (Count(),))


@pytest.mark.long
def test_overflow_is_null_in_a_comparison_too(engine):
    empty = dict.fromkeys(VISITS.shape.schema)
    visits = [empty | {"user": user, "n": n} for user, n in enumerate([*ENDS, *ENDS])]
    visits += [empty | {"user": user, "n": (1 << 63) - 1} for user in range(3)]
    tables = {name: [] for name in strategies.SCHEMAS} | {"visits": visits}
    engine.load(tables)
    size, less = Call("abs", (N,)), Call("negate", (N,))
    summed = PerUnit(VISITS, (), (("total", UnitAggregate(AggregateFunction.SUM, N)),))
    for op, number in product(("less", "at_most", "equal"), (5, (1 << 63) - 1, -(1 << 63))):
        for turn in (False, True):
            for relation, value in ((VISITS, size), (VISITS, less), (summed, Column("total", INT))):
                question = counted(relation, value, op, number)
                if turn:
                    flipped = Call(op, (Constant(number, INT), value))
                    question = Question(
                        Where(relation, flipped), (), PublicGroups(()), ContributionBounds(1, 100), (Count(),)
                    )
                assert computed(engine, question) == expected(tables, question), (op, number, turn, value)
