"""The parts of the ledger one by one, in memory: rows, the chain, checkpoints, terms and tables, at their edges."""

import itertools
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import pytest

from discreet.kernel.errors import Failed, LedgerError, PolicyError, Refused
from discreet.kernel.event import Event, Receipt
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.chain import (
    GENESIS,
    Chain,
    LedgerRow,
    RowKind,
    check_not_moved,
    event_text,
    moved_to,
    read_event,
)
from discreet.kernel.ledger.checkpoint import (
    EMPTY_CHECKPOINT,
    Checkpoint,
    check_checkpoint,
    checkpoint_of,
    rolled_back_loss,
)
from discreet.kernel.ledger.ledger import MAX_ANSWER_BYTES, open_in
from discreet.kernel.ledger.table import (
    FORMAT,
    RESERVED,
    LedgerTable,
    check_answers,
    closed_on_error,
    read_row,
    stored_answer,
)
from discreet.kernel.ledger.terms import (
    DatasetTerms,
    OverBudget,
    Terms,
    check_analyst,
    check_cost,
    check_delta_split,
    join_terms,
    loss_text,
    read_loss,
    read_terms,
    round_for_ledger,
    shortfall,
    terms_text,
)
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.ledger_sqlite import memory_ledger
from discreet.ledger_sqlite.location import MemoryLocation
from discreet.ledger_sqlite.schema import SQLITE_DIALECT
from discreet.ledger_sqlite.session import SQLiteSession

CENT = Loss("1/100")
TERMS = Terms("demo", Budget(1), None)
MOVE = '{"to":"there","token":"t"}'


def event(**more):
    return Event(mechanism="{}", sensitivity="{}", question="q", **more)


def charge(receipt, *fingerprints, dataset="", by="owner", key=None, loss=CENT):
    text = event_text(event(fingerprints=(fingerprints,) if fingerprints else ()))
    return RowKind.CHARGE, by, text, {"dataset": dataset, "receipt": receipt, "key": key, "loss": loss}


def settle(receipt, dataset="", by="owner"):
    return RowKind.SETTLE, by, f'{{"sha256":"{receipt}!"}}', {"dataset": dataset, "receipt": receipt}


def other(kind, body="{}", dataset=""):
    return kind, "owner", body, {"dataset": dataset}


CREATE = other(RowKind.CREATE, terms_text(TERMS))


def chain_of(*steps):
    chain, rows = Chain(), []
    for kind, by, body, more in steps:
        rows.append(chain.next_row(kind, by, body, **more))
        chain.add(rows[-1])
    return chain, rows


# Rows and the chain.


def test_the_hash_of_a_row_covers_every_other_field_in_a_fixed_format():
    row = LedgerRow(2, "t", "charge", "ana", "d", None, "r", "{}", "1 1/2 0", "2 1 0", "1 1/2 0", "3 1 0", "abc", "x")
    text = '[2,"t","charge","ana","d",null,"r","{}","1 1/2 0","2 1 0","1 1/2 0","3 1 0","abc"]'
    assert row.digest() == sha256(text.encode()).hexdigest()
    assert row._replace(hash="y").digest() == row.digest()
    digests = {row._replace(**{name: 9}).digest() for name in row._fields[:-1]}
    assert len(digests | {row.digest()}) == len(row._fields)


def test_the_first_row_follows_zeros():
    nothing = "0 0 0"
    assert (0, "", "", "", "", None, None, "", nothing, nothing, nothing, nothing, "", "0" * 64) == GENESIS


def test_an_event_is_written_in_a_fixed_format_and_read_back():
    plain = '{"mechanism":"{}","question":"q","sensitivity":"{}"}'
    assert event_text(event(by="ana", dataset="d")) == plain
    full = event(fingerprints=(("a", "b"), ()), follows=(("a", "r"),))
    assert event_text(full) == plain.replace('"mech', '"fingerprints":[["a","b"],[]],"follows":[["a","r"]],"mech')
    for each, loss in itertools.product((event(), full), (CENT, Loss(None, "1/3", "1/7"))):
        row = GENESIS._replace(
            body=event_text(each), by="ana", dataset="d", receipt="r", time="t", loss=loss_text(loss)
        )
        assert read_event(row, "reserved") == replace(
            each, by="ana", dataset="d", id="r", time="t", state="reserved", loss=loss
        )
        assert read_event(row._replace(receipt=None), "released").id == ""


def test_only_a_move_names_another_location():
    for kind in RowKind:
        row = GENESIS._replace(kind=kind.value, body=MOVE)
        assert moved_to(row) == ("there" if kind == RowKind.MOVE else None)
        if kind != RowKind.MOVE:
            check_not_moved(row)
    with pytest.raises(LedgerError, match="moved to there"):
        check_not_moved(GENESIS._replace(kind="move", body=MOVE))


