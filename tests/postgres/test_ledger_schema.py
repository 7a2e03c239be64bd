"""The tables of a shared ledger: what their triggers stop, what verification finds, what few rights allow."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from kernel.ledger_locations import place_of

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.ledger.chain import LedgerRow
from discreet.kernel.ledger.terms import loss_text
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_postgres.ledger import create_postgres_ledger, open_postgres_ledger
from discreet.ledger_postgres.schema import create_statements, schema_name
from discreet.postgres.server import connect, driver

CENT = Loss("1/100")
EVENT = Event(mechanism="{}", sensitivity="{}", question="count", fingerprints=(("a",),))


@pytest.fixture
def place(request, tmp_path):
    place = place_of("postgres", request, tmp_path)
    with place.create() as ledger:
        for i in range(3):
            ledger.settle(ledger.charge(CENT, EVENT, key=str(i)), b"answer %d" % i)
    return place


LAST = "(SELECT max(seq) FROM rows)"
NEXT = "time, kind, \"by\", dataset, NULL, 'new', body, '0 0 0'"
AFTER = f"hash, 'x' FROM rows WHERE seq = {LAST}"
ANEW = "body, loss, '1 1 1', spent_by, spent_in, (SELECT hash FROM rows WHERE seq = 7), 'x'"
REFUNDS = [
    "UPDATE rows SET loss = '0 0 0', spent = '0 0 0'",
    "UPDATE rows SET loss = '0 0 0' WHERE false",
    f"DELETE FROM rows WHERE seq = {LAST}",
    "TRUNCATE rows",
    "TRUNCATE rows, answers CASCADE",
    "UPDATE answers SET answer = ''",
    "DELETE FROM answers",
    "TRUNCATE answers",
    "INSERT INTO answers SELECT * FROM answers",
    "INSERT INTO answers SELECT * FROM answers ON CONFLICT (receipt) DO UPDATE SET answer = ''",
    "MERGE INTO answers USING rows ON rows.receipt = answers.receipt WHEN MATCHED THEN DELETE",
    f"INSERT INTO rows SELECT seq + 2, {NEXT}, spent, spent_by, spent_in, {AFTER}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, spent, spent_by, spent_in, previous, 'x' FROM rows WHERE seq = {LAST}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, '0 0 0', spent_by, spent_in, {AFTER}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, '3/100 2/20000 0', spent_by, spent_in, {AFTER}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, 'NaN NaN NaN', spent_by, spent_in, {AFTER}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, '1/0 1 1', spent_by, spent_in, {AFTER}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, spent, '', spent_in, {AFTER}",
    f"INSERT INTO rows SELECT seq + 1, {NEXT}, spent, spent_by, '', {AFTER}",
    f"INSERT INTO rows SELECT * FROM rows WHERE seq = {LAST} ON CONFLICT (seq) DO UPDATE SET spent = '0 0 0'",
    f'INSERT INTO rows SELECT 8, time, kind, "by", dataset, NULL, receipt, {ANEW} FROM rows WHERE seq = 3',
    f"INSERT INTO rows SELECT 8, time, kind, \"by\", dataset, key, 'new', {ANEW} FROM rows WHERE seq = 2",
]


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize("statement", REFUNDS)
def test_refunds_are_stopped_by_triggers_also_for_the_superuser(place, statement, role):
    with pytest.raises(place.refusals):
        place.run([f"SET session_replication_role = {role}"], [statement])
    with place.open() as ledger:
        verify_ledger(ledger)
        assert ledger.spent().epsilon == 3 * CENT.epsilon


def test_a_row_that_follows_is_admitted(place):
    """Or the list above would show nothing."""
    place.run([f"INSERT INTO rows SELECT seq + 1, {NEXT}, '4/100 4/20000 1/7', spent_by, spent_in, {AFTER}"])
    assert place.rows()[-1].spent == "4/100 4/20000 1/7"


FRACTIONS = st.fractions(min_value=0, max_value=3, max_denominator=60) | st.builds(
    lambda number, over: number / (10**100 + over), st.fractions(0, 10**100), st.integers(0, 3)
)
LOSSES = st.builds(Loss.of_bounds, st.none() | FRACTIONS, FRACTIONS, FRACTIONS.map(lambda part: part / 6))  # delta <= 1


@pytest.fixture(scope="module")
def compared(postgres):
    """Give a connection to the tables of a ledger without rows."""
    pytest.importorskip("psycopg")
    with connect(postgres.url()) as connection:
        connection.execute("CREATE SCHEMA compared")
        for statement in create_statements("compared"):
            connection.execute(statement)
        yield connection
        connection.execute("DROP SCHEMA compared CASCADE")


@pytest.mark.long
@settings(max_examples=60)
@given(old=LOSSES, new=LOSSES)
def test_the_trigger_compares_fractions_as_the_kernel_does(compared, old, new):
    assert admitted(compared, old, new) == new.includes(old)
    assert admitted(compared, old, old)
    assert admitted(compared, old, old + new) == (old + new).includes(old)


def admitted(connection, old, new):
    """Return whether a total may follow another."""
    row = LedgerRow(1, "t", "charge", "o", "", None, None, "{}", "0 0 0", loss_text(old), "0 0 0", "0 0 0", "p", "h")
    insert = f"INSERT INTO compared.rows VALUES ({', '.join(['%s'] * len(row))})"
    connection.execute("BEGIN")
    try:
        connection.execute(insert, row)
        connection.execute(insert, row._replace(seq=2, spent=loss_text(new), previous="h"))
    except driver().errors.RaiseException as error:
        assert "must not decrease" in str(error)  # noqa: PT017 - both outcomes are wanted
        return False
    else:
        return True
    finally:
        connection.execute("ROLLBACK")


ON_SOME = "BEFORE INSERT ON rows FOR EACH ROW WHEN (NEW.seq > 9)"
OF_ONE = "BEFORE UPDATE OF receipt OR DELETE OR TRUNCATE ON rows"
CHANGES = {
    "a trigger that is off": ["ALTER TABLE rows DISABLE TRIGGER rows_grow"],
    "a trigger that is off for replicas": ["ALTER TABLE rows ENABLE TRIGGER rows_follow"],
    "no trigger": ["DROP TRIGGER answers_grow ON answers"],
    "a trigger more": ["CREATE TRIGGER more BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION only_grows()"],
    "a trigger on a condition": [
        "DROP TRIGGER rows_follow ON rows",
        f"CREATE TRIGGER rows_follow {ON_SOME} EXECUTE FUNCTION rows_follow()",
        "ALTER TABLE rows ENABLE ALWAYS TRIGGER rows_follow",
    ],
    "a trigger of one column": [
        "DROP TRIGGER rows_grow ON rows",
        f"CREATE TRIGGER rows_grow {OF_ONE} EXECUTE FUNCTION only_grows()",
        "ALTER TABLE rows ENABLE ALWAYS TRIGGER rows_grow",
    ],
    "a changed function": [
        "CREATE OR REPLACE FUNCTION only_grows() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$",
        "ALTER FUNCTION only_grows() SET search_path = pg_catalog, pg_temp",
    ],
    "a function more": ["CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
    "a function that looks elsewhere": ["ALTER FUNCTION rows_follow() SET search_path = public"],
    "a function with its owner's rights": ["ALTER FUNCTION rows_follow() SECURITY DEFINER"],
    "no index": ["DROP INDEX rows_key"],
    "an index that is not unique": ["DROP INDEX rows_key", 'CREATE INDEX rows_key ON rows ("by", key)'],
    "an index of some rows": [
        "DROP INDEX rows_key",
        'CREATE UNIQUE INDEX rows_key ON rows ("by", key) WHERE seq > 9',
    ],
    "no primary key": ["ALTER TABLE answers DROP CONSTRAINT answers_pkey"],
    "a column more": ["ALTER TABLE rows ADD COLUMN more text"],
    "a column that may be empty": ["ALTER TABLE rows ALTER COLUMN spent DROP NOT NULL"],
    "a column of another type": ["ALTER TABLE answers ALTER COLUMN receipt TYPE varchar(99)"],
    "a column with a default": ["ALTER TABLE rows ALTER COLUMN spent SET DEFAULT '0 0 0'"],
    "another order of texts": ['ALTER TABLE answers ALTER COLUMN receipt TYPE text COLLATE "POSIX"'],
    "a rule": ["CREATE RULE more AS ON INSERT TO answers DO INSTEAD NOTHING"],
    "hidden rows": ["ALTER TABLE rows ENABLE ROW LEVEL SECURITY"],
    "a table that a crash empties": ["ALTER TABLE answers SET UNLOGGED"],
    "a child table": ["CREATE TABLE public.child () INHERITS (rows)"],
    "a view": ["CREATE VIEW more AS SELECT 1"],
    "a check": ["ALTER TABLE rows ADD CONSTRAINT more CHECK (seq < 99)"],
    "a table of another owner": ["ALTER TABLE answers OWNER TO somebody"],
    "a function of another owner": ["ALTER FUNCTION only_grows() OWNER TO somebody"],
    "a schema of another owner": [f"ALTER SCHEMA {schema_name('demo')} OWNER TO somebody"],
    "a right of everybody": ["GRANT DELETE ON rows TO PUBLIC"],
    "a right of somebody": ["GRANT TRIGGER ON answers TO somebody"],
    "a right on a column": ["GRANT UPDATE (spent) ON rows TO somebody"],
    "a right to make more": [f"GRANT CREATE ON SCHEMA {schema_name('demo')} TO somebody"],
    "a right to pass on": ["GRANT INSERT ON rows TO somebody WITH GRANT OPTION"],
}


@pytest.fixture
def somebody(place):
    """Make a role that has nothing to do with ledgers."""
    place.run(["DROP ROLE IF EXISTS somebody"], ["CREATE ROLE somebody"])
    yield
    place.run(["DROP TABLE IF EXISTS public.child"], ["DROP OWNED BY somebody CASCADE"], ["DROP ROLE somebody"])


@pytest.mark.usefixtures("somebody")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_changed_tables_functions_and_triggers_are_found(place, changes):
    with place.open() as ledger:
        verify_ledger(ledger)
        place.run(*([change] for change in changes))
        with pytest.raises(
            LedgerError, match=r"were modified\. Undo the change, or restore the ledger from a backup\."
        ):
            verify_ledger(ledger)


@pytest.mark.usefixtures("somebody")
def test_what_was_changed_is_named(place):
    place.run(["ALTER TABLE answers DISABLE TRIGGER answers_grow"])
    with place.open() as ledger, pytest.raises(LedgerError, match=f"the triggers of answers in schema {place.schema}"):
        verify_ledger(ledger)
    place.run(["ALTER TABLE answers ENABLE ALWAYS TRIGGER answers_grow"], ["GRANT DELETE ON rows TO PUBLIC"])
    with place.open() as ledger, pytest.raises(LedgerError, match=f"the rights of rows in schema {place.schema}"):
        verify_ledger(ledger)


@pytest.mark.usefixtures("somebody")
def test_a_reverted_change_is_no_longer_reported(place):
    place.run(
        ["CREATE RULE more AS ON INSERT TO answers DO INSTEAD NOTHING"],
        ["DROP RULE more ON answers"],
        ["CREATE TABLE public.child () INHERITS (rows)"],
        ["DROP TABLE public.child"],
        ["GRANT UPDATE ON rows TO somebody"],
        ["REVOKE UPDATE ON rows FROM somebody"],
        ["ALTER TABLE rows ALTER COLUMN spent SET DEFAULT ''"],
        ["ALTER TABLE rows ALTER COLUMN spent DROP DEFAULT"],
    )
    with place.open() as ledger:
        verify_ledger(ledger)


@pytest.mark.usefixtures("somebody")
def test_a_ledger_fully_transferred_to_another_role_verifies(place):
    tables = [[f"ALTER TABLE {table} OWNER TO somebody"] for table in ("answers", "rows")]
    functions = [[f"ALTER FUNCTION {name}() OWNER TO somebody"] for name in ("only_grows", "rows_follow")]
    place.run([f"ALTER SCHEMA {place.schema} OWNER TO somebody"], *tables, *functions)
    with place.open() as ledger:
        verify_ledger(ledger)


def test_a_table_that_a_crash_empties_stops_charges(place):
    place.run(["ALTER TABLE answers SET UNLOGGED"])
    with pytest.raises(LedgerError, match="UNLOGGED"):
        place.open()


def test_other_tables_of_the_database_may_be_emptied_by_a_crash(place):
    place.run(["CREATE UNLOGGED TABLE public.elsewhere (x int)"])
    with place.open() as ledger:
        ledger.charge(CENT, EVENT)
    place.run(["DROP TABLE public.elsewhere"])


def test_a_schema_of_another_version_is_named(place):
    place.run([f"COMMENT ON SCHEMA {place.schema} IS 'Discreet ledger, format 3'"])
    with pytest.raises(LedgerError, match="format 3 is not supported"):
        place.open()


def test_names_that_differ_have_schemas_that_differ():
    names = ["a", "A", "a ", "a_", "", "ä", "x" * 200, "x" * 199, "Robert'); DROP SCHEMA public; --", "é", "e\u0301"]
    schemas = [schema_name(name) for name in names]
    assert len(set(schemas)) == len(names)
    assert all(schema.isascii() and schema.isidentifier() and len(schema) <= 63 for schema in schemas), schemas


# A role with few rights.


@pytest.fixture
def clerk(place, postgres):
    """Give the URL of a role that may use the schema, read and insert."""
    place.run(
        ["DROP ROLE IF EXISTS clerk"],
        ["CREATE ROLE clerk LOGIN"],
        [f"GRANT USAGE ON SCHEMA {place.schema} TO clerk"],
        [f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {place.schema} TO clerk"],
    )
    yield postgres.url(user="clerk")
    place.run(["DROP OWNED BY clerk"], ["DROP ROLE clerk"])


def test_a_role_that_may_only_read_and_insert_can_charge_and_verify(place, clerk):
    with open_postgres_ledger(clerk, name="demo", checkpoint=place.head) as ledger:
        ledger.settle(ledger.charge(CENT, EVENT, key="clerk"), b"42")
        ledger.set_budget(Budget(2), analysts=None)
        ledger.acknowledge()
        assert ledger.charge(CENT, EVENT, key="clerk").answer == b"42"
        verify_ledger(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET spent = '0 0 0'",
        "DELETE FROM answers",
        "TRUNCATE answers",
        "ALTER TABLE rows DISABLE TRIGGER ALL",
        "DROP TRIGGER rows_grow ON rows",
        "DROP TABLE answers",
        "CREATE TABLE more (x int)",
        "CREATE OR REPLACE FUNCTION only_grows() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$",
        "SET session_replication_role = replica",
        f"DROP SCHEMA {schema_name('demo')} CASCADE",
        "BEGIN; LOCK TABLE rows IN EXCLUSIVE MODE",
    ],
)
def test_a_role_that_may_only_read_and_insert_cannot_change_rows(place, clerk, statement):
    refused = pytest.raises(driver().errors.InsufficientPrivilege)
    with connect(clerk, search_path=place.schema) as connection, refused:
        connection.execute(statement)
    with place.open() as ledger:
        verify_ledger(ledger)


def test_missing_privileges_are_named_with_the_grants_to_run(place, clerk):
    place.run([f"REVOKE INSERT ON {place.schema}.rows FROM clerk"])
    with open_postgres_ledger(clerk, name="demo") as ledger, pytest.raises(LedgerError, match="GRANT SELECT, INSERT"):
        ledger.charge(CENT, EVENT)
    place.run([f"REVOKE USAGE ON SCHEMA {place.schema} FROM clerk"])
    with pytest.raises(LedgerError, match=f"GRANT USAGE ON SCHEMA {place.schema}"):
        open_postgres_ledger(clerk, name="demo")
    with pytest.raises(LedgerError, match="GRANT CREATE ON DATABASE"):
        create_postgres_ledger(clerk, name="other", budget=Budget(1))


def test_nobody_else_may_read_a_ledger(place):
    place.run(["DROP ROLE IF EXISTS stranger"], ["CREATE ROLE stranger LOGIN"])
    url = place.url.replace("postgres@", "stranger@")
    with pytest.raises(LedgerError, match="permission denied"):
        open_postgres_ledger(url, name="demo")
    place.run(["DROP ROLE stranger"])
