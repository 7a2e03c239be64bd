"""What is recalled, charged upon or shown as spent is checked against the chain each time it is used."""

import pytest
from kernel.ledger_locations import KINDS, place_of

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.ledger.table import read_row
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger

CENT = Loss("1/100")
CHEAP = "1/1000 1/2000000 0"
CHARGED, SETTLED = 4, 5  # the rows of the second charge, of four, and of its answer


def event(topic, by="ana"):
    return Event(mechanism="{}", sensitivity="{}", question=topic, fingerprints=((topic,),), by=by)


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    place = place_of(request.param, request, tmp_path)
    with place.create(analysts={"ana": Budget(1), "bob": Budget(1)}) as ledger:
        for topic, by in (("a", "ana"), ("b", "bob"), ("c", "ana"), ("d", "ana")):
            ledger.settle(ledger.charge(CENT, event(topic, by), key=topic), topic.encode())
    return place


RELYING = {
    "a recall": lambda ledger: ledger.answers(["b"]),
    "the newest charge": lambda ledger: ledger.latest_receipt("b"),
    "the same key": lambda ledger: ledger.charge(CENT, event("b", "bob"), key="b"),
    "what a key was used for": lambda ledger: ledger.answers(keys=[("bob", "b")]),
    "a new charge": lambda ledger: ledger.charge(CENT, event("z")),
    "what is spent": lambda ledger: ledger.spent(),
    "what one analyst has spent": lambda ledger: ledger.spent("bob"),
    "the terms": lambda ledger: ledger.terms.budget,
    "the list of charges": lambda ledger: ledger.events(),
    "what has no answer": lambda ledger: ledger.unsettled_events(),
}
WITH_ANSWERS = ("a recall", "the same key", "what a key was used for")
READING_ROWS = ("a recall", "the same key", "what a key was used for", "the list of charges")


def changed(place, seq, rehash, column="loss", value=CHEAP):
    """Return the statements that change one field of a row, and its own hash, or all hashes from there on."""
    rows = place.rows()
    previous, statements = rows[seq - 1].previous, []
    for row in rows[seq - 1 :]:
        new = row._replace(previous=previous, **({column: value} if row.seq == seq else {}))
        new = new._replace(hash=row.hash if rehash == "nothing" else new.digest())
        previous = new.hash
        values = getattr(new, column), new.previous, new.hash, row.seq
        statements.append([f'UPDATE rows SET "{column}" = ?, previous = ?, hash = ? WHERE seq = ?', *values])
        if rehash != "all":
            break
    return statements


def assert_refused(place, ledger, acts=tuple(RELYING)):
    before = place.rows()
    for act in acts:
        with pytest.raises(LedgerError, match=r"row \d+:? .*(backup|latest copy)"):
            print(act, RELYING[act](ledger))
    assert place.rows() == before, "something was charged"


def assert_refused_when_opened(place):
    for act in RELYING:
        with place.open() as ledger:
            assert_refused(place, ledger, [act])


@pytest.mark.parametrize("rehash", ["nothing", "row", "all"])
@pytest.mark.parametrize("seq", [CHARGED, 8])  # further back; and the charge of the last answer, one row back
def test_a_changed_row_is_never_relied_upon(place, seq, rehash):
    place.tamper(*changed(place, seq, rehash))
    assert_refused_when_opened(place)


@pytest.mark.parametrize("rehash", ["nothing", "row", "all"])
def test_a_row_changed_while_open_is_never_relied_upon(place, rehash):
    with place.open() as ledger:
        assert ledger.answers(["b"])[0][1] == b"b"
        place.tamper(*changed(place, CHARGED, rehash))
        assert_refused(place, ledger, READING_ROWS)


@pytest.mark.parametrize("rehash", ["nothing", "row", "all"])
def test_a_last_row_changed_while_open_is_never_relied_upon(place, rehash):
    with place.open() as ledger:
        assert ledger.answers(["b"])[0][1] == b"b"
        place.tamper(*changed(place, 9, rehash, "spent", "0 0 0"))
        assert_refused(place, ledger)