def test_a_row_continues_the_totals_of_its_account_analyst_and_data_set():
    chain, rows = chain_of(
        CREATE, charge("a", by="ana", dataset="x", key="k"), charge("b", by="ana", dataset="y", loss=Loss("1/50"))
    )
    last = rows[-1]
    row = chain.next_row(RowKind.CHARGE, "bob", "{}", dataset="y", loss=Loss("1/20"), receipt="c", key="l")
    expected = LedgerRow(
        4, row.time, "charge", "bob", "y", "l", "c", "{}", "1/20 1/800 0", "", "", "", last.hash, row.hash
    )
    assert row._replace(spent="", spent_by="", spent_in="") == expected
    assert [read_loss(each) for each in row[9:12]] == [
        CENT + Loss("1/50") + Loss("1/20"),
        Loss("1/20"),
        Loss("1/50") + Loss("1/20"),
    ]
    assert row.hash == row.digest()
    assert [rows[1].key, rows[1].receipt] == ["k", "a"]
    scopes = [(), ("by", "ana"), ("by", "bob"), ("in", "x"), ("in", "y"), ("in", "z")]
    assert [chain.spent(*scope).epsilon * 100 for scope in scopes] == [3, 3, 0, 1, 2, 0]


def test_the_chain_has_the_hash_of_every_row_and_of_none_beyond():
    chain, rows = chain_of(CREATE, charge("a"), settle("a"))
    assert [chain.hash_at(seq) for seq in range(6)] == ["0" * 64, *(row.hash for row in rows), None, None]


def test_a_charge_is_found_with_its_state_if_its_row_is_the_one_in_the_chain():
    chain, rows = chain_of(CREATE, charge("a"), settle("a"), charge("b"))
    assert [chain.event_of(seq, rows[seq - 1]).state for seq in (2, 4)] == ["released", "reserved"]
    for seq, row in ((2, None), (2, rows[3]), (4, rows[3]._replace(hash="0" * 64)), (5, rows[3])):
        with pytest.raises(LedgerError, match=f"row {seq} was modified or deleted"):
            chain.event_of(seq, row)


def test_the_index_is_that_of_the_rows():
    changed = terms_text(Terms("demo", Budget(2), None))
    chain, _ = chain_of(
        CREATE,
        charge("a", "f", "g", "f", "", dataset="x", key="k", by="ana"),
        charge("b", "f", dataset="x"),
        charge("c", "f", dataset="y"),
        settle("a", dataset="x", by="ana"),
        other(RowKind.BUDGET, changed),
    )
    assert chain.terms == changed
    assert chain.charges == {"a": (2, "ana", "x"), "b": (3, "owner", "x"), "c": (4, "owner", "y")}
    assert chain.settlements == {"a": (5, "a!")}
    assert chain.keys == {("ana", "x", "k"): 2}
    assert chain.rows_by_fingerprint == {("x", "f"): [2, 3], ("x", "g"): [2], ("y", "f"): [4]}
    assert chain.latest_receipts == {("x", "f"): "b", ("x", "g"): "a", ("y", "f"): "c"}
    assert chain.unsettled == {"x": {"b": 3}, "y": {"c": 4}}
    one, _ = chain_of(
        CREATE, charge("b", "f", dataset="x"), charge("c", dataset="y"), other(RowKind.ACKNOWLEDGE, dataset="x")
    )
    assert (one.latest_receipts, one.unsettled) == ({}, {"y": {"c": 3}})
    one.add(one.next_row(*settle("b", dataset="x")[:3], dataset="x", receipt="b"))  # late, after the acknowledgement
    assert (one.settlements, one.unsettled) == ({"b": (5, "b!")}, {"y": {"c": 3}})
    every, _ = chain_of(CREATE, charge("b", dataset="x"), charge("c", dataset="y"), other(RowKind.ACKNOWLEDGE))
    assert every.unsettled == {}
    joined, _ = chain_of(CREATE, other(RowKind.JOIN, changed, dataset="x"))
    assert joined.terms == changed


BEGUN = (CREATE, charge("a"))
MOVED = (*BEGUN, other(RowKind.MOVE, MOVE))
OUT_OF_PLACE = {
    "a number left out": (BEGUN, {"seq": 4}, "out of sequence"),
    "the same number again": (BEGUN, {"seq": 2}, "out of sequence"),
    "a number before": (BEGUN, {"seq": 1}, "out of sequence"),
    "another hash": (BEGUN, {"previous": "0" * 64}, "hash of the previous row"),
    "a second creation": (BEGUN, {"kind": "create"}, "only the first row"),
    "no creation": ((), {"kind": "budget"}, "only the first row"),
    "an arrival without a move": (BEGUN, {"kind": "arrive"}, "a move must be followed"),
    "a charge after a move": (MOVED, {"kind": "charge"}, "a move must be followed"),
    "a move after a move": (MOVED, {"kind": "move", "body": MOVE}, "a move must be followed"),
    "no text": (BEGUN, {"kind": "charge", "body": "no JSON"}, "not readable"),
    "another text": (BEGUN, {"kind": "charge", "body": "[]"}, "not readable"),
    "no answer's hash": (BEGUN, {"kind": "settle", "body": "{}"}, "not readable"),
}


@pytest.mark.parametrize(("steps", "wrong", "problem"), OUT_OF_PLACE.values(), ids=OUT_OF_PLACE)
def test_a_row_out_of_place_is_refused_and_changes_nothing(steps, wrong, problem):
    chain, _ = chain_of(*steps)
    last, spent = chain.last, chain.spent()
    row = chain.next_row(RowKind.BUDGET, "owner", terms_text(TERMS), loss=CENT)._replace(**wrong)
    with pytest.raises(LedgerError, match=f"row {row.seq} .*{problem}.*backup"):
        chain.add(row)
    assert (chain.last, chain.spent(), chain.hash_at(last.seq + 1)) == (last, spent, None)


