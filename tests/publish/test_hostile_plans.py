"""Plans of somebody careless or malicious: names, costs within the SQL, folders with other files, and keys as code."""

import json
import os
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from publish.hospital import curator_on, policy_text, visits

import discreet as dc
from discreet.kernel.errors import PolicyError
from discreet.publish.dry_run import forecast
from discreet.publish.manifest import MANIFEST, verify
from discreet.publish.plan import PublicationPlan

HEAD = "[release]\nname = 'x'\nepsilon = 1\n"
TOTAL = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
PEOPLE = "SELECT COUNT(DISTINCT patient) AS n FROM visits"


def plan_of(*sqls, head=HEAD, extra=""):
    tables = "".join(f"[tables.t{index}]\nsql = '''{sql}'''\n" for index, sql in enumerate(sqls))
    return PublicationPlan.parse(head + tables + extra)


NAMES = ["../x", "..", "a/b", "a b", ".hidden", "a" * 101, "é", "", "a\\b", "a\nb", "-rf", "a.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tables_are_names_of_files(name):
    with pytest.raises(PolicyError, match="letters, digits and _"):
        PublicationPlan.parse(f"{HEAD}[tables.{json.dumps(name)}]\nsql = '{TOTAL}'\n")


@pytest.mark.parametrize(
    "other", ["[tables.WARDS]\nsql = 'SELECT 1'", "[synthetic.Wards]\ntable='v'\ncolumns=['a','b']"]
)
def test_two_tables_are_never_one_file(other):
    """Many file systems ignore the case of letters."""
    with pytest.raises(PolicyError, match="two tables"):
        PublicationPlan.parse(f"{HEAD}[tables.wards]\nsql = '{TOTAL}'\n{other}\n")


@pytest.mark.parametrize("name", ["CON", "nul", "Lpt1", "aux"])
def test_no_table_has_the_name_of_a_device(name):
    with pytest.raises(PolicyError, match="Windows"):
        PublicationPlan.parse(f"{HEAD}[tables.{name}]\nsql = '{TOTAL}'\n")


FORMULAS = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "'=1", "'s-Heer", "A"]


def test_keys_are_no_formulas_in_csv_and_unchanged_in_parquet(tmp_path):
    people = pa.table({"person": range(70), "town": FORMULAS * 10})
    with dc.open(
        people, unit="person", budget=9, columns={"town": FORMULAS}, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        plan = plan_of("SELECT town, COUNT(*) AS n FROM data GROUP BY town", "SELECT COUNT(*) AS n FROM data")
        release = curator.publish(plan, tmp_path / "out")
    assert pq.read_table(tmp_path / "out/tables/t0.parquet").column("town").to_pylist() == FORMULAS
    written = pcsv.read_csv(tmp_path / "out/tables/t0.csv")
    assert written.column("town").to_pylist() == ["'=HYPERLINK(1)", "'+1", "'-1", "'@SUM(1)", "''=1", "'s-Heer", "A"]
    (part, _) = release.record.parts
    assert "apostrophe" in part.columns[0].meaning
    assert not any("apostrophe" in column.meaning for column in part.columns[1:])


def test_a_plan_with_very_many_tables_is_refused_at_once():
    with pytest.raises(PolicyError, match="1,000 tables"):
        PublicationPlan.parse(HEAD + "".join(f"[tables.t{index}]\nsql = 'SELECT 1'\n" for index in range(1_001)))


def test_a_plan_of_ten_megabytes_is_not_read(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(HEAD + "#" * 10_000_000)
    with pytest.raises(PolicyError, match="10 MB"):
        PublicationPlan.load(path)


OWN_COSTS = {
    "EXPLAIN": (f"EXPLAIN {TOTAL}", "EXPLAIN"),
    "WITHIN": (f"{TOTAL} WITHIN 5", "WITHIN"),
    "OPTIONS": ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 100) COUNT(*) AS n FROM visits", "OPTIONS"),
    "delta": ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-7) COUNT(*) AS n FROM visits", "OPTIONS"),
    "WITHIN of a query": (f"{PEOPLE} WITHIN 5", "WITHIN"),
    "OPTIONS of a query": (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 100) COUNT(DISTINCT patient) AS n FROM visits",
        "OPTIONS",
    ),
}


