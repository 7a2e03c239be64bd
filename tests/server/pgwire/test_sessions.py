"""Sessions: portals, transactions, settings, COPY and cursors, as the protocol and SQL have them."""

import struct

import pytest
from wire_client import (
    FLUSH,
    SYNC,
    bind,
    describe_portal,
    describe_statement,
    error_of,
    execute,
    kinds,
    parse,
    query,
    text,
)

from discreet.server.pgwire.prepared import MAX_PORTALS, MAX_STATEMENTS
from discreet.server.pgwire.replies import message

WARDS = "SELECT ward, floor FROM wards ORDER BY ward"
CLOSE_STATEMENT = message(b"C", b"S" + text("s"))


def tags(replies):
    return [body[:-1].decode() for kind, body in replies if kind == b"C"]


def rows(replies):
    """Return the text of every row, with its fields in a list."""
    found = []
    for kind, body in replies:
        if kind != b"D":
            continue
        fields, at = [], 2
        for _ in range(int.from_bytes(body[:2])):
            size = struct.unpack_from("!i", body, at)[0]
            fields.append(None if size < 0 else body[at + 4 : at + 4 + size].decode())
            at += 4 + max(0, size)
        found.append(fields)
    return found


def status(replies):
    return replies[-1][1].decode()


@pytest.fixture
def client(wire):
    return wire("ana")


def test_several_statements_are_run_one_after_another(client):
    found = client.ask(query("SELECT 1; SHOW epsilon; SELECT floor FROM wards WHERE ward = 'B'; -- nothing\n;"))
    assert kinds(found) == "TDCTDCTDCZ"
    assert rows(found) == [["1"], ["1"], ["2"]]
    assert tags(found) == ["SELECT 1", "SHOW", "SELECT 1"]


def test_an_error_ends_a_text_and_says_where_it_is(client):
    found = client.ask(query("SELECT 1;\n\nSELECT nothing FROM wards; SELECT 2"))
    assert kinds(found) == "TDCEZ"
    error = error_of(found)
    assert error["C"] == "42703"
    assert int(error["P"]) == "SELECT 1;\n\nSELECT nothing FROM wards".index("SELECT n") + 1
    assert "nothing" in error["M"]


@pytest.mark.parametrize("sql", ["", "   ", ";;", "-- only a comment", "/* two\nlines */"])
def test_a_text_without_statements_is_empty(client, sql):
    assert kinds(client.ask(query(sql))) == "IZ"
    assert kinds(client.ask(parse(sql), bind(), describe_portal(), execute(), SYNC)) == "12nIZ"


def test_a_portal_gives_its_rows_in_portions(client):
    found = client.ask(parse(WARDS), bind(portal="p"), execute("p", 2), execute("p", 2), execute("p", 2), SYNC)
    assert kinds(found) == "12DDsDCCZ"
    assert tags(found) == ["SELECT 1", "SELECT 0"]
    found = client.ask(execute("p"), SYNC)
    assert error_of(found)["C"] == "34000"  # portals end with their transaction


def test_in_a_transaction_a_portal_lasts(client):
    client.ask(query("BEGIN"))
    assert kinds(client.ask(parse(WARDS), bind(portal="p"), execute("p", 1), SYNC)) == "12DsZ"
    assert kinds(client.ask(execute("p", 1), SYNC)) == "DsZ"
    client.ask(query("COMMIT"))
    assert kinds(client.ask(execute("p", 1), SYNC)) == "EZ"


def test_replies_are_sent_on_flush_too(client):
    client.send(parse(WARDS, "s"), describe_statement("s"), FLUSH)
    assert [client.reply()[0] for _ in range(3)] == [b"1", b"t", b"T"]
    client.send(bind(name="s"), describe_portal(), FLUSH)
    assert [client.reply()[0] for _ in range(2)] == [b"2", b"T"]
    assert kinds(client.ask(execute(), SYNC)) == "DDDCZ"


