"""Whoever changes, cuts, replaces or loses the files is found out."""

import random
import sqlite3

import pytest
from kernel.ledger_locations import KINDS, FilePlace, place_of

from discreet.kernel.errors import LedgerError, Refused
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.chain import Chain, LedgerRow, RowKind, event_text
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger, open_ledger

CENT = Loss("1/100")
EVENT = Event(mechanism=canonical_json({"name": "laplace"}), sensitivity="{}", question="count")


def fill(ledger, start, stop):
    for i in range(start, stop):
        ledger.settle(ledger.charge(CENT, EVENT, key=str(i)), b"answer %d" % i)


def filled(place):
    with place.create() as ledger:
        fill(ledger, 0, 4)
        ledger.set_budget(Budget(2), analysts=None)
    return place


@pytest.fixture
def file(tmp_path):
    return filled(FilePlace(tmp_path / "ledger.sqlite"))


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return filled(place_of(request.param, request, tmp_path))


BOTH = (verify_ledger, Ledger.verify)


def assert_found(place, match, verifiers=(verify_ledger,)):
    for verify in verifiers:
        with place.open() as ledger, pytest.raises(LedgerError, match=match) as found:
            verify(ledger)
        assert str(ledger.session.location) in str(found.value)


@pytest.mark.parametrize("column", LedgerRow._fields)
@pytest.mark.parametrize("seq", [3, 5, 8])
def test_any_changed_field_of_any_row_is_found(place, column, seq):
    new = 99 if column == "seq" else "1/7 1/98 0" if column in ("loss", "spent", "spent_by", "spent_in") else "other"
    place.tamper([f'UPDATE rows SET "{column}" = ? WHERE seq = ?', new, seq])
    problem = f"row {seq + 1} is out of sequence" if column == "seq" else f"row {seq} was modified: its hash"
    assert_found(place, problem, BOTH)


@pytest.mark.parametrize("rehash", ["row", "all"])
def test_a_reduced_charge_is_found_even_if_the_hashes_are_recomputed(place, rehash):
    rows = place.rows()
    previous = rows[2].previous
    changes = []
    for row in rows[2:]:
        changed = row._replace(previous=previous, loss="1/1000 1/2000000 0") if row.seq == 4 else row
        changed = changed._replace(previous=previous)
        changed = changed._replace(hash=changed.digest())
        previous = changed.hash
        values = changed.loss, changed.previous, changed.hash, row.seq
        changes.append(["UPDATE rows SET loss = ?, previous = ?, hash = ? WHERE seq = ?", *values])
        if rehash == "row" and row.seq == 4:
            break
    place.tamper(*changes)
    assert_found(place, "row 4 has incorrect totals")
    link = "row 5 does not contain the hash" if rehash == "row" else "row 10 differs from the checkpoint"
    assert_found(place, link, [Ledger.verify])


def test_a_history_that_adds_up_but_was_never_allowed_is_found(place):
    with place.open() as ledger, ledger.session.write_transaction() as table:
        chain = Chain().extend(table.rows())
        table.add_row(chain.next_row(RowKind.CHARGE, "owner", event_text(EVENT), loss=Loss(5), receipt="r"))
    assert_found(place, "row 11 .*not enough budget left")


def test_a_removed_row_is_found(place):
    place.tamper(["DELETE FROM rows WHERE seq = 5"])
    assert_found(place, "row 6 is out of sequence", BOTH)


def test_a_deleted_tail_is_found(place):
    place.tamper(
        ["DELETE FROM rows WHERE seq >= 8"],
        ["DELETE FROM answers WHERE receipt NOT IN (SELECT receipt FROM rows WHERE kind = 'settle')"],
    )
    assert_found(place, "rolled back from row 10 to row 7", BOTH)
    with place.open() as ledger, pytest.raises(LedgerError, match="rolled back"):
        ledger.charge(CENT, EVENT)


def test_a_deleted_history_is_found(place):
    place.tamper(["DELETE FROM rows"])
    with pytest.raises(LedgerError, match="creation was interrupted"):
        place.open()


