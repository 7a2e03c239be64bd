"""Ask one query about many targets at once: each target has its own copy of the data and its own oracle."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.attack import DefenceRelease, Game, releases_in_order
from discreet.attacks.data.population import Population
from discreet.attacks.queries.attack_targets import AttackTargets
from discreet.attacks.queries.sql_oracles import SqlOracle, sql_runner
from discreet.attacks.validation import finite_array
from discreet.kernel.errors import Refused
from discreet.kernel.sqlgen.dialect import quote_name


@dataclass(frozen=True)
class TargetQuery:
    """A query about a target: an aggregate and a condition, in which {target} describes the target.

    Both are SQL, with column names quoted by `quoted_column`.

    >>> query = TargetQuery("COUNT(*)", f"{quoted_column('is ill')} = 1 AND NOT ({{target}})")
    >>> print(query.sql_about({"age": 30, "ward": "hill"}))
    SELECT COUNT(*) FROM people WHERE "is ill" = 1 AND NOT ("age" = 30 AND "ward" = 'hill')
    """

    aggregate: str
    condition: str

    def sql_about(self, person: Mapping[str, Any]) -> str:
        """Return the SQL of the query about one person."""
        target = " AND ".join(f"{quote_name(name)} = {_sql_literal(value)}" for name, value in person.items())
        aggregate, condition = self.aggregate.format(), self.condition.format(target=target)
        return f"SELECT {aggregate} FROM people WHERE {condition}"  # noqa: S608 - names and values are quoted

    def sql_about_each(self, people: Population) -> str:
        """Return the SQL of the query about the target of each copy, described in the public table `targets`."""
        prefix = _copy_column(people)
        target = " AND ".join(f"{quote_name(name)} = {prefix}_of_{index}" for index, name in enumerate(people.known))
        aggregate, condition = self.aggregate.format(), self.condition.format(target=target)
        return (
            f"SELECT {prefix}, {aggregate} AS {prefix}_answer FROM people JOIN targets "  # noqa: S608 - as above
            f"ON {prefix} = {prefix}_number WHERE {condition} GROUP BY {prefix} ORDER BY {prefix}"
        )


def quoted_column(name: str) -> str:
    """Return a column name quoted for SQL, with braces escaped for `str.format`.

    >>> quoted_column("order"), quoted_column("{target}")
    ('"order"', '"{{target}}"')
    """
    return quote_name(name).replace("{", "{{").replace("}", "}}")


AskTargets = Callable[[TargetQuery], np.ndarray]  # one number per target, NaN if refused
EasyFix = Callable[[Game, SqlOracle], SqlOracle]


def query_releases(descriptions: Sequence[str], easy_fix: EasyFix, budget_parts: int = 1) -> dict[str, DefenceRelease]:
    """Return what attacks by queries face: exact answers, those of an easy fix, and the curator's.

    Each is a context manager that yields a function that asks one query about all targets. The guarantee of the curator
    covers the queries about one target: each target has its own copy of the data and its own budget, of which one query
    costs one of `budget_parts`.
    """
    makers: tuple[Callable[..., AbstractContextManager[AskTargets]], ...] = (
        lambda _, targets: nullcontext(partial(_ask_copies, _exact_oracle(targets), targets)),
        lambda game, targets: nullcontext(partial(_ask_copies, easy_fix(game, _exact_oracle(targets)), targets)),
        partial(_private_oracle, budget_parts),
    )
    return releases_in_order(descriptions, makers)


def user_oracles(game: Game, targets: AttackTargets) -> AbstractContextManager[AskTargets]:
    """Return a context manager that asks the oracles of the user's defence, one for each target."""
    oracles = [_checked_oracle(game.ask_user(targets.people.table)) for _ in targets.known_values]
    pairs = list(zip(oracles, targets.known_values, strict=True))
    return nullcontext(lambda query: np.array([_oracle_answer(oracle, query.sql_about(who)) for oracle, who in pairs]))


def _ask_copies(oracle: SqlOracle, targets: AttackTargets, query: TargetQuery) -> np.ndarray:
    return np.asarray(oracle(query.sql_about_each(targets.people)), float)


@contextmanager
def _private_oracle(budget_parts: int, game: Game, targets: AttackTargets) -> Iterator[AskTargets]:
    with _open_curator(targets, game.epsilon) as curator:
        yield lambda query: _private_answers(curator, query, targets, game.epsilon / budget_parts)


