"""Who owns a row: the catalog against the policy file itself, read here once more from docs/policy.md.

The reader below knows the dictionary that a TOML file becomes and nothing of the parser, its records or the catalog. It
and the catalog are compared on random policies and small databases.
"""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.curator.open import engine_sources
from discreet.engines.duckdb.engine import DuckDB
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.relation import EachRow, Scan
from discreet.learn import StandardScaler
from discreet.policy import Policy
from discreet.policy.catalog import catalog_of, scan_of
from discreet.query import table_sources
from tests.reference.engine import ReferenceEngine

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
KEYS = {"integer": st.integers(1, 2), "text": st.sampled_from(["a", "A"])}
# Days on both sides of the ends of weeks, months and years, and of changes of the clock.
DAYS = st.sampled_from([date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 7), date(2024, 1, 8), date(2024, 3, 31)])
MOMENTS = st.builds(datetime.combine, DAYS, st.sampled_from([datetime.min.time(), datetime.max.time()]))


def spelled(names, name):
    """Names of tables and columns are case-insensitive."""
    return next(each for each in names if each.lower() == name.lower())


def window_of(moment, window):
    """Return the calendar window of a local date or time; a week begins on Monday."""
    day = moment.date() if isinstance(moment, datetime) else moment
    start = {
        "1 day": day,
        "1 week": day - timedelta(days=day.weekday()),
        "1 month": day.replace(day=1),
    }[window]
    return (window, start)


def owners_of(file, data, name, number):
    """Return all owners of a row of a private table, as docs/policy.md declares them."""
    table, row = file["tables"][name], data[name][number]
    unit = table["unit"]
    if unit == "row":
        return {("row", name, number)}
    if isinstance(unit, str):
        person = row[spelled(row, unit)]
        if "window" not in table:
            return set() if person is None else {(person,)}
        moment = row[spelled(row, table["time"])]
        return set() if person is None or moment is None else {(person, window_of(moment, table["window"]))}
    parent = spelled(file["tables"], unit["through"])
    key, value = unit.get("key", unit["on"]), row[spelled(row, unit["on"])]
    owners = set()
    for place, candidate in enumerate(data[parent]):
        if value is not None and candidate[spelled(candidate, key)] == value:
            owners |= owners_of(file, data, parent, place)
    return owners


def declared_owners(file, data):
    """Return the owner of each row that has one: a row without a parent, or with parents of two owners, has none."""
    private = [name for name, table in file["tables"].items() if not table.get("public")]
    owners = {
        (name, number): owners_of(file, data, name, number) for name in private for number in range(len(data[name]))
    }
    return {row: found.pop() for row, found in owners.items() if len(found) == 1}


def same_owners(declared, computed):
    """Tell whether two maps from rows to owners have the same rows, and make the same rows one owner's."""
    pairs = {(declared[row], computed[row]) for row in declared.keys() & computed.keys()}
    one_to_one = len(pairs) == len({ours for ours, _ in pairs}) == len({theirs for _, theirs in pairs})
    return declared.keys() == computed.keys() and one_to_one


@st.composite
def units(draw):
    """Draw what all private tables of a policy have in common: the unit's type and the window, or single rows."""
    if draw(st.booleans()) and draw(st.booleans()):
        return {"unit": "row"}
    window = draw(st.sampled_from([None, "1 day", "1 week", "1 month"]))
    return {"type": draw(st.sampled_from(list(KEYS))), "window": window}


@st.composite
def root_tables(draw, name, common):
    """Draw a table with its own unit; `number` tells its rows apart."""
    columns = {"number": {"type": "integer"}, "Id": {"type": draw(st.sampled_from(list(KEYS)))}}
    table = {"source": name, "columns": columns}
    if common.get("unit") == "row":
        return {**table, "unit": "row"}
    columns[f"{name}_Who"] = {"type": common["type"]}
    table["unit"] = draw(st.sampled_from([f"{name}_Who", f"{name}_who"]))
    if common["window"]:
        columns["at"] = {"type": draw(st.sampled_from(["date", "timestamp"]))}
        table |= {"window": common["window"], "time": draw(st.sampled_from(["at", "AT"]))}
    return table


