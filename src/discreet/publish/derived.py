"""Answers that follow from published tables that add up: roll-ups of them, and selections of their rows, are free."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from discreet import postprocess
from discreet.answer.model import Answer
from discreet.curator.answer_builder import interpretation_notes, null_notes
from discreet.curator.curator import Curator
from discreet.curator.prepared_queries import totals_planner
from discreet.estimate.planned_release import QueryPlan, release_schema
from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.kernel.event import Event, Receipt
from discreet.kernel.fingerprint import digest
from discreet.kernel.loss import ZERO_LOSS
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.relation import Derive, Relation, Where
from discreet.pricing import data_version
from discreet.pricing.remaining_budget import cost_in_budget
from discreet.publish.declared_levels import declared_parents
from discreet.publish.eligible import AddingTable, adding_release, adding_table, released_table
from discreet.publish.family import Block, Family, family_fingerprint, measures_of, row_measure
from discreet.publish.family_axes import family_axes
from discreet.publish.family_notes import omission_notes
from discreet.publish.family_tables import PublishedTable, publish_table
from discreet.publish.marginals.axes import table_shape
from discreet.publish.marginals.consistent_tables import ConsistentTables
from discreet.publish.planning import rows_per_unit

_MAX_NAMED = 12  # tables in a hint
_MECHANISMS: dict[str, type[Gaussian] | type[Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}


def derived_answer(curator: Curator, plan: QueryPlan, by: str) -> Answer | None:
    """Return the answer to a query that is a roll-up of the latest published tables over its rows, or None.

    HAVING, ORDER BY and LIMIT select from the published cells. It depends on the data through the published noise
    alone, so that it costs nothing.
    """
    release = adding_release(plan)
    if release is None:
        return None
    table = released_table(plan, release)
    found_by = family_fingerprint(table.relation_digest, data_version(curator.policy))
    for event, stored in reversed(curator.ledger.answers([found_by])):
        solved = _solved_family(curator, event, stored) if stored is not None else None
        if solved is not None and (extended := _with_table(solved.family, table, event)) is not None:
            try:
                return _answer(curator, publish_table(extended, table, solved.tables), table, event, by, solved.family)
            except Failed:  # beyond the limits of post-processing, and so it would be with an older publication
                return None
    return None


def published_tables(curator: Curator, plan: QueryPlan) -> str:
    """Return which tables were published of the rows of a query, as a hint at what is free; "" if none were."""
    version = data_version(curator.policy)
    sources = (source for release in plan.answering for source in _sources(release.question.relation))
    found = [family_fingerprint(digest(source), version) for source in sources]
    names: dict[str, dict[str, None]] = {}
    for event, stored in curator.ledger.answers(found):
        if stored is not None:
            record = json.loads(event.question)
            names.setdefault(record["publication"], {}).update(dict.fromkeys(name for name, _ in record["tables"]))
    if not names:
        return ""
    shown = "; ".join(f"{', '.join(list(tables)[:_MAX_NAMED])} of {name!r}" for name, tables in names.items())
    return f"Roll-ups of the published tables over the same rows are free: {shown}."


def _sources(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and those that it filters or adds columns to."""
    yield relation
    while isinstance(relation, Where | Derive):
        relation = relation.source
        yield relation


@dataclass(frozen=True)
class _SolvedFamily:
    """A published family, and its tables, solved once for all answers."""

    family: Family
    tables: list[ConsistentTables]


_SOLVED_LOCK = Lock()
_KEPT = 2  # families of a curator: one of a million cells takes some 100 MB
_SOLVED: WeakKeyDictionary[Curator, dict[str, _SolvedFamily]] = WeakKeyDictionary()


def _solved_family(curator: Curator, event: Event, stored: bytes) -> _SolvedFamily | None:
    """Return the family that a charge released; None if its tables have another meaning under the policy of today."""
    kept = _SOLVED.setdefault(curator, {})
    if (known := kept.get(event.id)) is not None:
        return known
    family = _published_family(curator, event)
    if family is None:
        return None
    solved = _SolvedFamily(family, family.solve(family.read_blocks(stored)))
    with _SOLVED_LOCK:
        while len(kept) >= _KEPT:
            del kept[next(iter(kept))]
        kept[event.id] = solved
    return solved


