"""Queries of one person: on the policy's tables, which the service answers, and on the catalog."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from textwrap import wrap
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from sqlglot import exp

from discreet.answer.text import cost_sentence, explanation_sentences, missing_sentences
from discreet.dbapi.parameters import bind_numbered, refuse_bound_names
from discreet.dbapi.settings import QuerySettings
from discreet.kernel.errors import PolicyError
from discreet.kernel.event import OWNER
from discreet.policy.column_domains import Between, Keys
from discreet.policy.declarations import DeclaredTable
from discreet.server.fair_threads import FairThreads
from discreet.server.people.person import Person, Role
from discreet.server.pgwire.actions import Statement
from discreet.server.pgwire.catalog.content import CatalogSource
from discreet.server.pgwire.catalog.engine import CatalogEngine, CatalogResult
from discreet.server.pgwire.catalog.rewriting import CatalogSession
from discreet.server.pgwire.catalog.translate import translate
from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.parameter_types import KnownColumn, ParameterType, infer_types
from discreet.server.pgwire.settings import SessionSettings
from discreet.server.pgwire.text_reader import QueryText, TextReader
from discreet.server.requests import QueryRequest
from discreet.server.service import Service

_THREADS = 2  # for queries on catalogs, which may be large or senseless
_MAX_CATALOGS = 16
_MAX_SLEEP = 60.0  # seconds of pg_sleep
_PLAN_WIDTH = 100  # of the engine's SQL
_PLAN_SCHEMA = pa.schema([("c0", pa.string())])
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
        self._threads = FairThreads("catalog", _THREADS)
        self.texts = TextReader(service)

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
                self._views[key] = await self._threads.run(person.name, lambda: self._build_view(person))
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
        view, query = await self._read(asker.person, text)
        if query.is_catalog:
            await self._sleep(query.tree)
            found = await self._ask_catalog(asker, view, query, view.catalog.run)
            return ResultTable(found.names, found.table)
        answer = await self.service.ask(asker.person, self._request(asker, query))
        table = answer.with_margins()
        notices = [cost_sentence(answer), *missing_sentences(answer)] if answer.receipt else []
        if asker.query_settings.details:
            notices.append(answer.details())
        return ResultTable(tuple(table.column_names), table, tuple(notices))

    async def explain(self, asker: Asker, text: str) -> ResultTable:
        """Return the cost of a query and its expected margins, one fact in each row. This is free.

        With details, the SQL that the engine would run follows.
        """
        _, query = await self._read(asker.person, text)
        if query.is_catalog:
            lines = ["Reads the catalog, which is free."]
        else:
            person, request = asker.person, self._request(asker, query)
            explanation = await self.service.run_light(person, lambda: self.service.explain(person, request))
            lines = explanation_sentences(explanation)
            if asker.query_settings.details:
                lines += [line for row in explanation.sql.splitlines() for line in wrap(row, _PLAN_WIDTH)]
        return ResultTable(("QUERY PLAN",), pa.table([pa.array(lines, pa.string())], schema=_PLAN_SCHEMA))

    async def shape(self, asker: Asker, text: str, examples: Sequence[Any] = ()) -> tuple[tuple[str, ...], pa.Schema]:
        """Return the names and types of the columns of an answer, without asking for it.

        Examples stand in for parameters, whose values are not there yet.
        """
        person = asker.person
        if examples:
            text = await self.texts.work(person, lambda: bind_numbered(text, examples))
        view, query = await self._read(person, text)
        if query.is_catalog:
            found = await self._ask_catalog(asker, view, query, view.catalog.shape)
            return found.names, found.table.schema
        schema = await self.service.run_rehearsal(person, lambda: self.service.shape(person, query.text))
        return tuple(schema.names), schema

    async def parameter_types(
        self, person: Person, statement: Statement, given: tuple[int, ...], *, is_query: bool
    ) -> tuple[ParameterType, ...]:
        """Return the types of a statement's parameters; Refused if it is a query that cannot be parsed."""
        text, tree = statement.text, None
        columns: Mapping[str, tuple[KnownColumn, ...]] = {}
        if is_query:
            view, query = await self._read(person, text)
            tree, columns = query.tree, view.columns
        if not (given or statement.has_parameters):
            return ()
        return await self.service.run_light(person, lambda: infer_types(text, tree, given, columns))

    async def bound_text(self, person: Person, statement: Statement, values: Sequence[Any]) -> str:
        """Return a text with values for its parameters; Refused if one becomes the name of a table or a column."""
        if not statement.has_parameters:
            return statement.text
        text = await self.texts.work(person, lambda: bind_numbered(statement.text, values))
        _, query = await self._read(person, text)
        if words := [value for value in values if isinstance(value, str)]:
            await self.service.run_light(person, lambda: refuse_bound_names(query.text, query.tree, words))
        return text

    def close(self) -> None:
        """Close the catalogs."""
        self._threads.close()
        for view in self._views.values():
            view.catalog.close()

    async def _read(self, person: Person, text: str) -> tuple[PersonView, QueryText]:
        view = await self.view(person)
        return view, await self.texts.query(person, text, view.tables)

    @staticmethod
    def _request(asker: Asker, query: QueryText) -> QueryRequest:
        own = asker.query_settings
        cost = own.without_cost() if query.states_cost else own
        return QueryRequest(query.text, epsilon=cost.epsilon, rho=cost.rho, margin=cost.margin, purpose=own.purpose)

    async def _ask_catalog(
        self, asker: Asker, view: PersonView, query: QueryText, ask: Callable[[str], CatalogResult]
    ) -> CatalogResult:
        """Translate a query on the catalog and ask for its rows or its columns, in this person's turn."""
        self.service.count_request(asker.person)
        session = CatalogSession(
            asker.person.name, self.database, asker.process, asker.settings.shown, view.catalog.numbers
        )
        return await self._threads.run(asker.person.name, lambda: ask(translate(query.tree, session)))

    @staticmethod
    async def _sleep(tree: exp.Expr) -> None:
        """Wait for SELECT pg_sleep(n), which clients use to test how they cancel."""
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() == "pg_sleep" and call.expressions and isinstance(call.expressions[0], exp.Literal):
                await asyncio.sleep(min(_MAX_SLEEP, _seconds(call.expressions[0].name)))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise WireError("22P02", "pg_sleep: the number of seconds is not a number.") from None


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