def test_what_is_spent_does_not_come_from_rows_that_can_be_changed_while_open(place):
    with place.open() as ledger:
        assert ledger.spent("bob") == CENT
        place.tamper(*changed(place, SETTLED, "row", "spent_by", "0 0 0"))
        assert ledger.spent("bob") == CENT
        with pytest.raises(LedgerError, match="row 5"):
            verify_ledger(ledger)


@pytest.mark.parametrize("seq", [CHARGED, SETTLED, 8])
def test_a_ledger_with_a_removed_row_is_never_relied_upon(place, seq):
    place.tamper(["DELETE FROM rows WHERE seq = ?", seq])
    assert_refused_when_opened(place)


def test_a_row_removed_while_open_is_never_relied_upon(place):
    with place.open() as ledger:
        assert ledger.answers(["b"])[0][1] == b"b"
        place.tamper(["DELETE FROM rows WHERE seq = ?", CHARGED])
        assert_refused(place, ledger, READING_ROWS[:3])


ANSWER = "(SELECT receipt FROM rows WHERE seq = 4)"
OF_ANSWERS = {
    "changed": ["UPDATE answers SET answer = ?", b"0"],
    "missing": ["DELETE FROM answers"],
    "exchanged": [f"UPDATE answers SET receipt = receipt || 'x' WHERE receipt = {ANSWER}"],
}


@pytest.mark.parametrize("statement", OF_ANSWERS.values(), ids=OF_ANSWERS)
def test_a_changed_or_missing_answer_is_never_recalled(place, statement):
    with place.open() as ledger:
        assert ledger.answers(["b"])[0][1] == b"b"
        place.tamper(statement)
        assert_refused(place, ledger, WITH_ANSWERS)
    with place.open() as ledger:
        assert_refused(place, ledger, WITH_ANSWERS)


@pytest.mark.long(but=["file"])
def test_an_untampered_ledger_never_refuses(place):
    with place.open() as one, place.open() as two:
        for number in range(5):
            for ledger in (one, two):
                for name, act in RELYING.items():
                    act(ledger)
                    assert ledger.answers(["b"])[0][1] == b"b", name
                receipt = ledger.charge(CENT, event(f"n{number}"))
                ledger.settle(receipt, b"new")
                assert two.latest_receipt(f"n{number}") == one.latest_receipt(f"n{number}") == receipt.id
        one.acknowledge()
        assert two.latest_receipt("b") is None
        one.set_budget(Budget(2), analysts=None)
        assert two.terms.budget == Budget(2)
        assert one.spent() == two.spent()
        verify_ledger(two)


def test_a_ledger_rolled_back_while_open_serves_nothing_until_acknowledged(place):
    place.back_up()
    with place.open() as ledger:
        ledger.settle(ledger.charge(CENT, event("lost")), b"lost")
        spent = ledger.spent()
    with place.open() as ledger:
        assert ledger.answers(["lost"])[0][1] == b"lost"
        ledger.close()
        place.restore()
    with place.open() as ledger:
        for act in (
            lambda: ledger.answers(["b"]),
            lambda: ledger.latest_receipt("b"),
            lambda: ledger.answers(keys=[("bob", "b")]),
        ):
            with pytest.raises(LedgerError, match="rolled back"):
                act()
        assert ledger.spent().epsilon == 4 * CENT.epsilon, "the owner can look"
        ledger.acknowledge()
        assert ledger.spent() == spent
        assert ledger.answers(["lost"]) == []
        assert ledger.answers(["b"])[0][1] == b"b"


def test_looking_up_old_charges_reads_few_rows(place, monkeypatch):
    """The chain is read once; afterwards only what is new, and the rows that are used."""
    with place.open() as ledger:
        ledger.answers(["b"])
        read = []

        def counted(row):
            read.append(row)
            return read_row(row)

        monkeypatch.setattr("discreet.kernel.ledger.table.read_row", counted)
        ledger.charge(CENT, event("new"))
        assert len(read) == 1, "the last row"
        ledger.answers(["b"])
        assert len(read) == 3, "the last row, which this ledger added itself, and the charge"
