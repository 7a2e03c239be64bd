"""What a statement of a session does, whatever the messages that it came with."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from discreet.dbapi.settings import SettingStatement, own_setting
from discreet.server.people.person import Person
from discreet.server.pgwire.parameter_types import KnownColumn
from discreet.server.pgwire.prepared import Outcome, PreparedStore, Shape
from discreet.server.pgwire.queries import Asker, QueryRunner, ResultTable
from discreet.server.pgwire.settings import DEFAULTS, SessionSettings
from discreet.server.pgwire.statements import Action, Statement
from discreet.server.pgwire.transactions import Transaction

_WITH_ROWS = (Action.QUERY, Action.EXPLAIN, Action.SHOW)
_ENDS = (Action.COMMIT, Action.ROLLBACK)
_TITLES = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}
_ALL_NAMES = ("name", "setting", "description")


class Commands:
    """Runs statements with the settings and the transaction of one session."""

    def __init__(
        self, runner: QueryRunner, person: Person, process: int, settings: SessionSettings, store: PreparedStore
    ) -> None:
        self._runner, self._person, self._process, self._store = runner, person, process, store
        self.transaction = Transaction(settings)

    async def run(self, statement: Statement, text: str) -> Outcome:
        """Run a statement, whose text has its values by now."""
        action = statement.action
        match action:
            case Action.QUERY | Action.COPY:
                return Outcome(statement.tag, await self._runner.run(self._asker(), text))
            case Action.EXPLAIN:
                return Outcome(statement.tag, await self._runner.explain(self._asker(), text))
            case Action.SET | Action.RESET | Action.SHOW:
                assert statement.setting is not None
                return Outcome(statement.tag, self._setting(action, statement.setting))
            case Action.DEALLOCATE if statement.name:
                self._store.statement(statement.name)  # an error if it does not exist
                self._store.close(statement.name, is_portal=False)
            case Action.DEALLOCATE | Action.DISCARD:
                self._store.close_statements()
                if action is Action.DISCARD:
                    self._change(self.transaction.settings.reset(), self.transaction.committed.reset())
            case Action.NOTHING | Action.ACCEPTED:
                pass
            case _:
                tag = self.transaction.run(action)
                if action in _ENDS:
                    self._store.close_portals()
                return Outcome(tag or statement.tag)
        return Outcome(statement.tag)

    async def shape(self, statement: Statement, text: str) -> Shape | None:
        """Return the columns that a statement's result will have; None if it has no rows."""
        if statement.action not in _WITH_ROWS:
            return None
        if statement.action is Action.QUERY:
            return Shape(*await self._runner.shape(self._asker(), text))
        if statement.action is Action.EXPLAIN:
            return _text_shape("QUERY PLAN")
        assert statement.setting is not None
        shown = self._setting(Action.SHOW, statement.setting)
        assert shown is not None
        return _text_shape(*shown.names)

    async def columns(self) -> Mapping[str, tuple[KnownColumn, ...]]:
        """Return the columns that parameters may be compared with."""
        return (await self._runner.view(self._person)).columns

    async def check_values(self, text: str, values: Sequence[Any]) -> None:
        """Refuse values that would become names of tables or columns."""
        await self._runner.check_values(self._asker(), text, values)

    def _asker(self) -> Asker:
        return Asker(self._person, self.transaction.settings, self._process)

    def _setting(self, action: Action, statement: SettingStatement) -> ResultTable | None:
        settings, name, value = self.transaction.settings, statement.name, statement.value
        if action is Action.SHOW:
            return _shown(settings, name)
        if name == "all":
            self._change(settings.reset(), self.transaction.committed.reset())
            return None
        changed = settings.with_value(name, value)
        self._change(changed, None if statement.is_local else self.transaction.committed.with_value(name, value))
        return None

    def _change(self, settings: SessionSettings, committed: SessionSettings | None) -> None:
        self.transaction.change(settings, committed)


def _shown(settings: SessionSettings, name: str) -> ResultTable:
    if name != "all":
        title = own_setting(name) or _TITLES.get(name, name)
        return ResultTable((title,), pa.table([pa.array([settings.shown(name)], pa.string())], names=["c0"]))
    names = [*("epsilon", "rho", "margin", "details", "purpose"), *sorted(DEFAULTS)]
    values = [settings.shown(each) for each in names]
    columns = [pa.array(each, pa.string()) for each in (names, values, [""] * len(names))]
    return ResultTable(_ALL_NAMES, pa.table(columns, names=["c0", "c1", "c2"]))


def _text_shape(*names: str) -> Shape:
    return Shape(names, pa.schema([(f"c{place}", pa.string()) for place in range(len(names))]))