@pytest.mark.parametrize(("sql", "named"), OWN_COSTS.values(), ids=OWN_COSTS)
def test_no_table_has_a_cost_of_its_own(tmp_path, sql, named):
    """Neither more than its share of the plan, nor an accuracy that is then ignored."""
    with curator_on(visits(100)) as curator:
        with pytest.raises(PolicyError, match=named):
            curator.publish(plan_of(BY_WARD, sql), tmp_path / "out")
        assert not curator.ledger.events()


ADDED_NAMES = {
    "margin": "SELECT COUNT(*) AS n, COUNT(cost) AS n_margin FROM visits",
    "whole": "SELECT COUNT(*) AS n, COUNT(cost) AS n_whole FROM visits",
    "margin of a query": "SELECT COUNT(DISTINCT patient) AS n, COUNT(*) AS n_margin FROM visits",
    "key": "SELECT ward AS n_margin, COUNT(*) AS n FROM visits GROUP BY ward",
}


@pytest.mark.parametrize("sql", ADDED_NAMES.values(), ids=ADDED_NAMES)
def test_no_number_is_published_as_the_margin_of_another(tmp_path, sql):
    with curator_on(visits(100)) as curator:
        with pytest.raises(PolicyError, match="belongs to 'n'"):
            curator.publish(plan_of(BY_WARD, sql), tmp_path / "out")
        assert not curator.ledger.events()


@pytest.mark.parametrize(
    ("head", "extra"),
    [(f"{HEAD}rows = 1048577\n", ""), (f"{HEAD}rows = {1 << 62}\n", ""), (HEAD, "weight = 1e-200\n")],
    ids=["rows", "very many rows", "weight"],
)
def test_tables_in_which_no_row_would_count_are_refused_before_the_charge(tmp_path, head, extra):
    with curator_on(visits(100)) as curator:
        with pytest.raises(PolicyError, match="nothing of a row would count"):
            curator.publish(plan_of(TOTAL, BY_WARD, head=head, extra=extra), tmp_path / "out")
        assert not curator.ledger.events()


def test_bounds_of_single_tables_do_not_weaken_a_family():
    """OPTIONS may declare other bounds for a table: the family is clipped to the largest, and its noise is for that."""
    one, many = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {groups}) COUNT(*) AS n FROM visits"
        for groups in (1, 50)
    )
    with curator_on(visits(100, people=50)) as curator:
        margins = [
            [table.margins["n"] for table in forecast(curator, plan_of(sql, BY_WARD)).tables] for sql in (one, many)
        ]
    assert all(small < large for small, large in zip(*margins, strict=True))


HOSTILE = [
    "=1+1",
    "@SUM(A1)",
    'x"y',
    "x,y",
    "line\nbreak",
    "<script>alert(1)</script>",
    "'; DROP TABLE",
    "",
    "\u202eabc",
]


def test_keys_and_columns_are_data_in_every_file(tmp_path):
    """Quotes, line breaks, formulas and HTML come back as they were; the report shows them as text."""
    table = visits(200).set_column(1, "ward", pa.array([HOSTILE[row % len(HOSTILE)] for row in range(200)]))
    text = policy_text().replace('["A", "B", "C"]', json.dumps(HOSTILE))
    column = 'n "<b>=2\n'
    plan = plan_of(
        'SELECT ward AS "<i>", COUNT(*) AS "n ""<b>=2\n" FROM visits GROUP BY ward', TOTAL,
        head="[release]\nname = '<script>alert(2)</script>'\nepsilon = 1\n",
    )  # fmt: skip
    with dc.open(dc.policy.Policy.parse(text), data={"visits": table}) as curator:
        release = curator.publish(plan, tmp_path / "out")
    stored = pq.read_table(tmp_path / "out" / "tables" / "t0.parquet")
    assert stored.column_names == ["<i>", column, f"{column}_margin", f"{column}_whole"]
    assert sorted(stored.column("<i>").to_pylist()) == sorted(HOSTILE)
    options = pcsv.ParseOptions(newlines_in_values=True)
    convert = pcsv.ConvertOptions(strings_can_be_null=False)
    read = pcsv.read_csv(tmp_path / "out" / "tables" / "t0.csv", parse_options=options, convert_options=convert)
    assert read.column_names == stored.column_names
    keys = [re.sub(r"^'('*[=+@\t\r-])", r"\1", key) for key in read.column("<i>").to_pylist()]
    assert keys == stored.column("<i>").to_pylist()
    report = (tmp_path / "out" / "report.html").read_text()
    assert "alert(2)" in report
    assert not any(bad in report for bad in ("<script>alert", "<b>=2", 'n "<b>'))
    assert verify(release.folder) == []