def test_an_arrival_follows_a_move_and_a_chain_has_rows():
    chain, _ = chain_of(*MOVED, other(RowKind.ARRIVE), charge("b"))
    assert chain.last.seq == 5
    rebuilt, rows = Chain(), chain_of(*MOVED)[1]
    assert rebuilt.extend(rows) is rebuilt
    assert rebuilt.last == rows[-1]
    with pytest.raises(LedgerError, match="no rows"):
        Chain().extend([])


# Checkpoints.


def test_a_checkpoint_names_its_row():
    _, rows = chain_of(*MOVED)
    assert checkpoint_of(rows[1]) == Checkpoint(2, rows[1].hash, "1/100 1/20000 0", "", ())
    assert checkpoint_of(rows[2], ((1, "ab"),)) == Checkpoint(3, rows[2].hash, "1/100 1/20000 0", "there", ((1, "ab"),))
    assert Checkpoint(0, "0" * 64, "0 0 0", "", ()) == EMPTY_CHECKPOINT


def test_a_ledger_continues_each_of_its_checkpoints():
    chain, rows = chain_of(*MOVED, other(RowKind.ARRIVE), charge("b"))
    for checkpoint in (EMPTY_CHECKPOINT, *map(checkpoint_of, rows)):
        check_checkpoint(chain, checkpoint)
    gone, _ = chain_of(*MOVED)
    for checkpoint in (None, checkpoint_of(rows[4]), checkpoint_of(rows[1]._replace(hash="0" * 64))):
        check_checkpoint(gone, checkpoint)  # it accepts no more rows


def test_a_ledger_that_does_not_continue_its_checkpoint_is_refused_with_what_to_do():
    chain, rows = chain_of(CREATE, charge("a"), settle("a"))
    later = checkpoint_of(rows[2]._replace(seq=4))
    changed = [checkpoint_of(row._replace(hash="1" * 64)) for row in rows]
    refused = {
        None: "missing or unreadable.*acknowledge",
        later: "rolled back from row 4 to row 3.*acknowledge",
        replace(later, moved="there"): "older copy that ends at row 3.*moved to there",
        changed[1]: "row 2 differs.*backup",
        changed[2]: "row 3 differs.*backup",
        replace(changed[2], moved="there"): "row 3 differs",
        replace(changed[1], earlier=((1, "ab"),)): "row 2 differs.*acknowledge",
    }
    for checkpoint, problem in refused.items():
        with pytest.raises(LedgerError, match=problem):
            check_checkpoint(chain, checkpoint)


def test_the_loss_of_a_rollback_is_that_since_the_last_row_that_is_left():
    chain, rows = chain_of(CREATE, charge("a"), charge("b"), charge("c"))
    spent = [read_loss(row.spent) for row in rows]
    before = Checkpoint(9, "1" * 64, "1/2 1/3 1/5")
    then = read_loss(before.spent)

    def lost(checkpoint, rows=rows):
        return rolled_back_loss(chain, checkpoint, lambda seq: dict(enumerate(rows, 1)).get(seq))

    def prefixes(*seqs, wrong=()):
        return tuple((seq, "x" if seq in wrong else (rows + rows)[seq - 1].hash[:16]) for seq in seqs)

    assert lost(before) == shortfall(spent[3], then)
    assert lost(replace(before, earlier=prefixes(1, 2))) == shortfall(spent[1], then)
    assert lost(replace(before, seq=3, earlier=prefixes(1, 2))) == shortfall(spent[1], then)
    assert lost(replace(before, earlier=prefixes(1, 2, 3, 8, wrong=(3,)))) == shortfall(spent[1], then)
    modified = [*rows[:2], rows[2]._replace(hash=rows[2].hash[:16] + "0" * 48), rows[3]]
    assert lost(replace(before, earlier=prefixes(2, 3)), modified) == shortfall(spent[1], then)
    for row in rows:
        assert lost(checkpoint_of(row)) == lost(checkpoint_of(row, prefixes(1))) == ZERO_LOSS
    for refused in (
        replace(before, earlier=prefixes(1, 2, wrong=(1, 2))),
        replace(before, earlier=((7, ""),)),
        replace(before, seq=4),
        replace(before, seq=3),
        replace(before, moved="there"),
        replace(before, moved="there", earlier=prefixes(1, 2)),
    ):
        with pytest.raises(LedgerError):
            lost(refused)


# Losses and terms.

LOSSES = [Loss.of_bounds(*map(Fraction, each)) for each in itertools.product((0, 2, 3), (1, 4), (0, Fraction(1, 2)))]
LOSSES += [Loss(None, rho, delta) for rho in (1, 4) for delta in (0, "1/2")]


@pytest.mark.parametrize("now", LOSSES, ids=loss_text)
def test_the_shortfall_is_what_every_bound_lacks(now):
    for then in LOSSES:
        lacks = shortfall(now, then)
        assert (now + lacks).includes(then)
        if now.includes(then):
            assert lacks == ZERO_LOSS
            continue
        both = now.epsilon is not None and then.epsilon is not None
        assert lacks.epsilon == (max(0, then.epsilon - now.epsilon) if both else None)
        assert (lacks.rho, lacks.delta) == (max(0, then.rho - now.rho), max(0, then.delta - now.delta))


