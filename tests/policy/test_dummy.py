"""Dummy data fits the policy in every respect, and does not depend on the real data."""

import builtins
import pathlib
from collections import Counter
from datetime import date, datetime
from fractions import Fraction

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from policy_examples import CHECKINS, HOSPITAL, REALISTIC, SMALL, WEBLOGS

from discreet import PolicyError
from discreet import open as open_curator
from discreet.policy import Between, Keys, Policy, dummy, write_dummy, write_policy
from discreet.policy.dummy_data.dummy_values import _float_bounds

EVERY = """
[data]
name = "every"
[budget]
epsilon = 1
[tables.t]
source = "t.csv"
unit = "who"
groups = 2
rows = 3
[tables.t.columns]
who = { type = "integer", between = [100, 100000] }
i = { type = "integer", between = [-5, 5] }
wide = { type = "integer", between = [-9223372036854775808, 9223372036854775807] }
r = { type = "real", between = ["-1/3", "1/3"] }
narrow = { type = "real", between = [0.1, 0.1000001] }
d = { type = "decimal", between = [0.005, 0.015], step = 0.001 }
large = { type = "decimal", between = [0, 1e300] }
third = { type = "decimal", in = [0.5, 2, 0.25] }
b = { type = "boolean", null = true }
yes = { type = "boolean", in = [true] }
day = { type = "date", between = [2024-02-28, 2024-03-01] }
days = { type = "date", in = [2024-01-01, 2024-01-02] }
at = { type = "timestamp", between = [2024-01-01, 2024-01-01T00:00:01] }
word = { type = "text", in = ["a", 'b"', "é,"], null = true }
free = { type = "text" }
number = { type = "integer" }
share = { type = "real" }
when = { type = "timestamp" }
"""
EXAMPLES = {**REALISTIC, "small": SMALL, "every": EVERY}


def check_fits(column, values):
    """Every value is in the column's domain; NULL occurs only where it is a group."""
    known = [value for value in values if value is not None]
    assert len(known) == len(values) or column.null
    match column.domain:
        case Between(low, high):
            exact = [Fraction(value) for value in known] if column.type in ("real", "decimal", "integer") else known
            assert low <= min(exact)
            assert max(exact) <= high
        case Keys(allowed):
            assert {Fraction(value) if column.type == "decimal" else value for value in known} <= set(allowed)


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_every_value_lies_in_its_domain(text):
    policy = Policy.parse(text)
    for name, made in dummy(policy, 400).items():
        assert made.column_names == list(policy.tables[name].columns)
        for column in policy.tables[name].columns.values():
            check_fits(column, made.column(column.name).to_pylist())


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_a_policy_is_written_as_it_was_read(text):
    policy = Policy.parse(text)
    assert Policy.parse(write_policy(policy)) == policy


def test_unusual_names_and_texts_are_written_as_they_were_read():
    odd = 'a "quoted"\n\t\\ # é \x7f name'
    values = {
        "data": {"name": "x", "protects": "one's \"own\""},
        "budget": {"epsilon": "1/3", "delta": "1/7000000", "discover": 0, "analysts": {"Ana M.": {"epsilon": "1/9"}}},
        "tables": {"my table": {"source": "a b.csv", "unit": "who", "columns": {
            "who": {"type": "text"}, "k#": {"type": "text", "in": [odd, ""]},
            "x": {"type": "real", "between": ["-1/3", 1e300], "step": "1/3"},
        }}},
    }  # fmt: skip
    policy = Policy.from_dict(values)
    assert Policy.parse(write_policy(policy)) == policy


def test_people_and_keys_are_the_same_across_tables():
    made = dummy(Policy.parse(HOSPITAL), 500)
    encounters, labs, flags = (made[name].to_pydict() for name in ("encounters", "labs", "lab_flags"))
    assert len(set(encounters["id"])) == 500  # one key leads to one patient only
    assert set(labs["encounter"]) <= set(encounters["id"])
    assert set(flags["lab_id"]) <= set(labs["lab_id"])
    assert set(encounters["icd"]) <= set(made["icd10"].column("code").to_pylist())
    weblogs = dummy(Policy.parse(WEBLOGS), 500)
    shared = set(weblogs["hits"].column("user_id").to_pylist()) & set(weblogs["logins"].column("account").to_pylist())
    assert len(shared) >= 50


