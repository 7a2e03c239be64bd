"""COPY … TO STDOUT and cursors: what their statements say."""

from collections.abc import Mapping, Sequence

from sqlglot import Token, TokenType

from discreet.kernel.errors import Refused
from discreet.query.syntax.parse import tokenise
from discreet.server.pgwire.actions import Action, CopyFormat, Statement
from discreet.server.pgwire.errors import WireError

_COPY_HINT = "Write COPY (SELECT …) TO STDOUT, with FORMAT text, csv or binary."
_FETCH_HINT = "Write FETCH 100 FROM the cursor, or FETCH ALL."
_FORMATS: Mapping[str, CopyFormat] = {
    "text": CopyFormat(),
    "csv": CopyFormat("csv", ",", ""),
    "binary": CopyFormat("binary"),
}


def read_declare(text: str, offset: int) -> Statement:
    """Read DECLARE name CURSOR FOR query; spaces replace all but the query.

    >>> read_declare("DECLARE c CURSOR FOR SELECT 1", 0).text
    '                     SELECT 1'
    """
    tokens = _tokens_after_first(text)
    words = [token.text.upper() for token in tokens]
    if "CURSOR" not in words or "FOR" not in words:
        raise WireError("42601", "syntax error in DECLARE. Write DECLARE name CURSOR FOR SELECT …")
    place = words.index("FOR")
    start, is_held = tokens[place].end + 1, "WITH HOLD" in " ".join(words[:place])
    query = _blank(text[:start]) + text[start:]
    return Statement(Action.DECLARE, query, offset, Action.DECLARE.value, name=tokens[0].text, is_held=is_held)


def read_fetch(action: Action, text: str, offset: int) -> Statement:
    """Read FETCH [FORWARD] [count | ALL | NEXT] [FROM | IN] name.

    >>> read_fetch(Action.FETCH, "FETCH FORWARD 10 FROM c", 0).count
    10
    """
    skipped = ("FORWARD", "FROM", "IN", ";")
    words = [token for token in _tokens_after_first(text) if token.text.upper() not in skipped]
    wanted = words[0].text.upper() if len(words) == 2 else "NEXT"
    is_count = wanted in ("ALL", "NEXT") or (wanted.isdecimal() and len(wanted) < 10)
    if not 1 <= len(words) <= 2 or not is_count:
        raise WireError("0A000", f"{action.value} goes forward only. {_FETCH_HINT}")
    count = {"ALL": None, "NEXT": 1}[wanted] if wanted in ("ALL", "NEXT") else int(wanted)
    return Statement(action, text, offset, action.value, name=words[-1].text, count=count)


def _tokens_after_first(text: str) -> tuple[Token, ...]:
    """Return the tokens after the first word, which would otherwise be one string."""
    first = tokenise(text)[0]
    end = text.upper().index(first.text.upper(), first.start) + len(first.text)
    return tokenise(_blank(text[:end]) + text[end:])


def _blank(text: str) -> str:
    return "".join(char if char == "\n" else " " for char in text)


def read_copy(text: str, offset: int) -> Statement:
    """Read COPY (query) TO STDOUT with its options; spaces replace all but the query, so that positions stay right.

    >>> read_copy("COPY (SELECT 1) TO STDOUT WITH (FORMAT csv)", 0).copy.name
    'csv'
    """
    tokens = tokenise(text)
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
    query = _blank(text[:start]) + text[start:end]
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
