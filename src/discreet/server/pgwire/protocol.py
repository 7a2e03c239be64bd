"""The protocol without sockets: bytes become messages, and one table says what may come when.

STARTUP ─ StartupMessage ─► AUTHENTICATING ─► SASL_START ─► … ─► STARTING ─ READY ─► IDLE
IDLE ─ SimpleQuery ─► SIMPLE ─ READY ─► IDLE
IDLE ─ Parse, Bind … ─► EXTENDED ─ Sync ─► SYNCING ─ READY ─► IDLE
EXTENDED ─ ERROR ─► SKIPPING: nothing counts until Sync
"""

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from discreet.server.pgwire.messages import (
    Bind,
    CancelRequest,
    Close,
    CopyInput,
    Describe,
    EncryptionRequest,
    Execute,
    Flush,
    FunctionCallRequest,
    MalformedMessage,
    Message,
    Parse,
    SaslData,
    SaslStart,
    SimpleQuery,
    StartupMessage,
    Sync,
    Terminate,
    decode_first,
    decode_message,
    decode_sasl,
)
from discreet.server.pgwire.replies import Outgoing, Reply

MAX_FIRST_MESSAGE = 10_000  # as in PostgreSQL
MAX_MESSAGE = 1 << 20  # a statement has at most 100,000 characters


class State(Enum):
    """What a connection is doing."""

    STARTUP = auto()
    ENCRYPTING = auto()
    AUTHENTICATING = auto()
    SASL_START = auto()
    SASL_ANSWERING = auto()
    SASL_PROOF = auto()
    SASL_CHECKING = auto()
    STARTING = auto()
    IDLE = auto()
    SIMPLE = auto()
    SIMPLE_COPY = auto()
    EXTENDED = auto()
    EXTENDED_COPY = auto()
    SKIPPING = auto()
    SYNCING = auto()
    CLOSED = auto()


Transitions = Mapping[type[Message] | Reply, State]


def _stay(state: State, *events: type[Message] | Reply) -> Transitions:
    return dict.fromkeys(events, state)


_SERIES: tuple[type[Message], ...] = (Parse, Bind, Describe, Execute, Close, Flush)
_INFORMATION = (Reply.NOTICE, Reply.PARAMETER)
_RESULTS = (*_INFORMATION, Reply.COLUMNS, Reply.ROWS, Reply.COMPLETE, Reply.EMPTY)
_SERIES_REPLIES = (Reply.PARSED, Reply.BOUND, Reply.CLOSED, Reply.PARAMETER_TYPES, Reply.NO_DATA, Reply.SUSPENDED)
_SINCE_START: Transitions = {Reply.FATAL: State.CLOSED}
_SINCE_READY: Transitions = {**_SINCE_START, Terminate: State.CLOSED}

