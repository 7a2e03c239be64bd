"""Change one thing in the trusted base at a time, and see whether the tests notice.

    python tools/mutate.py [MODULE ...] [--sample N] [--seed TEXT] [--list] [--again] [--json FILE]

MODULE is a name such as kernel/loss, or the beginning of several (kernel/ledger); without one, all of them. A run
continues where the last one ended: outcomes are kept in .mutants, by the code of the function and the change, and only
survivors that are not listed are tried again. A function of which every mutant was tried is entered into
tests/slow/mutation_record.json, and is not tried again anywhere until it changes. A survivor that
tests/slow/mutation_survivors.toml does not list makes it end with 1.
The tests of seals are not among those run: they would notice any change, whatever it means.
"""

import argparse
import json
import os
import random
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is loaded
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import mutation_record  # noqa: E402
from mutate_edits import Module, Mutant  # noqa: E402
from trusted_base import TRUSTED_BASE, source_files  # noqa: E402

SOURCE = ROOT / "src" / "discreet"
SURVIVORS = ROOT / "tests" / "slow" / "mutation_survivors.toml"
TESTS = ROOT / "tests" / "slow" / "mutation_tests.toml"
RESULTS = ROOT / ".mutants" / "results.jsonl"


@dataclass(frozen=True)
class Known:
    """A listed survivor and the reason; without `after` any of the statement, without `before` any of the function."""

    module: str
    function: str
    reason: str
    before: str = ""
    after: str = ""
    nth: int = 1

    def is_of(self, mutant: Mutant) -> bool:
        """Tell whether this is the entry of a mutant."""
        if (self.module, self.function) != (mutant.module, mutant.function):
            return False
        if not self.before or not self.after:
            return self.before in ("", mutant.before)
        return (self.before, self.after, self.nth) == (mutant.before, mutant.after, mutant.nth)


def modules() -> dict[str, Module]:
    """Return the modules of the trusted base by name."""
    return {name: Module(path, name) for name, path in source_files(TRUSTED_BASE, ROOT).items()}


def survivors(path: Path = SURVIVORS) -> list[Known]:
    """Return the listed survivors."""
    return [Known(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])]


def lister(known: list[Known]) -> Callable[[Mutant], bool]:
    """Return a function that tells whether a mutant may survive."""
    of_function: dict[tuple[str, str], list[Known]] = {}
    for entry in known:
        of_function.setdefault((entry.module, entry.function), []).append(entry)
    return lambda mutant: any(entry.is_of(mutant) for entry in of_function.get((mutant.module, mutant.function), ()))


def stale(known: list[Known], found: dict[str, Module]) -> list[Known]:
    """Return the entries whose mutant cannot be made any more."""
    return [
        entry
        for entry in known
        if entry.module not in found or not any(entry.is_of(mutant) for mutant in found[entry.module].mutants)
    ]


def results() -> dict[str, str | None]:
    """Return what killed each mutant that was tried, by its key; None if nothing did."""
    return dict(map(json.loads, RESULTS.read_text().splitlines())) if RESULTS.exists() else {}


def tests_of(module: str) -> list[str]:
    """Return the files with the tests of a module, and the module itself if there are examples in it."""
    tests = tomllib.loads(TESTS.read_text(encoding="utf-8"))
    name = max((name for name in tests if module.startswith(name)), key=len)
    examples = [f"src/discreet/{module}.py"] if ">>> " in (SOURCE / f"{module}.py").read_text(encoding="utf-8") else []
    return [*examples, *(f"tests/{file}.py" for file in tests[name])]


