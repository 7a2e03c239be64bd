"""A ledger moves from a file to PostgreSQL, back, and from server to server."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from discreet.curator.ledger_location import address_without_user, move_ledger_to, open_ledger_at, open_or_create_ledger
from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_postgres.schema import schema_name
from discreet.ledger_sqlite import create_ledger
from discreet.policy import Policy
from discreet.postgres.server import driver

CENT = Loss("1/100")
SCRIPT = Path(__file__).parents[1] / "kernel" / "ledger_migrations.py"
NUMBERS = count()


def event(question="count", by="owner", **more):
    return Event(mechanism="{}", sensitivity="{}", question=question, by=by, **more)


def create(place, head=None, **terms):
    if isinstance(place, Path):
        return create_ledger(place, **terms)
    from discreet.ledger_postgres.ledger import create_postgres_ledger

    return create_postgres_ledger(place, checkpoint=head, **terms)


class Places:
    """Files and databases that are nobody else's; `checkpoint` is the head of a database on this machine."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder

    def fresh(self, kind):
        number = next(NUMBERS)
        if kind == "file":
            return self.folder / f"{number}.sqlite"
        self.run(f"CREATE DATABASE moving_{number}")
        return self.cluster.url(f"moving_{number}")

    def head(self, place):
        return self.folder / f"{place.rpartition('/')[2]}.ledger-checkpoint" if isinstance(place, str) else None

    def open(self, place):
        return open_ledger_at(place, name="demo", checkpoint=self.head(place))

    def move(self, source, target, tell=lambda _done, _rows: None):
        with self.open(source) as ledger:
            return move_ledger_to(ledger, target, name="demo", checkpoint=self.head(target), progress=tell)

    def rows(self, place):
        with self.open(place) as ledger, ledger.session.read_transaction() as table:
            return list(table.rows())

    def takes(self, place):
        try:
            with self.open(place) as ledger:
                ledger.charge(CENT, event())
        except LedgerError:
            return False
        return True

    def run(self, statement, url=None):
        import psycopg

        with psycopg.connect(url or self.cluster.url(), autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture
def places(postgres, tmp_path):
    return Places(postgres, tmp_path)


PAIRS = [("file", "database"), ("database", "file"), ("database", "database")]
each_pair = pytest.mark.parametrize("kinds", PAIRS, ids=" to ".join)


@pytest.fixture
def pair(kinds, places):
    old, new = map(places.fresh, kinds)
    terms = {"name": "demo", "budget": Budget(1), "analysts": {"ana\\": Budget("1/2")}, "unit_declaration": "{}"}
    with create(old, places.head(old), **terms) as ledger:
        ledger.settle(ledger.charge(CENT, event(by="ana\\", fingerprints=(("t", "t\0"),)), key="k\\0"), b"\x00 answer")
        ledger.settle(ledger.charge(CENT, event("Zoë \\0 \U0001f600")), b"")
        ledger.acknowledge()
        ledger.charge(CENT, event("open", fingerprints=(("u",),)), key="open")
    return old, new


@each_pair
def test_everything_moves_with_the_ledger(places, pair):
    old, new = pair
    before = places.rows(old)
    with places.open(old) as ledger:
        events, spent, topics = ledger.events(), ledger.spent("ana\\"), ledger.answers(["t", "t\0", "u"])
    told = []
    assert places.move(old, new, tell=lambda done, rows: told.append((done, rows))) is True
    assert told[-1] == (7, 7)
    rows = places.rows(new)
    assert rows[: len(before)] == before
    assert [row.kind for row in rows[len(before) :]] == ["move", "arrive"]
    assert json.loads(rows[-2].body)["to"] == address_without_user(new)
    with places.open(new) as ledger:
        verify_ledger(ledger)
        assert (ledger.events(), ledger.spent("ana\\"), ledger.answers(["t", "t\0", "u"])) == (events, spent, topics)
        assert (ledger.terms.name, ledger.terms.budget, ledger.terms.unit_declaration) == ("demo", Budget(1), "{}")
        assert ledger.terms.analysts == {"ana\\": Budget("1/2")}
        replayed = ledger.charge(CENT, event(by="ana\\", fingerprints=(("t", "t\0"),)), key="k\\0")
        assert replayed.answer == b"\x00 answer"
        assert [each.question for each in ledger.unsettled_events()] == ["open"]
        ledger.charge(Loss("97/100"), event())
        verify_ledger(ledger)
    assert places.move(old, new) is False


@each_pair
def test_the_source_is_read_and_nothing_else(places, pair):
    old, new = pair
    with places.open(old) as ledger:
        receipt = ledger.charge(CENT, event("under way"), key="way")
        places.move(old, new)
        with pytest.raises(LedgerError, match="the ledger was moved"):
            ledger.settle(receipt, b"too late")
        verify_ledger(ledger)
        assert len(ledger.events()) == 4
        for act in (
            lambda: ledger.charge(CENT, event()),
            lambda: ledger.set_budget(Budget(2), analysts=None),
            ledger.acknowledge,
        ):
            with pytest.raises(LedgerError, match="the ledger was moved to ") as found:
                act()
            assert address_without_user(new) in str(found.value)
            assert "postgres@" not in str(found.value), "who asks is nobody's business"
    with places.open(new) as ledger:
        ledger.settle(receipt, b"stored where the ledger is")
        verify_ledger(ledger)


def test_a_ledger_goes_there_and_back(places):
    first, shared, last = places.fresh("file"), places.fresh("database"), places.fresh("file")
    with create(first, name="demo", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event("one"))
    for source, target, question in ((first, shared, "two"), (shared, last, "three")):
        places.move(source, target)
        with places.open(target) as ledger:
            ledger.charge(CENT, event(question))
            verify_ledger(ledger)
    assert [row.kind for row in places.rows(last)] == [
        *("create", "charge", "move", "arrive", "charge", "move", "arrive", "charge")
    ]
    assert [places.takes(place) for place in (first, shared, last)] == [False, False, True]


# Whatever stops in between


@each_pair
@pytest.mark.parametrize("moment", ["_copy_row", "_copy_rest"])
def test_a_lost_connection_is_survived(places, pair, moment, monkeypatch):
    """The server ends all connections in the middle of a move, before or after the source has ended."""
    from discreet.ledger_admin import move as migration

    old, new = pair
    plain = getattr(migration, moment)

    def cut(*arguments):
        monkeypatch.setattr(migration, moment, plain)
        places.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'discreet'")
        return plain(*arguments)

    monkeypatch.setattr(migration, moment, cut)
    with pytest.raises(LedgerError, match=r"connection to the server was lost"):
        places.move(old, new)
    assert (places.takes(old), places.takes(new)) == (moment == "_copy_row", False)
    assert places.move(old, new) is True
    assert (places.takes(old), places.takes(new)) == (False, True)
    with places.open(new) as ledger:
        verify_ledger(ledger)
        assert ledger.spent().epsilon == (5 if moment == "_copy_row" else 4) * CENT.epsilon


@pytest.mark.parametrize("kinds", PAIRS[1:], ids=" to ".join)
def test_an_unconfirmed_commit_asks_to_run_the_command_again(places, pair, monkeypatch):
    """The source's last row is written, and nobody hears of it: a move has no key that would tell."""
    from discreet.ledger_admin import move

    old, new = pair
    plain = move.mark_moved

    def depart(source, to, token):
        server = source.session.server
        server.connection = Deaf(server.connection)
        plain(source, to, token)

    with monkeypatch.context() as patch:
        patch.setattr(move, "mark_moved", depart)
        with pytest.raises(LedgerError, match=r"may or may not have been written.* same command"):
            places.move(old, new)
    assert places.move(old, new) is True


class Deaf:
    """A connection that is lost after COMMIT, before the answer."""

    def __init__(self, connection):
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, statement, *values):
        done = self._connection.execute(statement, *values)
        if statement == "COMMIT":
            raise driver().OperationalError
        return done


