"""The limit on generated SQL: its length and its nesting, with computed columns inlined, as engines may inline them.

Without it, a short query could become SQL of any length: a column computed from two others, which are each computed
from two others. Engines fail on such SQL, or plan it for hours, after the charge.

No sensitivity and no noise depends on it, so it is not part of the kernel, but it is sealed: what engines plan, and how
long they work on a row, can depend on the rows. SQL at the edge of what an engine can do might fail for some data only,
and whether it fails is shown. Each Dialect has this check, and the kernel applies it before it writes SQL.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from discreet.kernel.expr import TEXT_SCANS, Call, Column, Constant, Expr
from discreet.kernel.question import PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Derive, PerUnit, Relation
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.expr_sql import apply_operation, write_expr

_MAX_LENGTH = 250_000  # characters, without the lists of keys; DuckDB plans as many in a few seconds
_SELECT_LENGTH = 800  # that a SELECT counts for: 300 at most, because each is planned and run on its own
_SCAN_LENGTH = 1_250  # that one of TEXT_SCANS counts for, whatever its SQL: a row is searched at most 200 times
_TOO_LONG = "the query is too long or too deeply nested once it is written for the engine. Simplify it."


class _Size(NamedTuple):
    length: int
    nesting: int


def check_size(node: Question | Relation, dialect: Dialect) -> None:
    """Raise ValueError if the SQL of a question or a relation would be too long or too deeply nested for an engine.

    Claim: what is accepted becomes at most _MAX_LENGTH characters of expressions and _MAX_LENGTH / _SELECT_LENGTH
        SELECTs, and searches a row at most _MAX_LENGTH / _SCAN_LENGTH times; lists of keys and of letters apart.
    Proof: parts_of finds every expression, whatever contains it. The length of an expression is computed from that of
        its arguments and from how often the operation's SQL repeats them, before any of it is written; a computed
        column counts for its expression wherever it is named, unless a fence keeps the engine from inlining it. The
        sum is compared whenever something is added to it, and the nesting before the next level is entered, so that
        Python's stack is safe, too.
    Needs: parts_of, apply_operation, TEXT_SCANS.
    Checked by: test_what_is_too_long_for_an_engine_is_refused_before_it_is_written,
        test_columns_of_columns_count_for_what_they_become, test_the_length_is_that_of_the_sql
    """
    _Meter(dialect).add(node, 1)


class _Meter:
    """Adds up the length of SQL."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._length = 0

    def add(self, node: Question | Relation, level: int) -> dict[str, _Size]:
        """Add the SELECT of a node and everything in it, and return the sizes of its computed columns."""
        self._add_size(_Size(_SELECT_LENGTH, 0), level)
        columns: dict[str, _Size] = {}
        exprs: list[Expr] = []
        for part in parts_of(node):
            if not isinstance(part, Relation):
                exprs.append(part)
                continue
            for name, size in self.add(part, level + 1).items():
                columns[name] = max(size, columns.get(name, size))  # of both sides of a union
        known: dict[int, _Size] = {}
        sizes = [self._expr_size(expr, columns, known, level) for expr in exprs]
        for size in sizes:
            self._add_size(size, level)
        if isinstance(node, PerUnit) or (isinstance(node, Derive) and self._dialect.optimization_fence):
            return {}  # computed once, and not inlined
        return dict(zip(node.shape.schema, sizes, strict=True)) if isinstance(node, Derive) else columns

    def _expr_size(self, expr: Expr, columns: Mapping[str, _Size], known: dict[int, _Size], level: int) -> _Size:
        if not isinstance(expr, Call):
            size = _Size(len(write_expr(expr, self._dialect)), 0)
            return columns.get(expr.name, size) if isinstance(expr, Column) else size
        self._check(_Size(0, 0), level)
        if id(expr) not in known:  # an expression may be part of another many times
            args = [self._expr_size(arg, columns, known, level + 1) for arg in expr.args]
            marks = [f"\0{index}\0" for index in range(len(args))]  # in place of the SQL of the arguments
            parts = re.split("\0([0-9]+)\0", apply_operation(expr, marks, self._dialect))
            own = _SCAN_LENGTH if expr.op in TEXT_SCANS else sum(map(len, parts[::2]))
            inner = sum(args[int(index)].length for index in parts[1::2])
            known[id(expr)] = _Size(own + inner, 1 + max(arg.nesting for arg in args))
        return self._check(known[id(expr)], level)

    def _add_size(self, size: _Size, level: int) -> None:
        self._length += size.length
        self._check(_Size(self._length, size.nesting), level)

    def _check(self, size: _Size, level: int) -> _Size:
        if size.length > _MAX_LENGTH or level + size.nesting > self._dialect.max_nesting:
            raise ValueError(_TOO_LONG)
        return size


def parts_of(node: object) -> Iterator[Expr | Relation]:
    """Yield the expressions and relations of a node, whatever holds them, without looking into them."""
    if isinstance(node, tuple):
        held = node
    elif is_dataclass(node) and not isinstance(node, PublicGroups | SelectedGroups):
        held = tuple(getattr(node, field.name) for field in fields(node) if field.compare)
    else:
        held = ()
    for part in held:
        if isinstance(part, Relation | Column | Constant | Call):
            yield part
        else:
            yield from parts_of(part)
