"""Rewrite a checked query on the catalog: names and functions of PostgreSQL become those of the private DuckDB."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.policy.problems import shorten
from discreet.server.pgwire.catalog.functions import (
    BUILT_IN,
    CONSTANTS,
    EMPTY_TABLES,
    GRANTED,
    KEYWORDS,
    MACRO_OF,
    PRIVILEGES,
)
from discreet.server.pgwire.catalog.relations import CATALOG, INFORMATION, relations
from discreet.server.pgwire.catalog.type_rows import FUNCTION_COLUMNS, type_numbers
from discreet.server.pgwire.parameter_values import read_parameter
from discreet.server.pgwire.pg_types import TEXT
from discreet.server.pgwire.settings import SERVER_VERSION

VERSION_TEXT = f"PostgreSQL {SERVER_VERSION} (Discreet)"
SCHEMAS = (CATALOG, INFORMATION)
SESSION_NODES = (
    *(exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentSchemas, exp.CurrentDatabase),
    *(exp.CurrentCatalog, exp.CurrentVersion),
)
_ARRAY = re.compile(r"\{[^{}]*\}")
_TYPES = {
    **dict.fromkeys(("text", "name", "char", "bpchar", "varchar", "json", "jsonb", "unknown", "uuid"), "VARCHAR"),
    **dict.fromkeys(("regproc", "regprocedure", "xid"), "VARCHAR"),
    **dict.fromkeys(("int2", "smallint"), "SMALLINT"),
    **dict.fromkeys(("int4", "int", "integer"), "INTEGER"),
    **dict.fromkeys(("int8", "bigint"), "BIGINT"),
    **dict.fromkeys(("bool", "boolean"), "BOOLEAN"),
    **dict.fromkeys(("float4", "real", "float"), "FLOAT"),
    **dict.fromkeys(("float8", "double"), "DOUBLE"),
    **dict.fromkeys(("numeric", "decimal"), "DECIMAL(38, 6)"),
    **dict.fromkeys(("date", "time", "timestamp", "timestamptz", "interval")),
    "oid": "UINTEGER",
}
_NO_FUNCTION = "-"
REG_TYPES = ("regclass", "regtype", "regnamespace", "regrole", "regproc", "regprocedure")


@dataclass(frozen=True)
class CatalogSession:
    """What constants of a query mean in one session: the user, the database, its settings and numbers of tables."""

    user: str
    database: str
    process: int
    setting: Callable[[str], str | None]
    numbers: Mapping[str, int]


def unsupported(what: str) -> Refused:
    """Return the refusal of what queries on the catalog cannot use."""
    return Refused(f"{shorten(what)} is not supported in queries on the catalog. Leave it out.")


def type_name(kind: exp.Expr | None) -> str:
    """Return the name of a type in a CAST, in lower case and without its schema."""
    if isinstance(kind, exp.DataType) and kind.args.get("kind") is not None:
        inner = kind.args["kind"]
        name = inner if isinstance(inner, str) else inner.expression.name if isinstance(inner, exp.Dot) else inner.name
        return str(name).lower()
    if isinstance(kind, exp.DataType):
        return str(getattr(kind.this, "value", kind.this)).lower()
    return str(kind.this).lower() if kind is not None else ""


class Translation:
    """Rewrites a checked tree, children first."""

    def __init__(self, session: CatalogSession, local: frozenset[str]) -> None:
        self._session, self._local = session, local
        self._texts = {
            **dict.fromkeys(("version", "current_version"), VERSION_TEXT),
            "current_schema": "public",
            **dict.fromkeys(("current_database", "current_catalog"), session.database),
            **dict.fromkeys(("current_user", "session_user", "current_role"), session.user),
        }
        self._rules: Mapping[type[exp.Expr], Callable[..., exp.Expr]] = {
            exp.Identifier: self._identifier,
            exp.Table: self._table,
            exp.Column: self._column,
            exp.Dot: self._dot,
            exp.Collate: _inner,
            exp.Operator: self._operator,
            exp.Cast: self._cast,
            exp.ByteString: lambda node: exp.Literal.string(node.this),
            exp.Anonymous: self._call,
            exp.Div: lambda node: exp.IntDiv(this=node.this, expression=node.expression),
            **dict.fromkeys((exp.EQ, exp.NEQ, exp.Any, exp.All), self._with_arrays),
            **dict.fromkeys(SESSION_NODES, lambda node: self._text(self._texts[node.sql_name().lower()])),
            exp.CurrentSchemas: lambda node: self._current_schemas(node.this),
        }

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        """Return a node as DuckDB understands it."""
        if isinstance(node, exp.Table) and (empty := _empty_table(node)) is not None:
            return self.rewrite(empty)
        for child in list(node.iter_expressions()):
            rewritten = self.rewrite(child)
            if rewritten is not child:
                child.replace(rewritten)
        rule = self._rules.get(type(node))
        return node if rule is None else rule(node)

    @staticmethod
    def _text(value: str) -> exp.Expr:
        return exp.Literal.string(value)

    @staticmethod
    def _identifier(node: exp.Identifier) -> exp.Expr:
        return exp.Identifier(this=node.name if node.args.get("quoted") else node.name.lower(), quoted=True)

    def _table(self, node: exp.Table) -> exp.Expr:
        if isinstance(node.this, exp.Func):
            return self._table_function(node)
        schema, name = node.db, node.name
        known = f"{INFORMATION}.{name}" if schema == INFORMATION else name
        if not schema and name in self._local:
            return node
        if schema not in ("", *SCHEMAS) or node.catalog not in ("", self._session.database) or known not in relations():
            raise Refused(f'relation "{shorten(name)}" does not exist in the catalog. Query other tables on their own.')
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", exp.to_identifier(known, quoted=True))
        return node if node.alias != known else _without_alias(node)

    def _table_function(self, node: exp.Table) -> exp.Expr:
        node.set("db", None)
        alias = node.args.get("alias")
        if alias and not alias.columns:
            alias.set("columns", [alias.this.copy()])
        return node

    @staticmethod
    def _column(node: exp.Column) -> exp.Expr:
        for part in ("db", "catalog"):
            node.set(part, None)
        return node

    @staticmethod
    def _dot(node: exp.Dot) -> exp.Expr:
        is_schema = isinstance(node.this, exp.Identifier) and node.this.name in SCHEMAS
        inner: exp.Expr = node.expression
        return inner if is_schema else node

    @staticmethod
    def _operator(node: exp.Operator) -> exp.Expr:
        name = str(node.args["operator"]).rpartition(".")[2]
        parts = {"this": node.this, "expression": node.expression}
        match name:
            case "~" | "!~":
                found: exp.Expr = exp.RegexpLike(**parts)
            case "~*" | "!~*":
                found = exp.RegexpILike(**parts)
            case "=":
                return exp.EQ(**parts)
            case _:
                raise unsupported(f"OPERATOR({name})")
        return exp.Not(this=found) if name.startswith("!") else found

    def _cast(self, node: exp.Cast) -> exp.Expr:
        kind = type_name(node.to)
        if kind in ("array", "list"):
            element = _TYPES.get(type_name(node.to.expressions[0])) or "VARCHAR"
            return _cast_to(_as_array(node.this), f"{element}[]")
        if kind in REG_TYPES:
            return self._reg_cast(node.this, kind)
        if kind in ("int2vector", "oidvector"):
            return _inner(node)
        if kind == "oid" and isinstance(node.this, exp.Anonymous) and node.this.name.startswith("fn_reg"):
            return exp.TryCast(this=node.this.expressions[0], to=exp.DataType.build("UINTEGER", dialect="duckdb"))
        if kind not in _TYPES:
            raise unsupported(f"CAST to {kind}")
        return _cast_to(node.this, _TYPES[kind] or kind.upper())

    def _reg_cast(self, value: exp.Expr, kind: str) -> exp.Expr:
        """Return the number that a constant names, or the name that a number has."""
        if not (isinstance(value, exp.Literal) and value.is_string):
            macro = {"regtype": "fn_format_type", "regrole": "fn_user", "regprocedure": "fn_regproc"}.get(
                kind, f"fn_{kind}"
            )
            arguments = [value, exp.null()] if kind == "regtype" else [value]
            return exp.Anonymous(this=macro, expressions=arguments)
        name = value.name.rpartition(".")[2].strip('"')
        if kind in ("regproc", "regprocedure"):
            return exp.Literal.string(name)
        if name.isdecimal():
            return _cast_to(exp.Literal.number(name), "UINTEGER")
        numbers = {"regclass": self._session.numbers, "regtype": type_numbers()}.get(kind, {})
        if name not in numbers:
            raise Refused(f'"{shorten(value.name)}" does not exist. SHOW TABLES lists what you may query.')
        return _cast_to(exp.Literal.number(numbers[name]), "UINTEGER")

    def _with_arrays(self, node: exp.Expr) -> exp.Expr:
        """Read '{1,2}' as an array where it is compared with one, and 0 as the name of no function."""
        for part in ("this", "expression"):
            value = node.args.get(part)
            if isinstance(value, exp.Literal) and value.is_string and _ARRAY.fullmatch(value.name):
                node.set(part, _as_array(value))
            other = node.args.get("this" if part == "expression" else "expression")
            if isinstance(value, exp.Literal) and not value.is_string and _is_function_name(other):
                node.set(part, exp.Literal.string(_NO_FUNCTION))
        return node

    def _current_schemas(self, implicit: exp.Expr) -> exp.Expr:
        with_implicit = isinstance(implicit, exp.Boolean) and implicit.this
        names = [CATALOG, "public"] if with_implicit else ["public"]
        return exp.Array(expressions=[exp.Literal.string(name) for name in names])

    def _call(self, node: exp.Anonymous) -> exp.Expr:
        name, arguments = node.name.lower(), list(node.expressions)
        if name in MACRO_OF:
            macro, count = MACRO_OF[name]
            if len(arguments) < count:
                raise unsupported(f"{name} with {len(arguments)} arguments")
            return exp.Anonymous(this=macro, expressions=arguments[:count])
        if name in CONSTANTS:
            constant: exp.Expr = exp.maybe_parse(CONSTANTS[name], dialect="duckdb")
            return constant
        if name in PRIVILEGES:
            privilege = arguments[-1].name.upper() if arguments and isinstance(arguments[-1], exp.Literal) else ""
            return exp.true() if any(word in privilege for word in GRANTED) else exp.false()
        if name in BUILT_IN:
            return exp.Anonymous(this=BUILT_IN[name], expressions=[_as_array(each) for each in arguments])
        return self._session_call(name, arguments)

    def _session_call(self, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        if name in self._texts and not arguments:
            return self._text(self._texts[name])
        match name, [_constant(argument) for argument in arguments]:
            case "pg_backend_pid", []:
                return exp.Literal.number(self._session.process)
            case "pg_sleep", [_]:
                return self._text("")
            case "set_config", [_, value, _]:
                return value
            case "current_schemas", [implicit]:
                return self._current_schemas(implicit)
            case "current_setting", [exp.Literal() as setting, *_]:
                shown = self._session.setting(setting.name)
                return exp.null() if shown is None else self._text(shown)
        raise unsupported(f"function {name}")


def _is_function_name(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Column) and node.name in FUNCTION_COLUMNS


def _inner(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this
    return inner


def _constant(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node


def _empty_table(node: exp.Table) -> exp.Expr | None:
    """Return the table that a function in FROM is here, nearly always without rows; None for other functions."""
    name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
    if name not in EMPTY_TABLES:
        return None
    alias = node.args.get("alias")
    given = [column.name for column in alias.columns] if alias else []
    columns = [*given, *EMPTY_TABLES[name][len(given) :]]
    if name == "pg_get_keywords":
        words = [_row_of_nulls(columns, first=exp.Literal.string(word)) for word in KEYWORDS]
        return exp.union(*words, distinct=False).subquery(alias.this.name if alias else name)
    return _row_of_nulls(columns).where(exp.false()).subquery(alias.this.name if alias else name)


def _row_of_nulls(columns: Sequence[str], first: exp.Expr | None = None) -> exp.Select:
    values = [first or exp.null(), *(exp.null() for _ in columns[1:])]
    return exp.select(*(exp.alias_(value, name, quoted=True) for value, name in zip(values, columns, strict=True)))


def _without_alias(node: exp.Table) -> exp.Table:
    node.set("alias", None)
    return node


def _cast_to(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


def _as_array(value: exp.Expr) -> exp.Expr:
    if not (isinstance(value, exp.Literal) and value.is_string and _ARRAY.fullmatch(value.name)):
        return value
    elements = read_parameter(value.name.encode(), TEXT.array_oid, 0)
    return exp.Array(expressions=[exp.null() if each is None else _element(each) for each in elements])


def _element(text: str) -> exp.Expr:
    return exp.Literal.number(text) if text.isdecimal() else exp.Literal.string(text)
