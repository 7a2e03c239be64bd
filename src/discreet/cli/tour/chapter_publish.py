"""The chapter on publishing: a plan, its dry run, tables that add up, synthetic rows, and a changed byte."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from discreet.cli.tour.page import Cell
from discreet.cli.tour.recorder import Recorder, TourContext, good, warn, yes_or_no
from discreet.pricing.remaining_budget import cost_in_budget
from discreet.publish.publication import Release
from discreet.worlds.town import POLICY, SECRET_ILLNESS, Town

PLAN = """\
[release]
name    = "Health of the town"
epsilon = 1
[tables.by_ward_and_illness]
sql = "SELECT ward, ill, COUNT(*) AS n FROM people GROUP BY ward, ill"
[tables.by_ward]
sql = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
[tables.by_illness]
sql = "SELECT ill, COUNT(*) AS n FROM people GROUP BY ill"
[tables.residents]
sql = "SELECT COUNT(*) AS n FROM people"
[synthetic.rows]
table   = "people"
columns = ["ward", "ill", "age"]
bins    = { age = 10 }
"""
_OLD = 60
_SHOWN = 3  # wards
_SAME = 1e-6  # of sums of floats


def show_chapter(context: TourContext) -> None:
    """Publish a plan, and compare the tables and the synthetic rows with the town."""
    recorder, plan = context.recorder, dc.publish.PublicationPlan.parse(PLAN)
    policy = dc.policy.Policy.parse(
        POLICY.replace('"town"', '"town"\nledger = ":memory:"', 1), base=context.town.folder
    )
    with dc.open(policy) as curator:
        recorder.add_section("Publishing: a plan, charged once")
        _show_dry_run(recorder, dc.publish.forecast(curator, plan))
        (release,) = recorder.with_progress(
            (curator.publish(plan, recorder.folder / "release") for _ in range(1)), "publishing the plan", 1
        )
        again = curator.publish(plan, release.folder)
        recorder.add_paragraph(
            f"Published: charged {cost_in_budget(release.paid, policy.budget)} before any row was read. Publishing the "
            "same plan again is free: ",
            good("nothing was charged") if not again.paid.rho else warn("it was charged again"),
            ".",
        )
    people = pq.read_table(context.town.folder / "people.parquet")
    _show_tables(recorder, release, context.town)
    _show_rows(recorder, release, people)
    _show_verification(recorder, release.folder)


def _show_dry_run(recorder: Recorder, forecast: dc.publish.PublicationForecast) -> None:
    recorder.add_code(PLAN)
    recorder.add_paragraph(
        f"The dry run, which is free: the plan would cost {cost_in_budget(forecast.cost, forecast.budget)}."
    )
    rows = [
        (table.name, f"{table.cells:,}", ", ".join(f"± {margin:,.0f}" for margin in table.margins.values() if margin))
        for table in forecast.tables
    ]
    recorder.add_table(("table", "cells", "margin of n"), rows)


def _show_tables(recorder: Recorder, release: Release, town: Town) -> None:
    recorder.add_section("Published tables add up")
    cells, wards = (release.tables[name] for name in ("by_ward_and_illness", "by_ward"))
    sums = _sums(cells.table.to_pylist(), "n")
    totals = {row["ward"]: row["n"] for row in wards.table.to_pylist()}
    ill = {row["ward"]: row["n"] for row in cells.table.to_pylist() if row["ill"] == SECRET_ILLNESS}
    sql = f"SELECT ward, COUNT(*) FILTER (ill = '{SECRET_ILLNESS}'), COUNT(*) FROM people GROUP BY 1 ORDER BY 1"  # noqa: S608 - a fixed name
    truth = {ward: counts for ward, *counts in town.true_answer(sql)}
    margin = cells.margins["n"][0]
    rows: list[tuple[Cell, ...]] = [
        (
            ward,
            f"{ill[ward]:,.1f}",
            f"{truth[ward][0]:,}",
            f"{sums[ward]:,.1f}",
            f"{totals[ward]:,.1f}",
            f"{truth[ward][1]:,}",
        )
        for ward in list(totals)[:_SHOWN]
    ]
    recorder.add_table(("ward", SECRET_ILLNESS, "true", "sum over illnesses", "table of wards", "true"), rows)
    agree = all(abs(sums[ward] - total) < _SAME * total for ward, total in totals.items())
    recorder.add_paragraph(
        f"A cell's margin is ± {margin:,.0f}. The five illnesses add up to the ward in all {len(totals)} wards: ",
        yes_or_no(agree),
        ". As non-negative whole numbers, for newspapers, they add up as well: ",
        yes_or_no(_whole_adds_up(cells, wards)),
        ".",
    )


def _sums(rows: Iterable[dict[str, Any]], column: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for row in rows:
        sums[row["ward"]] = sums.get(row["ward"], 0) + row[column]
    return sums


def _whole_adds_up(cells: Any, wards: Any) -> bool:
    shown = cells.table.append_column("whole", pa.array(cells.whole["n"]))
    sums = _sums(shown.to_pylist(), "whole")
    return bool([sums[ward] for ward in wards.table.column("ward").to_pylist()] == wards.whole["n"].tolist())


def _show_rows(recorder: Recorder, release: Release, people: pa.Table) -> None:
    recorder.add_section("Synthetic rows beside the real ones")
    synthetic = release.synthetic["rows"]
    recorder.add_paragraph(
        f"{synthetic.table.num_rows:,} synthetic residents, from a model of noisy tables; none of them is a person. "
        f"Residents of {_OLD} and older, by illness:"
    )
    real, drawn = _old_people(people), _old_people(synthetic.table)
    recorder.add_table(
        ("illness", "real rows", "synthetic rows"), [(ill, f"{real[ill]:,}", f"{drawn[ill]:,}") for ill in sorted(real)]
    )
    recorder.add_paragraph(" ".join(synthetic.notes))


def _old_people(people: pa.Table) -> Counter[str]:
    old = np.asarray(people.column("age")) >= _OLD
    return Counter(people.column("ill").filter(pa.array(old)).to_pylist())


def _show_verification(recorder: Recorder, folder: Path) -> None:
    recorder.add_section("Anybody can verify a release")
    untouched = dc.publish.verify(folder)
    file = folder / "tables" / "by_ward.csv"
    original = file.read_bytes()
    try:
        file.write_bytes(original[:-2] + bytes([original[-2] ^ 1]) + original[-1:])
        found = dc.publish.verify(folder)
    finally:
        file.write_bytes(original)
    recorder.add_paragraph(
        f"discreet report --verify {folder} compares every file with the manifest: ",
        warn("; ".join(untouched)) if untouched else good("nothing was changed"),
        ". After one byte of a table was changed: ",
        good("; ".join(found)) if found else warn("nothing was noticed"),
        f". The release stays there, with {folder / 'report.html'}.",
    )
