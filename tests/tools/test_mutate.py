"""The mutants of the trusted base: what is changed, and what is known to survive."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace
from unittest.mock import ANY

import mutate
import mutate_run
import mutation_record
import pytest
from mutate_edits import Module


def made(tmp_path, source):
    path = tmp_path / "code.py"
    path.write_text(textwrap.dedent(source))
    return Module(path, "kernel/code")


def changes(tmp_path, source):
    return [(mutant.before, mutant.after) for mutant in made(tmp_path, source).mutants]


EXAMPLES = {
    "comparison": ("return a < b", "return a <= b"),
    "arithmetic": ("return a * b", "return a // b"),
    "rounding": ("return round_up(a)", "return round_down(a)"),
    "constant": ("return a[0]", "return a[1]"),
    "truth": ("return f(exact=True)", "return f(exact=False)"),
    "returned value": ("return a", "return None"),
    "removed call": ("f(a)", "pass"),
    "removed guard": ("if a:", "if False:"),
    "removed assignment": ("a.b = 1", "pass"),
    "exchanged arguments": ("return f(a, b)", "return f(b, a)"),
    "condition": ("return [x for x in a if x]", "return [x for x in a]"),
    "part of a condition": ("return a and b", "return a"),
    "SQL": ("return f'SELECT 1 WHERE {a} < 2'", "return f'SELECT 1 WHERE {a} <= 2'"),
}


@pytest.mark.parametrize(("before", "after"), EXAMPLES.values(), ids=EXAMPLES)
def test_each_kind_of_change_is_made(tmp_path, before, after):
    below = "\n        return 1" if before.startswith("if") else ""
    assert (before, after) in changes(tmp_path, f"def g(a, b):\n    {before}{below}\n")


def test_a_raise_is_removed_and_its_message_is_left_alone(tmp_path):
    source = "def g(a):\n    if a > 3:\n        raise ValueError(f'not {a + 1}')\n"
    removed = ("raise ValueError(f'not {a + 1}')", "pass")
    assert [change for change in changes(tmp_path, source) if "raise" in change[0]] == [removed]


def test_what_an_inner_function_returns_is_changed_by_its_own_type(tmp_path):
    source = "def g(a) -> int:\n    def h() -> bool:\n        return a\n    return b\n"
    found = changes(tmp_path, source)
    assert found == [("return a", "return not a"), ("return b", "return b + 1"), ("return b", "return b - 1")]


def test_docstrings_annotations_and_assertions_are_left_alone(tmp_path):
    assert changes(tmp_path, "def g(a: 'x > 0' = None) -> 'x > 1':\n    'WHERE (a > 1)'\n    assert a > 2\n") == []


def test_whether_lists_have_equal_lengths_and_what_a_record_prints_is_left_alone(tmp_path):
    source = "class C:\n    a: int = field(repr=False)\n\n    def g(self):\n        return zip(self, strict=True)\n"
    assert changes(tmp_path, source) == [("return zip(self, strict=True)", "return None")]


def test_a_mutant_keeps_its_key_when_lines_move_and_comments_change_and_loses_it_with_its_function(tmp_path):
    first = made(tmp_path, "def g(a):\n    'old'\n    return a + 1\n").mutants
    moved = made(tmp_path, "X = None\n\n\ndef g(a):\n    'new'\n    # why\n    return a + 1\n").mutants
    other = made(tmp_path, "def g(a):\n    a = f(a)\n    return a + 1\n").mutants
    assert [mutant.key for mutant in first] == [mutant.key for mutant in moved]
    assert not {mutant.key for mutant in first} & {mutant.key for mutant in other}


def test_a_mutant_differs_in_one_location_and_leaves_the_module_unchanged(tmp_path):
    module = made(tmp_path, "def g(a):\n    return a + 1\n")
    intact = ast.unparse(module.tree)
    sources = {module.source(mutant) for mutant in module.mutants}
    assert "def g(a):\n    return a - 1\n" in sources
    assert len(sources) == len(module.mutants)
    assert ast.unparse(module.tree) == intact


def test_a_mutant_of_a_function_is_found_by_its_location_and_others_apply_at_import(tmp_path):
    module = made(tmp_path, "A = 1\n\n\nclass C:\n    b = 2\n\n    @cache\n    def d(self):\n        return 3\n")
    places = {mutant.before: mutant.place for mutant in module.mutants}
    assert places == {"A = 1": None, "b = 2": None, "return 3": ("C.d", 7)}


def test_the_tests_of_a_claim_are_those_that_the_function_and_its_class_name(tmp_path):
    source = '''
        class C:
            """Some.

            Checked by: test_a,
                test_b
            """

            def d(self):
                """Checked by: test_c"""

        def e():
            pass
    '''
    module = made(tmp_path, source)
    assert module.tests_of_claim("C.d") == {"test_a", "test_b", "test_c"}
    assert module.tests_of_claim("e") == set()


def test_the_whole_trusted_base_is_in_scope_and_has_tests():
    names = set(mutate.modules())
    expected = {
        "kernel/loss",
        "kernel/mechanism",
        "kernel/partition_selection",
        "kernel/noise/sampler",
        "kernel/ledger/ledger",
    }
    expected |= {"engines/duckdb/dialect", "engines/duckdb/casts", "engines/totals_cache", "ledger_postgres/session"}
    assert expected <= names
    tests = {name: mutate.tests_of(name) for name in names if not name.endswith("__init__")}
    assert {path for paths in tests.values() for path in paths if not (mutate.ROOT / path).exists()} == set()


@pytest.mark.parametrize("module", sorted({entry.module for entry in mutate.survivors()}))
def test_every_listed_survivor_can_still_be_made_and_has_a_reason(module):
    known = [entry for entry in mutate.survivors() if entry.module == module]
    assert mutate.stale(known, mutate.modules()) == []
    assert [entry for entry in known if len(entry.reason) < 20] == []


def test_a_survivor_fails_unless_it_is_listed(tmp_path):
    mutants = made(tmp_path, "def g(a, b):\n    return a + b\n").mutants
    run = mutate.Run(mutants)
    run.survived = mutants
    assert run.unexplained() == mutants
    run.lists = mutate.lister([mutate.Known("kernel/code", "g", "why", "return a + b", "return a - b")])
    (left,) = run.unexplained()
    assert left.after != "return a - b"
    assert (run.counts()["survived, listed"], run.counts()["survived, not listed"]) == (1, 1)


ADDED = "def g(a, b):\n    return a + b\n\n\ndef h(a):\n    return a[0]\n"


@pytest.fixture
def stores(monkeypatch, tmp_path):
    """Keep results and record in a folder of the test."""
    monkeypatch.setattr(mutate, "RESULTS", tmp_path / "results.jsonl")
    monkeypatch.setattr(mutation_record, "PATH", tmp_path / "record.json")
    monkeypatch.setattr(mutate, "survivors", list)


def tried(run, survivor=None):
    """Let a test notice all mutants of a run but one."""
    found = lambda each: mutate_run.Outcome(each, None if each is survivor else "test_a", 0.0)  # noqa: E731
    run.work(SimpleNamespace(broken=[], in_place=found, anew=found, is_early=lambda _: True))


@pytest.mark.usefixtures("stores")
def test_a_function_is_recorded_once_all_its_mutants_were_tried_and_is_not_tried_again(tmp_path):
    module = made(tmp_path, ADDED)
    of_h = [mutant for mutant in module.mutants if mutant.function == "h"]
    tried(mutate.Run([*of_h, module.mutants[0]]))  # of g only one
    mutate.update_record({"kernel/code": module})
    assert mutation_record.read() == {"kernel/code": {"h": mutation_record.Settled(ANY, len(of_h), 0)}}
    mutate.RESULTS.unlink()
    run = mutate.Run(module.mutants)
    assert {mutant.function for mutant in run.todo} == {"g"}
    tried(run)
    assert run.counts() == {
        "mutants": len(module.mutants),
        "killed": len(module.mutants),
        "tried by earlier runs": len(of_h),
        "survived, listed": 0,
        "survived, not listed": 0,
        "tests that fail without a mutant": 0,
    }
    assert len(mutate.Run(module.mutants, again=True).todo) == len(module.mutants)


@pytest.mark.usefixtures("stores")
def test_a_function_with_a_survivor_that_is_not_listed_leaves_the_record(tmp_path):
    module = made(tmp_path, ADDED)
    tried(mutate.Run(module.mutants))
    mutate.update_record({"kernel/code": module})
    assert set(mutation_record.read()["kernel/code"]) == {"g", "h"}
    tried(mutate.Run(module.mutants, again=True), survivor=module.mutants[0])
    mutate.update_record({"kernel/code": module})
    assert set(mutation_record.read()["kernel/code"]) == {"h"}


@pytest.mark.usefixtures("stores")
def test_a_record_ends_with_the_code_and_with_the_list_of_survivors(monkeypatch, tmp_path):
    module = made(tmp_path, ADDED)
    known = [mutate.Known("kernel/code", "g", "why", module.mutants[0].before, module.mutants[0].after)]
    monkeypatch.setattr(mutate, "survivors", lambda: known)
    tried(mutate.Run(module.mutants), survivor=module.mutants[0])
    mutate.update_record({"kernel/code": module})
    assert mutation_record.read()["kernel/code"]["g"].listed == 1
    mutate.RESULTS.unlink()
    assert mutate.Run(module.mutants).todo == []
    changed = made(tmp_path, ADDED.replace("a[0]", "a[1]"))
    assert {mutant.function for mutant in mutate.Run(changed.mutants).todo} == {"h"}
    known.clear()
    assert {mutant.function for mutant in mutate.Run(module.mutants).todo} == {"g"}


def test_the_record_is_of_modules_that_exist_and_is_as_the_tool_writes_it():
    record = mutation_record.read()
    assert set(record) <= set(mutate.modules())
    assert mutation_record.text_of(record) == mutation_record.PATH.read_text()


def ended_by(number):
    """Return how a child ends that gets a signal."""
    # It would otherwise ignore what this process ignores, such as SIGHUP under nohup.
    code = (
        "import signal, time; [signal.signal(n, signal.SIG_DFL) for n in (1, 2, 15)]; print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.send_signal(number)
        return mutate_run._waited(child.pid)


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_mutant_that_is_stopped_from_outside_leaves_no_result(number, tmp_path):
    """A stored result is not tried again, so this one would count as noticed by a test for ever."""
    (mutant,) = made(tmp_path, "def g(a):\n    return a\n").mutants
    run = mutate.Run([mutant])
    runner = SimpleNamespace(broken=[], in_place=lambda each: mutate_run.Outcome(each, ended_by(number), 0.0))
    with pytest.raises(RuntimeError, match="stopped"):
        run.work(runner)
    assert mutate.results() == {}


def test_a_crash_and_the_end_of_the_processor_time_are_outcomes_of_a_mutant():
    assert "signal" in ended_by(signal.SIGSEGV)
    assert "CPU" in ended_by(signal.SIGXCPU)


def test_the_time_to_set_up_a_shared_fixture_is_not_taken_from_a_test(monkeypatch, tmp_path):
    """A quick test that needs a loaded engine first would seem to have no end, and every mutant to be noticed."""
    now, limits = 0, []

    def protocol(item, nextitem):
        nonlocal now
        now += 10  # the fixture
        runner.pytest_runtest_call()

    monkeypatch.setattr(mutate_run.time, "process_time", lambda: now)
    monkeypatch.setattr(mutate_run, "_limited", limits.append)
    module = made(tmp_path, "def g(a):\n    return a\n")
    runner = object.__new__(mutate_run.Runner)
    item = SimpleNamespace(config=SimpleNamespace(hook=SimpleNamespace(pytest_runtest_protocol=protocol)))
    runner.modules, runner._items, runner._caches, runner._failed = {"kernel/code": module}, {"t": item}, [], None
    runner._live = {("kernel/code", "g", 1): [lambda a: a]}
    runner._changed(module.mutants[0], [mutate_run.Timed("t", 0.5, frozenset())], print)
    assert limits[0] > 10
    assert limits[1] - now == 2 + 5
    limits.clear()
    runner._running = None
    runner.pytest_runtest_call()
    assert limits == []  # without a mutant a test takes as long as it takes


IN_PLACE = """
import mutate
from mutate_run import Runner

