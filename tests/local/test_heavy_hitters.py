"""Heavy hitters: values as rows of bits, the walk along their prefixes, and nothing found that is not there."""

import string
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.local.aggregator import Aggregator
from discreet.local.heavy_hitters import HeavyHitter, HeavyHitters, prefix_lengths_for_bits
from discreet.local.prefixes import IntegerDomain, Prefixes, StringDomain, read_bits, write_bits, zero_words

SURE = "0.9999999999"  # confidence of tests that must never fail by chance


def spread(count, bits=64):
    """Return so many different numbers, the same in every run."""
    return (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)


def crowd(people, shares, bits=64):
    """Return people of whom these shares have the first values, and the others have each a value of their own."""
    values = spread(people, bits)
    counts = [round(share * people) for share in shares]
    values[: sum(counts)] = np.repeat(values[: len(counts)], counts)
    return values, spread(len(shares), bits).tolist()


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(1, 64))
def test_numbers_survive_encoding(numbers, bits):
    short = [number >> (64 - bits) for number in numbers]
    assert IntegerDomain(bits).decode(IntegerDomain(bits).encode(short, "values")) == short


@pytest.mark.long
@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4), min_size=1))
def test_texts_survive_encoding(texts):
    written = StringDomain(16)
    assert written.bits == 128
    assert written.decode(written.encode(texts, "values")) == texts


@pytest.mark.long
@given(st.lists(st.text("abcxyz-", max_size=30), min_size=1), st.sampled_from(["abcxyz-", "-zyxcba", string.printable]))
def test_texts_of_an_alphabet_survive_encoding(texts, alphabet):
    written = StringDomain(30, alphabet)
    assert written.bits == 30 * len(alphabet).bit_length()
    assert written.decode(written.encode(texts, "values")) == texts


@given(st.integers(0, 2**256 - 1), st.integers(0, 200), st.integers(1, 50))
def test_bits_are_taken_from_their_positions(number, start, length):
    words = np.array([[number >> shift & (2**64 - 1) for shift in (192, 128, 64, 0)]], np.uint64)
    stop = start + length
    part = read_bits(words, start, stop)
    assert part.tolist() == [number >> (256 - stop) & ((1 << length) - 1)]
    empty = zero_words(1, 256)
    write_bits(empty, start, stop, part)
    again = sum(int(word) << (192 - 64 * place) for place, word in enumerate(empty[0]))
    assert again == int(part[0]) << (256 - stop)


def test_values_with_the_same_prefix_have_the_same_prefix_code():
    prefixes = Prefixes(StringDomain(16), prefix_lengths_for_bits(128))
    marks = prefixes.hash_values(["example.org", "example.com", "example.org", "\x80xample.org"], "values")
    # Eight letters, and the first four bits of the ninth, o or c.
    assert (marks[0] == marks[1]).tolist() == [cut <= 68 for cut in prefixes.prefix_lengths]
    assert (marks[0] == marks[2]).all()
    assert not (marks[0] == marks[3]).any()


def test_the_number_of_prefixes_per_level_is_bounded():
    for bits in [*range(1, 200), *range(200, 4097, 7)]:
        cuts = prefix_lengths_for_bits(bits)
        assert cuts[-1] == bits
        assert cuts[0] <= 20
        assert all(0 < after - before <= 12 for before, after in pairwise(cuts))


@pytest.mark.long(only=["40", "64"])
@pytest.mark.parametrize("bits", [1, 8, 21, 40, 64])
def test_frequent_numbers_are_found_with_their_shares(bits):
    shares = [0.5] if bits == 1 else [0.3, 0.2, 0.1]
    values, expected = crowd(60_000, shares, bits)
    survey = HeavyHitters(IntegerDomain(bits), 4)
    found = survey.find(survey.perturb(values), most=40, confidence=SURE)
    assert [hitter.value for hitter in found[: len(shares)] if hitter.share > 0.05] == expected
    truth = {value: np.count_nonzero(values == value) / len(values) for value in (hitter.value for hitter in found)}
    assert all(abs(hitter.share - truth[hitter.value]) < hitter.margin for hitter in found)
    if bits > 20:
        assert len(found) == len(shares)


