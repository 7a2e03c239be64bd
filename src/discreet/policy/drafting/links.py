"""How tables seem to hang together, by the names of their columns alone; everything here is a suggestion."""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.names import holds_people, is_device, is_key, person_word, stem

_KEY_TYPES = ("integer", "text")


@dataclass(frozen=True)
class Link:
    """A column that leads to another table's column; `told` by metadata, or else by its name."""

    table: str
    on: str
    parent: str
    key: str
    told: bool = False


@dataclass(frozen=True)
class Roles:
    """What each table seems to be: one of people, one that leads to their table (`through`), or a public lookup."""

    people: frozenset[str]
    through: dict[str, Link]
    lookups: frozenset[str]
    references: dict[tuple[str, str], Link]


def find_roles(tables: Sequence[TableSketch], unit: str | None) -> Roles:
    """Guess the roles: `encounter_id` leads to `encounters`, and a table that only explains keys is public."""
    people = {table.name for table in tables if _has_people(table, unit)}
    links = [link for table in tables for other in tables if table is not other for link in _links(table, other)]
    through: dict[str, Link] = {}
    for _ in tables:  # a child of a child is found one round later
        for link in links:
            known = people | set(through)
            if link.table not in known and link.parent in known and (link.told or _about(link.parent, link.on)):
                through[link.table] = link
    private = people | set(through)
    leading = [link for link in links if link.table in private and link.parent not in private]
    return Roles(
        frozenset(people),
        through,
        frozenset(link.parent for link in leading),
        {(link.table, link.on): link for link in leading},
    )


def unit_candidates(table: TableSketch) -> list[ColumnSketch]:
    """Return the columns that may name people, likeliest first: a patient before a device."""
    fitting = [column for column in table.columns if column.type not in (None, "real", "decimal")]
    people = [column for column in fitting if person_word(column.name)]
    return people or [column for column in fitting if is_device(column.name)]


def _has_people(table: TableSketch, unit: str | None) -> bool:
    if table.row or table.unit:
        return True
    if unit is not None and table.column(unit):
        return True
    return any(person_word(column.name) for column in table.columns)


def _links(table: TableSketch, other: TableSketch) -> list[Link]:
    """Return the columns of one table that are keys of the other: by an equal name, or `venue_id` to venues' `id`."""
    told = [
        Link(table.name, column.name, other.name, column.references[1], told=True)
        for column in table.columns
        if column.references and column.references[0] == other.name
    ]
    if told:
        return told
    found = []
    for column in table.columns:
        same = other.column(column.name)
        if column.type not in _KEY_TYPES or holds_people(column.name) or stem(column.name) == "":
            continue
        if same and same.type == column.type:
            found.append(Link(table.name, column.name, other.name, same.name))
        elif _about(other.name, column.name) and is_key(column.name) and (key := other.column("id")):
            found.append(Link(table.name, column.name, other.name, key.name))
    keys = [link for link in found if is_key(link.on) or _about(other.name, link.on)]
    return keys or [link for link in found if len(found) == 1 and _explains(other, link.key)]


def _explains(table: TableSketch, key: str) -> bool:
    """Whether a table looks like a list of what a column's values are: they come first, and nothing has a time."""
    timeless = all(column.type not in ("date", "timestamp") for column in table.columns)
    return timeless and table.columns[0].name == key


def _about(table: str, column: str) -> bool:
    what, whole = stem(column), stem(table)
    return bool(what) and (whole == what or whole.endswith(f"_{what}") or whole.startswith(f"{what}_"))