ITS_RECEIPT = "(SELECT receipt FROM rows WHERE seq = 5)"


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        (
            [f"UPDATE answers SET answer = ? WHERE receipt = {ITS_RECEIPT}", b"0"],
            "row 5: the stored answer was modified or deleted",
        ),
        ([f"DELETE FROM answers WHERE receipt = {ITS_RECEIPT}"], "row 5: the stored answer was modified or deleted"),
        (["INSERT INTO answers VALUES ('made up', ?)", b"0"], "a stored answer has no charge"),
    ],
    ids=["changed", "missing", "made up"],
)
def test_a_changed_answer_is_found(place, statement, match):
    place.tamper(statement)
    assert_found(place, match, BOTH)


def test_a_changed_answer_is_never_replayed(place):
    place.tamper(["UPDATE answers SET answer = ?", b"0"])
    with place.open() as ledger, pytest.raises(LedgerError, match="row 3: the stored answer"):
        ledger.charge(CENT, EVENT, key="0")


def test_a_changed_total_is_never_charged_upon(place):
    place.tamper(["DELETE FROM rows WHERE seq = 10"], ["UPDATE rows SET spent = '0 0 0' WHERE seq = 9"])
    place.head.unlink()
    with pytest.raises(LedgerError, match="row 9 was modified"), place.open() as ledger:
        ledger.acknowledge()


def test_dropped_triggers_are_found(place):
    place.run(["DROP TRIGGER rows_grow" + ("" if isinstance(place, FilePlace) else " ON rows")])
    assert_found(place, "triggers.* were modified")


OWNERS_ACT = "time, 'budget', \"by\", dataset, NULL, NULL, body, '0 0 0'"
SETTLEMENT = "time, kind, \"by\", dataset, NULL, receipt, body, '0 0 0', '1 1 0', '1 1 0', '1 1 0'"
REFUNDS = [
    "UPDATE rows SET loss = '0 0 0', spent = '0 0 0'",
    "DELETE FROM rows WHERE seq = (SELECT max(seq) FROM rows)",
    "UPDATE answers SET answer = x'00'",
    "DELETE FROM answers",
    "INSERT OR REPLACE INTO rows SELECT * FROM rows WHERE seq = 2",
    "REPLACE INTO answers SELECT * FROM answers",
    f"INSERT INTO rows SELECT 20, {OWNERS_ACT}, spent, spent_by, spent_in, previous, hash FROM rows WHERE seq = 10",
    f"INSERT INTO rows SELECT seq + 1, {OWNERS_ACT}, '0 0 0', '0 0 0', '0 0 0', hash, hash FROM rows WHERE seq = 10",
    f"INSERT INTO rows SELECT 11, {SETTLEMENT}, (SELECT hash FROM rows WHERE seq = 10), hash FROM rows WHERE seq = 3",
]


@pytest.mark.parametrize("statement", REFUNDS)
def test_refunds_are_stopped_by_triggers(file, statement):
    with pytest.raises(sqlite3.DatabaseError):
        file.run([statement])
    with file.open() as ledger:
        with pytest.raises(sqlite3.IntegrityError), ledger.session._transaction("BEGIN") as table:
            table.connection.execute(statement)  # the ledger's own connection, which knows not_below, is stopped too
        verify_ledger(ledger)
        assert ledger.spent().epsilon == 4 * CENT.epsilon


@pytest.mark.long(but=["file"])
def test_a_restored_old_copy_is_read_only_until_acknowledged(place):
    place.back_up()
    with place.open() as ledger:
        fill(ledger, 4, 20)
        before = ledger.spent()
    place.restore()
    with place.open() as ledger:
        assert ledger.spent().epsilon == 4 * CENT.epsilon
        for act in (
            lambda: ledger.charge(CENT, EVENT),
            lambda: ledger.charge(CENT, EVENT, key="0"),
            lambda: ledger.settle(ledger.charge(CENT, EVENT), b""),
            lambda: ledger.set_budget(Budget(9), analysts=None),
            lambda: verify_ledger(ledger),
        ):
            with pytest.raises(LedgerError, match="rolled back from row 42 to row 10"):
                act()
        ledger.acknowledge()
        assert ledger.spent() == before, "what was spent before the rollback stays spent"
        assert ledger.events()[-1].loss.epsilon == 16 * CENT.epsilon
        fill(ledger, 20, 21)
        verify_ledger(ledger)
    with place.open() as ledger:
        assert ledger.spent() == before + CENT
        assert ledger.charge(CENT, EVENT, key="20").answer == b"answer 20"
        verify_ledger(ledger)


