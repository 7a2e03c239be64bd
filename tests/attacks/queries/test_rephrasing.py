from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import attacks
from discreet.attacks.queries.attack_targets import guess_secrets, most_likely_counts
from discreet.attacks.queries.rephrasing import collect_answers, paraphrases
from discreet.attacks.queries.sql_oracles import add_fresh_noise, cache_by_text, exact_oracle

SURE = 1 - 1e-9


@pytest.mark.long
def test_caching_by_text_is_defeated_by_rephrasing():
    result = attacks.rephrasing(defence="easy", random_state=0, targets=100)
    assert result.details["new answers"] == result.details["query texts sent"] == 200
    assert result.details["inferred after one answer"] < 0.85
    assert result.success == 1


@pytest.mark.long
def test_the_curator_charges_rephrased_queries_until_the_budget_is_spent():
    result = attacks.rephrasing(defence="curator", epsilon=1, random_state=0, targets=100)
    assert result.details["new answers"] == 20
    assert result.details["refused"] > 0
    assert result.details["repeated answers"] > 0
    assert result.success <= result.ceiling + 0.36  # 6.2 standard deviations
    assert result.evidence.implied(confidence=SURE).low <= 1


@pytest.mark.long
def test_at_epsilon_a_tenth_nothing_is_inferred():
    result = attacks.rephrasing(defence="curator", epsilon="1/10", random_state=0, targets=100, texts=25)
    assert result.evidence.implied(confidence=SURE).low <= 0.1


@pytest.mark.long
def test_all_paraphrases_ask_the_same():
    table = pa.table({"age": [30, 30, 30, 40], "ill": [1, 0, 1, 1]})
    ask = exact_oracle(table)
    texts = [question.sql_about({"age": 30}) for question in islice(paraphrases("ill"), 400)]
    assert len(set(texts)) == 400
    assert {ask(text) for text in texts} == {2.0}


def test_a_cache_by_text_does_not_recognise_paraphrases():
    ask = cache_by_text(add_fresh_noise(exact_oracle(pa.table({"age": [30], "ill": [1]})), 1, np.random.default_rng(0)))
    texts = [question.sql_about({"age": 30}) for question in islice(paraphrases("ill"), 100)]
    assert len({float(ask(text)) for text in texts}) == 100
    assert ask(texts[0]) == ask(texts[0].lower())


def test_the_curator_recognises_some_paraphrases_and_charges_the_others():
    table = pa.table({"age": [30, 31, 40], "ill": [1, 0, 1]})
    columns = {"age": (0, 120), "ill": {"in": [0, 1]}}
    with dc.open(table, unit="row", budget=1, columns=columns, groups=1, rows=1, ledger=":memory:") as curator:
        curator.ask("SELECT COUNT(*) FROM data WHERE age > 30", epsilon="1/10")
        same = curator.ask("select count(1) as n from DATA where AGE>30", epsilon="1/10")
        other = curator.ask("SELECT COUNT(*) FROM data WHERE age >= 31", epsilon="1/10")
        assert (same.paid.epsilon, other.paid.epsilon) == (0, dc.Budget(epsilon="1/10").epsilon)


def test_answers_that_differ_are_kept_and_repeats_are_not():
    told = iter([[1.0], [1.0], [4.0], [np.nan]])
    heard = collect_answers(lambda question: np.array(next(told)), list(islice(paraphrases("ill"), 4)))
    assert (heard.texts_asked, heard.new_answers, heard.repeated_answers) == (4, 2, 1)
    assert heard.answers.tolist() == [[1.0], [4.0]]


@pytest.mark.long
def test_the_likelihood_of_laplace_answers_discloses_more_than_their_mean():
    # What the curator's twenty answers look like at epsilon 3: whole noise, of a twentieth of it each.
    rng, alike = np.random.default_rng(0), np.ones(100_000, int)
    coins = rng.integers(0, 2, alike.size)
    noise = np.subtract(*rng.geometric(1 - np.exp(-3 / 20), (2, 20, alike.size)))
    weighed, mean = (
        guess_secrets(how, alike) == coins
        for how in (most_likely_counts(coins + noise, alike), (coins + noise).mean(0))
    )
    assert weighed.mean() > mean.mean() + 0.015


def test_the_most_likely_count_is_a_possible_one():
    answers = np.array([[9.0, 9.0, 1.1, np.nan], [9.0, 9.0, 1.1, np.nan], [-50.0, 9.0, 7.0, np.nan]])
    assert most_likely_counts(answers, np.array([1, 2, 3, 3])).tolist() == [1, 2, 1, 0]


def test_an_oracle_that_refuses_everything_discloses_nothing():
    result = attacks.rephrasing(defence=lambda table: lambda sql: np.nan, random_state=0, targets=60)
    assert result.details["new answers"] == 0
    assert 0.1 < result.success < 0.9


@pytest.mark.long
def test_too_little_noise_is_caught_in_a_custom_defence(little_noise):
    result = attacks.rephrasing(
        defence=little_noise(1 / 2),
        epsilon="1/10",
        random_state=0,
        targets=30,
        texts=16,
    )
    assert result.implied.low > 0.1


def test_no_texts_are_refused():
    with pytest.raises(ValueError, match="texts"):
        attacks.rephrasing(texts=0)
