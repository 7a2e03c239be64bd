"""Frames that no client sends: nothing crashes or hangs, nothing of an engine is shown, and memory stays bounded."""

import logging
import random
import re
import struct
from pathlib import Path

import pytest
from running import running
from wire_client import (
    FLUSH,
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    WireClient,
    bind,
    describe_portal,
    describe_statement,
    execute,
    kinds,
    parse,
    query,
    startup,
    text,
)

from discreet.server.pgwire.replies import message

ENGINE_TEXT = re.compile(rb"duckdb|sqlglot|traceback|pyarrow|\.py\b|Error\(|Exception", re.IGNORECASE)
WORD_TEXT = r"""SELECT FROM WHERE GROUP BY ORDER LIMIT visits wards patients ward age cost day seen weight new floor
COUNT(*) AVG(age) SUM(cost) n AS ( ) , * = < > + - / || . ; 'A' 'x' '' 1 0 -1 1e308 NULL TRUE $1 $2 $0 $99999 ? :x " '
-- /* */ AND OR NOT IN BETWEEN LIKE CASE WHEN THEN END CAST :: int text date oid[] regclass pg_class pg_catalog.pg_type
pg_attribute information_schema.tables version() current_setting('x') format_type(1,2) generate_series(1,3)
unnest(ARRAY[1]) BEGIN COMMIT ROLLBACK SAVEPOINT a RELEASE SET RESET SHOW epsilon rho margin details purpose search_path
TO DEFAULT ALL COPY STDOUT WITH FORMAT csv binary DECLARE c CURSOR FOR FETCH MOVE CLOSE DEALLOCATE DISCARD EXPLAIN
WITHIN 50 UNION JOIN USING DISTINCT HAVING WINDOW OVER PARTITION é 😀 public "public" E'\n' $$x$$ x'ff' b'01' DESCRIBE
TABLES INSERT UPDATE DELETE DROP TABLE CREATE INTO VALUES LATERAL RECURSIVE pg_sleep(0) read_text('/x') @ # ^ {"""
WORDS = [*re.split(r"\s+", WORD_TEXT), "\x01", "\ud800"]
OIDS = (0, 20, 25, 23, 1700, 1082, 1009, 999_999, 2**32 - 1)
NAMES = ["", "s", "p", "c", "t" * 70, "\x7f"]
SEEDS = (
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT floor FROM wards WHERE ward = $1 AND floor > $2",
    "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.oid = 16384",
    "BEGIN; DECLARE c CURSOR FOR SELECT ward FROM wards; FETCH 2 FROM c; COMMIT",
    "COPY (SELECT ward FROM wards) TO STDOUT WITH (FORMAT csv, HEADER)",
    "SET epsilon = 0.001; SHOW ALL; RESET ALL",
)


