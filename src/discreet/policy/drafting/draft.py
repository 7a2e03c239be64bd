"""A first policy, from schemas alone or from the metadata of another program."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import get_args

from discreet.kernel.errors import PolicyError
from discreet.policy.columns import ColumnType
from discreet.policy.drafting.databases import is_database, read_database
from discreet.policy.drafting.links import find_roles
from discreet.policy.drafting.metadata import read_metadata
from discreet.policy.drafting.schemas import read_schemas
from discreet.policy.drafting.sketch import Catalog, ColumnSketch, TableSketch
from discreet.policy.drafting.writing import word_for, write_head, write_table
from discreet.policy.problems import brief, nearest
from discreet.policy.values import URL

Place = str | PathLike[str]

_TYPES = get_args(ColumnType)


def draft(  # noqa: PLR0913 - each has a name and a default
    paths: Iterable[Place] = (),
    *,
    unit: str | None = None,
    types: Mapping[str, str] | None = None,
    metadata: Place | None = None,
    base: Place = ".",
    catalog: Catalog | None = None,
) -> str:
    r"""Write a policy for tables, as far as their schemas tell; what a human must supply says FILL IN.

    Paths are of Parquet and CSV files, patterns of them, "file.duckdb" or "file.duckdb/table"; or a postgresql:// URL,
    and after it names of tables there, if not all are meant. No row is read. `types` gives the types that a CSV file
    does not tell, by column or "table.column". `metadata` is a file of SmartNoise (YAML) or CSV on the Web (JSON): what
    it knows is filled in. Sources are written relative to the folder `base`. `catalog` is what another server has, such
    as Spark; the command `discreet init sc://…` reads it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "visits.csv")
    ...     size = file.write_text("patient,ward\n")
    ...     text = draft([file], unit="patient", base=folder)
    >>> [line for line in text.splitlines() if line.startswith(("source", "unit"))]
    ['source = "visits.csv"', 'unit = "patient"  # one of them, with all of their rows']
    """
    places = [os.fspath(path) for path in paths]
    if catalog is None and places and is_database(places[0]):
        catalog = Catalog("postgresql", places[0], tuple(read_database(places[0], places[1:])))
    found = list(catalog.tables) if catalog else [table for each in places for table in read_schemas(each)]
    name, told = read_metadata(Path(metadata)) if metadata is not None else (None, [])
    tables = _typed(_with_sources(told, found) if told else found, types or {})
    if not tables:
        raise PolicyError("there is nothing to draft from. Name files with data, or metadata.")
    tables = [table if catalog else _placed(table, Path(base)) for table in _renamed(tables)]
    if unit is not None:
        tables = [_with_unit(table, unit) for table in tables]
        if not any(table.unit for table in tables):
            near = _nearest_column(unit, tables)
            raise PolicyError(f'unit: no table has a column "{brief(unit)}"{near} Name one that is there.')
    roles = find_roles(tables, unit)
    first = next((table.name for table in tables if table.name not in roles.lookups), tables[0].name)
    origin = "metadata" if told else "schemas"
    head = write_head(name or first, word_for(tables), origin, catalog)
    return "\n".join([head, *(write_table(table, roles) for table in tables)])


def _nearest_column(name: str, tables: Sequence[TableSketch]) -> str:
    """Name the column that may be meant: one that is spelled alike, or that begins with the name."""
    known = [column.name for table in tables for column in table.columns]
    longer = sorted((each for each in known if each.lower().startswith(f"{name.lower()}_")), key=len)
    return nearest(longer[0] if longer else name, known)


def _with_sources(told: Sequence[TableSketch], found: Sequence[TableSketch]) -> list[TableSketch]:
    """Give tables of metadata the files of their name; a single one of each belong together."""
    if len(told) == 1 and len(found) == 1:
        return [replace(told[0], source=found[0].source)]
    places = {table.name.lower(): table.source for table in found}
    unknown = set(places) - {table.name.lower() for table in told}
    if unknown:
        raise PolicyError(f"the metadata has no table {brief(min(unknown))!r}. It has {_names(told)}.")
    return [replace(table, source=places.get(table.name.lower(), table.source)) for table in told]


def _names(tables: Sequence[TableSketch]) -> str:
    return ", ".join(brief(table.name) for table in tables)


def _typed(tables: Sequence[TableSketch], types: Mapping[str, str]) -> list[TableSketch]:
    """Set the types that were given by hand."""
    known = {column.name.lower() for table in tables for column in table.columns}
    known |= {f"{table.name}.{column.name}".lower() for table in tables for column in table.columns}
    for name, kind in types.items():
        if name.lower() not in known:
            raise PolicyError(
                f'types: no table has a column "{brief(name)}"{_nearest_column(name, tables)} Correct it.'
            )
        if kind not in _TYPES:
            raise PolicyError(f'types: "{brief(kind)}" is not a type. Use {", ".join(_TYPES)}.')
    given = {name.lower(): kind for name, kind in types.items()}
    return [
        replace(table, columns=tuple(_with_type(column, table.name, given) for column in table.columns))
        for table in tables
    ]


def _with_type(column: ColumnSketch, table: str, given: Mapping[str, str]) -> ColumnSketch:
    kind = given.get(f"{table}.{column.name}".lower()) or given.get(column.name.lower())
    return replace(column, type=kind, guessed=False) if kind else column


def _renamed(tables: Sequence[TableSketch]) -> list[TableSketch]:
    """Give tables of the same name, in any case, different ones."""
    seen: dict[str, int] = {}
    done = []
    for table in tables:
        times = seen[table.name.lower()] = seen.get(table.name.lower(), 0) + 1
        done.append(table if times == 1 else replace(table, name=f"{table.name}_{times}"))
    return done


def _placed(table: TableSketch, base: Path) -> TableSketch:
    """Write a source relative to the policy's folder if it lies in it, so that the two can be moved together."""
    if table.source is None or URL.match(table.source):
        return table
    path, folder = Path(os.path.abspath(table.source)), Path(os.path.abspath(base))  # noqa: PTH100 - without ".."
    if not path.is_relative_to(folder):
        return replace(table, source=str(path))
    inside = str(path.relative_to(folder))
    plain = os.sep in inside or inside.lower().endswith((".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz"))
    return replace(table, source=inside if plain else f".{os.sep}{inside}")


def _with_unit(table: TableSketch, unit: str) -> TableSketch:
    column = table.column(unit)
    return replace(table, unit=column.name, row=False) if column else table
