"""Run a suite and record the result in docs/evidence.md.

    python tools/evidence.py SUITE      (test, test-all, slow, mutants, mission, bench)

The suite runs as a whole, with nothing added or left out, and its row on the page is replaced. A run that was
interrupted, or that ran nothing, leaves the page as it was. The exit code is that of the suite.
"""

import argparse
import ast
import datetime as dt
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence.md"
_HEAD = """# Evidence

The latest complete run of each suite. `tools/evidence.py` writes this page at the end of a run, from what the run
itself reported; nothing is entered by hand. A suite without a row has no recorded run. *Commit* ends with `+` if files
had been changed since that commit. *CPU time* is that of the processes the suite started and waited for, in seconds.

In `mutants`, *passed* counts the changes of the code that a test noticed, *failed* those that none did, and *skipped*
the survivors that `tests/slow/mutation_survivors.toml` explains. In `mission` it counts the rows of
[mission.md](mission.md), in `bench` the parts that were measured.

"""
_EARLIER = (
    "`{}`: {} of these changes were tried by earlier runs, and the code of their functions has not changed since "
    "(`tests/slow/mutation_record.json`)."
)
_EARLIER_PATTERN = re.escape(_EARLIER).replace(r"\{\}", r"([\w,-]+)")
_COLUMNS = ("suite", "result", "date", "version", "commit", "passed", "failed", "skipped", "CPU time")


@dataclass(frozen=True)
class Row:
    """One run of a suite."""

    suite: str
    result: str  # passed or failed
    date: str
    version: str
    commit: str
    passed: int
    failed: int
    skipped: int
    seconds: int  # CPU
    reasons: tuple[tuple[str, int], ...]  # why tests were skipped, and how many
    earlier: int = 0  # that earlier runs tried


@dataclass(frozen=True)
class Counts:
    """What a run reported about itself."""

    passed: int
    failed: int
    skipped: Counter[str]
    earlier: int = 0


def of_pytest(words: list[str]) -> Callable[[Path], tuple[list[str], Callable[[str], Counts]]]:
    """Return how to run tests and to read pytest's own report."""

    def prepared(folder: Path) -> tuple[list[str], Callable[[str], Counts]]:
        report = folder / "report.xml"
        return ["-m", "pytest", *words, f"--junitxml={report}"], lambda _: counted(report)

    return prepared


def of_mutants(folder: Path) -> tuple[list[str], Callable[[str], Counts]]:
    """Return how to run all mutants and to read their counts."""
    report = folder / "mutants.json"

    def read(_: str) -> Counts:
        found = json.loads(report.read_text())
        skipped = Counter({"listed survivors": listed} if (listed := found["survived, listed"]) else {})
        failed = found["survived, not listed"] + found["tests that fail without a mutant"]
        return Counts(found["killed"], failed, skipped, found["tried by earlier runs"])

    return ["tools/mutate.py", "--json", str(report)], read


def of_mission(_: Path) -> tuple[list[str], Callable[[str], Counts]]:
    """Return how to measure every goal and to count the rows that it printed."""

    def read(printed: str) -> Counts:
        numbers = re.findall(r"^ {5}(.*?)   \[[\d.]+ CPU s\]$", printed, re.MULTILINE)
        needs = [re.sub(r"\s+", " ", number) for number in numbers if number.startswith("needs data")]
        return Counts(len(numbers) - len(needs), 0, Counter(needs))

    return ["-m", "mission"], read


def of_bench(_: Path) -> tuple[list[str], Callable[[str], Counts]]:
    """Return how to measure speed and accuracy, and to count the parts."""
    text = (ROOT / "bench" / "__main__.py").read_text(encoding="utf-8")
    parts = re.search(r"^PARTS = \((.*?)\)", text, re.MULTILINE | re.DOTALL)
    names = re.findall(r"\w+", parts[1]) if parts else []
    heads = [_first_line(ROOT / "bench" / f"{name}.py") for name in names]
    return ["-m", "bench"], lambda printed: Counts(
        sum(f"\n{head}\n" in printed for head in heads if head), 0, Counter()
    )


SUITES = {
    "test": of_pytest([]),
    "test-all": of_pytest(["-m", "long and not slow"]),
    # A file stays in one process: what it starts, such as Spark, is started once.
    "slow": of_pytest(["-m", "slow", "-n", "2", "--dist", "loadfile"]),
    "mutants": of_mutants,
    "mission": of_mission,
    "bench": of_bench,
}


def counted(report: Path) -> Counts:
    """Return what a report of pytest says."""
    passed = failed = 0
    skipped: Counter[str] = Counter()
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - of a file that pytest wrote
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is not None:
            skipped[_without_places(skip.get("message", ""))] += 1
        else:
            passed += 1
    return Counts(passed, failed, skipped)


def rows(page: str) -> list[Row]:
    """Return what a page says."""
    earlier = {suite: int(count.replace(",", "")) for suite, count in re.findall(_EARLIER_PATTERN, page)}
    reasons: dict[str, list[tuple[str, int]]] = {}
    for suite, count, reason in re.findall(r"^- `([\w-]+)`, (\d+): (.+)$", page, re.MULTILINE):
        reasons.setdefault(suite, []).append((reason, int(count)))
    found = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == len(_COLUMNS):
            suite = cells[0].strip("`")
            numbers = [int(cell.replace(",", "")) for cell in cells[5:]]
            found.append(
                Row(
                    suite,
                    *cells[1:4],
                    cells[4].strip("`"),
                    *numbers,
                    tuple(reasons.get(suite, [])),
                    earlier.get(suite, 0),
                )
            )
    return found


