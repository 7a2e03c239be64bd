"""Publication plans: a TOML file that names the tables and synthetic rows of a release, and its cost.

[release]             name, and epsilon or rho; rows: contribution bound of the tables that add up; purpose
[tables.NAME]         sql, and its weight or the margin that it needs
[synthetic.NAME]      table, columns, bins of numeric columns, and the number of rows
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Self, TypeVar

from pydantic import Field, model_validator

from discreet.kernel.errors import PolicyError
from discreet.policy.problems import Entry, Problems, format_value
from discreet.policy.toml import parse_toml, read_policy_text
from discreet.policy.validators import Identifier, PositiveCount, TextLine, as_validator, parse_count, parse_number

_MAX_PARTS = 1_000  # tables of a plan
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}


def _parse_positive(value: Any, name: str) -> Fraction:
    number = parse_number(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0, not {format_value(value)}.")
    return number


def _parse_row_count(value: Any, name: str) -> int | Literal["same"]:
    return "same" if value == "same" else parse_count(value, name)


Part = TypeVar("Part", bound=Entry)
Positive = Annotated[Fraction, as_validator(_parse_positive)]


class PlanHeading(Entry):
    """The section [release]."""

    name: TextLine = Field(description='Add name = "…", the title of the release.')
    epsilon: Positive | None = None
    rho: Positive | None = None
    rows: PositiveCount | None = None
    invariants: str | None = None
    purpose: TextLine | None = None

    @model_validator(mode="after")
    def _check_cost(self) -> Self:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("[release] needs its cost: either epsilon or rho.")
        return self


class PlannedTable(Entry):
    """A section [tables.NAME]."""

    sql: str = Field(description='Add sql = "SELECT …".')
    weight: Positive | None = None
    margin: Positive | None = None

    @model_validator(mode="after")
    def _check_accuracy(self) -> Self:
        if self.weight is not None and self.margin is not None:
            raise ValueError("a table has a weight or a margin, not both.")
        return self


class SyntheticEntry(Entry):
    """A section [synthetic.NAME]."""

    table: Identifier = Field(description='Add table = "…", a private table of the policy.')
    columns: list[Identifier] = Field(
        description='Add columns = ["…"], at least two columns of the table.', min_length=2
    )
    bins: dict[str, Positive] = Field(default_factory=dict)
    rows: Annotated[int | Literal["same"], as_validator(_parse_row_count)] = "same"
    weight: Positive = Fraction(1)


@dataclass(frozen=True)
class PublicationPlan:
    """A valid plan; `text` is the file, and `file_name` names it in messages.

    >>> plan = PublicationPlan.parse('''
    ...     [release]
    ...     name = "Visits 2026"
    ...     epsilon = 1
    ...     [tables.by_ward]
    ...     sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    ... ''')
    >>> plan.release.name, list(plan.tables), plan.release.epsilon
    ('Visits 2026', ['by_ward'], Fraction(1, 1))
    """

    release: PlanHeading
    tables: Mapping[str, PlannedTable]
    synthetic: Mapping[str, SyntheticEntry]
    text: str
    file_name: str = "plan"

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a plan file; a single PolicyError lists all its mistakes."""
        return cls.parse(read_policy_text(Path(path)), str(path))

    @classmethod
    def parse(cls, text: str, file_name: str = "plan") -> Self:
        """Read a plan from its text."""
        raw, problems = parse_toml(text, file_name), Problems(file_name, text)
        for key in raw.keys() - {"release", "tables", "synthetic"}:
            problems.add((key,), f'unknown section "{key}". A plan has [release], [tables.NAME] and [synthetic.NAME].')
        release = problems.parse_entry(PlanHeading, raw.get("release", {}), ("release",))
        tables = _parse_parts(PlannedTable, raw, "tables", problems)
        synthetic = _parse_parts(SyntheticEntry, raw, "synthetic", problems)
        if not raw.get("tables") and not raw.get("synthetic"):
            problems.add((), "the plan publishes nothing. Add a section [tables.NAME] or [synthetic.NAME].")
        if len(tables) + len(synthetic) > _MAX_PARTS:
            problems.add((), f"the plan has more than {_MAX_PARTS:,} tables. Split it into several plans.")
        seen: set[str] = set()
        for section, name in [*(("tables", name) for name in tables), *(("synthetic", name) for name in synthetic)]:
            if name.lower() in seen:  # many file systems ignore the case of letters
                problems.add((section, name), f'"{name}" is the name of two tables of the plan. Choose another name.')
            seen.add(name.lower())
        problems.raise_if_any()
        assert release is not None
        return cls(release, tables, synthetic, text, file_name)

    def refuse(self, path: tuple[str, ...], message: str) -> NoReturn:
        """Raise PolicyError for a mistake that shows only beside the policy, with the line of the plan."""
        problems = Problems(self.file_name, self.text)
        problems.add(path, message)
        problems.raise_if_any()
        raise PolicyError(message)


def _parse_parts(model: type[Part], raw: dict[str, Any], section: str, problems: Problems) -> dict[str, Part]:
    """Return the valid parts of a section by their names, which become the names of files."""
    values = raw.get(section, {})
    if not isinstance(values, dict):
        problems.add((section,), f"{section} must be sections [{section}.NAME].")
        return {}
    parts = {}
    for name, value in values.items():
        if not (name.isidentifier() and name.isascii() and len(name) <= 100):
            problems.add((section, name), "the name must consist of letters, digits and _, as it names a file.")
        elif name.lower() in _DEVICES:
            problems.add((section, name), f'"{name}" cannot name a file on Windows. Choose another name.')
        elif (part := problems.parse_entry(model, value, (section, name))) is not None:
            parts[name] = part
    return parts