def main(arguments: list[str]) -> int:
    """Run what the command line names and return 1 if a mutant survived that is not listed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random from all; without it, all")
    parser.add_argument("--seed", help="of the sample; a new one if it is left out")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--again", action="store_true", help="try mutants again that were tried before")
    parser.add_argument("--json", type=Path, help="where to write the counts")
    asked = parser.parse_args(arguments)
    every = modules()
    scope = {name: m for name, m in every.items() if not asked.modules or name.startswith(tuple(asked.modules))}
    chosen = [mutant for module in scope.values() for mutant in module.mutants]
    if asked.sample is not None:
        seed = asked.seed or os.urandom(4).hex()
        print(f"seed {seed} (to repeat it: --seed {seed})", flush=True)
        chosen = random.Random(seed).sample(chosen, min(asked.sample, len(chosen)))  # noqa: S311 - a sample of tests
    if asked.list:
        print(*(f"{SOURCE / mutant.module}.py:{mutant.line} {mutant.name}" for mutant in chosen), sep="\n")
        print(f"{len(chosen)} mutants")
        return 0
    return _run(every, chosen, asked)


class Run:
    """Mutants that are tried one after the other, and what became of them."""

    def __init__(self, chosen: list[Mutant], *, again: bool = False) -> None:
        self.lists = lister(survivors())
        stored = results()
        done = {} if again else stored
        settled = {} if again else mutation_record.current(mutation_record.read(), chosen, self.lists)
        self.recorded = list({id(entry): entry for entry in settled.values()}.values())
        self.chosen = chosen
        left = [mutant for mutant in chosen if mutant.key not in settled]
        # A listed survivor is tried once: a second time tells nothing.
        self.survived = [mutant for mutant in left if done.get(mutant.key, "") is None and self.lists(mutant)]
        self.todo = [mutant for mutant in left if not done.get(mutant.key) and mutant not in self.survived]
        self.todo.sort(key=lambda mutant: mutant.key in stored)  # survivors of earlier runs last
        self.broken: list[str] = []

    def work(self, runner: Any) -> None:
        """Try the mutants with the tests that a runner has collected."""
        self.broken = runner.broken
        left = []
        for number, mutant in enumerate(self.todo, 1):
            known = f"{number}/{len(self.todo)}"
            if mutant.place and self._tell(known, mutant, runner.in_place(mutant)):
                continue
            (left if runner.is_early(mutant) else self.survived).append(mutant)
        # A change in place comes too late for what was computed before it: those that are left, in a new process.
        for number, mutant in enumerate(left, 1):
            explained = mutant.place and self.lists(mutant)
            if explained or not self._tell(f"{number}/{len(left)} anew", mutant, runner.anew(mutant)):
                self.survived.append(mutant)

    def unexplained(self) -> list[Mutant]:
        """Return the survivors without an entry."""
        return [mutant for mutant in self.survived if not self.lists(mutant)]

    def counts(self) -> dict[str, int]:
        """Return how many mutants had which end."""
        unexplained = len(self.unexplained())
        listed = len(self.survived) - unexplained + sum(entry.listed for entry in self.recorded)
        return {
            "mutants": len(self.chosen),
            "killed": len(self.chosen) - listed - unexplained,
            "tried by earlier runs": len(self.chosen) - len(self.todo),
            "survived, listed": listed,
            "survived, not listed": unexplained,
            "tests that fail without a mutant": len(self.broken),
        }

    def _tell(self, number: str, mutant: Mutant, outcome: Any) -> bool:
        """Keep and print an outcome; return whether the mutant was noticed."""
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps([mutant.key, outcome.found_by]) + "\n")
        word = f"killed by {outcome.found_by}" if outcome.found_by else "SURVIVED" + " (listed)" * self.lists(mutant)
        print(f"{number} {mutant.name}\n    {word}, {outcome.seconds:.1f} s", flush=True)
        return outcome.found_by is not None


def update_record(every: dict[str, Module]) -> None:
    """Bring the record up to date."""
    mutants = [mutant for module in every.values() for mutant in module.mutants]
    old = mutation_record.read()
    new = mutation_record.updated(old, mutants, results(), lister(survivors()))
    if new != old:
        mutation_record.write(new)


def _run(every: dict[str, Module], chosen: list[Mutant], asked: argparse.Namespace) -> int:
    sys.path.insert(0, str(ROOT / "src"))
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    from mutate_run import Runner  # noqa: PLC0415 - it loads pytest

    update_record(every)  # what a run that was stopped has left
    # A sample is always run; all of them together continue.
    run = Run(chosen, again=asked.again or asked.sample is not None)
    began = time.process_time()
    try:
        if run.todo:
            files = list(dict.fromkeys(file for mutant in run.todo for file in tests_of(mutant.module)))
            Runner(every, tests_of, run.work).serve(files)
    finally:
        update_record(every)
    for mutant in run.unexplained():
        print(f"NOT NOTICED src/discreet/{mutant.module}.py:{mutant.line} {mutant.name}")
    for test in run.broken:
        print(f"FAILS WITHOUT A MUTANT {test}")
    counts = run.counts()
    print(", ".join(f"{name}: {count}" for name, count in counts.items()), f"({time.process_time() - began:.0f} s)")
    if asked.json:
        asked.json.write_text(json.dumps(counts))
    return 1 if counts["survived, not listed"] + counts["tests that fail without a mutant"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
