"""Keys as codes: every row of a relation becomes one small integer per axis, computed where the rows are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Column, Constant, Expr, NamedExprs, Type, Value
from discreet.kernel.relation import Derive, Relation

_MAX_LISTED = 1_000  # values that are compared one by one; integers and dates in steps of one are computed


@dataclass(frozen=True)
class Requirement:
    """An expression, and the value that it must have for each code of an axis."""

    expr: Expr
    values: tuple[Value, ...]


@dataclass(frozen=True)
class CodedAxis:
    """An expression on the rows of a relation, and its public values in the order of their codes.

    A row has a code only if it fulfils the requirements.
    """

    name: str
    expr: Expr
    values: tuple[Value, ...]
    required: tuple[Requirement, ...] = ()

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)


@dataclass(frozen=True)
class CodedRows:
    """Rows as numbers: the code of each axis, then the value of each measure; a row without one of them is left out."""

    relation: Relation
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]


def coded_rows(
    relation: Relation, axes: Iterable[CodedAxis], measures: Iterable[tuple[Expr, tuple[float, float]]] = ()
) -> CodedRows:
    """Return the rows of a relation as codes and values; each measure comes with its range."""
    axes, measures = tuple(axes), tuple(measures)
    keys: NamedExprs = tuple(
        (_key_name(index, place), expr)
        for index, axis in enumerate(axes)
        for place, expr in enumerate([axis.expr, *(each.expr for each in axis.required)])
    )
    values: NamedExprs = tuple((f"v{index}", expr) for index, (expr, _) in enumerate(measures))
    codes = tuple((f"c{index}", _coded(index, axis)) for index, axis in enumerate(axes))
    kept = tuple((name, Column(name, expr.type)) for name, expr in values)
    coded = Derive(Derive(relation, (*keys, *values)), (*codes, *kept))
    ends = [(0.0, float(axis.size - 1)) for axis in axes]
    return CodedRows(coded, tuple(name for name, _ in (*codes, *kept)), (*ends, *(ends for _, ends in measures)))


def _key_name(axis: int, place: int) -> str:
    return f"k{axis}r{place}" if place else f"k{axis}"


def _coded(index: int, axis: CodedAxis) -> Expr:
    conditions = [
        (Column(_key_name(index, place), each.expr.type), each.values) for place, each in enumerate(axis.required, 1)
    ]
    return code_of(Column(_key_name(index, 0), axis.expr.type), axis.values, conditions)


def code_of(key: Column, values: tuple[Value, ...], required: Sequence[tuple[Column, tuple[Value, ...]]] = ()) -> Expr:
    """Return the index of a key's value among the values; NULL for others, and where a required value is missing.

    >>> code_of(Column("age", Type.INTEGER), (10, 11, 12)).op
    'case'
    """
    first = values[0]
    if key.type in (Type.INTEGER, Type.DATE) and not required and _are_consecutive(values):
        low, high = Constant(first, key.type), Constant(values[-1], key.type)
        inside = Call("and", (Call("at_most", (low, key)), Call("at_most", (key, high))))
        steps = Call("subtract", (key, low)) if key.type is Type.INTEGER else Call("days_between", (low, key))
        return Call("case", (inside, steps, Constant(None, Type.INTEGER)))
    if len(values) > _MAX_LISTED:
        raise Refused(
            f"GROUP BY: a key has {len(values):,} values; tables that add up take at most {_MAX_LISTED:,} that are not "
            "consecutive integers or dates. Group by fewer values."
        )
    branches: list[Expr] = []
    for code, value in enumerate(values):
        conditions = [_equals(key, value), *(_equals(column, needed[code]) for column, needed in required)]
        branches += [conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))]
        branches += [Constant(code, Type.INTEGER)]
    return Call("case", (*branches, Constant(None, Type.INTEGER)))


def _equals(key: Column, value: Value) -> Expr:
    return Call("is_null", (key,)) if value is None else Call("equal", (key, Constant(value, key.type)))


def _are_consecutive(values: tuple[Value, ...]) -> bool:
    """Return whether the values are integers or dates in ascending steps of one."""
    numbers = [value.toordinal() if isinstance(value, date) else value for value in values]
    return all(type(number) is int for number in numbers) and numbers == [
        *range(numbers[0], numbers[0] + len(numbers))  # type: ignore[arg-type, operator]
    ]
