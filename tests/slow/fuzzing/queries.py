"""The queries, each made from a seed and its number alone: half by a grammar, half by changing golden ones."""

from dataclasses import dataclass, field
from functools import cache

from fuzzing.asking import Questions
from fuzzing.dice import Dice
from fuzzing.mutants import golden, mutant

_POLICIES = {"SHOP": 5, "HOSPITAL": 2, "WEBLOG": 2, "METER": 1}
_SLIP = 0.012  # leaves about half of the queries of the grammar with an answer


@dataclass(frozen=True)
class Query:
    """A query, the policy that it is asked under, and what is given beside it."""

    policy: str
    sql: str
    given: dict = field(default_factory=dict)


def made(seed, number):
    """Return one of the queries."""
    dice = Dice(f"{seed}, {number}", _SLIP)
    if number % 5 < 3:
        policy = dice.weighed(_POLICIES)
        sql = Questions(dice, policy).question()
    else:
        policy, sql = mutant(dice, _golden())
    given = {"rows": dice.pick(1, 3, 50), "groups": dice.pick(1, 2, 5)} if dice.often(0.4) else {}
    return Query(policy, sql, given if "epsilon" in sql.lower() else {"epsilon": dice.pick("1/10", 5), **given})


@cache
def _golden():
    return golden()


def neighbour(number):
    """Return the state of the second database that a query is asked of."""
    return ("other", "empty")[number // 2 % 2]
