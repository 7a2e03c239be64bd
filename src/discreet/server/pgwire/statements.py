"""What a text says: its statements, and for each what is to be done."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import Token, TokenType

from discreet.dbapi.parameters import numbered_placeholders
from discreet.dbapi.settings import parse_setting, split_command
from discreet.query.syntax.parse import check_text, tokenise
from discreet.server.pgwire.actions import Action, Statement
from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.row_statements import read_copy, read_declare, read_fetch

_MAX_STATEMENTS = 100  # of one message
_ACCEPTED = ("UNLISTEN", "CHECKPOINT")
_READERS: Mapping[str, Callable[[str, int], Statement]] = {
    "COPY": read_copy,
    "DECLARE": read_declare,
    "FETCH": partial(read_fetch, Action.FETCH),
    "MOVE": partial(read_fetch, Action.MOVE),
}


def split_statements(text: str) -> list[tuple[int, str]]:
    """Return the statements of a text that are not empty, each with where it begins.

    >>> split_statements("BEGIN; SELECT ';' ;;")
    [(0, 'BEGIN'), (6, " SELECT ';' ")]
    """
    check_text(text)
    tokens = tokenise(text)
    ends = [token.start for token in tokens if token.token_type is TokenType.SEMICOLON]
    if not ends:
        return [(0, text)] if tokens else []
    starts = [0, *(end + 1 for end in ends)]
    if len(ends) > _MAX_STATEMENTS:
        raise WireError("54000", f"a message has at most {_MAX_STATEMENTS} statements. Send several messages.")
    positions = [token.start for token in tokens]
    pieces = [(start, end) for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [
        (start, text[start:end])
        for start, end in pieces
        if (at := bisect_left(positions, start)) < len(positions) and positions[at] < end
    ]


def read_statement(text: str, offset: int = 0) -> Statement:
    """Return what a single statement does, and whether it has parameters; Refused if its form is wrong.

    >>> read_statement("START TRANSACTION").action, read_statement("show epsilon").setting.name
    (<Action.BEGIN: 'BEGIN'>, 'epsilon')
    """
    statement = _without_parameters(text, offset)
    return replace(statement, has_parameters=bool(numbered_placeholders(statement.text)))


def _without_parameters(text: str, offset: int) -> Statement:
    check_text(text)
    tokens = tokenise(text)
    if not tokens:
        return Statement(Action.NOTHING, text, offset)
    command, rest = split_command(text)
    if command in ("SET", "RESET", "SHOW"):
        return Statement(Action(command), text, offset, command, parse_setting(command, rest))
    if command == "EXPLAIN":
        return Statement(Action.EXPLAIN, rest, offset, "EXPLAIN")
    words = [token.text.upper() for token in tokens if token.token_type is not TokenType.SEMICOLON]
    return _transaction(words, text, offset) or _housekeeping(words, tokens, text, offset) or _query(text, offset)


def _query(text: str, offset: int) -> Statement:
    return Statement(Action.QUERY, text, offset, "SELECT")


def _transaction(words: Sequence[str], text: str, offset: int) -> Statement | None:
    first = words[0] if words else ""
    if first in ("COMMIT", "ROLLBACK") and words[1:2] == ["PREPARED"]:
        raise WireError("0A000", "prepared transactions are not supported. Use COMMIT or ROLLBACK.")
    match first:
        case "BEGIN" | "START":
            action = Action.BEGIN
        case "COMMIT" | "END":
            action = Action.COMMIT
        case "ROLLBACK" | "ABORT":
            action = Action.ROLLBACK_TO if "TO" in words[1:3] else Action.ROLLBACK
        case "SAVEPOINT" | "RELEASE":
            action = Action(first)
        case _:
            return None
    tag = {Action.BEGIN: "START TRANSACTION" if first == "START" else "BEGIN", Action.ROLLBACK_TO: "ROLLBACK"}
    return Statement(action, text, offset, tag.get(action, action.value))


def _housekeeping(words: Sequence[str], tokens: Sequence[Token], text: str, offset: int) -> Statement | None:
    match words:
        case ["DEALLOCATE" | "CLOSE" as first, *_, last]:
            action = Action.DEALLOCATE if first == "DEALLOCATE" else Action.CLOSE
            name = "" if last == "ALL" else tokens[len(words) - 1].text
            tag = action.value if name or action is Action.CLOSE else "DEALLOCATE ALL"
            return Statement(action, text, offset, tag, name=name)
        case ["DISCARD", "ALL" | "PLANS" | "TEMP" | "TEMPORARY" | "SEQUENCES" as what]:
            action = Action.DISCARD if what == "ALL" else Action.ACCEPTED
            return Statement(action, text, offset, f"DISCARD {what}")
        case [first, *_] if first in _ACCEPTED:
            return Statement(Action.ACCEPTED, text, offset, first)
    reader = _READERS.get(words[0]) if words else None
    return None if reader is None else reader(text, offset)
