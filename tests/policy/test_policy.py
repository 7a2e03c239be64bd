"""The meaning of a valid policy."""

import tomllib
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_examples import CHECKINS, HOSPITAL, REALISTIC, SMALL, WEBLOGS

from discreet import Budget, PolicyError
from discreet.policy import (
    Between,
    ColumnUnit,
    Keys,
    NoDomain,
    NoUnit,
    ParentTableUnit,
    PersonInWindow,
    PersonUnit,
    Policy,
    References,
    RowUnit,
    Window,
    WindowUnit,
    check_same_unit,
    write_policy,
)


def with_cost(text):
    return Policy.parse(SMALL.replace('{ type = "decimal", between = [0, 5000], step = 0.01 }', text))


def cost(text):
    return with_cost(text).tables["visits"].columns["cost"].domain


def with_table(name, text):
    return Policy.parse(f'{SMALL}\n[tables.{name}]\nsource = "{name}.csv"\n{text}')


def test_the_hospital_owns_lab_results_through_encounters():
    policy = Policy.parse(HOSPITAL)
    assert policy.unit == PersonUnit("text")
    assert policy.tables["encounters"].unit == ColumnUnit("patient_id")
    assert policy.tables["labs"].unit == ParentTableUnit("encounters", on="encounter", key="id")
    assert policy.root_table("lab_flags") is policy.tables["encounters"]
    assert policy.budget == Budget(3, "1e-9", discover="1/4")
    assert policy.analyst_budgets() == {
        "epidemiology": Budget(2, "1e-9", discover="1/4"),
        "billing": Budget("1/2", "1e-10", discover="1/4"),
    }
    assert policy.budget_entry.analysts["epidemiology"].each == Fraction(1, 10)
    assert [table.name for table in policy.tables_for("epidemiology")] == ["encounters", "labs", "icd10"]
    assert [table.name for table in policy.tables_for("billing")] == ["encounters", "icd10"]
    assert len(policy.tables_for("owner")) == 4
    assert policy.tables_for("stranger") == ()
    assert policy.ledger_location == "postgresql://ledger@db.internal/ledgers"
    assert policy.sources()["labs"] == "clinic.labs"


def test_the_check_ins_have_a_public_venue_table():
    policy = Policy.parse(CHECKINS, base="/data/in")
    checkins, venues = policy.tables["checkins"], policy.tables["venues"]
    assert (checkins.groups, checkins.rows, checkins.rows_max) == (5, 20, 10**9)
    assert checkins.columns["venue"].domain == References("venues", "venue")
    assert checkins.columns["lat"].domain == Between(Fraction(-90), Fraction(90), Fraction(1, 10_000), "null")
    assert checkins.columns["user"].domain == NoDomain()
    assert (venues.unit, venues.public, venues.groups) == (NoUnit(), True, None)
    assert policy.sources() == {"checkins": "/data/in/checkins/*.parquet", "venues": "/data/in/venues.csv"}
    assert policy.ledger_location == Path("/data/in/ledger.sqlite")
    assert policy.budget == Budget(4, "1e-9", discover="1/2")


def test_the_web_logs_protect_a_users_day():
    policy = Policy.parse(WEBLOGS)
    assert policy.unit == PersonInWindow("text", Window.DAY, "America/New_York")
    assert policy.tables["hits"].unit == WindowUnit("user_id", "at", Window.DAY)
    assert policy.tables["hits"].columns["mobile"].domain == Keys((False, True))
    assert policy.sources()["hits"] == "s3://logs/hits/*.parquet"
    assert policy.budget == Budget("3/2")
    assert policy.analyst_budgets() == {}


