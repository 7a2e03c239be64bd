"""Run tests against mutants: in copies of one process that has everything loaded, and, where that is not enough, anew.

A pytest session collects the tests once and runs none of them itself. For each mutant it forks; the child puts the
changed code into the loaded function and runs the tests that call this function, the nearest and quickest first, until
one fails. What is computed while modules are loaded stays as it was in such a child, so a mutant that it lets pass, or
one of a statement that only runs then, is put to the same tests once more in a new process with a changed copy of the
project. Which test calls which function is recorded beforehand, with nothing changed.
"""

import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mutate_edits import Module, Mutant

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / ".mutants"
CAP = 3.0  # CPU seconds of tests, beyond those named after the module, that a mutant is put to
NEAR = 5.0  # and of those named after it or in the first file; those that the claim names are always run
PATIENCE = 4  # times the CPU seconds of a test: a mutant that takes more, and five seconds, is noticed
_MEMORY = 12 << 30  # bytes of addresses: a mutant that drops a bound must not take the machine with it
# Signals that code under test does not send itself: whoever sent one stopped the run, and no test noticed anything.
_FROM_OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_STILL = 300  # seconds without any progress: it waits for something that never comes
_LOADED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
_OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-s", "-m", "not slow")


@dataclass(frozen=True)
class Timed:
    """A test, its CPU seconds and the functions of the scope that it calls."""

    id: str
    seconds: float
    calls: frozenset[tuple[str, str]]  # module and qualified name


@dataclass(frozen=True)
class Outcome:
    """What the tests said to a mutant: the first that failed or why it ended; None if it survived."""

    mutant: Mutant
    found_by: str | None
    seconds: float  # CPU


