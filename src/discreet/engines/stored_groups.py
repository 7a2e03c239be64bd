"""Tables in which an engine keeps the groups of each unit while it computes the totals of one release.

A question, its later rounds of partition selection and its contribution histogram group the same rows by unit and key.
That is most of their work, so it is done once. The kernel's SELECTs alone read the table. It is created after the
charge of the release and removed at its end, and whether there is one depends on the questions, not on the data.
"""

from dataclasses import dataclass

from discreet.engines.common_sql import is_range
from discreet.kernel.expr import Call, Constant, Expr, Type, Value
from discreet.kernel.question import PublicGroups, Question
from discreet.kernel.relation import PerUnit, Relation, Where
from discreet.kernel.sqlgen.counts_and_sums import COUNTS_AND_SUMS
from discreet.kernel.sqlgen.dialect import Dialect, quote_name
from discreet.kernel.sqlgen.relation_sql import comma_list, group_by, unit_columns
from discreet.kernel.totals import Count, SelectionWeight, Sum

_MAX_LISTED = 4_000  # values of a key in a condition
_UNORDERED = ("and", "or", "one_of")  # the order of their operands has no meaning


def groups_units(question: Question) -> bool:
    """Whether several SELECTs of a question, or of its histogram, read the groups of each unit."""
    kinds = (*COUNTS_AND_SUMS, SelectionWeight) if question.by else (Count, Sum)
    return question.needs_clipping and any(isinstance(total, kinds) for total in question.totals)


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
        Needs: select_groups, StoredGroups._has_rows_of, Dialect.bigint_sum.
        Checked by: test_stored_groups_do_not_change_totals, test_the_same_groups_are_those_that_are_stored,
            test_other_groups_are_not_those_that_are_stored
        """
        own, keys = self.question, [expr for _, expr in self.question.by]
        if isinstance(node, Question):
            adds = node.totals != own.totals and any(isinstance(total, COUNTS_AND_SUMS) for total in node.totals)
            same = (node.relation, node.by, _domains(node)) == (own.relation, own.by, _domains(own))
            return quote_name(self.table) if same and not adds else ""
        if (
            any(expr not in keys for _, expr in node.keys)
            or any(aggregate.expr is not None for _, aggregate in node.values)
            or not self._has_rows_of(node.source)
        ):
            return ""
        units, coarser = unit_columns(node), {expr for _, expr in node.keys} != set(keys)
        grouped = [*units, *(f"k{keys.index(expr)}" for _, expr in node.keys)]
        columns = [*grouped, *[dialect.bigint_sum.format("m") if coarser else "m"] * len(node.values)]
        names = [*units, *(quote_name(name) for name, _ in (*node.keys, *node.values))]
        outputs = comma_list([f"{column} AS {name}" for column, name in zip(columns, names, strict=True)])
        end = group_by(grouped) if coarser else ""
        return f"SELECT {outputs} FROM {quote_name(self.table)} AS s{end}"  # noqa: S608 - names in quotes

    def _has_rows_of(self, relation: Relation) -> bool:
        """Return whether a relation has the rows of the question that are in its groups, and no others.

        Claim: if so, it has exactly these rows, each with its owner.
        Proof: it filters the same relation by the same set of conditions, apart from the order of operands: those of
            the question's relation, and for each key with public values that it is one of them. Where every integer or
            day from the first to the last is listed, this is the condition that the key is in between. A real key that
            is not finite is NULL as a key but not in a condition, so reals are left out.
        Needs: Where, select_keyed_rows, is_range.
        Checked by: test_stored_groups_do_not_change_totals, test_other_groups_are_not_those_that_are_stored,
            test_ranges_with_a_gap_and_lists_of_reals_are_not_those_that_are_stored
        """
        listed = self.question.relation
        for (_, key), domain in zip(self.question.by, _domains(self.question) or (), strict=False):
            if key.type is Type.REAL or len(domain) > _MAX_LISTED:
                return False
            listed = Where(listed, _listed_condition(key, domain))
        return _conditions(listed) == _conditions(relation)


def _domains(question: Question) -> tuple[tuple[Value, ...], ...] | None:
    return question.groups.domains if isinstance(question.groups, PublicGroups) else None


def _conditions(relation: Relation) -> tuple[Relation, frozenset[object]]:
    """Return the relation below all filters, and the conditions of the filters."""
    if not isinstance(relation, Where):
        return relation, frozenset()
    source, others = _conditions(relation.source)
    condition = relation.condition
    parts = condition.args if isinstance(condition, Call) and condition.op == "and" else (condition,)
    return source, others | frozenset(map(_unordered, parts))


def _unordered(expr: Expr) -> object:
    """Return an expression in a form that does not depend on the order of operands."""
    if not isinstance(expr, Call) or expr.op not in _UNORDERED:
        return expr
    return expr.op, frozenset(map(_unordered, expr.args))


def _listed_condition(key: Expr, domain: tuple[Value, ...]) -> Expr:
    """Return the condition that a key is in its domain: between the ends of a range, or one of a list."""
    values = [value for value in domain if value is not None]
    constants = [Constant(value, key.type) for value in values]
    if is_range(values):
        low, high = (Constant(end, key.type) for end in (min(values), max(values)))
        listed = [Call("and", (Call("at_most", (low, key)), Call("at_most", (key, high))))]
    else:
        listed = [Call("one_of", (key, *constants))] if values else []
    listed += [Call("is_null", (key,))] if None in domain else []
    return listed[0] if len(listed) == 1 else Call("or", tuple(listed))
