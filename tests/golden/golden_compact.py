"""A short text form of a query plan: the questions to the kernel, and the post-processing."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from sqlglot import exp

from discreet.estimate.planned_release import FrequencyFunction
from discreet.estimate.quantile_walk import QuantileTarget
from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import PublicGroups
from discreet.kernel.relation import (
    Derive,
    EachRow,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    ParentUnit,
    PerUnit,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, Sum
from discreet.query.syntax.resolved_query import (
    ResolvedSelect,
    ResolvedSetOperation,
    ResolvedTable,
    ValuesSource,
    WithQuery,
    columns_in,
    inner_queries,
    reference_of,
    rewrite,
)
from discreet.query.syntax.syntax_tree import NestedQuery

_MEASURED = {Count: "rows", Sum: "sums", CountUnits: "groups"}


def compact(draft):
    """Return a planned query as text."""
    lines = list(chain.from_iterable(_release(release) for release in draft.planned))
    around = [f"explain: {draft.parsed.explain}"] if draft.parsed.explain else []
    around += [f"within: {draft.parsed.within}"] if draft.parsed.within else []
    names = {key: release.name for key, release in draft.releases.items()}
    return "\n".join([*around, *lines, f"then {query_sql(draft.outer, names)}"])


def resolved_sql(query):
    """Return a resolved query as SQL, with the unique names of its sources."""
    return _syntax_tree(query, _Names({}, dict(_items(query)))).sql(dialect="postgres")


def query_sql(query, names):
    """Return a query over released tables as SQL; `names` has their names by their keys."""
    return _syntax_tree(query, _Names(names, {})).sql(dialect="postgres")


@dataclass(frozen=True)
class _Names:
    tables: dict  # names by keys
    items: dict  # sources by their unique names, to show these

    def column(self, node, released):
        """Return a column with the name of its source; None to write it as the query does."""
        if not isinstance(node, exp.Column) or not columns_in(node):
            return None
        reference = reference_of(node)
        if reference.source in self.items:
            return exp.column(self.items[reference.source].columns[reference.index], reference.source)
        return exp.column(node.this.copy(), released[reference.source]) if reference.source in released else None


def _items(query):
    for inner in inner_queries(query):
        yield from _items(inner)
    if isinstance(query, ResolvedSelect):
        yield from ((item.ref, item) for item in query.sources)


def _syntax_tree(query, names):
    released = {}

    def replacement(node):
        if isinstance(node, NestedQuery):
            inner = _syntax_tree(node.query, names)
            return inner if isinstance(node.parent, exp.Exists) else exp.Subquery(this=inner)
        return names.column(node, released)

    def written(node):
        return None if node is None else rewrite(node, replacement)

    if isinstance(query, ResolvedSetOperation):
        sides = {"this": _syntax_tree(query.left, names), "expression": _syntax_tree(query.right, names)}
        tree = type(query.node)(**sides, distinct=query.node.args.get("distinct"))
    else:
        tables = [item for item in query.sources if isinstance(item.source, ResolvedTable)]
        released |= {item.ref: names.tables[item.source.key] for item in tables if item.source.key in names.tables}
        sources = [_source_tree(item, names) for item in query.sources]
        joins = [
            exp.Join(this=node, side=item.join.side, on=written(item.join.on))
            for item, node in zip(query.sources[1:], sources[1:], strict=True)
        ]
        clauses = {"where": exp.Where, "having": exp.Having, "qualify": exp.Qualify}
        clauses = {name: kind(this=written(node)) for name, kind in clauses.items() if (node := getattr(query, name))}
        if query.group:
            sets = [exp.Tuple(expressions=[written(term) for term in terms]) for terms in query.group.sets]
            keys = [exp.GroupingSets(expressions=sets)] if query.group.has_sets else sets[0].expressions
            clauses["group"] = exp.Group(expressions=keys)
        tree = exp.Select(
            expressions=[
                exp.alias_(written(item.node), exp.to_identifier(item.name, quoted=True)) for item in query.items
            ],
            distinct=exp.Distinct() if query.distinct else None,
            from_=exp.From(this=sources[0]) if sources else None,
            joins=joins,
            **clauses,
        )
    if query.order:
        tree.set("order", exp.Order(expressions=[_ordered(term, written(term.expression)) for term in query.order]))
    for name in ("limit", "offset"):
        if (clause := getattr(query, name)) is not None:
            tree.set(name, clause.copy())
    ctes = [exp.CTE(this=_syntax_tree(each.query, names), alias=_alias(each.alias)) for each in query.with_queries]
    if ctes:
        tree.set("with_", exp.With(expressions=ctes))
    return tree


def _ordered(term, node):
    directions = {name: term.node.args.get(name) for name in ("desc", "nulls_first")}
    return exp.Ordered(this=exp.Literal.number(term.index + 1) if node is None else node, **directions)


def _alias(name):
    return exp.TableAlias(this=exp.to_identifier(name))


def _source_tree(item, names):
    name = item.ref if item.ref in names.items else item.alias
    match item.source:
        case ResolvedTable(key):
            table = names.tables.get(key, key)
        case WithQuery(_, table):
            pass
        case ValuesSource(rows):
            return exp.Values(expressions=[exp.Tuple(expressions=list(row)) for row in rows], alias=_alias(name))
        case _:
            return exp.Subquery(this=_syntax_tree(item.source, names), alias=_alias(name) if name else None)
    return exp.Table(this=exp.to_identifier(table), alias=_alias(name) if name and name != table else None)


def _release(release):
    question = release.question
    yield f"{release.name} from"
    yield from (f"  {line}" for line in _relation(question.relation))
    if release.histogram:
        yield from _histogram(release.histogram)
        return
    for place, (name, expr) in enumerate(question.by):
        public = isinstance(question.groups, PublicGroups)
        values = _values(question.groups.domains[place]) if public else "partition selection"
        yield f"  by {name} = {_expr(expr)}: {values}"
    bounds = question.bounds
    clipped = "clipped" if question.needs_clipping else "not clipped"
    l0 = ", l0 clipped" if question.needs_l0_clipping else ""
    ball = f", {bounds.norm.value} norm" if question.needs_clipping else ""
    cap = ", rows capped" if bounds.cap_rows else ""
    automatic = ", chosen automatically" if release.automatic else ""
    yield f"  {clipped}, groups {bounds.groups}, rows {bounds.rows}{l0}{ball}{cap}{automatic}"
    shares = [f"weight {weight}" for weight in release.weights]
    for place, (total, share) in enumerate(zip(question.totals, shares, strict=True)):
        yield f"  t{place} = {_total(total)}, size {_size(question, total)}, {share}"
    for measure in release.measures:
        yield f"  {measure.name} = {_estimator(measure.estimator)}: {measure.label}"
    yield from (f"  {note}" for note in (release.left_out, *release.bounds_notes) if note)


def _histogram(histogram):
    lows = ", ".join(f"{low:.4g}" for low in histogram.lows[:3])
    counted = f" where {_expr(histogram.measured.expr)} is not NULL" if histogram.measured.expr else ""
    yield f"  units by the norm of their {_MEASURED[type(histogram.measured)]}{counted}"
    yield f"  {len(histogram.lows)} buckets from {lows}, … {histogram.lows[-1]:.4g}; {histogram.share} of the cost"
    for target in histogram.targets:
        yield f"  about {target.release}, radius {'to be chosen' if target.radius is None else f'{target.radius:.4g}'}"


def _values(values):
    shown = [str(value) for value in values]
    return ", ".join(shown) if len(shown) <= 8 else f"{', '.join(shown[:3])}, … {shown[-1]} ({len(shown)})"


def _relation(relation, depth=0):
    indent, below = "  " * depth, depth + 1
    match relation:
        case Scan(table, _, owner):
            yield f"{indent}{table} of {_owner(owner)}"
        case Where(source, condition):
            yield f"{indent}where {_expr(condition)}"
            yield from _relation(source, below)
        case Derive(source, columns):
            yield f"{indent}derive {_named(columns)}"
            yield from _relation(source, below)
        case JoinPublic(source, table, equal, also, keep, fanout):
            on = ", ".join(f"{ours} = {theirs}" for ours, theirs in equal)
            also = f" and {_expr(also)}" if also else ""
            kept = f" where {_expr(table.condition)}" if table.condition else ""
            what = f"{table.table} ({_named(table.columns)}){kept}"
            yield f"{indent}{keep.value} join {what} on {on or 'anything'}{also}, fanout {fanout}"
            yield from _relation(source, below)
        case JoinOnUnit(left, right, also, keep, most):
            also = f" and {_expr(also)}" if also else ""
            yield f"{indent}{keep.value} join on the unit{also}, most {most}"
            yield from _relation(left, below)
            yield from _relation(right, below)
        case SemiJoinOnUnit(source, other, has):
            yield f"{indent}units with {'a' if has is SemiJoinKind.SEMI else 'no'} row in the second"
            yield from _relation(source, below)
            yield from _relation(other, below)
        case PerUnit(source, keys, values):
            folds = ", ".join(f"{name} = {_unit_aggregate(aggregate)}" for name, aggregate in values)
            yield f"{indent}per unit{' and ' if keys else ''}{_named(keys)}: {folds}"
            yield from _relation(source, below)
        case NumberRows(source, name, keys, order, last):
            by = "".join(f", {_expr(key)}" for key in keys)
            ordered = ", ".join(f"{_expr(expr)}{' desc' * falls}" for expr, falls in order)
            yield f"{indent}{name} = number of a row by unit{by}{f', up to {last}' if last else ''}: {ordered}"
            yield from _relation(source, below)
        case Union(left, right):
            yield f"{indent}union"
            yield from _relation(left, below)
            yield from _relation(right, below)


def _owner(owner):
    match owner:
        case UnitKey(unit):
            return ", ".join(map(_expr, unit))
        case EachRow():
            return "each row"
        case ParentUnit(on, parent, key):
            return f"{on} → {parent.table}.{key}, of {_owner(parent.owner)}"


def _named(columns):
    return ", ".join(
        name if isinstance(e, Column) and e.name == name else f"{name} = {_expr(e)}" for name, e in columns
    )


def _expr(expr):
    match expr:
        case Column(name):
            return name
        case Constant(value):
            return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
        case Call(op, args):
            return f"{op}({', '.join(map(_expr, args))})"


def _unit_aggregate(aggregate):
    grid = f" by {aggregate.grid.step}" if aggregate.grid else ""
    return f"{aggregate.function.value}({_expr(aggregate.expr) if aggregate.expr else ''}{grid})"


def _size(question, total):
    """Return by how much a unit moves one group of a total; for the levels of a tree, all of them together."""
    sensitivity = question.sensitivity_of(total)
    several_levels = isinstance(total, HistogramTree) and total.depth > 1
    return sensitivity.l1 if several_levels else sensitivity.l2_squared // sensitivity.l1


def _total(total):
    match total:
        case Count(expr):
            return f"count({_expr(expr) if expr else '*'})"
        case CountUnits(expr):
            return f"count_units({_expr(expr) if expr else '*'})"
        case Sum(expr, grid, power, shift):
            centre = f" around {_number(grid.offset * grid.step)}" if grid.offset else ""
            squared = f" squared less {shift}" if power == 2 else ""
            return f"sum({_expr(expr)}{squared}, {_ends(grid)}{centre})"
        case CountDistinct(expr):
            return f"count_distinct({_expr(expr)})"
        case HistogramTree(expr, places, fan, depth):
            listed = _ends(places) if isinstance(places, Grid) else _values(places)
            return f"histogram({_expr(expr)}, {listed}, {fan} to the {depth})"


def _ends(grid):
    return f"{_number(grid.low)} to {_number(grid.high)} by {_number(grid.step)}"


def _number(value):
    return str(value) if isinstance(value, Fraction) and value.denominator < 10**6 else f"{float(value):.6g}"


def _estimator(estimator):
    fields = [f"{name}={_field(value)}" for name, value in vars(estimator).items()]
    return f"{type(estimator).__name__}({', '.join(fields)})"


def _field(value):
    match value:
        case Fraction():
            return _number(value)
        case QuantileTarget(share):
            return _number(share)
        case FrequencyFunction(shown, most):
            return f"{shown.name.lower()} {most}"
        case Type():
            return value.name.lower()
    return getattr(value, "value", value)