class Fuzzer:
    """Makes frames from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def sql(self):
        chance = self.random.random()
        if chance < 0.3:
            return self.random.choice(SEEDS)
        if chance < 0.6:
            words = self.random.choice(SEEDS).split()
            for _ in range(self.random.randint(1, 4)):
                words.insert(self.random.randint(0, len(words)), self.random.choice(WORDS))
            return " ".join(words)
        return " ".join(self.random.choices(WORDS, k=self.random.randint(0, 25)))

    def bytes(self, most=30):
        return self.random.randbytes(self.random.randint(0, most))

    def name(self):
        return self.random.choice(NAMES)

    def frame(self):
        """Return one message: a valid one, one with wrong fields, or noise."""
        pick = self.random.random()
        sql = self.sql().encode("utf-8", "surrogatepass")
        if pick < 0.3:
            made = message(b"Q", sql + b"\0")
        elif pick < 0.45:
            types = self.random.choices(
                (0, 20, 25, 23, 1700, 1082, 1009, 999_999, 2**32 - 1), k=self.random.randint(0, 3)
            )
            made = message(b"P", text(self.name()) + sql + b"\0" + struct.pack(f"!H{len(types)}I", len(types), *types))
        elif pick < 0.6:
            values = [self.random.choice((None, b"A", b"1", self.bytes())) for _ in range(self.random.randint(0, 3))]
            formats = self.random.choices((0, 1, 2, -1), k=self.random.randint(0, 2))
            made = bind(
                values, self.name(), self.name(), formats, self.random.choices((0, 1, 3), k=self.random.randint(0, 2))
            )
        elif pick < 0.85:
            name, limit = self.name(), self.random.choice((0, 1, -5, 2**31 - 1))
            made = self.random.choice(
                (execute(name, limit), describe_portal(name), describe_statement(name), SYNC, FLUSH, execute(), SYNC)
            )
        elif pick < 0.93:
            made = message(self.random.choice((b"F", b"d", b"c", b"f", b"C", b"D", b"H", b"p")), self.bytes())
        else:
            made = bytes([self.random.randrange(256)]) + self.random.randbytes(4) + self.bytes()
        return self.damaged(made) if self.random.random() < 0.08 else made

    def damaged(self, data):
        place = self.random.randrange(len(data))
        change = self.random.choice(("flip", "cut", "insert"))
        if change == "flip":
            return data[:place] + bytes([data[place] ^ (1 << self.random.randrange(8))]) + data[place + 1 :]
        return data[:place] if change == "cut" else data[:place] + self.bytes(5) + data[place:]

    def first_frame(self):
        """Return what may come before authentication."""
        made = self.random.choice(
            (
                startup(user=self.name(), database=self.name()),
                startup(minor=self.random.randint(0, 5), user="ana", options=self.bytes().hex()),
                SSL_REQUEST,
                struct.pack("!III", 16, 80877102, self.random.randint(0, 50)) + self.random.randbytes(4),
                message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 11) + b"n,,n=,r=abc"),
                message(b"p", self.bytes(60)),
                message(b"Q", b"SELECT 1\0"),
                self.random.randbytes(self.random.randint(0, 40)),
            )
        )
        return self.damaged(made) if made and self.random.random() < 0.3 else made


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def read_all(client):
    """Read until the server closes the connection; every reply has a type and a length that fits."""
    found = client.replies(until=b"")
    assert all(kind in b"RSKZEN12TtDnCIsHdcv3G" for kind, _ in found if kind), found
    return found


def fuzz(found, seed, frames_per_connection, is_logged_in):
    """Send one series of frames; return how many there were."""
    fuzzer, client = Fuzzer(seed), WireClient(found.port, seconds=60)
    name = fuzzer.random.choice(("ana", "otto", "bob"))
    if is_logged_in:
        client.log_in(name, found.tokens[name], options="-c epsilon=1e-6 -c statement_timeout=20s")
    frames = [fuzzer.frame() if is_logged_in else fuzzer.first_frame() for _ in range(frames_per_connection)]
    try:
        client.send(*frames, SYNC, TERMINATE)
        client.socket.shutdown(1)
    except OSError:
        pass  # the server has closed it
    try:
        replies = read_all(client)
    finally:
        client.close()
    for kind, body in replies:
        if kind in (b"E", b"N"):
            assert not ENGINE_TEXT.search(body), body
            assert b"C58000\0" not in body, (seed, body)
    return len(frames)


def fuzz_many(caplog, frames, seed):
    caplog.set_level(logging.ERROR, "discreet")
    sent, number = 0, 0
    with running() as found:
        while sent < frames:
            number += 1
            sent += fuzz(found, f"{seed}-{number}", 25, is_logged_in=number % 5 != 0)
            if number == 40:
                before = resident_bytes()
        good = WireClient(found.port)
        good.log_in("ana", found.tokens["ana"])
        assert kinds(good.ask(query("SELECT 1"))) == "TDCZ"
        good.close()
        assert len(found.server.hub) <= 1
        grown = resident_bytes() - before
    problems = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert problems == []
    assert grown < 150 << 20, f"{grown >> 20} MB more after {sent} frames"
    return sent


@pytest.mark.long
def test_thousands_of_frames_that_no_client_sends_do_no_harm(caplog):
    assert fuzz_many(caplog, 3_000, "long") >= 3_000


@pytest.mark.slow
def test_a_hundred_thousand_frames_that_no_client_sends_do_no_harm(caplog):
    assert fuzz_many(caplog, 100_000, "slow") >= 100_000


def test_a_few_frames_that_no_client_sends_do_no_harm(server):
    for number in range(6):
        fuzz(server, f"few-{number}", 10, is_logged_in=number % 3 != 0)
    assert parse("SELECT 1")[0:1] == b"P"