def test_losses_are_written_exactly_and_rounded_up_beyond_a_hundred_places():
    assert [loss_text(each) for each in (CENT, Loss(None, "1/3", "1/7"))] == ["1/100 1/20000 0", "- 1/3 1/7"]
    for each in LOSSES:
        assert read_loss(loss_text(each)) == each
    long = 10**100
    kept = [Fraction(1, long), Fraction(7, long - 3), Fraction(1, 3), Fraction(0)]
    for part in kept:
        assert round_for_ledger(Loss.of_bounds(part, part, part)) == Loss.of_bounds(part, part, part)
        assert round_for_ledger(Loss(None, part)) == Loss(None, part)
    up = Fraction(1, long)
    for epsilon, rho, delta in itertools.product((Fraction(1, long + 1), Fraction(1, 3)), repeat=3):
        rounded = [up if part.denominator > 3 else part for part in (epsilon, rho, delta)]
        assert round_for_ledger(Loss.of_bounds(epsilon, rho, delta)) == Loss.of_bounds(*rounded)


MEMBERS = {"visits": DatasetTerms(), "labs": DatasetTerms(Budget("1/2", "1e-6", discover="1/4"), "patient")}
EVERY_TERMS = [
    Terms("demo", budget, analysts, unit, datasets)
    for budget in (Budget(1), Budget(2, "1e-6"), Budget(2, "1e-6", discover="1/3"))
    for analysts in (None, {}, {"ana": Budget("1/3"), "bob": Budget(1, "1e-9")})
    for unit, datasets in (("", None), ("person", {}), ("person", MEMBERS))
]


def test_terms_are_read_back_as_they_were_written():
    for terms in EVERY_TERMS:
        again = read_terms(terms_text(terms))
        assert again == terms
        assert (type(again.analysts), type(again.datasets)) == (type(terms.analysts), type(terms.datasets))


def test_the_limit_in_rho_is_the_one_that_was_written():
    budget = Budget(1, "1e-6")
    object.__setattr__(budget, "rho", budget.rho / 2)  # as another machine may compute it
    assert read_terms(terms_text(Terms("demo", budget, None))).budget.rho == budget.rho


def test_terms_are_written_in_a_fixed_format():
    budget = '{"delta":"0","discover":"0","epsilon":"1","rho":null}'
    text = f'{{"analysts":null,"budget":{budget},"datasets":null,"name":"demo","unit_declaration":""}}'
    assert terms_text(TERMS) == text
    with_delta = Budget(1, "1/1000", discover="1/4")
    members = {"x": DatasetTerms(with_delta, "u"), "y": DatasetTerms()}
    share = f'{{"delta":"1/1000","discover":"1/4","epsilon":"1","rho":"{with_delta.rho}"}}'
    text = f'{{"analysts":{{"ana":{share}}},"budget":{budget},"datasets":{{"x":[{share},"u"],"y":[null,""]}},'
    expected = f'{text}"name":"demo","unit_declaration":"u"}}'
    assert terms_text(Terms("demo", Budget(1), {"ana": with_delta}, "u", members)) == expected


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"name": "n" * 201}, ValueError),
        ({"name": 1}, TypeError),
        ({"unit_declaration": "u" * 1_000_001}, ValueError),
        ({"unit_declaration": 1}, TypeError),
        ({"budget": None}, TypeError),
        ({"analysts": ["ana"]}, TypeError),
        ({"analysts": {"a" * 201: Budget(1)}}, ValueError),
        ({"analysts": {1: Budget(1)}}, TypeError),
        ({"analysts": {"ana": Budget(1), "bob": 1}}, TypeError),
        ({"analysts": {"owner": Budget(1)}}, ValueError),
        ({"datasets": {"d" * 201: DatasetTerms()}}, ValueError),
        ({"datasets": {"": DatasetTerms()}}, ValueError),
        ({"datasets": {1: DatasetTerms()}}, TypeError),
        ({"datasets": {"x": Budget(1)}}, TypeError),
    ],
)
def test_wrong_terms_are_refused_by_name(wrong, error):
    with pytest.raises(error, match=f"^{next(iter(wrong))}"):
        Terms(**{"name": "demo", "budget": Budget(1), "analysts": None, **wrong})


def test_the_longest_terms_are_accepted():
    long = "n" * 200
    Terms(long, Budget(1), {long: Budget(1)}, "u" * 1_000_000, {long: DatasetTerms()})


def spent_of(total="0", by="0", dataset="0", unknown="0"):
    amounts = {(): total, ("by", "ana"): by, ("in", "x"): dataset, ("in", ""): unknown}
    return lambda *scope: Loss(amounts[scope])


def test_a_cost_is_covered_by_each_of_the_three_limits():
    """The last hundredth of each limit fits, and nothing more."""
    limited = Terms(
        "demo", Budget(1), {"ana": Budget("1/2")}, "", {"x": DatasetTerms(Budget("1/4")), "y": DatasetTerms()}
    )
    for by, spent, scope in (
        ("owner", spent_of("99/100"), "in total"),
        ("ana", spent_of(by="49/100"), "for ana"),
        ("owner", spent_of(dataset="20/100", unknown="4/100"), "in x"),
    ):
        check_cost(limited, by, "x", CENT, spent)
        with pytest.raises(OverBudget, match=f"not enough budget left {scope}\\.$"):
            check_cost(limited, by, "x", Loss("2/100"), spent)
    check_cost(limited, "owner", "y", CENT, lambda *scope: Loss("99/100") if scope == () else Loss(9))
    check_cost(TERMS, "ana", "", CENT, lambda *scope: Loss("99/100") if scope == () else Loss(9))
    for dataset, terms in (("z", limited), ("", limited), ("x", TERMS)):
        with pytest.raises(PolicyError, match=f"{dataset!r} is not a data set"):
            check_cost(terms, "owner", dataset, CENT, spent_of())
    with pytest.raises(Refused, match="'eve' has no access"):
        check_cost(limited, "eve", "x", CENT, spent_of())


