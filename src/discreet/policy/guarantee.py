"""The privacy guarantee of a policy in plain sentences, and what it does not cover."""

import math
from fractions import Fraction
from typing import NamedTuple

from discreet.kernel.loss import Budget
from discreet.policy.declarations import ColumnUnit, ParentTableUnit, PersonInWindow, RowUnit, WindowUnit
from discreet.policy.model import Policy
from discreet.policy.validators import format_number

_EXAMPLE_WINDOWS = 30  # windows or rows of one person
_EXAMPLE_GROUP_SIZE = 4  # a family
_MAX_USEFUL_DELTA = Fraction(1, 10)  # a bound that fails more often says nothing


def explain(policy: Policy) -> list[str]:
    """Return the privacy guarantee as sentences: who is protected, from what, how strongly, and what is not covered.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> explain(policy)[0]
    'Protected: each person, with all of their rows in visits.'
    """
    return [
        *(unit_sentence(policy), neighbour_sentence(policy)),
        *_ownerless_sentences(policy),
        *_unique_column_sentences(policy),
        *_budget_sentences(policy),
        *_posterior_sentences(policy),
        *unprotected_sentences(policy),
    ]


def _ownerless_sentences(policy: Policy) -> list[str]:
    """Return which rows belong to nobody, so that no query reads them."""
    ways = []
    for table in policy.tables.values():
        match table.unit:
            case ColumnUnit(name):
                ways.append(f"{table.name}.{name} is NULL")
            case WindowUnit(name, time):
                ways.append(f"{table.name}.{name} or {table.name}.{time} is NULL")
            case ParentTableUnit(parent, on):
                ways.append(f"{table.name}.{on} has no owner in {parent}")
    if not ways:
        return []
    rows = ", or ".join(ways)
    return [f"Left out of every answer: rows where {rows}. Values that cannot be read in the declared type are NULL."]


def _unique_column_sentences(policy: Policy) -> list[str]:
    names = [
        f"{table.name}.{column.name}"
        for table in policy.tables.values()
        for column in table.columns.values()
        if column.unique
    ]
    return [f"Never used as groups, because declared unique: {_join_with_and(names)}."] if names else []


class _UnitWords(NamedTuple):
    """The words for a privacy unit: its noun, with its owner, a certain one, its rows, and what is protected."""

    noun: str
    phrase: str
    given: str
    rows: str
    protected: str


def _unit_words(policy: Policy) -> _UnitWords:
    person = policy.data.protects
    match policy.unit:
        case RowUnit():
            protected = f"each single row of {{}}, but not all rows of one {person} together"
            return _UnitWords("row", "row", "a given row", "one row", protected)
        case PersonInWindow(_, window, timezone):
            protected = f"each {window} of each {person} (time zone {timezone}), with all of its rows in {{}}"
            owned = f"{person}'s {window}"
            return _UnitWords(
                window.value, owned, f"a given {owned}", f"all rows of one {person} in one {window}", protected
            )
    protected = f"each {person}, with all of their rows in {{}}"
    return _UnitWords(person, person, f"a given {person}", f"all rows of one {person}", protected)


def unit_sentence(policy: Policy) -> str:
    """Return who is protected, with which rows of which tables."""
    tables = _join_with_and([name for name, table in policy.tables.items() if not table.public])
    return f"Protected: {_unit_words(policy).protected.format(tables)}."


def neighbour_sentence(policy: Policy) -> str:
    """Return by which rows neighbouring data sets differ, and what is bounded for them."""
    return (
        f"Whatever the queries, the distribution of the answers is nearly the same with and without "
        f"{_unit_words(policy).rows}; the budget bounds the difference."
    )


def _budget_sentences(policy: Policy) -> list[str]:
    total, analysts = policy.budget, policy.budget_entry.analysts
    budget_text = f"Budget: epsilon {format_number(total.epsilon)}"
    if total.delta:
        budget_text += (
            f" and delta {format_number(total.delta)} ({format_number(total.discover)} of it for partition selection)"
        )
    budget_sentence = f"{budget_text}, in total for all queries of all analysts; it is never renewed."
    if not total.delta:
        budget_sentence += " There is no delta, so groups must be declared: partition selection needs one."
    analyst_list = ", ".join(f"{name} (epsilon {format_number(analyst.epsilon)})" for name, analyst in analysts.items())
    analyst_sentence = (
        f"Analysts: {analyst_list}; together they cannot exceed the total, even if they collude."
        if analyst_list
        else "Analysts: none; only the owner can run queries."
    )
    return [budget_sentence, analyst_sentence]


def _posterior_sentences(policy: Policy) -> list[str]:
    """Bound the posterior of an adversary who knows all other data, for membership and for a rare trait."""
    total, given_unit = policy.budget, _unit_words(policy).given
    return [
        _posterior_sentence(
            "an adversary who knows all other data and sees all answers",
            f"that {given_unit} is in the data",
            _belief_changes((0.01, 0.5), total.epsilon),
            total.delta,
        ),
        _posterior_sentence(
            "the same adversary",
            f"that {given_unit} has a trait that one in a thousand people have",
            _belief_changes((0.001,), 2 * total.epsilon, "; a substitution counts as one removal and one addition"),
            _substitution_delta(total),
        ),
    ]