def test_defaults_are_those_of_the_documents():
    policy = Policy.parse(WEBLOGS.replace('engine = "spark"\n', ""))
    assert (policy.data.version, policy.data.version_label, policy.data.engine, policy.data.ledger) == (
        None,
        "1",
        "duckdb",
        "ledger.sqlite",
    )
    spending = policy.budget_entry
    assert (spending.bounds_report, spending.join_limit, spending.failures) == (Fraction(1, 50), 1000, 3)
    assert (spending.delta, spending.discover_share) == (0, 0)
    logins = policy.tables["logins"]
    assert (logins.groups, logins.rows, logins.rows_max) == (None, None, 2**36)


def test_row_level_units_count_once_and_are_never_mixed_with_people():
    text = SMALL.replace('unit = "patient"\ngroups = 3\nrows = 10', 'unit = "row"')
    policy = Policy.parse(text)
    assert policy.unit == RowUnit()
    assert (policy.tables["visits"].groups, policy.tables["visits"].rows) == (1, 1)
    more = text + '\n[tables.more]\nsource = "m.csv"\nunit = "row"\ncolumns.x.type = "real"'
    assert Policy.parse(more).unit == RowUnit()


def test_unit_columns_may_have_any_name_but_one_type():
    assert with_table("staff", 'unit = "nurse"\ncolumns.nurse.type = "integer"').unit == PersonUnit("integer")
    with pytest.raises(PolicyError, match="table staff: unit is a person with a text key"):
        with_table("staff", 'unit = "nurse"\ncolumns.nurse.type = "text"')


def test_windows_must_agree():
    text = WEBLOGS.replace('window = "1 day"', 'window = "1 month"', 1)
    with pytest.raises(PolicyError, match=r"table logins: unit is one day of a person .* one month"):
        Policy.parse(text)


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-9", Fraction(1, 10**9)),
        ("1_000.000_1", Fraction(10_000_001, 10_000)),
        ("+2.50E+1", Fraction(25)),
        ("3", Fraction(3)),
        ('"1/3"', Fraction(1, 3)),
        ('"0.30"', Fraction(3, 10)),
        ("0.1000000000000000055511151231257827", Fraction(1000000000000000055511151231257827, 10**34)),
    ],
)
def test_money_is_exact(written, exact):
    text = SMALL.replace("epsilon = 2.0", f"epsilon = {written}").replace("ana = ", "# ana = ")
    policy = Policy.parse(text)
    assert policy.budget == Budget(exact, "1e-9", discover="1/2")
    assert policy.budget_entry.epsilon == exact


@given(st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_any_fraction_survives_serialisation_as_text(epsilon):
    text = SMALL.replace("epsilon = 2.0", f'epsilon = "{epsilon}"').replace("ana = ", "# ana = ")
    assert Policy.parse(text).budget.epsilon == epsilon


@given(st.decimals(min_value="0.000001", max_value="1000", allow_nan=False, places=12))
def test_any_decimal_is_read_as_it_is_written(value):
    text = SMALL.replace("epsilon = 2.0", f"epsilon = {value:f}").replace("ana = ", "# ana = ")
    assert Policy.parse(text).budget.epsilon == Fraction(value)


def test_python_values_mean_the_same_as_the_file():
    values = tomllib.loads(SMALL)
    assert Policy.from_dict(values) == Policy.parse(SMALL)


def test_bounds_are_exact_and_the_last_day_is_included():
    domain = cost('{ type = "real", between = [-0.1, "1/3"], step = 0.001 }')
    assert domain == Between(Fraction(-1, 10), Fraction(1, 3), Fraction(1, 1000), "clip")
    domain = cost('{ type = "timestamp", between = [2024-01-01, 2024-12-31] }')
    assert domain == Between(datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 999999), None, "clip")
    domain = cost('{ type = "timestamp", between = [2024-01-01, 2024-12-31T12:00:00] }')
    assert domain.high == datetime(2024, 12, 31, 12)
    domain = cost('{ type = "date", between = [2024-01-01, 2024-12-31] }')
    assert domain == Between(date(2024, 1, 1), date(2024, 12, 31), None, "clip")


