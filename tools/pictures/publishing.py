"""The picture of a publication: errors of tables that add up, and the distance of synthetic rows from the data.

The tables are all by at most two columns of a simulated clinic, in which a person has one row. Errors in theory are
those that `explain` and the dry run forecast; the true tables are known only because the data is simulated.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.plotting import BLUE, INK, ORANGE, add_legend, panels, set_title, style

PEOPLE = 12_000
RELEASES = 20
_95 = 1.959964  # standard deviations of a margin
POLICY = """
[data]
name = "clinic"
ledger = ":memory:"
version = "1"
[budget]
epsilon = 1
delta = 1e-9
bounds_report = 0
[tables.people]
source = "people"
unit = "person"
groups = 1
rows = 1
[tables.people.columns]
person = { type = "integer" }
ward = { type = "text", in = ["children", "medicine", "surgery"] }
sex = { type = "text", in = ["f", "m"] }
age = { type = "integer", between = [0, 9] }
month = { type = "integer", between = [1, 3] }
"""
COLUMNS = ("ward", "sex", "age", "month")
TABLES = tuple(table for count in range(3) for table in combinations(COLUMNS, count))


@dataclass(frozen=True)
class Errors:
    """The cells of a table, and the error of each: asked by itself, published with the others, and measured."""

    cells: int
    alone: float
    together: float
    measured: float


@dataclass(frozen=True)
class Distances:
    """Total variation of a pair of columns from the data."""

    resampled: float
    synthetic: float
    independent: float


@dataclass(frozen=True)
class Publication:
    """Errors by table, and distances by pair of columns."""

    errors: Mapping[tuple[str, ...], Errors]
    distances: Mapping[tuple[str, ...], Distances]


def simulated(people: int = PEOPLE) -> pa.Table:
    """Return people with a ward, a sex, an age in tens of years that depends on the ward, and a month."""
    draw = np.random.default_rng(2026)
    ward = draw.choice(["children", "medicine", "surgery"], people, p=[0.2, 0.5, 0.3])
    centre = np.select([ward == "children", ward == "medicine"], [0.8, 6.5], 4.5)
    sex = np.where(draw.random(people) < np.where(ward == "surgery", 0.4, 0.55), "f", "m")
    age = np.clip(np.rint(draw.normal(centre, np.where(ward == "children", 0.6, 1.8))), 0, 9).astype(int)
    month = draw.choice([1, 2, 3], people, p=[0.4, 0.35, 0.25])
    return pa.table({"person": np.arange(people), "ward": ward, "sex": sex, "age": age, "month": month})


def measured(people: pa.Table, releases: int = RELEASES) -> Publication:
    """Publish all tables several times, and synthetic rows once, and compare them with the data."""
    policy = dc.policy.Policy.parse(POLICY)
    plan, rows = (dc.publish.PublicationPlan.parse(text) for text in (_tables_plan(), _rows_plan()))
    with dc.open(policy, data={"people": people}) as curator:
        expected = {table.name: table.margins["n"] for table in dc.publish.forecast(curator, plan).tables}
        rho = policy.budget.rho / len(TABLES)
        alone = {table: curator.explain(_sql(table), rho=rho).columns[0].margin for table in TABLES}
    squares: dict[tuple[str, ...], list[float]] = {table: [] for table in TABLES}
    for _ in range(releases):
        found = _published(policy, people, plan)
        for table in TABLES:
            truth, noisy = _counts(people, table), found.tables[_name(table)].table
            squares[table] += [
                (row["n"] - truth.get(tuple(row[key] for key in table), 0)) ** 2 for row in noisy.to_pylist()
            ]
    errors = {
        table: Errors(
            len(squares[table]) // releases,
            alone[table] / _95,
            expected[_name(table)] / _95,
            math.sqrt(np.mean(squares[table])),
        )
        for table in TABLES
    }
    synthetic = _published(policy, people, rows).synthetic["rows"].table
    return Publication(errors, _distances(people, synthetic))


def _published(policy: Any, people: pa.Table, plan: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder, dc.open(policy, data={"people": people}) as curator:
        return curator.publish(plan, Path(folder) / "release")


def _distances(people: pa.Table, synthetic: pa.Table) -> dict[tuple[str, ...], Distances]:
    draw = np.random.default_rng(0)
    size = people.num_rows
    resampled = people.take(draw.integers(0, size, size))
    apart = pa.table({name: people[name].take(draw.permutation(size)) for name in COLUMNS})
    return {
        pair: Distances(*(_total_variation(people, other, pair) for other in (resampled, synthetic, apart)))
        for pair in combinations(COLUMNS, 2)
    }


def _total_variation(one: pa.Table, other: pa.Table, pair: Sequence[str]) -> float:
    first, second = _counts(one, pair), _counts(other, pair)
    return sum(abs(first.get(k, 0) / one.num_rows - second.get(k, 0) / other.num_rows) for k in {*first, *second}) / 2


def _counts(table: pa.Table, columns: Sequence[str]) -> dict[tuple[Any, ...], int]:
    if not columns:
        return {(): table.num_rows}
    counted = table.group_by(list(columns)).aggregate([([], "count_all")]).to_pylist()
    return {tuple(row[name] for name in columns): row["count_all"] for row in counted}


def _name(table: Sequence[str]) -> str:
    return "_".join(table) or "all"


def _sql(table: Sequence[str]) -> str:
    keys = ", ".join(table)
    return f"SELECT {keys}, COUNT(*) AS n FROM people GROUP BY {keys}" if keys else "SELECT COUNT(*) AS n FROM people"  # noqa: S608 - fixed names


def _tables_plan() -> str:
    parts = (f'[tables.{_name(table)}]\nsql = "{_sql(table)}"\n' for table in TABLES)
    return f'[release]\nname = "tables"\nepsilon = 1\n{"".join(parts)}'


def _rows_plan() -> str:
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    return f'[release]\nname = "rows"\nepsilon = 1\n[synthetic.rows]\ntable = "people"\ncolumns = [{columns}]\n'


def publishing_figure(found: Publication) -> Any:
    """Draw a panel with the errors of the tables, and one with the distances of pairs of columns."""
    figure, (left, right) = panels(2)
    with style():
        names = [", ".join(table) or "all people" for table in found.errors]
        errors = list(found.errors.values())
        left.plot([each.alone for each in errors], names, "s", color=ORANGE, ms=5, label="asked separately")
        left.plot([each.together for each in errors], names, "o", color=BLUE, ms=5, label="published together")
        left.plot([each.measured for each in errors], names, "x", color=INK, ms=5, label="the same, measured")
        left.set(xlabel="standard error of a count (people)", xlim=(0, None))
        pairs, distances = [", ".join(pair) for pair in found.distances], list(found.distances.values())
        right.plot(
            [each.independent for each in distances], pairs, "s", color=ORANGE, ms=5, label="independent columns"
        )
        right.plot([each.synthetic for each in distances], pairs, "o", color=BLUE, ms=5, label="synthetic rows")
        right.plot([each.resampled for each in distances], pairs, "x", color=INK, ms=5, label="resampled data")
        right.set(xlabel="total variation from the data", xlim=(0, None))
        for axes in (left, right):
            axes.invert_yaxis()
        add_legend(figure, [left, right])
        alone, together = (_per_cell(errors, name) for name in ("alone", "together"))
        synthetic, apart = (
            np.mean([getattr(each, name) for each in distances]) for name in ("synthetic", "independent")
        )
        set_title(
            figure,
            f"Published together, the error of a cell is {together:.1f} instead of {alone:.1f}; "
            f"synthetic rows are {synthetic:.3f} from the data, independent columns {apart:.3f}",
        )
    return figure


def _per_cell(errors: Sequence[Errors], name: str) -> float:
    """Return the root mean square over all cells of all tables."""
    total = sum(each.cells * getattr(each, name) ** 2 for each in errors)
    return math.sqrt(total / sum(each.cells for each in errors))


PICTURES = {"publishing": (lambda: measured(simulated()), publishing_figure)}
