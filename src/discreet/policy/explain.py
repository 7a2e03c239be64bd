"""The promise of a policy in plain sentences, with what it does not cover."""

import math
from fractions import Fraction

from discreet.policy.policy import Policy
from discreet.policy.units import PersonInWindow, Row, Through
from discreet.policy.values import written

_MANY = 30  # windows or rows of one person, as an example


def explain(policy: Policy) -> list[str]:
    """Say who is protected, from what, how far, and who is not.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> explain(policy)[0]
    'Protected: each person, with all of their rows in visits.'
    """
    return [_who(policy), _neighbours(policy), *_budget(policy), *_belief(policy), *_not_covered(policy)]


def _who(policy: Policy) -> str:
    word, tables = policy.data.protects, _and([name for name, table in policy.tables.items() if not table.public])
    match policy.unit:
        case Row():
            return f"Protected: each single row of {tables}; not one {word} with all of their rows."
        case PersonInWindow(_, window, timezone):
            return f"Protected: each {window} of each {word} (in {timezone}), with all rows of it in {tables}."
    return f"Protected: each {word}, with all of their rows in {tables}."


def _neighbours(policy: Policy) -> str:
    word = policy.data.protects
    match policy.unit:
        case Row():
            lacks = "one row"
        case PersonInWindow(_, window, _):
            lacks = f"all rows of one {word} in one {window}"
        case _:
            lacks = f"all rows of one {word}"
    return (
        f"Whatever is asked, the answers are nearly as likely from data that lack {lacks}; the budget says how nearly."
    )


def _budget(policy: Policy) -> list[str]:
    total, analysts = policy.budget, policy.spending.analysts
    limit = f"Budget: epsilon {written(total.epsilon)} in all"
    if total.delta:
        limit += f", delta {written(total.delta)}, of which {written(total.discover)} is for discovering groups"
    else:
        limit += ", no delta; groups cannot be discovered, only declared"
    who = ", ".join(f"{name} {written(analyst.epsilon)}" for name, analyst in analysts.items())
    shares = (
        f"Analysts: {who}; together never more than the total, even if they collude."
        if who
        else "Nobody but the owner may ask."
    )
    return [f"{limit}. For all questions and all analysts together, for ever.", shares]


def _belief(policy: Policy) -> list[str]:
    total, what = policy.budget, _single(policy)
    steps = [f"from {_percent(prior)} to at most {_percent(posterior(prior, total.epsilon))}" for prior in (0.01, 0.5)]
    coin = f"Except with probability {written(total.delta)}, in which case nothing is promised: " if total.delta else ""
    words = f"somebody who knows all other data and sees all answers can raise their belief that {what} is in the data"
    told = f"{coin}{words} {', '.join(steps)}."
    return [told[0].upper() + told[1:]]


def posterior(prior: float, epsilon: Fraction) -> float:
    """Return the most that a belief can become when its odds grow by e^epsilon.

    >>> round(posterior(0.5, Fraction(1)), 4)
    0.7311
    """
    return prior / (prior + (1 - prior) * math.exp(-min(float(epsilon), 700.0)))


def _not_covered(policy: Policy) -> list[str]:
    told, word, epsilon = [], policy.data.protects, policy.budget.epsilon
    unit = policy.unit
    if isinstance(unit, Row | PersonInWindow):
        part = "row" if isinstance(unit, Row) else unit.window.value
        whole, more = _MANY * epsilon, " and a larger delta" if policy.budget.delta else ""
        told.append(
            f"Not protected: one {word} as a whole. Over {_MANY} {part}s the bound is epsilon {written(whole)}{more}: "
            f"a belief of {_percent(0.5)} may become {_percent(posterior(0.5, whole))}."
        )
    if public := [name for name, table in policy.tables.items() if table.public]:
        told.append(f"Not protected: anything in {_and(public)}, declared public.")
    for name, table in policy.tables.items():
        if isinstance(table.unit, Through):
            told.append(
                f"Taken on trust: a row of {name} leads, by {table.unit.on}, to rows of {table.unit.table} "
                f"of one {word} only."
            )
    told.append(
        f"Not protected: what is true of many, and is learned with or without any one {word}; what relatives or "
        "copies of a row under another key tell; the policy itself, with its names, bounds and listed values."
    )
    return told


def _single(policy: Policy) -> str:
    match policy.unit:
        case Row():
            return "a certain row"
        case PersonInWindow(_, window, _):
            return f"a certain {policy.data.protects}'s {window}"
    return f"a certain {policy.data.protects}"


def _percent(share: float) -> str:
    """Write a share rounded up, so that a bound stays one."""
    return f"{math.ceil(round(share * 10_000, 6)) / 100:g} %"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
