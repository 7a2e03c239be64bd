"""The privacy guarantee of a policy in plain sentences, and what it does not cover."""

import math
from fractions import Fraction

from discreet.kernel.loss import Budget
from discreet.policy.declarations import ParentTableUnit, PersonInWindow, RowUnit
from discreet.policy.model import Policy
from discreet.policy.validators import format_number

_EXAMPLE_WINDOWS = 30  # windows or rows of one person, as an example
_EXAMPLE_GROUP_SIZE = 4  # people of one family, as an example


def explain(policy: Policy) -> list[str]:
    """Say who is protected, from what, how far, and who is not.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "analyst_list", "columns": {"analyst_list": {"type": "integer"}}}},
    ... })
    >>> explain(policy)[0]
    'Protected: each person, with all of their rows in visits.'
    """
    return [
        *(_unit_sentence(policy), _neighbour_sentence(policy)),
        *_unique_column_sentences(policy),
        *_budget_sentences(policy),
        *_posterior_sentences(policy),
        *_unprotected_sentences(policy),
    ]


def _unique_column_sentences(policy: Policy) -> list[str]:
    names = [
        f"{table.name}.{column.name}"
        for table in policy.tables.values()
        for column in table.columns.values()
        if column.unique
    ]
    return [f"Never grouped by, because each value is declared unique: {_join_with_and(names)}."] if names else []


def _unit_sentence(policy: Policy) -> str:
    noun, tables = (
        policy.data.protects,
        _join_with_and([name for name, table in policy.tables.items() if not table.public]),
    )
    match policy.unit:
        case RowUnit():
            return f"Protected: each single row of {tables}; not one {noun} with all of their rows."
        case PersonInWindow(_, window, timezone):
            return f"Protected: each {window} of each {noun} (in {timezone}), with all rows of it in {tables}."
    return f"Protected: each {noun}, with all of their rows in {tables}."


def _neighbour_sentence(policy: Policy) -> str:
    noun = policy.data.protects
    match policy.unit:
        case RowUnit():
            difference = "one row"
        case PersonInWindow(_, window, _):
            difference = f"all rows of one {noun} in one {window}"
        case _:
            difference = f"all rows of one {noun}"
    return f"Whatever is asked, the answers are nearly as likely from data that lack {difference}; the budget says how nearly."


def _budget_sentences(policy: Policy) -> list[str]:
    total, analysts = policy.budget, policy.budget_entry.analysts
    total_text = f"Budget: epsilon {format_number(total.epsilon)} in all"
    if total.delta:
        total_text += (
            f", delta {format_number(total.delta)}, of which {format_number(total.discover)} is for discovering groups"
        )
    else:
        total_text += ", no delta; groups cannot be discovered, only declared"
    analyst_list = ", ".join(f"{name} {format_number(analyst.epsilon)}" for name, analyst in analysts.items())
    analyst_sentence = (
        f"Analysts: {analyst_list}; together never more than the total, even if they collude."
        if analyst_list
        else "Nobody but the owner may ask."
    )
    return [f"{total_text}. For all questions and all analysts together, for ever.", analyst_sentence]


def _posterior_sentences(policy: Policy) -> list[str]:
    """Say what somebody who knows everything else can come to believe, of being in the data and of a rare trait."""
    total, unit_phrase = policy.budget, _single_unit_phrase(policy)
    changes = [_belief_change(prior, total.epsilon) for prior in (0.01, 0.5)]
    membership_text = f"somebody who knows all other data and sees all answers can raise their belief that {unit_phrase} is in the data"
    attribute_text = f"their belief in a rare trait of {unit_phrase}, which one in a thousand has, can grow"
    return [
        _with_delta_clause(
            format_number(total.delta) if total.delta else "", f"{membership_text} {', '.join(changes)}."
        ),
        _with_delta_clause(
            _substitution_delta(total),
            f"{attribute_text} {_belief_change(0.001, 2 * total.epsilon)}: a change is one removal and one addition.",
        ),
    ]


