"""What statements do, as records."""

from dataclasses import dataclass, field
from enum import Enum

from discreet.dbapi.settings import SettingStatement


class Action(Enum):
    """What a statement does."""

    NOTHING = "nothing"
    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    ROLLBACK_TO = "ROLLBACK TO"
    SAVEPOINT = "SAVEPOINT"
    RELEASE = "RELEASE"
    SET = "SET"
    RESET = "RESET"
    SHOW = "SHOW"
    DEALLOCATE = "DEALLOCATE"
    DISCARD = "DISCARD ALL"
    ACCEPTED = "accepted"
    EXPLAIN = "EXPLAIN"
    COPY = "COPY"
    DECLARE = "DECLARE CURSOR"
    FETCH = "FETCH"
    MOVE = "MOVE"
    CLOSE = "CLOSE CURSOR"
    QUERY = "SELECT"


@dataclass(frozen=True)
class CopyFormat:
    """How COPY writes rows: text, csv or binary."""

    name: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'


@dataclass(frozen=True)
class Statement:
    """One statement: its action, its query if it has one, and what the action needs; `offset` is where it begins.

    `name` is that of a prepared statement or a cursor; "" means all. A cursor that is held outlives its transaction.
    `count` is the number of rows to fetch, None for all.
    """

    action: Action
    text: str
    offset: int = 0
    tag: str = ""
    setting: SettingStatement | None = None
    copy: CopyFormat = field(default_factory=CopyFormat)
    name: str = ""
    is_held: bool = False
    has_parameters: bool = False
    count: int | None = None
