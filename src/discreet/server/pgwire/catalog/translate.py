"""Check a query on the catalog, and write it for DuckDB.

Every node must be of a kind that is listed, every function too, and every table is one of the catalog. What leaves here
is generated from the checked tree, so that no text of an analyst reaches an engine.
"""

from collections.abc import Mapping

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.query.syntax.syntax_tree import MAX_SOURCES
from discreet.server.pgwire.catalog.functions import (
    CONSTANTS,
    EMPTY_TABLES,
    KNOWN_FUNCTIONS,
    MACRO_OF,
    PRIVILEGES,
    STRUCTURE,
)
from discreet.server.pgwire.catalog.rewriting import (
    REG_TYPES,
    SCHEMAS,
    SESSION_NODES,
    CatalogSession,
    Translation,
    type_name,
    unsupported,
)

_SESSION_FUNCTIONS = (
    *("version", "current_setting", "pg_backend_pid", "pg_sleep", "set_config", "current_database", "current_catalog"),
    *("current_user", "session_user", "current_role", "current_schema", "current_schemas"),
)
_MAX_SERIES = 10_000
_NO_TITLE = "?column?"
_NAMES = {"group_concat": "string_agg", "logical_and": "bool_and", "logical_or": "bool_or"}


def is_catalog_query(tree: exp.Expr, own_tables: frozenset[str]) -> bool:
    """Return whether a query reads the catalog, or asks the server about itself; `own_tables` are the policy's.

    >>> import sqlglot
    >>> [is_catalog_query(sqlglot.parse_one(sql, read="postgres"), frozenset({"visits"}))
    ...  for sql in ("SELECT 1 FROM pg_class", "SELECT version()", "SELECT COUNT(*) FROM visits")]
    [True, True, False]
    """
    shadowed = own_tables | {cte.alias for cte in tree.find_all(exp.CTE)}
    return any(_belongs_to_catalog(node, shadowed) for node in tree.walk())


def _belongs_to_catalog(node: exp.Expr, shadowed: frozenset[str]) -> bool:
    if isinstance(node, exp.Table):
        name, schema = node.name.lower(), node.db.lower()
        return schema in SCHEMAS or (not schema and name.startswith("pg_") and name not in shadowed)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return any(name in names for names in (MACRO_OF, CONSTANTS, EMPTY_TABLES, PRIVILEGES, _SESSION_FUNCTIONS))
    if isinstance(node, exp.Dot):
        return isinstance(node.this, exp.Identifier) and node.this.name.lower() in SCHEMAS
    if isinstance(node, exp.Cast):
        return type_name(node.to) in (*REG_TYPES, "oid")
    return isinstance(node, SESSION_NODES)


def translate(tree: exp.Expr, session: CatalogSession) -> str:
    """Return the SQL of a query on the catalog for DuckDB; Refused if it uses anything that is not listed.

    >>> import sqlglot
    >>> session = CatalogSession("ana", "visits", 7, lambda name: None, {"visits": 16384})
    >>> tree = sqlglot.parse_one("SELECT relname FROM pg_catalog.pg_class c WHERE oid = 'visits'::regclass")
    >>> translate(tree, session)
    'SELECT "relname" FROM "pg_class" AS "c" WHERE "oid" = CAST(16384 AS UINTEGER)'
    """
    tree = tree.copy()
    _check_nodes(tree)
    if _tables_read(tree, {}) > MAX_SOURCES:  # DuckDB binds each of them, which no limit on its time or memory ends
        raise Refused(f"the query on the catalog reads more than {MAX_SOURCES} tables, with WITH queries. Simplify it.")
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_titled(each) for each in select.expressions])
    local = frozenset(cte.alias.lower() for cte in tree.find_all(exp.CTE))
    return Translation(session, local).rewrite(tree).sql(dialect="duckdb", comments=False)


def _check_nodes(tree: exp.Expr) -> None:
    for node in tree.walk():
        if not isinstance(node, (*STRUCTURE, *KNOWN_FUNCTIONS)):
            raise unsupported(node.key.upper())
        if isinstance(node, exp.With) and node.recursive:
            raise unsupported("WITH RECURSIVE")
        if isinstance(node, exp.ExplodingGenerateSeries | exp.GenerateSeries):
            for bound in (node.args.get("start"), node.args.get("end")):
                _check_series_bound(bound)


def _tables_read(node: exp.Expr, with_queries: Mapping[str, int]) -> int:
    """Return how many tables are read, counting those of a WITH query each time that it is used."""
    clause, count = node.args.get("with_"), 0
    for cte in clause.expressions if clause else ():
        with_queries = {**with_queries, cte.alias.lower(): _tables_read(cte.this, with_queries)}
    if isinstance(node, exp.Table):
        count = with_queries.get(node.name.lower(), 1)
    return count + sum(_tables_read(child, with_queries) for child in node.iter_expressions() if child is not clause)


def _check_series_bound(bound: exp.Expr | None) -> None:
    inside = bound.this if isinstance(bound, exp.Neg) else bound
    is_small = isinstance(inside, exp.Literal) and inside.name.isdecimal() and int(inside.name[:9]) <= _MAX_SERIES
    if not is_small and not isinstance(inside, exp.Anonymous | exp.Dot):
        raise unsupported("GENERATE_SERIES with these bounds")


def _titled(node: exp.Expr) -> exp.Expr:
    """Give a column of a result the name that PostgreSQL gives it."""
    if isinstance(node, exp.Alias | exp.Star) or (isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)):
        return node
    if isinstance(node, exp.Column | exp.Dot) and isinstance(node.find(exp.Star), exp.Star):
        return node
    return exp.alias_(node, _title(node), quoted=True)


def _title(node: exp.Expr) -> str:
    match node:
        case exp.Paren() | exp.Bracket() | exp.Collate():
            return _title(node.this)
        case exp.Dot():
            return _title(node.expression)
        case exp.Column() | exp.Identifier() | exp.Anonymous():
            return node.name.lower()
        case exp.Cast():
            inner = _title(node.this)
            return type_name(node.to) if inner == _NO_TITLE else inner
        case exp.Func() if not isinstance(node, exp.Binary | exp.Connector):
            name = str(node.meta.get("name", "")).rpartition(".")[2] or node.sql_name().lower()
            return _NAMES.get(name, name)
    return _NO_TITLE
