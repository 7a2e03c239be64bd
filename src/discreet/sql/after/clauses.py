"""The clauses around a SELECT list: what may stand in them, and the constants that they hold."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from discreet.sql.places import refuse

_MOST = 1_000_000_000
_WAYS_OUT = {
    "locks": "Leave out FOR UPDATE",
    "sample": "Leave out TABLESAMPLE",
    "recursive": "Write the steps out",
    "into": "Leave out INTO",
}


@dataclass(frozen=True)
class Slice:
    """LIMIT and OFFSET."""

    limit: int | None = None
    offset: int | None = None

    def __bool__(self) -> bool:
        return self.limit is not None or self.offset is not None

    @property
    def sql(self) -> str:
        """The clauses in SQL."""
        limit = f" LIMIT {self.limit}" if self.limit is not None else ""
        return limit + (f" OFFSET {self.offset}" if self.offset is not None else "")


def check_arguments(node: exp.Expr, allowed: str, clause: str) -> None:
    """Refuse every part of a node that is not known: it might mean anything."""
    surplus = [name for name, given in node.args.items() if given and name not in allowed.split()]
    if surplus:
        given = node.args[surplus[0]]
        words = (given if isinstance(given, str) else surplus[0].strip("_").replace("_", " ")).upper()
        raise refuse(node, clause, f"{words} is not supported here", _WAYS_OUT.get(surplus[0], "Leave it out"))


def slice_of(node: exp.Expr) -> Slice:
    """Return LIMIT, OFFSET and FETCH FIRST."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None:
            check_arguments(options, "rows", "FETCH")
        most = 1 if limit.args.get("count") is None else _number(limit.args["count"], "FETCH")
    elif limit is not None:
        check_arguments(limit, "expression", "LIMIT")
        most = _number(limit.expression, "LIMIT")
    else:
        most = None
    if offset is not None:
        check_arguments(offset, "expression", "OFFSET")
    return Slice(most, None if offset is None else _number(offset.expression, "OFFSET"))


def _number(node: exp.Expr, clause: str) -> int | None:
    if isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name.upper() == "ALL"):
        return None
    plain = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    if not plain or len(node.name) > 10 or int(node.name) > _MOST:
        raise refuse(node, clause, f"{clause} takes a whole number up to a billion", f"Write {clause} 10")
    return int(node.name)


def named_windows(node: exp.Expr) -> Mapping[str, exp.Window]:
    """Return the windows that WINDOW names."""
    found: dict[str, exp.Window] = {}
    for each in node.args.get("windows") or ():
        check_arguments(each, "this partition_by order spec", "WINDOW")
        found[each.this.name.lower()] = each
    return found


def is_distinct(node: exp.Expr) -> bool:
    """Tell whether a SELECT leaves out equal rows."""
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        way_out = "Use QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1"
        raise refuse(distinct, "SELECT", "DISTINCT ON is not supported", way_out)
    return distinct is not None


def terms_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the terms of ORDER BY."""
    order = node.args.get("order")
    if order is None:
        return []
    check_arguments(order, "expressions", "ORDER BY")
    for each in order.expressions:
        check_arguments(each, "this desc nulls_first", "ORDER BY")
    return list(order.expressions)


def ordinal(node: exp.Expr, most: int, clause: str) -> int | None:
    """Return the place in the SELECT list that a number in ORDER BY or GROUP BY means; None if it is no number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    if not node.name.isdecimal() or len(node.name) > 9 or not 1 <= int(node.name) <= most:
        raise refuse(node, clause, f"there is no column {node.name[:20]}", f"Count the columns from 1 to {most}")
    return int(node.name) - 1


def ordering(node: exp.Expr) -> str:
    """Return the direction of a term of ORDER BY; NULL is larger than everything, as in PostgreSQL."""
    down = bool(node.args.get("desc"))
    first = node.args.get("nulls_first")
    return f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if (down if first is None else first) else 'LAST'}"
