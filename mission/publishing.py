"""The row on interactive queries and publications, with the census data of Adult; one row is one person."""

import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet as dc
from mission.data import table
from mission.rows import record, row

BINS = {"age": 5, "fnlwgt": 75_000, "capital_gain": 5_000, "capital_loss": 250, "hours_per_week": 5}
ENDS = {"age": 99, "fnlwgt": 1_499_999, "capital_gain": 99_999, "capital_loss": 4_999, "hours_per_week": 99}
KEYS = ("education", "marital_status", "race", "sex", "income", "workclass")
TABLES = tuple(keys for count in range(3) for keys in combinations(KEYS, count))
QUESTION = ("education", "sex")
POLICY = """
[data]
name = "adult"
ledger = ":memory:"
version = "1"
[budget]
epsilon = 1
delta = 1e-9
bounds_report = 0
[tables.adult]
source = "adult"
unit = "person"
groups = 1
rows = 1
[tables.adult.columns]
person = { type = "integer" }
"""


@row("C1", "Interactive queries and non-interactive release (summary tables, a sanitised database): `ask`, `publish`")
def c1():
    people = table("adult").drop_columns("split")
    people = people.append_column("person", pa.array(np.arange(people.num_rows)))
    truth = {keys: counts(people, keys) for keys in TABLES}
    with tempfile.TemporaryDirectory() as folder:
        release = published(people, tables_plan(), Path(folder) / "tables")
        rows = published(people, rows_plan(people), Path(folder) / "rows").synthetic["rows"]
        untouched, changed = dc.publish.verify(release.folder), after_one_changed_byte(release.folder)
    with opened(people) as curator:
        answers = {keys: curator.ask(sql(keys), rho=release.cost.rho / len(TABLES)) for keys in TABLES}
    found = {keys: release.tables[name(keys)] for keys in TABLES}
    errors = {
        kind: np.concatenate([counts_of(each[keys].table, keys) - truth[keys] for keys in TABLES], axis=None)
        for kind, each in (("apart", answers), ("together", found))
    }
    inside = {
        kind: int((np.abs(counts_of(each.table, QUESTION) - truth[QUESTION]) <= each.margins["n"]).sum())
        for kind, each in (("apart", answers[QUESTION]), ("together", found[QUESTION]))
    }
    sums, whole = adding_up(found)
    apart, together = (float(np.sqrt(np.mean(errors[kind] ** 2))) for kind in ("apart", "together"))
    draw = np.random.default_rng(0)
    floor = people.take(draw.integers(0, people.num_rows, people.num_rows))
    shuffled = pa.table({each: people[each].take(draw.permutation(people.num_rows)) for each in columns(people)})
    distances = [mean_variation(people, other) for other in (rows.table, floor, shuffled)]
    return record(
        "{people:,} people, epsilon 1. Of {cells} counts by education and sex, {asked} are within their 95 % margins "
        "if asked, {read} if read from a release of {tables} tables. Of the sums of that release over one key, {adds} "
        "of {sums} equal the table without the key, {whole} of {sums} in whole numbers. Root mean square error of a "
        "cell: {apart:.1f} if the tables are asked separately at the same cost, {together:.1f} if published together "
        "({ratio:.2f} times less). {drawn:,} synthetic rows of {columns} columns: mean total variation of pairs "
        "{synthetic:.4f}; resampled data {floor:.4f}, independent columns {independent:.4f} ({way:.0%} of the way from "
        "these to the former). "
        "`report --verify`: {before}; after one changed byte: {after}",
        people=people.num_rows,
        cells=len(truth[QUESTION]),
        asked=inside["apart"],
        read=inside["together"],
        tables=len(TABLES),
        sums=len(sums),
        adds=sum(sums),
        whole=sum(whole),
        apart=apart,
        together=together,
        ratio=apart / together,
        drawn=rows.table.num_rows,
        columns=len(columns(people)),
        synthetic=distances[0],
        floor=distances[1],
        independent=distances[2],
        way=(distances[2] - distances[0]) / (distances[2] - distances[1]),
        before="; ".join(untouched) or "unchanged",
        after="; ".join(changed) or "NOT noticed",
        changed=changed,
    )


def opened(people):
    """Open the census under epsilon 1, every list and range declared."""
    lines = [declaration(people, each) for each in columns(people)]
    return dc.open(dc.policy.Policy.parse(POLICY + "\n".join(lines)), data={"adult": people})


