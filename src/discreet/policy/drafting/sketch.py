"""What is known of tables before a policy is written: what a schema says, or the metadata of another program."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnSketch:
    """A column; `low`, `high` and `keys` are TOML texts, and a type of None cannot be asked about.

    `stored` is the source's own word for the type; `guessed` is a type that the source does not tell; `references` are
    another table and its column, if metadata say so; `unique` says that the database keeps its values different.
    """

    name: str
    type: str | None
    stored: str = ""
    guessed: bool = False
    low: str | None = None
    high: str | None = None
    keys: tuple[str, ...] = ()
    references: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    unique: bool = False


@dataclass(frozen=True)
class TableSketch:
    """A table; what is None is not known. `row` says that each row is protected alone."""

    name: str
    source: str | None
    columns: tuple[ColumnSketch, ...]
    unit: str | None = None
    row: bool = False
    groups: int | None = None
    rows: int | None = None
    rows_max: int | None = None
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> ColumnSketch | None:
        """Find a column by its name in any case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Catalog:
    """The tables of an engine's server, under its URL."""

    engine: str
    url: str
    tables: tuple[TableSketch, ...]
