"""The picture of bias against noise shows what was measured, and what was measured is right."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

_spec = importlib.util.spec_from_file_location("pictures_tool", ROOT / "tools" / "pictures.py")
pictures = importlib.util.module_from_spec(_spec)
sys.modules["pictures_tool"] = pictures
_spec.loader.exec_module(pictures)

PATIENTS = 8000
FOUND = {
    "1/10": [pictures.Point(1, 900.0, 30.0, 905.0), pictures.Point(10, 90.0, 300.0, 310.0)],
    "1": [pictures.Point(1, 900.0, 3.0, 901.0), pictures.Point(10, 90.0, 30.0, 101.0)],
}


@pytest.fixture(scope="module")
def measured():
    return pictures.measured(pictures.made_up(PATIENTS), limits=(1, 20, 366), epsilons=("1",), rounds=2)["1"]


def test_a_few_patients_come_nearly_every_day_and_most_hardly_ever():
    visits = pictures.visits_of(pictures.PATIENTS)
    assert visits.min() == np.median(visits) == 1
    assert visits.max() == pictures.MOST_VISITS
    assert 0 < (visits > 100).sum() <= pictures.PATIENTS / 1000


def test_each_patient_goes_to_one_clinic_as_often_as_they_do():
    table = pictures.made_up(PATIENTS)
    patient, clinic = table["patient"].to_numpy(), table["clinic"].to_numpy()
    assert np.array_equal(np.bincount(patient), pictures.visits_of(PATIENTS))
    assert np.array_equal(clinic, patient % pictures.CLINICS)


def test_what_a_limit_takes_away_is_what_heavy_patients_have_beyond_it(measured):
    visits = pictures.visits_of(PATIENTS)
    for point in measured:
        beyond = np.maximum(visits - point.rows, 0)
        lost = [beyond[clinic :: pictures.CLINICS].sum() for clinic in range(pictures.CLINICS)]
        # At the price of this comparison, noise of scale 0.4 remains: 10 is passed with a chance below 1e-9.
        assert point.taken == pytest.approx(np.quantile(lost, 0.95), abs=10)


def test_the_margin_grows_with_the_limit_and_is_that_of_laplace_noise(measured):
    for point in measured:
        # ln 20 times the scale; a fiftieth of the price goes to the bounds report
        assert point.margin == pytest.approx(point.rows * np.log(20) / 0.98, rel=0.02, abs=1)


def test_the_error_is_bias_where_limits_are_small_and_noise_where_they_are_large(measured):
    small, _, large = measured
    # 40 numbers with noise of scale 1 in the first, 373 in the last: chances below 1e-9 on both sides.
    assert small.error == pytest.approx(small.taken, abs=30)
    assert large.taken <= 10
    assert 40 < large.error < 30 * 373


def test_the_best_point_has_the_smallest_error():
    assert pictures.best(FOUND["1/10"]).rows == 10


def test_the_same_measurements_give_the_same_picture(tmp_path):
    first, second = (pictures.draw_bounds(tmp_path / name, FOUND).read_bytes() for name in "ab")
    assert first == second
    assert b"<dc:date>" not in first


def test_the_picture_names_each_price_and_its_best_limit(tmp_path):
    drawn = pictures.draw_bounds(tmp_path, FOUND).read_text()
    assert "epsilon 1/10" in drawn
    assert drawn.count("rows = 10") == 2


def test_the_command_measures_draws_and_tells(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pictures, "measured", lambda visits: FOUND)
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    assert pictures.main() == 0
    assert (tmp_path / "bounds.svg").exists()
    assert "epsilon 1: the error is least, 101 visits, at rows = 10" in capsys.readouterr().out