def declaration(people, column):
    """Declare a column; the lists are those of the data's public description."""
    if column in BINS:
        return f'{column} = {{ type = "integer", between = [0, {ENDS[column]}] }}'
    values = people[column].drop_null().unique().sort().to_pylist()
    if column == "education_num":
        return f'{column} = {{ type = "integer", in = {values} }}'
    null = ", null = true" if people[column].null_count else ""
    return f'{column} = {{ type = "text", in = {values}{null} }}'


def columns(people):
    """Return the columns that describe people."""
    return [each for each in people.column_names if each != "person"]


def published(people, plan, folder):
    """Publish a plan from a ledger of its own."""
    with opened(people) as curator:
        return curator.publish(dc.publish.PublicationPlan.parse(plan), folder)


def tables_plan():
    parts = (f'[tables.{name(keys)}]\nsql = "{sql(keys)}"\n' for keys in TABLES)
    return f'[release]\nname = "tables"\nepsilon = 1\n{"".join(parts)}'


def rows_plan(people):
    bins = ", ".join(f"{each} = {width}" for each, width in BINS.items())
    listed = f"columns = {columns(people)}\nbins = {{ {bins} }}\n"
    return f'[release]\nname = "rows"\nepsilon = 1\n[synthetic.rows]\ntable = "adult"\n{listed}'


def name(keys):
    return "_".join(("by", *keys)) if keys else "everybody"


def sql(keys):
    by = ", ".join(keys)
    grouped = f" GROUP BY {by} ORDER BY {by}" if keys else ""
    return f"SELECT {by}{', ' if keys else ''}COUNT(*) AS n FROM adult{grouped}"  # noqa: S608 - fixed names


def ordered(found, keys):
    """Return the rows of a table in the order of its keys, NULL last."""
    return found.sort_by([(key, "ascending") for key in keys]) if keys else found


def counts_of(found, keys):
    """Return the counts of a published table or an answer, by its keys in order."""
    return np.asarray(ordered(found, keys)["n"], float)


def counts(people, keys):
    """Return the true counts of all combinations of keys, in order, also of those that do not occur."""
    if not keys:
        return np.array([people.num_rows])
    coded = [people[key].to_pandas().fillna("~").astype(str) for key in keys]  # ~ is after all letters
    codes, shape = zip(*((np.unique(each, return_inverse=True)[1], each.nunique()) for each in coded), strict=True)
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape)))


def adding_up(found):
    """Return for each table and each of its keys whether the sums over the key are the table without it."""
    unbiased, whole = [], []
    for keys in TABLES:
        for key in keys:
            rest = tuple(each for each in keys if each != key)
            for kept, column in ((unbiased, None), (whole, "whole")):
                summed = by_keys(found[keys], keys, rest, column)
                other = by_keys(found[rest], rest, rest, column)
                kept.append(summed == other if column else all(abs(summed[k] - other[k]) < 1e-6 for k in other))
    return unbiased, whole


def by_keys(shown, keys, rest, column):
    """Return sums of a published table by some of its keys."""
    numbers = shown.whole["n"] if column else shown.table["n"].to_pylist()
    sums = {}
    for values, number in zip(shown.table.select(list(keys)).to_pylist() or [{}], numbers, strict=True):
        group = tuple(values[key] for key in rest)
        sums[group] = sums.get(group, 0) + number
    return sums


def mean_variation(people, other):
    """Return the mean total variation between two tables over all pairs of columns."""
    coded = [(codes(people[each], each), codes(other[each], each)) for each in columns(people)]
    return float(np.mean([_variation(one, two) for one, two in combinations(coded, 2)]))


def codes(column, which):
    """Return bins of a number, and texts as they are."""
    values = column.to_pandas()
    return (
        (values // BINS[which]).astype(int).to_numpy() if which in BINS else values.fillna("~").astype(str).to_numpy()
    )


def _variation(one, two):
    parts = []
    shared = [np.unique(np.concatenate(pair), return_inverse=True)[1] for pair in (one, two)]
    for part in (slice(0, len(one[0])), slice(len(one[0]), None)):
        cells = shared[0][part] * (shared[1].max() + 1) + shared[1][part]
        size = (shared[0].max() + 1) * (shared[1].max() + 1)
        parts.append(np.bincount(cells, minlength=size) / len(cells))
    return np.abs(parts[0] - parts[1]).sum() / 2


def after_one_changed_byte(folder):
    """Return what the verification reports after the last digit of a table was changed."""
    file = folder / "tables" / f"{name(QUESTION)}.csv"
    original = file.read_bytes()
    file.write_bytes(original[:-2] + bytes([original[-2] ^ 1]) + original[-1:])
    return dc.publish.verify(folder)