def _with_delta_clause(delta: str, sentence: str) -> str:
    delta_clause = f"Except with probability {delta}, in which case nothing is promised: " if delta else ""
    result = delta_clause + sentence
    return result[0].upper() + result[1:]


def _belief_change(prior: float, epsilon: Fraction) -> str:
    return f"from {_percent_rounded_up(prior)} to at most {_percent_rounded_up(max_posterior(prior, epsilon))}"


def _substitution_delta(total: Budget) -> str:
    """Write the delta for a change, which is a removal and an addition: delta·(1 + e^epsilon), rounded up."""
    if not total.delta:
        return ""
    delta = min(1.0, float(total.delta) * (1 + math.exp(min(float(total.epsilon), 700.0))))
    digit = 10.0 ** (math.floor(math.log10(delta)) - 1)
    return format_number(Fraction(math.ceil(delta / digit)) * Fraction(f"{digit:.0e}"))


def max_posterior(prior: float, epsilon: Fraction) -> float:
    """Return the most that a belief can become when its odds grow by e^epsilon.

    >>> round(max_posterior(0.5, Fraction(1)), 4)
    0.7311
    """
    return prior / (prior + (1 - prior) * math.exp(-min(float(epsilon), 700.0)))


def _unprotected_sentences(policy: Policy) -> list[str]:
    sentences, noun, epsilon = [], policy.data.protects, policy.budget.epsilon
    unit = policy.unit
    larger = " and a larger delta" if policy.budget.delta else ""
    if isinstance(unit, RowUnit | PersonInWindow):
        part = "row" if isinstance(unit, RowUnit) else unit.window.value
        group_epsilon = _EXAMPLE_WINDOWS * epsilon
        sentences.append(
            f"Not protected: one {noun} as a whole. Over {_EXAMPLE_WINDOWS} {part}s the bound is epsilon {format_number(group_epsilon)}{larger}"
            f": a belief of {_percent_rounded_up(0.5)} may become {_percent_rounded_up(max_posterior(0.5, group_epsilon))}. What is the same in all "
            f"{part}s of theirs, such as where they live, is the least hidden."
        )
    sentences.append(
        f"Not protected as one: groups. {_EXAMPLE_GROUP_SIZE} {_pluralise(_protected_noun(policy))} together have {_EXAMPLE_GROUP_SIZE} times the "
        f"epsilon{larger}: a belief of {_percent_rounded_up(0.5)} that they are in the data may become "
        f"{_percent_rounded_up(max_posterior(0.5, _EXAMPLE_GROUP_SIZE * epsilon))}."
    )
    if public := [name for name, table in policy.tables.items() if table.public]:
        sentences.append(f"Not protected: anything in {_join_with_and(public)}, declared public.")
    for name, table in policy.tables.items():
        if isinstance(table.unit, ParentTableUnit):
            sentences.append(
                f"Taken on trust: a row of {name} leads, by {table.unit.on}, to rows of {table.unit.table} "
                f"of one {noun} only."
            )
    sentences.append(
        f"Not protected: what is true of many, and is learned with or without any one {noun}; what relatives, friends "
        f"or copies of a row under another key tell about a {noun}; copies of the data that are kept or published "
        "elsewhere; the policy itself, with its names, bounds and listed values."
    )
    return sentences


def _protected_noun(policy: Policy) -> str:
    match policy.unit:
        case RowUnit():
            return "row"
        case PersonInWindow(_, window, _):
            return window.value
    return policy.data.protects


def _pluralise(word: str) -> str:
    """Return the word for several: days, patients, people.

    >>> _pluralise("person"), _pluralise("visitor"), _pluralise("family")
    ('people', 'visitors', 'families')
    """
    if word == "person":
        return "people"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"


def _single_unit_phrase(policy: Policy) -> str:
    match policy.unit:
        case RowUnit():
            return "a certain row"
        case PersonInWindow(_, window, _):
            return f"a certain {policy.data.protects}'s {window}"
    return f"a certain {policy.data.protects}"


def _percent_rounded_up(share: float) -> str:
    """Write a share rounded up, so that a bound stays one."""
    return f"{math.ceil(round(share * 10_000, 6)) / 100:g} %"


def _join_with_and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
