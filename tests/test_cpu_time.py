"""The limit of CPU time fails a slow test, and only that."""

from types import SimpleNamespace

import cpu_time
import pytest

OUTCOME = pytest.fail.Exception


def outcome_of(monkeypatch, *, seconds, again=None, markers=(), shared=0.0, slowness=1.0):
    """Return what the plugin says of a test that takes so many CPU seconds, and so many when it is run again."""
    plugin, clock = cpu_time.CpuTime(), [100.0]
    monkeypatch.setattr(cpu_time, "used", lambda: clock[0])
    monkeypatch.setattr(cpu_time, "slowness", lambda: slowness)

    def runtest():
        if again is None:
            raise ValueError("it cannot be repeated")
        clock[0] += again

    item = SimpleNamespace(
        stash=pytest.Stash(),
        nodeid="test_it",
        runtest=runtest,
        get_closest_marker=lambda name: name if name in markers else None,
    )
    plugin.pytest_runtest_setup(item)
    if shared:
        setup = plugin.pytest_fixture_setup(SimpleNamespace(scope="module", argname="people"))
        next(setup)
        clock[0] += shared
        with pytest.raises(StopIteration):
            setup.send(None)
    clock[0] += seconds
    teardown = plugin.pytest_runtest_teardown(item)
    next(teardown)
    clock[0] += 40  # servers that all tests have used may end here
    try:
        teardown.send(None)
    except StopIteration:
        return None
    except OUTCOME as failure:
        return str(failure)


@pytest.mark.parametrize("again", [1.1, None], ids=["both times", "not repeatable"])
def test_a_test_above_the_limit_fails_with_a_hint_at_the_marker(monkeypatch, again):
    assert "pytest.mark.long" in outcome_of(monkeypatch, seconds=1.2, again=again)


@pytest.mark.parametrize(
    "more",
    [
        {"seconds": 0.9},
        {"seconds": 9, "markers": ["long"]},
        {"seconds": 9, "markers": ["slow"]},
        {"seconds": 0.5, "shared": 2.0},
        {"seconds": 9, "again": 0.3},
        {"seconds": 1.5, "slowness": 2.0},
    ],
    ids=["quick", "long", "slow", "shared fixture", "slow the first time only", "slow machine"],
)
def test_what_is_allowed_passes(monkeypatch, more):
    assert outcome_of(monkeypatch, **more) is None


def test_a_shared_fixture_has_a_limit_of_its_own(monkeypatch):
    with pytest.raises(OUTCOME, match="fixture people"):
        outcome_of(monkeypatch, seconds=0.1, shared=4.0)
