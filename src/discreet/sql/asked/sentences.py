"""What was bounded, in sentences."""

from collections.abc import Mapping

from discreet.kernel.expr import Call, Expr, Type
from discreet.kernel.question import Question, Units, Values
from discreet.policy import PersonInWindow, Row
from discreet.policy.values import written
from discreet.sql.asked.aggregates import Aggregate
from discreet.sql.asked.chosen import Choice
from discreet.sql.rows.owners import stays_inside
from discreet.sql.rows.scope import Rows
from discreet.sql.world import World


def sentences(question: Question, asked: Mapping[Aggregate | Choice, str], rows: Rows, world: World) -> tuple[str, ...]:
    """Say how much one unit can weigh, and which ranges were used."""
    return (*_weight(question, world), *_ranges(asked, rows))


def _weight(question: Question, world: World) -> list[str]:
    who = protected(world)
    if not question.bounded:
        return []
    told = []
    if any(not isinstance(total, Units | Values) for total in question.totals):
        told.append(f"In a group, one {who} weighs at most as much as {_rows(question.rows)}; more are scaled down.")
    if any(isinstance(total, Values) for total in question.totals):
        most = "one different value" if question.rows == 1 else f"{question.rows:,} different values"
        told.append(f"In a group, one {who} counts for at most {most}; of more, some are chosen by a hash.")
    if question.scaled:
        groups = question.limit.groups
        most = "one group" if groups == 1 else f"{groups:,} groups"
        told.append(f"In all, one {who} weighs at most as much as {most}; more are scaled down.")
    return told


def protected(world: World) -> str:
    """Return what is protected, in words."""
    match world.policy.unit:
        case PersonInWindow(_, window, _):
            return f"{world.policy.data.protects}'s {window.value}"
        case Row():
            return "row"
    return world.policy.data.protects


def _rows(number: int) -> str:
    return "one row" if number == 1 else f"{number:,} rows"


def _ranges(asked: Mapping[Aggregate | Choice, str], rows: Rows) -> list[str]:
    """Tell what is clipped and rounded, unless its values cannot be outside."""
    known, found = rows.by_column(), dict[str, list[str]]()
    for each, label in asked.items():
        if each.scale is None or each.expr is None or (stays_inside(each.expr, known) and not _clips(each.expr)):
            continue
        if isinstance(each, Choice) and each.origin is not None:
            continue
        low, high, step = (written(end) for end in (each.scale.low, each.scale.high, each.scale.step))
        rounded = "" if each.expr.type is Type.INTEGER and each.scale.step == 1 else f" and rounded to steps of {step}"
        found.setdefault(f"from {low} to {high}{rounded}", []).append(label)
    return [f"In {_and(labels)}, values are clipped to the range {how}." for how, labels in found.items()]


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _clips(expr: Expr) -> bool:
    return isinstance(expr, Call) and (expr.op == "clip" or any(map(_clips, expr.args)))
