"""Asking one question about many targets at once: each is in a copy of the data, with an oracle of its own."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.checking import numbers
from discreet.attacks.defences import CURATOR, EASY, OWN, Shield
from discreet.attacks.queries.oracles import Oracle, database
from discreet.attacks.queries.people import People, Targets
from discreet.kernel.errors import Refused


@dataclass(frozen=True)
class Question:
    """A question about somebody: what to count or add up, and of whom; {target} is what is known of the target.

    Both are texts of SQL in which names of columns are written as `column` writes them.

    >>> print(Question("COUNT(*)", f"{column('is ill')} = 1 AND NOT ({{target}})").about({"age": 30, "ward": "hill"}))
    SELECT COUNT(*) FROM people WHERE "is ill" = 1 AND NOT ("age" = 30 AND "ward" = 'hill')
    """

    what: str
    where: str

    def about(self, person: Mapping[str, Any]) -> str:
        """Write the question about one person."""
        target = " AND ".join(f"{_quoted(name)} = {_literal(value)}" for name, value in person.items())
        what, where = self.what.format(), self.where.format(target=target)
        return f"SELECT {what} FROM people WHERE {where}"  # noqa: S608 - names are quoted, and the rest are our words

    def about_each(self, people: People) -> str:
        """Write the question about the target of each copy, whom the public table `targets` describes."""
        game = _game(people)
        target = " AND ".join(f"{_quoted(name)} = {game}_of_{place}" for place, name in enumerate(people.known))
        what, where = self.what.format(), self.where.format(target=target)
        return (
            f"SELECT {game}, {what} AS {game}_answer FROM people JOIN targets "  # noqa: S608 - as above
            f"ON {game} = {game}_number WHERE {where} GROUP BY {game} ORDER BY {game}"
        )


def column(name: str) -> str:
    """Write a column's name for a question, so that no name is mistaken: quoted, and with braces that stay braces.

    >>> column("order"), column("{target}")
    ('"order"', '"{{target}}"')
    """
    return _quoted(name).replace("{", "{{").replace("}", "}}")


Ask = Callable[[Question], np.ndarray]  # one number for each target, NaN where there is no answer


@contextmanager
def asking(
    protected: Shield, targets: Targets, *, easy: Callable[[Oracle], Oracle], price: Fraction | None = None
) -> Iterator[Ask]:
    """Give the outsider somebody to ask, who knows of all targets.

    What the curator or a function of the user's promises is for the questions about one target: each has a copy of the
    data, and a budget, of its own. `price` is what each question to the curator costs, of epsilon in all.
    """
    if protected.word == CURATOR:
        with _curator(targets, protected.price) as curator:
            yield lambda question: _private(curator, question, targets, price or protected.price)
    elif protected.word == OWN and protected.make is not None:
        oracles = [_own(protected.make(targets.people.table)) for _ in targets.known]
        yield lambda question: np.array(
            [_answer(oracle, question.about(who)) for oracle, who in zip(oracles, targets.known, strict=True)]
        )
    else:
        oracle = easy(_exact(targets)) if protected.word == EASY else _exact(targets)
        yield lambda question: np.asarray(oracle(question.about_each(targets.people)), float)


def _exact(targets: Targets) -> Oracle:
    """Answer exactly for each target."""
    run = database({"people": _copies(targets), "targets": _described(targets)})

    def ask(sql: str) -> np.ndarray:
        answers = np.zeros(len(targets.known))  # a copy in which nobody is counted has no row
        for game, number in run(sql):
            answers[game] = 0 if number is None else number  # a sum over nobody
        return answers

    return ask


@contextmanager
def _curator(targets: Targets, budget: Fraction) -> Iterator[dc.Curator]:
    with dc.open(
        {"people": _copies(targets)},
        public={"targets": _described(targets)},
        unit="row",  # a person's copies are different units, so that each copy has the whole budget
        budget=budget,
        columns={
            "people": {_game(targets.people): {"in": list(range(len(targets.known)))}, **_columns(targets.people)}
        },
        groups=1,
        rows=1,
        ledger=":memory:",
    ) as curator:
        yield curator


def _private(curator: dc.Curator, question: Question, targets: Targets, price: Fraction) -> np.ndarray:
    try:
        answer = curator.ask(question.about_each(targets.people), epsilon=price)
    except Refused:
        return np.full(len(targets.known), np.nan)
    return np.asarray(answer.table[f"{_game(targets.people)}_answer"].to_numpy(), float)


def _copies(targets: Targets) -> pa.Table:
    table, games = targets.people.table.select(targets.people.named), len(targets.known)
    copies = pa.concat_tables([table] * games).combine_chunks()
    return copies.append_column(_game(targets.people), pa.array(np.repeat(np.arange(games), table.num_rows)))


def _described(targets: Targets) -> pa.Table:
    """Return what is known of each copy's target."""
    people, game = targets.people, _game(targets.people)
    described = people.table.select(people.known).take(pa.array(targets.rows))
    described = described.rename_columns([f"{game}_of_{place}" for place in range(len(people.known))])
    return described.append_column(f"{game}_number", pa.array(np.arange(len(targets.known))))


def _game(people: People) -> str:
    """Return the name of the column with a copy's number, with which all our names begin, and none of the people's."""
    name = "game"
    while any(theirs.lower().startswith(name) for theirs in people.named):
        name += "_"
    return name


def _columns(people: People) -> dict[str, Any]:
    declared: dict[str, Any] = {name: _type(people.table.schema.field(name).type) for name in people.known}
    declared[people.secret] = {"in": [0, 1]}
    if people.amount is not None:
        declared[people.amount] = (0, people.highest)
    return declared


def _type(stored: pa.DataType) -> str:
    if pa.types.is_integer(stored):
        return "integer"
    return "real" if pa.types.is_floating(stored) else "boolean" if pa.types.is_boolean(stored) else "text"


def _own(oracle: Any) -> Oracle:
    if not callable(oracle):
        raise TypeError("the defence must return a function that answers a question in SQL with a number")
    answers: Oracle = oracle
    return answers


def _answer(oracle: Oracle, sql: str) -> float:
    try:
        answer = oracle(sql)
    except Refused:
        return math.nan
    if isinstance(answer, float | np.floating | np.ndarray) and np.shape(answer) == () and str(answer) == "nan":
        return math.nan  # a refusal, too
    if answer is None:
        raise TypeError("the defence's oracle must return a number, or NaN where it refuses, not None")
    return float(numbers(answer, (), "the defence's oracle"))


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _literal(value: Any) -> str:
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else str(value)
