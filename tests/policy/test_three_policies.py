"""Three policies from draft to answers on dummy data, as a newcomer writes them."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet import PolicyError
from discreet.policy import Policy, draft, explain, hazards, write_dummy


def save(file, /, **types):
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({name: pa.array([], kind) for name, kind in types.items()}), file)


def filled(text, changes):
    """Edit a draft: each change replaces or removes the one line that starts with its key."""
    lines = text.splitlines()
    for start, new in changes.items():
        places = [place for place, line in enumerate(lines) if line.startswith(start)]
        assert len(places) == 1, (start, places)
        lines[places[0] : places[0] + 1] = [] if new is None else [new]
    return "\n".join(lines)


def opened(text, folder):
    """Parse the policy, and open it on dummy data."""
    policy = Policy.parse(text, base=folder)
    return policy, dc.open(write_dummy(policy, folder / "fake", rows=3000).policy)


@pytest.fixture
def hospital(tmp_path):
    save(
        tmp_path / "encounters.parquet",
        encounter_id=pa.int64(),
        patient_id=pa.string(),
        admitted=pa.timestamp("us"),
        ward=pa.string(),
        days=pa.int32(),
    )
    save(
        tmp_path / "labs.parquet",
        encounter_id=pa.int64(),
        test=pa.string(),
        value=pa.float64(),
        taken=pa.timestamp("us"),
    )
    return tmp_path


HOSPITAL = {
    "epsilon": "epsilon = 4",
    "# delta": "delta = 1e-9",
    '# unit = { through = "encounters"': None,
    "ward = ": 'ward = { type = "text", in = ["surgery", "medicine", "children"] }',
    "admitted = ": 'admitted = { type = "timestamp", between = [2022-01-01, 2024-12-31] }',
    "days = ": 'days = { type = "integer", between = [0, 60] }',
    "value = ": 'value = { type = "real", between = [0, 500], step = 0.1, outside = "null" }',
    "taken = ": 'taken = { type = "timestamp", between = [2022-01-01, 2024-12-31] }',
}


def hospital_policy(folder):
    text = draft([folder / "encounters.parquet", folder / "labs.parquet"], unit="patient_id", base=folder)
    text = text.replace('unit = "FILL IN"', 'unit = { through = "encounters", on = "encounter_id" }')
    text = re.sub(r'^groups = "FILL IN"', "groups = 2", text, flags=re.MULTILINE)
    return filled(re.sub(r'^rows = "FILL IN"', "rows = 6", text, flags=re.MULTILINE), HOSPITAL)


@pytest.mark.long
def test_a_hospital_protects_patients_in_encounters_and_in_lab_results(hospital):
    policy, curator = opened(hospital_policy(hospital), hospital)
    assert explain(policy)[0] == "Protected: each patient, with all of their rows in encounters and labs."
    assert [(hazard.id, hazard.table) for hazard in hazards(policy)] == [("D012", "labs")]
    with curator:
        wards = curator.ask(
            "SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM encounters GROUP BY ward", epsilon="1/2"
        )
        assert wards.to_arrow().column("ward").to_pylist() == ["surgery", "medicine", "children"]
        labs = curator.ask("SELECT COUNT(*) AS n, AVG(value) AS mean FROM labs WHERE value > 100", epsilon="1/2")
        assert labs.to_arrow().column_names == ["n", "mean"]
        people = curator.ask("SELECT COUNT(DISTINCT patient_id) FROM encounters WHERE ward = 'surgery'", epsilon="1/2")
        assert people.margin < 50
        both = curator.ask(
            "SELECT COUNT(*) FROM labs JOIN encounters USING (encounter_id) WHERE ward = 'children'",
            epsilon="1/2",
        )
        assert both.margin
        found = curator.ask("SELECT test, COUNT(*) AS n FROM labs GROUP BY test", epsilon=1, groups=1, rows=1)
        assert all(name.startswith("test-") for name in found.to_arrow().column("test").to_pylist())
        with pytest.raises(dc.Refused, match="single privacy unit"):
            curator.ask("SELECT encounter_id, COUNT(*) FROM labs GROUP BY encounter_id", epsilon="1/10")


@pytest.fixture
def checkins(tmp_path):
    save(
        tmp_path / "checkins.parquet",
        user=pa.int64(),
        time=pa.timestamp("us"),
        lat=pa.float64(),
        lon=pa.float64(),
        venue_id=pa.int64(),
    )
    (tmp_path / "venues.csv").write_text("venue_id,category,seats\n")
    return tmp_path


CHECKINS = {
    "epsilon": "epsilon = 2",
    "public": "public = true",
    "groups": "groups = 5",
    "rows": "rows = 10",
    "time = ": 'time = { type = "timestamp", between = [2009-01-01, 2010-12-31] }',
    "lat = ": None,
    "# lat = ": 'lat = { type = "real", between = [-90, 90], step = 1e-4, outside = "null" }',
    "lon = ": None,
    "# lon = ": 'lon = { type = "real", between = [-180, 180], step = 1e-4, outside = "null" }',
    "category = ": 'category = { type = "text", in = ["food", "shop", "travel"] }',
}


def checkins_policy(folder):
    types = {"venues.venue_id": "integer", "seats": "integer"}
    text = draft([folder / "checkins.parquet", folder / "venues.csv"], unit="user", types=types, base=folder)
    private, public = text.split("[tables.venues]")
    suggested = {
        "venue_id = ": None,
        "# venue_id = ": 'venue_id = { type = "integer", references = "venues.venue_id" }',
    }
    return filled(filled(private, suggested) + "\n[tables.venues]" + public, CHECKINS)


def test_check_ins_are_counted_by_a_column_of_the_public_venue_table(checkins):
    policy, curator = opened(checkins_policy(checkins), checkins)
    assert hazards(policy) == []
    assert "Not protected: the public table venues." in explain(policy)
    with curator:
        kinds = curator.ask(
            "SELECT category, COUNT(*) AS n FROM checkins JOIN venues USING (venue_id) GROUP BY category ORDER BY n",
            epsilon="1/2",
        )
        assert set(kinds.to_arrow().column("category").to_pylist()) == {"food", "shop", "travel"}
        months = curator.ask(
            "SELECT date_trunc('month', time) AS month, COUNT(DISTINCT user) AS people FROM checkins GROUP BY 1",
            epsilon="1/2",
        )
        assert len(months) == 24
        north = curator.ask("SELECT AVG(lat) FROM checkins WHERE lat > 0", epsilon="1/2")
        assert len(north) == 1
        assert curator.budget().spent.epsilon == dc.Budget("3/2").epsilon


@pytest.fixture
def weblogs(tmp_path):
    for day in (1, 2):
        save(
            tmp_path / "hits" / f"{day}.parquet",
            user_id=pa.string(),
            at=pa.timestamp("ms"),
            path=pa.string(),
            status=pa.int16(),
            bytes=pa.int64(),
        )
    return tmp_path


WEBLOGS = {
    "epsilon": "epsilon = 1.5",
    "timezone": 'timezone = "America/New_York"',
    "# window": 'window = "1 day"\ntime = "at"',
    "groups": "groups = 3",
    "rows": "rows = 20",
    "at = ": 'at = { type = "timestamp", between = [2026-01-01, 2026-12-31] }',
    "status = ": 'status = { type = "integer", in = [200, 301, 404, 500] }',
    "bytes = ": 'bytes = { type = "integer", between = [0, 1_000_000] }',
}


def test_web_logs_protect_a_users_day(weblogs):
    text = filled(draft([weblogs / "hits" / "*.parquet"], unit="user_id", base=weblogs), WEBLOGS)
    policy, curator = opened(text, weblogs)
    assert explain(policy)[0] == (
        "Protected: each day of each user (time zone America/New_York), with all of its rows in hits."
    )
    assert [hazard.id for hazard in hazards(policy)] == ["D011"]
    with curator:
        codes = curator.ask("SELECT status, COUNT(*) AS n, SUM(bytes) AS sent FROM hits GROUP BY status", epsilon="1/2")
        assert codes.to_arrow().column("status").to_pylist() == [200, 301, 404, 500]
        days = curator.ask("SELECT COUNT(*) FROM hits WHERE at >= '2026-07-01'", epsilon="1/2")
        assert days.margin
        with pytest.raises(dc.Refused, match="delta"):
            curator.ask("SELECT path, COUNT(*) FROM hits GROUP BY path", epsilon="1/10")


@pytest.mark.parametrize("start", ["epsilon", "time = "])
def test_a_forgotten_value_is_named_by_its_line(checkins, start):
    kept = {key: value for key, value in CHECKINS.items() if key != start}
    types = {"venues.venue_id": "integer", "seats": "integer"}
    text = filled(draft([checkins / "checkins.parquet", checkins / "venues.csv"], types=types, unit="user"), kept)
    place = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))
    with pytest.raises(PolicyError, match=rf"^policy, line {place}: .* is still to be filled in\. [^\n]*$"):
        Policy.parse(text)
