"""One form for questions that mean the same: whatever the order of keys, aggregates and conditions, and the aliases.

Answers are found again by the fingerprint of the kernel's question, so two texts share an answer if they become equal
questions. Keys, totals, derived columns and the operands of commutative operations are sorted, and columns that a
query computes get names of our own. Row order and column names are the analyst's: see `Part.keys` and `Part.order`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.kernel.expr import Call, Column, Constant, Expr
from discreet.kernel.question import Discover, Public, Question, Total, Touched
from discreet.kernel.relation import (
    Derive,
    JoinOwn,
    JoinPublic,
    Named,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiOwn,
    Union,
    Where,
    tables_of,
)
from discreet.kernel.release import REFINABLE
from discreet.sql.plan import Measure, Part, moved
from discreet.sql.rows.naming import fresh, renamed

Names = Mapping[str, str]  # of a relation's columns: what each is called in the canonical form
_PAIRS = ("equal", "add", "multiply", "least", "greatest")  # of these the operands may change places
_LISTS = ("and", "or")  # and of these also the grouping


def canonical(part: Part) -> Part:
    """Return the same release with its question in canonical form; as it is if that would be too large."""
    try:
        return _canonical(part)
    except ValueError:  # conditions of several queries together may be longer than the kernel takes
        return part


def _canonical(part: Part) -> Part:
    question = part.question
    tables = tables_of(question.relation)
    stored = [column.name for table in tables if isinstance(table, Scan) for column in table.columns]
    relation, names = _Namer(stored).relation(question.relation, ())
    keys = [_expr(expr, names) for _, expr in question.by]
    order = sorted(range(len(keys)), key=lambda place: _rank(keys[place]))
    groups = question.groups
    if isinstance(groups, Public):
        groups = Public(tuple(groups.domains[place] for place in order))
    totals, weights, places = _totals(part, names)
    by = tuple((f"k{place}", keys[old]) for place, old in enumerate(order))
    return replace(
        part,
        question=Question(relation, by, groups, question.limit, totals),
        keys=tuple(part.keys[place] for place in order),
        order=tuple(order.index(place) for place in range(len(order))),
        measures=tuple(Measure(each.name, each.label, moved(each.recipe, places)) for each in part.measures),
        weights=weights,
    )


def _totals(part: Part, names: Names) -> tuple[tuple[Total, ...], tuple[Fraction, ...], list[int]]:
    """Return the totals, equal ones once, with their weights, and where each total went.

    Numbers with a noise of their own are found again one by one; only beside a tree of cells their order matters. The
    first total of groups that are discovered decides about them, and a report comes last.
    """
    made = [_total(total, names) for total in part.question.totals]
    first = 1 if isinstance(part.question.groups, Discover) else 0
    shown = [total for total in made[first:] if not isinstance(total, Touched)]
    last = [total for total in made if isinstance(total, Touched)]
    if not all(isinstance(total, REFINABLE) for total in made):
        shown.sort(key=repr)
    every = list(dict.fromkeys([*made[:first], *shown, *last]))
    places = [every.index(total) for total in made]
    weights = [Fraction(0)] * (len(every) - len(last))
    for place, weight in zip(places, part.weights, strict=False):
        weights[place] += weight
    return tuple(every), tuple(weights), places


def _total(total: Total, names: Names) -> Total:
    return total if total.expr is None else replace(total, expr=_expr(total.expr, names))


def _expr(expr: Expr, names: Names) -> Expr:
    return _ordered(renamed(expr, names))


def _ordered(expr: Expr) -> Expr:
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(_ordered, expr.args))
    if expr.op in _LISTS:
        parts = (part for arg in args for part in (arg.args if isinstance(arg, Call) and arg.op == expr.op else (arg,)))
        args = _sorted(set(parts))
        return args[0] if len(args) == 1 else Call(expr.op, args)
    if expr.op in _PAIRS:
        args = _sorted(args)
    elif expr.op == "one_of":
        args = (args[0], *_sorted(set(args[1:])))
    return Call(expr.op, args)


def _sorted(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(exprs, key=_rank))


def _rank(expr: Expr) -> tuple[bool, int, str]:
    """Order what is cheap before what is not, and constants behind everything else."""
    return isinstance(expr, Constant), expr.weight, repr(expr)


class _Namer:
    """Gives a relation's columns names that do not depend on aliases; `stored` names are those of the tables."""

    def __init__(self, stored: Collection[str]) -> None:
        self._stored = stored

    def relation(self, relation: Relation, taken: Collection[str]) -> tuple[Relation, Names]:
        """Return a relation in canonical form and what its columns are called now: nothing that is `taken`."""
        how: dict[type, Callable[[Any, Collection[str]], tuple[Relation, Names]]] = {
            Scan: self._apart,
            **dict.fromkeys((Where, SemiOwn), self._filtered),
            Derive: self._derived,
            PerUnit: self._per_unit,
            JoinPublic: self._with_public,
            JoinOwn: self._with_own,
            Union: self._union,
        }
        return how[type(relation)](relation, taken)

    def _apart(self, relation: Relation, taken: Collection[str]) -> tuple[Relation, Names]:
        schema = relation.shape.schema
        used = {name.lower() for name in taken}
        if not any(name.lower() in used for name in schema):
            return relation, {name: name for name in schema}
        names: dict[str, str] = {}
        for name in schema:
            names[name] = fresh(name, [*taken, *names.values()])
        return Derive(relation, tuple((names[name], Column(name, kind)) for name, kind in schema.items())), names

    def _filtered(self, relation: Where | SemiOwn, taken: Collection[str]) -> tuple[Relation, Names]:
        """Put all conditions into one, and units that must have other rows below it: none depends on the others."""
        source: Relation = relation
        conditions: list[Expr] = []
        others = []
        while isinstance(source, Where | SemiOwn):
            if isinstance(source, Where):
                conditions.append(source.condition)
            else:
                others.append((self.relation(source.other, ())[0], source.has))
            source = source.source
        found, names = self.relation(source, taken)
        for other, has in sorted(set(others), key=repr):
            found = SemiOwn(found, other, has)
        if conditions:
            condition = conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))
            found = Where(found, _expr(condition, names))
        return found, names

    def _derived(self, relation: Derive, taken: Collection[str]) -> tuple[Relation, Names]:
        source, inner = self.relation(relation.source, ())
        made = {name: _expr(expr, inner) for name, expr in relation.columns}
        columns = self._named(made.values(), taken)
        return Derive(source, _pairs(columns)), {name: columns[expr] for name, expr in made.items()}

    def _named(self, exprs: Iterable[Expr], taken: Collection[str]) -> dict[Expr, str]:
        """Return a name for each different expression; a column keeps its own if it can."""
        names: dict[Expr, str] = {}
        for expr in _sorted(set(exprs)):
            # A range that the owner declared stands around a column without another name.
            bare = expr.args[0] if isinstance(expr, Call) and expr.op == "inside" else expr
            used = [*taken, *names.values()]
            plain = bare.name if isinstance(bare, Column) else None
            names[expr] = fresh(plain, used) if plain else self._made("c", used)
        return names

    def _made(self, word: str, used: Collection[str]) -> str:
        known = {name.lower() for name in (*used, *self._stored)}
        return next(name for number in range(len(known) + 1) if (name := f"{word}{number}") not in known)

    def _per_unit(self, relation: PerUnit, taken: Collection[str]) -> tuple[Relation, Names]:
        source, inner = self.relation(relation.source, ())
        keys = {name: _expr(expr, inner) for name, expr in relation.keys}
        values = {
            name: folded if folded.expr is None else replace(folded, expr=_expr(folded.expr, inner))
            for name, folded in relation.values
        }
        used = list(taken)
        by = {expr: self._next("k", used) for expr in _sorted(set(keys.values()))}
        folds = {folded: self._next("f", used) for folded in sorted(set(values.values()), key=repr)}
        made = PerUnit(source, _pairs(by), tuple((name, folded) for folded, name in folds.items()))
        return made, {name: by[expr] for name, expr in keys.items()} | {
            name: folds[folded] for name, folded in values.items()
        }

    def _next(self, word: str, used: list[str]) -> str:
        used.append(self._made(word, used))
        return used[-1]

    def _with_public(self, relation: JoinPublic, taken: Collection[str]) -> tuple[Relation, Names]:
        source, ours = self.relation(relation.source, taken)
        used = [*taken, *source.shape.schema]
        theirs: dict[str, str] = {}
        for name, column in relation.table.columns:  # as they are declared
            theirs[name] = fresh(column.name, used)
            used.append(theirs[name])
        table = relation.table
        condition = None if table.condition is None else _expr(table.condition, theirs)
        columns = tuple((theirs[name], column) for name, column in table.columns)
        names = {**ours, **theirs}
        also = None if relation.also is None else _expr(relation.also, names)
        equal = tuple(sorted({(ours[left], theirs[right]) for left, right in relation.equal}))
        public = PublicTable(table.table, columns, condition)
        return JoinPublic(source, public, equal, also, relation.keep, relation.fanout), names

    def _with_own(self, relation: JoinOwn, taken: Collection[str]) -> tuple[Relation, Names]:
        left, ours = self.relation(relation.left, taken)
        right, theirs = self.relation(relation.right, [*taken, *left.shape.schema])
        names = {**ours, **theirs}
        also = None if relation.also is None else _expr(relation.also, names)
        return JoinOwn(left, right, also, relation.keep, relation.most), names

    def _union(self, relation: Union, taken: Collection[str]) -> tuple[Relation, Names]:
        """Name the columns of both sides alike, in the order of what they are computed from."""
        sides = [self._columns(side) for side in (relation.left, relation.right)]
        order = sorted(relation.left.shape.schema, key=lambda name: [_rank(columns[name]) for _, columns in sides])
        used = list(taken)
        names = {name: self._next("c", used) for name in order}
        left, right = (Derive(source, _renamed(columns, names)) for source, columns in sides)
        return Union(left, right), names

    def _columns(self, side: Relation) -> tuple[Relation, dict[str, Expr]]:
        if isinstance(side, Derive):
            source, inner = self.relation(side.source, ())
            return source, {name: _expr(expr, inner) for name, expr in side.columns}
        source, names = self.relation(side, ())
        return source, {name: Column(names[name], kind) for name, kind in side.shape.schema.items()}


def _pairs(named: Mapping[Expr, str]) -> Named:
    return tuple((name, expr) for expr, name in named.items())


def _renamed(columns: Mapping[str, Expr], names: Mapping[str, str]) -> Named:
    return tuple((names[name], columns[name]) for name in names)
