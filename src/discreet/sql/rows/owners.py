"""Whose rows they are: which expressions are the unit's key, or decide it."""

from collections.abc import Mapping

from discreet.kernel.expr import Call, Column, Constant, Expr, Type
from discreet.policy.problems import brief
from discreet.policy.units import Window
from discreet.sql.rows.scope import Known, Rows
from discreet.sql.values.ranges import PARTS

# These have a value wherever all of their arguments have one.
_TOTAL = frozenset(
    {"not", "as_integer", "to_real", "and", "or", "to_date", "to_timestamp", "length", "clip", *PARTS}
) | {f"trunc_{window}" for window in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")}


def part_of(expr: Expr, known: Mapping[str, Known]) -> int | None:
    """Return the place of an expression in the unit's key; None if it is not a part of it.

    The second part, if there is one, is the window of a time: date_trunc('day', time), time::date, or a date itself.
    """
    match expr:
        case Column(name):
            found = known.get(name)
            if found is None or found.null:
                return None  # the side of an outer join that may be missing belongs to nobody
            daily = found.clock is Window.DAY and found.column.type is Type.DATE
            return 1 if daily else found.bound.unit
        case Call("to_date", (inner,)) if _clock(inner, known) is Window.DAY:
            return 1
        case Call("to_date" | "to_timestamp", (inner,)):
            return 1 if part_of(inner, known) == 1 else None
        case Call(op, (inner,)) if op.startswith("trunc_"):
            clock = _clock(inner, known)
            return 1 if clock is not None and op == f"trunc_{clock.value}" else None
    return None


def _clock(expr: Expr, known: Mapping[str, Known]) -> Window | None:
    """Return the window of the unit that this expression is the time of."""
    if isinstance(expr, Call) and expr.op == "to_timestamp":
        expr = expr.args[0]
    if not isinstance(expr, Column) or expr.name not in known:
        return None
    return known[expr.name].clock


def unit_names(rows: Rows) -> list[str]:
    """Return how a query names the parts of the unit's key, if it can."""
    found: dict[int, str] = {}
    for view in rows.views:
        for known in view.columns:
            name = f"{brief(view.alias)}.{brief(known.name)}" if view.alias else brief(known.name)
            if known.bound.unit is not None:
                found.setdefault(known.bound.unit, name)
            if known.clock is not None:
                found.setdefault(1, f"date_trunc('{known.clock.value}', {name})")
    return [found[part] for part in sorted(found)]


def links_of(expr: Expr, known: Mapping[str, Known]) -> frozenset[tuple[str, str]]:
    """Return the parents' keys that an expression is: who has one has an owner."""
    if isinstance(expr, Column) and expr.name in known:
        return known[expr.name].links
    return frozenset()


def is_person_or_null(expr: Expr, known: Mapping[str, Known]) -> bool:
    """Tell whether an expression is the unit's own column wherever it is not NULL."""
    match expr:
        case Column(name):
            return name in known and known[name].bound.unit == 0
        case Call("case", args):
            values = (*args[1:-1:2], args[-1])
            held = [value for value in values if not (isinstance(value, Constant) and value.value is None)]
            return bool(held) and all(is_person_or_null(value, known) for value in held)
    return False


# These tell different values apart, but for spelling.
_KEEPING = frozenset({"lower", "upper", "trim", "trim_left", "trim_right", "write_integer", "write_date", "to_real"})


def is_unique(expr: Expr, known: Mapping[str, Known]) -> bool:
    """Tell whether each value of an expression belongs to one row or unit, because the policy says so of a column."""
    match expr:
        case Column(name):
            return name in known and known[name].unique
        case Call("join", args):
            return any(is_unique(arg, known) for arg in args)
        case Call("coalesce" | "nullif", args):
            return is_unique(args[0], known)
        case Call(op, (inner,)) if op in _KEEPING:
            return is_unique(inner, known)
    return False


# What is the same in a whole window: a day lies in one month, but a week may not.
_SETTLED = {
    Window.DAY: frozenset(["to_date", "year", "quarter", "month", "week", "day", "dow", "isodow", "doy"])
    | {f"trunc_{window}" for window in ("year", "quarter", "month", "week", "day")},
    Window.WEEK: frozenset({"trunc_week"}),
    Window.MONTH: frozenset(["year", "quarter", "month", "trunc_year", "trunc_quarter", "trunc_month"]),
}


def is_settled(expr: Expr, known: Mapping[str, Known]) -> bool:
    """Tell whether an expression is the same in all rows of a unit, so that the unit is in one of its groups only."""
    match expr:
        case Constant():
            return True
        case Column(name):
            return part_of(expr, known) is not None or (name in known and known[name].settled)
        case Call(op, (inner,)) if (clock := _clock(inner, known)) is not None and op in _SETTLED[clock]:
            return True
        case Call(_, args):
            return part_of(expr, known) is not None or all(is_settled(arg, known) for arg in args)


def stays_inside(expr: Expr, known: Mapping[str, Known]) -> bool:
    """Tell whether an expression's values surely lie in the range that is known of it."""
    match expr:
        case Column(name):
            return name in known and known[name].inside
        case Call("clip" | "inside"):
            return True
        case Call("case", args):
            return all(stays_inside(value, known) for value in (*args[1:-1:2], args[-1]))
        case Call(op, args):
            return op in PARTS or all(stays_inside(arg, known) for arg in args)
    return True


def never_null(expr: Expr, known: Mapping[str, Known]) -> bool:
    """Tell whether an expression surely has a value in every row; if in doubt, it has not."""
    match expr:
        case Constant(value):
            return value is not None
        case Column():
            return expr.name in known and known[expr.name].sure and not known[expr.name].null
        case Call("case", args):
            return all(never_null(value, known) for value in (*args[1:-1:2], args[-1]))
        case Call("coalesce" | "is_null" as op, args):
            return op == "is_null" or any(never_null(arg, known) for arg in args)
        case Call(op, args) if op in _TOTAL:
            return all(never_null(arg, known) for arg in args)
    return False
