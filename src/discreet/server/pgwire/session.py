"""A session of one person: what each message leads to, as replies; no sockets.

Parse and Describe charge nothing: the types of columns follow from the policy. Execute runs a portal once.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from discreet.server.people.person import Person
from discreet.server.pgwire import replies
from discreet.server.pgwire.actions import Action, Statement
from discreet.server.pgwire.commands import Commands
from discreet.server.pgwire.copying import copy_rows
from discreet.server.pgwire.data_rows import align, column_formats, data_rows, headers
from discreet.server.pgwire.encodings import UnreadableValue
from discreet.server.pgwire.errors import WireError, error_fields
from discreet.server.pgwire.messages import (
    Bind,
    Close,
    Describe,
    Execute,
    FunctionCallRequest,
    Message,
    Parse,
    SimpleQuery,
    Sync,
)
from discreet.server.pgwire.parameter_values import read_parameter
from discreet.server.pgwire.prepared import Portal, Prepared, PreparedStore, ResultShape, StatementResult
from discreet.server.pgwire.queries import QueryRunner, ResultTable
from discreet.server.pgwire.replies import Outgoing, Reply
from discreet.server.pgwire.settings import SessionSettings

_COPY_AT_ONCE = 1 << 16  # bytes


class Session:
    """Statements, portals, settings and the transaction of one connection."""

    def __init__(self, runner: QueryRunner, person: Person, process: int, settings: SessionSettings) -> None:
        self.person, self._store = person, PreparedStore()
        self._commands = Commands(runner, person, process, settings, self._store)
        self._described: tuple[str, Portal] | None = None  # a Describe that is answered together with Execute
        self._text, self._offset = "", 0  # of the statement that is being handled, for the positions of errors
        self._handlers: Mapping[type[Message], Callable[[Any], AsyncIterator[Outgoing]]] = {
            SimpleQuery: self._simple,
            Parse: self._parse,
            Bind: self._bind,
            Describe: self._describe,
            Execute: self._execute,
            Close: self._close,
        }

    @property
    def settings(self) -> SessionSettings:
        """The settings of now."""
        return self._commands.transaction.settings

    @property
    def status(self) -> str:
        """The state of the transaction, as ReadyForQuery says it."""
        return self._commands.transaction.status

    def failure(self, error: Exception) -> Outgoing:
        """Return the reply to what went wrong, and note it in the transaction."""
        self._commands.transaction.fail()
        self._described = None
        return replies.error(error_fields(error, self._text, self._offset))

    async def replies(self, message: Message) -> AsyncGenerator[Outgoing, None]:
        """Yield the replies to a message; whatever is raised has to be answered by `failure`."""
        self._text, self._offset = "", 0
        if self._described and not (isinstance(message, Execute) and message.portal == self._described[0]):
            async for reply in self._describe_now():
                yield reply
        if isinstance(message, Sync) and self.status == "I":
            self._store.close_portals()
        if isinstance(message, FunctionCallRequest):
            raise WireError("0A000", "function calls by number are not supported. Write a SELECT.")
        handler = self._handlers.get(type(message))
        if handler is not None:
            async for reply in handler(message):
                yield reply

    async def _close(self, message: Close) -> AsyncIterator[Outgoing]:
        self._store.close(message.name, is_portal=message.is_portal)
        yield replies.CLOSED

    async def _simple(self, message: SimpleQuery) -> AsyncIterator[Outgoing]:
        self._text = text = message.text
        self._store.close("", is_portal=True)
        pieces = await self._commands.texts.pieces(self.person, text)
        if not pieces:
            yield replies.EMPTY
        for offset, piece in pieces:
            self._text, self._offset = piece, offset
            before = self.settings.reported()
            statement = await self._commands.texts.statement(self.person, piece, offset)
            if statement.has_parameters:
                raise WireError("42P02", "there is no parameter $1. Parameters need the extended protocol.")
            outcome = await self._run(statement, statement.text)
            for reply in self._outcome_replies(statement, outcome, ()):
                yield reply
            for reply in self._changed_settings(before):
                yield reply

    async def _parse(self, message: Parse) -> AsyncIterator[Outgoing]:
        self._text = message.text
        pieces = await self._commands.texts.pieces(self.person, message.text)
        if len(pieces) > 1:
            raise WireError("42601", "cannot insert multiple commands into a prepared statement")
        offset, piece = pieces[0] if pieces else (0, "")
        statement = await self._commands.texts.statement(self.person, piece, offset)
        types = await self._commands.parameter_types(statement, message.types)
        self._store.add_statement(message.name, Prepared(statement, types))
        yield replies.PARSED

    async def _bind(self, message: Bind) -> AsyncIterator[Outgoing]:
        prepared = self._store.statement(message.statement)
        statement, count = prepared.statement, len(message.values)
        self._text, self._offset = statement.text, statement.offset
        if count != len(prepared.types):
            raise WireError("08P01", f"Bind has {count} values, and the statement has {len(prepared.types)} parameters")
        if len(message.formats) not in (0, 1, count) or not set(message.formats) <= {0, 1}:
            raise WireError("08P01", "Bind has formats for another number of values, or unknown ones")
        formats = message.formats if len(message.formats) == count else (message.formats or (0,)) * count
        values = [
            self._value(data, kind.oid, form, place)
            for place, (data, kind, form) in enumerate(zip(message.values, prepared.types, formats, strict=True), 1)
        ]
        text = await self._commands.bound_text(statement, values)
        self._store.add_portal(message.portal, Portal(prepared, text, message.result_formats))
        yield replies.BOUND

    def _value(self, data: bytes | None, oid: int, form: int, place: int) -> object:
        try:
            return self._commands.local_time(read_parameter(data, oid, form))
        except UnreadableValue:
            raise WireError("22P02", f"${place}: the value cannot be read as the type of this parameter.") from None

    async def _describe(self, message: Describe) -> AsyncIterator[Outgoing]:
        if message.is_portal:
            portal = self._store.portal(message.name)
            portal.is_described = True
            self._described = message.name, portal
            return
        prepared = self._store.statement(message.name)
        statement = prepared.statement
        self._text, self._offset = statement.text, statement.offset
        yield replies.parameter_types([kind.oid for kind in prepared.types])
        examples = [kind.example for kind in prepared.types]
        shape = prepared.announced or await self._shape(statement, statement.text, examples)
        prepared.announced = shape
        yield self._columns(shape, [])

    async def _describe_now(self) -> AsyncIterator[Outgoing]:
        """Answer a Describe of a portal that is not executed at once."""
        assert self._described is not None
        (_, portal), self._described = self._described, None
        portal.is_described = False
        prepared = portal.prepared
        self._text, self._offset = prepared.statement.text, prepared.statement.offset
        shape = prepared.announced or await self._shape(prepared.statement, portal.text)
        prepared.announced = shape
        yield self._columns(shape, portal.requested_formats)

    @staticmethod
    def _columns(shape: ResultShape | None, requested: tuple[int, ...] | list[int]) -> Outgoing:
        if shape is None:
            return replies.NO_DATA
        return replies.columns(headers(shape.names, shape.schema, column_formats(requested, len(shape.names))))

    async def _shape(self, statement: Statement, text: str, examples: Sequence[Any] = ()) -> ResultShape | None:
        """Return the columns of a statement's result; None if it has none."""
        self._commands.transaction.check(statement.action)
        return await self._commands.shape(statement, text, examples)

    async def _execute(self, message: Execute) -> AsyncIterator[Outgoing]:
        portal, self._described = self._store.portal(message.portal), None
        prepared = portal.prepared
        statement = prepared.statement
        self._text, self._offset = statement.text, statement.offset
        if statement.action is Action.NOTHING:
            if portal.is_described:
                yield replies.NO_DATA
            portal.is_described = False
            yield replies.EMPTY
            return
        before = self.settings.reported()
        is_first = portal.outcome is None
        if is_first:
            portal.outcome = await self._run(statement, portal.text)
            self._store.check_results()
        for reply in self._portal_replies(portal, message.limit, is_first=is_first):
            yield reply
        for reply in self._changed_settings(before):
            yield reply

    def _portal_replies(self, portal: Portal, limit: int, *, is_first: bool) -> Iterator[Outgoing]:
        """Yield the rows of a portal that are due, and before them its columns if their description is."""
        outcome, prepared = portal.outcome, portal.prepared
        assert outcome is not None
        result, is_described, portal.is_described = outcome.result, portal.is_described, False
        if result is None or prepared.statement.action is Action.COPY:
            if is_described:
                yield replies.NO_DATA
            yield from self._outcome_replies(prepared.statement, outcome, portal.requested_formats)
            return
        shape = prepared.announced or ResultShape(result.names, result.table.schema)
        formats = column_formats(portal.requested_formats, len(shape.names))
        if is_first:
            yield from self._notices(result)
        if is_described:
            prepared.announced = shape
            yield replies.columns(headers(shape.names, shape.schema, formats))
        table = align(result.names, result.table, shape.names, shape.schema)
        size = min(limit or table.num_rows, table.num_rows - portal.sent)
        yield from data_rows(table.slice(portal.sent, size), formats)
        portal.sent += size
        yield replies.SUSPENDED if portal.sent < table.num_rows else replies.complete(_tag(outcome, size))

    async def _run(self, statement: Statement, text: str) -> StatementResult:
        self._commands.transaction.check(statement.action)
        return await self._commands.run(statement, text)

    def _outcome_replies(
        self, statement: Statement, outcome: StatementResult, formats: tuple[int, ...]
    ) -> Iterator[Outgoing]:
        """Yield all replies for an outcome of which nothing was said before."""
        result = outcome.result
        if result is None:
            yield replies.complete(outcome.tag)
            return
        yield from self._notices(result)
        if statement.action is Action.COPY:
            yield from _copy_replies(statement, result)
            return
        chosen = column_formats(formats, len(result.names))
        yield replies.columns(headers(result.names, result.table.schema, chosen))
        yield from data_rows(result.table, chosen)
        yield replies.complete(_tag(outcome, result.table.num_rows))

    def _notices(self, result: ResultTable) -> Iterator[Outgoing]:
        if self.settings.shows_notices:
            yield from map(replies.notice, result.notices)

    def _changed_settings(self, before: dict[str, str]) -> Iterator[Outgoing]:
        after = self.settings.reported()
        yield from (replies.parameter(name, value) for name, value in after.items() if before[name] != value)


def _tag(outcome: StatementResult, rows: int) -> str:
    return f"{outcome.tag} {rows}" if outcome.tag == "SELECT" else outcome.tag


def _copy_replies(statement: Statement, result: ResultTable) -> Iterator[Outgoing]:
    """Yield the output of COPY, many rows in one write, each a message of its own."""
    yield replies.copy_start(statement.copy.name, len(result.names))
    waiting = bytearray()
    for row in copy_rows(result.names, result.table, statement.copy):
        waiting += replies.message(b"d", row)
        if len(waiting) >= _COPY_AT_ONCE:
            yield Outgoing(Reply.COPY_DATA, bytes(waiting))
            waiting.clear()
    if waiting:
        yield Outgoing(Reply.COPY_DATA, bytes(waiting))
    yield replies.COPY_END
    yield replies.complete(f"COPY {result.table.num_rows}")
