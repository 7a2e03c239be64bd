"""Connections: who may connect, what ends one, limits, cancelling, and that others go on meanwhile."""

import asyncio
import contextlib
import datetime as dt
import logging
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from clinic import clinic_policy
from running import running
from wire_client import (
    SSL_REQUEST,
    SYNC,
    WireClient,
    bind,
    error_of,
    execute,
    kinds,
    parse,
    query,
    startup,
    text,
)

from discreet.kernel.errors import PolicyError
from discreet.server.people.person import Role
from discreet.server.pgwire.encryption import Encryption
from discreet.server.pgwire.hub import ConnectionLimits
from discreet.server.pgwire.listener import PgServer
from discreet.server.pgwire.protocol import MAX_MESSAGE
from discreet.server.pgwire.replies import message
from discreet.server.tls import ListenAddress, TlsFiles

ONE = query("SELECT 1")
IDLE = """
import sys, psycopg
connections = []
for count in (50, 200):
    for _ in range(count):
        connections.append(psycopg.connect(sys.argv[1], autocommit=True))
        connections[-1].execute("SELECT relname FROM pg_class").fetchall()
    print("ready", flush=True)
    sys.stdin.readline()
"""


def certificate(folder):
    """Write a certificate for this machine, and return its files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return TlsFiles(folder / "cert.pem", folder / "key.pem")


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """Give a server with TLS."""
    with running(tls=certificate(tmp_path_factory.mktemp("tls"))) as found:
        yield found


def log_in(port, name, token):
    client = WireClient(port)
    found = client.log_in(name, token)
    client.close()
    return found


def test_a_wrong_password_and_an_unknown_user_are_answered_alike(server):
    wrong = log_in(server.port, "ana", "dsc_wrong")
    unknown = log_in(server.port, "nobody", "dsc_wrong")
    assert wrong == unknown
    assert error_of(wrong)["C"] == "28P01"
    assert error_of(wrong)["S"] == "FATAL"
    for name in ("ana", "nobody"):
        first, second = (WireClient(server.port) for _ in range(2))
        salts = []
        for client in (first, second):
            client.send(startup(user=name))
            assert client.reply()[0] == b"R"
            data = b"n,,n=,r=abc"
            client.send(message(b"p", text("SCRAM-SHA-256") + struct.pack("!i", len(data)) + data))
            salts.append(client.reply()[1].split(b",")[1:])
            client.close()
        assert salts[0] == salts[1]  # an unknown name has a salt of its own too, always the same


def test_a_mechanism_that_was_not_offered_is_refused(wire):
    client = wire()
    client.send(startup(user="ana"))
    client.reply()
    client.send(message(b"p", text("SCRAM-SHA-256-PLUS") + struct.pack("!i", 0)))
    assert error_of(client.replies())["C"] == "28000"


@pytest.mark.parametrize("replies", [0, 1, 2])
def test_a_client_may_leave_while_it_logs_in(server, wire, caplog, replies):
    caplog.set_level(logging.ERROR, "discreet")
    client = wire()
    data = b"n,,n=,r=abc"
    first = message(b"p", text("SCRAM-SHA-256") + struct.pack("!i", len(data)) + data)
    for sent in (startup(user="ana"), first)[:replies]:
        client.send(sent)
        client.reply()
    client.close()
    while len(server.server.hub):
        time.sleep(0.01)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_token_that_is_revoked_ends_its_connections(server, wire):
    service, people = server.service, server.service.people
    for revoke in (
        lambda: people.revoke(service.ledger, "rita"),
        lambda: people.add(service.ledger, "rita", Role.OWNER),
    ):
        server.tokens["rita"] = people.add(service.ledger, "rita", Role.OWNER).token
        client = wire("rita")
        assert kinds(client.ask(ONE)) == "TDCZ"
        revoke()
        found = client.ask(ONE)
        assert kinds(found) == "E"
        assert error_of(found)["C"] == "28P01"


def test_too_many_failures_are_refused_for_a_while():
    with running(clinic_policy(failures_per_minute=3)) as found:
        states = [error_of(log_in(found.port, "ana", "dsc_wrong"))["C"] for _ in range(4)]
        assert states == ["28P01"] * 3 + ["53400"]
        assert error_of(log_in(found.port, "ana", found.tokens["ana"]))["C"] == "53400"


def test_connections_are_encrypted_if_the_client_asks(encrypted):
    url = encrypted.url().replace("sslmode=disable", "sslmode=require")
    with psycopg.connect(url, autocommit=True, options="-c epsilon=1") as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT COUNT(*) AS n FROM visits").fetchone()


def test_where_others_can_connect_nothing_is_sent_without_encryption(encrypted):
    encrypted.server.hub.is_local = False
    try:
        found = log_in(encrypted.port, "ana", encrypted.tokens["ana"])
        assert kinds(found) == "E"
        assert error_of(found)["C"] == "28000"
        with psycopg.connect(encrypted.url().replace("sslmode=disable", "sslmode=require")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        encrypted.server.hub.is_local = True


def test_an_address_that_others_can_reach_needs_a_certificate(server):
    with pytest.raises(PolicyError, match="--pg"):
        asyncio.run(PgServer.start(server.service, ListenAddress("0.0.0.0", 0)))


def test_data_that_came_before_encryption_is_not_believed(encrypted):
    client = WireClient(encrypted.port)
    client.send(SSL_REQUEST + startup(user="ana"))
    assert error_of(client.replies())["C"] == "08P01"
    client.close()


def test_encryption_is_at_least_of_version_1_2(encrypted):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    client = WireClient(encrypted.port)
    client.send(SSL_REQUEST)
    assert client._exactly(1) == b"S"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(client.socket)
    client.close()


def test_a_request_for_encryption_that_is_not_there_is_declined(wire):
    client = wire()
    for code in (80877103, 80877104):
        client.send(struct.pack("!II", 8, code))
        assert client._exactly(1) == b"N"
    assert client.log_in("ana", "dsc_wrong")[-1][0] == b"E"


def test_newer_minor_versions_and_unknown_options_are_negotiated(wire):
    client = wire()
    client.send(startup(minor=2, user="ana", **{"_pq_.command_tag_format": "x"}))
    kind, body = client.reply()
    assert (kind, body) == (b"v", struct.pack("!II", 0, 1) + text("_pq_.command_tag_format"))


@pytest.mark.parametrize(
    ("parameters", "state"),
    [
        ({"database": "other"}, "3D000"),
        ({"replication": "database"}, "0A000"),
        ({"nonsense": "1"}, "42704"),
        ({"options": "-c epsilon=-1"}, "42000"),
    ],
)
def test_first_messages_that_make_no_sense_are_refused(server, parameters, state):
    client = WireClient(server.port)
    assert error_of(client.log_in("ana", server.tokens["ana"], **parameters))["C"] == state
    client.close()


def test_clients_settings_are_accepted_shown_and_reported(server, wire):
    client, settings = wire(), {"DateStyle": "German", "TimeZone": "Europe/Berlin", "geqo": "off"}
    found = client.log_in("ana", server.tokens["ana"], **settings)
    reported = dict(body[:-1].split(b"\0") for kind, body in found if kind == b"S")
    assert reported[b"TimeZone"] == b"Europe/Berlin"
    assert reported[b"DateStyle"] == b"ISO, MDY"  # the only style there is
    assert reported[b"server_encoding"] == reported[b"client_encoding"] == b"UTF8"
    assert reported[b"session_authorization"] == b"ana"
    found = client.ask(query("SET application_name = 'x'; SET TIME ZONE 'UTC'; SHOW geqo; RESET ALL"))
    assert kinds(found) == "CSCSTDCCSSZ"


@pytest.mark.parametrize(
    "sql",
    [
        "SET client_encoding = 'LATIN1'",
        "SET DateStyle = 'German'",
        "SET TimeZone = 'Mars'",
        "SET server_version = '99'",
        "SET standard_conforming_strings = off",
        "SET nonsense = 1",
        "SHOW nonsense",
        "SET statement_timeout = 'soon'",
        "SET client_min_messages = 'loud'",
    ],
)
def test_settings_that_would_mislead_the_client_are_refused(wire, sql):
    found = wire("ana").ask(query(sql))
    assert kinds(found) == "EZ"


def test_a_client_that_does_not_log_in_is_sent_away():
    with running(limits=ConnectionLimits(startup=0.2)) as found:
        for first in (b"", startup(user="ana"), SSL_REQUEST):
            client = WireClient(found.port)
            client.send(first)
            client.replies(until=b"")
            client.close()


def test_the_number_of_connections_is_limited():
    with running(limits=ConnectionLimits(connections=3, per_person=2)) as found:
        clients = [WireClient(found.port) for _ in range(3)]
        states = [client.log_in("ana", found.tokens["ana"])[-1] for client in clients]
        assert [kind for kind, _ in states] == [b"Z", b"Z", b"E"]
        more = WireClient(found.port), WireClient(found.port)
        assert more[0].log_in("otto", found.tokens["otto"])[-1][0] == b"Z"
        assert error_of(more[1].replies())["C"] == "53300"
        for client in (*clients, *more):
            client.close()
        while len(found.server.hub):
            time.sleep(0.01)
        assert log_in(found.port, "ana", found.tokens["ana"])[-1][0] == b"Z"


def test_a_message_that_is_too_long_ends_its_connection_only(server, wire):
    good, bad = wire("ana"), wire("ana")
    bad.send(b"Q" + struct.pack("!I", MAX_MESSAGE + 5))
    assert error_of(bad.replies())["C"] == "08P01"
    assert kinds(good.ask(ONE)) == "TDCZ"


@pytest.mark.long
def test_a_client_that_does_not_read_is_disconnected(server):
    with running(limits=ConnectionLimits(reading=0.2)) as found:
        client = WireClient(found.port)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.log_in("otto", found.tokens["otto"])
        flood = query("SELECT * FROM information_schema.columns") * 5_000
        sender = threading.Thread(target=send_until_closed, args=(client, flood))
        sender.start()
        while len(found.server.hub):
            time.sleep(0.01)
        client.close()
        sender.join()


def send_until_closed(client, data):
    with contextlib.suppress(OSError):
        client.socket.sendall(data)


def test_a_statement_is_cancelled_by_its_client_and_by_nobody_else(server, connect):
    connection, ended = connect(), []

    def sleep():
        with pytest.raises(psycopg.errors.QueryCanceled) as cancelled:
            connection.execute("SELECT pg_sleep(60)")
        ended.append(cancelled.value)

    thread = threading.Thread(target=sleep)
    thread.start()
    attacker = WireClient(server.port)
    attacker.send(struct.pack("!III", 16, 80877102, connection.info.backend_pid) + b"\0\0\0\0")
    assert attacker.replies() == []
    attacker.close()
    while not ended:
        connection.cancel_safe()
        thread.join(0.1)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_that_takes_longer_than_its_limit_is_cancelled(wire):
    client = wire("ana")
    client.ask(query("SET statement_timeout = '50ms'"))
    found = client.ask(query("SELECT pg_sleep(60)"))
    assert kinds(found) == "EZ"
    assert error_of(found)["C"] == "57014"
    assert kinds(client.ask(ONE)) == "TDCZ"


def test_a_client_that_leaves_ends_what_it_asked(server, wire):
    client = wire("ana")
    before = len(server.server.hub)
    client.send(query("SELECT pg_sleep(60)"))
    client.close()
    while len(server.server.hub) >= before:
        time.sleep(0.01)


def test_clients_are_told_when_the_server_stops():
    with running() as found:
        client = WireClient(found.port)
        client.log_in("ana", found.tokens["ana"])
        waiting = WireClient(found.port)
        waiting.log_in("ana", found.tokens["ana"])
        waiting.send(query("SELECT pg_sleep(60)"))
    for each in (client, waiting):
        assert error_of(each.replies())["C"] == "57P01"
        each.close()


def test_a_broken_series_is_skipped_until_sync(wire):
    client = wire("ana")
    found = client.ask(parse("SELEC 1"), bind(), execute(), SYNC, parse("SELECT 1"), bind(), execute(), SYNC)
    assert kinds(found) == "EZ"
    assert error_of(found)["C"] == "42601"
    assert kinds(client.replies()) == "12DCZ"


def test_what_comes_with_the_end_of_encryption_is_read(tmp_path):
    context = certificate(tmp_path).context()
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = client_context.wrap_bio(incoming, outgoing), Encryption(context)
    for _ in range(3):
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        assert server.receive(outgoing.read()) == b""
        incoming.write(server.encrypt(b""))
    incoming.write(server.encrypt(b"answer"))
    assert client.read() == b"answer"
    client.write(b"question")
    with contextlib.suppress(ssl.SSLError):
        client.unwrap()
    assert server.receive(outgoing.read()) == b"question"
    with pytest.raises(ssl.SSLError):
        Encryption(context).receive(b"not TLS at all")


@pytest.mark.long
@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "encrypted"])
def test_an_idle_connection_takes_little_memory(tmp_path, is_encrypted):
    tls = certificate(tmp_path) if is_encrypted else None
    with running(tls=tls, limits=ConnectionLimits(connections=1000, per_person=1000)) as found:
        url = found.url().replace("disable", "require") if is_encrypted else found.url()
        sizes = []
        with subprocess.Popen([sys.executable, "-c", IDLE, url], stdin=-1, stdout=-1, text=True) as client:
            for _ in range(2):
                client.stdout.readline()
                sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
                client.stdin.write("\n")
                client.stdin.flush()
    assert (sizes[1] - sizes[0]) / 200 < 100_000
