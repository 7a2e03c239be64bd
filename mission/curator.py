"""The rows that the curator answers, on the town of the tour."""

import tempfile
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

import discreet as dc
from discreet.cli.tour.town import build
from mission.rows import row

ILL = "SELECT COUNT(*) FROM people WHERE ill = 'diabetes'"


@row("A5", "Differencing: two counts, with and without one person, exact and private")
def a5():
    with tempfile.TemporaryDirectory() as folder:
        policy = build(Path(folder))
        people = pq.read_table(Path(folder) / "people.parquet")
        known = list(zip(people["person"].to_pylist(), people["ill"].to_pylist(), strict=True))
        ill = [person for person, name in known if name == "diabetes"][:30]
        well = [person for person, name in known if name != "diabetes"][:30]
        connection = duckdb.connect()
        connection.register("people", people)

        def exact(sql):
            return connection.execute(sql).fetchone()[0]

        with dc.open(policy) as curator:

            def private(sql):
                return curator.ask(sql, epsilon="1/100").value

            found = {how: sum(_is_ill(how, who) for who in ill) for how in (exact, private)}
            right = {how: found[how] + sum(not _is_ill(how, who) for who in well) for how in (exact, private)}
            margin = curator.explain(ILL, epsilon="1/100").columns[0].margin
    return (
        f"exact: {right[exact]} of 60 people found out; private at epsilon 1/100 (± {margin:,.0f}): "
        f"{right[private]} of 60, as by tossing a coin"
    )


def _is_ill(how, person):
    """Guess whether somebody is ill from two counts, with and without them."""
    return how(ILL) - how(f"{ILL} AND person <> {person}") >= 0.5


@row("B6", "Curator, analyst, mechanism: the interactive framework")
def b6():
    with tempfile.TemporaryDirectory() as folder, dc.open(build(Path(folder))) as curator:
        sql = "SELECT ward, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY ward"
        said = curator.explain(sql, epsilon="1/10")
        answer = curator.ask(sql, epsilon="1/10")
        try:
            curator.ask("SELECT person, income FROM people LIMIT 10", epsilon="1/10")
        except dc.Refused as refusal:
            refused = str(refusal).split(":")[0]
        curator.ledger.verify()
        return (
            f"ask: {len(answer)} wards, n ± {said.columns[0].margin:,.0f} as explained beforehand, "
            f"{float(answer.share):.3%} of the budget charged first; rows refused ({refused}); ledger verified"
        )