def test_keys_of_public_tables_are_different_and_used():
    made = dummy(Policy.parse(CHECKINS), 500)
    venues = made["venues"].column("venue").to_pylist()
    assert len(set(venues)) == len(venues) >= 3
    assert set(made["checkins"].column("venue").to_pylist()) <= set(venues)


def test_columns_of_one_name_can_be_joined_on_without_being_declared():
    made = dummy(Policy.parse(CHECKINS.replace(', references = "venues.venue"', "")), 500)
    assert set(made["checkins"].column("venue").to_pylist()) <= set(made["venues"].column("venue").to_pylist())


def test_some_people_exceed_the_contribution_bounds():
    policy = Policy.parse(SMALL)
    rows = Counter(dummy(policy, 1000)["visits"].column("patient").to_pylist())
    assert max(rows.values()) > 3 * 10  # groups and rows
    assert min(rows.values()) <= 3
    assert len(rows) == 200
    hits = dummy(Policy.parse(WEBLOGS.replace("groups = 10\nrows = 100", "groups = 2\nrows = 5")), 1000)["hits"]
    days = Counter((row["user_id"], row["at"].date()) for row in hits.to_pylist())
    assert max(days.values()) > 5  # in one day


@pytest.mark.parametrize("bounds", [(1, 1), (2, 5), (3, 10), (1, 40)])
def test_nobody_exceeds_the_contribution_bounds_by_much_and_little_is_clipped(bounds):
    text = SMALL.replace("groups = 3\nrows = 10", "groups = {}\nrows = {}".format(*bounds))
    rows = Counter(dummy(Policy.parse(text), 20_000)["visits"].column("patient").to_pylist())
    bound = bounds[0] * bounds[1]
    assert bound < max(rows.values()) <= max(bound + 1, 1.5 * bound)
    assert sum(max(0, count - bound) for count in rows.values()) < 0.002 * 20_000


def test_children_are_unevenly_spread():
    made = dummy(Policy.parse(HOSPITAL.replace("groups = 20\nrows = 50", "groups = 2\nrows = 3")), 500)
    assert max(Counter(made["labs"].column("encounter").to_pylist()).values()) > 6


def test_missing_values_come_where_they_are_a_group_and_only_there():
    made = dummy(Policy.parse(EVERY), 1000)["t"]
    assert [name for name in made.column_names if made.column(name).null_count] == ["b", "word"]


def test_texts_without_a_domain_are_common_or_rare():
    texts = Counter(dummy(Policy.parse(EVERY), 1000)["t"].column("free").to_pylist())
    assert max(texts.values()) > 50
    assert min(texts.values()) == 1


def test_the_same_seed_generates_the_same_data_and_another_seed_other_data():
    policy = Policy.parse(SMALL)
    assert dummy(policy, 100) == dummy(policy, 100)
    assert dummy(policy, 100) != dummy(policy, 100, random_state=1)


@pytest.mark.parametrize("rows", [10, 11, 57])
@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_small_numbers_of_rows_are_kept(text, rows):
    policy = Policy.parse(text)
    for name, made in dummy(policy, rows).items():
        assert made.num_rows == rows or policy.tables[name].public


@pytest.mark.parametrize("rows", [9, 0, -1, 10**9, 50.0])
def test_invalid_numbers_of_rows_are_refused(rows):
    with pytest.raises(PolicyError, match="rows must be an integer from 10 to 1,000,000"):
        dummy(Policy.parse(SMALL), rows)


def test_single_rows_as_units_need_no_people():
    text = SMALL.replace('unit = "patient"\ngroups = 3\nrows = 10', 'unit = "row"')
    assert dummy(Policy.parse(text), 50)["visits"].num_rows == 50


