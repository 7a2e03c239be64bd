"""Tables in which an engine keeps the groups of each unit while it computes the totals of one release.

A question, its later rounds of partition selection and its contribution histogram group the same rows by unit and key.
That is most of their work, so it is done once. The table is read by the kernel's SELECTs alone, and ends with the
release whose charge came first.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.engines.common_sql import is_range
from discreet.kernel.expr import Call, Constant, Expr, Type, Value
from discreet.kernel.question import PublicGroups, Question
from discreet.kernel.relation import PerUnit, Relation, Where
from discreet.kernel.sqlgen.counts_and_sums import COUNTS_AND_SUMS
from discreet.kernel.sqlgen.dialect import Dialect, quote_name
from discreet.kernel.sqlgen.relation_sql import comma_list, group_by, unit_columns
from discreet.kernel.totals import SelectionWeight

_MAX_LISTED = 4_000  # values of a key in a condition
_UNORDERED = ("and", "or", "one_of")  # the order of their operands has no meaning


def groups_units(question: Question) -> bool:
    """Whether the totals of a question are computed from the groups of each unit."""
    return question.needs_clipping and any(
        isinstance(total, (*COUNTS_AND_SUMS, SelectionWeight)) for total in question.totals
    )


@dataclass(frozen=True)
class StoredGroups:
    """A table with the rows of select_groups for a question."""

    table: str
    question: Question

    def find(self, node: Question | PerUnit, dialect: Dialect) -> str:
        """Return the table if it has the groups of a question, or a SELECT of the rows of a PerUnit; else nothing.

        Claim: what it returns has the same rows as what it stands for.
        Proof: a question with the same relation, keys and public groups has the same units and groups. Other columns
            than these are read only by counts and sums, which are the same then. A PerUnit of the same rows with all
            keys has a row for each unit and group, and COUNT(*) is m; with fewer keys, it is the sum of m over the
            groups that agree in these.
        Needs: select_groups, _has_rows_of, Dialect.bigint_sum.
        Checked by: test_stored_groups_do_not_change_totals, test_other_groups_are_not_those_that_are_stored
        """
        if isinstance(node, Question):
            return quote_name(self.table) if self._serves(node) else ""
        own_keys = [expr for _, expr in self.question.by]
        if not (
            all(expr in own_keys for _, expr in node.keys)
            and all(aggregate.expr is None for _, aggregate in node.values)
            and self._has_rows_of(node.source)
        ):
            return ""
        grouped = [*unit_columns(node), *(f"k{own_keys.index(expr)}" for _, expr in node.keys)]
        coarser = {expr for _, expr in node.keys} != set(own_keys)
        rows = dialect.bigint_sum.format("m") if coarser else "m"
        names = [*unit_columns(node), *(quote_name(name) for name, _ in (*node.keys, *node.values))]
        values = [*grouped, *(rows for _ in node.values)]
        outputs = [f"{value} AS {name}" for value, name in zip(values, names, strict=True)]
        source = f"{quote_name(self.table)} AS s{group_by(grouped) if coarser else ''}"
        return f"SELECT {comma_list(outputs)} FROM {source}"  # noqa: S608 - names in quotes

    def _serves(self, question: Question) -> bool:
        own = self.question
        return (question.relation, question.by, _listed_domains(question)) == (
            own.relation,
            own.by,
            _listed_domains(own),
        ) and (question.totals == own.totals or not any(isinstance(each, COUNTS_AND_SUMS) for each in question.totals))

    def _has_rows_of(self, relation: Relation) -> bool:
        """Return whether a relation has the rows of the question that are in its groups.

        Claim: if so, it has exactly these rows, each with its owner.
        Proof: it filters the same relation by the same set of conditions, apart from the order of operands: those of
            the question's relation, and for each key with public values that it is one of them. Where every integer or
            day from the first to the last is listed, this is the condition that the key is in between. A real key that
            is not finite is NULL as a key but not in a condition, so reals are left out.
        Needs: Where, select_keyed_rows.
        Checked by: test_stored_groups_do_not_change_totals, test_other_groups_are_not_those_that_are_stored
        """
        source, conditions = _split_filter(self.question.relation)
        for (_, key), domain in zip(self.question.by, _listed_domains(self.question) or (), strict=False):
            if key.type is Type.REAL or len(domain) > _MAX_LISTED:
                return False
            conditions |= set(_conjuncts(_listed_condition(key, domain)))
        return (source, conditions) == _split_filter(relation)


def _listed_domains(question: Question) -> tuple[tuple[Value, ...], ...] | None:
    return question.groups.domains if isinstance(question.groups, PublicGroups) else None


def _split_filter(relation: Relation) -> tuple[Relation, set[object]]:
    """Return the relation below a filter, and the conditions of the filter."""
    if not isinstance(relation, Where):
        return relation, set()
    return relation.source, set(_conjuncts(relation.condition))


def _conjuncts(condition: Expr) -> Iterator[object]:
    """Yield the parts of a conjunction, regardless of the order of operands."""
    if isinstance(condition, Call) and condition.op == "and":
        for part in condition.args:
            yield from _conjuncts(part)
    else:
        yield _unordered(condition)


def _unordered(expr: Expr) -> object:
    if isinstance(expr, Call) and expr.op in _UNORDERED:
        return expr.op, frozenset(map(_unordered, expr.args))
    return expr


def _listed_condition(key: Expr, domain: tuple[Value, ...]) -> Expr:
    """Return the condition that a key is in its domain: between the ends of a range, or one of a list."""
    values = [value for value in domain if value is not None]
    constants = [Constant(value, key.type) for value in values]
    listed = [Call("one_of", (key, *constants))] if values else []
    if is_range(values):
        low, high = (Constant(end, key.type) for end in (min(values), max(values)))
        listed = [Call("and", (Call("at_most", (low, key)), Call("at_most", (key, high))))]
    listed += [Call("is_null", (key,))] if None in domain else []
    return listed[0] if len(listed) == 1 else Call("or", tuple(listed))