def _published_family(curator: Curator, event: Event) -> Family | None:
    """Return the family that a charge released; None if its tables have another meaning under the policy of today."""
    record, mechanism = json.loads(event.question), json.loads(event.mechanism)
    try:
        planner = totals_planner(curator.releases)
        plans = [(name, planner(sql)) for name, sql in record["tables"]]
        tables = [adding_table(name, plan) for name, plan in plans]
    except (Refused, PolicyError):
        return None
    kept = tuple(table for table in tables if table is not None)
    if len(kept) < len(tables):
        return None
    blocks = tuple(Block(measure, _table(table), steps) for measure, table, steps in record["steps"])
    noise = _MECHANISMS[mechanism["name"]](Fraction(mechanism["scale"]))
    declared = declared_parents(curator, kept[0].release.question.relation)
    keys = family_axes((table.release for table in kept), declared)
    family = Family(kept, keys, measures_of(kept), blocks, noise)
    return family if family.structure_digest == record["structure"] else None


def _table(parts: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((axis, level) for axis, level in parts)


def _with_table(family: Family, table: AddingTable, event: Event) -> Family | None:
    """Return the family with one more table, if its keys and measures follow from those that have noise."""
    question = table.release.question
    if None in family.keys.parts_of(table.release):
        return None
    needed = [row_measure(total) for total in question.totals]
    if not set(needed) <= set(family.measures):
        return None
    shown = family.keys.table_of(table.release)
    if not all(family.forecasts[family.measures.index(measure)].covers(shown) for measure in needed):
        return None
    rows = rows_per_unit(None, [question], l1=isinstance(family.mechanism, Laplace))
    if question.needs_clipping and rows > json.loads(event.question)["rows"]:
        return None  # a question of its own would be clipped less
    return replace(family, tables=(*family.tables, table))


def _source_table(family: Family, table: AddingTable) -> str:
    """Return the name of the smallest table with all that is asked; "" if only several have it together."""
    wanted, needed = family.keys.table_of(table.release), set(measures_of([table]))
    found = []
    for each in family.tables:
        levels = dict(place := family.keys.table_of(each.release))
        finer = all(axis in levels and levels[axis] <= level for axis, level in wanted)
        if finer and needed <= set(measures_of([each])):
            found.append((math.prod(table_shape(family.axes, place)), each.name))
    return min(found, key=lambda entry: entry[0], default=(0, ""))[1]


def _answer(  # noqa: PLR0913, PLR0917 - a published table, and what was published with it
    curator: Curator, shown: PublishedTable, table: AddingTable, event: Event, by: str, family: Family
) -> Answer:
    """Return what a query makes of a published table, with the types that a release of its own would have."""
    name, release = json.loads(event.question)["publication"], table.release
    columns = [
        pa.array(np.rint(shown.table.column(field.name).to_numpy()).astype(np.int64))
        if field.name in table.measures and field.type == pa.int64()
        else shown.table.column(field.name)
        for field in release_schema(release)
    ]
    published = {release.name: pa.Table.from_arrays(columns, schema=release_schema(release))}
    margins = {(release.name, column): each for column, each in shown.margins.items()}
    result = postprocess.run_with_margins(table.plan.postprocess, published, margins, lambda _: {})
    noise = f"{json.loads(event.mechanism)['name'].capitalize()} noise of published tables, combined by least squares"
    source = _source_table(family, table)
    origin = f"the release {name!r}{f', table {source}' if source else ''}"
    notes = [f"Answered from {origin}, free of charge. Give a cost to ask anew, with fresh noise."]
    notes += omission_notes(family)
    if table.release.question.needs_clipping:
        notes.append("Contributions were clipped once for all tables of the release; this bias is not measured.")
    notes += interpretation_notes(table.plan, published, result.noise_margins)
    return Answer(
        result.table,
        margins=result.noise_margins,
        noise=dict.fromkeys(result.noise_margins, noise),
        cost=cost_in_budget(event.loss or ZERO_LOSS, curator.policy.budget),
        receipt=Receipt(event.id),
        left_out=(*shown.notes, *null_notes(table.plan, published)),
        notes=tuple(notes),
        origin=origin,
        paid=ZERO_LOSS,
        remaining=curator.budget(by).remaining.epsilon,
        correlated_noise=frozenset(result.noise_margins),
    )
