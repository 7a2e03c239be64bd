"""Codes in place of taxi numbers: opened without a key, and not opened with one."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet import anonymity
from discreet.attacks import attack_named, pseudonyms
from discreet.attacks.tables.taxis import Taxis, candidates, read_taxis

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
CERTAIN = 1 - 1e-10


def keyed(numbers):
    coded = anonymity.pseudonymise(pa.table({"number": numbers}), "number", anonymity.new_key())
    return coded["number"].to_pylist()


def test_every_plain_hash_is_opened_and_no_stranger_is_named():
    result = pseudonyms(random_state=1)
    assert result.success == 1
    assert result.baseline == 0
    assert result.details["codes opened"] == result.details["codes released"] == 2000
    assert result.details["numbers tried"] == 26_000
    assert "trips and" in result.details["best day of one taxi"]
    assert result.implied.low > 5


def test_a_longer_hash_with_a_salt_that_leaks_is_opened_too():
    result = pseudonyms(defence="easy", random_state=1)
    assert result.success == 1
    assert result.details["codes opened"] == 2000


def test_keyed_pseudonyms_stay_closed():
    result = pseudonyms(defence=keyed, random_state=1)
    assert result.success == 0
    assert result.details["codes opened"] == 0
    assert result.details["trips that a name was put to"] == 0


@pytest.mark.parametrize("way", ["sha1", "sha256", "md5"])
def test_the_look_of_a_code_gives_its_hash_away(way):
    result = pseudonyms(defence=lambda numbers: [hashlib.new(way, n.encode()).hexdigest() for n in numbers])
    assert result.success == 1


def test_numbers_that_were_only_renamed_to_themselves_are_opened():
    assert pseudonyms(defence=list).success == 1


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_curator_keeps_his_promise(epsilon):
    result = pseudonyms(defence="curator", epsilon=epsilon, random_state=1)
    assert result.details["codes opened"] == 0
    assert result.evidence.implied(confidence=CERTAIN).low <= epsilon


def test_a_tenth_of_epsilon_leaves_next_to_nothing():
    result = pseudonyms(defence="curator", epsilon="1/10", random_state=1)
    assert abs(result.success - result.baseline) < 0.06
    assert result.success < 0.15


def test_noise_ten_times_too_small_is_caught():
    rng = np.random.default_rng(1)
    result = pseudonyms(defence=lambda _: lambda counts: counts + rng.laplace(0, 1, counts.shape), epsilon=0.1)
    assert result.implied.low > 0.1
    assert result.epsilon == pytest.approx(0.1)


def test_a_hash_that_is_called_private_is_caught():
    result = pseudonyms(defence=lambda numbers: [hashlib.md5(n.encode()).hexdigest() for n in numbers], epsilon=0.1)
    assert result.implied.low > 5


def test_the_same_random_state_gives_the_same_result():
    assert pseudonyms(random_state=5).details == pseudonyms(random_state=5).details


def test_exposure_is_told_by_the_number_of_trips():
    exposure = pseudonyms(random_state=1).exposure
    assert exposure.by == "few trips"
    assert len(exposure.deciles) == 10
    assert exposure.rarest_hit[0].startswith("taxi ")


def test_only_what_was_tried_is_opened():
    assert pseudonyms(forms=["AA999"], random_state=1).success == 0
    assert len(set(candidates(["9A"]))) == 260


def test_bad_input_is_refused():
    trips = pa.table({"medallion": ["1A11"], "day": [1], "total": [2.0]})
    with pytest.raises(TypeError, match="data must be Taxis"):
        pseudonyms([1])
    with pytest.raises(ValueError, match="each number must be listed once"):
        Taxis(["1A11"], [1], ["1A11"], trips)
    with pytest.raises(ValueError, match="counts one count for each"):
        Taxis(["1A11"], [1, 2], ["1A12"], trips)
    with pytest.raises(ValueError, match="no column 'day'"):
        Taxis(["1A11"], [1], ["1A12"], trips.drop_columns("day"))
    with pytest.raises(ValueError, match="one code, a text"):
        pseudonyms(defence=lambda numbers: numbers[:3])
    with pytest.raises(ValueError, match="shape of the counts"):
        pseudonyms(defence=lambda _: lambda counts: counts[:3])
    with pytest.raises(ValueError, match="forms"):
        pseudonyms(forms=[""])
    with pytest.raises(TypeError, match="epsilon"):
        pseudonyms(defence="curator")
    with pytest.raises(FileNotFoundError, match=r"nyctaxi2013_medallions\.parquet in nowhere"):
        attack_named("pseudonyms").load(Path("nowhere"))


@pytest.mark.skipif(not (DATA / "nyctaxi2013_medallions.parquet").exists(), reason="needs nyctaxi2013 in DISCREET_DATA")
def test_the_city_s_own_codes_are_opened():
    taxis = read_taxis(DATA)
    result = pseudonyms(taxis, random_state=0)
    assert (result.details["codes opened"], result.details["codes released"]) == (13_223, 14_144)
    assert result.details["trips that a name was put to"] > 500
    assert len(taxis.numbers) == 13_378  # by all three forms
    private = pseudonyms(taxis, defence="curator", epsilon=1)
    assert private.details["codes opened"] == 0
    assert private.evidence.implied(confidence=CERTAIN).low <= 1