def test_a_long_sum_is_rounded_up_before_it_is_compared():
    below = Fraction(99, 100) - Fraction(1, 10**101)
    check_cost(TERMS, "owner", "", CENT, lambda *_: Loss(below))
    with pytest.raises(OverBudget):
        check_cost(TERMS, "owner", "", CENT, lambda *_: Loss(Fraction(99, 100) + Fraction(1, 10**101)))


@pytest.mark.parametrize(
    ("cost", "budget", "hinted"),
    [
        (Loss(None, "1/2"), Budget(1), True),
        (Loss("1/2", delta="1/2"), Budget(1), True),
        (Loss(2), Budget(1), False),
        (Loss(None, 9), Budget(1, "1e-6"), False),
        (Loss(9, delta="1/2"), Budget(1, "1e-6"), False),
    ],
)
def test_a_pure_budget_says_why_a_cost_with_a_delta_or_without_an_epsilon_is_refused(cost, budget, hinted):
    with pytest.raises(OverBudget) as refused:
        check_cost(Terms("demo", budget, None), "owner", "", cost, spent_of())
    assert ("pure" in str(refused.value)) == hinted


def test_the_owner_and_listed_analysts_have_access_and_everyone_if_there_is_no_list():
    for analysts, by in ((None, "ana"), (None, "owner"), ({}, "owner"), ({"ana": Budget(1)}, "ana")):
        check_analyst(Terms("demo", Budget(1), analysts), by)
    for analysts in ({}, {"bob": Budget(1)}):
        with pytest.raises(Refused, match="'ana' has no access to 'demo'"):
            check_analyst(Terms("demo", Budget(1), analysts), "ana")


def test_a_data_set_joins_a_population_once():
    population = Terms("demo", Budget(1), None, "person", {"x": DatasetTerms()})
    member = DatasetTerms(Budget("1/2"), "row")
    assert join_terms(population, "y", member) == replace(population, datasets={"x": DatasetTerms(), "y": member})
    assert join_terms(replace(population, datasets={}), "y", member).datasets == {"y": member}
    with pytest.raises(PolicyError, match="already has a data set 'x'"):
        join_terms(population, "x", member)
    with pytest.raises(PolicyError, match="one data set only"):
        join_terms(TERMS, "x", member)


def test_a_delta_may_change_only_before_the_first_charge_and_be_added_only_if_it_covers_the_loss():
    pure, delta = Budget(1), Budget(1, "1e-6", discover="1/4")
    others = (Budget(1, "1e-6", discover="1/2"), Budget(1, "1e-5", discover="1/4"), Budget(1, "1e-6"), pure)
    whole = Loss(None, delta.rho)
    for new in (*others, delta):
        check_delta_split(delta, new, ZERO_LOSS)
    for same in (delta, Budget(9, "1e-6", discover="1/4"), Budget("1/9", "1e-6", discover="1/4")):
        check_delta_split(delta, same, whole)
    for new in others:
        with pytest.raises(PolicyError, match="cannot change after the first charge"):
            check_delta_split(delta, new, CENT)
    for new, spent in ((delta, ZERO_LOSS), (delta, whole), (Budget(2), Loss(9)), (Budget("1/9"), CENT)):
        check_delta_split(pure, new, spent)
    with pytest.raises(PolicyError, match="exceeds a budget with this delta"):
        check_delta_split(pure, delta, Loss(None, delta.rho + Fraction(1, 10**50)))


# Tables.


@pytest.fixture
def ledger():
    with memory_ledger(name="demo", budget=Budget(1)) as ledger:
        yield ledger


@pytest.fixture
def table(ledger):
    with ledger.session.read_transaction() as table:
        yield table


def test_a_new_ledger_has_the_present_format(table):
    assert (FORMAT, RESERVED) == (8, -1)
    assert table.query("PRAGMA user_version") == [(8,)]
    assert table.format() == 8
    table.check_format(8)
    table.check_format(None, 8)


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (0, "not a ledger"),
        (-1, "a move to this location is unfinished"),
        (7, "format 7 is not"),
        (9, "format 9 is not"),
    ],
)
def test_another_format_is_named(ledger, number, problem):
    with ledger.session.read_transaction() as table:
        table.write_format(number)
        assert table.format() == number
        table.check_format(number)
        with pytest.raises(LedgerError, match=problem):
            table.check_format(8, None)
    ledger.session._connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(LedgerError, match=problem):
        open_in(ledger.session, "demo")
    with pytest.raises(LedgerError, match="closed"):
        ledger.spent()


def test_nothing_is_not_a_ledger():
    session = SQLiteSession(MemoryLocation())
    with session.read_transaction() as table:
        assert table.format() is None
        table.check_format(None)
        with pytest.raises(LedgerError, match="not a ledger"):
            table.check_format(FORMAT)
    with pytest.raises(LedgerError, match="not a ledger"):
        open_in(session, "demo")


