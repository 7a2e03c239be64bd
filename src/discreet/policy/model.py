"""The policy: privacy unit, budget, tables and columns; read from TOML and written as TOML."""

import glob
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from discreet.kernel.errors import PolicyError
from discreet.kernel.event import OWNER, canonical_json
from discreet.kernel.loss import Budget
from discreet.policy.column_domains import Between, DeclaredColumn, Keys, References, default_step
from discreet.policy.consistency import check_consistency, make_budget
from discreet.policy.declarations import (
    ColumnUnit,
    DeclaredTable,
    NoUnit,
    ParentTableUnit,
    PersonInWindow,
    PersonUnit,
    PrivacyUnit,
    RowUnit,
    SimpleRandomSample,
    UnitDeclaration,
    WindowUnit,
    find_by_name,
    privacy_unit,
)
from discreet.policy.entries import (
    DEFAULT_ROWS_MAX,
    NONE,
    AnalystEntry,
    BudgetEntry,
    DataEntry,
    ReleaseEntry,
    ServerEntry,
    TuningEntry,
)
from discreet.policy.parser import parse_policy
from discreet.policy.problems import Problems, shorten
from discreet.policy.toml import inline_text, key_text, list_text, parse_toml, read_policy_text, value_text
from discreet.policy.validators import URL_PREFIX

