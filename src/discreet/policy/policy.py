"""The owner's policy: who is protected, how much may be learned, and what the tables look like."""

import glob
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from discreet.kernel.errors import PolicyError
from discreet.kernel.event import OWNER, canonical
from discreet.kernel.loss import Budget
from discreet.policy.check import check_parts, make_budget
from discreet.policy.entries import Data, Spending, TuningEntry
from discreet.policy.problems import Problems, brief
from discreet.policy.read import read_parts
from discreet.policy.tables import Table, find
from discreet.policy.toml import read_text, read_values
from discreet.policy.units import Column, ColumnInWindow, Person, PersonInWindow, Protected, Public, Row, Through, Unit
from discreet.policy.values import URL

_WILD = re.compile(r"[*?\[]")
_FILE = re.compile(r"[/*?\[]|\.(?:parquet|csv|tsv)(?:\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Policy:
    """A policy that was read and found to be right; paths in it are relative to `base`.

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
    (Person(type='integer'), Budget(epsilon=1))
    """

    data: Data
    spending: Spending
    tables: Mapping[str, Table]
    base: Path
    tuning: TuningEntry = field(default_factory=TuningEntry)  # apart from all that affects privacy

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy file; one PolicyError tells everything that is wrong with it."""
        file = Path(path)
        return cls._parse(read_text(file), file.parent, str(file))

    @classmethod
    def parse(cls, text: str, base: str | PathLike[str] = ".") -> Self:
        """Read a policy from text."""
        return cls._parse(text, Path(base), "policy")

    @classmethod
    def of(cls, values: Mapping[str, Any], base: str | PathLike[str] = ".", *, name: str = "policy") -> Self:
        """Read a policy from the same sections and keys as Python values; a float means its shortest decimal.

        Errors begin with `name`.
        """
        return cls._read(values, Path(base), Problems(name))

    @classmethod
    def _parse(cls, text: str, base: Path, name: str) -> Self:
        return cls._read(read_values(text, name), base, Problems(name, text))

    @classmethod
    def _read(cls, values: Mapping[str, Any], base: Path, problems: Problems) -> Self:
        problems.note_marks(values)
        parts = read_parts(values, problems)
        check_parts(parts, problems)
        problems.stop_if_any()
        assert parts.data is not None
        assert parts.spending is not None
        tables = {name: draft.table(name, parts.drafts) for name, draft in parts.drafts.items() if draft}
        assert parts.tuning is not None
        return cls(parts.data, parts.spending, MappingProxyType(tables), base.absolute(), parts.tuning)

    @property
    def budget(self) -> Budget:
        """How much may be learned in all."""
        return make_budget(self.spending)

    def analyst_budgets(self) -> dict[str, Budget]:
        """Return the limits of the listed analysts; nobody else but the owner may ask."""
        return {who: make_budget(self.spending, analyst) for who, analyst in self.spending.analysts.items()}

    @property
    def unit(self) -> Protected:
        """What all private tables protect."""
        table = next(self.root(name) for name, table in self.tables.items() if not table.public)
        match table.unit:
            case Column(name):
                return Person(table.columns[name].type)
            case ColumnInWindow(name, _, window):
                return PersonInWindow(table.columns[name].type, window, self.data.timezone)
        return Row()

    def table(self, name: str) -> Table | None:
        """Find a table by its name in any case."""
        return find(self.tables, name)

    def root(self, name: str) -> Table:
        """Return the table that names the people of a private table: itself, or its parent's root."""
        table = self.tables[name]
        while isinstance(table.unit, Through):
            table = self.tables[table.unit.table]
        return table

    def allowed(self, by: str) -> tuple[Table, ...]:
        """Return the tables that a name may ask about: those granted and all public ones; none if it is not listed."""
        analyst = self.spending.analysts.get(by)
        if analyst is None and by != OWNER:
            return ()
        every = analyst is None or analyst.tables is None
        granted = {name.lower() for name in (analyst.tables if analyst else None) or ()}
        return tuple(table for table in self.tables.values() if every or table.public or table.name.lower() in granted)

    @property
    def ledger(self) -> Path | str:
        """Where the ledger lies: an absolute path, or a postgresql:// URL."""
        return self.data.ledger if URL.match(self.data.ledger) else self.base / self.data.ledger

    def sources(self) -> dict[str, str]:
        """Return each table's source; files are absolute, names and URLs stay as they are."""
        return {name: _resolve(table.source, self.base) for name, table in self.tables.items()}

    def fingerprint(self) -> str:
        """Return who is protected, and nothing else, as canonical JSON; see check_same_promise."""
        return canonical({"unit": _kind(self.unit), "tables": _owners(self.tables)})


def read_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy file; one PolicyError tells everything that is wrong with it."""
    return Policy.load(path)


def check_same_promise(before: str, policy: Policy) -> None:
    """Stop an owner whose new policy protects others than the fingerprint of an earlier one; new tables are fine."""
    old, new = json.loads(before), json.loads(policy.fingerprint())
    changed = [name for name, owner in new["tables"].items() if old["tables"].get(name, owner) != owner]
    if old["unit"] != new["unit"] or changed:
        where = f"table {brief(changed[0])}" if changed else "the policy"
        raise PolicyError(
            f"{where}: unit or window differs from what the ledger was kept for, so what was spent would be about "
            "others. Restore them, or begin a new data set under another name."
        )


def _kind(unit: Protected) -> dict[str, str]:
    match unit:
        case Person(kind):
            return {"kind": "person", "type": kind}
        case PersonInWindow(kind, window, timezone):
            return {"kind": "window", "type": kind, "window": window.value, "timezone": timezone}
    return {"kind": "row"}


def _owners(tables: Mapping[str, Table]) -> dict[str, dict[str, str]]:
    return {name.lower(): _owner(table.unit) for name, table in tables.items() if not table.public}


def _owner(unit: Unit | Public) -> dict[str, str]:
    return {key: str(value).lower() for key, value in asdict(unit).items()}


def _resolve(source: str, base: Path) -> str:
    if URL.match(source) or not _FILE.search(source):
        return source  # a table's name in the engine
    if _WILD.search(source) and not Path(source).is_absolute():
        return str(Path(glob.escape(str(base))) / source)
    return str(base / source)