@pytest.mark.long
def test_frequent_texts_are_found():
    rest = [f"{number:x}.net" for number in spread(20_000, 28).tolist()]
    values = ["example.org"] * 12_000 + ["example.com"] * 8000 + rest
    for written in (StringDomain(12), StringDomain(11, string.ascii_lowercase + string.digits + ".")):
        survey = HeavyHitters(written, 4)
        found = survey.find(survey.perturb(values), confidence=SURE)
        assert [hitter.value for hitter in found] == ["example.org", "example.com"]
        assert abs(found[0].share - 0.3) < found[0].margin < 0.09


@pytest.mark.long
def test_nothing_is_found_where_all_have_different_values():
    survey = HeavyHitters(IntegerDomain(64), 2)
    reports = survey.perturb(spread(40_000))
    assert survey.find(reports, confidence=SURE) == []
    assert len(survey.candidates(reports, most=7)) == 7


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "people"), [(3, 20_000), (5, 300)])
def test_false_discoveries_are_as_rare_as_claimed(epsilon, people):
    rounds, by_chance, missed = 40, 0, 0
    survey = HeavyHitters(IntegerDomain(12), epsilon)
    values = np.arange(people) % 4096
    truth = np.bincount(values, minlength=4096) / people
    for _ in range(rounds):
        best = survey.candidates(survey.perturb(values), most=20)
        by_chance += any(hitter.is_significant for hitter in best)
        missed += any(abs(hitter.share - truth[hitter.value]) > hitter.margin for hitter in best)
    # One in twenty at most, of which more than 14 of 40 would be a chance below 1e-9.
    assert by_chance <= 14
    assert missed <= 14


@pytest.mark.long
def test_a_value_that_only_collides_with_a_frequent_one_is_not_found():
    values, expected = crowd(60_000, [0.9])
    survey = HeavyHitters(IntegerDomain(64), 8)
    best = survey.candidates(survey.perturb(values), most=100)
    assert [hitter.value for hitter in best[:1]] == expected
    assert all(hitter.share < 0.05 for hitter in best[1:])


def test_invalid_texts_are_not_candidates():
    survey = HeavyHitters(StringDomain(2), 1)
    best = survey.candidates(survey.perturb(["a"] * 50), most=400)
    assert all(isinstance(hitter.value, str) for hitter in best)
    assert StringDomain(2).decode(np.array([[0x00410000 << 32], [0xFFFF << 48], [0x4100 << 48], [0]], np.uint64)) == [
        None,
        None,
        "A",
        "",
    ]


@pytest.mark.long
def test_the_best_come_first_and_no_more_than_asked_for():
    values, expected = crowd(60_000, [0.4, 0.2, 0.1, 0.05], 32)
    survey = HeavyHitters(IntegerDomain(32), 4)
    reports = survey.perturb(values)
    assert [hitter.value for hitter in survey.find(reports, most=2)] == expected[:2]
    best = survey.candidates(reports, most=50)
    assert isinstance(best[0], HeavyHitter)
    assert [hitter.share for hitter in best] == sorted((hitter.share for hitter in best), reverse=True)


@pytest.mark.long(but=["1"])
@pytest.mark.parametrize("people", [1, 40])
def test_few_people_do_not_raise_an_error(people):
    survey = HeavyHitters(IntegerDomain(64), 1)
    assert survey.find(survey.perturb([7] * people), confidence=SURE) == []


def test_shares_of_known_values_are_read_from_the_same_reports():
    values, expected = crowd(60_000, [0.4, 0.2])
    survey = HeavyHitters(IntegerDomain(64), 4)
    shares, margins = survey.shares(survey.perturb(values), [*expected, 12345])
    assert (np.abs(shares - [0.4, 0.2, 0]) < 4 * margins).all()