@pytest.mark.parametrize("kind", KINDS)
def test_acknowledging_keeps_losses_in_rho_too(kind, request, tmp_path):
    place = place_of(kind, request, tmp_path)
    with place.create(budget=Budget(1, "1e-6", discover="1/2")) as ledger:
        ledger.charge(CENT, EVENT)
    place.back_up()
    with place.open() as ledger:
        ledger.charge(Loss(None, "1/1000", "1e-8"), EVENT)
        before = ledger.spent()
    place.restore()
    with place.open() as ledger:
        ledger.acknowledge()
        assert ledger.spent() == before
        verify_ledger(ledger)


def test_a_missing_checkpoint_stops_charges(place):
    """In PostgreSQL a server without a head file gets one when it opens the ledger: only what is garbled counts."""
    garbled = (lambda: place.head.write_text(""), lambda: place.head.write_text("[1]"))
    for lose in (*garbled, place.head.unlink) if isinstance(place, FilePlace) else garbled:
        lose()
        with place.open() as ledger:
            with pytest.raises(LedgerError, match="checkpoint file is missing"):
                ledger.charge(CENT, EVENT)
            with pytest.raises(LedgerError, match="checkpoint file is missing"):
                verify_ledger(ledger)
            spent = ledger.spent()
            ledger.acknowledge()
            assert ledger.spent() == spent
            ledger.charge(CENT, EVENT)
            verify_ledger(ledger)


def test_a_ledger_ahead_of_its_checkpoint_is_accepted(place):
    old = place.head.read_bytes()
    with place.open() as ledger:
        fill(ledger, 4, 5)
    place.head.write_bytes(old)
    with place.open() as ledger:
        verify_ledger(ledger)
        ledger.charge(CENT, EVENT)
    assert place.head.read_bytes() != old


def test_another_history_of_the_same_length_cannot_be_acknowledged(place):
    other = place.other("other")
    with other.create() as ledger:
        fill(ledger, 0, 20)
    place.exchange(other)
    with place.open() as ledger:
        for act in (lambda: verify_ledger(ledger), lambda: ledger.charge(CENT, EVENT)):
            with pytest.raises(LedgerError, match="row 10 differs from the checkpoint"):
                act()
        with pytest.raises(LedgerError, match="replaced"):
            ledger.acknowledge()


def test_a_file_exchanged_while_open_stops_the_ledger(file):
    file.back_up()
    with file.open() as ledger:
        file.path.with_name("backup").replace(file.path)
        for _ in range(2):
            with pytest.raises(LedgerError, match="replaced while it was open"):
                ledger.charge(CENT, EVENT)
        file.path.unlink()
        with pytest.raises(LedgerError, match="No such file"):
            ledger.charge(CENT, EVENT)


def test_files_that_are_not_a_ledger_are_named(tmp_path):
    path = tmp_path / "ledger.sqlite"
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE rows (a)")
    other.commit()
    other.close()
    for content in (b"", b"x", random.Random(1).randbytes(8192), (tmp_path / "other.sqlite").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match=r"ledger\.sqlite: "):
            open_ledger(path, name="demo")
    path.unlink()
    path.mkdir()
    with pytest.raises(LedgerError, match="does not exist"):
        open_ledger(path, name="demo")


def test_a_truncated_or_garbled_file_is_found(file):
    path = file.path
    whole = path.read_bytes()
    pages = range(4096, len(whole), 4096)
    damaged = [whole[:size] for size in (100, 5000, *pages)]
    noise = random.Random(1).randbytes(4096)
    damaged += [whole[:page] + noise + whole[page + 4096 :] for page in pages]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(LedgerError) as found:
            use_all(file)
        assert str(path) in str(found.value)


def use_all(place):
    with place.open() as ledger:
        verify_ledger(ledger)


def test_a_half_created_ledger_is_not_an_empty_one(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"

    def crash(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.kernel.ledger.table.LedgerTable.add_row", crash)
        with pytest.raises(LedgerError, match="Input/output error"):
            create_ledger(path, name="demo", budget=Budget(1))
    with pytest.raises(LedgerError, match="creation was interrupted"):
        open_ledger(path, name="demo")


def test_refusals_do_not_change_the_checkpoint(place):
    before = place.head.read_bytes()
    with place.open() as ledger, pytest.raises(Refused):
        ledger.charge(Loss(3), EVENT)
    assert place.head.read_bytes() == before