def test_a_key_with_few_values_limits_the_parents():
    text = (
        SMALL
        + """
[tables.notes]
source = "notes.csv"
unit = { through = "visits", on = "ward" }
columns.ward.type = "text"
"""
    )
    made = dummy(Policy.parse(text), 100)
    assert made["visits"].num_rows == 2  # two wards lead to two owners, not to a hundred
    assert set(made["notes"].column("ward").to_pylist()) <= {"A", "B"}


def test_a_public_table_without_columns_has_those_of_its_schema(tmp_path):
    text = SMALL[: SMALL.index("[tables.regions.columns]")]
    (tmp_path / "regions.csv").write_bytes(b"name,size\nreal,\xff\xff")
    made = dummy(Policy.parse(text, base=tmp_path), 50)
    assert made["regions"].column_names == ["name", "size"]
    assert "real" not in made["regions"].column("name").to_pylist()
    nowhere = dummy(Policy.parse(text, base=tmp_path / "nowhere"), 50)
    assert nowhere["regions"].column_names == ["name"]  # what is referenced
    alone = text.replace('region = { type = "text", references = "regions.name" }', "")
    with pytest.raises(PolicyError, match="table regions: no columns are listed"):
        dummy(Policy.parse(alone, base=tmp_path / "nowhere"), 50)


def test_the_real_data_are_never_opened(tmp_path, monkeypatch):
    (tmp_path / "checkins").mkdir()
    for name in ("checkins/a.parquet", "venues.csv"):
        (tmp_path / name).write_bytes(b"poison")
    opened = []

    def watch(module, name, path_at):
        real = getattr(module, name)

        def watched(*args, **kwargs):
            opened.append(str(args[path_at]))
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    watch(builtins, "open", 0)
    watch(pathlib.Path, "open", 0)
    watch(pathlib.Path, "read_bytes", 0)
    watch(pq, "read_table", 0)
    watch(pq, "read_schema", 0)
    watch(duckdb, "connect", 0)
    policy = Policy.parse(CHECKINS, base=tmp_path)
    write_dummy(policy, tmp_path / "fake", rows=50)
    assert [place for place in opened if not place.startswith(str(tmp_path / "fake"))] == []


# Files.


def test_files_have_the_formats_of_the_sources_and_can_be_queried(tmp_path):
    text = (
        CHECKINS.replace("venues.csv", "venues.tsv.gz")
        + """
[tables.friends]
source = "social.duckdb/friends"
unit = "a"
groups = 1
rows = 5
columns.a.type = "integer"
columns.since = { type = "date", between = [2000-01-01, 2010-12-31] }
"""
    )
    files = write_dummy(Policy.parse(text), tmp_path / "fake", rows=200)
    assert files.sources == {
        "checkins": "checkins/*.parquet", "venues": "venues.tsv.gz", "friends": "dummy.duckdb/friends",
    }  # fmt: skip
    with open_curator(files.policy) as curator:
        sql = "SELECT category, COUNT(*) AS n FROM checkins JOIN venues USING (venue) GROUP BY category"
        assert len(curator.ask(sql, epsilon="1/10")) == 3
        assert len(curator.ask("SELECT COUNT(*) FROM friends WHERE since >= '2005-01-01'", epsilon="1/10")) == 1
        assert curator.ledger.terms.name == "checkins-dummy"
        assert curator.ledger.terms.budget == Policy.parse(text).budget


def test_sources_of_other_engines_become_files(tmp_path):
    files = write_dummy(Policy.parse(HOSPITAL), tmp_path / "fake", rows=50)
    assert set(files.sources.values()) == {f"{name}.parquet" for name in Policy.parse(HOSPITAL).tables}
    copy = Policy.load(files.policy)
    assert (copy.data.engine, copy.data.ledger) == ("duckdb", "ledger.sqlite")
    assert copy.unit_fingerprint() == Policy.parse(HOSPITAL).unit_fingerprint()
    with open_curator(files.policy) as curator:
        assert len(curator.ask("SELECT flag, COUNT(*) FROM lab_flags GROUP BY flag", epsilon=1, groups=2, rows=2)) == 3


