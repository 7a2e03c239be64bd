"""The two places that a ledger can be kept in, alike for tests: made, opened, restored from a backup, tampered with."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from discreet.kernel.ledger.chain import LedgerRow
from discreet.kernel.loss import Budget
from discreet.ledger_postgres.ledger import create_postgres_ledger, open_postgres_ledger
from discreet.ledger_postgres.schema import schema_name
from discreet.ledger_sqlite import create_ledger, open_ledger
from discreet.postgres.server import connect, driver

KINDS = ["file", "postgres"]
COLUMNS = ", ".join(f'"{column}"' for column in LedgerRow._fields)


class FilePlace:
    """A ledger in SQLite."""

    refusals = (sqlite3.DatabaseError,)

    def __init__(self, path):
        self.path = Path(path)
        self.head = self.path.with_name(self.path.name + ".checkpoint")
        self.text = str(self.path)

    def create(self, **terms):
        return create_ledger(self.path, **{"name": "demo", "budget": Budget(1), **terms})

    def open(self, name="demo", dataset=""):
        return open_ledger(self.path, name=name, dataset=dataset)

    def other(self, name):
        """Return another place beside this one."""
        return FilePlace(self.path.with_name(f"{name}.sqlite"))

    def exchange(self, other):
        """Put another place's ledger here."""
        shutil.copy(other.path, self.path)

    def back_up(self):
        shutil.copy(self.path, self.path.with_name("backup"))

    def restore(self):
        shutil.copy(self.path.with_name("backup"), self.path)

    def run(self, *statements):
        """Run statements with (statement, *values), as somebody who has the file; return what the last one found."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for statement, *values in statements:
                found = connection.execute(statement, values).fetchall()
        return found

    def tamper(self, *statements):
        """Run statements that no trigger stops."""
        triggers = self.run(["SELECT name FROM sqlite_master WHERE type = 'trigger'"])
        self.run(*([f"DROP TRIGGER {name}"] for (name,) in triggers), *statements)

    def rows(self):
        return [LedgerRow(*found) for found in self.run([f"SELECT {COLUMNS} FROM rows ORDER BY seq"])]


class PostgresPlace:
    """A ledger in PostgreSQL, with this server's head in a folder."""

    def __init__(self, url, folder, bin_folder, head="head"):
        self.refusals = (driver().Error,)
        self.url, self.folder, self._bin = url, Path(folder), Path(bin_folder)
        self.head = self.folder / head
        self.schema = schema_name("demo")
        self.text = json.dumps([url, str(folder), str(bin_folder), head])

    def create(self, **terms):
        return create_postgres_ledger(
            self.url, **{"name": "demo", "budget": Budget(1), "checkpoint": self.head, **terms}
        )

    def open(self, name="demo", dataset=""):
        return open_postgres_ledger(self.url, name=name, dataset=dataset, checkpoint=self.head)

    def server(self, head):
        """Return the same ledger as another server sees it, which has a head of its own."""
        return PostgresPlace(self.url, self.folder, self._bin, head)

    def other(self, name):
        made = self.server(f"{name}.head")
        made.url = self.url.rpartition("/")[0] + f"/{name}"
        return made.fresh()

    def exchange(self, other):
        other.back_up()
        self.restore()

    def fresh(self):
        """Make the database, empty, and return the place."""
        server, _, database = self.url.rpartition("/")
        _execute(f"{server}/postgres", [f'DROP DATABASE IF EXISTS "{database}"'], [f'CREATE DATABASE "{database}"'])
        return self

    def empty(self):
        """Remove the ledger, and return the place."""
        self.run([f"DROP SCHEMA IF EXISTS {self.schema} CASCADE"])
        return self

    def back_up(self):
        self._program("pg_dump", "--format=custom", f"--schema={self.schema}", f"--file={self.folder / 'dump'}")

    def restore(self):
        self.empty()
        self._program("pg_restore", "--exit-on-error", str(self.folder / "dump"))

    def run(self, *statements):
        """Run statements with (statement, *values), as the superuser; return what the last one found."""
        return _execute(self.url, [f"SET search_path = {self.schema}, pg_catalog"], *statements)

    def tamper(self, *statements):
        """Run statements that no trigger stops, and leave the triggers as they were."""
        guards = [("rows", "rows_follow"), *((table, f"{table}_grow") for table in ("rows", "answers"))]
        off = [[f"ALTER TABLE {table} DISABLE TRIGGER {name}"] for table, name in guards]
        on = [[f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}"] for table, name in guards]
        self.run(*off, *statements, *on)

    def rows(self):
        return [LedgerRow(*found) for found in self.run([f"SELECT {COLUMNS} FROM rows ORDER BY seq"])]

    def _program(self, name, *words):
        command = [str(self._bin / name), f"--dbname={self.url}", *words]
        subprocess.run(command, check=True, capture_output=True, timeout=240)


def _execute(url, *statements):
    with connect(url) as connection:
        for statement, *values in statements:
            done = connection.execute(statement.replace("?", "%s"), values)
        return done.fetchall() if done.description else []


def place_of(kind, request, folder):
    """Return a place of a kind where there is no ledger yet; skip if this machine has no PostgreSQL."""
    if kind == "file":
        return FilePlace(folder / "ledger.sqlite")
    import pytest
    from servers.postgres import binaries

    pytest.importorskip("psycopg")
    cluster = request.getfixturevalue("postgres")
    return PostgresPlace(cluster.url(), folder, binaries()).empty()


def place_at(text):
    """Return the place that a process was told by its text."""
    return PostgresPlace(*json.loads(text)) if text.startswith("[") else FilePlace(text)
