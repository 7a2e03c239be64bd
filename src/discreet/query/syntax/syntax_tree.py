"""Syntax trees: walks, source positions, refusals that name them, and limits on the number of parts."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, islice
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from discreet.kernel.errors import Refused
from discreet.policy.problems import shorten

if TYPE_CHECKING:
    from discreet.query.syntax.resolved_query import ResolvedQuery

# Aggregates without a class in sqlglot.
_AGGREGATE_NAMES = frozenset(
    {
        *(
            "approx_count_distinct",
            "approx_quantile",
            "approx_top_k",
            "arg_max",
            "arg_min",
            "array_agg",
            "bit_and",
            "bit_or",
        ),
        *("bit_xor", "bool_and", "bool_or", "corr", "count_if", "covar_pop", "covar_samp", "entropy", "every", "favg"),
        *(
            "first",
            "fsum",
            "geomean",
            "histogram",
            "json_agg",
            "jsonb_agg",
            "kurtosis",
            "last",
            "list",
            "listagg",
            "mad",
        ),
        *("max_by", "median", "min_by", "mode", "percentile_cont", "percentile_disc", "product", "quantile"),
        *("quantile_cont", "quantile_disc", "regr_intercept", "regr_r2", "regr_slope", "reservoir_quantile", "sem"),
        *("skewness", "string_agg", "sumkahan", "top_k"),
    }
)


NO_AGGREGATE = "aggregate functions are not allowed here", "Aggregate per unit in a subquery first."
NO_SUBQUERY = (
    "private rows cannot be combined with the result of a subquery",
    "Run the inner query first, then write its result as a constant.",
)
WINDOW_HINT = (
    "Aggregate first, then use window functions on the result. For the first rows of each unit, write SELECT *, "
    "ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …) AS n in a subquery, and WHERE n = 1 around it."
)


class NestedQuery(exp.Expression):
    """A subquery in an expression; `query` is a ResolvedQuery."""

    arg_types = {"query": True}  # noqa: RUF012 - as in sqlglot

    @property
    def query(self) -> "ResolvedQuery":
        """The query."""
        query: ResolvedQuery = self.args["query"]
        return query

    def with_query(self, query: "ResolvedQuery") -> "NestedQuery":
        """Return the subquery with another query in its place."""
        copy = NestedQuery(query=query)
        copy.meta.update(self.meta)
        return copy


def check_row_wise(
    node: exp.Expr,
    clause: str,
    aggregates: tuple[str, str] = NO_AGGREGATE,
    subqueries: tuple[str, str] = NO_SUBQUERY,
) -> None:
    """Refuse an expression that needs more than one private row; causes and hints are given in pairs."""
    windows = "window functions are not allowed on private rows", WINDOW_HINT
    for find, (cause, hint) in (
        (first_aggregate, aggregates),
        (first_window, windows),
        (first_subquery, subqueries),
    ):
        if (inner := find(node)) is not None:
            raise refuse(inner, clause, cause, hint)


def surplus_arguments(node: exp.Expr, allowed: str) -> list[str]:
    """Return the arguments of a node that are given, but not among those that are allowed."""
    return [name for name, given in node.args.items() if given and name not in allowed.split()]


def nodes_without_subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield all nodes of an expression, without entering subqueries."""
    yield from node.walk(prune=lambda each: isinstance(each, exp.Query))


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate call, with its FILTER or WITHIN GROUP."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _AGGREGATE_NAMES
    return isinstance(node, exp.AggFunc)


def first_subquery(node: exp.Expr) -> exp.Expr | None:
    """Return the first subquery of an expression."""
    return next(
        (part for part in nodes_without_subqueries(node) if isinstance(part, exp.Query | NestedQuery | exp.Exists)),
        None,
    )


def first_window(node: exp.Expr) -> exp.Expr | None:
    """Return the first window function of an expression."""
    return next((part for part in nodes_without_subqueries(node) if isinstance(part, exp.Window)), None)


def first_aggregate(node: exp.Expr) -> exp.Expr | None:
    """Return the first aggregate that is not itself a window function."""
    if isinstance(node, exp.Query):
        return None
    if isinstance(node, exp.Window):
        operands = window_operands(node)
        return next((aggregate for operand in operands if (aggregate := first_aggregate(operand)) is not None), None)
    if is_aggregate(node):
        return node
    return next(
        (aggregate for child in node.iter_expressions() if (aggregate := first_aggregate(child)) is not None), None
    )