def test_formats_are_those_that_were_asked_for(client):
    found = client.ask(parse(WARDS), bind(result_formats=(0, 1)), execute(limit=1), SYNC)
    assert found[2][1].endswith(struct.pack("!iq", 8, 1))
    assert error_of(client.ask(parse(WARDS), bind(result_formats=(1, 1, 1)), execute(), SYNC))["C"] == "08P01"
    assert error_of(client.ask(parse(WARDS), bind(result_formats=(7,)), execute(), SYNC))["C"] == "08P01"


def test_statements_and_portals_have_names(client):
    assert kinds(client.ask(parse("SELECT 1", "s"), SYNC)) == "1Z"
    assert error_of(client.ask(parse("SELECT 2", "s"), SYNC))["C"] == "42P05"
    assert kinds(client.ask(bind(name="s", portal="p"), execute("p"), SYNC)) == "2DCZ"
    twice = client.ask(bind(name="s", portal="p"), bind(name="s", portal="p"), SYNC)
    assert error_of(twice)["C"] == "42P03"
    assert kinds(client.ask(CLOSE_STATEMENT, CLOSE_STATEMENT, SYNC)) == "33Z"
    assert error_of(client.ask(bind(name="s"), SYNC))["C"] == "26000"
    assert error_of(client.ask(describe_statement("s"), SYNC))["C"] == "26000"
    assert error_of(client.ask(execute("p"), SYNC))["C"] == "34000"
    assert kinds(client.ask(parse("SELECT 1", "s"), SYNC, query("DEALLOCATE s"))) == "1Z"
    assert kinds(client.replies()) == "CZ"
    assert error_of(client.ask(query("DEALLOCATE s")))["C"] == "26000"


def test_the_number_of_statements_and_portals_is_limited(client):
    for number in range(MAX_STATEMENTS):
        client.send(parse("SELECT 1", f"s{number}"))
    assert error_of(client.ask(parse("SELECT 1", "more"), SYNC))["C"] == "54000"
    client.ask(query("DEALLOCATE ALL"))
    for number in range(MAX_PORTALS):
        client.send(parse("SELECT 1"), bind(portal=f"p{number}"))
    assert error_of(client.ask(bind(portal="more"), SYNC))["C"] == "54000"
    texts = [parse(f"SELECT '{'x' * 99_000}'", f"t{number}") for number in range(42)]
    assert error_of(client.ask(*texts, SYNC))["C"] == "54000"


def test_the_number_of_values_must_fit(client):
    sql = "SELECT floor FROM wards WHERE ward = $1"
    assert error_of(client.ask(parse(sql), bind(), SYNC))["C"] == "08P01"
    assert error_of(client.ask(parse(sql), bind([b"A", b"B"]), SYNC))["C"] == "08P01"
    assert error_of(client.ask(parse(sql), bind([b"A"], formats=(0, 0)), SYNC))["C"] == "08P01"
    assert error_of(client.ask(parse(sql, types=(23,)), bind([b"x"]), SYNC))["C"] == "22P02"
    assert error_of(client.ask(query(sql)))["C"] == "42P02"
    assert rows(client.ask(parse(sql), bind([b"A"]), execute(), SYNC)) == [["1"]]
    assert rows(client.ask(parse(sql), bind([None]), execute(), SYNC)) == []


