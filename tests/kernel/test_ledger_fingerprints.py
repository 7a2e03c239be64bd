"""What was asked is found again by its topic, and of the charges that follow another there is one."""

import sqlite3
import threading

import pytest
from kernel.ledger_locations import KINDS, FilePlace, place_of

from discreet.kernel.errors import LedgerError, Refused
from discreet.kernel.event import Event
from discreet.kernel.loss import Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import open_ledger

CENT = Loss("1/100")


def event(*topics, follows=(), by="owner"):
    parts = (tuple(topics),) if topics else ()
    return Event(mechanism="{}", sensitivity="{}", question="q", fingerprints=parts, follows=tuple(follows), by=by)


def filled(place):
    with place.create() as ledger:
        for number, topics in enumerate((["a", "b"], ["b", ""], ["c"], [])):
            ledger.settle(ledger.charge(CENT, event(*topics), key=str(number)), b"answer %d" % number)
        ledger.charge(CENT, event("a"))
    return place


@pytest.fixture
def path(tmp_path):
    return filled(FilePlace(tmp_path / "ledger.sqlite")).path


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return filled(place_of(request.param, request, tmp_path))


@pytest.fixture
def ledger(place):
    with place.open() as ledger:
        yield ledger


def test_answers_are_found_by_any_of_their_fingerprints_oldest_first(ledger):
    def found(*topics):
        return [(state.value if (state := each.state) else None, answer) for each, answer in ledger.answers(topics)]

    assert found("a") == [("released", b"answer 0"), ("reserved", None)]
    assert found("b", "c", "a") == [*((("released", b"answer %d" % n)) for n in range(3)), ("reserved", None)]
    assert found("d") == found("") == found() == []
    assert [each.fingerprints for each, _ in ledger.answers(["b"])] == [(("a", "b"),), (("b", ""),)]


def test_the_newest_charge_of_a_fingerprint_counts_whether_settled_or_not(ledger):
    events = ledger.events()
    assert ledger.latest_receipt("a") == events[-1].id
    assert ledger.latest_receipt("b") == events[1].id
    assert ledger.latest_receipt("d") is None


def test_a_key_finds_its_charge(ledger):
    assert ledger.answers(keys=[("owner", "2")])[0][0].id == ledger.events()[2].id
    assert ledger.answers(keys=[("owner", "9")]) == []
    assert ledger.answers(keys=[("ana", "2")]) == []


# One follows.


def test_only_one_charge_follows_another(ledger):
    first = ledger.charge(CENT, event("x"))
    spent = ledger.spent()
    second = ledger.charge(CENT, event("x", follows=[("x", first.id)]))
    with pytest.raises(Refused, match="at the same time"):
        ledger.charge(CENT, event("x", follows=[("x", first.id)]))
    with pytest.raises(Refused, match="at the same time"):
        ledger.charge(CENT, event("x", follows=[("x", "unknown")]))
    with pytest.raises(Refused, match="at the same time"):
        ledger.charge(CENT, event("y", follows=[("y", second.id)]))
    assert ledger.spent() == spent + CENT
    ledger.charge(CENT, event("x", follows=[("x", second.id)]))
    verify_ledger(ledger)


def test_of_many_concurrent_successors_one_is_charged(ledger):
    first = ledger.charge(CENT, event("x"))
    outcomes = []

    def follow():
        try:
            outcomes.append(ledger.charge(CENT, event("x", follows=[("x", first.id)])))
        except Refused:
            outcomes.append(None)

    threads = [threading.Thread(target=follow) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(outcome is not None for outcome in outcomes) == 1


def test_nothing_follows_what_was_charged_before_a_rollback(place):
    """What was lost may have followed it, and been seen."""
    with place.open() as ledger:
        first = ledger.charge(CENT, event("x"))
        ledger.settle(first, b"first")
    place.back_up()
    with place.open() as ledger:
        ledger.settle(ledger.charge(CENT, event("x", follows=[("x", first.id)])), b"seen, then lost")
    place.restore()
    with place.open() as ledger:
        with pytest.raises(LedgerError, match="rolled back"):
            ledger.charge(CENT, event("x", follows=[("x", first.id)]))
        ledger.acknowledge()
        assert ledger.latest_receipt("x") is None
        with pytest.raises(Refused, match="at the same time"):
            ledger.charge(CENT, event("x", follows=[("x", first.id)]))
        assert ledger.answers(["x"])[0][1] == b"first"
        again = ledger.charge(CENT, event("x"))
        ledger.charge(CENT, event("x", follows=[("x", again.id)]))
        verify_ledger(ledger)


# Tampering.


def test_a_history_with_two_successors_of_one_charge_is_found(place):
    with place.open() as ledger:
        first = ledger.charge(CENT, event("x"))
        ledger.charge(CENT, event("x", follows=[("x", first.id)]))
        ledger.charge(CENT, event("x"))
        verify_ledger(ledger)
    *_, one, last = place.rows()
    forged = last._replace(body=one.body)
    forged = forged._replace(hash=forged.digest())
    place.tamper(["UPDATE rows SET body = ?, hash = ? WHERE seq = ?", forged.body, forged.hash, last.seq])
    with place.open() as ledger, pytest.raises(LedgerError, match="not the latest with its fingerprint"):
        verify_ledger(ledger)


# Formats.


def test_a_ledger_of_another_format_is_named(path):
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match=r"format 99 is not supported"):
        open_ledger(path, name="demo")


@pytest.mark.parametrize(
    "wrong",
    [{"fingerprints": ("a",)}, {"fingerprints": [["a"]]}, {"fingerprints": (("a" * 101,),)}, {"follows": ((1, 2),)}],
)
def test_fingerprints_are_tuples_of_short_texts(wrong):
    with pytest.raises(TypeError, match="tuples of short texts"):
        Event(mechanism="{}", sensitivity="{}", question="q", **wrong)