TABLE: Mapping[State, Transitions] = MappingProxyType(
    {
        State.STARTUP: {
            EncryptionRequest: State.ENCRYPTING,
            CancelRequest: State.CLOSED,
            StartupMessage: State.AUTHENTICATING,
            **_SINCE_START,
        },
        State.ENCRYPTING: {Reply.TLS_ANSWER: State.STARTUP, **_SINCE_START},
        State.AUTHENTICATING: {
            Reply.NEGOTIATE: State.AUTHENTICATING,
            Reply.SASL: State.SASL_START,
            **_SINCE_START,
        },
        State.SASL_START: {SaslStart: State.SASL_ANSWERING, **_SINCE_START},
        State.SASL_ANSWERING: {Reply.SASL_CONTINUE: State.SASL_PROOF, **_SINCE_START},
        State.SASL_PROOF: {SaslData: State.SASL_CHECKING, **_SINCE_START},
        State.SASL_CHECKING: {
            Reply.SASL_FINAL: State.SASL_CHECKING,
            Reply.AUTHENTICATED: State.STARTING,
            **_SINCE_START,
        },
        State.STARTING: {
            **_stay(State.STARTING, Reply.KEY, *_INFORMATION),
            Reply.READY: State.IDLE,
            **_SINCE_START,
        },
        State.IDLE: {
            SimpleQuery: State.SIMPLE,
            FunctionCallRequest: State.SIMPLE,
            Sync: State.SYNCING,
            **_stay(State.EXTENDED, *_SERIES),
            **_stay(State.IDLE, CopyInput, *_INFORMATION),
            **_SINCE_READY,
        },
        State.SIMPLE: {
            **_stay(State.SIMPLE, Reply.ERROR, *_RESULTS),
            Reply.COPY_START: State.SIMPLE_COPY,
            Reply.READY: State.IDLE,
            **_SINCE_START,
        },
        State.SIMPLE_COPY: {
            Reply.COPY_DATA: State.SIMPLE_COPY,
            **_stay(State.SIMPLE, Reply.COPY_END, Reply.ERROR),
            **_SINCE_START,
        },
        State.EXTENDED: {
            **_stay(State.EXTENDED, CopyInput, *_SERIES, *_SERIES_REPLIES, *_RESULTS),
            Reply.COPY_START: State.EXTENDED_COPY,
            Reply.ERROR: State.SKIPPING,
            **_stay(State.SIMPLE, SimpleQuery, FunctionCallRequest),  # asyncpg does so after a cursor
            Sync: State.SYNCING,
            **_SINCE_READY,
        },
        State.EXTENDED_COPY: {
            Reply.COPY_DATA: State.EXTENDED_COPY,
            Reply.COPY_END: State.EXTENDED,
            Reply.ERROR: State.SKIPPING,
            **_SINCE_START,
        },
        State.SKIPPING: {
            **_stay(State.SKIPPING, SimpleQuery, FunctionCallRequest, CopyInput, *_SERIES),
            Sync: State.SYNCING,
            **_SINCE_READY,
        },
        State.SYNCING: {
            **_stay(State.SYNCING, Reply.ERROR, Reply.COLUMNS, Reply.NO_DATA, *_INFORMATION),
            Reply.READY: State.IDLE,
            **_SINCE_START,
        },
        State.CLOSED: {},
    }
)


class ProtocolViolation(Exception):  # noqa: N818 - an outcome
    """A message that may not come now, or is none; the connection cannot go on."""


class ServerProtocol:
    """The server's side of one connection; whoever owns the socket passes bytes in and out.

    >>> protocol = ServerProtocol()
    >>> protocol.receive(bytes.fromhex("0000000804d2162f"))
    >>> protocol.next_message(), protocol.state
    (EncryptionRequest(is_tls=True), <State.ENCRYPTING: 2>)
    """

    def __init__(self) -> None:
        self.state = State.STARTUP
        self._buffer = bytearray()

    @property
    def buffered(self) -> int:
        """The number of bytes that were received and are not a message yet."""
        return len(self._buffer)

    def receive(self, data: bytes) -> None:
        """Take bytes from the client."""
        self._buffer += data

    def next_message(self) -> Message | None:
        """Return the next message that counts; None until more bytes have come."""
        while True:
            message = self._decode()
            if message is None:
                return None
            is_skipped = self.state is State.SKIPPING
            self._move(type(message))
            if not (is_skipped and self.state is State.SKIPPING) and not isinstance(message, CopyInput):
                return message

    def send(self, reply: Outgoing) -> bytes:
        """Return the bytes of a reply, which must be one that may come now."""
        self._move(reply.kind)
        return reply.data

    def _move(self, event: type[Message] | Reply) -> None:
        state = TABLE[self.state].get(event)
        if state is None:
            name = event.value if isinstance(event, Reply) else event.__name__
            raise ProtocolViolation(f"{name} may not come in the state {self.state.name}")
        self.state = state

    def _decode(self) -> Message | None:
        is_first = self.state in (State.STARTUP, State.ENCRYPTING)
        header = 4 if is_first else 5
        if len(self._buffer) < header:
            return None
        size = int.from_bytes(self._buffer[header - 4 : header]) - 4
        is_early = State.STARTUP.value <= self.state.value < State.IDLE.value
        if not 0 <= size <= (MAX_FIRST_MESSAGE if is_early else MAX_MESSAGE):
            raise ProtocolViolation("a message has no valid length, or is too long")
        if len(self._buffer) < header + size:
            return None
        kind, body = bytes(self._buffer[:1]), bytes(self._buffer[header : header + size])
        del self._buffer[: header + size]
        try:
            if is_first:
                return decode_first(body)
            if kind == b"p":
                return decode_sasl(body, is_first=self.state is State.SASL_START)
            return decode_message(kind, body)
        except MalformedMessage as error:
            raise ProtocolViolation(f"{error}") from None
