"""What a piece of a query contains, without looking into the queries inside it."""

from collections.abc import Iterator

from sqlglot import exp

# Aggregates that sqlglot has no class for.
_NAMED = frozenset(
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


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """Give every part of an expression, but nothing inside the queries that it contains."""
    yield from node.walk(prune=lambda each: isinstance(each, exp.Query))


def is_aggregate(node: exp.Expr) -> bool:
    """Tell whether a call is of an aggregate function; FILTER and WITHIN GROUP around it belong to it."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _NAMED
    return isinstance(node, exp.AggFunc)


def first_query(node: exp.Expr) -> exp.Expr | None:
    """Return the first query inside an expression."""
    return next((each for each in own_nodes(node) if isinstance(each, exp.Query | exp.Exists)), None)


def first_window(node: exp.Expr) -> exp.Expr | None:
    """Return the first window function of an expression."""
    return next((each for each in own_nodes(node) if isinstance(each, exp.Window)), None)


def first_aggregate(node: exp.Expr) -> exp.Expr | None:
    """Return the first aggregate that is not the function of a window itself."""
    if isinstance(node, exp.Query):
        return None
    if isinstance(node, exp.Window):
        parts = window_parts(node)
        return next((found for each in parts if (found := first_aggregate(each)) is not None), None)
    if is_aggregate(node):
        return node
    return next((found for each in node.iter_expressions() if (found := first_aggregate(each)) is not None), None)


def window_parts(window: exp.Window) -> list[exp.Expr]:
    """Return what a window function is applied to, and all that stands around it: everything but the function."""
    parts: list[exp.Expr] = [each for each in window.iter_expressions() if each is not window.this]
    inner = window.this
    while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parts += [each for each in inner.iter_expressions() if each is not inner.this]
        inner = inner.this
    return [*inner.iter_expressions(), *parts]