def run(what, folder, source, target, number):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, SCRIPT, what, folder, source, target, number]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=1800, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kinds", PAIRS[:2], ids=" to ".join)
def test_a_move_survives_a_crash_at_every_step(places, kinds, stride, tmp_path):
    old, new = (tmp_path if kind == "file" else places.fresh(kind) for kind in kinds)
    found = run("crash", tmp_path, old, new, stride)
    assert found["steps"] > 80
    assert found["in the source"] > 1
    assert found["in neither"] >= 1 or stride > 1  # a few steps, which a long stride may miss
    assert found["in the target"] >= 1


@pytest.mark.long
@pytest.mark.parametrize("what", ["race", pytest.param("kill", marks=pytest.mark.slow)])
@each_pair
def test_charges_during_a_move_are_neither_lost_nor_doubled(places, kinds, what, tmp_path):
    found = run(what, tmp_path, *map(places.fresh, kinds), 1)
    assert (found["in all"], found["spent"]) == (100, "1"), "the limit holds over both places"
    assert 3 < found["before"] < 100, "it moved while others charged"
    assert found["as told"], "what was told to be charged is there, once, and nothing else"
    assert found["answers"], "what was told to be stored is there"
    assert found["open"], "what has no answer was told to have failed"


# What is refused


def test_a_second_target_is_refused(places):
    old, new, other = places.fresh("database"), places.fresh("file"), places.fresh("database")
    with create(old, name="demo", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event())
    places.move(old, new)
    with pytest.raises(LedgerError, match=r"a move to .* began at row 3\. Finish that"):
        places.move(old, other)
    with pytest.raises(LedgerError, match="the ledger does not exist"):
        places.open(other)


