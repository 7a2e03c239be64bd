"""The parts of a publication: a family of tables, a query of its own, or synthetic rows; each has its own charge."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.answer.model import Answer
from discreet.curator import prepared_queries
from discreet.curator.curator import Curator
from discreet.curator.prepared_queries import Charge, PreparedQuery
from discreet.engines.row_sums import RowSource
from discreet.kernel.errors import run_charged
from discreet.kernel.event import OWNER, Event, Receipt, canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.reservation import Noise, Reservation, reservation_charge, reserve
from discreet.publish.codes import CodedRows
from discreet.publish.describe import column_descriptions, group_domains, margin_summary
from discreet.publish.family import Family, blocks_as_bytes
from discreet.publish.family_tables import PublishedTable, publish_family
from discreet.publish.file_tables import Describable, FileTable
from discreet.publish.record import PartKind, ReleasePart
from discreet.publish.synthesis.quality import QualityReport
from discreet.publish.synthesis.row_model import synthesise
from discreet.publish.synthetic import MAX_STORED_VALUES, KernelMeasurer, SyntheticColumn, SyntheticReleases, cached

_WHOLE_NOTE = (
    "Whole numbers that add up (columns ending in _whole) are never negative, so small cells are too high on average: "
    "use the unbiased numbers and their margins for statistics."
)


@dataclass(frozen=True, eq=False)
class PartResult:
    """The tables of a part; none if its result is missing although it was charged."""

    names: tuple[str, ...]
    kind: PartKind
    descriptions: tuple[str, ...]  # the SQL of each table, or what the rows are
    cost: Loss
    receipt: str
    tables: tuple[Describable, ...] = ()
    post_processing: tuple[str, ...] = ()
    domains: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by table and column
    notes: tuple[str, ...] = ()  # on the part as a whole

    @property
    def missing(self) -> bool:
        """Whether the part was charged, but its result is lost."""
        return not self.tables

    @cached_property
    def files(self) -> tuple[FileTable, ...]:
        """The tables as they are written."""
        return tuple(map(FileTable.of, self.tables))

    def describe(self) -> list[ReleasePart]:
        """Return the record of each table."""
        if self.missing:
            return [
                ReleasePart(name, self.kind, text, self.cost, self.receipt, "charged, missing", None)
                for name, text in zip(self.names, self.descriptions, strict=True)
            ]
        return [
            ReleasePart(
                name,
                self.kind,
                text,
                self.cost,
                self.receipt,
                "released",
                shown.table.num_rows,
                column_descriptions(shown, written, self.kind, self.domains.get(name, {})),
                margin_summary(shown),
                tuple(getattr(shown, "notes", ())),
            )
            for name, text, shown, written in zip(self.names, self.descriptions, self.tables, self.files, strict=True)
        ]


class Part(Protocol):
    """A part of a publication."""

    @property
    def name(self) -> str:
        """The name of the part, in its idempotency key."""

    @property
    def cost(self) -> Loss:
        """The cost of the part."""

    @property
    def record(self) -> str:
        """The record of the part in the ledger."""

    def is_result_of(self, event: Event) -> bool:
        """Return whether a charge was made for this part, under a policy that gives it the same meaning."""

    def charge(self, curator: Curator, key: str) -> Charge | None:
        """Return the charge, to be made with those of the other parts; None if all of it is in the ledger already.

        A part whose tables cannot be read is refused.
        """

    def release(self, curator: Curator, receipt: Receipt | None) -> PartResult:
        """Read the data, add noise, store the result under the receipt, and return it."""

    def read_back(self, curator: Curator, receipt: str, stored: bytes) -> PartResult:
        """Return the result that is stored under a receipt."""

    def missing(self, receipt: str) -> PartResult:
        """Return the part without a result."""


@dataclass(frozen=True, eq=False)
class QueryPart:
    """A table that is released by itself, like the answer to a query."""

    name: str
    sql: str
    query: PreparedQuery
    record: str

    @property
    def cost(self) -> Loss:
        """The cost of the query."""
        return self.query.release_plan.marginal_cost

    def is_result_of(self, event: Event) -> bool:
        """Return whether the plan is the same; another meaning of the query is refused when it is read back."""
        return plan_of(event.question) == plan_of(self.record)

    def charge(self, curator: Curator, key: str) -> Charge | None:
        """Return the charge of the query."""
        return prepared_queries.charge_of(curator.releases, self.query, self.record, key)

    def release(self, curator: Curator, receipt: Receipt | None) -> PartResult:
        """Release the answer, or return it from the ledger."""
        answer = prepared_queries.answer_prepared(curator.releases, self.query, self.record, receipt)
        return self._result(answer, answer.receipt.id if answer.receipt else "")

    def read_back(self, curator: Curator, receipt: str, stored: bytes) -> PartResult:  # noqa: ARG002 - a part's signature
        """Return the stored answer."""
        return self._result(prepared_queries.answer_released(curator.releases, self.query, receipt), receipt)

    def missing(self, receipt: str) -> PartResult:
        """Return the part without a result."""
        return PartResult((self.name,), "table", (self.sql,), self.cost, receipt)

    def _result(self, answer: Answer, receipt: str) -> PartResult:
        domains = {self.name: group_domains(self.query.plan)}
        return PartResult((self.name,), "table", (self.sql,), self.cost, receipt, (answer,), domains=domains)


@dataclass(frozen=True, eq=False)
class ReservedPart:
    """A part whose noise is reserved: its rows are summed by the kernel."""

    name: str
    cost: Loss
    record: str
    rows: CodedRows
    fingerprint: str

    def is_result_of(self, event: Event) -> bool:
        """Return whether the rows, the tables and the noise are the same."""
        _, own = reservation_charge(self.noises, cost=self.cost, question=self.record, by=OWNER)
        return (event.question, event.mechanism) == (own.question, own.mechanism)

    def charge(self, curator: Curator, key: str) -> Charge:
        """Return the charge of the reservation; rows that cannot be read are refused."""
        with self.open_rows(curator):
            pass
        loss, event = reservation_charge(
            self.noises, cost=self.cost, question=self.record, by=OWNER, fingerprint=self.fingerprint
        )
        return loss, event, key

    @property
    def noises(self) -> Sequence[Noise]:
        """The mechanisms of the reservation."""
        return []

    def open_rows(self, curator: Curator) -> AbstractContextManager[RowSource]:
        """Open the rows for the kernel's sums."""
        return prepared_queries.private_rows(
            curator.releases, self.rows.relation, self.rows.columns, self.rows.bounds, self.record
        )

    def reservation(self, curator: Curator, receipt: Receipt | None) -> Reservation:
        """Return the reservation that was charged under a receipt."""
        assert receipt is not None  # else `reserve` would charge it again
        return reserve(
            self.noises,
            cost=self.cost,
            ledger=curator.ledger,
            question=self.record,
            prepaid=receipt,
            fingerprint=self.fingerprint,
        )