@pytest.mark.parametrize(
    ("sql", "oids"),
    [
        ("SELECT COUNT(*) FROM visits WHERE ward = $1 AND age BETWEEN $2 AND $3", (25, 20, 20)),
        ("SELECT COUNT(*) FROM visits WHERE day > $1 AND seen < $2 AND cost >= $3", (1082, 1114, 1700)),
        ("SELECT COUNT(*) FROM visits WHERE new = $1 AND weight IN ($2, $3)", (16, 701, 701)),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT $1 OFFSET $2", (20, 20)),
        ("SELECT COUNT(*) FROM visits WHERE LOWER(ward) = $1", (25,)),
        ("SELECT COUNT(*) FROM visits WHERE age + 1 > $1", (20,)),
        ("SELECT $1::int, $2::text, CAST($3 AS date), $4::float8", (23, 25, 1082, 701)),
        ("SELECT relname FROM pg_class WHERE relkind = ANY($1) AND oid = ANY($2::oid[])", (1009, 1007)),
        ("SELECT $1", (25,)),
    ],
)
def test_types_of_parameters_follow_from_what_they_are_compared_with(client, sql, oids):
    found = client.ask(parse(sql, "s"), describe_statement("s"), SYNC)
    assert found[1] == (b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def test_types_that_the_client_gives_are_kept(client):
    found = client.ask(parse("SELECT $1, $2", "s", types=(1184, 0)), describe_statement("s"), SYNC)
    assert found[1][1] == struct.pack("!HII", 2, 1184, 25)


def test_transactions_have_their_states_and_change_nothing(client):
    states = []
    for sql in ("SELECT 1", "BEGIN", "SELECT 1", "SELEC", "SELECT 1", "COMMIT", "ROLLBACK", "START TRANSACTION", "END"):
        found = client.ask(query(sql))
        states.append((status(found), tags(found)))
    assert states == [
        ("I", ["SELECT 1"]),
        ("T", ["BEGIN"]),
        ("T", ["SELECT 1"]),
        ("E", []),
        ("E", []),
        ("I", ["ROLLBACK"]),
        ("I", ["ROLLBACK"]),
        ("T", ["START TRANSACTION"]),
        ("I", ["COMMIT"]),
    ]


def test_a_savepoint_ends_a_failure(client):
    client.ask(query("BEGIN; SAVEPOINT a"))
    assert status(client.ask(query("SELEC"))) == "E"
    assert error_of(client.ask(query("SELECT 1")))["C"] == "25P02"
    assert status(client.ask(query("ROLLBACK TO SAVEPOINT a"))) == "T"
    assert tags(client.ask(query("RELEASE a; COMMIT"))) == ["RELEASE", "COMMIT"]
    assert error_of(client.ask(query("SAVEPOINT a")))["C"] == "25P01"


def test_settings_follow_their_transaction(client):
    def epsilon():
        return rows(client.ask(query("SHOW epsilon")))[0][0]

    client.ask(query("BEGIN; SET epsilon = 2; SET LOCAL epsilon = 3"))
    assert epsilon() == "3"
    client.ask(query("COMMIT"))
    assert epsilon() == "2"
    client.ask(query("BEGIN; SET epsilon = 4; ROLLBACK"))
    assert epsilon() == "2"
    client.ask(query("SET LOCAL epsilon = 5"))
    assert epsilon() == "2"
    client.ask(query("RESET ALL"))
    assert epsilon() == "1"
    client.ask(query("SET epsilon = 7; DISCARD ALL"))
    assert epsilon() == "1"


def test_what_pools_send_between_users_is_accepted(client):
    sql = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL; DISCARD ALL; DEALLOCATE ALL"
    assert tags(client.ask(query(sql)))[1:] == ["CLOSE CURSOR", "UNLISTEN", "RESET", "DISCARD ALL", "DEALLOCATE ALL"]
    shown = rows(client.ask(query("SHOW ALL")))
    assert ["epsilon", "1", ""] in shown
    assert ["search_path", '"$user", public', ""] in shown


def test_copy_writes_text_csv_and_binary(client):
    def copied(options):
        found = client.ask(query(f"COPY (SELECT ward, floor, NULL AS x FROM wards ORDER BY ward) TO STDOUT {options}"))
        assert kinds(found).strip("d") == "HcCZ" or kinds(found)[0] == "H"
        assert tags(found) == ["COPY 3"]
        return b"".join(body for kind, body in found if kind == b"d")

    assert copied("") == b"A\t1\t\\N\nB\t2\t\\N\nC\t3\t\\N\n"
    assert copied("WITH (FORMAT csv, HEADER, DELIMITER ';', NULL '-')") == b"ward;floor;x\nA;1;-\nB;2;-\nC;3;-\n"
    assert copied("CSV") == b"A,1,\nB,2,\nC,3,\n"
    binary = copied("WITH BINARY")
    assert binary.startswith(b"PGCOPY\n\xff\r\n\0")
    assert binary.endswith(b"\xff\xff")
    assert struct.pack("!H", 3) + struct.pack("!i", 1) + b"B" + struct.pack("!iq", 8, 2) in binary


@pytest.mark.parametrize(
    "sql",
    [
        "COPY wards TO STDOUT",
        "COPY (SELECT 1) TO '/tmp/x'",
        "COPY (SELECT 1) TO PROGRAM 'rm'",
        "COPY wards FROM STDIN",
        "COPY (SELECT 1) TO STDOUT (FORMAT parquet)",
        "COPY (SELECT 1) TO STDOUT (FORCE_QUOTE x)",
        "COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')",
        "COPY (SELECT 1",
        "COPY",
        "INSERT INTO wards VALUES ('D', 4)",
        "CREATE TABLE x (a int)",
        "FETCH BACKWARD 1 FROM c",
        "FETCH 1 FROM nothing",
        "DECLARE c CURSOR FOR SELECT 1",
        "DECLARE c FOR SELECT 1",
        "PREPARE TRANSACTION 'x'",
        "COMMIT PREPARED 'x'",
        "LISTEN x",
        "DO $$ BEGIN END $$",
        "SELECT 1 INTO x",
        "\x01",
        "SELECT 'open",
        "SELECT \ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_what_is_not_supported_is_refused_and_the_session_goes_on(client, sql):
    found = client.ask(query(sql))
    assert kinds(found) == "EZ"
    assert error_of(found)["C"] not in ("XX000", "58000")
    assert kinds(client.ask(query("SELECT 1"))) == "TDCZ"


def test_texts_that_are_not_utf_8_are_refused(client):
    found = client.ask(message(b"Q", b"SELECT '\xff'\0"))
    assert kinds(found) == "EZ"
    assert "Unicode" in error_of(found)["M"]


def test_cursors_are_read_forward(client):
    client.ask(query(f"BEGIN; DECLARE c NO SCROLL CURSOR FOR {WARDS}"))
    assert rows(client.ask(query("FETCH c"))) == [["A", "1"]]
    assert tags(client.ask(query("MOVE 1 IN c"))) == ["MOVE 1"]
    found = client.ask(parse("FETCH FORWARD ALL FROM c"), bind(), describe_portal(), execute(), SYNC)
    assert kinds(found) == "12TDCZ"
    assert (rows(found), tags(found)) == ([["C", "3"]], ["FETCH 1"])
    assert tags(client.ask(query("CLOSE c; COMMIT"))) == ["CLOSE CURSOR", "COMMIT"]
    client.ask(query(f"DECLARE kept CURSOR WITH HOLD FOR {WARDS}"))
    assert tags(client.ask(query("FETCH 2 FROM kept"))) == ["FETCH 2"]
    assert tags(client.ask(query("CLOSE ALL"))) == ["CLOSE CURSOR"]
    assert error_of(client.ask(query("FETCH kept")))["C"] == "34000"


def test_functions_cannot_be_called_by_number(client):
    assert error_of(client.ask(message(b"F", b"")))["C"] == "0A000"


def test_names_with_a_schema_mean_the_same(client):
    plain = rows(client.ask(query(WARDS)))
    for sql in (
        "SELECT ward, floor FROM public.wards ORDER BY ward",
        'SELECT "public"."wards"."ward", w.floor FROM "public"."wards" JOIN PUBLIC.wards w USING (ward) ORDER BY 1',
        "SELECT public.ward, public.floor FROM wards AS public ORDER BY 1",
    ):
        assert rows(client.ask(query(sql))) == plain


def test_explain_describes_a_plan(client):
    sql = "EXPLAIN SELECT COUNT(*) AS n FROM visits WHERE age > $1"
    found = client.ask(parse(sql), bind([b"77"]), describe_portal(), execute(), SYNC)
    assert kinds(found).startswith("12TD")
    assert "QUERY PLAN" in found[2][1].decode("latin-1")
    assert tags(found) == ["EXPLAIN"]
    assert "ANALYZE" in error_of(client.ask(query("EXPLAIN ANALYZE SELECT COUNT(*) FROM visits")))["M"]