def test_a_move_is_finished_at_the_same_location_only(places, monkeypatch):
    """A server of the same name on another machine, or after its database was made anew, is not where it began."""
    old, new = places.fresh("file"), places.fresh("database")
    with create(old, name="demo", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event())

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discreet.ledger_admin.move._copy_rest", stop)
        with pytest.raises(KeyboardInterrupt):
            places.move(old, new)
    with pytest.raises(LedgerError, match="move to this location is unfinished"):
        places.open(new)
    schema = schema_name("demo")
    places.run(f"ALTER SCHEMA {schema} RENAME TO kept", new)
    with pytest.raises(LedgerError, match="not reserved"):
        places.move(old, new)
    assert not places.takes(new)
    places.run(f"ALTER SCHEMA kept RENAME TO {schema}", new)
    assert places.move(old, new) is True


def test_a_former_location_of_a_ledger_is_not_reused_and_says_so(places):
    shared, kept, other = places.fresh("database"), places.fresh("file"), places.fresh("database")
    create(shared, name="demo", budget=Budget(1)).close()
    places.move(shared, kept)
    with pytest.raises(LedgerError, match=r"moved away from here with row 2, .* another location"):
        places.move(kept, shared)
    assert [places.takes(place) for place in (shared, kept)] == [False, True]
    assert places.move(kept, other) is True


def test_a_second_mover_reads_the_source_and_target_of_the_first(places, monkeypatch):
    """The source goes elsewhere while it is being copied."""
    from discreet.ledger_admin import move as migration

    old, new, elsewhere = places.fresh("database"), places.fresh("file"), places.fresh("file")
    create(old, name="demo", budget=Budget(1)).close()
    plain = migration._copy

    def copy(*arguments):
        monkeypatch.setattr(migration, "_copy", plain)
        places.move(old, elsewhere)
        return plain(*arguments)

    monkeypatch.setattr(migration, "_copy", copy)
    with pytest.raises(
        LedgerError, match=rf"^from PostgreSQL at [^:]+:\d+, database \w+ to {new}: the ledger was moved"
    ):
        places.move(old, new)
    assert [places.takes(place) for place in (old, new, elsewhere)] == [False, False, True]


def test_a_database_that_already_has_the_ledger_is_refused(places):
    old, new = places.fresh("file"), places.fresh("database")
    for place in (old, new):
        create(place, name="demo", budget=Budget(1)).close()
    with pytest.raises(LedgerError, match=r"database moving_[0-9]+: a ledger already exists"):
        places.move(old, new)
    assert (places.takes(old), places.takes(new)) == (True, True)


def test_other_data_sets_in_the_database_are_left_alone(places):
    old, new = places.fresh("file"), places.fresh("database")
    create(old, name="demo", budget=Budget(1)).close()
    with create(new, name="other", budget=Budget(1)) as other:
        other.charge(CENT, event())
        places.move(old, new)
        other.charge(CENT, event())
        verify_ledger(other)
    assert places.takes(new)


def test_a_user_who_may_not_create_tables_moves_nothing(places):
    old, new = places.fresh("file"), places.fresh("database")
    create(old, name="demo", budget=Budget(1)).close()
    places.run("DROP ROLE IF EXISTS moving_reader")
    places.run("CREATE ROLE moving_reader LOGIN")
    name = new.rpartition("/")[2]
    with pytest.raises(LedgerError, match="GRANT CREATE ON DATABASE"):
        places.move(old, places.cluster.url(name, user="moving_reader"))
    assert places.takes(old)


def test_a_database_from_before_the_move_stays_closed(places):
    old, new = places.fresh("database"), places.fresh("file")
    with create(old, places.head(old), name="demo", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event())
    places.move(old, new)
    rows = f"{schema_name('demo')}.rows"
    places.run(f"ALTER TABLE {rows} DISABLE TRIGGER ALL", old)
    places.run(f"DELETE FROM {rows} WHERE kind = 'move'", old)  # as a backup would have it
    for name in ("rows_follow", "rows_grow"):
        places.run(f"ALTER TABLE {rows} ENABLE ALWAYS TRIGGER {name}", old)
    with places.open(old) as ledger:
        for act in (lambda: ledger.charge(CENT, event()), ledger.acknowledge, lambda: verify_ledger(ledger)):
            with pytest.raises(LedgerError, match=r"an older copy that ends at row 2: the ledger was moved"):
                act()


def test_the_database_itself_accepts_nothing_after_a_move(places):
    from discreet.kernel.ledger.chain import Chain, RowKind

    old, new = places.fresh("database"), places.fresh("file")
    with create(old, name="demo", budget=Budget(1)) as ledger:
        places.move(old, new)
        row = Chain().extend(places.rows(old)).next_row(RowKind.CHARGE, "owner", "{}", receipt="r", loss=CENT)
        with pytest.raises(LedgerError, match="a trigger of schema"), ledger.session.write_transaction() as table:
            table.add_row(row)
    assert places.rows(old)[-1].kind == "move"


