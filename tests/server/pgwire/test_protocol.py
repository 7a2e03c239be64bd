"""The protocol without sockets: what may come when, in any portions, and what ends a connection."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.server.pgwire import messages, replies
from discreet.server.pgwire.messages import (
    Bind,
    CancelRequest,
    Close,
    Describe,
    EncryptionRequest,
    Execute,
    Flush,
    FunctionCallRequest,
    Parse,
    SaslData,
    SaslStart,
    SimpleQuery,
    StartupMessage,
    Sync,
    Terminate,
)
from discreet.server.pgwire.protocol import (
    MAX_FIRST_MESSAGE,
    MAX_MESSAGE,
    TABLE,
    ProtocolViolation,
    ServerProtocol,
    State,
)
from discreet.server.pgwire.replies import Reply

USER = b"user\0ana\0database\0visits\0\0"
START = struct.pack("!II", 8 + len(USER), 3 << 16) + USER
QUERY = replies.message(b"Q", b"SELECT 1\0")
BIND = struct.pack("!HhHi", 1, 1, 2, 3) + b"abc" + struct.pack("!iHh", -1, 1, 1)
SERIES = {
    Parse("s", "SELECT $1", (25,)): replies.message(b"P", b"s\0SELECT $1\0" + struct.pack("!HI", 1, 25)),
    Bind("p", "s", (1,), (b"abc", None), (1,)): replies.message(b"B", b"p\0s\0" + BIND),
    Describe(is_portal=True, name="p"): replies.message(b"D", b"Pp\0"),
    Execute("p", 10): replies.message(b"E", b"p\0" + struct.pack("!i", 10)),
    Close(is_portal=False, name="s"): replies.message(b"C", b"Ss\0"),
    Flush(): replies.message(b"H"),
    Sync(): replies.message(b"S"),
}
GREETING = (
    replies.sasl("SCRAM-SHA-256"),
    replies.sasl_continue(b"r=x"),
    replies.sasl_final(b"v=x"),
    replies.AUTHENTICATED,
    replies.parameter("server_version", "15"),
    replies.key(1, b"abcd"),
    replies.ready("I"),
)


def started():
    """A protocol after authentication."""
    protocol = ServerProtocol()
    protocol.receive(START)
    assert isinstance(protocol.next_message(), StartupMessage)
    protocol.send(GREETING[0])
    protocol.receive(replies.message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 5) + b"n,,..."[:5]))
    assert protocol.next_message() == SaslStart("SCRAM-SHA-256", b"n,,..")
    protocol.send(GREETING[1])
    protocol.receive(replies.message(b"p", b"c=biws"))
    assert protocol.next_message() == SaslData(b"c=biws")
    for reply in GREETING[2:]:
        protocol.send(reply)
    assert protocol.state is State.IDLE
    return protocol


def test_a_connection_starts_with_the_user_and_settings():
    protocol = ServerProtocol()
    protocol.receive(START)
    assert protocol.next_message() == StartupMessage(0, {"user": "ana", "database": "visits"})


@pytest.mark.parametrize(("code", "is_tls"), [(messages.SSL_CODE, True), (messages.GSSENC_CODE, False)])
def test_encryption_is_asked_for_before_anything_else(code, is_tls):
    protocol = ServerProtocol()
    protocol.receive(struct.pack("!II", 8, code))
    assert protocol.next_message() == EncryptionRequest(is_tls)
    assert protocol.send(replies.TLS_REFUSED) == b"N"
    protocol.receive(START)
    assert isinstance(protocol.next_message(), StartupMessage)


def test_a_cancel_request_ends_its_own_connection():
    protocol = ServerProtocol()
    protocol.receive(struct.pack("!III", 16, messages.CANCEL_CODE, 7) + b"abcd")
    assert protocol.next_message() == CancelRequest(7, b"abcd")
    assert protocol.state is State.CLOSED


def test_a_simple_query_waits_until_the_answer_is_complete():
    protocol = started()
    protocol.receive(QUERY)
    assert protocol.next_message() == SimpleQuery("SELECT 1")
    protocol.send(replies.columns([replies.ColumnHeader("n", 20, 8)]))
    protocol.send(replies.complete("SELECT 0"))
    protocol.send(replies.ready("I"))
    assert protocol.state is State.IDLE


def test_a_series_is_read_message_by_message():
    protocol = started()
    protocol.receive(b"".join(SERIES.values()))
    assert [protocol.next_message() for _ in SERIES] == list(SERIES)
    assert protocol.state is State.SYNCING


def test_after_an_error_nothing_counts_until_sync():
    protocol = started()
    protocol.receive(SERIES[Flush()])
    protocol.next_message()
    protocol.send(replies.error({"C": "42601", "M": "syntax error"}))
    protocol.receive(b"".join(SERIES.values()) + QUERY)
    assert protocol.next_message() == Sync()
    protocol.send(replies.ready("I"))
    assert protocol.next_message() == SimpleQuery("SELECT 1")


def test_data_for_a_copy_that_does_not_exist_is_ignored():
    protocol = started()
    protocol.receive(replies.message(b"d", b"1\n") + replies.message(b"c") + QUERY)
    assert protocol.next_message() == SimpleQuery("SELECT 1")


def test_a_function_call_and_the_end_are_read():
    protocol = started()
    protocol.receive(replies.message(b"F", b"anything"))
    assert protocol.next_message() == FunctionCallRequest()
    protocol.send(replies.ready("I"))
    protocol.receive(replies.message(b"X"))
    assert protocol.next_message() == Terminate()
    assert protocol.state is State.CLOSED


@given(st.lists(st.integers(1, 9), max_size=30))
def test_portions_do_not_matter(sizes):
    protocol, data, found = started(), b"".join(SERIES.values()), []
    for size in [*sizes, len(data)]:
        protocol.receive(data[:size])
        data = data[size:]
        while (message := protocol.next_message()) is not None:
            found.append(message)
    assert found == list(SERIES)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!II", 8, 2 << 16),
        struct.pack("!II", 7, 3 << 16),
        struct.pack("!i", -1) + bytes(4),
        struct.pack("!I", MAX_FIRST_MESSAGE + 5),
        struct.pack("!II", 12, 3 << 16) + b"user",
        struct.pack("!II", 9 + len(USER), 3 << 16) + USER + b"x",
    ],
    ids=["version 2", "too short", "negative", "too long", "no end", "a rest"],
)
def test_a_first_message_that_breaks_the_rules_ends_the_connection(data):
    protocol = ServerProtocol()
    protocol.receive(data)
    with pytest.raises(ProtocolViolation):
        protocol.next_message()


@pytest.mark.parametrize(
    "data",
    [
        replies.message(b"!"),
        b"Q" + struct.pack("!I", 3),
        b"Q" + struct.pack("!I", MAX_MESSAGE + 5),
        replies.message(b"Q", b"SELECT 1"),
        replies.message(b"Q", b"SELECT 1\0x"),
        replies.message(b"P", b"s\0SELECT\0" + struct.pack("!H", 3)),
        replies.message(b"B", b"p\0s\0" + struct.pack("!HHi", 0, 1, -2)),
        replies.message(b"B", b"p\0s\0" + struct.pack("!HH", 0, 65535)),
        replies.message(b"D", b"Xp\0"),
        replies.message(b"E", b"p\0"),
        replies.message(b"p", b"SCRAM-SHA-256\0"),
    ],
)
def test_a_message_that_breaks_the_rules_ends_the_connection(data):
    protocol = started()
    protocol.receive(data)
    with pytest.raises(ProtocolViolation):
        protocol.next_message()


def test_the_limit_is_smaller_before_authentication():
    protocol = ServerProtocol()
    protocol.receive(START)
    protocol.next_message()
    protocol.send(GREETING[0])
    protocol.receive(b"p" + struct.pack("!I", MAX_FIRST_MESSAGE + 5))
    with pytest.raises(ProtocolViolation, match="too long"):
        protocol.next_message()


@pytest.mark.parametrize("reply", [replies.ready("I"), replies.complete("SELECT 1"), replies.AUTHENTICATED])
def test_the_server_cannot_answer_what_was_not_asked(reply):
    protocol = started()
    with pytest.raises(ProtocolViolation):
        protocol.send(reply)


def test_nobody_is_authenticated_without_a_proof():
    authenticated = {state for state, events in TABLE.items() if Reply.AUTHENTICATED in events}
    assert authenticated == {State.SASL_CHECKING}
    assert {state for state, events in TABLE.items() if State.SASL_CHECKING in events.values()} == {
        State.SASL_PROOF,
        State.SASL_CHECKING,
    }
    assert TABLE[State.SASL_PROOF][SaslData] is State.SASL_CHECKING
    asking = {state for state, events in TABLE.items() if {SimpleQuery, Parse} & set(events)}
    assert asking == {State.IDLE, State.EXTENDED, State.SKIPPING}


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_messages_or_a_violation(data, is_started):
    protocol = started() if is_started else ServerProtocol()
    protocol.receive(data)
    try:
        while protocol.next_message() is not None and protocol.state in (State.IDLE, State.EXTENDED, State.SKIPPING):
            pass
    except ProtocolViolation:
        pass
    assert protocol.buffered <= len(data)