def test_a_ledger_is_opened_by_its_name_and_otherwise_closed(ledger):
    with open_in(ledger.session, "demo", "x") as again:
        assert (again.dataset, again.terms.name) == ("x", "demo")
    with memory_ledger(name="demo", budget=Budget(1)) as other_ledger:
        with pytest.raises(PolicyError, match="belongs to 'demo', not to 'clinic'"):
            open_in(other_ledger.session, "clinic")
        with pytest.raises(LedgerError, match="closed"):
            other_ledger.spent()


def test_rows_are_read_in_pages_from_any_row_on(ledger, monkeypatch):
    monkeypatch.setattr("discreet.kernel.ledger.table._PAGE_ROWS", 3)
    for number in range(1, 11):
        with ledger.session.read_transaction() as table:
            rows = [table.row_at(seq) for seq in range(1, number + 1)]
            assert [row.seq for row in rows] == list(range(1, number + 1))
            assert list(table.rows()) == rows
            for start in range(1, number + 2):
                assert list(table.rows(start)) == rows[start - 1 :]
            assert table.last_row() == rows[-1]
            assert table.row_at(number + 1) is None
        ledger.charge(CENT, event())


def test_a_table_without_rows_has_no_last_one_and_is_no_ledger():
    session = SQLiteSession(MemoryLocation())
    with session.write_transaction() as table:
        table.create()
        with pytest.raises(LedgerError, match="no rows"):
            table.last_row()
    with pytest.raises(LedgerError, match="no rows"):
        open_in(session, "demo")


def test_a_row_with_another_hash_is_not_read():
    _, rows = chain_of(CREATE)
    assert read_row(tuple(rows[0])) == rows[0]
    with pytest.raises(LedgerError, match="row 1 was modified"):
        read_row(tuple(rows[0]._replace(by="ana")))


def test_answers_are_found_by_their_receipts_and_compared_with_the_chain(ledger):
    receipts = [ledger.charge(CENT, event()) for _ in range(3)]
    for receipt, answer in zip(receipts, (b"one", b""), strict=False):
        ledger.settle(receipt, answer)
    with ledger.session.read_transaction() as table:
        chain = Chain().extend(table.rows())
        found = [table.answer(receipt.id) for receipt in receipts]
        assert found == [stored_answer(table, chain, receipt.id) for receipt in receipts] == [b"one", b"", None]
        assert table.count_answers() == 2
        check_answers(table, chain)
        table.add_answer("unknown", b"")
        assert table.count_answers() == 3
        with pytest.raises(LedgerError, match="no charge"):
            check_answers(table, chain)
    with ledger.session.read_transaction() as table:
        chain.settlements[receipts[2].id] = 9, sha256(b"").hexdigest()
        with pytest.raises(LedgerError, match="row 9: the stored answer"):
            check_answers(table, chain)
        chain.settlements[receipts[2].id] = 9, sha256(b"one").hexdigest()
        table.add_answer(receipts[2].id, b"two")
        with pytest.raises(LedgerError, match="row 9: the stored answer"):
            stored_answer(table, chain, receipts[2].id)


def test_what_a_transaction_appended_is_known_to_its_session(ledger):
    with ledger.session.read_transaction() as table:
        assert (table.last_appended, table.last_checked) == (None, None)
        row = Chain().extend(table.rows()).next_row(RowKind.ACKNOWLEDGE, "owner", "{}")
        table.add_row(row)
        assert table.last_appended == row == table.row_at(2)
    assert isinstance(table, LedgerTable)


class Resource:
    closed = False

    def close(self):
        self.closed = True


@pytest.mark.parametrize("error", [LedgerError, KeyboardInterrupt])
def test_a_resource_is_closed_only_if_its_construction_fails(error):
    kept, left = Resource(), Resource()
    with closed_on_error(kept):
        assert not kept.closed
    assert not kept.closed
    with pytest.raises(error), closed_on_error(left):
        raise error
    assert left.closed


# The ledger.


def test_limits_and_receipts_have_their_documented_sizes(ledger):
    assert MAX_ANSWER_BYTES == 64 * 2**20
    receipt = ledger.charge(CENT, event(), key="k" * 200)
    assert len(bytes.fromhex(receipt.id)) == 12
    with pytest.raises(ValueError, match=r"^key"):
        ledger.charge(CENT, event(), key="k" * 201)
    with pytest.raises(TypeError, match=r"^event"):
        ledger.charge(CENT, CENT)


def test_every_followed_charge_must_be_the_latest(ledger):
    receipts = {name: ledger.charge(CENT, event(fingerprints=((name,),))).id for name in "ab"}
    for wrong in ("a", "b"):
        follows = tuple((name, "other" if name == wrong else receipt) for name, receipt in receipts.items())
        with pytest.raises(Refused, match="at the same time"):
            ledger.charge(CENT, event(follows=follows))
    ledger.charge(CENT, event(follows=tuple(receipts.items())))


def test_losses_are_summed_by_analyst_or_by_data_set_or_in_total():
    with memory_ledger(name="p", budget=Budget(1), datasets={"x": DatasetTerms(), "y": DatasetTerms()}) as account:
        Ledger(account.session, "x").charge(CENT, event(by="ana"))
        Ledger(account.session, "y").charge(Loss("1/50"), event())
        spent = [account.spent(), account.spent("ana"), account.spent("owner"), account.spent("bob")]
        assert [each.epsilon * 100 for each in spent] == [3, 1, 2, 0]
        by_data_set = [account.spent(dataset=name) for name in ("x", "y", "", "z")]
        assert [each.epsilon * 100 for each in by_data_set] == [1, 2, 0, 0]


