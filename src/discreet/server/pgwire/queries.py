"""Queries of one person: on the policy's tables, which the service answers, and on the catalog."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
from sqlglot import TokenType, exp

from discreet.answer.text import cost_sentence
from discreet.dbapi.parameters import refuse_bound_names
from discreet.dbapi.settings import QuerySettings
from discreet.kernel.errors import PolicyError
from discreet.kernel.event import OWNER
from discreet.policy.column_domains import Between, Keys
from discreet.policy.declarations import DeclaredTable
from discreet.query.syntax.parse import parse_query, tokenise
from discreet.server.people.person import Person, Role
from discreet.server.pgwire.catalog.content import CatalogSource
from discreet.server.pgwire.catalog.engine import CatalogEngine
from discreet.server.pgwire.catalog.rewriting import CatalogSession
from discreet.server.pgwire.catalog.translate import is_catalog_query, translate
from discreet.server.pgwire.parameter_types import KnownColumn
from discreet.server.pgwire.settings import SessionSettings
from discreet.server.requests import QueryRequest
from discreet.server.service import Service

T = TypeVar("T")
_THREADS = 2  # for queries on catalogs, which may be large or senseless
_MAX_CATALOGS, _MAX_PARSED = 16, 512
_MAX_SLEEP = 60.0  # seconds of pg_sleep
_PLAN_SCHEMA = pa.schema([("c0", pa.string())])
_SCHEMA = "public"
_INFORMATION = ("SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.columns")


@dataclass(frozen=True)
class ResultTable:
    """A result: the names of its columns, its rows, and what is to be said about it."""

    names: tuple[str, ...]
    table: pa.Table
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class PersonView:
    """What a person may know of the data: the catalog, and the columns by their names in lower case."""

    catalog: CatalogEngine
    tables: frozenset[str]
    columns: Mapping[str, tuple[KnownColumn, ...]]


@dataclass(frozen=True)
class _Reading:
    """A parsed text: its tree, whether it is about the catalog, and whether it states its own cost."""

    tree: exp.Expr
    is_catalog: bool
    states_cost: bool


@dataclass(frozen=True)
class Asker:
    """Who asks, and with which settings; `process` is the number of the connection."""

    person: Person
    settings: SessionSettings
    process: int

    @property
    def query_settings(self) -> QuerySettings:
        """The settings of queries."""
        return self.settings.own


class QueryRunner:
    """Answers queries for all sessions of a server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._views: OrderedDict[tuple[str, ...], PersonView] = OrderedDict()
        self._view_lock = asyncio.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="catalog")
        self._read_texts: OrderedDict[tuple[str, frozenset[str]], _Reading] = OrderedDict()

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of the data."""
        return ZoneInfo(self.service.policy.data.timezone)

    @property
    def database(self) -> str:
        """The name that the database has for clients."""
        return self.service.policy.data.name

    async def view(self, person: Person) -> PersonView:
        """Return what a person may know of the data; people with the same tables share it."""
        key = tuple(table.name for table in self.service.tables(person))
        async with self._view_lock:
            if key not in self._views:
                if len(self._views) >= _MAX_CATALOGS:
                    self._views.popitem(last=False)  # closed when the last query on it ends
                self._views[key] = await self._in_thread(lambda: self._build_view(person))
            self._views.move_to_end(key)
            return self._views[key]

    def _build_view(self, person: Person) -> PersonView:
        by = OWNER if person.role is Role.AUDITOR else person.by
        tables, columns = (self.service.curator.stored_answer(sql, by=by) for sql in _INFORMATION)
        if tables is None or columns is None:
            raise PolicyError("information_schema cannot be read")
        declared = self.service.tables(person)
        source = CatalogSource(self.database, declared, tables.table, columns.table)
        known = _known_columns(declared, columns.table)
        return PersonView(CatalogEngine(source), frozenset(table.name.lower() for table in declared), known)

    async def run(self, asker: Asker, text: str) -> ResultTable:
        """Answer a query; it is charged, if it has to be, as the service decides."""
        view = await self.view(asker.person)
        text = plain_text(text)
        reading = self._read(text, view)
        if reading.is_catalog:
            await self._sleep(reading.tree)
            sql = self._catalog_sql(asker, view, reading)
            found = await self._in_thread(lambda: view.catalog.run(sql))
            return ResultTable(found.names, found.table)
        answer = await self.service.ask(asker.person, self._request(asker, text, reading))
        table = answer.with_margins()
        notices = [cost_sentence(answer)] if answer.receipt else []
        if asker.query_settings.details:
            notices.append(answer.details())
        return ResultTable(tuple(table.column_names), table, tuple(notices))

    async def explain(self, asker: Asker, text: str) -> ResultTable:
        """Return the cost of a query and its expected margins as rows of text. This is free."""
        view = await self.view(asker.person)
        text = plain_text(text)
        reading = self._read(text, view)
        if reading.is_catalog:
            lines = ["Reads the catalog, which is free."]
        else:
            request = self._request(asker, text, reading)
            explanation = await self.service.run_light(lambda: self.service.explain(asker.person, request))
            lines = explanation.details().splitlines()
        return ResultTable(("QUERY PLAN",), pa.table([pa.array(lines, pa.string())], schema=_PLAN_SCHEMA))

    async def shape(self, asker: Asker, text: str) -> tuple[tuple[str, ...], pa.Schema]:
        """Return the names and types of the columns of an answer, without asking for it."""
        view = await self.view(asker.person)
        text = plain_text(text)
        reading = self._read(text, view)
        if reading.is_catalog:
            sql = self._catalog_sql(asker, view, reading)
            found = await self._in_thread(lambda: view.catalog.shape(sql))
            return found.names, found.table.schema
        schema = await self.service.run_light(lambda: self.service.shape(asker.person, text))
        return tuple(schema.names), schema

    def tree(self, text: str, view: PersonView) -> exp.Expr:
        """Return the syntax tree of a query; Refused if it cannot be parsed."""
        return self._read(plain_text(text), view).tree

    async def check_values(self, asker: Asker, text: str, values: Sequence[Any]) -> None:
        """Refuse a text in which a value became the name of a table or a column."""
        view = await self.view(asker.person)
        text = plain_text(text)
        refuse_bound_names(text, self._read(text, view).tree, [value for value in values if isinstance(value, str)])

    def close(self) -> None:
        """Close the catalogs."""
        self._threads.shutdown()
        for view in self._views.values():
            view.catalog.close()

    def _read(self, text: str, view: PersonView) -> _Reading:
        """Parse a text; repeated ones are parsed once."""
        key = (text, view.tables)
        if key not in self._read_texts:
            parsed = parse_query(text)
            is_catalog = parsed.described is None and is_catalog_query(parsed.query, view.tables)
            states_cost = parsed.options.epsilon is not None or parsed.within is not None
            if len(self._read_texts) >= _MAX_PARSED:
                self._read_texts.popitem(last=False)
            self._read_texts[key] = _Reading(parsed.query, is_catalog, states_cost)
        return self._read_texts[key]

    def _request(self, asker: Asker, text: str, reading: _Reading) -> QueryRequest:
        settings = asker.query_settings
        cost = settings.without_cost() if reading.states_cost else settings
        return QueryRequest(text, epsilon=cost.epsilon, rho=cost.rho, margin=cost.margin, purpose=settings.purpose)

    def _catalog_sql(self, asker: Asker, view: PersonView, reading: _Reading) -> str:
        session = CatalogSession(
            asker.person.name, self.database, asker.process, asker.settings.shown, view.catalog.numbers
        )
        return translate(reading.tree, session)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @staticmethod
    async def _sleep(tree: exp.Expr) -> None:
        """Wait for SELECT pg_sleep(n), which clients use to test how they cancel."""
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() == "pg_sleep" and call.expressions and isinstance(call.expressions[0], exp.Literal):
                await asyncio.sleep(min(_MAX_SLEEP, float(call.expressions[0].name)))


def plain_text(text: str) -> str:
    """Replace what the parser does not know by what means the same, so that positions stay as they are.

    The policy's tables are in no schema but public, and oid[] is an array of integers.

    >>> plain_text('SELECT v.n FROM public.visits v, "public"."wards" WHERE x = ANY($1::oid[])')
    'SELECT v.n FROM        visits v,          "wards" WHERE x = ANY($1::int[])'
    """
    lower = text.lower()
    if _SCHEMA not in lower and "oid" not in lower:
        return text
    tokens = tokenise(text)
    for array in [token for token, end in pairwise(tokens) if token.text.lower() == "oid" and end.text == "["]:
        text = f"{text[: array.start]}int{text[array.end + 1 :]}"
    pairs = [(token, dot) for token, dot in pairwise(tokens) if _is_schema(token.text, token.token_type)]
    if any(dot.token_type is not TokenType.DOT for _, dot in pairs):
        return text  # something else has this name too
    for token, dot in pairs:
        text = text[: token.start] + " " * (dot.end + 1 - token.start) + text[dot.end + 1 :]
    return text


def _is_schema(text: str, kind: TokenType) -> bool:
    return text == _SCHEMA if kind is TokenType.IDENTIFIER else kind is TokenType.VAR and text.lower() == _SCHEMA


def _known_columns(declared: tuple[DeclaredTable, ...], columns: pa.Table) -> dict[str, tuple[KnownColumn, ...]]:
    tables = {table.name: table for table in declared}
    found: dict[str, tuple[KnownColumn, ...]] = {}
    for row in columns.to_pylist():
        name, table = row["column_name"], row["table_name"]
        example = _example(tables[table], name)
        known = KnownColumn(table.lower(), row["data_type"], example)
        found[name.lower()] = (*found.get(name.lower(), ()), known)
    return found


def _example(table: DeclaredTable, name: str) -> Any:
    """Return a declared value of a column; None if there is none."""
    column = table.columns.get(name)
    match column.domain if column else None:
        case Keys((first, *_)):
            value: Any = first
        case Between(low, _):
            value = low
        case _:
            return None
    return value if not isinstance(value, Fraction) else int(value) if value.denominator == 1 else float(value)
