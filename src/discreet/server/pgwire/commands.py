"""What a statement of a session does, whatever the messages that it came with."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from discreet.dbapi.settings import SettingStatement, own_setting
from discreet.server.people.person import Person
from discreet.server.pgwire.actions import Action, Statement
from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.parameter_types import ParameterType
from discreet.server.pgwire.prepared import Portal, Prepared, PreparedStore, ResultShape, StatementResult
from discreet.server.pgwire.queries import Asker, QueryRunner, ResultTable
from discreet.server.pgwire.settings import DEFAULTS, SessionSettings
from discreet.server.pgwire.transactions import Transaction

_WITH_ROWS = (Action.QUERY, Action.EXPLAIN, Action.SHOW, Action.FETCH)
_QUERIES = (Action.QUERY, Action.EXPLAIN, Action.COPY, Action.DECLARE)
_ENDS = (Action.COMMIT, Action.ROLLBACK)
_TITLES = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}
_ALL_NAMES = ("name", "setting", "description")


class Commands:
    """Runs statements with the settings and the transaction of one session."""

    def __init__(
        self, runner: QueryRunner, person: Person, process: int, settings: SessionSettings, store: PreparedStore
    ) -> None:
        self._runner, self._person, self._process, self._store = runner, person, process, store
        self.transaction, self.texts = Transaction(settings), runner.texts

    async def run(self, statement: Statement, text: str) -> StatementResult:
        """Run a statement, whose text has its values by now."""
        action = statement.action
        match action:
            case Action.QUERY | Action.COPY:
                return StatementResult(statement.tag, await self._runner.run(self._asker(), text))
            case Action.EXPLAIN:
                return StatementResult(statement.tag, await self._runner.explain(self._asker(), text))
            case Action.FETCH | Action.MOVE:
                return await self._fetch(statement)
            case Action.SET | Action.RESET | Action.SHOW:
                assert statement.setting is not None
                return StatementResult(statement.tag, self._setting(action, statement.setting))
            case Action.DECLARE:
                await self._declare(statement, text)
            case Action.CLOSE | Action.DEALLOCATE | Action.DISCARD:
                self._change_store(statement)
            case Action.NOTHING | Action.ACCEPTED:
                pass
            case _:
                tag = self.transaction.run(action)
                if action in _ENDS:
                    self._store.close_portals()
                return StatementResult(tag or statement.tag)
        return StatementResult(statement.tag)

    async def _declare(self, statement: Statement, text: str) -> None:
        """Keep a cursor, which is run when its rows are asked for; what cannot be answered is refused at once."""
        if self.transaction.status == "I" and not statement.is_held:
            raise WireError("25P01", "DECLARE CURSOR can only be used in transaction blocks, or WITH HOLD.")
        await self._runner.explain(self._asker(), text)
        query = Prepared(await self.texts.statement(self._person, text, statement.offset))
        self._store.add_portal(statement.name, Portal(query, text, (), is_held=statement.is_held))

    def _change_store(self, statement: Statement) -> None:
        match statement.action:
            case Action.CLOSE if statement.name:
                self._store.portal(statement.name)  # an error if it does not exist
                self._store.close(statement.name, is_portal=True)
            case Action.CLOSE:
                self._store.close_cursors()
            case Action.DEALLOCATE if statement.name:
                self._store.statement(statement.name)  # an error if it does not exist
                self._store.close(statement.name, is_portal=False)
            case _:
                self._store.close_statements()
        if statement.action is Action.DISCARD:
            self._store.close_cursors()
            self.transaction.change(self.transaction.settings.reset(), self.transaction.committed.reset())

    async def _fetch(self, statement: Statement) -> StatementResult:
        """Return the next rows of a cursor, which is run when they are first asked for."""
        portal = self._store.portal(statement.name)
        if portal.outcome is None:
            portal.outcome = await self.run(portal.prepared.statement, portal.text)
            self._store.check_results()
        result = portal.outcome.result
        if result is None:
            raise WireError("34000", f'cursor "{statement.name}" has no rows')
        rest = result.table.slice(portal.sent, statement.count)
        notices = result.notices if portal.sent == 0 else ()
        portal.sent += rest.num_rows
        tag = f"{statement.tag} {rest.num_rows}"
        return StatementResult(
            tag, None if statement.action is Action.MOVE else ResultTable(result.names, rest, notices)
        )

    async def shape(self, statement: Statement, text: str, examples: Sequence[Any] = ()) -> ResultShape | None:
        """Return the columns that a statement's result will have, with examples of parameters; None without rows."""
        if statement.action not in _WITH_ROWS:
            return None
        if statement.action is Action.FETCH:
            portal = self._store.portal(statement.name)
            return await self.shape(portal.prepared.statement, portal.text)
        if statement.action is Action.QUERY:
            return ResultShape(*await self._runner.shape(self._asker(), text, examples))
        if statement.action is Action.EXPLAIN:
            return _text_shape("QUERY PLAN")
        assert statement.setting is not None
        shown = self._setting(Action.SHOW, statement.setting)
        assert shown is not None
        return _text_shape(*shown.names)

    async def parameter_types(self, statement: Statement, given: tuple[int, ...]) -> tuple[ParameterType, ...]:
        """Return the types of a statement's parameters; Refused if it is a query that cannot be parsed."""
        is_query = statement.action in _QUERIES
        return await self._runner.parameter_types(self._person, statement, given, is_query=is_query)

    async def bound_text(self, statement: Statement, values: Sequence[Any]) -> str:
        """Return a statement's text with values for its parameters."""
        return await self._runner.bound_text(self._person, statement, values)

    def local_time(self, value: object) -> object:
        """Return a moment with an offset as a time in the time zone of the data, where times have none."""
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(self._runner.zone).replace(tzinfo=None)
        return value

    def _asker(self) -> Asker:
        return Asker(self._person, self.transaction.settings, self._process)

    def _setting(self, action: Action, statement: SettingStatement) -> ResultTable | None:
        settings, name, value = self.transaction.settings, statement.name, statement.value
        if action is Action.SHOW:
            return _shown(settings, name)
        if name == "all":
            self.transaction.change(settings.reset(), self.transaction.committed.reset())
            return None
        changed = settings.with_value(name, value)
        self.transaction.change(
            changed, None if statement.is_local else self.transaction.committed.with_value(name, value)
        )
        return None


def _shown(settings: SessionSettings, name: str) -> ResultTable:
    if name != "all":
        title = own_setting(name) or _TITLES.get(name, name)
        return ResultTable((title,), pa.table([pa.array([settings.shown(name)], pa.string())], names=["c0"]))
    names = [*("epsilon", "rho", "margin", "details", "purpose"), *sorted(DEFAULTS)]
    values = [settings.shown(each) for each in names]
    columns = [pa.array(each, pa.string()) for each in (names, values, [""] * len(names))]
    return ResultTable(_ALL_NAMES, pa.table(columns, names=["c0", "c1", "c2"]))


def _text_shape(*names: str) -> ResultShape:
    return ResultShape(names, pa.schema([(f"c{place}", pa.string()) for place in range(len(names))]))
