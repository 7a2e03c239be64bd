"""A private PostgreSQL server for tests, on a free loopback port, not run as root, and removed at the end."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 60
shared_buffers = '64MB'
timezone = 'Europe/Berlin'
log_min_messages = warning
"""
_ENTRIES = """
local all all trust
host all all 127.0.0.1/32 trust
"""


def binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, the newest if there are several; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    where = found[-1] if found else shutil.which("initdb")
    return Path(where).resolve().parent if where else None


class Cluster:
    """A server with its own folder; `url()` leads to a database of it as its superuser, or as another role."""

    def __init__(self) -> None:
        found = binaries()
        if found is None:
            raise RuntimeError("PostgreSQL is not installed (Debian: apt install postgresql)")
        self._bin = found
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
        self.port = _free_port()
        self._run_as = "postgres" if os.getuid() == 0 else None
        if self._run_as:
            owner = pwd.getpwnam(self._run_as)
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust")
        self._write("postgresql.conf", _SETTINGS.format(port=self.port, folder=self.folder), append=True)
        self._write("pg_hba.conf", _ENTRIES)

    def start(self) -> "Cluster":
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", "start")
        return self

    def restart(self, how: str = "fast") -> None:
        """Stop the server (fast: backends are ended; immediate: like a crash) and start it again."""
        self.halt(how)
        self.start()

    def halt(self, how: str = "fast") -> None:
        """Stop the server, and keep its folder.

        A checkpoint comes before a crash: else the next start would do again all that other tests have written.
        """
        import psycopg

        if how == "immediate":
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.url(), autocommit=True) as connection:
                connection.execute("CHECKPOINT")
        self._stop(how)

    def _stop(self, how: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", how, "-w", "stop")

    def pid(self) -> int:
        """Return the id of the server's first process."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """End the server's first process at once, as a lack of memory would."""
        os.kill(self.pid(), signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server, if it runs, and remove everything."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return where a database is."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def configure(self, text: str) -> None:
        """Add lines to the server's settings; they count from the next start."""
        self._write("postgresql.conf", f"\n{text}\n", append=True)

    def _write(self, name: str, text: str, *, append: bool = False) -> None:
        path = self.folder / "data" / name
        path.write_text((path.read_text() if append else "") + text)

    def _run(self, program: str, *words: str) -> None:
        before = ["runuser", "-u", self._run_as, "--"] if self._run_as else []
        # pg_ctl's child keeps what it inherits open: a pipe would never end.
        with tempfile.TemporaryFile() as said:
            command = [*before, str(self._bin / program), *words]
            environment = {**os.environ, "PGCTLTIMEOUT": "600"}  # a busy machine may need minutes
            done = subprocess.run(
                command, cwd="/", env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL, check=False
            )
            if done.returncode:
                said.seek(0)
                raise subprocess.CalledProcessError(done.returncode, program, said.read().decode(errors="replace"))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