modules = mutate.modules()
text = next(m for m in modules["kernel/numbers"].mutants if m.before == "return Fraction(value)" and "+ 1" in m.after)
example = ["src/discreet/kernel/numbers.py"]
Runner(modules, lambda _: example, lambda runner: print("killed by", runner.in_place(text).found_by)).serve(
    [*example, "tests/kernel/test_numbers.py"]
)
"""


@pytest.mark.long
def test_a_changed_function_reaches_the_tests():
    """Otherwise every mutant would survive, whatever the tests check."""
    command = [sys.executable, "-c", IN_PLACE]
    paths = {**os.environ, "PYTHONPATH": "tools:src"}
    done = subprocess.run(command, cwd=mutate.ROOT, env=paths, capture_output=True, text=True, check=False)
    assert "killed by src/discreet/kernel/numbers.py::discreet.kernel.numbers.as_fraction" in done.stdout, done.stderr


def test_an_entry_whose_code_no_longer_exists_is_stale(tmp_path):
    found = {"kernel/code": made(tmp_path, "def g(a):\n    return a + 1\n")}
    entry = mutate.Known("kernel/code", "g", "why", "return a + 1", "return a - 1")
    other = mutate.Known("kernel/code", "g", "why", "return a + 2", "return a - 2")
    whole = [mutate.Known("kernel/code", "g", "why"), mutate.Known("kernel/code", "g", "why", "return a + 1")]
    gone = mutate.Known("kernel/code", "h", "why")
    moved = mutate.Known("kernel/other", "g", "why")
    assert mutate.stale([entry, *whole, other, gone, moved], found) == [other, gone, moved]