@st.composite
def child_tables(draw, name, parent, tables):
    """Draw a table whose rows are owned through another table."""
    key = draw(st.sampled_from([each for each, column in tables[parent]["columns"].items() if column["type"] in KEYS]))
    on = draw(st.sampled_from([key, f"{name}_ref"]))
    unit = {"through": draw(st.sampled_from([parent, parent.upper()])), "on": on}
    unit |= {"key": draw(st.sampled_from([key, key.lower()]))} if on != key else {}
    columns = {"number": {"type": "integer"}, "Id": {"type": draw(st.sampled_from(list(KEYS)))}}
    columns[on] = tables[parent]["columns"][key]
    return {"source": name, "unit": unit, "columns": columns}


@st.composite
def policy_files(draw):
    """Draw a policy as the dictionary of its file: one or two roots, up to three levels of children, a public table."""
    common = draw(units())
    tables = {name: draw(root_tables(name, common)) for name in ["visits", "logins"][: draw(st.integers(1, 2))]}
    if common.get("unit") != "row":
        for name in ["stays", "labs", "samples"][: draw(st.integers(0, 3))]:
            parent = draw(st.sampled_from(list(tables)[-2:]))
            tables[name] = draw(child_tables(name, parent, tables))
    if draw(st.booleans()):
        tables["regions"] = {"source": "regions", "public": True, "columns": {"name": {"type": "text"}}}
    zone = draw(st.sampled_from(ZONES))
    return {"data": {"name": "random", "timezone": zone}, "budget": {"epsilon": 1}, "tables": tables}


@st.composite
def databases(draw, file):
    """Draw a few rows for each table."""
    values = {**KEYS, "date": DAYS, "timestamp": MOMENTS}
    data = {}
    for name, table in file["tables"].items():
        kinds = {column: values[entry["type"]] for column, entry in table["columns"].items() if column != "number"}
        row = st.fixed_dictionaries({column: st.one_of(kind, kind, kind, st.none()) for column, kind in kinds.items()})
        rows = draw(st.lists(row, max_size=5))
        data[name] = [{"number": number, **each} for number, each in enumerate(rows)]
    return data


@st.composite
def policies_and_data(draw):
    file = draw(policy_files())
    return file, draw(databases(file))


def computed_owners(file, data):
    """Return the owner of each row that has one, by the catalog's scans and the reference engine."""
    catalog, engine = catalog_of(Policy.from_dict(file), lambda name: {}, str), ReferenceEngine(data)
    return {
        (name, row["number"]): unit for name, scan in catalog.private.items() for unit, row in engine.owned_rows(scan)
    }


@settings(max_examples=60)
@given(policies_and_data())
def test_every_row_has_the_owner_that_the_policy_file_declares(drawn):
    assert same_owners(declared_owners(*drawn), computed_owners(*drawn))


@pytest.mark.long
@settings(max_examples=2000)
@given(policies_and_data())
def test_every_row_has_the_owner_that_the_policy_file_declares_in_many_policies(drawn):
    assert same_owners(declared_owners(*drawn), computed_owners(*drawn))


