"""The attacks and audits work where there is no noise, and Discreet's adapter does its tasks on a small hospital."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "versus" / "tools")]

from versus import attacking, hospital, running, scoring, tampering  # noqa: E402

PROTOCOL = hospital.protocol()
DISCREET = running.tools()["discreet"]


def counted(path, boxes):
    """Return the true number of people in every box."""
    table = pyarrow.csv.read_csv(path)
    return np.bincount(table["box"].to_pylist(), minlength=boxes)


def adapter():
    spec = importlib.util.spec_from_file_location("with_discreet", running.HERE / DISCREET["script"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_noise_two_counts_give_every_secret_away(tmp_path):
    boxes, groups, secrets = attacking.differencing(tmp_path / "people.csv", {"towns": 40, "people": 10})
    exact = counted(tmp_path / "people.csv", boxes)
    assert (groups, attacking.subtract(exact, secrets)) == (2, (40, 40))
    assert attacking.subtract(exact * 0, secrets) == (int((secrets == 0).sum()), 40)


def test_without_noise_random_subsets_give_every_secret_away(tmp_path):
    boxes, _, secrets, subsets = attacking.reconstruction(tmp_path / "people.csv", {"people": 20, "subsets": 60})
    assert attacking.solve(counted(tmp_path / "people.csv", boxes), secrets, subsets) == (20, 20)


def test_nobody_is_in_two_boxes_of_an_audit(tmp_path):
    attacking.boxes_of(tmp_path / "people.csv", [0.1, 0.7], 5)
    table = pyarrow.csv.read_csv(tmp_path / "people.csv")
    assert table["person"].to_pylist() == list(range(10))
    assert counted(tmp_path / "people.csv", 5).tolist() == [2] * 5


def test_too_little_noise_is_refuted_and_enough_is_not():
    def outputs(scale):
        draw = np.random.default_rng(7)
        return [(size + np.rint(draw.laplace(0, scale, 4_000))).tolist() for size in (3, 4)]

    settings = {"claim": 1.0, "confidence": 0.999}
    assert attacking.proven(outputs(0.5), settings)["refuted"]
    assert not attacking.proven(outputs(1.2), settings)["refuted"]


@pytest.mark.long
def test_a_flipped_bit_is_caught_in_every_file_and_in_every_byte_of_the_manifest():
    found = tampering.flip_every_file()
    assert found["caught"] == found["files"] > 5
    assert found["manifest_caught"] == found["manifest_bytes"]


@pytest.mark.long
@pytest.mark.parametrize("task", ["publish", "publish_advised"])
def test_discreet_publishes_a_small_hospital(tmp_path, task):
    protocol = {**PROTOCOL, "data": {**PROTOCOL["data"], "patients": 3_000}}
    table = hospital.visits(protocol["data"])
    pyarrow.csv.write_csv(table, tmp_path / "visits.csv")
    published = getattr(adapter(), task)({"data": str(tmp_path / "visits.csv"), "protocol": protocol})
    truth = hospital.truth(table, protocol["data"]["months"])
    tables = {question: {tuple(row[:-3]): tuple(row[-3:]) for row in rows} for question, rows in published.items()}
    for question, cells in truth.items():
        keys = {tuple(map(str, key)) for key in cells}
        if question in ("visits_by_diagnosis", "median_cost_by_ward"):  # a group may be too small to be shown
            assert tables[question].keys() <= keys
        else:
            assert tables[question].keys() == keys, question
    assert scoring.largest_gap(tables) < 1e-6
    assert all(low <= value <= high for cells in tables.values() for value, low, high in cells.values())


@pytest.mark.long
def test_discreet_knows_its_budget_after_it_was_killed(tmp_path):
    attacking.boxes_of(tmp_path / "people.csv", [1.0], 100)
    job = {"data": str(tmp_path / "people.csv"), "keys": 100, "groups": 1, **PROTOCOL["crash"]}
    left = running.kill_and_restart(Path(sys.executable), DISCREET, job)
    assert left == pytest.approx(0.6)


@pytest.mark.long
def test_half_of_discreet_s_noise_is_refuted_by_the_audit(tmp_path):
    outputs = {True: [], False: []}
    for half, told in outputs.items():
        for people in PROTOCOL["audit"]["count"]:
            boxes = attacking.boxes_of(tmp_path / "people.csv", [1.0] * people, 3_000)
            job = {"data": str(tmp_path / "people.csv"), "keys": boxes, "groups": 1, "epsilon": 1.0}
            flags = {"half_noise": True} if half else {}
            told.append(running.run(Path(sys.executable), DISCREET, {**job, "task": "counts", **flags})["result"])
    settings = {"claim": 1.0, "confidence": 1 - 1e-9}
    assert attacking.proven(outputs[True], settings)["refuted"]
    assert not attacking.proven(outputs[False], settings)["refuted"]
