"""What a text says: its statements, and for each what is to be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import Token, TokenType

from discreet.dbapi.settings import SettingStatement, parse_setting, split_command
from discreet.kernel.errors import Refused
from discreet.query.syntax.parse import check_text, tokenise
from discreet.server.pgwire.errors import WireError


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
    """One statement: its action, its query if it has one, and what the action needs; `offset` is where it begins."""

    action: Action
    text: str
    offset: int = 0
    tag: str = ""
    setting: SettingStatement | None = None
    copy: CopyFormat = field(default_factory=CopyFormat)
    name: str = ""


_COPY_HINT = "Write COPY (SELECT …) TO STDOUT, with FORMAT text, csv or binary."
_ACCEPTED = {"UNLISTEN": "UNLISTEN", "CLOSE": "CLOSE CURSOR", "CHECKPOINT": "CHECKPOINT"}
_FORMATS: Mapping[str, CopyFormat] = {
    "text": CopyFormat(),
    "csv": CopyFormat("csv", ",", ""),
    "binary": CopyFormat("binary"),
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
    pieces = [(start, text[start:end]) for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [
        (start, piece) for start, piece in pieces if any(start <= token.start < start + len(piece) for token in tokens)
    ]


def read_statement(text: str, offset: int = 0) -> Statement:
    """Return what a single statement does; Refused if its form is wrong.

    >>> read_statement("START TRANSACTION").action, read_statement("show epsilon").setting.name
    (<Action.BEGIN: 'BEGIN'>, 'epsilon')
    """
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
        case ["DEALLOCATE", *rest]:
            name = "" if rest[-1:] == ["ALL"] else next((token.text for token in reversed(tokens)), "")
            return Statement(Action.DEALLOCATE, text, offset, "DEALLOCATE ALL" if not name else "DEALLOCATE", name=name)
        case ["DISCARD", "ALL" | "PLANS" | "TEMP" | "TEMPORARY" | "SEQUENCES" as what]:
            action = Action.DISCARD if what == "ALL" else Action.ACCEPTED
            return Statement(action, text, offset, f"DISCARD {what}")
        case [first, *_] if first in _ACCEPTED:
            return Statement(Action.ACCEPTED, text, offset, _ACCEPTED[first])
        case ["COPY", *_]:
            return _copy(tokens, text, offset)
    return None


def _copy(tokens: Sequence[Token], text: str, offset: int) -> Statement:
    """Read COPY (query) TO STDOUT with its options; spaces replace all but the query, so that positions stay right."""
    if len(tokens) < 2 or tokens[1].token_type is not TokenType.L_PAREN:
        raise WireError("0A000", f"COPY reads the result of a query, not a table or a file. {_COPY_HINT}")
    depth, close = 0, 0
    for place, token in enumerate(tokens[1:], 1):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0:
            close = place
            break
    options = [token for token in tokens[close + 1 :] if token.token_type is not TokenType.SEMICOLON]
    if not close or [token.text.upper() for token in options[:2]] != ["TO", "STDOUT"]:
        raise WireError("0A000", f"COPY writes to STDOUT only. {_COPY_HINT}")
    start, end = tokens[1].end + 1, tokens[close].start
    query = "".join(char if char == "\n" else " " for char in text[:start]) + text[start:end]
    return Statement(Action.COPY, query, offset, "COPY", copy=_copy_format(options[2:]))


def _copy_format(tokens: Sequence[Token]) -> CopyFormat:
    words = [token for token in tokens if token.text.upper() not in ("WITH", "(", ")", ",", "AS")]
    values: dict[str, str] = {}
    known = ("FORMAT", "HEADER", "DELIMITER", "NULL", "QUOTE", "ENCODING", "CSV", "BINARY")
    at = 0
    while at < len(words):
        name, at = words[at].text.upper(), at + 1
        if name not in known:
            raise WireError("42601", f'COPY: option "{name}" is not supported. {_COPY_HINT}')
        if name in ("CSV", "BINARY"):
            name, values["FORMAT"] = "", name
        elif at < len(words) and words[at].text.upper() not in known:
            values[name], at = words[at].text, at + 1
        else:
            values[name] = "true"
    chosen = _FORMATS.get(values.get("FORMAT", "text").lower())
    if chosen is None:
        raise WireError("22023", f"COPY: the format is not known. {_COPY_HINT}")
    return CopyFormat(
        chosen.name,
        _one_character(values.get("DELIMITER", chosen.delimiter)),
        values.get("NULL", chosen.null),
        values.get("HEADER", "false").lower() in ("true", "on", "1"),
        _one_character(values.get("QUOTE", chosen.quote)),
    )


def _one_character(text: str) -> str:
    if len(text) != 1 or text in "\r\n" or not text.isascii():
        raise Refused("COPY: DELIMITER and QUOTE must be a single ASCII character.")
    return text
