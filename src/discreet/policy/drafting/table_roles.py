"""Guess how tables relate from their column names: people, children and public lookups."""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.name_patterns import entity_stem, person_noun, suggests

_KEY_TYPES = ("integer", "text")


@dataclass(frozen=True)
class Link:
    """A column that refers to a column of another table, as its name suggests."""

    table: str
    on: str
    parent: str
    key: str


@dataclass(frozen=True)
class Roles:
    """The likely roles of tables: with people, belonging to such a table (`parent_links`), or a public lookup."""

    person_tables: frozenset[str]
    parent_links: dict[str, Link]
    lookups: frozenset[str]
    references: dict[tuple[str, str], Link]


def find_roles(tables: Sequence[TableSketch], unit: str | None) -> Roles:
    """Guess the roles: `encounter_id` refers to `encounters`, and a table that only describes keys is public."""
    person_tables = {table.name for table in tables if _has_people(table, unit)}
    links = [link for table in tables for other in tables if table is not other for link in _find_links(table, other)]
    parent_links: dict[str, Link] = {}
    for _ in tables:  # each round finds one more generation of children
        for link in links:
            owned = person_tables | set(parent_links)
            if link.table not in owned and link.parent in owned and _is_named_after(link.parent, link.on):
                parent_links[link.table] = link
    private = person_tables | set(parent_links)
    lookup_links = [link for link in links if link.table in private and link.parent not in private]
    return Roles(
        frozenset(person_tables),
        parent_links,
        frozenset(link.parent for link in lookup_links),
        {(link.table, link.on): link for link in lookup_links},
    )


def unit_candidates(table: TableSketch) -> list[ColumnSketch]:
    """Return the columns that may identify people, or else those that may identify devices."""
    eligible = [column for column in table.columns if column.type not in (None, "real", "decimal")]
    person_columns = [column for column in eligible if person_noun(column.name)]
    return person_columns or [column for column in eligible if suggests(column.name, "a device")]


def _has_people(table: TableSketch, unit: str | None) -> bool:
    if table.row_is_unit or table.unit:
        return True
    if unit is not None and table.column(unit):
        return True
    return any(person_noun(column.name) for column in table.columns)


def _find_links(table: TableSketch, other: TableSketch) -> list[Link]:
    """Return the links of one table to another: by the same column name, or from `venue_id` to the `id` of venues."""
    candidates = []
    for column in table.columns:
        same = other.column(column.name)
        if column.type not in _KEY_TYPES or suggests(column.name, "a person") or entity_stem(column.name) == "":
            continue
        if same and same.type == column.type:
            candidates.append(Link(table.name, column.name, other.name, same.name))
        elif (
            _is_named_after(other.name, column.name) and suggests(column.name, "a key") and (key := other.column("id"))
        ):
            candidates.append(Link(table.name, column.name, other.name, key.name))
    keys = [link for link in candidates if suggests(link.on, "a key") or _is_named_after(other.name, link.on)]
    return keys or [link for link in candidates if len(candidates) == 1 and _is_lookup_by(other, link.key)]


def _is_lookup_by(table: TableSketch, key: str) -> bool:
    """Whether a table looks like a lookup for a key: the key is its first column, and it has no times."""
    timeless = all(column.type not in ("date", "timestamp") for column in table.columns)
    return timeless and table.columns[0].name == key


def _is_named_after(table: str, column: str) -> bool:
    column_stem, table_stem = entity_stem(column), entity_stem(table)
    return bool(column_stem) and (
        table_stem == column_stem or table_stem.endswith(f"_{column_stem}") or table_stem.startswith(f"{column_stem}_")
    )