class Runner:
    """Runs mutants of modules against tests; a plugin of the pytest session that holds the tests."""

    def __init__(
        self, modules: dict[str, Module], files_of: Callable[[str], list[str]], work: Callable[["Runner"], None]
    ) -> None:
        self.modules = modules
        self._files_of = functools.cache(files_of)
        self._by_file = {str(module.path): name for name, module in modules.items()}
        self._work = work
        self._items: dict[str, Any] = {}
        self._tests: dict[str, list[Timed]] = {}  # by file, of those that were recorded
        self._live: dict[tuple[str, str, int], list[types.FunctionType]] = {}
        self._caches: list[Any] = []
        self._early: set[types.CodeType] = set()  # called while tests are loaded
        self.broken: list[str] = []
        self._failed: str | None = None
        self._passed = False
        self._running: Timed | None = None  # with a mutant
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._folder.chmod(0o755)  # PostgreSQL runs as somebody else if this process is root's
        self._copy: Path | None = None
        self._fresh = Fresh(self._folder)

    # The session.

    def serve(self, files: Iterable[str]) -> None:
        """Collect the tests of files, do the work and remove what it left."""
        os.chdir(ROOT)
        try:
            sys.settrace(_tracer(self._early))
            code = pytest.main([*_OPTIONS, *files], plugins=[self])
            if code != 0:
                raise RuntimeError(f"pytest ended with {code!r}: the tests cannot be collected")
        finally:
            self._fresh.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do the work instead of running the tests."""
        sys.settrace(None)
        import discreet  # noqa: PLC0415 - the one that the tests have loaded

        if not Path(discreet.__file__).is_relative_to(ROOT):
            raise RuntimeError(f"tests load another discreet: {discreet.__file__}")
        self._items = {item.nodeid: item for item in session.items}
        self._prepare_clusters()
        _load_libraries()
        gc.unfreeze()  # tests may have frozen what they loaded, and frozen objects are not listed
        self._find_functions()
        gc.collect()
        gc.freeze()
        self._work(self)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        """Limit the CPU seconds of a test of a mutant; this runs in children."""
        if self._running:
            _limited(int(time.process_time() + PATIENCE * self._running.seconds) + 5)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down how the running test ended; this runs in children."""
        if report.failed and self._failed is None:
            self._failed = report.nodeid
        if report.when == "call" and report.passed:
            self._passed = True

    def _find_functions(self) -> None:
        cached = type(functools.cache(len))
        for each in gc.get_objects():
            if isinstance(each, types.FunctionType) and each.__code__.co_filename in self._by_file:
                self._live.setdefault(self._place(each.__code__), []).append(each)
            elif isinstance(each, cached) and (each.__module__ or "").startswith("discreet"):
                self._caches.append(each)

    def _place(self, code: types.CodeType) -> tuple[str, str, int]:
        return self._by_file[code.co_filename], code.co_qualname, code.co_firstlineno

    def _prepare_clusters(self) -> None:
        """Let a new PostgreSQL be a copy of one that is ready: to make one takes longer than most tests."""
        from servers import postgres  # noqa: PLC0415 - beside the tests

        if postgres.binaries() is None:
            return
        ready = postgres.Cluster()
        # Ports and folders are written after this step.
        entries = (ready.folder / "data" / "postgresql.conf").read_text().split("\nlisten_addresses", 1)[0]
        (ready.folder / "data" / "postgresql.conf").write_text(entries + "\n")
        template = self._folder / "cluster"
        shutil.move(ready.folder, template)
        run = postgres.Cluster._run  # noqa: SLF001

        def copied(cluster: Any, program: str, *words: str) -> None:
            if program == "initdb":
                subprocess.run(["cp", "-a", str(template / "data"), words[1]], check=True)  # noqa: S603, S607
            else:
                run(cluster, program, *words)

        postgres.Cluster._run = copied  # noqa: SLF001

    # Which test calls what.

    @functools.cached_property
    def _beside(self) -> str:
        """Return a hash of what tests share."""
        return _hash(p for p in ROOT.glob("tests/**/*.py") if not p.name.startswith("test_"))

    def _recorded(self, name: str) -> list[Timed]:
        """Return the tests of a file that pass: recorded when needed, and again if code that they run changes."""
        if name not in self._tests:
            STORE.mkdir(exist_ok=True)
            items = [item for item in self._items.values() if item.nodeid.split("::")[0] == name]
            key = _hash([ROOT / name]) + self._beside
            stored = STORE / f"{name.replace('/', '_')}.json"
            known = json.loads(stored.read_text()) if stored.exists() else {}
            if known.get("key") != key or any(self._code_of(name) != was for name, was in known["runs"].items()):
                began = _cpu()
                lines, ended = self._forked(lambda tell: self._traced(items, tell), 3600)
                if ended:
                    raise RuntimeError(f"{name} did not end without any mutant: {ended}")
                runs = {name for line in lines for name in line.pop("runs")}
                known = {"key": key, "tests": lines, "runs": {name: self._code_of(name) for name in sorted(runs)}}
                stored.write_text(json.dumps(known))
                print(f"    {name}: {len(lines)} tests, {_cpu() - began:.0f} s", flush=True)
            self.broken += [line["id"] for line in known["tests"] if line["failed"]]
            self._tests[name] = [
                Timed(line["id"], line["seconds"], frozenset(map(tuple, line["calls"])))
                for line in known["tests"]
                if line["passed"] and not line["failed"] and line["id"] in self._items
            ]
        return self._tests[name]

    def _code_of(self, name: str) -> str:
        """Return a hash of a function of the scope, of all outside of functions, or of a file that is not in scope."""
        module, _, function = name.partition(" ")
        if not function:
            return _hash([ROOT / name]) if (ROOT / name).exists() else ""
        return self.modules[module].digests.get(function.split(".<")[0], "") if module in self.modules else ""

    def _traced(self, items: list[Any], tell: Callable[[Any], None]) -> None:
        seen: set[types.CodeType] = set()
        trace = _tracer(seen)
        threading.settrace(trace)
        for item, following in zip(items, [*items[1:], None], strict=False):
            seen.clear()
            self._failed, self._passed = None, False
            began = _cpu()
            sys.settrace(trace)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.settrace(None)
            seconds = round(_cpu() - began, 3)
            line = {"id": item.nodeid, "seconds": seconds, "failed": self._failed is not None, "passed": self._passed}
            calls = {self._place(code)[:2] for code in seen if code.co_filename in self._by_file}
            files = {os.path.relpath(c.co_filename, ROOT) for c in seen if c.co_filename not in self._by_file}
            tell(line | {"calls": sorted(calls), "runs": [*files, *(f"{module} {name}" for module, name in calls)]})

    # One mutant.

    def is_early(self, mutant: Mutant) -> bool:
        """Tell whether a change in place comes too late: the code runs, or may run, while modules are loaded."""
        if mutant.place is None or any(self._is_at(code, mutant) for code in self._early):
            return True
        # Code with other variables of the scope around it cannot be put into a function that exists.
        closure = _code_at(self.modules[mutant.module].compiled(mutant), mutant.place).co_freevars
        return any(f.__code__.co_freevars != closure for f in self._live.get((mutant.module, *mutant.place), []))

    def _is_at(self, code: types.CodeType, mutant: Mutant) -> bool:
        return code.co_filename in self._by_file and self._place(code) == (mutant.module, *(mutant.place or ()))

    def tests_for(self, mutant: Mutant) -> list[Timed]:
        """Return the tests of a mutant: those that its claim names, those named after its module, then the quickest."""
        module, tests = mutant.module, [t for file in self._files_of(mutant.module) for t in self._recorded(file)]
        # Inner functions have names of their own, and need not be called where the outer one is.
        place = (module, mutant.place[0]) if mutant.place else None
        first = next((file for file in self._files_of(module) if file.startswith("tests/")), module)
        callers = [t for t in tests if place in t.calls]
        if not self.modules[module].digests:  # nothing in it can be called
            callers = tests
        elif not callers:  # It runs while modules are loaded: a test may use what it made and call nothing of it.
            callers = [t for t in tests if t.id.startswith(first) or any(call[0] == module for call in t.calls)]
        words = [word for word in module.split("/")[-2:] if word not in ("kernel", "engines", "rows", "postgres")]
        claim = self.modules[module].tests_of_claim(mutant.place[0]) if mutant.place else frozenset()
        named = [t for t in callers if t.id.rpartition("::")[2].split("[")[0] in claim]
        near = [t for t in callers if t not in named and (t.id.startswith(first) or _is_named(t, words))]
        others = [t for t in callers if t not in named and t not in near]
        quickest = [sorted(tests, key=lambda t: t.seconds) for tests in (named, near, others)]
        return [*quickest[0], *_within(quickest[1], NEAR), *_within(quickest[2], CAP)]

    def in_place(self, mutant: Mutant) -> Outcome:
        """Return what the tests say to a mutant of a function, in a copy of this process."""
        began = _cpu()
        place = (mutant.module, mutant.place[0] if mutant.place else "")
        tests = [test for test in self.tests_for(mutant) if place in test.calls]
        lines, ended = self._forked(lambda tell: self._changed(mutant, tests, tell), _limit_of(tests))
        found = ended or next((line["failed"] for line in lines if line["failed"]), None)
        return Outcome(mutant, found, _cpu() - began)

    def anew(self, mutant: Mutant) -> Outcome:
        """Return what the tests say to a mutant in a new process, on a copy of the project in which it is made."""
        tests = self.tests_for(mutant)
        copy = self._copied()
        module = self.modules[mutant.module]
        path = copy / module.path.relative_to(ROOT)
        listed = copy / "tests.txt"
        listed.write_text("\n".join(test.id for test in tests))
        path.unlink()
        path.write_text(module.source(mutant), encoding="utf-8")
        try:
            words = ["-x", "-W", _LOADED, *_OPTIONS, f"@{listed}"]
            found, seconds = self._fresh.run(copy, words, _limit_of(tests) + 20) if tests else (None, 0.0)
        finally:
            shutil.copy2(module.path, path)
        return Outcome(mutant, found, seconds)

    def _changed(self, mutant: Mutant, tests: list[Timed], tell: Callable[[Any], None]) -> None:
        assert mutant.place is not None
        code = _code_at(self.modules[mutant.module].compiled(mutant), mutant.place)
        functions = self._live.get((mutant.module, *mutant.place), [])
        if tests and not functions:
            raise RuntimeError(f"{mutant.place} is called by tests and cannot be found: nothing would be changed")
        for function in functions:
            with contextlib.suppress(ValueError):  # another closure: see is_early
                function.__code__ = code
        for cache in self._caches:
            cache.cache_clear()
        items = [self._items[test.id] for test in tests]
        for test, item, following in zip(tests, items, [*items[1:], None], strict=False):
            self._running = test
            _limited(int(time.process_time()) + _limit_of(tests))  # while fixtures are set up that tests share
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                tell({"failed": self._failed})
                return

    def _copied(self) -> Path:
        if self._copy is None:
            self._copy = self._folder / "copy"
            for name in ("src", "tests", "docs", "tools"):
                shutil.copytree(ROOT / name, self._copy / name)  # with the byte code: times of files are kept
            shutil.copy2(ROOT / "pyproject.toml", self._copy)
        return self._copy

    def _forked(self, do: Callable[[Callable[[Any], None]], None], limit: int) -> tuple[list[Any], str | None]:
        """Do something in a child; return the lines that it told, and why it ended if not by itself."""
        folder = Path(tempfile.mkdtemp(prefix="child-", dir=self._folder))
        folder.chmod(0o755)
        told = folder / "told"
        child = os.fork()
        if child == 0:
            self._in_child(folder, told, limit, do)
        try:
            ended = _waited(child)
        finally:
            _stop_servers(folder)
        if (folder / "error").exists():
            raise RuntimeError((folder / "error").read_text())
        lines = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
        shutil.rmtree(folder, ignore_errors=True)
        return lines, ended

    def _in_child(
        self, folder: Path, told: Path, limit: int, do: Callable[[Callable[[Any], None]], None]
    ) -> None:  # it never returns
        code = 70
        try:
            os.setsid()
            _limited(limit)
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
            tempfile.tempdir = str(folder)
            os.environ["TMPDIR"] = str(folder)
            with told.open("a") as file:

                def tell(line: Any) -> None:
                    file.write(json.dumps(line) + "\n")
                    file.flush()

                do(tell)
                code = 0
            session = next(iter(self._items.values())).session
            with contextlib.suppress(BaseException):
                session._setupstate.teardown_exact(None)  # noqa: SLF001
        except BaseException:
            (folder / "error").write_text(traceback.format_exc())
            raise
        finally:
            os._exit(code)