@pytest.mark.long
def test_written_data_reads_back_unchanged(tmp_path):
    policy = Policy.parse(EVERY)
    files = write_dummy(policy, tmp_path / "fake", rows=300)
    made = dummy(policy, 300)["t"]
    with open_curator(files.policy) as curator:
        rows = {}
        for name in policy.tables["t"].columns:
            rows[name] = curator._engine.query(f'SELECT "{name}" AS v FROM t').column("v").to_pylist()
    for name, column in policy.tables["t"].columns.items():
        expected = made.column(name).to_pylist()
        if column.type in ("real", "decimal"):
            expected = [float(value) for value in expected]
        assert Counter(rows[name]) == Counter(expected), name


def test_real_data_is_never_overwritten_and_dummy_data_is_replaced(tmp_path):
    (tmp_path / "visits.parquet").write_text("real")
    policy = Policy.parse(SMALL, base=tmp_path)
    with pytest.raises(PolicyError, match="the folder is not empty"):
        write_dummy(policy, tmp_path)
    assert (tmp_path / "visits.parquet").read_text() == "real"
    for _ in range(2):
        files = write_dummy(policy, tmp_path / "fake", rows=50)
        with open_curator(files.policy) as curator:
            assert curator.budget().spent.rho == 0
            curator.ask("SELECT COUNT(*) FROM visits", epsilon=1)
    other = Policy.parse(SMALL.replace('unit = "patient"', 'unit = "row"'))
    with open_curator(write_dummy(other, tmp_path / "fake", rows=50).policy):
        pass  # another promise, another ledger


def test_unusual_table_names_become_plain_file_names(tmp_path):
    text = SMALL.replace("tables.visits", 'tables."a/../b"').replace("tables.regions", 'tables."a b"')
    text = text.replace('references = "regions.name"', 'references = "a b.name"').replace("a/../b", "a/b")
    files = write_dummy(Policy.parse(text), tmp_path / "fake", rows=20)
    assert files.sources == {"a/b": "a_b.parquet", "a b": "a_b_1.csv"}
    assert pq.read_table(tmp_path / "fake" / "a_b.parquet").num_rows == 20


def test_types_are_stored_as_they_are_declared():
    made = dummy(Policy.parse(EVERY), 20)["t"]
    assert made.schema.field("at").type == pa.timestamp("us")
    assert made.schema.field("d").type == pa.decimal128(38, 3)
    assert isinstance(made.column("day")[0].as_py(), date)
    assert isinstance(made.column("when")[0].as_py(), datetime)


@pytest.mark.parametrize(("low", "high"), [("1/3", "2/3"), ("-2/3", "-1/3"), ("1/7", "6/7"), ("0", "1")])
def test_rounding_never_leaves_the_range(low, high):
    exact = Fraction(low), Fraction(high)
    ends = _float_bounds(Between(*exact, None, "clip"))
    assert exact[0] <= Fraction(ends[0]) < Fraction(ends[1]) <= exact[1]


def test_values_of_a_unique_column_are_all_different():
    text = SMALL.replace(
        'region = { type = "text", references = "regions.name" }', 'mail = { type = "text", unique = true }'
    )
    mails = dummy(Policy.parse(text), rows=200)["visits"]["mail"].to_pylist()
    assert len(set(mails)) == len(mails) >= 200


def test_most_people_stay_within_the_contribution_bounds():
    policy = Policy.parse(SMALL)  # 3 groups of 10 rows
    rows = Counter(dummy(policy, 20_000)["visits"].column("patient").to_pylist())
    assert 0 < sum(count > 30 for count in rows.values()) < len(rows) / 50
    single = Policy.parse(SMALL.replace("groups = 3\nrows = 10", "groups = 1\nrows = 1"))
    rows = Counter(dummy(single, 20_000)["visits"].column("patient").to_pylist())
    assert 0 < sum(count > 1 for count in rows.values()) < len(rows) / 50
