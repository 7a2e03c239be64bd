"""Other programs that speak to PostgreSQL: psql, pgbench, JDBC and R."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
HERE = Path(__file__).parent
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"


def program(name, package):
    """Return where a program is."""
    found = shutil.which(name) or next(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), None)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt install {package})")
    return str(found)


def output(*command, **environment):
    """Run a program, and return what it wrote."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    return done.stdout + done.stderr


def psql(server, *commands, name="ana"):
    words = [word for command in commands for word in ("-c", command)]
    return output(program("psql", "postgresql-client"), "-X", "-A", "-P", "footer=off", server.url(name), *words)


def test_psql_asks_and_shows_margins_notices_and_refusals(server):
    fresh = BY_WARD.replace("GROUP", "WHERE age > 1 GROUP")  # that no other test asks
    shown = psql(server, "SET epsilon = 1", fresh, fresh, "SELECT * FROM visits LIMIT 5", "SELECT nothing FROM wards")
    lines = shown.splitlines()
    rows = [line for line in lines if line[:2] in ("A|", "B|", "C|")]
    assert [row[0] for row in rows] == ["A", "B", "C"] * 2
    assert rows[:3] == rows[3:]
    assert lines.count("ward|n|n_margin|n_bias|n_bias_low") == 2
    assert "NOTICE:  Cost: epsilon 1 " in shown
    assert "No charge: cached answer" in shown
    assert "HINT:  Aggregate them" in shown
    assert "LINE 1: SELECT nothing FROM wards" in shown


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (r"\d", "public|visits|table|discreet"),
        (r"\dt", "public|wards|table|discreet"),
        (r"\dt+", "Public. Queries on public tables alone need no budget."),
        (r"\d visits", "age|bigint||not null|"),
        (r"\d+ visits", "from 0 to 120"),
        (r"\d tests", 'FOREIGN KEY ("ward") REFERENCES "wards"("ward")'),
        (r"\l", "clinic|discreet|UTF8"),
        (r"\dn", "public|discreet"),
        (r"\du", "discreet"),
        (r"\dp", "public|visits|table"),
        (r"\df", ""),
        (r"\dv", ""),
        (r"\di", ""),
        (r"\dx", ""),
        (r"\dT", ""),
        (r"\ds", ""),
        (r"\dS pg_class", ""),
        (r"\db", "pg_default"),
        (r"\dc", ""),
        (r"\dC", ""),
        (r"\dD", ""),
        (r"\dE", ""),
        (r"\do", ""),
        (r"\drds", ""),
        (r"\dRp", ""),
        (r"\dy", ""),
        (r"\dF", ""),
        (r"\conninfo", 'database "clinic"'),
        (r"\encoding", "UTF8"),
    ],
)
def test_psql_describes_what_the_policy_declares(server, command, found):
    shown = output(program("psql", "postgresql-client"), "-X", "-A", server.url(), "-c", command)
    assert found in shown
    assert "ERROR" not in shown


def test_psql_copies_and_runs_scripts(server, tmp_path):
    (tmp_path / "script.sql").write_text(
        "BEGIN; SET LOCAL epsilon = 1;\n"
        f"\\copy ({BY_WARD}) TO '{tmp_path}/out.csv' WITH CSV HEADER\n"
        "SELECT COUNT(*) AS n FROM visits WHERE ward = :'ward' \\gset\n"
        "\\echo ward :ward has :n\n"
        "SELECT floor FROM wards WHERE ward = $1 \\bind A \\g\n"
        "ROLLBACK;\n\\crosstabview\n"
    )
    shown = output(
        program("psql", "postgresql-client"), "-X", "-v", "ward=A", "-f", str(tmp_path / "script.sql"),
        server.url(options="&options=-c%20epsilon%3D1"),
    )  # fmt: skip
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "ward,n,n_margin,n_bias,n_bias_low"
    assert "ward A has" in shown


def test_pgbench_asks_the_same_question_again_and_again(server, tmp_path):
    (tmp_path / "script.sql").write_text("SELECT COUNT(*) AS n FROM visits WHERE age > 20;\n")
    words = "-n", "-f", str(tmp_path / "script.sql"), "-c", "2", "-t", "20"
    for mode in ("simple", "extended", "prepared"):
        url = server.url(options="&options=-c%20epsilon%3D1")
        shown = output(program("pgbench", "postgresql"), *words, "-M", mode, url)
        assert "number of transactions actually processed: 40/40" in shown, shown


def test_jdbc_reads_the_catalog_prepares_fetches_and_cancels(server):
    driver = Path("/usr/share/java/postgresql.jar")
    if not driver.exists():
        pytest.skip("JDBC is not installed (Debian: apt install libpostgresql-jdbc-java)")
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/clinic?sslmode=disable"
    java = program("java", "default-jdk-headless")
    shown = output(java, "-cp", str(driver), str(HERE / "Clinic.java"), url, server.tokens["ana"])
    if "UnsupportedClassVersion" in shown or "Could not find or load main class" in shown:
        pytest.skip("this Java does not run source files: Java 11 or later does")
    lines = dict(line.split(":", 1) for line in shown.splitlines() if ":" in line)
    assert lines.pop("round").strip().startswith("4 ")
    assert lines == {
        "product": " PostgreSQL 15",
        "tables": " patients tests visits wards",
        "columns": " patient ward age cost day seen weight new",
        "types": " int8 text int8 numeric date timestamp float8 bool",
        "keys": "",
        "imported": "",
        "indexes": "",
        "schemas": " information_schema pg_catalog public",
        "functions": "",
        "type info": " true",
        "keywords": " false",
        "wards": " A B C",
        "notice": " true",
        "maximum": " true",
        "portions": " A B C",
        "refused": " 0A000 true",
        "cancelled": " 57014",
        "valid": " true",
    }, shown


def test_r_reads_tables_and_data_frames(server):
    program_of_r = program("Rscript", "r-base-core")
    if "FALSE" in output(program_of_r, "-e", 'cat("RPostgreSQL" %in% rownames(installed.packages()))'):
        pytest.skip("RPostgreSQL is not installed (Debian: apt install r-cran-rpostgresql)")
    shown = output(program_of_r, str(HERE / "clinic.R"), str(server.port), server.tokens["ana"])
    lines = dict(line.split(":", 1) for line in shown.splitlines() if ":" in line and not line.startswith("NOTICE"))
    assert lines["tables"].split() == ["patients", "tests", "visits", "wards"]
    assert sorted(lines["fields"].split()) == ["floor", "ward"]
    assert lines["names"].split() == ["ward", "n", "n_margin", "n_bias", "n_bias_low"]
    assert len(lines["n"].split()) == 3
    assert lines["portion"].split() == ["2"]
    assert lines["refused"].split() == ["yes"]