def _posterior_sentence(adversary: str, belief: str, changes: str, delta: Fraction) -> str:
    if not changes or delta > _MAX_USEFUL_DELTA:
        return f"No useful bound can be given at this budget on an adversary's belief {belief}."
    sentence = f"{adversary} can raise their belief {belief} {changes}."
    if delta:
        sentence = f"except with probability {format_number(delta)}, in which case nothing is guaranteed: {sentence}"
    return sentence[0].upper() + sentence[1:]


def _belief_changes(priors: tuple[float, ...], epsilon: Fraction, remark: str = "") -> str:
    """Return how far each prior can grow, and a remark; leave out priors that can grow to 100 %, "" if all can."""
    posteriors = [(prior, _percent_rounded_up(max_posterior(prior, epsilon))) for prior in priors]
    changes = [f"from {_percent_rounded_up(prior)} to at most {end}" for prior, end in posteriors if end != "100 %"]
    return " or ".join(changes) + remark if changes else ""


def _substitution_delta(total: Budget) -> Fraction:
    """Return the delta of a substitution, delta·(1 + e^epsilon), rounded up to two digits."""
    if not total.delta:
        return total.delta
    delta = min(1.0, float(total.delta) * (1 + math.exp(min(float(total.epsilon), 700.0))))
    digit = 10.0 ** (math.floor(math.log10(delta)) - 1)
    return Fraction(math.ceil(delta / digit)) * Fraction(f"{digit:.0e}")


def max_posterior(prior: float, epsilon: Fraction) -> float:
    """Return the largest posterior when the odds grow by e^epsilon.

    >>> round(max_posterior(0.5, Fraction(1)), 4)
    0.7311
    """
    return prior / (prior + (1 - prior) * math.exp(-min(float(epsilon), 700.0)))


def unprotected_sentences(policy: Policy) -> list[str]:
    """Return who and what is not protected, or less."""
    sentences, noun, epsilon = [], policy.data.protects, policy.budget.epsilon
    unit = policy.unit
    larger = " and a larger delta" if policy.budget.delta else ""
    if isinstance(unit, RowUnit | PersonInWindow):
        part = "row" if isinstance(unit, RowUnit) else unit.window.value
        group_epsilon = _EXAMPLE_WINDOWS * epsilon
        sentences.append(
            f"Not protected: one {noun} as a whole. Over {_EXAMPLE_WINDOWS} {part}s the bound is epsilon "
            f"{format_number(group_epsilon)}{larger}: a belief of {_percent_rounded_up(0.5)} can become "
            f"{_percent_rounded_up(max_posterior(0.5, group_epsilon))}. What all of their {part}s have in common, "
            "such as where they live, is protected least."
        )
    sentences.append(
        f"Less protected: groups. For {_EXAMPLE_GROUP_SIZE} {pluralise(protected_noun(policy))} together the bound "
        f"is {_EXAMPLE_GROUP_SIZE} times epsilon{larger}: a belief of {_percent_rounded_up(0.5)} that they are in the "
        f"data can become {_percent_rounded_up(max_posterior(0.5, _EXAMPLE_GROUP_SIZE * epsilon))}."
    )
    if public := [name for name, table in policy.tables.items() if table.public]:
        sentences.append(f"Not protected: the public table{'s' * (len(public) > 1)} {_join_with_and(public)}.")
    for name, table in policy.tables.items():
        if isinstance(table.unit, ParentTableUnit):
            sentences.append(
                f"Assumed, not checked: each value of {table.unit.on} in {name} refers to rows of one {noun} only "
                f"in {table.unit.table}."
            )
    sentences.append(
        f"Not protected: facts about the population, which can be learned with or without any one {noun}; what can be "
        f"inferred about a {noun} from relatives, friends or copies of a row under another key; copies of the data "
        "kept or published elsewhere; the policy itself, with its names, bounds and listed values."
    )
    return sentences


def protected_noun(policy: Policy) -> str:
    """Return the noun for one privacy unit, such as "patient", or "week" for each week of a patient."""
    return _unit_words(policy).noun


def unit_phrase(policy: Policy) -> str:
    """Return the noun for the privacy unit with its owner, such as "patient" or "patient's week"."""
    return _unit_words(policy).phrase


def pluralise(word: str) -> str:
    """Return the plural of a noun.

    >>> pluralise("person"), pluralise("visitor"), pluralise("family")
    ('people', 'visitors', 'families')
    """
    if word == "person":
        return "people"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"


def _percent_rounded_up(share: float) -> str:
    """Format a share as a percentage, rounded up so that it remains an upper bound."""
    return f"{math.ceil(round(share * 10_000, 6)) / 100:g} %"


def _join_with_and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
