"""A policy as text again: what is read from it is the same policy."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from discreet.policy.columns import Between, Declared, Keys, References, default_step
from discreet.policy.entries import MOST_ROWS, Analyst
from discreet.policy.policy import Policy
from discreet.policy.tables import Table
from discreet.policy.toml_text import inline_text, key_text, list_text, value_text
from discreet.policy.units import Column, ColumnInWindow, Row, Through


def write_policy(policy: Policy) -> str:
    """Write a policy in TOML; comments of a file that it was read from are not in it.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> Policy.parse(write_policy(policy)) == policy
    True
    """
    left_out = {"analysts"} if policy.spending.delta else {"analysts", "delta"}
    spending = {key: value for key, value in policy.spending if key not in left_out and value is not None}
    sections = [
        _section("data", {key: value for key, value in policy.data if value is not None}),
        _section("budget", spending),
    ]
    if policy.spending.analysts:
        lines = [f"{key_text(who)} = {_analyst(analyst)}" for who, analyst in policy.spending.analysts.items()]
        sections.append("\n".join(["[budget.analysts]", *lines]))
    tuning = {key: value for key, value in policy.tuning if value is not None}
    sections += [_section("tuning", tuning)] if tuning else []
    sections += [_table(table) for table in policy.tables.values()]
    return "\n\n".join(sections) + "\n"


def _section(name: str, values: Mapping[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {value_text(value)}" for key, value in values.items())])


def _analyst(analyst: Analyst) -> str:
    return inline_text({key: _text(value) for key, value in analyst if value is not None})


def _text(value: Any) -> str:
    return list_text(value) if isinstance(value, tuple) else value_text(value)


def _table(table: Table) -> str:
    path = f"tables.{key_text(table.name)}"
    lines = [f"[{path}]", f"source = {value_text(table.source)}", *_owner(table)]
    lines += [
        f"{key} = {value}" for key, value in (("groups", table.groups), ("rows", table.rows)) if value is not None
    ]
    lines += [f"rows_max = {table.rows_max}"] if table.rows_max != MOST_ROWS else []
    if table.columns:
        lines += [f"[{path}.columns]"]
        lines += [f"{key_text(name)} = {_column(column)}" for name, column in table.columns.items()]
    return "\n".join(lines)


def _owner(table: Table) -> Iterator[str]:
    match table.unit:
        case Column(name):
            yield f"unit = {value_text(name)}"
        case ColumnInWindow(name, time, window):
            yield f"unit = {value_text(name)}"
            yield f"window = {value_text(f'1 {window}')}"
            yield f"time = {value_text(time)}"
        case Through(parent, on, key):
            entries = {"through": value_text(parent), "on": value_text(on), "key": value_text(key)}
            yield f"unit = {inline_text(entries)}"
        case Row():
            yield 'unit = "row"'
        case _:
            yield "public = true"


def _column(column: Declared) -> str:
    entries = {"type": value_text(column.type)}
    match column.domain:
        case Between(low, high, step, outside):
            entries["between"] = list_text((low, high))
            if step is not None and step != default_step(Fraction(low), Fraction(high)):  # type: ignore[arg-type]
                entries["step"] = value_text(step)
            if outside != "clip":
                entries["outside"] = value_text(outside)
        case Keys(values) if column.type != "boolean" or values != (False, True):
            entries["in"] = list_text(values)
        case References(table, name):
            entries["references"] = value_text(f"{table}.{name}")
    if column.null:
        entries["null"] = "true"
    if column.unique:
        entries["unique"] = "true"
    return inline_text(entries)