def window_call(window: exp.Window) -> list[exp.Expr]:
    """Return the nodes of a window function's call: the function, and the FILTER or IGNORE NULLS around it."""
    call = [window.this]
    while isinstance(call[-1], exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        call.append(call[-1].this)
    return call


def window_operands(window: exp.Window) -> list[exp.Expr]:
    """Return the arguments of a window function, and all expressions of its clauses."""
    call = window_call(window)
    children = [child for node in (call[-1], window, *call[:-1]) for child in node.iter_expressions()]
    return [child for child in children if not any(child is each for each in call)]


MAX_AGGREGATES = 200  # distinct ones in one SELECT: the kernel's limit on totals
MAX_COLUMNS = 500
MAX_TERMS = 100  # in GROUP BY, ORDER BY or PARTITION BY
MAX_QUERIES = 100
MAX_SOURCES = 100


def check_counts(query: exp.Expr) -> None:
    """Refuse a query with too many parts of one kind before any of them is resolved."""
    seen: Counter[str] = Counter()
    for node in query.walk():
        for kind, clause, count, limit in _limited_counts(node, seen):
            if count > limit:
                raise refuse(node, clause, f"at most {limit:,} {kind} are supported", "Split the query.")


def _limited_counts(node: exp.Expr, seen: Counter[str]) -> Iterator[tuple[str, str, int, int]]:
    """Yield name, clause, count and limit for everything that is limited at a node."""
    match node:
        case exp.Select():
            yield "columns in one SELECT list", "SELECT", len(node.expressions), MAX_COLUMNS
            yield "different aggregates in one SELECT", "SELECT", len(_distinct_aggregates(node)), MAX_AGGREGATES
            seen["queries"] += 1
            yield "SELECTs in one query", "SELECT", seen["queries"], MAX_QUERIES
        case exp.Group() | exp.Order():
            yield (
                "expressions",
                "GROUP BY" if isinstance(node, exp.Group) else "ORDER BY",
                sum(len(flat_terms(term)) for term in node.expressions),
                MAX_TERMS,
            )
        case exp.Table():
            seen["sources"] += 1
            yield "tables in one query", "FROM", seen["sources"], MAX_SOURCES
        case exp.Window():
            yield "expressions", "PARTITION BY", len(node.args.get("partition_by") or ()), MAX_TERMS
        case exp.With():
            yield "queries", "WITH", len(node.expressions), MAX_QUERIES


def _distinct_aggregates(select: exp.Select) -> set[exp.Expr]:
    """Return the distinct aggregates of one SELECT, without those of subqueries."""
    around = select.walk(prune=lambda node: node is not select and (isinstance(node, exp.Query) or is_aggregate(node)))
    return {node for node in around if is_aggregate(node)}


SET_NODES = (exp.Rollup, exp.Cube, exp.GroupingSets)
_MAX_GROUPING_SETS = 64


def grouping_sets(group: exp.Expr) -> list[list[exp.Expr]]:
    """Return the terms of each grouping set; a plain GROUP BY is one set.

    >>> from sqlglot import parse_one
    >>> group = parse_one("SELECT 1 FROM t GROUP BY a, ROLLUP (b, c)", read="postgres").args["group"]
    >>> [[term.sql() for term in terms] for terms in grouping_sets(group)]
    [['a', 'b', 'c'], ['a', 'b'], ['a']]
    """
    sets: list[list[exp.Expr]] = [[]]
    for element in group.expressions:
        wider = _element_sets(element)
        if len(sets) * len(wider) > _MAX_GROUPING_SETS:
            raise _too_many_sets(group)
        sets = [[*one, *other] for one in sets for other in wider]
    return sets


def _element_sets(node: exp.Expr) -> list[list[exp.Expr]]:
    if not isinstance(node, SET_NODES):
        return [flat_terms(node)]
    if isinstance(node, exp.GroupingSets):
        return [terms for element in node.expressions for terms in _element_sets(element)]
    parts = [flat_terms(element) for element in node.expressions]
    if len(parts) > _MAX_GROUPING_SETS or (isinstance(node, exp.Cube) and 2 ** len(parts) > _MAX_GROUPING_SETS):
        raise _too_many_sets(node)
    if isinstance(node, exp.Rollup):
        chosen = [parts[:length] for length in range(len(parts), -1, -1)]
    else:
        chosen = [list(some) for length in range(len(parts), -1, -1) for some in combinations(parts, length)]
    return [[term for part in some for term in part] for some in chosen]


def _too_many_sets(node: exp.Expr) -> Refused:
    cause = f"at most {_MAX_GROUPING_SETS} grouping sets are supported"
    return refuse(node, "GROUP BY", cause, "List those that you need with GROUPING SETS.")


def flat_terms(node: exp.Expr) -> list[exp.Expr]:
    """Return the terms of a tuple, or the one term."""
    bare = node.unnest()
    if not isinstance(bare, exp.Tuple):
        return [bare]
    return [part for expression in bare.expressions for part in flat_terms(expression)]


_MAX_NODES_SHOWN = 100  # nodes; a message shows 60 characters
_MAX_SQL_SHOWN = 40  # characters


def line_of(node: exp.Expr) -> str:
    r"""Return the line on which a part of the query begins, as "line 3".

    >>> from sqlglot import parse_one
    >>> line_of(parse_one("SELECT a,\n  b + 1", read="postgres").selects[1])
    'line 2'
    """
    return f"line {line_number(node)}"


def line_number(node: exp.Expr) -> int:
    """Return the line on which a part of the query begins."""
    around: exp.Expr | None = node
    while around is not None:  # NULL, for example, has no position
        lines = [part.meta["line"] for part in around.walk() if "line" in part.meta]
        if lines:
            return int(min(lines))
        around = around.parent
    return 1


def sql_of(node: exp.Expr) -> str:
    """Return the PostgreSQL text of a node, or its kind if it has none.

    A node that replaces a part of the query, such as a released column for its aggregate, gives the original text.

    >>> from sqlglot import parse_one
    >>> sql_of(parse_one("a+1"))
    'a + 1'
    """
    if next(islice(node.walk(), _MAX_NODES_SHOWN, None), None) is not None:
        return f"{node.key.upper()}(…)"
    try:
        restored = node.transform(
            lambda part: exp.var(part.meta["original_sql"]()) if "original_sql" in part.meta else part
        )
        return restored.sql("postgres", comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # noqa: BLE001 - some trees have no SQL, and this is for messages only
        return node.key.upper()


def short_sql(node: exp.Expr) -> str:
    """Return the SQL of an expression for a message, or … if it is long."""
    text = sql_of(node)
    return text if len(text) <= _MAX_SQL_SHOWN and text.isprintable() else "…"


def function_name(node: exp.Expr) -> str:
    """Return the name of a function or operator as the query wrote it."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return function_name(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    if isinstance(node, exp.Func):
        return str(
            node.meta.get("name") or ("STRING_AGG" if isinstance(node, exp.GroupConcat) else node.sql_name())
        ).upper()
    return quote_name(sql_of(node))


def quote_name(name: str) -> str:
    """Return a name in quotation marks, shortened to 40 characters."""
    return f'"{shorten(name)}"'


def refuse(node: exp.Expr | None, clause: str, cause: str, hint: str) -> Refused:
    r"""Return a refusal with line, clause, cause and hint.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT a FROM t\nGROUP BY a", read="postgres")
    >>> print(refuse(query.args["group"], "GROUP BY", '"a" has no declared keys', "Declare them with in = […]"))
    line 2, GROUP BY: "a" has no declared keys. Declare them with in = […].
    """
    where = ", ".join(word for word in (line_of(node) if node is not None else "", clause) if word)
    return Refused(
        f"{where}: {end_sentence(cause)} {end_sentence(hint)}"
        if where
        else f"{end_sentence(cause)} {end_sentence(hint)}"
    )


def end_sentence(text: str) -> str:
    """Return a text that ends with a full stop, unless it ends with other punctuation."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


Node = TypeVar("Node")


def build_or_refuse(make: Callable[[], Node], node: exp.Expr | None, clause: str) -> Node:
    """Return the result of `make`, or refuse with the kernel's message, which depends only on the query."""
    try:
        return make()
    except ValueError as error:
        raise refuse(node, clause, str(error), "Simplify it.") from None
