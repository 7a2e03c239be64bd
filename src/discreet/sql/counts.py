"""How many parts of each kind a query may have: counted in the syntax tree, before anything is resolved."""

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from discreet.sql.places import refuse
from discreet.sql.rows.walking import is_aggregate

MOST_AGGREGATES = 200  # different ones in one SELECT: a question has at most so many totals
MOST_COLUMNS = 500
MOST_TERMS = 100  # of GROUP BY, ORDER BY or PARTITION BY
MOST_QUERIES = 100
MOST_SOURCES = 100


def check_counts(query: exp.Expr) -> None:
    """Refuse a query with too many parts of one kind before any of them is resolved."""
    found: Counter[str] = Counter()
    for node in query.walk():
        for part, clause, count, most in _counted(node, found):
            if count > most:
                raise refuse(node, clause, f"at most {most:,} {part} are supported", "Split the query.")


def _counted(node: exp.Expr, found: Counter[str]) -> Iterator[tuple[str, str, int, int]]:
    """Give what is limited at a node: its name, the clause, how many there are, and how many there may be."""
    match node:
        case exp.Select():
            yield "columns in one SELECT list", "SELECT", len(node.expressions), MOST_COLUMNS
            yield "different aggregates in one SELECT", "SELECT", len(_aggregates(node)), MOST_AGGREGATES
            found["queries"] += 1
            yield "SELECTs in one query", "SELECT", found["queries"], MOST_QUERIES
        case exp.Group() | exp.Order():
            yield (
                "expressions",
                "GROUP BY" if isinstance(node, exp.Group) else "ORDER BY",
                len(_terms(node)),
                MOST_TERMS,
            )
        case exp.Table():
            found["sources"] += 1
            yield "tables in one query", "FROM", found["sources"], MOST_SOURCES
        case exp.Window():
            yield "expressions", "PARTITION BY", len(node.args.get("partition_by") or ()), MOST_TERMS
        case exp.With():
            yield "queries", "WITH", len(node.expressions), MOST_QUERIES


def _terms(node: exp.Expr) -> list[exp.Expr]:
    tuples = [each.unnest() for each in node.expressions]
    return [part for each in tuples for part in (each.expressions if isinstance(each, exp.Tuple) else [each])]


def _aggregates(select: exp.Select) -> set[exp.Expr]:
    """Return the different aggregates of one SELECT, without those of the queries in it."""
    around = select.walk(prune=lambda node: node is not select and (isinstance(node, exp.Query) or is_aggregate(node)))
    return {node for node in around if is_aggregate(node)}