def test_charges_are_listed_without_settlements_and_acts_of_the_owner(ledger):
    first, second = ledger.charge(CENT, event()), ledger.charge(CENT, event(), key="k")
    ledger.settle(first, b"")
    ledger.set_budget(Budget(2), analysts=None)
    ledger.acknowledge()
    assert [each.id for each in ledger.events()] == [first.id, second.id]
    assert ledger.answers(keys=[("owner", "k")])[0][0].id == second.id
    with ledger.session.read_transaction() as table:
        assert table.last_row()[5:9] == (None, None, table.last_row().body, "0 0 0")


def test_new_terms_replace_only_what_they_name():
    members = {"x": DatasetTerms(), "y": DatasetTerms(Budget("1/2"))}
    with memory_ledger(name="p", budget=Budget(1), unit_declaration="u", datasets=members, dataset="x") as account:
        first = account.terms
        account.set_budget(Budget(2), analysts={"ana": Budget(1)})
        assert account.terms == Terms("p", Budget(2), {"ana": Budget(1)}, "u", members)
        member = DatasetTerms(Budget("1/3"), "v")
        account.set_budget(Budget(3), analysts=None, unit_declaration="w", member=member, replaces=account.terms)
        assert account.terms == Terms("p", Budget(3), None, "w", {**members, "x": member})
        with pytest.raises(PolicyError, match="at the same time"):
            account.set_budget(Budget(9), analysts=None, replaces=first)
        assert account.terms.budget == Budget(3)
    with memory_ledger(name="p", budget=Budget(1), dataset="x") as alone:
        alone.set_budget(Budget(1), analysts=None, member=DatasetTerms())
        assert alone.terms.datasets == {"x": DatasetTerms()}


def test_an_acknowledgement_records_lost_charges_for_the_population_and_failures_for_its_data_set():
    with memory_ledger(name="p", budget=Budget(1), datasets={"x": DatasetTerms()}, dataset="x") as account:
        account.charge(CENT, event())
        with account.session.read_transaction() as table:
            now = checkpoint_of(table.last_row())
        account.acknowledge()
        account.session.location.store_checkpoint(replace(now, seq=9, hash="1" * 64, spent="1/4 1/32 0"))
        with pytest.raises(LedgerError, match="rolled back"):
            account.charge(CENT, event())
        account.acknowledge()
        with account.session.read_transaction() as table:
            *_, mine, lost = table.rows()
        assert (mine.kind, mine.by, mine.dataset, mine.receipt, mine.loss) == (
            "acknowledge",
            "owner",
            "x",
            None,
            "0 0 0",
        )
        assert (lost.kind, lost.by, lost.dataset) == ("acknowledge", "owner", "")
        assert (len(bytes.fromhex(lost.receipt)), read_loss(lost.loss).epsilon) == (12, Fraction(24, 100))
        assert account.spent() == Loss("1/4")
        account.session.location.store_checkpoint(None)
        account.acknowledge()
        assert account.spent() == Loss("1/4")


def test_a_key_replays_its_answer_to_those_who_still_have_access(ledger):
    first = ledger.charge(CENT, event(by="ana"), key="k")
    with pytest.raises(Failed, match="outcome is unknown"):
        ledger.charge(CENT, event(by="ana"), key="k")
    ledger.settle(first, b"answer")
    assert ledger.charge(Loss(9), event(by="ana"), key="k") == Receipt(first.id, b"answer")
    with pytest.raises(Refused, match="different query"):
        ledger.charge(CENT, replace(event(by="ana"), question="other"), key="k")
    assert ledger.spent() == CENT
    ledger.set_budget(Budget(1), analysts={})
    with pytest.raises(Refused, match="'ana' has no access"):
        ledger.charge(CENT, event(by="ana"), key="k")


def test_a_charge_is_within_the_budget_and_settled_once(ledger, monkeypatch):
    receipt = ledger.charge(Loss("99/100"), event())
    with pytest.raises(OverBudget):
        ledger.charge(Loss("2/100"), event())
    assert [each.id for each in ledger.unsettled_events()] == [receipt.id]
    monkeypatch.setattr("discreet.kernel.ledger.ledger.MAX_ANSWER_BYTES", 3)
    with pytest.raises(ValueError, match="answer"):
        ledger.settle(receipt, b"1234")
    ledger.settle(receipt, b"123")
    for wrong in (receipt, Receipt("unknown")):
        with pytest.raises(LedgerError, match="unknown or already settled"):
            ledger.settle(wrong, b"1")
    assert ledger.unsettled_events() == []
    with ledger.session.read_transaction() as table:
        assert (table.last_row().seq, table.count_answers()) == (3, 1)


