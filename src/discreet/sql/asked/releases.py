"""A SELECT with an aggregate over private rows: one question to the kernel, and a SELECT over its answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Discover, Public, Question, Total
from discreet.sql.asked.aggregates import Aggregate, aggregate
from discreet.sql.asked.chosen import Choice
from discreet.sql.asked.groups import Grouped, Grouping, grouping
from discreet.sql.asked.limits import limit_for, may_touch
from discreet.sql.asked.rewriting import Rewriting
from discreet.sql.asked.sentences import sentences
from discreet.sql.asked.totals import Totals
from discreet.sql.places import refuse
from discreet.sql.plan import Measure, Part
from discreet.sql.rows.outputs import Output
from discreet.sql.rows.scope import Released, same_name
from discreet.sql.world import World

_MARK = "released"  # on columns that wait for the name of their table
Inner = Callable[[exp.Query], exp.Query]


def release(read: Grouped, world: World, inner: Inner) -> Released:
    """Turn a SELECT into one that reads a released table; HAVING, ORDER BY and all else work on noisy numbers."""
    asked: dict[Aggregate | Choice, str] = {}
    names: dict[Aggregate | Choice, str] = {}

    def measure(node: exp.Expr) -> str:
        found = aggregate(node, read.rows)
        asked.setdefault(found, _label(node))
        return names.setdefault(found, f"m{len(names)}")

    above = _above(read.select, read.listed, Rewriting(read, "k{}".format, measure, inner, _column))
    if not asked and not read.keys:
        cause = "constants alone ask nothing of the rows"
        raise refuse(read.select, "SELECT", cause, "Add an aggregate such as COUNT(*), or group by a column.")
    part = world.releases.add(_part(read.select, asked, grouping(read.rows, read.keys, world), world))
    above.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(part.name))))
    for column in above.find_all(exp.Column):
        if column.meta.pop(_MARK, None):
            column.set("table", exp.to_identifier(part.name))
    return Released(above)


def _label(node: exp.Expr) -> str:
    """Return how a query writes an aggregate; sqlglot would write a median otherwise."""
    if isinstance(node, exp.Median):
        return f"MEDIAN({node.this.sql(dialect='postgres')})"
    return node.sql(dialect="postgres")


def _column(name: str) -> exp.Column:
    column = exp.Column(this=exp.to_identifier(name))
    column.meta[_MARK] = True
    return column


def _above(select: exp.Select, listed: Sequence[Output], rewriting: Rewriting) -> exp.Select:
    """Return the SELECT over the released table, without its FROM."""
    above = exp.Select(
        expressions=[
            exp.alias_(rewriting.shown(each.node, "SELECT"), exp.to_identifier(each.name, quoted=True))
            for each in listed
        ]
    )
    if select.args.get("distinct") and select.args.get("group"):
        above.set("distinct", exp.Distinct())
    if (having := select.args.get("having")) is not None:
        above.set("where", exp.Where(this=rewriting.shown(rewriting.aliased(having.this), "HAVING")))
    if (qualify := select.args.get("qualify")) is not None:
        above.set("qualify", exp.Qualify(this=rewriting.shown(rewriting.aliased(qualify.this), "QUALIFY")))
    if (order := select.args.get("order")) is not None:
        terms = [_ordered(each, listed, rewriting) for each in order.expressions]
        above.set("order", exp.Order(expressions=terms))
    for name in ("limit", "offset", "with_"):
        if (found := select.args.get(name)) is not None:
            above.set(name, found.copy())
    if windows := select.args.get("windows"):
        above.set("windows", [rewriting.shown(window, "WINDOW") for window in windows])
    return above


def _ordered(ordered: exp.Expr, listed: Sequence[Output], rewriting: Rewriting) -> exp.Expr:
    """Rewrite a term of ORDER BY: a bare name is first of all a column of the result, and a number its place."""
    term, copy = ordered.this.unnest(), ordered.copy()
    if isinstance(term, exp.Literal) and not term.is_string:
        return copy
    if isinstance(term, exp.Column) and not term.table:
        named = [output.name for output in listed if same_name(term.this, output.name)]
        if len(named) == 1:
            copy.set("this", exp.Column(this=exp.to_identifier(named[0], quoted=True)))
            return copy
    copy.set("this", rewriting.shown(rewriting.aliased(ordered.this), "ORDER BY"))
    return copy


def _part(select: exp.Select, asked: dict[Aggregate | Choice, str], grouped: Grouping, world: World) -> Part:
    relation = grouped.rows.relation
    limit = limit_for(grouped, list(asked), world, select)

    def fits(total: Total) -> bool:
        try:
            Question(relation, (), Public(()), limit, (total,))
        except ValueError:
            return False
        return True

    noise = Laplace if world.policy.budget.rho is None else Gaussian
    totals = Totals(grouped.rows.by_column(), fits, noise, discovers=isinstance(grouped.groups, Discover))
    try:
        recipes = totals.recipes(list(asked))
        every, weights = totals.all()
        question = Question(relation, grouped.by, grouped.groups, limit, every)
        touched = may_touch(question, grouped)
        report = world.policy.spending.bounds_report if touched else Fraction(0)
        if touched and report:
            question = replace(question, totals=(*every, touched))
    except ValueError as error:
        way_out = "Ask for less at once, or for numbers of a smaller range."
        raise refuse(select, "SELECT", f"the question cannot be computed exactly: {error}", way_out) from None
    measures = tuple(
        Measure(f"m{place}", label, recipe)
        for place, (label, recipe) in enumerate(zip(asked.values(), recipes, strict=True))
    )
    keys = tuple(name for name, _ in grouped.by)
    return Part("", question, keys, measures, weights, sentences(question, asked, grouped.rows, world), report)