@pytest.mark.parametrize(
    ("written", "step"),
    [
        ('type = "real", between = [0, 1]', Fraction(1, 2**20)),
        ('type = "real", between = [0, 1048576]', Fraction(1)),
        ('type = "real", between = [0, 1048575.5]', Fraction(1, 2)),
        ('type = "real", between = [-180, 180]', Fraction(1, 4096)),
        ('type = "decimal", between = [0, 1e-30]', Fraction(1, 2**120)),
        ('type = "integer", between = [0, 100]', Fraction(1)),
        ('type = "integer", between = [0, 1_000_000_000]', Fraction(512)),
    ],
)
def test_the_default_step_is_the_largest_power_of_two_in_a_millionth_of_the_range(written, step):
    domain = cost(f"{{ {written} }}")
    assert domain.step == step
    assert step == 1 or step <= (domain.high - domain.low) / 2**20 < 2 * step


@pytest.mark.long
@given(st.fractions(min_value=-1000, max_value=1000), st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_the_default_step_is_the_largest_that_fits(low, width):
    domain = cost(f'{{ type = "real", between = ["{low}", "{low + width}"] }}')
    assert domain.step <= width / 2**20 < 2 * domain.step
    assert (domain.step.numerator, domain.step.denominator).count(1) >= 1
    assert (domain.step.numerator * domain.step.denominator).bit_count() == 1


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ('type = "integer", in = [3, 1, 2]', (3, 1, 2)),
        ('type = "text", in = ["", "é"]', ("", "é")),
        ('type = "boolean", in = [true]', (True,)),
        ('type = "decimal", in = [0.10, 2]', (Fraction(1, 10), Fraction(2))),
        ('type = "date", in = [2024-02-29]', (date(2024, 2, 29),)),
        ('type = "boolean"', (False, True)),
    ],
)
def test_listed_keys_keep_their_type_and_order(written, values):
    assert cost(f"{{ {written}, null = true }}") == Keys(values)


@pytest.mark.long
def test_a_million_keys_are_accepted_and_one_more_is_refused():
    keys = [str(number) for number in range(1_000_001)]
    values = tomllib.loads(SMALL)
    values["tables"]["visits"]["columns"]["ward"]["in"] = keys[:-1]
    assert len(Policy.from_dict(values).tables["visits"].columns["ward"].domain.values) == 1_000_000
    values["tables"]["visits"]["columns"]["ward"]["in"] = keys
    with pytest.raises(PolicyError, match="not a list of 1000001"):
        Policy.from_dict(values)


def test_names_are_found_in_any_case_and_spelled_as_declared():
    text = SMALL.replace('unit = "patient"', 'unit = "PATIENT"').replace('"regions.name"', '"Regions.NAME"')
    policy = Policy.parse(
        text
        + '\n[tables.labs]\nsource = "l.csv"\nunit = { through = "VISITS", on = "ward" }\ncolumns.Ward.type = "text"'
    )
    visits = policy.table("Visits")
    assert visits.unit == ColumnUnit("patient")
    assert visits.column("REGION").domain == References("regions", "name")
    assert policy.tables["labs"].unit == ParentTableUnit("visits", on="Ward", key="ward")
    assert policy.table("nothing") is None
    assert visits.column("nothing") is None


def test_reserved_words_and_unusual_names_are_accepted():
    policy = with_table(
        "select", 'public = true\ncolumns = { "from where" = { type = "text" }, "a.b" = { type = "real" } }'
    )
    assert set(policy.tables["select"].columns) == {"from where", "a.b"}


def test_a_public_table_may_leave_its_columns_to_its_source():
    text = SMALL.split("[tables.regions.columns]")[0]
    assert Policy.parse(text).tables["regions"].columns == {}