def test_answers_are_found_by_fingerprint_and_by_key_if_they_are_intact(ledger):
    one, two = (ledger.charge(CENT, event(fingerprints=((name, "both"),)), key=name) for name in "ab")
    ledger.settle(one, b"one")
    assert [(each.id, answer) for each, answer in ledger.answers(["both"])] == [(one.id, b"one"), (two.id, None)]
    assert [each.id for each, _ in ledger.answers(["b", "both", "c"])] == [one.id, two.id]
    assert ledger.answers(["c"]) == []
    assert (ledger.latest_receipt("both"), ledger.latest_receipt("a"), ledger.latest_receipt("c")) == (
        two.id,
        one.id,
        None,
    )
    assert [event.id for event, _ in ledger.answers(keys=[("owner", "a"), ("owner", "c")])] == [one.id]
    ledger.verify()
    connection = ledger.session._connection
    connection.execute("DROP TRIGGER answers_UPDATE")
    connection.execute("UPDATE answers SET answer = x'00'")
    for use in (lambda: ledger.answers(["a"]), lambda: ledger.answers(keys=[("owner", "a")]), ledger.verify):
        with pytest.raises(LedgerError, match="row 4: the stored answer was modified"):
            use()
    assert ledger.answers(keys=[("owner", "b")])[0][0].id == two.id


def test_a_ledger_behind_its_checkpoint_can_be_looked_at_only(ledger):
    ledger.charge(CENT, event(fingerprints=(("f",),)), key="k")
    whole = ledger.session.location.checkpoint()
    ledger.session.location.store_checkpoint(replace(whole, seq=3))
    uses = (
        lambda: ledger.charge(CENT, event()),
        lambda: ledger.answers(["f"]),
        lambda: ledger.latest_receipt("f"),
        lambda: ledger.answers(keys=[("owner", "k")]),
        ledger.verify,
    )
    for use in uses:
        with pytest.raises(LedgerError, match="rolled back from row 3 to row 2"):
            use()
    assert (ledger.spent(), ledger.terms.budget, len(ledger.events())) == (CENT, Budget(1), 1)
    assert (len(ledger.unsettled_events()), ledger.moved_to) == (1, None)
    ledger.session.location.store_checkpoint(None)
    assert ledger.spent() == CENT
    ledger.session.location.store_checkpoint(replace(whole, hash="1" * 64))  # the last row was rewritten
    for use in (
        *uses,
        ledger.spent,
        ledger.events,
        ledger.unsettled_events,
        lambda: ledger.terms,
        lambda: ledger.moved_to,
    ):
        with pytest.raises(LedgerError, match="row 2 differs"):
            use()


def test_a_moved_ledger_names_its_new_location_and_accepts_nothing(ledger):
    with ledger.write_transaction() as (table, chain):
        table.add_row(chain.next_row(RowKind.MOVE, "owner", MOVE))
    assert ledger.moved_to == "there"
    ledger.verify()
    for use in (lambda: ledger.charge(CENT, event()), ledger.acknowledge):
        with pytest.raises(LedgerError, match="moved to there"):
            use()


def test_a_data_set_joins_and_is_charged():
    with memory_ledger(name="p", budget=Budget(1), datasets={}, dataset="x") as account:
        account.join(DatasetTerms(Budget("1/2"), "row"))
        assert account.terms == Terms("p", Budget(1), None, "", {"x": DatasetTerms(Budget("1/2"), "row")})
        account.charge(CENT, event())
        with account.session.read_transaction() as table:
            assert [(row.kind, row.by, row.dataset) for row in table.rows()][1:] == [
                ("join", "owner", "x"),
                ("charge", "owner", "x"),
            ]


def test_the_split_of_delta_is_compared_with_the_terms_before():
    with memory_ledger(name="p", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event())
        ledger.set_budget(Budget(9, "1e-6"), analysts=None)
        with pytest.raises(PolicyError, match="cannot change after the first charge"):
            ledger.set_budget(Budget(9), analysts=None)
        assert ledger.terms.budget == Budget(9, "1e-6")


def test_leaving_a_ledger_closes_it():
    with memory_ledger(name="p", budget=Budget(1)) as ledger:
        assert isinstance(ledger, Ledger)
    with pytest.raises(LedgerError, match="closed"):
        ledger.spent()


def test_only_new_rows_are_read_and_a_rewritten_ledger_is_read_again(ledger):
    read = []
    ledger.charge(CENT, event())
    with ledger.session.read_transaction() as table:
        first = list(table.rows())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.kernel.ledger.table.read_row", lambda row: read.append(row[0]) or read_row(row))
        ledger.spent()
        ledger.charge(CENT, event())
        assert ledger.spent() == CENT + CENT
        assert read == [2, 2, 3]
    connection = ledger.session._connection
    connection.execute("DROP TRIGGER rows_DELETE")
    connection.execute("DELETE FROM rows WHERE seq = 3")
    ledger.session.location.store_checkpoint(checkpoint_of(first[1]))
    assert ledger.spent() == CENT
    ledger.charge(Loss("1/50"), event())
    assert ledger.spent() == CENT + Loss("1/50")
    with ledger.session.read_transaction() as table:
        assert ledger._update_chain(table) is ledger._chain
        assert table.last_checked == table.last_row() == ledger._chain.last


def test_each_database_gets_its_own_placeholder_and_is_asked_for_rows_only_if_it_has_some():
    class Cursor:
        description = None

        def fetchall(self):
            raise AssertionError("this statement returns no rows")

    class Connection:
        def execute(self, *statement):
            self.statement = statement
            return Cursor()

    connection = Connection()
    table = LedgerTable(connection, replace(SQLITE_DIALECT, schema="s", placeholder="%s"))
    table.add_answer("r", b"a")
    assert connection.statement == ("INSERT INTO s.answers (receipt, answer) VALUES (%s, %s)", ("r", b"a"))