@dataclass(frozen=True, eq=False)
class FamilyPart(ReservedPart):
    """Tables that add up."""

    family: Family
    sqls: tuple[str, ...]
    notes: tuple[str, ...]  # on rows that are left out or clipped
    kind: ClassVar[PartKind] = "family table"

    @property
    def noises(self) -> Sequence[Noise]:
        """One draw of noise for all tables."""
        return [self.family.mechanism]

    def release(self, curator: Curator, receipt: Receipt | None) -> PartResult:
        """Release the noisy tables, store them, and make them add up."""
        reservation = self.reservation(curator, receipt)
        with self.open_rows(curator) as rows:
            noisy = self.family.release(rows, reservation)
            reservation.settle(blocks_as_bytes(noisy))
        return self._result(noisy, receipt.id if receipt else "")

    def read_back(self, curator: Curator, receipt: str, stored: bytes) -> PartResult:  # noqa: ARG002 - a part's signature
        """Return the tables from the stored noisy ones."""
        return self._result(self.family.read_blocks(stored), receipt)

    def missing(self, receipt: str) -> PartResult:
        """Return the tables without results."""
        names = tuple(table.name for table in self.family.tables)
        return PartResult(names, self.kind, self.sqls, self.cost, receipt)

    def _result(self, noisy: list[np.ndarray], receipt: str) -> PartResult:
        tables = tuple(publish_family(self.family, noisy))
        names, steps = tuple(table.name for table in tables), ["Exact least squares makes the tables add up."]
        steps += [_WHOLE_NOTE] if any(table.whole for table in tables) else []
        domains = {table.name: group_domains(table.plan) for table in self.family.tables}
        return PartResult(names, self.kind, self.sqls, self.cost, receipt, tables, tuple(steps), domains, self.notes)


