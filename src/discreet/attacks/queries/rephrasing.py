"""The rephrasing attack: many texts of the same query, against a cache that only recognises equal texts."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from discreet.attacks.attack import Attack, AttackResult, DefenceChoice, Game, whole
from discreet.attacks.data.population import POPULATION, Population
from discreet.attacks.queries.attack_targets import (
    draw_targets,
    most_likely_counts,
    result_by_answer_count,
    unique_success,
)
from discreet.attacks.queries.sql_oracles import add_fresh_noise, cache_by_text
from discreet.attacks.queries.target_queries import (
    AskTargets,
    TargetQuery,
    query_releases,
    quoted_column,
    user_oracles,
)
from discreet.kernel.numbers import Number, as_positive

_COUNT_FORMS = ("COUNT(*)", "COUNT({secret})", "SUM({secret})", "SUM(1)")
_SECRET_FORMS = (
    "{secret} = 1",
    "{secret} >= 1",
    "{secret} > 0",
    "{secret} <> 0",
    "NOT {secret} = 0",
    "NOT {secret} < 1",
    "{secret} + 0 = 1",
    "{secret} * 2 = 2",
    "1 - {secret} = 0",
    "{secret} IN (1)",
    "{secret} BETWEEN 1 AND 2",
)
_TARGET_FORMS = ("{target}", "NOT NOT ({target})", "({target}) AND 1 = 1", "({target} OR 1 = 0)")


def paraphrases(secret: str) -> Iterator[TargetQuery]:
    """Yield equivalent queries that count the people who have the secret and match the target, without end.

    >>> [query.condition for query in itertools.islice(paraphrases("ill"), 2)]
    ['"ill" = 1 AND {target}', '{target} AND "ill" = 1']
    """
    name = quoted_column(secret)
    for number in itertools.count():
        # From the second round on, add a condition that holds for everybody.
        tautology = f" AND {name} < {1000 + number}" if number else ""
        for target, secret_form, count_form in itertools.product(_TARGET_FORMS, _SECRET_FORMS, _COUNT_FORMS):
            has_secret, count = secret_form.format(secret=name), count_form.format(secret=name)
            yield TargetQuery(count, f"{has_secret} AND {target}{tautology}")
            yield TargetQuery(count, f"{target} AND {has_secret}{tautology}")


_BUDGET_PARTS = 20  # the number of queries that the curator's budget is divided among
_MAX_TEXTS_WITHOUT_NEWS = 10  # give up after this many texts in a row without a new answer


def rephrasing(  # noqa: PLR0913 - the common arguments and three settings
    data: Population | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    targets: int = 200,
    texts: int = 200,
    width: Number = 1,
) -> AttackResult:
    """Infer people's secrets by sending many equivalent texts of one query and combining the answers.

    `data` is a `Population`, a simulated town by default. Answers are non-private ("nothing"), with Laplace noise of
    scale `width` that is cached by text ("easy"), or the curator's with budget epsilon ("curator"). A function as
    defence gets the table of people and returns a function that answers SQL with a number.

    >>> rephrasing(defence="easy", random_state=0, targets=50).success
    1.0
    """
    return ATTACK.run(data, defence, epsilon, random_state, targets=targets, texts=texts, width=width)


def _play(game: Game) -> AttackResult:
    targets = draw_targets(game.data, game.settings.targets, game.rng)
    with game.release(targets) as ask:
        collected = collect_answers(ask, list(islice(paraphrases(targets.people.secret), game.settings.texts)))
    estimates = {
        number: most_likely_counts(collected.answers[:number], targets.class_sizes)
        for number in _answer_counts(collected.new_answers)
    }
    details = {
        "query texts sent": collected.texts_asked,
        "new answers": collected.new_answers,
        "repeated answers": collected.repeated_answers,
        "refused": collected.texts_asked - collected.new_answers - collected.repeated_answers,
        "inferred after one answer": unique_success(targets, estimates[1]),
    }
    return result_by_answer_count(game, targets, estimates, details, "distinct answers received")


@dataclass(frozen=True)
class CollectedAnswers:
    """The distinct answers (one row of numbers for all targets each), and how many texts got new or repeated ones."""

    answers: np.ndarray
    texts_asked: int
    new_answers: int
    repeated_answers: int


def collect_answers(ask: AskTargets, queries: Sequence[TargetQuery]) -> CollectedAnswers:
    """Send query texts until they bring no new answers, and return the distinct answers.

    With few targets, two fresh integer answers may be equal by chance and count as one.

    >>> answers = iter(np.array([[1.0], [1.0], [3.0]]))
    >>> collected = collect_answers(lambda query: next(answers), [TargetQuery("COUNT(*)", "{target}")] * 3)
    >>> collected.answers.tolist(), collected.texts_asked, collected.new_answers, collected.repeated_answers
    ([[1.0], [3.0]], 3, 2, 1)
    """
    distinct_answers: dict[bytes, np.ndarray] = {}
    texts_asked = repeated_answers = texts_without_news = 0
    while texts_asked < len(queries) and texts_without_news < _MAX_TEXTS_WITHOUT_NEWS:
        answers = ask(queries[texts_asked])
        texts_asked, texts_without_news = texts_asked + 1, texts_without_news + 1
        if np.isnan(answers).all():
            continue
        if answers.tobytes() in distinct_answers:
            repeated_answers += 1
            continue
        distinct_answers[answers.tobytes()], texts_without_news = answers, 0
    answers = np.stack(list(distinct_answers.values())) if distinct_answers else np.zeros((0, 1))
    return CollectedAnswers(answers, texts_asked, len(distinct_answers), repeated_answers)


def _answer_counts(new_answers: int) -> list[int]:
    """Return the numbers of answers after which to guess: 1, 2, 4, ..., and all."""
    return sorted({1 << bit for bit in range(new_answers.bit_length())} | {max(new_answers, 1)})


ATTACK = Attack(
    function=rephrasing,
    docs_page="queries",
    summary="Sends hundreds of equivalent texts of one query to get around answers that are cached by text.",
    data=POPULATION,
    releases=query_releases(
        (
            "non-private counts",
            "noisy counts, cached by query text",
            "private counts: equivalent queries are cached, any others are charged to one budget",
        ),
        easy_fix=lambda game, oracle: cache_by_text(add_fresh_noise(oracle, float(game.settings.width), game.rng)),
        budget_parts=_BUDGET_PARTS,
    ),
    own=user_oracles,
    play=_play,
    settings={"targets": whole(1), "texts": whole(1), "width": as_positive},
)
