"""What the server sends: each reply as its kind and its bytes."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

_COPY_FORMATS = {"text": 0, "csv": 0, "binary": 1}


class Reply(Enum):
    """The kinds of replies, by which the table of the protocol says what may come next."""

    TLS_ANSWER = "TLS_ANSWER"
    SASL = "SASL"
    SASL_CONTINUE = "SASL_CONTINUE"
    SASL_FINAL = "SASL_FINAL"
    AUTHENTICATED = "AUTHENTICATED"
    NEGOTIATE = "NEGOTIATE"
    KEY = "KEY"
    PARAMETER = "PARAMETER"
    NOTICE = "NOTICE"
    READY = "READY"
    ERROR = "ERROR"
    FATAL = "FATAL"
    PARSED = "PARSED"
    BOUND = "BOUND"
    CLOSED = "CLOSED"
    PARAMETER_TYPES = "PARAMETER_TYPES"
    COLUMNS = "COLUMNS"
    NO_DATA = "NO_DATA"
    ROWS = "ROWS"
    SUSPENDED = "SUSPENDED"
    COMPLETE = "COMPLETE"
    EMPTY = "EMPTY"
    COPY_START = "COPY_START"
    COPY_DATA = "COPY_DATA"
    COPY_END = "COPY_END"


@dataclass(frozen=True)
class Outgoing:
    """A reply: its kind, and its bytes; rows may be many messages of one kind."""

    kind: Reply
    data: bytes


@dataclass(frozen=True)
class ColumnHeader:
    """A column of a result: its name, the number and size of its type, and its format (0 text, 1 binary)."""

    name: str
    oid: int
    size: int
    format: int = 0


def message(kind: bytes, body: bytes = b"") -> bytes:
    r"""Return the bytes of one message.

    >>> message(b"Z", b"I")
    b'Z\x00\x00\x00\x05I'
    """
    return kind + struct.pack("!I", len(body) + 4) + body


def _text(value: str) -> bytes:
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


def _fixed(kind: Reply, code: bytes, body: bytes = b"") -> Outgoing:
    return Outgoing(kind, message(code, body))


PARSED = _fixed(Reply.PARSED, b"1")
BOUND = _fixed(Reply.BOUND, b"2")
CLOSED = _fixed(Reply.CLOSED, b"3")
NO_DATA = _fixed(Reply.NO_DATA, b"n")
EMPTY = _fixed(Reply.EMPTY, b"I")
SUSPENDED = _fixed(Reply.SUSPENDED, b"s")
COPY_END = _fixed(Reply.COPY_END, b"c")
AUTHENTICATED = _fixed(Reply.AUTHENTICATED, b"R", struct.pack("!I", 0))
TLS_ACCEPTED, TLS_REFUSED = Outgoing(Reply.TLS_ANSWER, b"S"), Outgoing(Reply.TLS_ANSWER, b"N")


def sasl(mechanism: str) -> Outgoing:
    """Offer one mechanism."""
    return _fixed(Reply.SASL, b"R", struct.pack("!I", 10) + _text(mechanism) + b"\0")


def sasl_continue(data: bytes) -> Outgoing:
    """Send the server's first message within the mechanism."""
    return _fixed(Reply.SASL_CONTINUE, b"R", struct.pack("!I", 11) + data)


def sasl_final(data: bytes) -> Outgoing:
    """Send the server's last message within the mechanism."""
    return _fixed(Reply.SASL_FINAL, b"R", struct.pack("!I", 12) + data)


def negotiate(minor: int, unknown: Sequence[str]) -> Outgoing:
    """Say which minor version is spoken, and which options of the protocol are not known."""
    body = struct.pack("!II", minor, len(unknown)) + b"".join(map(_text, unknown))
    return _fixed(Reply.NEGOTIATE, b"v", body)


def key(process: int, secret: bytes) -> Outgoing:
    """Send what a CancelRequest needs."""
    return _fixed(Reply.KEY, b"K", struct.pack("!I", process) + secret)


def parameter(name: str, value: str) -> Outgoing:
    """Report the value of a setting."""
    return _fixed(Reply.PARAMETER, b"S", _text(name) + _text(value))


def ready(status: str) -> Outgoing:
    """Say that the next message may come; I, T or E: outside of, in, or in a failed transaction."""
    return _fixed(Reply.READY, b"Z", status.encode())


def _fields(fields: Mapping[str, str]) -> bytes:
    return b"".join(code.encode() + _text(value) for code, value in fields.items() if value) + b"\0"


def error(fields: Mapping[str, str], *, is_fatal: bool = False) -> Outgoing:
    r"""Report an error by its fields: C the SQLSTATE, M the message, H the hint, P the position …; some end everything.

    >>> error({"C": "42601", "M": "syntax error"}).data
    b'E\x00\x00\x00(SERROR\x00VERROR\x00C42601\x00Msyntax error\x00\x00'
    """
    severity = "FATAL" if is_fatal else "ERROR"
    body = _fields({"S": severity, "V": severity, **fields})
    return _fixed(Reply.FATAL if is_fatal else Reply.ERROR, b"E", body)


def notice(text: str, severity: str = "NOTICE") -> Outgoing:
    """Tell something that is not an error."""
    return _fixed(Reply.NOTICE, b"N", _fields({"S": severity, "V": severity, "C": "00000", "M": text}))


def parameter_types(oids: Sequence[int]) -> Outgoing:
    """Say the types of a statement's parameters."""
    return _fixed(Reply.PARAMETER_TYPES, b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def columns(headers: Sequence[ColumnHeader]) -> Outgoing:
    """Describe the columns of the rows that follow."""
    body = b"".join(
        _text(header.name) + struct.pack("!IhIhih", 0, 0, header.oid, header.size, -1, header.format)
        for header in headers
    )
    return _fixed(Reply.COLUMNS, b"T", struct.pack("!H", len(headers)) + body)


def complete(tag: str) -> Outgoing:
    """Say that a statement is done, with its name and the number of rows."""
    return _fixed(Reply.COMPLETE, b"C", _text(tag))


def copy_start(form: str, width: int) -> Outgoing:
    """Begin the output of COPY in a format: text, csv or binary."""
    code = _COPY_FORMATS[form]
    return _fixed(Reply.COPY_START, b"H", struct.pack(f"!bH{width}h", code, width, *[code] * width))