def _exact_oracle(targets: AttackTargets) -> SqlOracle:
    """Return an oracle that answers exactly for each target."""
    run = sql_runner({"people": _copied_people(targets), "targets": _target_descriptions(targets)})

    def ask(sql: str) -> np.ndarray:
        answers = np.zeros(len(targets.known_values))  # a copy without matching people has no row
        for target, number in run(sql):
            answers[target] = 0 if number is None else number  # an empty sum
        return answers

    return ask


def private_averages(targets: AttackTargets, column: str, epsilon: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Return a column's average in each target's copy before the target joins, and after; each costs epsilon.

    The average is NaN if the curator withholds it.
    """
    size, after = targets.people.table.num_rows, _copied_people(targets)
    is_other = np.ones(after.num_rows, bool)
    is_other[np.arange(targets.rows.size) * size + targets.rows] = False
    query, averages = TargetQuery(f"AVG({quoted_column(column)})", "1 = 1"), []
    for version in (after.filter(pa.array(is_other)), after):
        with _open_curator(targets, epsilon, version) as curator:
            averages.append(_private_answers(curator, query, targets, epsilon))
    return averages[0], averages[1]


@contextmanager
def _open_curator(targets: AttackTargets, budget: Fraction, copies: pa.Table | None = None) -> Iterator[dc.Curator]:
    with dc.open(
        {"people": _copied_people(targets) if copies is None else copies},
        public={"targets": _target_descriptions(targets)},
        unit="row",  # a person's copies are different units: each copy has the whole budget
        budget=budget,
        columns={
            "people": {
                _copy_column(targets.people): {"in": list(range(len(targets.known_values)))},
                **_column_declarations(targets.people),
            }
        },
        groups=1,
        rows=1,
        ledger=":memory:",
    ) as curator:
        yield curator


def _private_answers(curator: dc.Curator, query: TargetQuery, targets: AttackTargets, epsilon: Fraction) -> np.ndarray:
    try:
        answer = curator.ask(query.sql_about_each(targets.people), epsilon=epsilon)
    except Refused:
        return np.full(len(targets.known_values), np.nan)
    return np.asarray(answer.table[f"{_copy_column(targets.people)}_answer"].to_numpy(), float)


def _copied_people(targets: AttackTargets) -> pa.Table:
    table, target_count = targets.people.table.select(targets.people.queried_columns), len(targets.known_values)
    copies = pa.concat_tables([table] * target_count).combine_chunks()
    return copies.append_column(
        _copy_column(targets.people), pa.array(np.repeat(np.arange(target_count), table.num_rows))
    )


def _target_descriptions(targets: AttackTargets) -> pa.Table:
    """Return the known values of each copy's target."""
    people, prefix = targets.people, _copy_column(targets.people)
    descriptions = people.table.select(people.known).take(pa.array(targets.rows))
    descriptions = descriptions.rename_columns([f"{prefix}_of_{index}" for index in range(len(people.known))])
    return descriptions.append_column(f"{prefix}_number", pa.array(np.arange(len(targets.known_values))))


def _copy_column(people: Population) -> str:
    """Return a name for the column of copy numbers that is no prefix of a column of the people."""
    name = "game"
    while any(theirs.lower().startswith(name) for theirs in people.queried_columns):
        name += "_"
    return name


def _column_declarations(people: Population) -> dict[str, Any]:
    declared: dict[str, Any] = {name: _column_type(people.table.schema.field(name).type) for name in people.known}
    declared[people.secret] = {"in": [0, 1]}
    if people.amount is not None:
        declared[people.amount] = (0, people.max_amount)
    return declared


def _column_type(stored: pa.DataType) -> str:
    if pa.types.is_integer(stored):
        return "integer"
    return "real" if pa.types.is_floating(stored) else "boolean" if pa.types.is_boolean(stored) else "text"


def user_answer(game: Game, table: pa.Table, sql: str) -> float:
    """Return the answer of the user's defence to one query about a table; NaN if it refuses."""
    return _oracle_answer(_checked_oracle(game.ask_user(table)), sql)


def _checked_oracle(oracle: Any) -> SqlOracle:
    if not callable(oracle):
        raise TypeError("the defence must return a function that answers an SQL query with a number")
    return cast("SqlOracle", oracle)


def _oracle_answer(oracle: SqlOracle, sql: str) -> float:
    try:
        answer = oracle(sql)
    except Refused:
        return math.nan
    if isinstance(answer, float | np.floating | np.ndarray) and np.shape(answer) == () and str(answer) == "nan":
        return math.nan  # also a refusal
    if answer is None:
        raise TypeError("the defence's oracle must return a number, or NaN to refuse, not None")
    return float(finite_array(answer, (), "the defence's oracle"))


def _sql_literal(value: Any) -> str:
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else str(value)