def test_a_folder_of_the_owner_is_not_replaced_because_the_plan_is_in_it(tmp_path):
    """The plan is often called plan.toml, and lies beside the policy, the data and the ledger."""
    home = tmp_path / "study"
    home.mkdir()
    plan = plan_of(TOTAL)
    for name, text in (("plan.toml", plan.text), ("visits.ledger", "the account")):
        (home / name).write_text(text)
    with curator_on(visits(100)) as curator:
        with pytest.raises(PolicyError, match="not empty"):
            curator.publish(plan, home)
        assert not curator.ledger.events()
        curator.publish(plan, tmp_path / "out")
        (tmp_path / "out" / "notes.txt").write_text("mine")
        with pytest.raises(PolicyError, match="not empty"):
            curator.publish(plan, tmp_path / "out")
        (tmp_path / "out" / "notes.txt").unlink()
        (tmp_path / "out" / "report.html").write_text("changed")
        curator.publish(plan, tmp_path / "out")
    assert {path.name for path in home.iterdir()} == {"plan.toml", "visits.ledger"}
    assert verify(tmp_path / "out") == []


def _link(folder):
    (folder / "real").mkdir()
    (folder / "link").symlink_to(folder / "real")
    return folder / "link"


def _dangling(folder):
    (folder / "dangling").symlink_to(folder / "nowhere")
    return folder / "dangling"


def _file(folder):
    (folder / "file").write_text("mine")
    return folder / "file"


def _pipe(folder):
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / MANIFEST)
    return folder / "pipe"


def _linked_manifest(folder):
    (folder / "linked").mkdir()
    (folder / "linked" / MANIFEST).symlink_to("/etc/hostname")
    return folder / "linked"


BAD_FOLDERS = [_link, _dangling, _file, _pipe, _linked_manifest, lambda folder: folder / ("n" * 300), lambda _: "a\0b"]


@pytest.mark.parametrize("make", BAD_FOLDERS)
def test_whatever_is_no_folder_for_a_release_is_refused_before_the_charge(tmp_path, make):
    target = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with curator_on(visits(100)) as curator:
        with pytest.raises(PolicyError, match="--out"):
            curator.publish(plan_of(TOTAL), target)
        assert not curator.ledger.events()
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folder_above_may_be_a_link(tmp_path):
    with curator_on(visits(100)) as curator:
        release = curator.publish(plan_of(TOTAL), _link(tmp_path) / "out")
    assert verify(release.folder) == verify(tmp_path / "real" / "out") == []


@pytest.fixture
def small_disk(tmp_path):
    """Mount a disk of 64 KB; yield its folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
def test_a_disk_that_is_full_or_read_only_costs_nothing_but_the_charge(tmp_path, small_disk):
    """The earlier release in the folder stays as it was, and nothing of the new one is left."""
    plan, big = plan_of(TOTAL), plan_of(*[BY_WARD.replace("ward", name) for name in ("day", "age")])
    with curator_on(visits(100)) as curator:
        (small_disk / "filler").write_bytes(b"x" * 60_000)
        with pytest.raises(PolicyError, match=r"No space left on device.*at no charge"):
            curator.publish(big, small_disk / "out")
        assert [path.name for path in small_disk.iterdir()] == ["filler"]
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with pytest.raises(PolicyError, match=r"Read-only file system.*at no charge"):
            curator.publish(plan, small_disk / "out")
        spent = curator.ledger.spent()
        releases = [curator.publish(each, tmp_path / name) for name, each in (("a", plan), ("b", big))]
        assert curator.ledger.spent() == spent
    assert all(not release.missing and not verify(release.folder) for release in releases)
    assert Path("/proc/mounts").read_text().count(str(small_disk)) == 1
