"""A change of any line of the kernel is noticed by its tests, except for changes that mean nothing."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = 5  # mutants of each module

_spec = importlib.util.spec_from_file_location("mutate_tool", ROOT / "tools" / "mutate.py")
mutate = importlib.util.module_from_spec(_spec)
sys.modules["mutate_tool"] = mutate
_spec.loader.exec_module(mutate)


def survivors():
    """Return the reason for each known survivor: a line that begins with # holds for those below it."""
    found, reason = {}, ""
    for line in Path(__file__).with_name("mutation_survivors.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line:
            found[line] = reason
    return found


MUTANTS = {module: mutate.mutants(module) for module in mutate.TESTS}
KNOWN = survivors()


def test_every_known_survivor_can_still_be_made_and_has_a_reason():
    names = {mutant.name for made in MUTANTS.values() for mutant in made}
    assert set(KNOWN) <= names
    assert all(KNOWN.values())


def test_every_mutant_differs_from_the_module_and_can_be_read():
    for module, made in MUTANTS.items():
        path = ROOT / mutate.KERNEL / f"{module}.py"
        intact = mutate.ast.unparse(mutate.ast.parse(path.read_text(encoding="utf-8"))) + "\n"
        assert len(made) >= 30
        for mutant in made:
            assert mutant.source != intact
            compile(mutant.source, path, "exec")


def test_the_mutants_are_noticed():
    chosen = [
        mutant for made in MUTANTS.values() for mutant in [each for each in made if each.name not in KNOWN][:SAMPLE]
    ]
    survived = [outcome.mutant.name for outcome in mutate.run(chosen) if outcome.found_by is None]
    assert not survived
