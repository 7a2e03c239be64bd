"""Codes in place of taxi numbers: opened without a key, and not opened with one."""

import base64
import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet import anonymity
from discreet.attacks import attack_named, pseudonyms
from discreet.attacks.data.taxis import Taxis, candidate_numbers, md5, read_taxis
from discreet.attacks.tables.pseudonyms import crack_codes

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
CERTAIN = 1 - 1e-10
SHORT = np.random.default_rng(3).permutation(list(candidate_numbers("99A")))  # numbers that are tried in no time
FEW = Taxis(SHORT[:200], [1] * 200, SHORT[200:400], {"medallion": SHORT[:1], "day": [1], "total": [2.0]})


def keyed(numbers):
    coded = anonymity.pseudonymise(pa.table({"number": numbers}), "number", anonymity.new_key())
    return coded["number"].to_pylist()


def test_every_plain_hash_is_inverted_and_no_non_member_is_named():
    result = pseudonyms(random_state=1)
    assert result.success == 1
    assert result.baseline == 0
    assert result.details["codes reversed"] == result.details["codes released"] == 2000
    assert result.details["numbers tried"] == 26_000
    assert "trips and" in result.details["best day of one taxi"]
    assert result.implied.low > 5


@pytest.mark.long
def test_a_longer_hash_with_a_leaked_salt_is_inverted_too():
    result = pseudonyms(defence="easy", random_state=1)
    assert result.success == 1
    assert result.details["codes reversed"] == 2000


def test_keyed_pseudonyms_are_not_inverted():
    result = pseudonyms(defence=keyed, random_state=1)
    assert result.success == 0
    assert result.details["codes reversed"] == 0
    assert result.details["trips re-identified"] == 0


@pytest.mark.parametrize(
    "way", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b", "blake2s"]
)
def test_the_format_of_a_code_reveals_its_hash_function(way):
    result = pseudonyms(
        FEW, forms="99A", defence=lambda numbers: [hashlib.new(way, n.encode()).hexdigest() for n in numbers]
    )
    assert (result.success, result.baseline) == (1, 0)


@pytest.mark.parametrize(
    "way",
    [
        str,
        str.lower,
        lambda number: number[::-1],
        lambda number: base64.b64encode(number.encode()).decode(),
        lambda number: hashlib.sha256(number.encode()).hexdigest().upper(),
        lambda number: hashlib.md5(number.lower().encode()).hexdigest(),
    ],
    ids=["itself", "small letters", "reversed", "base64", "capital letters", "of small letters"],
)
def test_obvious_encodings_are_inverted(way):
    result = pseudonyms(FEW, forms="99A", defence=lambda numbers: list(map(way, numbers)))
    assert (result.success, result.baseline) == (1, 0)


def test_of_two_encodings_the_one_that_inverts_more_codes_is_used():
    assert crack_codes(["BA", "CB"], ["AB", "BA", "BC"]) == {"BA": "AB", "CB": "BC"}
    assert crack_codes(["AB", "BA"], ["AB", "BA"]) == {"AB": "AB", "BA": "BA"}


def test_codes_may_come_as_numbers_or_as_an_array():
    assert pseudonyms(FEW, forms="99A", defence=lambda numbers: range(len(numbers))).success == 0
    assert pseudonyms(FEW, forms="99A", defence=np.array).success == 1
    assert pseudonyms(FEW, forms="99A", defence=pa.array).success == 1


def test_random_names_for_taxis_prove_nothing():
    def others(numbers):
        anything = np.random.default_rng(0).permutation(list(candidate_numbers("9A99")))[: len(numbers)]
        return list(map(md5, anything))

    result = pseudonyms(defence=others, epsilon=0.1, random_state=1)
    assert result.baseline > 0.05
    assert result.success < 0.01
    assert result.evidence.implied(confidence=CERTAIN).low == 0


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_curator_stays_within_its_claim(epsilon):
    result = pseudonyms(defence="curator", epsilon=epsilon, random_state=1)
    assert result.details["codes reversed"] == 0
    assert result.evidence.implied(confidence=CERTAIN).low <= epsilon


@pytest.mark.long
def test_epsilon_a_tenth_discloses_next_to_nothing():
    result = pseudonyms(defence="curator", epsilon="1/10", random_state=1)
    assert abs(result.success - result.baseline) < 0.06
    assert result.success < 0.15


def test_noise_ten_times_too_small_is_caught():
    rng = np.random.default_rng(1)
    result = pseudonyms(defence=lambda _: lambda counts: counts + rng.laplace(0, 1, counts.shape), epsilon=0.1)
    assert result.implied.low > 0.1
    assert result.epsilon == pytest.approx(0.1)


def test_a_hash_that_falsely_claims_privacy_is_caught():
    result = pseudonyms(defence=lambda numbers: [hashlib.md5(n.encode()).hexdigest() for n in numbers], epsilon=0.1)
    assert result.implied.low > 5


def test_the_same_random_state_gives_the_same_result():
    assert pseudonyms(random_state=5).details == pseudonyms(random_state=5).details


def test_exposure_is_reported_by_the_number_of_trips():
    exposure = pseudonyms(random_state=1).exposure
    assert exposure.rarity_label == "few trips"
    assert len(exposure.deciles) == 10
    assert exposure.rarest_hit[0].startswith("taxi ")