# Large answers, and the policy


MOVE_BIG = """
import resource, sys
from discreet.curator.ledger_location import move_ledger_to, open_ledger_at, parse_location_option
source, target = (parse_location_option(word, "place") for word in sys.argv[1:])
with open_ledger_at(source, name="demo") as ledger:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    move_ledger_to(ledger, target, name="demo", progress=lambda done, rows: None)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
@pytest.mark.parametrize("kinds", PAIRS[:2], ids=" to ".join)
def test_answers_are_copied_a_few_at_a_time(places, kinds):
    old, new = map(places.fresh, kinds)
    with create(old, name="demo", budget=Budget(1)) as ledger:
        for _ in range(48):
            ledger.settle(ledger.charge(CENT, event()), os.urandom(2 * 2**20))
    done = subprocess.run([sys.executable, "-c", MOVE_BIG, old, new], capture_output=True, text=True, check=True)
    grown = int(done.stdout) / 1024
    assert grown < 60, f"{grown} MB"
    with places.open(new) as ledger:
        assert len(ledger.events()) == 48


def policy_of(folder, ledger):
    (folder / "policy.toml").write_text(
        f'[data]\nname = "demo"\nledger = "{ledger}"\n[budget]\nepsilon = 1\n'
        '[tables.t]\nsource = "t.csv"\nunit = "who"\ncolumns = { who = { type = "integer" } }\n'
    )
    return Policy.load(folder / "policy.toml")


def test_the_ledger_of_a_policy_is_created_once_and_then_opened(places):
    url = places.fresh("database")
    policy = policy_of(places.folder, url)
    for spent in (1, 2):
        with open_or_create_ledger(policy) as ledger:
            ledger.charge(CENT, event())
            assert ledger.spent().epsilon == spent * CENT.epsilon
            assert (ledger.terms.budget, ledger.terms.unit_declaration) == (Budget(1), policy.unit_fingerprint())
    assert (places.folder / "demo.ledger-checkpoint").exists()
    places.run(f"DROP SCHEMA {schema_name('demo')} CASCADE", url)
    with pytest.raises(LedgerError, match="missing, but its checkpoint exists"):
        open_or_create_ledger(policy)


def test_a_policy_with_the_old_location_gets_an_error_with_the_new_one(places):
    url = places.fresh("database")
    policy = policy_of(places.folder, url)
    new = places.folder / "new.sqlite"
    with open_or_create_ledger(policy) as ledger:
        move_ledger_to(ledger, new, name="demo", progress=lambda _done, _rows: None)
    with pytest.raises(PolicyError, match=rf'the ledger was moved. Set ledger = "{new}" in the policy'):
        open_or_create_ledger(policy)
    with open_or_create_ledger(policy_of(places.folder, new)) as ledger:
        ledger.charge(CENT, event())


@pytest.mark.parametrize("what", ["moved to a file elsewhere", "a file by hand"])
def test_a_server_that_used_a_shared_ledger_creates_no_second_one(places, what):
    """Two servers share a ledger; on the machine of the second there is no such file."""
    url, kept = places.fresh("database"), places.folder / "kept.sqlite"
    for name in "ab":
        (places.folder / name).mkdir()
    with open_or_create_ledger(policy_of(places.folder / "a", url)) as ledger:
        ledger.charge(Loss(1), event())
        open_or_create_ledger(policy_of(places.folder / "b", url)).close()
        if what.startswith("moved"):
            move_ledger_to(ledger, kept, name="demo")
            with pytest.raises(PolicyError, match="on the machine where the move was made"):
                open_or_create_ledger(policy_of(places.folder / "b", url))
            kept.rename(places.folder / "on another machine")
            for rest in ("lock", "checkpoint"):
                Path(f"{kept}.{rest}").unlink(missing_ok=True)
    second = policy_of(places.folder / "b", kept)
    with pytest.raises(
        LedgerError, match=r"kept\.sqlite: there is no ledger here, but .*b/demo\.ledger-checkpoint"
    ) as found:
        open_or_create_ledger(second)
    assert "Write that database into the policy" in str(found.value)
    assert not kept.exists()
    (places.folder / "b" / "demo.ledger-checkpoint").write_text("")
    with pytest.raises(LedgerError, match="there is no ledger here, but"):
        open_or_create_ledger(second)


def test_a_server_without_such_a_trace_creates_its_file(places):
    """Or the test above would show nothing."""
    with open_or_create_ledger(policy_of(places.folder, places.folder / "kept.sqlite")) as ledger:
        ledger.charge(CENT, event())
