import numpy as np
import pyarrow as pa
import pytest

from discreet import attacks
from discreet.attacks.data.population import Population, simulate_town
from discreet.attacks.queries.attack_targets import draw_targets
from discreet.attacks.queries.sql_oracles import exact_oracle, refuse_small_sets
from discreet.attacks.queries.target_queries import TargetQuery

PEOPLE = pa.table({"age": [20, 30, 30, 40], "pay": [1, 2, 3, 4]})


def test_a_sum_over_nobody_is_zero():
    assert exact_oracle(PEOPLE)("SELECT SUM(pay) FROM people WHERE age > 90") == 0


def test_a_small_set_is_refused_whatever_the_query():
    ask = refuse_small_sets(exact_oracle(PEOPLE), smallest=3)
    for what in ("COUNT(*)", "COUNT(pay)", "SUM(pay)", "sum(pay)", "AVG(pay)", "MAX(pay)"):
        assert np.isnan(ask(f"SELECT {what} FROM people WHERE age = 30"))
    assert ask("SELECT SUM(pay) FROM people WHERE NOT age = 20") == 9


def test_a_query_names_its_target_in_every_copy():
    question = TargetQuery("COUNT(*)", "ill = 1 AND {target}")
    assert question.sql_about({"age": 3, "name": "O'Hara"}).endswith(""""age" = 3 AND "name" = 'O''Hara'""")
    people = Population({"age": [1, 2], "sex": ["f", "m"], "ill": [0, 1]}, ("age", "sex"), "ill")
    assert '"age" = game_of_0 AND "sex" = game_of_1' in question.sql_about_each(people)


def test_a_small_set_is_refused_whatever_its_columns_are_called():
    ask = refuse_small_sets(exact_oracle(pa.table({"age": [20, 30], 'pay (in "k")': [1, 2]})), smallest=2)
    name = '"pay (in ""k"")"'
    assert np.isnan(ask(f"SELECT SUM({name}) FROM people WHERE age = 30 AND {name} < 9"))
    assert ask(f"SELECT SUM({name}) FROM people") == 3


def test_uniqueness_is_counted_over_all_known_columns():
    people = Population({"age": [1, 1, 1, 2], "sex": ["f", "f", "m", "m"], "ill": [0, 0, 1, 1]}, ("age", "sex"), "ill")
    assert people.class_sizes.tolist() == [2, 2, 1, 1]


def test_secrets_of_targets_are_random_bits_and_those_of_others_stay():
    people = simulate_town(np.random.default_rng(0))
    targets = draw_targets(people, 100, np.random.default_rng(1))
    before, after = (each.table["ill"].to_numpy() for each in (people, targets.people))
    others = np.setdiff1d(np.arange(500), targets.rows)
    assert (before[others] == after[others]).all()
    assert (after[targets.rows] == targets.secret_bits).all()
    assert 20 < (before[targets.rows] != after[targets.rows]).sum() < 80


def test_no_targets_are_refused():
    with pytest.raises(ValueError, match="targets"):
        draw_targets(simulate_town(np.random.default_rng(0)), 0, np.random.default_rng(0))


def test_one_known_column_may_be_named_by_itself():
    assert Population({"zip": ["1", "1"], "ill": [0, 1]}, known="zip", secret="ill").class_sizes.tolist() == [2, 2]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["str", "category"])
def test_people_may_come_in_a_frame_of_pandas(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["a", "b", "b"], "ill": [0, 1, 1]}, index=[5, 6, 7]).astype({"name": kind})
    asked_about(Population(frame, ("name",), "ill"))


@pytest.mark.long(but=["Categorical"])
@pytest.mark.parametrize("kind", ["String", "Categorical"])
def test_people_may_come_in_a_frame_of_polars(kind):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"name": ["a", "b", "b"], "ill": [0, 1, 1]})
    asked_about(Population(frame.with_columns(polars.col("name").cast(getattr(polars, kind))), ("name",), "ill"))


def asked_about(people):
    """See that the first of three people is alone, and found out through all engines."""
    assert people.class_sizes.tolist() == [1, 2, 2]
    for defence in ({"defence": "nothing"}, {"defence": exact_oracle}, {"defence": "curator", "epsilon": 10_000}):
        assert attacks.differencing(people, **defence, random_state=0).success == 1
