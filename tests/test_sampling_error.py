"""Sampling errors: what is estimated, what is bounded, what is not claimed, and how often margins hold."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sampled_populations import coverage, false_positives, open_sample, population

import discreet as dc
from discreet.answer.margins import CellDifference
from discreet.policy import Policy

SURE = 100_000  # an epsilon at which there is hardly any noise
SIZES = "sample_size = 400\npopulation_size = 1000"
Z = 1.959964


def survey(rows=400):
    n = np.arange(rows)
    return pa.table(
        {
            "person": n,
            "area": np.where(n % 4, "A", "B"),
            "smokes": (n % 5 == 0).astype(int),
            "income": (n * 37 % 101).astype(float),
        }
    )


def asked(sql, sizes="", unit='unit = "row"', data=None, epsilon=SURE):
    with open_sample(data or survey(), f'{unit}\nsample = "simple"\n{sizes}', areas=["A", "B"]) as curator:
        return curator.ask(sql, epsilon=epsilon)


# What is estimated


def test_a_proportion_has_the_binomial_sampling_error():
    answer = asked("SELECT AVG(smokes) AS p FROM people")
    assert answer.sampling_margins["p"][0] == pytest.approx(Z * math.sqrt(0.2 * 0.8 / 400), rel=0.01)
    assert answer.noise_margins["p"][0] < 0.003  # rounding, not noise
    assert answer.margins["p"][0] == pytest.approx(answer.sampling_margins["p"][0], rel=0.01)
    assert "upper bound" not in answer.details()


def test_a_proportion_of_zero_has_a_sampling_error():
    answer = asked("SELECT AVG(CASE WHEN smokes > 1 THEN 1 ELSE 0 END) AS p FROM people")
    assert 0.003 < answer.sampling_margins["p"][0] < 0.02


def test_the_mean_beside_its_deviation_has_the_estimated_sampling_error_and_alone_a_bound():
    income = survey().column("income").to_numpy()
    together = asked("SELECT AVG(income) AS m, STDDEV(income) AS s FROM people")
    assert together.sampling_margins["m"][0] == pytest.approx(Z * income.std(ddof=1) / 20, rel=0.01)
    assert together.sampling_margins["s"] == [None]
    assert together.margins["s"] == together.noise_margins["s"]
    alone, mean = asked("SELECT AVG(income) AS m FROM people"), income.mean()
    assert alone.sampling_margins["m"][0] == pytest.approx(Z * math.sqrt(mean * (200 - mean)) / 20, rel=0.02)
    assert "upper bound from the range" in alone.details().replace("\n", " ")


def test_a_finite_population_reduces_the_sampling_error_and_a_census_has_none():
    open_ended = asked("SELECT AVG(smokes) AS p FROM people").sampling_margins["p"][0]
    finite = asked("SELECT AVG(smokes) AS p FROM people", SIZES).sampling_margins["p"][0]
    assert finite == pytest.approx(open_ended * math.sqrt(0.6), rel=1e-3)
    census = asked("SELECT AVG(smokes) AS p FROM people", "sample_size = 400\npopulation_size = 400")
    assert census.sampling_margins["p"] == [0.0]


def test_totals_describe_the_sample_unless_the_sizes_are_declared():
    sql = "SELECT COUNT(*) AS n, SUM(smokes) AS s FROM people"
    sample = asked(sql)
    assert sample.table.to_pylist() == [{"n": 400, "s": 80}]
    assert sample.sampling_margins == {"n": [None], "s": [None]}
    assert sample.margins == sample.noise_margins
    assert "totals of the sample" in sample.details()
    expanded = asked(sql, SIZES)
    assert expanded.table.to_pylist() == [{"n": 1000, "s": 200}]
    assert expanded.sampling_margins["s"][0] == pytest.approx(Z * 2.5 * math.sqrt(400 * 0.2 * 0.8 * 0.6), rel=0.01)
    assert "population of 1,000" in expanded.details()


def test_a_sum_beside_its_deviation_has_the_estimated_sampling_error():
    income = survey().column("income").to_numpy()
    answer = asked("SELECT SUM(income) AS s, STDDEV(income) AS d FROM people", SIZES)
    assert answer.table.column("s")[0].as_py() == pytest.approx(2.5 * income.sum(), rel=1e-3)
    assert answer.sampling_margins["s"][0] == pytest.approx(2.5 * Z * income.std() * math.sqrt(400 * 0.6), rel=0.01)


# What is bounded: rows of one unit may be alike


def test_several_rows_of_a_unit_bound_the_design_effect():
    unit = 'unit = "person"\ngroups = 2\nrows = 4'
    answer = asked("SELECT AVG(smokes) AS p FROM people", unit=unit)
    assert answer.sampling_margins["p"][0] == pytest.approx(2 * Z * math.sqrt(0.2 * 0.8 / 400), rel=0.03)
    assert "as if all rows of a unit" in answer.details().replace("\n", " ")
    per_unit = "SELECT AVG(p) AS p FROM (SELECT person, MAX(smokes) AS p FROM people GROUP BY person) AS t"
    assert asked(per_unit, unit=unit).sampling_margins["p"][0] == pytest.approx(
        Z * math.sqrt(0.2 * 0.8 / 400), rel=0.01
    )


def test_the_bound_holds_if_all_rows_of_a_unit_are_alike():
    rows = pa.concat_tables([survey(400)] * 3)
    answer = asked("SELECT AVG(smokes) AS p FROM people", unit='unit = "person"\ngroups = 1\nrows = 3', data=rows)
    assert answer.sampling_margins["p"][0] >= Z * math.sqrt(0.2 * 0.8 / 400)


# What is not claimed


@pytest.mark.parametrize(
    "sql", ["MEDIAN(income)", "STDDEV(income)", "COUNT(DISTINCT area)", "MIN(income)", "HISTOGRAM(area)"]
)
def test_where_released_numbers_do_not_give_a_sampling_error_none_is_claimed(sql):
    answer = asked(f"SELECT {sql} AS v FROM people", SIZES)
    assert answer.sampling_margins == {"v": [None]}
    assert answer.margins == answer.noise_margins
    assert "covers privacy noise only" in answer.details().replace("\n", " ")
    assert "sampling" not in repr(answer)


def test_a_derived_number_has_the_sampling_error_of_its_aggregate_or_a_bound():
    answer = asked(
        "SELECT AVG(smokes) AS p, 100 * AVG(smokes) AS c, 1.0 * SUM(smokes) / COUNT(*) AS r FROM people", SIZES
    )
    p, c, r = (answer.sampling_margins[name][0] for name in "pcr")
    assert c == pytest.approx(100 * p)
    assert r >= p
    assert "any correlation" in answer.details().replace("\n", " ")
    median = asked("SELECT AVG(smokes) + MEDIAN(income) AS v FROM people")
    assert median.sampling_margins == {"v": [None]}


def test_without_a_sample_nothing_changes():
    with open_sample(survey(), 'unit = "row"', areas=["A", "B"]) as curator:
        answer = curator.ask("SELECT AVG(smokes) AS p FROM people", epsilon=1)
    assert answer.noise_margins == answer.sampling_margins == {}
    assert answer.with_margins().column_names == ["p", "p_margin"]
    assert "sampling" not in repr(answer) + answer.details()


# Both parts are visible everywhere


def test_both_parts_are_in_every_format():
    answer = asked("SELECT area, AVG(smokes) AS p, COUNT(*) AS n FROM people GROUP BY area", epsilon=1)
    assert "privacy noise and sampling (privacy noise only: n)" in repr(answer).replace("\n", " ")
    assert "95 % margin of p: privacy noise ±" in answer.details()
    table = answer.with_margins()
    assert table.column_names[1:5] == ["p", "p_margin", "p_noise_margin", "p_sampling_margin"]
    for margin, noise, sampling in zip(*(table.column(i).to_pylist() for i in (2, 3, 4)), strict=True):
        assert margin == pytest.approx(math.hypot(noise, sampling))
    metadata = json.loads(answer.to_arrow().schema.metadata[b"discreet"])
    assert metadata["sampling_margins"] == answer.sampling_margins
    assert metadata["noise_margins"] == answer.noise_margins
    assert "and sampling" in answer._repr_html_()


def test_the_database_interface_has_both_parts(tmp_path):
    policy = Policy.parse(SURVEY_FILE, base=tmp_path)
    pq.write_table(survey(), tmp_path / "people.parquet")
    with dc.connect(policy, epsilon=1) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT AVG(smokes) AS p FROM people")
        assert [column[0] for column in cursor.description] == ["p", "p_margin", "p_noise_margin", "p_sampling_margin"]


SURVEY_FILE = """
[data]
name = "survey"
[budget]
epsilon = 10
[tables.people]
source = "people.parquet"
unit = "row"
sample = "simple"
[tables.people.columns]
smokes = { type = "integer", between = [0, 1] }
"""


def test_explain_says_that_sampling_is_added():
    with open_sample(survey(), f'unit = "row"\nsample = "simple"\n{SIZES}', areas=["A", "B"]) as curator:
        sample = curator.explain("SELECT COUNT(*) AS n FROM people", epsilon=1)
    assert "sampling error" in " ".join(sample.notes)
    assert sample.columns[0].margin == pytest.approx(2.5 * 3, abs=0.6)


def test_a_requested_margin_is_that_of_the_noise_on_the_scale_of_the_answer():
    with open_sample(survey(), f'unit = "row"\nsample = "simple"\n{SIZES}', areas=["A", "B"]) as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM people", margin=30)
    assert 25 < answer.noise_margins["n"][0] <= 30


# How often they hold, over the groups of one answer


@pytest.mark.parametrize("measure", ["proportion", "mean", "total"])
@pytest.mark.parametrize("epsilon", [0.3, 20])
def test_combined_margins_cover_the_population(measure, epsilon):
    assert 0.93 < coverage(population(measure, groups=400, seed=3), epsilon=epsilon) < 0.97


def test_margins_from_noise_alone_do_not_cover_the_population():
    assert coverage(population("mean", groups=400, seed=3), epsilon=20, part="noise_margins") < 0.8


# Whether two numbers differ


def test_equal_groups_are_rarely_called_different():
    for measure in ("mean", "total"):
        assert false_positives(population(measure, groups=400, seed=5, different=1), epsilon=20) <= 0.05


def test_groups_that_differ_in_the_population_are_called_different_more_often():
    assert false_positives(population("mean", groups=400, seed=5), epsilon=100) > 0.1


def test_a_large_difference_is_significant_and_a_small_one_is_not():
    data = survey().set_column(3, "income", pa.array(np.where(np.arange(400) % 4, 100.0, 5.0)))
    answer = asked("SELECT area, AVG(income) AS m FROM people GROUP BY area", data=data, epsilon=10)
    found = answer.differs(0, 1)
    assert found.significant
    assert found.p_value < 0.01
    assert found.difference == pytest.approx(95, abs=5)
    assert repr(found).startswith("m: A - B = 9")
    assert not answer.differs(0, 0)
    assert not asked("SELECT area, AVG(smokes) AS m FROM people GROUP BY area", epsilon=1).differs(0, 1)


def test_sampling_errors_of_totals_are_added_because_they_are_correlated():
    answer = asked("SELECT area, COUNT(*) AS n, AVG(smokes) AS p FROM people GROUP BY area", SIZES)
    first, second = answer.sampling_margins["n"]
    assert answer.differs(0, 1, "n").margin == pytest.approx(first + second, rel=1e-3)
    assert answer.differs(0, 1, "p").margin == pytest.approx(math.hypot(*answer.sampling_margins["p"]), rel=0.02)


def test_a_difference_without_a_sampling_error_is_one_of_the_sample():
    answer = asked("SELECT area, COUNT(*) AS n FROM people GROUP BY area", epsilon=1)
    assert "in the sample" in repr(answer.differs(0, 1))


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [((0, 2, "n"), "row_b"), ((-1, 0, "n"), "row_a"), ((0, 1, "area"), "column"), ((0, 1), "column")],
)
def test_a_difference_needs_two_rows_and_a_noisy_column(arguments, cause):
    answer = asked("SELECT area, COUNT(*) AS n, AVG(smokes) AS p FROM people GROUP BY area")
    with pytest.raises(ValueError, match=cause):
        answer.differs(*arguments)


def test_a_number_without_a_margin_cannot_be_compared():
    answer = asked("SELECT area, RANK() OVER (ORDER BY COUNT(*)) AS place FROM people GROUP BY area")
    with pytest.raises(ValueError, match="no margin"):
        answer.differs(0, 1)


def test_margins_of_shares_are_added_up_because_one_grows_where_another_shrinks():
    sql = "SELECT area, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY area"
    answer = asked(sql, epsilon=1)
    noise = answer.noise_margins.get("share", answer.margins["share"])
    assert answer.differs(0, 1).margin >= noise[0] + noise[1] > 0


def test_p_values_are_continuous_and_fall_with_the_difference():
    values = [CellDifference("", d, 10.0).p_value for d in (0, 5, 9.999, 10.0, 20, 30)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1
    assert values[2] == pytest.approx(0.05, abs=1e-4)
    assert values[4] == pytest.approx(0.0025)
    assert CellDifference("", 1, 0.0).p_value == 0
    assert CellDifference("", 0, 0.0).p_value == 1
