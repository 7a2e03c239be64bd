"""The promise of a policy in plain sentences, with what it does not cover."""

import math
from fractions import Fraction

from discreet.kernel.loss import Budget
from discreet.policy.policy import Policy
from discreet.policy.units import PersonInWindow, Row, Through
from discreet.policy.values import written

_MANY = 30  # windows or rows of one person, as an example
_SEVERAL = 4  # people of one family, as an example


def explain(policy: Policy) -> list[str]:
    """Say who is protected, from what, how far, and who is not.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> explain(policy)[0]
    'Protected: each person, with all of their rows in visits.'
    """
    return [
        *(_who(policy), _neighbours(policy)),
        *_unique(policy),
        *_budget(policy),
        *_belief(policy),
        *_not_covered(policy),
    ]


def _unique(policy: Policy) -> list[str]:
    names = [
        f"{table.name}.{column.name}"
        for table in policy.tables.values()
        for column in table.columns.values()
        if column.unique
    ]
    return [f"Never grouped by, because each value is declared unique: {_and(names)}."] if names else []


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
    """Say what somebody who knows everything else can come to believe, of being in the data and of a rare trait."""
    total, what = policy.budget, _single(policy)
    steps = [_step(prior, total.epsilon) for prior in (0.01, 0.5)]
    words = f"somebody who knows all other data and sees all answers can raise their belief that {what} is in the data"
    rare = f"their belief in a rare trait of {what}, which one in a thousand has, can grow"
    return [
        _sentence(written(total.delta) if total.delta else "", f"{words} {', '.join(steps)}."),
        _sentence(
            _delta_of_two(total), f"{rare} {_step(0.001, 2 * total.epsilon)}: a change is one removal and one addition."
        ),
    ]


def _sentence(delta: str, words: str) -> str:
    coin = f"Except with probability {delta}, in which case nothing is promised: " if delta else ""
    told = coin + words
    return told[0].upper() + told[1:]


def _step(prior: float, epsilon: Fraction) -> str:
    return f"from {_percent(prior)} to at most {_percent(posterior(prior, epsilon))}"


def _delta_of_two(total: Budget) -> str:
    """Write the delta for a change, which is a removal and an addition: delta·(1 + e^epsilon), rounded up."""
    if not total.delta:
        return ""
    delta = min(1.0, float(total.delta) * (1 + math.exp(min(float(total.epsilon), 700.0))))
    digit = 10.0 ** (math.floor(math.log10(delta)) - 1)
    return written(Fraction(math.ceil(delta / digit)) * Fraction(f"{digit:.0e}"))


def posterior(prior: float, epsilon: Fraction) -> float:
    """Return the most that a belief can become when its odds grow by e^epsilon.

    >>> round(posterior(0.5, Fraction(1)), 4)
    0.7311
    """
    return prior / (prior + (1 - prior) * math.exp(-min(float(epsilon), 700.0)))


def _not_covered(policy: Policy) -> list[str]:
    told, word, epsilon = [], policy.data.protects, policy.budget.epsilon
    unit = policy.unit
    larger = " and a larger delta" if policy.budget.delta else ""
    if isinstance(unit, Row | PersonInWindow):
        part = "row" if isinstance(unit, Row) else unit.window.value
        whole = _MANY * epsilon
        told.append(
            f"Not protected: one {word} as a whole. Over {_MANY} {part}s the bound is epsilon {written(whole)}{larger}"
            f": a belief of {_percent(0.5)} may become {_percent(posterior(0.5, whole))}. What is the same in all "
            f"{part}s of theirs, such as where they live, is the least hidden."
        )
    told.append(
        f"Not protected as one: groups. {_SEVERAL} {_plural(_whole(policy))} together have {_SEVERAL} times the "
        f"epsilon{larger}: a belief of {_percent(0.5)} that they are in the data may become "
        f"{_percent(posterior(0.5, _SEVERAL * epsilon))}."
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
        f"Not protected: what is true of many, and is learned with or without any one {word}; what relatives, friends "
        f"or copies of a row under another key tell about a {word}; copies of the data that are kept or published "
        "elsewhere; the policy itself, with its names, bounds and listed values."
    )
    return told


def _whole(policy: Policy) -> str:
    match policy.unit:
        case Row():
            return "row"
        case PersonInWindow(_, window, _):
            return window.value
    return policy.data.protects


def _plural(word: str) -> str:
    """Return the word for several: days, patients, people.

    >>> _plural("person"), _plural("visitor"), _plural("family")
    ('people', 'visitors', 'families')
    """
    if word == "person":
        return "people"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"


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
