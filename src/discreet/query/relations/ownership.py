"""Which expressions are the privacy unit's key, determine it, or are constant per unit."""

from collections.abc import Mapping

from discreet.kernel.expr import Call, Column, Constant, Expr, Type
from discreet.policy.declarations import Window
from discreet.policy.problems import shorten
from discreet.query.expressions.value_ranges import DATE_PARTS
from discreet.query.relations.bound_sources import ColumnInfo, PrivateSource

# These are not NULL if none of their arguments is.
_NULL_PRESERVING = frozenset(
    {"not", "as_integer", "to_real", "and", "or", "to_date", "to_timestamp", "length", "clip", *DATE_PARTS}
) | {f"trunc_{window}" for window in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")}


def unit_key_index(expr: Expr, columns: Mapping[str, ColumnInfo]) -> int | None:
    """Return the position of an expression in the unit's key; None if it is not part of the key.

    The second part, if any, is a time window: date_trunc('day', time), time::date, or a date column.
    """
    match expr:
        case Column(name):
            info = columns.get(name)
            if info is None or info.null_is_group:
                return None  # the optional side of an outer join has no owner
            daily = info.window is Window.DAY and info.column.type is Type.DATE
            return 1 if daily else info.bound.unit_key_index
        case Call("to_date", (inner,)) if _unit_window(inner, columns) is Window.DAY:
            return 1
        case Call("to_date" | "to_timestamp", (inner,)):
            return 1 if unit_key_index(inner, columns) == 1 else None
        case Call(op, (inner,)) if op.startswith("trunc_"):
            window = _unit_window(inner, columns)
            return 1 if window is not None and op == f"trunc_{window.value}" else None
    return None


def _unit_window(expr: Expr, columns: Mapping[str, ColumnInfo]) -> Window | None:
    """Return the time window of the unit that an expression's column belongs to."""
    if isinstance(expr, Call) and expr.op == "to_timestamp":
        expr = expr.args[0]
    if not isinstance(expr, Column) or expr.name not in columns:
        return None
    return columns[expr.name].window


def unit_key_names(rows: PrivateSource) -> list[str]:
    """Return SQL for the parts of the unit's key, if the query can refer to them."""
    names: dict[int, str] = {}
    for view in rows.views:
        for info in view.columns:
            name = f"{shorten(view.alias)}.{shorten(info.name)}" if view.alias else shorten(info.name)
            if info.bound.unit_key_index is not None:
                names.setdefault(info.bound.unit_key_index, name)
            if info.window is not None:
                names.setdefault(1, f"date_trunc('{info.window.value}', {name})")
    return [names[key_index] for key_index in sorted(names)]


def parent_keys_of(expr: Expr, columns: Mapping[str, ColumnInfo]) -> frozenset[tuple[str, str]]:
    """Return the parent keys that an expression equals, each of which determines the owner."""
    if isinstance(expr, Column) and expr.name in columns:
        return columns[expr.name].parent_keys
    return frozenset()


def is_unit_or_null(expr: Expr, columns: Mapping[str, ColumnInfo]) -> bool:
    """Return whether an expression equals the unit's column wherever it is not NULL."""
    match expr:
        case Column(name):
            return name in columns and columns[name].bound.unit_key_index == 0
        case Call("case", args):
            values = (*args[1:-1:2], args[-1])
            present = [value for value in values if not (isinstance(value, Constant) and value.value is None)]
            return bool(present) and all(is_unit_or_null(value, columns) for value in present)
    return False


# These keep distinct values distinct, apart from spelling.
_INJECTIVE = frozenset({"lower", "upper", "trim", "trim_left", "trim_right", "write_integer", "write_date", "to_real"})


def is_unique(expr: Expr, columns: Mapping[str, ColumnInfo]) -> bool:
    """Return whether each value of an expression belongs to one row or unit, as the policy declares for a column."""
    match expr:
        case Column(name):
            return name in columns and columns[name].unique
        case Call("join", args):
            return any(is_unique(arg, columns) for arg in args)
        case Call("coalesce" | "nullif", args):
            return is_unique(args[0], columns)
        case Call(op, (inner,)) if op in _INJECTIVE:
            return is_unique(inner, columns)
    return False


# Functions that are constant within a window: a day lies in one month, but a week may not.
_CONSTANT_IN_WINDOW = {
    Window.DAY: frozenset(["to_date", "year", "quarter", "month", "week", "day", "dow", "isodow", "doy"])
    | {f"trunc_{window}" for window in ("year", "quarter", "month", "week", "day")},
    Window.WEEK: frozenset({"trunc_week"}),
    Window.MONTH: frozenset(["year", "quarter", "month", "trunc_year", "trunc_quarter", "trunc_month"]),
}


def is_constant_per_unit(expr: Expr, columns: Mapping[str, ColumnInfo]) -> bool:
    """Return whether an expression is constant within a unit, so that each unit is in one group."""
    match expr:
        case Constant():
            return True
        case Column(name):
            return unit_key_index(expr, columns) is not None or (name in columns and columns[name].constant_per_unit)
        case Call(op, (inner,)) if (window := _unit_window(inner, columns)) is not None and op in _CONSTANT_IN_WINDOW[
            window
        ]:
            return True
        case Call(_, args):
            return unit_key_index(expr, columns) is not None or all(is_constant_per_unit(arg, columns) for arg in args)


def stays_in_range(expr: Expr, columns: Mapping[str, ColumnInfo]) -> bool:
    """Return whether the values of an expression are certain to lie in its known range."""
    match expr:
        case Column(name):
            return name in columns and columns[name].in_range
        case Call("clip" | "inside"):
            return True
        case Call("case", args):
            return all(stays_in_range(value, columns) for value in (*args[1:-1:2], args[-1]))
        case Call(op, args):
            return op in DATE_PARTS or all(stays_in_range(arg, columns) for arg in args)
    return True


def never_null(expr: Expr, columns: Mapping[str, ColumnInfo]) -> bool:
    """Return whether an expression is certain never to be NULL."""
    match expr:
        case Constant(value):
            return value is not None
        case Column():
            return expr.name in columns and columns[expr.name].never_null and not columns[expr.name].null_is_group
        case Call("case", args):
            return all(never_null(value, columns) for value in (*args[1:-1:2], args[-1]))
        case Call("coalesce" | "is_null" as op, args):
            return op == "is_null" or any(never_null(arg, columns) for arg in args)
        case Call(op, args) if op in _NULL_PRESERVING:
            return all(never_null(arg, columns) for arg in args)
    return False
