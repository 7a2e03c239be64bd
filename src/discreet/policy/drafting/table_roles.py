"""Guess how tables relate from their column names: people, children and public lookups."""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.name_patterns import entity_stem, person_noun, suggests_device, suggests_key, suggests_person

_KEY_TYPES = ("integer", "text")


@dataclass(frozen=True)
class Link:
    """A column that leads to another table's column; `told` by metadata, or else by its name."""

    table: str
    on: str
    parent: str
    key: str
    from_metadata: bool = False


@dataclass(frozen=True)
class Roles:
    """What each table seems to be: one of people, one that leads to their table (`parent_links`), or a public lookup."""

    person_tables: frozenset[str]
    parent_links: dict[str, Link]
    lookups: frozenset[str]
    references: dict[tuple[str, str], Link]


def find_roles(tables: Sequence[TableSketch], unit: str | None) -> Roles:
    """Guess the roles: `encounter_id` leads to `encounters`, and a table that only explains keys is public."""
    person_tables = {table.name for table in tables if _has_people(table, unit)}
    links = [link for table in tables for other in tables if table is not other for link in _find_links(table, other)]
    parent_links: dict[str, Link] = {}
    for _ in tables:  # a child of a child is found one round later
        for link in links:
            owned = person_tables | set(parent_links)
            if (
                link.table not in owned
                and link.parent in owned
                and (link.from_metadata or _is_named_after(link.parent, link.on))
            ):
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
    """Return the columns that may name people, likeliest first: a patient before a device."""
    eligible = [column for column in table.columns if column.type not in (None, "real", "decimal")]
    person_columns = [column for column in eligible if person_noun(column.name)]
    return person_columns or [column for column in eligible if suggests_device(column.name)]


def _has_people(table: TableSketch, unit: str | None) -> bool:
    if table.row_is_unit or table.unit:
        return True
    if unit is not None and table.column(unit):
        return True
    return any(person_noun(column.name) for column in table.columns)


def _find_links(table: TableSketch, other: TableSketch) -> list[Link]:
    """Return the columns of one table that are keys of the other: by an equal name, or `venue_id` to venues' `id`."""
    metadata_links = [
        Link(table.name, column.name, other.name, column.references[1], from_metadata=True)
        for column in table.columns
        if column.references and column.references[0] == other.name
    ]
    if metadata_links:
        return metadata_links
    candidates = []
    for column in table.columns:
        same = other.column(column.name)
        if column.type not in _KEY_TYPES or suggests_person(column.name) or entity_stem(column.name) == "":
            continue
        if same and same.type == column.type:
            candidates.append(Link(table.name, column.name, other.name, same.name))
        elif _is_named_after(other.name, column.name) and suggests_key(column.name) and (key := other.column("id")):
            candidates.append(Link(table.name, column.name, other.name, key.name))
    keys = [link for link in candidates if suggests_key(link.on) or _is_named_after(other.name, link.on)]
    return keys or [link for link in candidates if len(candidates) == 1 and _is_lookup_by(other, link.key)]


def _is_lookup_by(table: TableSketch, key: str) -> bool:
    """Whether a table looks like a list of what a column's values are: they come first, and nothing has a time."""
    timeless = all(column.type not in ("date", "timestamp") for column in table.columns)
    return timeless and table.columns[0].name == key


def _is_named_after(table: str, column: str) -> bool:
    column_stem, table_stem = entity_stem(column), entity_stem(table)
    return bool(column_stem) and (
        table_stem == column_stem or table_stem.endswith(f"_{column_stem}") or table_stem.startswith(f"{column_stem}_")
    )