_WILDCARD = re.compile(r"[*?\[]")
_FILE_SOURCE = re.compile(r"[/*?\[]|\.(?:parquet|csv|tsv)(?:\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Policy:
    """A valid policy; its paths are relative to `base`.

    >>> policy = Policy.parse('''
    ...     [data]
    ...     name = "visits"
    ...     [budget]
    ...     epsilon = 1.0
    ...     [tables.visits]
    ...     source = "visits.csv"
    ...     unit = "patient"
    ...     columns = { patient = { type = "integer" } }
    ... ''')
    >>> policy.unit, policy.budget
    (PersonUnit(type='integer'), Budget(epsilon=1))
    """

    data: DataEntry
    budget_entry: BudgetEntry
    tables: Mapping[str, DeclaredTable]
    base: Path
    tuning: TuningEntry = field(default_factory=TuningEntry)
    release: ReleaseEntry = field(default_factory=ReleaseEntry)
    server: ServerEntry = field(default_factory=ServerEntry)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy file; a single PolicyError lists all its mistakes."""
        file = Path(path)
        return cls._from_text(read_policy_text(file), file.parent, str(file))

    @classmethod
    def parse(cls, text: str, base: str | PathLike[str] = ".") -> Self:
        """Read a policy from text."""
        return cls._from_text(text, Path(base), "policy")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], base: str | PathLike[str] = ".", *, name: str = "policy") -> Self:
        """Read a policy from a dict with the sections and keys of a file; a float means its shortest decimal.

        Error messages start with `name`.
        """
        return cls._from_values(values, Path(base), Problems(name))

    @classmethod
    def _from_text(cls, text: str, base: Path, name: str) -> Self:
        return cls._from_values(parse_toml(text, name), base, Problems(name, text))

    @classmethod
    def _from_values(cls, values: Mapping[str, Any], base: Path, problems: Problems) -> Self:
        problems.add_placeholders(values)
        unchecked = parse_policy(values, problems)
        check_consistency(unchecked, problems)
        problems.raise_if_any()
        assert unchecked.data is not None
        assert unchecked.budget_entry is not None
        tables = {
            name: unchecked_table.to_table(name, unchecked.tables)
            for name, unchecked_table in unchecked.tables.items()
            if unchecked_table
        }
        return cls(
            unchecked.data,
            unchecked.budget_entry,
            MappingProxyType(tables),
            base.absolute(),
            unchecked.tuning,
            unchecked.release,
            unchecked.server,
        )

    @cached_property
    def budget(self) -> Budget:
        """The total budget."""
        return make_budget(self.budget_entry)

    def analyst_budgets(self) -> dict[str, Budget]:
        """Return the budgets of the listed analysts; besides them, only the owner can run queries."""
        return {who: make_budget(self.budget_entry, analyst) for who, analyst in self.budget_entry.analysts.items()}

    @property
    def dataset_limit(self) -> Budget | None:
        """The limit of this data set under its population's budget; None if it has none of its own."""
        entry = self.budget_entry.dataset
        return make_budget(self.budget_entry, entry) if entry else None

    @property
    def account(self) -> str:
        """The name that the ledger belongs to: that of the population, or of the data set."""
        return self.data.population or self.data.name

    @property
    def dataset(self) -> str:
        """The name of the data set within the ledger of its population; "" if the ledger is its own."""
        return self.data.name if self.data.population else ""

    @property
    def unit(self) -> PrivacyUnit:
        """The privacy unit of all private tables."""
        table = next(self.root_table(name) for name, table in self.tables.items() if not table.public)
        unit = privacy_unit(table.unit, table.columns, self.data.timezone)
        assert unit is not None
        return unit

    @property
    def sample(self) -> SimpleRandomSample | None:
        """The sampling design of the units of all private tables; None if no sample is declared."""
        return next((table.sample for table in self.tables.values() if table.sample), None)

    def table(self, name: str) -> DeclaredTable | None:
        """Find a table by its name, ignoring case."""
        return find_by_name(self.tables, name)

    def root_table(self, name: str) -> DeclaredTable:
        """Return the table that declares a private table's unit: itself, or the last of its parents."""
        table = self.tables[name]
        while isinstance(table.unit, ParentTableUnit):
            table = self.tables[table.unit.table]
        return table

    def private_tables(self) -> list[DeclaredTable]:
        """Return the private tables, each after the one that its rows belong to."""

        def depth(table: DeclaredTable) -> int:
            return 1 + depth(self.tables[table.unit.table]) if isinstance(table.unit, ParentTableUnit) else 0

        return sorted((table for table in self.tables.values() if not table.public), key=depth)

    def key_columns(self, table: DeclaredTable) -> set[str]:
        """Return the columns of a table that identify units, or link its rows to rows of other tables."""
        parents = [
            (child.name, child.unit) for child in self.tables.values() if isinstance(child.unit, ParentTableUnit)
        ]
        names = {unit.on for child, unit in parents if child == table.name}
        names |= {unit.key for _, unit in parents if unit.table == table.name}
        return names | ({table.unit_column} if table.unit_column else set())

    def tables_for(self, by: str) -> tuple[DeclaredTable, ...]:
        """Return the tables that `by` may query: those granted and all public ones; none if `by` is not listed."""
        analyst = self.budget_entry.analysts.get(by)
        if analyst is None and by != OWNER:
            return ()
        has_all = analyst is None or analyst.tables is None
        granted = {name.lower() for name in (analyst.tables if analyst else None) or ()}
        return tuple(
            table for table in self.tables.values() if has_all or table.public or table.name.lower() in granted
        )

    @property
    def ledger_location(self) -> Path | str:
        """The ledger's absolute path, or its postgresql:// URL."""
        return self.data.ledger if URL_PREFIX.match(self.data.ledger) else self.base / self.data.ledger

    def sources(self) -> dict[str, str]:
        """Return each table's source; file paths are absolute, names and URLs unchanged."""
        return {name: _resolve_source(table.source, self.base) for name, table in self.tables.items()}

    def unit_fingerprint(self, earlier: str = "") -> str:
        """Return the privacy unit of every private table as canonical JSON; see `check_same_unit`.

        Tables of an `earlier` fingerprint stay in it, so that none can be removed and return with another unit.
        """
        tables = json.loads(earlier)["tables"] if earlier else {}
        return canonical_json({"unit": _unit_record(self.unit), "tables": tables | _table_unit_records(self.tables)})

    def population_declaration(self) -> str:
        """Return what all data sets of a population share: the unit, its noun, and the neighbouring relation."""
        unit = _unit_record(self.unit)
        return canonical_json({"unit": unit, "protects": self.data.protects, "neighbours": "add or remove"})


def read_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy file; a single PolicyError lists all its mistakes."""
    return Policy.load(path)


def check_same_unit(fingerprint: str, policy: Policy) -> None:
    """Refuse a policy whose privacy unit differs from an earlier policy's fingerprint; new tables are allowed."""
    old, new = json.loads(fingerprint), json.loads(policy.unit_fingerprint())
    changed = [name for name, owner in new["tables"].items() if old["tables"].get(name, owner) != owner]
    if old["unit"] != new["unit"] or changed:
        where = f"table {shorten(changed[0])}" if changed else "the policy"
        raise PolicyError(
            f"{where}: unit or window differs from the ledger's, so earlier charges would be for another privacy "
            "unit. Restore it, or start a new data set under another name."
        )


def check_same_population(declaration: str, policy: Policy) -> None:
    """Refuse a policy whose privacy unit or neighbouring relation differs from that of its population."""
    old, new = json.loads(declaration), json.loads(policy.population_declaration())
    changed = [
        f"{name} {_describe(old.get(part))} in the ledger and {_describe(new[part])} in the policy"
        for part, name in (("unit", "the unit is"), ("protects", "protects is"), ("neighbours", "neighbours are"))
        if old.get(part) != new[part]
    ]
    if changed:
        raise PolicyError(
            f"population {shorten(policy.account)}: {'; '.join(changed)}. All data sets of a population must protect "
            "the same unit, or their losses would not add up. Correct the policy, or give this data set its own ledger."
        )


def _describe(value: object) -> str:
    return ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _unit_record(unit: PrivacyUnit) -> dict[str, str]:
    match unit:
        case PersonUnit(kind):
            return {"kind": "person", "type": kind}
        case PersonInWindow(kind, window, timezone):
            return {"kind": "window", "type": kind, "window": window.value, "timezone": timezone}
    return {"kind": "row"}


def _table_unit_records(tables: Mapping[str, DeclaredTable]) -> dict[str, dict[str, str]]:
    return {name.lower(): _table_unit_record(table.unit) for name, table in tables.items() if not table.public}


def _table_unit_record(unit: UnitDeclaration | NoUnit) -> dict[str, str]:
    return {key: str(value).lower() for key, value in asdict(unit).items()}


def _resolve_source(source: str, base: Path) -> str:
    if URL_PREFIX.match(source) or not _FILE_SOURCE.search(source):
        return source  # a URL, or the name of a table in the engine
    if _WILDCARD.search(source) and not Path(source).is_absolute():
        return str(Path(glob.escape(str(base))) / source)
    return str(base / source)


def write_policy(policy: Policy) -> str:
    """Return a policy as TOML, without the comments of the file it was read from.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> Policy.parse(write_policy(policy)) == policy
    True
    """
    entry = policy.budget_entry
    left_out = {"analysts", "dataset", *(() if entry.delta else ("delta",))}
    analysts = [f"{key_text(who)} = {_analyst_text(analyst)}" for who, analyst in entry.analysts.items()]
    sections: dict[str, Iterable[tuple[str, Any]]] = {
        "data": policy.data,
        "budget": [(key, value) for key, value in entry if key not in left_out],
        "budget.analysts": (),
        "budget.dataset": entry.dataset or (),
        "tuning": policy.tuning,
        "release": [(key, NONE if value == () else value) for key, value in policy.release],
        "server": [(key, value) for key, value in policy.server if key in policy.server.model_fields_set],
    }
    texts = []
    for name, entries in sections.items():
        values = {key: value for key, value in entries if value is not None}
        if name == "budget.analysts" and analysts:
            texts.append("\n".join(["[budget.analysts]", *analysts]))
        elif values:
            texts.append(_section_text(name, values))
    return "\n\n".join([*texts, *map(_table_text, policy.tables.values())]) + "\n"


def _section_text(name: str, values: Mapping[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {_entry_value_text(value)}" for key, value in values.items())])


def _analyst_text(analyst: AnalystEntry) -> str:
    return inline_text({key: _entry_value_text(value) for key, value in analyst if value is not None})


def _entry_value_text(value: Any) -> str:
    return list_text(value) if isinstance(value, tuple) else value_text(value)


def _table_text(table: DeclaredTable) -> str:
    path = f"tables.{key_text(table.name)}"
    lines = [f"[{path}]", f"source = {value_text(table.source)}", *_unit_lines(table)]
    lines += [
        f"{key} = {value_text(value)}"
        for key, value in (("groups", table.groups), ("rows", table.rows))
        if value is not None
    ]
    lines += [f"rows_max = {table.rows_max}"] if table.rows_max != DEFAULT_ROWS_MAX else []
    lines += [f"contribution_max = {table.contribution_max}"] if table.contribution_max else []
    if table.sample:
        sizes = {"sample_size": table.sample.size, "population_size": table.sample.population_size}
        lines += ['sample = "simple"', *(f"{key} = {size}" for key, size in sizes.items() if size)]
    if table.columns:
        lines += [f"[{path}.columns]"]
        lines += [f"{key_text(name)} = {column_text(column)}" for name, column in table.columns.items()]
    return "\n".join(lines)


def _unit_lines(table: DeclaredTable) -> Iterator[str]:
    match table.unit:
        case ColumnUnit(name):
            yield f"unit = {value_text(name)}"
        case WindowUnit(name, time, window):
            yield f"unit = {value_text(name)}"
            yield f"window = {value_text(f'1 {window}')}"
            yield f"time = {value_text(time)}"
        case ParentTableUnit(parent, on, key):
            entries = {"through": value_text(parent), "on": value_text(on), "key": value_text(key)}
            yield f"unit = {inline_text(entries)}"
        case RowUnit():
            yield 'unit = "row"'
        case _:
            yield "public = true"


def column_text(column: DeclaredColumn) -> str:
    """Return the declaration of a column as an inline TOML table."""
    entries = {"type": value_text(column.type)}
    match column.domain:
        case Between(low, high, step, outside):
            entries["between"] = list_text((low, high))
            if step is not None and step != default_step(Fraction(low), Fraction(high)):  # type: ignore[arg-type]
                entries["step"] = value_text(step)
            if outside != "clip":
                entries["outside"] = value_text(outside)
        case Keys(values, within) if within:
            lists = {each: [value for value, of in zip(values, within, strict=True) if of == each] for each in within}
            entries["in"] = inline_text({key_text(each): list_text(tuple(listed)) for each, listed in lists.items()})
        case Keys(values) if column.type != "boolean" or values != (False, True):
            entries["in"] = list_text(values)
        case References(table, name):
            entries["references"] = value_text(f"{table}.{name}")
    if column.null:
        entries["null"] = "true"
    if column.unique:
        entries["unique"] = "true"
    if column.within:
        entries["within"] = value_text(column.within)
    return inline_text(entries)