def _tracer(seen: set[types.CodeType]) -> Callable[[types.FrameType, str, object], None]:
    """Return a trace function that adds the code of the package that is called."""
    package = str(ROOT / "src")

    def trace(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            seen.add(frame.f_code)

    return trace


def _code_at(code: types.CodeType, place: tuple[str, int]) -> types.CodeType:
    """Return the code of the function with this qualified name and first line."""
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            if (each.co_qualname, each.co_firstlineno) == place:
                return each
            if place[0].startswith(each.co_qualname + "."):
                with contextlib.suppress(LookupError):
                    return _code_at(each, place)
    raise LookupError(f"no function {place}")


def _is_named(test: Timed, words: list[str]) -> bool:
    return any(word in test.id.split("::")[0] for word in words)


def _within(tests: list[Timed], seconds: float) -> Iterator[Timed]:
    for test in tests:
        seconds -= test.seconds
        if seconds < 0:
            return
        yield test


def _limit_of(tests: list[Timed]) -> int:
    return 20 + PATIENCE * int(sum(test.seconds for test in tests))


def _limited(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _waited(child: int) -> str | None:
    """Wait for a child; return why it ended unless it says that all went well. One that was stopped has no outcome."""
    used, since, pause = -1.0, time.monotonic(), 0.001
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(pause)
        pause = min(0.05, 2 * pause)
        if time.monotonic() - since > _STILL:
            now = _seconds_of(child)
            if now - used < 0.05:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "it waits for ever"
            used, since = now, time.monotonic()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what it has started
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) in _FROM_OUTSIDE:
            raise RuntimeError(f"the tests were stopped by signal {os.WTERMSIG(status)}")
        return "no end: the CPU limit" if os.WTERMSIG(status) == signal.SIGXCPU else f"signal {os.WTERMSIG(status)}"
    return None if os.WEXITSTATUS(status) == 0 else f"exit code {os.WEXITSTATUS(status)}"


class Fresh:
    """A process that has loaded what the project uses and nothing of the project; copies of it run pytest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        words = [sys.executable, __file__]
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # byte code of a mutant could be taken for another's
        self._process = subprocess.Popen(  # noqa: S603 - this file
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, copy: Path, words: list[str], limit: int) -> tuple[str | None, float]:
        """Run pytest in a copy of the project; return the first test that failed, or why it ended, and CPU seconds."""
        scratch = Path(tempfile.mkdtemp(prefix="anew-", dir=self._folder))
        scratch.chmod(0o755)
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps([str(copy), str(scratch), words, limit]) + "\n")
            self._process.stdin.flush()
            ended, seconds = json.loads(self._process.stdout.readline())
            text = (scratch / "printed").read_text(errors="replace")
        finally:
            _stop_servers(scratch)
            shutil.rmtree(scratch, ignore_errors=True)
        if ended in (None, "exit code 5"):
            return None, seconds
        if ended == "exit code 4" and "while loading conftest" in text:
            return "the package cannot be loaded", seconds
        if ended == "exit code 4" and "found no collectors" in text:
            return "the tests cannot be loaded", seconds
        if ended in ("exit code 4", "exit code 70"):
            raise RuntimeError(f"pytest could not run: {text[-2000:]}")
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else str(ended), seconds

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _load_libraries() -> None:
    """Load what tests would load in every copy of this process: pandas alone takes longer than most tests."""
    names = "hypothesis numpy scipy.stats pandas pyarrow.compute pyarrow.parquet duckdb psycopg sqlglot cryptography"
    for name in names.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _serve_fresh() -> None:
    """Read jobs from standard input, and write how each ended."""
    _load_libraries()
    if "discreet" in sys.modules:
        raise RuntimeError("discreet is loaded already")
    for line in sys.stdin:
        copy, scratch, words, limit = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.setsid()
                _limited(limit)
                with (Path(scratch) / "printed").open("wb") as out:
                    os.dup2(out.fileno(), 1)
                    os.dup2(out.fileno(), 2)
                tempfile.tempdir = os.environ["TMPDIR"] = scratch
                os.environ["PYTHONPATH"] = f"{copy}/src"
                sys.path[:] = [copy, f"{copy}/src", *(each for each in sys.path if each != str(ROOT / "src"))]
                os.chdir(copy)
                code = int(pytest.main(words))
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                raise
            finally:
                os._exit(code)
        before = _cpu()
        print(json.dumps([_waited(child), _cpu() - before]), flush=True)


def _stop_servers(folder: Path) -> None:
    """End the PostgreSQL servers that a child has left behind: they are in sessions of their own."""
    for file in folder.glob("**/data/postmaster.pid"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            process = int(file.read_text().split()[0])
            # The file of a server that was killed may name a number that is somebody else's by now.
            if str(file.parent).encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                os.kill(process, signal.SIGQUIT)


def _seconds_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()  # without /proc nobody can tell: as if it went on
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _cpu() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def _hash(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


if __name__ == "__main__":
    _serve_fresh()
