"""The curator on real data: check-ins and a census. Skipped where the data is missing."""

import os
from pathlib import Path

import duckdb
import pytest

import discreet as dc
from discreet.policy import Policy

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))

CHECKINS = """
[data]
name = "gowalla"
protects = "visitor"
ledger = ":memory:"
[budget]
epsilon = 20
delta = 1e-6
[tables.checkins]
source = "{data}/gowalla_nyc_checkins.parquet"
unit = "user"
groups = 24
rows = 40
rows_max = 10_000_000
[tables.checkins.columns]
user = {{ type = "integer" }}
time = {{ type = "timestamp", between = [2009-01-01, 2010-12-31] }}
lat = {{ type = "real", between = [40.4, 41.0], outside = "null" }}
lon = {{ type = "real", between = [-74.3, -73.7], outside = "null" }}
location = {{ type = "integer" }}
[tables.venues]
source = "{data}/gowalla_nyc_venues.parquet"
public = true
columns = {{ location = {{ type = "integer" }}, lat = {{ type = "real" }} }}
"""

CENSUS = """
[data]
name = "adult"
ledger = ":memory:"
[budget]
epsilon = 20
[tables.adult]
source = "{data}/adult.parquet"
unit = "row"
rows_max = 1_000_000
[tables.adult.columns]
age = {{ type = "integer", between = [17, 90] }}
sex = {{ type = "text", in = ["Female", "Male"] }}
race = {{ type = "text" }}
"""


def opened(text, *files):
    missing = [name for name in files if not (DATA / name).exists()]
    if missing:
        pytest.skip(f"needs {missing[0]} in DISCREET_DATA")
    return dc.open(Policy.parse(text.format(data=DATA.resolve())))


def truth(sql, **files):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, file in files.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{DATA / file}'")
    return connection.execute(sql).fetchall()


@pytest.mark.long
def test_checkins_of_people_are_answered_near_the_truth():
    files = {"checkins": "gowalla_nyc_checkins.parquet", "venues": "gowalla_nyc_venues.parquet"}
    with opened(CHECKINS, *files.values()) as curator:
        people = curator.ask("SELECT COUNT(DISTINCT user) AS n FROM checkins", epsilon=1)
        assert abs(people.value - 7115) <= 4 * people.margin
        assert people.margin < 20
        middle = curator.ask("SELECT AVG(lat) AS lat, AVG(lon) AS lon FROM checkins", epsilon=1)
        ((lat, lon),) = truth("SELECT AVG(lat), AVG(lon) FROM checkins", **files)
        (row,) = middle
        assert abs(row[0] - lat) < 0.02  # clipping bias
        assert abs(row[1] - lon) < 0.02
        hours = curator.ask(
            "SELECT EXTRACT(HOUR FROM time) AS hour, COUNT(*) AS n FROM checkins GROUP BY hour", epsilon=2
        )
        assert hours.table["hour"].to_pylist() == list(range(24))
        busy = max(hours, key=lambda row: row[1])[0]
        assert busy in {
            hour
            for hour, _ in truth(
                "SELECT hour(time), COUNT(*) n FROM checkins GROUP BY 1 ORDER BY n DESC LIMIT 8", **files
            )
        }
        places = curator.ask(
            "SELECT location, COUNT(DISTINCT user) AS people FROM checkins GROUP BY location", epsilon=4
        )
        assert 5 < len(places) < 2000  # of 21,509: small groups are below the threshold
        joined = curator.ask("SELECT COUNT(*) FROM checkins JOIN venues USING (location)", epsilon=1)
        assert joined.value > 10_000


@pytest.mark.long
def test_advice_on_checkins_is_near_the_truth():
    text = CHECKINS.replace("groups = 24\nrows = 40\n", "").replace(', between = [40.4, 41.0], outside = "null"', "")
    with opened(text, "gowalla_nyc_checkins.parquet", "gowalla_nyc_venues.parquet") as curator:
        advice = curator.advise(
            "checkins", epsilon=2, by_columns=["EXTRACT(HOUR FROM time)", ""], columns=["lat", "time"]
        )
        by_hour, total = advice.bounds
        assert by_hour.radius(by_hour.bounds) < total.radius(total.bounds)
        assert 250 < total.bounds.rows <= 3_000  # the most is 1,794
        latitude, time = (each.column.domain for each in advice.ranges)
        assert 38 <= latitude.low <= 40.48
        assert 40.91 <= latitude.high <= 43
        assert (time.low.year, time.high.year) == (2009, 2010)


@pytest.mark.long
def test_advice_on_a_census_has_the_ranges_of_its_columns():
    text = CENSUS.replace(", between = [17, 90]", "") + 'hours_per_week = {{ type = "integer" }}\n'
    with opened(text, "adult.parquet") as curator:
        advice = curator.advise(epsilon=1)
    ages, hours = (each.column.domain for each in advice.ranges)
    assert (ages.low <= 17, 85 <= ages.high <= 100) == (True, True)
    assert (hours.low <= 5, 80 <= hours.high <= 100) == (True, True)


def test_a_census_by_row_is_answered_near_the_truth():
    with opened(CENSUS, "adult.parquet") as curator:
        answer = curator.ask(
            "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM adult GROUP BY sex ORDER BY sex", epsilon=1
        )
        exact = truth("SELECT sex, COUNT(*), AVG(age) FROM adult GROUP BY sex ORDER BY sex", adult="adult.parquet")
        for (sex, n, age), (name, count, mean), n_margin, age_margin in zip(
            answer, exact, answer.margins["n"], answer.margins["age"], strict=True
        ):
            assert sex == name
            assert abs(n - count) <= 4 * n_margin
            assert abs(age - mean) <= 4 * age_margin
        with pytest.raises(dc.Refused, match="race"):
            curator.ask("SELECT race, COUNT(*) FROM adult GROUP BY race", epsilon=1)
