import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks.queries.asking import Question
from discreet.attacks.queries.oracles import exact, large_sets
from discreet.attacks.queries.people import People, pick, town

PEOPLE = pa.table({"age": [20, 30, 30, 40], "pay": [1, 2, 3, 4]})


def test_a_sum_over_nobody_is_nothing():
    assert exact(PEOPLE)("SELECT SUM(pay) FROM people WHERE age > 90") == 0


def test_a_small_set_is_refused_whatever_is_asked_about_it():
    ask = large_sets(exact(PEOPLE), smallest=3)
    for what in ("COUNT(*)", "COUNT(pay)", "SUM(pay)", "sum(pay)", "AVG(pay)", "MAX(pay)"):
        assert np.isnan(ask(f"SELECT {what} FROM people WHERE age = 30"))
    assert ask("SELECT SUM(pay) FROM people WHERE NOT age = 20") == 9


def test_a_question_names_its_target_in_every_copy():
    question = Question("COUNT(*)", "ill = 1 AND {target}")
    assert question.about({"age": 3, "name": "O'Hara"}).endswith("age = 3 AND name = 'O''Hara'")
    assert "age = target_age AND sex = target_sex" in question.about_each(("age", "sex"))


def test_who_is_alone_and_who_is_not_is_counted_by_all_that_is_known():
    people = People({"age": [1, 1, 1, 2], "sex": ["f", "f", "m", "m"], "ill": [0, 0, 1, 1]}, ("age", "sex"), "ill")
    assert people.alike.tolist() == [2, 2, 1, 1]


def test_secrets_of_targets_are_coins_and_those_of_others_stay():
    people = town(np.random.default_rng(0))
    targets = pick(people, 100, np.random.default_rng(1))
    before, after = (each.table["ill"].to_numpy() for each in (people, targets.people))
    others = np.setdiff1d(np.arange(500), targets.rows)
    assert (before[others] == after[others]).all()
    assert (after[targets.rows] == targets.coins).all()
    assert 20 < (before[targets.rows] != after[targets.rows]).sum() < 80


def test_no_targets_are_refused():
    with pytest.raises(ValueError, match="targets"):
        pick(town(np.random.default_rng(0)), 0, np.random.default_rng(0))


def test_people_may_come_in_a_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["a", "b"], "ill": [0, 1]})
    assert People(frame, ("name",), "ill").alike.tolist() == [1, 1]