def written(listed: list[Row]) -> str:
    """Return the page that says it."""
    order = list(SUITES)
    listed = sorted(listed, key=lambda row: order.index(row.suite))
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---|---|---|---|---|---:|---:|---:|---:|"]
    for row in listed:
        numbers = " | ".join(f"{number:,}" for number in (row.passed, row.failed, row.skipped, row.seconds))
        lines.append(f"| `{row.suite}` | {row.result} | {row.date} | {row.version} | `{row.commit}` | {numbers} |")
    lines += [line for row in listed if row.earlier for line in ("", _EARLIER.format(row.suite, f"{row.earlier:,}"))]
    skips = [f"- `{row.suite}`, {count}: {reason}" for row in listed for reason, count in row.reasons]
    if skips:
        lines += ["", "## Why tests were skipped", "", *skips]
    return _HEAD + "\n".join(lines) + "\n"


def problems(page: str) -> list[str]:
    """Return what is wrong with a page: a field that is missing or cannot be."""
    found, seen = [], set()
    listed = rows(page)
    if sum(line.startswith("| `") for line in page.splitlines()) != len(listed):
        found.append("a row lacks a column")
    for row in listed:
        fine = {
            "suite": row.suite in SUITES and row.suite not in seen,
            "result": row.result == ("failed" if row.failed else "passed"),
            "date": re.fullmatch(r"\d{4}-\d\d-\d\d", row.date),
            "version": re.fullmatch(r"\d+\.\d+\.\d+\S*", row.version),
            "commit": re.fullmatch(r"[0-9a-f]{7,40}\+?|unknown", row.commit),
            "passed": row.passed + row.failed > 0,
            "failed": row.failed >= 0,
            "skipped": row.skipped == sum(count for _, count in row.reasons),
            "seconds": row.seconds > 0,
            "earlier": 0 <= row.earlier <= row.passed + row.failed + row.skipped,
            "reasons": all(reason.strip() and "/home/" not in reason for reason, _ in row.reasons),
        }
        assert set(fine) == {field.name for field in fields(Row)}
        found += [f"{row.suite}: {name}" for name, good in fine.items() if not good]
        seen.add(row.suite)
    return found


def record(suite: str, counts: Counts, seconds: float, page: Path = PAGE) -> None:
    """Replace the row of a suite."""
    row = Row(
        suite,
        "failed" if counts.failed else "passed",
        dt.datetime.now(dt.UTC).date().isoformat(),
        _version(),
        _commit(),
        counts.passed,
        counts.failed,
        sum(counts.skipped.values()),
        max(1, round(seconds)),
        tuple(sorted(counts.skipped.items())),
        counts.earlier,
    )
    old = rows(page.read_text(encoding="utf-8")) if page.exists() else []
    page.write_text(written([*(each for each in old if each.suite != suite), row]), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run a suite and record it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("suite", choices=list(SUITES))
    suite = parser.parse_args(arguments).suite
    if suite == "slow":
        _tell_of_spark()
    with tempfile.TemporaryDirectory() as folder:
        words, read = SUITES[suite](Path(folder))
        before = _cpu()
        code, printed = _run([sys.executable, *words])
        seconds = _cpu() - before
        if code not in (0, 1):
            print(f"{suite} did not run to its end (exit code {code}): nothing is recorded")
            return code
        try:
            counts = read(printed)
        except OSError as error:
            print(f"{suite} left no report ({error.strerror}): nothing is recorded")
            return code or 1
    if code and not counts.failed:
        counts = replace(counts, failed=1)  # it says that it failed, if not where
    if not counts.passed + counts.failed:
        print(f"{suite} ran nothing: nothing is recorded")
        return code or 1
    record(suite, counts, seconds)
    print(f"recorded in docs/{PAGE.name}: {counts.passed} passed, {counts.failed} failed, {seconds:.0f} CPU s")
    return code


def _run(command: list[str]) -> tuple[int, str]:
    """Run a command; show what it prints while it runs, and return that too."""
    lines = []
    process = subprocess.Popen(  # noqa: S603 - our own
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def _tell_of_spark() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from servers.spark import no_spark  # noqa: PLC0415 - beside the tests

    reason = no_spark()
    if reason:
        print(f"Tests with real Spark will be skipped: {reason}.")
        print("To get it: install Java 17 and run `python -m bench.peers.spark` (500 MB).", flush=True)


def _without_places(text: str) -> str:
    """Return a reason in one line and without paths of this machine."""
    text = re.sub(r"(?<![\w.:/])/(?:[\w.+-]+/)*([\w.+-]+)", r"\1", text)
    return re.sub(r"\s+", " ", text).strip() or "no reason given"


def _version() -> str:
    text = (ROOT / "src" / "discreet" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)
    return found[1] if found else "unknown"


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603, S607

    try:
        written = (
            f"docs/{PAGE.name}",
            "docs/mission.md",
            "tests/slow/mutation_record.json",
        )  # by the suites themselves
        outputs = (f":!{file}" for file in written)
        changed = git("status", "--porcelain", "--", ".", *outputs)
        return git("rev-parse", "--short=10", "HEAD").strip() + ("+" if changed.strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"  # not a checkout


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n", 1)[0]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
