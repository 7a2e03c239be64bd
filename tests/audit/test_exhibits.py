"""Failures that were shipped, each convicted by an audit. Seeds make every exhibit the same in every run."""

import importlib.util
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from discreet import audit

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".peers" / "diffprivlib" / "bin" / "python"
_SPEC = importlib.util.spec_from_file_location("audited", ROOT / "tests" / "broken" / "audited.py")
broken = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(broken)


@pytest.fixture(scope="module")
def of_diffprivlib(tmp_path_factory):
    """Give audits of outputs that diffprivlib gave in an environment of its own."""
    if not PEER.exists():
        pytest.skip("diffprivlib is not in .peers; `python -m bench.learning` makes its environment")
    out = tmp_path_factory.mktemp("exhibits") / "outputs.npz"
    script = ROOT / "bench" / "peers" / "exhibits_of_diffprivlib.py"
    quiet = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    subprocess.run([str(PEER), str(script), str(out), "laplace=6000", "nanmean=1000"], check=True, env=quiet)
    outputs = np.load(out)

    def audited(exhibit):
        batch = audit.Batch(lambda data, _: outputs[f"{exhibit} {data}"])
        return audit.measure(batch, 0, 1, 1, len(outputs[f"{exhibit} 0"]))

    return audited


def test_exhibit_lowest_bits_of_the_peers_laplace_noise(of_diffprivlib):
    result = of_diffprivlib("laplace")
    assert not result.holds
    assert result.epsilon_low > 5
    assert "lowest bit" in result.event


def test_exhibit_the_peers_mean_of_mostly_missing_values_has_a_tenth_of_the_noise(of_diffprivlib):
    result = of_diffprivlib("nanmean")
    assert not result.holds
    assert result.epsilon_low > 4


@pytest.mark.long
def test_exhibit_half_the_noise():
    result = audit.measure(broken.half_noise(np.random.default_rng(0)), 0, 1, 1, 20_000, random_state=0)
    assert not result.holds
    assert 1.7 < result.epsilon_low < 2.05


def test_exhibit_check_run_charge():
    def question(row):
        return 1 // (row["income"] - 70_000)  # fails for one income, and then costs nothing

    def game(rows):
        curator = broken.ChecksRunsCharges(rows, budget=0.01, rng=rng)
        try:
            answer = curator.ask(question, 0.01)
        except ZeroDivisionError:
            return "failed", curator.left
        return answer, curator.left

    rng = np.random.default_rng(0)
    crowd = [{"income": 30_000}] * 20
    result = audit.measure(game, [*crowd, {"income": 70_000}], crowd, "0.01", 1000, random_state=0)
    assert not result.holds
    assert result.epsilon_low > 4


def test_exhibit_a_window_function_lets_one_person_move_every_row():
    release = broken.window_leak(np.random.default_rng(0))
    crowd = np.full(30, 5.0)
    result = audit.measure(release, np.append(crowd, 10.0), crowd, 1, 2000, random_state=0)
    assert not result.holds
    assert result.epsilon_low > 4
    assert audit.sensitivity(lambda rows: (rows == rows.max()).sum(), [(np.append(crowd, 10.0), crowd)]).l1 == 29


@pytest.mark.parametrize("missing", [0, 1], ids=["without the person", "with the person"])
def test_exhibits_are_not_convicted_on_equal_data(missing):
    release = broken.window_leak(np.random.default_rng(missing))
    crowd = np.full(30, 5.0 + missing)
    assert audit.measure(release, crowd, crowd, 1, 2000, confidence=1 - 1e-9).holds