@pytest.mark.long
def test_only_tried_candidates_are_inverted():
    assert pseudonyms(forms=["9AA9"], random_state=1).success == 0
    assert len(set(candidate_numbers(["9A"]))) == 260


def test_one_form_may_be_given_as_a_text():
    assert pseudonyms(FEW, forms="99A").success == 1
    assert pseudonyms(FEW, forms="AA9").success == 0


@pytest.mark.parametrize(
    ("forms", "message"),
    [
        ([], "at least one non-empty format"),
        ("", "at least one non-empty format"),
        ([""], "at least one non-empty format"),
        (5, "forms must be a list of texts"),
        ([None], "forms must be a list of texts"),
        ("AAAAAAAA", "forms allow more than"),
    ],
)
def test_forms_without_numbers_are_refused(forms, message):
    for word in ("nothing", "curator"):
        with pytest.raises((TypeError, ValueError), match=message):
            pseudonyms(FEW, forms=forms, defence=word, epsilon=1 if word == "curator" else None)


@pytest.mark.parametrize("rubbish", [None, 5, {"1A11": "x"}, np.ones((3, 3)), b"x", [None]], ids=str)
def test_values_that_are_not_codes_are_refused(rubbish):
    with pytest.raises(TypeError, match="the defence's codes must be a list of texts"):
        pseudonyms(FEW, forms="99A", defence=lambda _: rubbish)
    with pytest.raises((TypeError, ValueError), match="function that adds noise to counts"):
        pseudonyms(FEW, forms="99A", defence=lambda _: lambda _: rubbish)


def test_a_python_class_is_not_a_list_of_codes():
    with pytest.raises(TypeError, match="the class dict"):
        pseudonyms(FEW, forms="99A", defence=lambda _: dict)


def test_taxis_without_released_trips_are_inverted_too():
    alone = Taxis("1A11", [1], "1A12", {"medallion": [], "day": [], "total": []})
    assert pseudonyms(alone).details["codes reversed"] == 1
    assert pseudonyms(alone).details["trips re-identified"] == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"numbers": 5}, "numbers must be a list of texts"),
        ({"numbers": None}, "numbers must be a list of texts"),
        ({"others": [1.5]}, "others must be a list of texts"),
        ({"counts": 5}, "one count per number"),
        ({"counts": ["x"]}, "counts must be an array of integers"),
        ({"hashed": 5}, "hashed must be a list of texts"),
        ({"trips": 5}, "trips must be an Arrow"),
        ({"trips": {"medallion": ["1A11"], "day": [1], "total": ["x"]}}, "total must be numeric"),
        ({"trips": {"medallion": ["1A11"], "day": [1], "total": [None]}}, "'total' has missing values"),
    ],
    ids=str,
)
def test_malformed_taxis_are_refused(changed, message):
    given = {"numbers": ["1A11"], "counts": [1], "others": ["1A12"], "trips": FEW.trips}
    with pytest.raises((TypeError, ValueError), match=message):
        Taxis(**{**given, **changed})


def test_bad_input_is_refused():
    trips = pa.table({"medallion": ["1A11"], "day": [1], "total": [2.0]})
    with pytest.raises(TypeError, match="data must be Taxis"):
        pseudonyms([1])
    with pytest.raises(ValueError, match="listed only once"):
        Taxis(["1A11"], [1], ["1A11"], trips)
    with pytest.raises(ValueError, match="one count per number"):
        Taxis(["1A11"], [1, 2], ["1A12"], trips)
    with pytest.raises(ValueError, match="no column 'day'"):
        Taxis(["1A11"], [1], ["1A12"], trips.drop_columns("day"))
    with pytest.raises(ValueError, match="one code for each of its 2,000 numbers"):
        pseudonyms(defence=lambda numbers: numbers[:3])
    with pytest.raises(ValueError, match="must return an array of numbers, 6,000 by 1"):
        pseudonyms(defence=lambda _: lambda counts: counts[:3])
    with pytest.raises(ValueError, match="random_state"):
        pseudonyms(random_state="a")
    with pytest.raises(TypeError, match="targets must be an integer"):
        pseudonyms(targets="5")
    with pytest.raises(TypeError, match="epsilon"):
        pseudonyms(defence="curator")
    with pytest.raises(FileNotFoundError, match=r"nyctaxi2013_medallions\.parquet in nowhere"):
        attack_named("pseudonyms").data.read(Path("nowhere"))


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "nyctaxi2013_medallions.parquet").exists(), reason="needs nyctaxi2013 in DISCREET_DATA")
def test_the_published_taxi_codes_are_inverted():
    taxis = read_taxis(DATA)
    result = pseudonyms(taxis, random_state=0)
    # 13,223 numbers in capital letters, and 490 in small ones.
    assert (result.details["codes reversed"], result.details["codes released"]) == (13_713, 14_144)
    assert result.baseline == 0
    assert result.details["trips re-identified"] > 500
    assert len(taxis.numbers) == 13_378  # by all three forms
    private = pseudonyms(taxis, defence="curator", epsilon=1)
    assert private.details["codes reversed"] == 0
    assert private.evidence.implied(confidence=CERTAIN).low <= 1
