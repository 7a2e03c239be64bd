"""What clients send, as records: decoded from the bytes of one message each, or malformed."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

CANCEL_CODE, SSL_CODE, GSSENC_CODE = 80877102, 80877103, 80877104
PROTOCOL_MAJOR = 3
T = TypeVar("T")


class MalformedMessage(Exception):  # noqa: N818 - an outcome
    """Bytes that are not a message of the protocol; the text says why."""


@dataclass(frozen=True)
class StartupMessage:
    """The first message: the minor version of protocol 3, the user, the database and settings."""

    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class EncryptionRequest:
    """A request for TLS, or for GSSAPI encryption."""

    is_tls: bool


@dataclass(frozen=True)
class CancelRequest:
    """A request, on a connection of its own, to cancel what another connection is doing."""

    process: int
    secret: bytes


@dataclass(frozen=True)
class SaslStart:
    """The mechanism that the client chose, and its first message."""

    mechanism: str
    data: bytes


@dataclass(frozen=True)
class SaslData:
    """A further message of the client within its mechanism."""

    data: bytes


@dataclass(frozen=True)
class SimpleQuery:
    """One or more statements as text."""

    text: str


@dataclass(frozen=True)
class Parse:
    """A statement to prepare, with the types of its parameters; 0 is a type to be inferred."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """Values for a prepared statement; formats are 0 for text and 1 for binary, one for all or one for each."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class Describe:
    """A request for the columns of a prepared statement or of a portal."""

    is_portal: bool
    name: str


@dataclass(frozen=True)
class Execute:
    """A request to run a portal; no more rows than `limit`, unless it is 0."""

    portal: str
    limit: int


@dataclass(frozen=True)
class Close:
    """A request to forget a prepared statement or a portal."""

    is_portal: bool
    name: str


@dataclass(frozen=True)
class Flush:
    """A request to send what is waiting to be sent."""


@dataclass(frozen=True)
class Sync:
    """The end of a series of messages of the extended protocol."""


@dataclass(frozen=True)
class Terminate:
    """The end of the connection."""


@dataclass(frozen=True)
class FunctionCallRequest:
    """A call of a function by its number, which no client needs any more."""


@dataclass(frozen=True)
class CopyInput:
    """Data for a COPY FROM, which does not exist here."""


class _Fields:
    """The fields of one message, from the first to the last."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._at + size
        if size < 0 or end > len(self._body):
            raise MalformedMessage("a message is shorter than its fields")
        self._at, start = end, self._at
        return self._body[start:end]

    def number(self, form: str) -> int:
        """Return the next number: h and i are signed and have 2 and 4 bytes, I is not."""
        value: int = struct.unpack("!" + form, self.take(struct.calcsize("!" + form)))[0]
        return value

    def numbers(self, form: str) -> tuple[int, ...]:
        """Return a list of numbers, which follows its length."""
        count = self.number("H")
        return struct.unpack(f"!{count}{form}", self.take(count * struct.calcsize("!" + form)))

    def text(self) -> str:
        """Return the next text; bytes that are not UTF-8 become surrogates, which the parser of SQL refuses."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise MalformedMessage("a text has no end")
        return (self.take(end + 1 - self._at)[:-1]).decode("utf-8", "surrogateescape")

    def value(self) -> bytes | None:
        """Return the next value, which follows its length; None for NULL."""
        size = self.number("i")
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        """Return all that remains."""
        return self.take(len(self._body) - self._at)

    def is_portal(self) -> bool:
        """Return whether a portal is meant, and not a prepared statement."""
        kind = self.take(1)
        if kind not in (b"P", b"S"):
            raise MalformedMessage("neither a prepared statement nor a portal is named")
        return kind == b"P"

    def end(self) -> None:
        """Check that nothing remains."""
        if self._at != len(self._body):
            raise MalformedMessage("a message is longer than its fields")


Message = (
    StartupMessage | EncryptionRequest | CancelRequest | SaslStart | SaslData | SimpleQuery | Parse | Bind | Describe
    | Execute | Close | Flush | Sync | Terminate | FunctionCallRequest | CopyInput
)  # fmt: skip


def _bind(fields: _Fields) -> Bind:
    portal, statement, formats = fields.text(), fields.text(), fields.numbers("h")
    values = tuple(fields.value() for _ in range(fields.number("H")))
    return Bind(portal, statement, formats, values, fields.numbers("h"))


def _ignored(message: Message) -> Callable[[_Fields], Message]:
    def read(fields: _Fields) -> Message:
        fields.rest()
        return message

    return read


_DECODERS: Mapping[bytes, Callable[[_Fields], Message]] = {
    b"Q": lambda fields: SimpleQuery(fields.text()),
    b"P": lambda fields: Parse(fields.text(), fields.text(), fields.numbers("I")),
    b"B": _bind,
    b"D": lambda fields: Describe(fields.is_portal(), fields.text()),
    b"E": lambda fields: Execute(fields.text(), max(0, fields.number("i"))),
    b"C": lambda fields: Close(fields.is_portal(), fields.text()),
    b"H": lambda _: Flush(),
    b"S": lambda _: Sync(),
    b"X": lambda _: Terminate(),
    b"F": _ignored(FunctionCallRequest()),
    **dict.fromkeys((b"d", b"c", b"f"), _ignored(CopyInput())),
}


def decode_message(kind: bytes, body: bytes) -> Message:
    r"""Decode a message with a type byte; MalformedMessage if it is none.

    >>> decode_message(b"E", b"portal\0" + bytes(4))
    Execute(portal='portal', limit=0)
    """
    if kind not in _DECODERS:
        raise MalformedMessage("a message has an unknown type")
    return _all_of(body, _DECODERS[kind])


def decode_first(body: bytes) -> StartupMessage | EncryptionRequest | CancelRequest:
    r"""Decode a message that may begin a connection, without its length; it has no type byte.

    >>> decode_first(bytes.fromhex("00030000") + b"user\0ana\0\0")
    StartupMessage(minor=0, parameters={'user': 'ana'})
    """
    return _all_of(body, _first)


def _first(fields: _Fields) -> StartupMessage | EncryptionRequest | CancelRequest:
    match fields.number("I"):
        case code if code in (SSL_CODE, GSSENC_CODE):
            return EncryptionRequest(code == SSL_CODE)
        case code if code == CANCEL_CODE:
            return CancelRequest(fields.number("I"), fields.rest())
        case version if version >> 16 == PROTOCOL_MAJOR:
            parameters = {}
            while name := fields.text():
                parameters[name] = fields.text()
            return StartupMessage(version & 0xFFFF, parameters)
    raise MalformedMessage("the version of the protocol is not 3")


def decode_sasl(body: bytes, *, is_first: bool) -> SaslStart | SaslData:
    r"""Decode a message of an authentication: the first names its mechanism.

    >>> decode_sasl(b"PLAIN\0" + bytes([0, 0, 0, 1]) + b"x", is_first=True)
    SaslStart(mechanism='PLAIN', data=b'x')
    """
    if not is_first:
        return SaslData(body)
    return _all_of(body, lambda fields: SaslStart(fields.text(), fields.value() or b""))


def _all_of(body: bytes, read: Callable[[_Fields], T]) -> T:
    fields = _Fields(body)
    message = read(fields)
    fields.end()
    return message
