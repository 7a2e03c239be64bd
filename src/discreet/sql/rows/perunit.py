"""GROUP BY the unit: one row for each unit, or for each unit and key, whose aggregates are exact and stay private."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.kernel.expr import Column, Expr
from discreet.kernel.fold import Fold, Folded
from discreet.kernel.relation import Derive, PerUnit
from discreet.sql.asked.groups import Grouped, Key, any_null, domain_in
from discreet.sql.asked.rewriting import Rewriting
from discreet.sql.building import built
from discreet.sql.places import refuse
from discreet.sql.rows.conditions import conjuncts, filtered
from discreet.sql.rows.folds import fold
from discreet.sql.rows.outputs import Output
from discreet.sql.rows.owners import is_settled, is_unique, links_of, never_null, part_of
from discreet.sql.rows.projection import check_rows, project
from discreet.sql.rows.scope import Known, Rows, View

_VIEW = "a unit's rows"  # the source that holds what was gathered, while the SELECT list is read


def is_per_unit(keys: Sequence[Key], rows: Rows) -> bool:
    """Tell whether every group belongs to one unit: the keys are its key, or lead to it."""
    unit, known = rows.relation.shape.unit, rows.by_column()
    if unit is None:
        return False
    parts = {part_of(key.bound.expr, known) for key in keys}
    return set(range(len(unit))) <= parts or any(links_of(key.bound.expr, known) for key in keys)


def per_unit(read: Grouped) -> Rows:
    """Return the rows of a SELECT that groups by the unit."""
    select, listed = read.select, read.listed
    check_rows(select)
    if select.args.get("distinct") and select.args.get("group"):
        way_out = "Leave out DISTINCT: there is one row for each unit and key already."
        raise refuse(select, "SELECT", "DISTINCT cannot stand beside GROUP BY the unit", way_out)
    gathered = _Gathering(read.keys, read.rows)
    rewriting = Rewriting(read, "k{}".format, gathered.value, _no_query, _column)
    shown = [Output(each.name, rewriting.shown(each.node, "SELECT"), each.given) for each in listed]
    having = select.args.get("having")
    kept = [rewriting.shown(node, "HAVING") for node in conjuncts(having and rewriting.aliased(having.this))]
    return project(shown, filtered(gathered.rows(), kept, "HAVING"))


def _no_query(query: exp.Query) -> exp.Query:
    cause = "a private row cannot be compared with the result of a query"
    raise refuse(query, "SELECT", cause, "Ask the inner query first, then write the number.")


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(_VIEW, quoted=True))


class _Gathering:
    """What is gathered of each unit, growing while the SELECT list is read."""

    def __init__(self, keys: Sequence[Key], rows: Rows) -> None:
        self._keys = keys
        self._rows = rows
        self._known = rows.by_column()
        self._values: dict[Folded, str] = {}
        self._made: dict[Expr, Known] = {}

    def value(self, node: exp.Expr) -> str:
        """Return the column that holds an aggregate."""
        found = fold(node, self._rows)
        names = {folded: self._values.setdefault(folded, f"f{len(self._values)}") for folded in found.parts}
        expr = found.made(tuple(Column(names[folded], folded.type) for folded in found.parts))
        if expr not in self._made:
            name = expr.name if isinstance(expr, Column) else f"a{len(self._made)}"
            low = found.least if found.fact.low is None else found.fact.low
            self._made[expr] = Known(
                name,
                replace(found.fact, expr=Column(name, expr.type), low=low),
                found.values,
                null=found.null,
                sure=found.sure,
                least=found.least,
            )
        return self._made[expr].name

    def rows(self) -> Rows:
        """Return one row for each unit and key."""
        keys, values, known = [], [], []
        for place, key in enumerate(self._keys):
            name, expr = f"k{place}", key.bound.expr
            part = part_of(expr, self._known)
            if part is None:
                keys.append((name, expr))
            else:
                values.append((name, Folded(Fold.LEAST, expr)))  # one value for each unit, and no further rows
            known.append(self._key(name, key, part))
        values += [(name, folded) for folded, name in self._values.items()]
        first = self._keys[0].node
        relation = built(lambda: PerUnit(self._rows.relation, tuple(keys), tuple(values)), first, "GROUP BY")
        made = [each for each in self._made.items() if not isinstance(each[0], Column)]
        if not made:
            return Rows(relation, (View(_VIEW, (*known, *self._made.values())),))
        kept = tuple((name, Column(name, kind)) for name, kind in relation.shape.schema.items())
        columns = (*kept, *((each.name, expr) for expr, each in made))
        derived = built(lambda: Derive(relation, columns), first, "GROUP BY")
        return Rows(derived, (View(_VIEW, (*known, *self._made.values())),))

    def _key(self, name: str, key: Key, part: int | None) -> Known:
        expr, known = key.bound.expr, self._known
        fact = replace(key.bound, expr=Column(name, expr.type), domain=None, unit=part)
        clock = known[expr.name].clock if isinstance(expr, Column) else None
        values = lambda: domain_in(expr, known)  # noqa: E731 - asked when it is needed
        sure = never_null(expr, known)
        return Known(
            name,
            fact,
            values,
            None,
            any_null(expr, known),
            links_of(expr, known),
            clock,
            sure,
            settled=is_settled(expr, known),
            listed=known[expr.name].listed if isinstance(expr, Column) else None,
            unique=is_unique(expr, known),
        )