def test_the_comparison_tells_owners_apart():
    assert same_owners({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    assert not same_owners({1: "a", 2: "a"}, {1: "x", 2: "y"})
    assert not same_owners({1: "a", 2: "b"}, {1: "x", 2: "x"})
    assert not same_owners({1: "a"}, {1: "x", 2: "y"})


# Every hour around the changes of the clock in New York and Berlin, the second of which is the end of a month.
HOURS = [datetime(2024, 3, day, tzinfo=UTC) + timedelta(hours=hour) for day in (8, 29) for hour in range(96)]


def engine_owners(file, instants):
    """Return the owner of each row by the embedded engine, which reads instants."""
    policy, numbers = Policy.from_dict(file), list(range(len(instants)))
    moments = pa.array(instants, pa.timestamp("us", "UTC"))
    frame = pa.table({"number": numbers, "who": [1] * len(instants), "at": moments})
    engine = DuckDB(engine_sources(policy, {"hits": frame}), timezone=policy.data.timezone)
    try:
        batches = list(engine.batches(scan_of(policy, "hits"), ("number",), 1000))
    finally:
        engine.close()
    return {
        ("hits", int(row[0])): unit for rows, found in batches for row, unit in zip(rows, found.tolist(), strict=True)
    }


@pytest.mark.parametrize("window", ["1 day", "1 week", "1 month"])
@pytest.mark.parametrize("zone", ZONES)
def test_owners_follow_the_time_zone_of_the_policy_file(zone, window):
    for kind in ("timestamp", "date"):
        columns = {"number": {"type": "integer", "between": [0, 999]}, "who": {"type": "integer"}, "at": {"type": kind}}
        hits = {"source": "hits", "unit": "who", "window": window, "time": "at", "columns": columns}
        file = {"data": {"name": "hits", "timezone": zone}, "budget": {"epsilon": 1}, "tables": {"hits": hits}}
        local = [moment.astimezone(ZoneInfo(file["data"]["timezone"])).replace(tzinfo=None) for moment in HOURS]
        data = {"hits": [{"number": number, "who": 1, "at": moment} for number, moment in enumerate(local)]}
        assert same_owners(declared_owners(file, data), engine_owners(file, HOURS))


VISITS = {"source": "visits", "unit": "who", "groups": 1, "rows": 1, "columns": {"who": {"type": "integer"}}}
REGIONS = {"source": "regions", "public": True, "columns": {"name": {"type": "text"}}}
FILE = {
    "data": {"name": "visits", "ledger": ":memory:"},
    "budget": {"epsilon": 1},
    "tables": {"visits": VISITS, "regions": REGIONS},
}


def test_the_catalog_has_each_table_once_as_it_is_declared():
    policy = Policy.from_dict(FILE)
    catalog = catalog_of(policy, lambda name: {name: Type.TEXT}, str)
    assert catalog.private == {"visits": scan_of(policy, "visits")}
    assert catalog.public == {"regions": {"regions": Type.TEXT}}


def test_only_a_declared_version_has_a_source_and_it_differs_with_every_location():
    def source_of(version, **elsewhere):
        policy = Policy.from_dict({**FILE, "data": {**FILE["data"], **version}})
        return catalog_of(policy, lambda name: {}, lambda name: elsewhere.get(name, "here")).source

    assert source_of({}) == source_of({}, visits="there") == ""
    declared = {"version": "1"}
    sources = [source_of(declared, **moved) for moved in ({}, {"visits": "there"}, {"regions": "there"})]
    assert len({*sources, ""}) == 4
    assert source_of(declared) == sources[0]


def test_a_public_table_has_no_scan():
    with pytest.raises(PolicyError, match="regions: a public table has no privacy unit"):
        scan_of(Policy.from_dict(FILE), "regions")


def test_a_front_end_cannot_choose_another_unit(monkeypatch):
    def scan_by_row(policy, name):
        scan = scan_of(policy, name)
        return Scan(scan.table, scan.columns, EachRow(), scan.max_rows)

    columns = {"who": {"type": "integer"}, "cost": {"type": "real", "between": [0, 9]}}
    policy = Policy.from_dict({**FILE, "tables": {"visits": {**VISITS, "columns": columns}, "regions": REGIONS}})
    data = {"visits": pa.table({"who": [1, 1, 2], "cost": [1.0, 2.0, 3.0]}), "regions": pa.table({"name": ["north"]})}
    with dc.open(policy, data=data) as curator:
        monkeypatch.setattr(table_sources, "scan_of", scan_by_row)
        with pytest.raises(ValueError, match="differs from the owner's declaration"):
            curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
        with pytest.raises(ValueError, match="differs from the owner's declaration"):
            curator.fit(StandardScaler(epsilon="1/2"), "SELECT cost FROM visits")
        assert curator.budget().spent.epsilon == 0
        monkeypatch.undo()
        assert curator.ask("SELECT COUNT(*) AS visits FROM visits", epsilon="1/2").paid.epsilon