@dataclass(frozen=True, eq=False)
class SyntheticPart(ReservedPart):
    """Synthetic rows."""

    columns: tuple[SyntheticColumn, ...]
    releases: SyntheticReleases
    count: int | None  # of rows; None for the noisy number
    description: str
    kind: ClassVar[PartKind] = "synthetic rows"

    @property
    def noises(self) -> Sequence[Noise]:
        """The draws of all releases, in order."""
        return self.releases.all_noises

    def release(self, curator: Curator, receipt: Receipt | None) -> PartResult:
        """Fit a model to noisy tables, draw rows from it, and store them."""
        reservation = self.reservation(curator, receipt)
        with self.open_rows(curator) as rows:
            stored = run_charged(f"synthetic rows {self.name}", lambda: self._draw(rows, reservation))
            reservation.settle(stored)
        return self._result(stored, receipt.id if receipt else "")

    def _draw(self, rows: RowSource, reservation: Reservation) -> bytes:
        """Return rows of a model that was fitted to the reserved releases."""
        measurer = KernelMeasurer(self.releases, cached(rows), reservation)
        ordered = [column.is_ordered for column in self.columns]
        model = synthesise(self.releases.sizes, measurer, self.releases.settings, ordered)
        most = MAX_STORED_VALUES // len(self.columns)
        codes = model.sample(min(most, round(model.total) if self.count is None else self.count))
        return _as_parquet(self._table(codes, self._quality(model.quality)))

    def read_back(self, curator: Curator, receipt: str, stored: bytes) -> PartResult:  # noqa: ARG002 - a part's signature
        """Return the stored rows."""
        return self._result(stored, receipt)

    def missing(self, receipt: str) -> PartResult:
        """Return the part without rows."""
        return PartResult((self.name,), self.kind, (self.description,), self.cost, receipt)

    def _table(self, codes: np.ndarray, quality: str) -> pa.Table:
        generator = np.random.default_rng()
        columns = {
            column.declared.name: column.decode(codes[:, index], generator) for index, column in enumerate(self.columns)
        }
        return pa.table(columns).replace_schema_metadata(
            {"discreet": canonical_json({"kind": "synthetic"}), "quality": quality}
        )

    def _quality(self, quality: QualityReport) -> str:
        if quality.mean is None:
            return "How close the rows are to the data is not known: it was not paid for."
        return (
            f"Mean total variation between rows and data over pairs of columns: {quality.mean:.3f} ± "
            f"{quality.mean_margin:.3f} (a paid estimate)."
        )

    def _result(self, stored: bytes, receipt: str) -> PartResult:
        table = pq.read_table(pa.BufferReader(stored))
        quality = table.schema.metadata[b"quality"].decode()
        found = PublishedTable(self.name, table, {}, notes=(quality,))
        steps = (
            "Synthetic rows are drawn from a model of noisy tables; no row is a person's.",
            "Rows with a value that is not declared (NULL too, unless it is) do not count in synthetic rows.",
        )
        domains = {self.name: {column.declared.name: column.domain_text for column in self.columns}}
        return PartResult((self.name,), self.kind, (self.description,), self.cost, receipt, (found,), steps, domains)


def plan_of(record: str) -> object:
    """Return the digest of the plan that a record names; None if it names none.

    >>> plan_of('{"plan":"5e1f"}'), plan_of("SELECT 1")
    ('5e1f', None)
    """
    try:
        return json.loads(record).get("plan")
    except (ValueError, AttributeError):
        return None


def _as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