@pytest.mark.long
def test_reports_and_aggregators_of_heavy_hitters_survive_serialisation():
    values, expected = crowd(40_000, [0.4, 0.2], 32)
    survey = HeavyHitters(IntegerDomain(32), 4)
    reports = survey.perturb(values)
    again = survey.read(bytes(reports))
    assert (survey.counts(again) == survey.counts(reports)).all()
    assert len(bytes(reports[:1])) == 6 + 6
    tallies = Aggregator(survey), Aggregator(survey)
    tallies[0].add(reports[:15_000])
    tallies[1].add(bytes(reports[15_000:]))
    tallies[0].merge(Aggregator.read(survey, bytes(tallies[1])))
    found = survey.find(reports)
    assert survey.find(tallies[0]) == found
    assert [hitter.value for hitter in found[:2]] == expected
    for other in (
        HeavyHitters(IntegerDomain(32), 3),
        HeavyHitters(IntegerDomain(33), 4),
        HeavyHitters(StringDomain(4), 4),
    ):
        with pytest.raises(ValueError, match="configuration"):
            other.read(bytes(reports))
        with pytest.raises(ValueError, match="configuration"):
            other.find(tallies[0])
    with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
        survey.read(bytes(reports)[:-1])


def test_one_report_costs_exactly_epsilon():
    survey = HeavyHitters(StringDomain(16), "1/2")
    assert survey.loss() == dc.Loss("1/2")
    reports = np.asarray(survey.perturb(["a"] * 10)).tolist()
    ratios = {survey.pmf(report, x) / survey.pmf(report, y) for report in reports for x in "ab" for y in "ab"}
    assert max(ratios) <= survey.scheme.odds


@pytest.mark.parametrize(
    ("written", "wrong", "error", "text"),
    [
        (IntegerDomain(8), [256], ValueError, "256 is outside the range 0"),
        (IntegerDomain(8), [-1], ValueError, "-1 is outside the range"),
        (IntegerDomain(8), ["a"], TypeError, "integers"),
        (IntegerDomain(8), [1.0], TypeError, "integers"),
        (IntegerDomain(8), 5, TypeError, "must be a list"),
        (StringDomain(4), ["abcde"], ValueError, "5 bytes, more than 4"),
        (StringDomain(4), ["äöü"], ValueError, "6 bytes, more than 4"),
        (StringDomain(4), ["a\0b"], ValueError, "not in the alphabet"),
        (StringDomain(4, "abc"), ["abd"], ValueError, "not in the alphabet"),
        (StringDomain(4), [7], TypeError, "strings"),
        (StringDomain(4), "abcd", TypeError, "must be a list, not str"),
    ],
)
def test_values_that_cannot_be_encoded_are_refused(written, wrong, error, text):
    with pytest.raises(error, match=text):
        HeavyHitters(written, 1).perturb(wrong)


def test_heavy_hitters_refuse_what_they_cannot_do():
    for wrong in (0, 65):
        with pytest.raises(ValueError, match="bits must be at"):
            IntegerDomain(wrong)
    with pytest.raises(TypeError, match="bits must be an integer"):
        IntegerDomain(2.5)
    with pytest.raises(ValueError, match="length must be at least 1"):
        StringDomain(0)
    with pytest.raises(ValueError, match="more than 4096"):
        StringDomain(1000)
    for wrong in ("", "aa", "ä", "a\0", 5):
        with pytest.raises(ValueError, match="alphabet must"):
            StringDomain(4, wrong)
    with pytest.raises(TypeError, match="IntegerDomain"):
        HeavyHitters(64, 1)
    with pytest.raises(ValueError, match="epsilon"):
        HeavyHitters(IntegerDomain(64), 0)
    survey = HeavyHitters(IntegerDomain(8), 1)
    with pytest.raises(ValueError, match="must not be empty"):
        survey.find(survey.perturb([]))
    with pytest.raises(ValueError, match="most must be at least 1"):
        survey.find(survey.perturb([1]), most=0)
    with pytest.raises(ValueError, match="confidence"):
        survey.find(survey.perturb([1]), confidence=1)
