"""Private Spark Connect servers for tests and benchmarks: on loopback, with free ports, and gone at the end.

`sail()` needs no Java and starts within a second. `spark_local()` is Spark itself in one process, `spark_cluster()` a
master, workers and a server that runs on them; both need Java and what `python -m bench.peers.spark` installs.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Self
from unittest import mock

HERE = Path(__file__).resolve().parents[2] / ".peers" / "spark"
SECONDS = 120  # until a server must have started
# Ends a process when its own input ends, which it does however this process ends; nobody else may be there to clean up.
_WATCH = """
import os, shutil, subprocess, sys, threading
process, ended = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL), []
threading.Thread(target=lambda: (ended.append(sys.stdin.read()), process.terminate()), daemon=True).start()
code = process.wait()
if ended:
    shutil.rmtree(os.getcwd(), ignore_errors=True)
sys.exit(code)
"""
_SAIL = """
import signal
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start()
print(f"Sail started at: 127.0.0.1:{server.listening_address[1]}", flush=True)
signal.pause()
"""


def no_sail() -> str | None:
    """Return why Sail cannot be started here; None if it can."""
    return _missing("pysail", "pysail") or _missing("pyspark", "pyspark-client")


def no_spark() -> str | None:
    """Return why Spark cannot be started here; None if it can."""
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{java}/bin" if java else None) is None:
        return "Java is not installed (Debian: apt install openjdk-17-jre-headless)"
    if _home() is None:
        return "Spark is not installed (python -m bench.peers.spark)"
    return _missing("pyspark", "pyspark-client")


class Server:
    """Processes that answer at `url`, and their folder; used as a context it is stopped at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-spark-"))
        self.url = ""
        self._started: list[subprocess.Popen[bytes]] = []

    def run(self, words: list[str], ready: str, env: dict[str, str] | None = None) -> str:
        """Start a process, wait until it says that it is ready, and return what the pattern finds there."""
        return self.heard(self.begin(words, env), ready)

    def begin(self, words: list[str], env: dict[str, str] | None = None) -> int:
        """Start a process, and return its place among those of this server."""
        with self._log(len(self._started)).open("wb") as said:
            # A session of its own: all that the process starts can be found by it.
            process = subprocess.Popen(
                [sys.executable, "-S", "-c", _WATCH, *words],
                cwd=self.folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._started.append(process)
        return len(self._started) - 1

    def heard(self, place: int, ready: str) -> str:
        """Wait until a process says that it is ready, and return what the pattern finds there."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            ended = self._started[place].poll() is not None
            found = re.search(ready, self._log(place).read_text(errors="replace"))
            if found:
                return found[1]
            if ended:
                break
            time.sleep(0.02)
        lines = self._log(place).read_text(errors="replace").splitlines()
        last = "\n".join([line for line in lines if not line.startswith("\tat ")][-12:])
        raise RuntimeError(f"a server did not start within {SECONDS} s, or ended. Its last words:\n{last}")

    def processes(self, words: str = "") -> list[int]:
        """Return the ids of what runs for this server and has these words in its command line."""
        sessions, found = {process.pid for process in self._started}, []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                _, _, stat = (place / "stat").read_text().rpartition(")")
                state, session = stat.split()[0], int(stat.split()[3])
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if session in sessions and int(place.name) != session and state != "Z" and words in command:
                    found.append(int(place.name))
        return sorted(found)

    def kill(self, words: str = "") -> list[int]:
        """End what has these words in its command line at once, as a lack of memory would; return the ids."""
        found = self.processes(words)
        for each in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        return found

    def stop(self) -> None:
        """End all processes, the last started first, and remove everything; stopping twice does nothing."""
        for process in reversed(self._started):
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        self.kill()
        for process in self._started:
            process.wait()
        self._started.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self, place: int) -> Path:
        return self.folder / f"{place}.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def sail() -> Server:
    """Start Sail, which speaks Spark's protocol and most of its SQL."""
    server = Server()
    with _stopped_if_it_fails(server):
        server.url = "sc://" + server.run([sys.executable, "-c", _SAIL], r"Sail started at: (\S+)\n")
    return server


def spark_local(memory: str = "1g", cores: int = 2, **settings: str) -> Server:
    """Start Spark in one process; settings are Spark's own, with two underscores for each dot."""
    server = Server()
    with _stopped_if_it_fails(server):
        _connect(server, f"local[{cores}]", memory, settings)
    return server


def spark_cluster(workers: int = 2, memory: str = "512m", **settings: str) -> Server:
    """Start a master, workers with one core and one executor each, and a server that runs on them."""
    server = Server()
    with _stopped_if_it_fails(server):
        master = server.heard(_daemon(server, "master.Master", []), r"Starting Spark master at (spark://\S+)\n")
        offered = ["--cores", "1", "--memory", "4g"]  # an offer: executors take what they ask for
        folders = [str(server.folder / f"worker{place}") for place in range(workers)]
        started = [_daemon(server, "worker.Worker", [*offered, "--work-dir", folder, master]) for folder in folders]
        apart = {"spark.executor.memory": memory, "spark.executor.cores": "1", "spark.cores.max": str(workers)}
        _connect(server, master, "768m", settings, apart)
        for place in started:
            server.heard(place, r"(Successfully registered) with master")
    return server


@contextlib.contextmanager
def session(url: str):
    """Give a session of its own, and end it."""
    # The client takes a program without a file for a test of its own, and ends it: python -c, or a worker of pytest.
    with warnings.catch_warnings(), mock.patch.object(sys.modules["__main__"], "__file__", "-c", create=True):
        warnings.simplefilter("ignore", FutureWarning)  # about pandas 3, which nothing here uses
        from pyspark.sql.connect.session import SparkSession
    opened = SparkSession(connection=url)  # not by the builder, which would give it to others too
    try:
        yield opened
    finally:
        opened.stop()


def _connect(server, master, memory, settings, apart=None):
    """Start Spark's own server: nothing of it can be reached from elsewhere, and its files are in its folder."""
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.session.connectML.mlCache.memoryControl.enabled": "false",  # else a folder for every session
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(server.folder / "warehouse"),
        "spark.ui.enabled": "false",
        **(apart or {}),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    words = [str(_home() / "bin" / "spark-submit"), "--master", master]
    words += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    server.url = "sc://" + server.run(words, r"Connect server started at: (\S+)\n", _env(server))


def _daemon(server, name, words):
    command = [str(_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
    env = _env(server) | {
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # they have little to do
        "SPARK_DAEMON_MEMORY": "256m",
        # The master would listen for jobs at a second port, the same for every master.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    return server.begin([*command, "--port", "0", "--webui-port", "0", *words], env)


def _env(server):
    """Return what Spark's processes see: this Python for functions that run on them, and no settings of elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not re.match("SPARK|PYSPARK|PYTHON", name)}
    return {
        **kept,
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={server.folder} -XX:-UsePerfData",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(_home()),
        "SPARK_LOCAL_DIRS": str(server.folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _home() -> Path | None:
    found = list(HERE.glob("lib/python*/site-packages/pyspark/bin/spark-submit")) if (HERE / ".ready").exists() else []
    return found[0].parent.parent if found else None


def _missing(module: str, package: str) -> str | None:
    return None if importlib.util.find_spec(module) else f"{package} is not installed (pip install {package})"


@contextlib.contextmanager
def _stopped_if_it_fails(server):
    try:
        yield
    except BaseException:
        server.stop()
        raise
