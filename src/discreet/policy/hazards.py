"""A lint for policies that are valid, and yet may not protect whom their owner has in mind."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.policy.columns import Between, Declared, Keys, Open, References
from discreet.policy.entries import MOST_ROWS
from discreet.policy.policy import Policy
from discreet.policy.tables import Table
from discreet.policy.units import Column, ColumnInWindow, Public, Row, Through
from discreet.policy.values import written

RULES = {
    "D001": (
        "the unit looks like a device, browser or visit, and one {who} may have several.",
        "Name the column of the {who}, or say in `protects` what is protected.",
    ),
    "D002": (
        "the column seems to hold people, and it is not the unit: nobody is protected as one of its values.",
        "Leave the column out, or make it the unit.",
    ),
    "D003": (
        "free text in a public table may name people.",
        "Leave the column out, or list its values with `in`.",
    ),
    "D004": (
        "a number without bounds cannot be summed or averaged.",
        "Declare `between` from what the number means, not from the data.",
    ),
    "D005": (
        "epsilon {epsilon} lets the odds about one {who} grow by a factor of e^{epsilon}.",
        "Ask how little would do: at 10 a belief of 1 % may already become 99.6 %.",
    ),
    "D006": (
        "delta {delta} is above {largest}: somebody's rows could be told in full with that probability.",
        "Choose a delta far below one over the number of people.",
    ),
    "D007": (
        "each row is protected alone: k rows of one {who} together have k times the epsilon against them.",
        "Name the column of the {who} as unit, unless nobody has two rows.",
    ),
    "D008": (
        "{size} steps in a row, times rows_max, may exceed 2^62, and sums of it would be refused.",
        "Enlarge `step`, narrow `between`, or lower `rows_max` to what is known of the table.",
    ),
    "D009": (
        "the policy itself lists who may be in the data.",
        "Leave out the domain: the unit's column needs none.",
    ),
    "D010": (
        "no columns are listed, so everything in the source counts as public.",
        "List the columns that questions need.",
    ),
    "D011": (
        "each {window} is protected alone: a habit over k of them has k times the epsilon against it.",
        "Leave out `window` and `time` to protect each {who} as a whole.",
    ),
    "D012": (
        "a row belongs to the owner of the row in {parent} that it leads to; nothing checks that there is only one.",
        "Make sure that no value of {key} in {parent} occurs for two owners.",
    ),
    "D013": (
        "a public table seems to hold people.",
        "Give the table a unit, or leave the column out.",
    ),
    "D014": (
        "an end of `between` looks measured, and bounds taken from the data tell about its extremes.",
        "Choose round bounds from what the number means.",
    ),
}

_DEVICE = re.compile(r"(?:^|_)(?:cookie|device|session|browser|mac|ip|imei|idfa|gaid|visit|request|token)s?(?:$|_)")
_PEOPLE = re.compile(
    r"(?:^|_)(?:user|username|person|people|patient|customer|client|member|employee|student|visitor|subscriber"
    r"|account|author|owner|login|e_?mail|phone|mobile|ssn|passport|iban|surname|address|ip)s?(?:$|_)"
    r"|(?:first|last|full|family|maiden)_?name"
)
_KEY = re.compile(r"(?:^|_)(?:id|uuid|guid)$")
_MOST_STEPS = 1 << 62
_LARGE_EPSILON = 10
_LARGE_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True)
class Hazard:
    """Something to ask the owner about: a stable id, the place, what may go wrong, and what to do."""

    id: str
    table: str | None
    column: str | None
    message: str
    fix: str

    def __str__(self) -> str:
        """Write the finding on one line."""
        place = f"table {self.table}" if self.table else "[budget]"
        return f"{self.id} {place}{f', column {self.column}' if self.column else ''}: {self.message} {self.fix}"


def hazards(policy: Policy) -> list[Hazard]:
    """Return what a careful reader of the policy would ask its owner about."""
    found = [*_of_budget(policy)]
    for table in policy.tables.values():
        found += _of_public(table, policy) if table.public else _of_private(table, policy)
    return found


def _hazard(id_: str, table: Table | None, column: str | None = None, **words: object) -> Hazard:
    message, fix = (text.format(**words) for text in RULES[id_])
    return Hazard(id_, table.name if table else None, column, message, fix)


def _of_budget(policy: Policy) -> Iterator[Hazard]:
    total = policy.budget
    if total.epsilon > _LARGE_EPSILON:
        yield _hazard("D005", None, epsilon=written(total.epsilon), who=policy.data.protects)
    roots = [table for table in policy.tables.values() if not isinstance(table.unit, Public | Through)]
    sizes = [table.rows_max for table in roots if table.rows_max != MOST_ROWS]  # the default says nothing of people
    largest = min([_LARGE_DELTA, *(Fraction(1, size) for size in sizes)])
    if total.delta > largest:
        yield _hazard("D006", None, delta=written(total.delta), largest=written(largest))


def _of_public(table: Table, policy: Policy) -> Iterator[Hazard]:
    if not table.columns:
        yield _hazard("D010", table)
    every = policy.tables.values()
    units = {name.lower() for other in every if (name := _unit_column(other))}
    domains = {column.domain for other in every for column in other.columns.values()}
    for column in table.columns.values():
        if column.name.lower() in units or (_is_open(column) and _PEOPLE.search(_words(column.name))):
            yield _hazard("D013", table, column.name)
        elif _is_open(column, "text") and References(table.name, column.name) not in domains:
            yield _hazard("D003", table, column.name)


def _of_private(table: Table, policy: Policy) -> Iterator[Hazard]:
    yield from _of_unit(table, policy.data.protects)
    keys = {_unit_column(table)} | {table.unit.on if isinstance(table.unit, Through) else None}
    for other in policy.tables.values():
        if isinstance(other.unit, Through) and other.unit.table == table.name:
            keys.add(other.unit.key)
    for column in table.columns.values():
        if column.name not in keys:
            yield from _of_column(table, column)


def _of_unit(table: Table, who: str) -> Iterator[Hazard]:
    match table.unit:
        case Row():
            yield _hazard("D007", table, who=who)
        case ColumnInWindow(_, _, window):
            yield _hazard("D011", table, window=window.value, who=who)
        case Through(parent, on, key):
            yield _hazard("D012", table, on, parent=parent, key=key)
    name = _unit_column(table)
    if name and _DEVICE.search(_words(name)):
        yield _hazard("D001", table, name, who=who)
    if name and isinstance(table.columns[name].domain, Keys | References):
        yield _hazard("D009", table, name)


def _of_column(table: Table, column: Declared) -> Iterator[Hazard]:
    words = _words(column.name)
    if _is_open(column) and (_PEOPLE.search(words) or _KEY.search(words)):
        yield _hazard("D002", table, column.name)
    elif _is_open(column, "real", "decimal"):
        yield _hazard("D004", table, column.name)
    domain = column.domain
    if isinstance(domain, Between) and domain.step:
        ends = [Fraction(end) for end in (domain.low, domain.high)]  # type: ignore[arg-type]  # a step: both are numbers
        size = math.ceil(max(map(abs, ends)) / domain.step)
        if size * table.rows_max >= _MOST_STEPS:
            yield _hazard("D008", table, column.name, size=size)
        if any(map(_looks_measured, ends)):
            yield _hazard("D014", table, column.name)


def _unit_column(table: Table) -> str | None:
    return table.unit.name if isinstance(table.unit, Column | ColumnInWindow) else None


def _is_open(column: Declared, *types: str) -> bool:
    return isinstance(column.domain, Open) and (not types or column.type in types)


def _looks_measured(end: Fraction) -> bool:
    """Tell whether a bound has a fraction and four or more digits, as nobody would choose it."""
    return end.denominator != 1 and len(f"{abs(float(end)):.12g}".replace(".", "").strip("0")) >= 4


def _words(name: str) -> str:
    """Write userId and "User ID" as user_id."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()