def test_a_policy_does_not_change():
    policy = Policy.parse(SMALL)
    with pytest.raises(AttributeError):
        policy.base = Path("/")
    with pytest.raises(TypeError):
        policy.tables["x"] = policy.tables["visits"]
    with pytest.raises(TypeError):
        policy.tables["visits"].columns["x"] = None
    with pytest.raises(ValueError, match="frozen"):
        policy.budget_entry.epsilon = Fraction(100)
    with pytest.raises(TypeError):
        policy.budget_entry.analysts["eve"] = None


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("visits.CSV", "/a[1]/visits.CSV"),
        ("sub/visits", "/a[1]/sub/visits"),
        ("clinic.duckdb/visits", "/a[1]/clinic.duckdb/visits"),
        ("*.parquet", "/a[[]1]/*.parquet"),
        ("/other/*.parquet", "/other/*.parquet"),
        ("/other/v.parquet", "/other/v.parquet"),
        ("clinic.visits", "clinic.visits"),
        ("hdfs://host/v.parquet", "hdfs://host/v.parquet"),
    ],
)
def test_files_are_found_beside_the_policy(source, found):
    assert Policy.parse(SMALL.replace("visits.parquet", source), base="/a[1]").sources()["visits"] == found


def test_load_resolves_against_the_files_folder(tmp_path, monkeypatch):
    (tmp_path / "p.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    assert Policy.load("p.toml").ledger_location == tmp_path / "ledger.sqlite"


def test_the_fingerprint_depends_only_on_the_privacy_unit():
    before = Policy.parse(SMALL).unit_fingerprint()
    same = SMALL.replace("epsilon = 2.0", "epsilon = 5.0").replace("groups = 3", "groups = 9").replace("2024", "2025")
    assert Policy.parse(same).unit_fingerprint() == before
    assert before == '{"tables":{"visits":{"name":"patient"}},"unit":{"kind":"person","type":"integer"}}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('unit = "patient"', 'unit = "row"'),
        ('unit = "patient"', 'unit = "ward"'),
        ('unit = "patient"', 'unit = "patient"\nwindow = "1 day"\ntime = "time"'),
        ('patient = { type = "integer" }', 'patient = { type = "text" }'),
    ],
)
def test_another_unit_or_window_is_another_guarantee(old, new):
    before = Policy.parse(SMALL).unit_fingerprint()
    with pytest.raises(PolicyError, match="unit or window differs"):
        check_same_unit(before, Policy.parse(SMALL.replace(old, new)))


def test_another_time_zone_is_another_guarantee_for_windows_only():
    def elsewhere(text):
        return Policy.parse(text.replace("[data]", '[data]\ntimezone = "Asia/Tokyo"'))

    windowed = SMALL.replace('unit = "patient"', 'unit = "patient"\nwindow = "1 day"\ntime = "time"')
    check_same_unit(Policy.parse(SMALL).unit_fingerprint(), elsewhere(SMALL))
    with pytest.raises(PolicyError, match="the policy: unit or window differs"):
        check_same_unit(Policy.parse(windowed).unit_fingerprint(), elsewhere(windowed))


def test_a_new_table_of_the_same_people_keeps_the_guarantee():
    more = with_table("staff", 'unit = "nurse"\ncolumns.nurse.type = "integer"')
    check_same_unit(Policy.parse(SMALL).unit_fingerprint(), more)
    check_same_unit(more.unit_fingerprint(), Policy.parse(SMALL))


@pytest.mark.parametrize("text", REALISTIC.values(), ids=REALISTIC)
def test_the_realistic_policies_keep_their_fingerprint(text):
    policy = Policy.parse(text)
    check_same_unit(policy.unit_fingerprint(), Policy.parse(text))


def test_the_largest_contribution_is_read_and_written():
    policy = Policy.parse(SMALL.replace("rows = 10", "rows = 10\ncontribution_max = 366"))
    assert policy.tables["visits"].contribution_max == 366
    assert Policy.parse(write_policy(policy)).tables["visits"].contribution_max == 366
    assert Policy.parse(SMALL).tables["visits"].contribution_max is None
