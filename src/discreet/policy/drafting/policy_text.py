"""Write sketches as the text of a policy; values that only a human can supply say FILL IN."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from discreet.policy.drafting.sketch import CatalogSketch, ColumnSketch, TableSketch
from discreet.policy.drafting.table_roles import Link, Roles, unit_candidates
from discreet.policy.name_patterns import (
    person_noun,
    suggests_key,
    suggests_latitude,
    suggests_longitude,
    suggests_person,
)
from discreet.policy.problems import PLACEHOLDER, shorten
from discreet.policy.toml import inline_text, key_text, value_text

_PLACEHOLDER_RANGE = f'["{PLACEHOLDER}", "{PLACEHOLDER}"]'
_HEADER = """\
# A draft, made from {origin} alone: no row was read. Search for FILL, and supply each value from what the data
# mean, never from a look at them. Lines that begin with # are suggestions. Then: discreet check POLICY{warning}

[data]
name     = {name}
protects = {protects}  # what you call one of those who are protected
version  = "1"  # your label for the state of the data; change it when they change
timezone = "UTC"  # where a day begins, such as "Europe/Berlin"
{engine}ledger   = {ledger}  # the account of what was learned

[budget]
epsilon = "{mark}"  # how much may be learned in all, by everybody, for ever: 1 is strong, above 10 is little
# delta = 1e-9  # far below one over the number of people; without it, groups are declared and cannot be discovered

# [budget.analysts]
# ana = {{ epsilon = 0.5, each = 0.05 }}
"""
_METADATA_WARNING = """
# Bounds and lists are those of the metadata. If a program took them from the data, they tell about single people:
# replace them by what the columns mean."""
_TYPE_CHOICES = "integer, real, decimal, boolean, date, timestamp or text"
_UNIT_COMMENT = (
    'who is protected: a column of people; "row" for single rows; or public = true instead of unit, groups, rows'
)
_TEXT_COMMENT = "add in = [..] if its values are few and known; otherwise groups must be discovered"


def write_header(name: str, protects: str, origin: str, catalog: CatalogSketch | None = None) -> str:
    """Write the sections on the data set and its budget; `catalog` is where its tables are, if not in files."""
    engine_lines = "engine   = {}\nconnection = {}  # no password: that is in the environment\n"
    return _HEADER.format(
        origin=origin,
        warning=_METADATA_WARNING if origin == "metadata" else "",
        name=value_text(name),
        protects=value_text(protects),
        ledger=value_text(f"{name.replace('/', '_')}.ledger.sqlite"),
        mark=PLACEHOLDER,
        engine=engine_lines.format(value_text(catalog.engine), value_text(catalog.url)) if catalog else "",
    )


def write_table(table: TableSketch, roles: Roles) -> str:
    """Write the section of one table."""
    lines = [f"[tables.{key_text(table.name)}]", *_comment_lines(table.notes)]
    lines.append(f"source = {value_text(table.source or PLACEHOLDER)}")
    lookup = table.name in roles.lookups and not table.unit and not table.row_is_unit
    lines += _lookup_lines(table) if lookup else [*_unit_lines(table, roles), *_bound_lines(table)]
    lines += [f"rows_max = {table.rows_max}"] if table.rows_max else []
    lines += ["", f"[tables.{key_text(table.name)}.columns]", *_guessed_type_lines(table)]
    lines += [line for column in table.columns for line in _column_lines(column, table, roles)]
    return "\n".join(lines) + "\n"


def _comment_lines(notes: Iterable[str]) -> list[str]:
    """Write comments; a name in one must not end its line."""
    return ["# " + "".join(letter if letter.isprintable() else "�" for letter in note) for note in notes]


def _lookup_lines(table: TableSketch) -> Iterator[str]:
    comment = f"true, if {shorten(table.name)} could be printed in a newspaper; otherwise write unit instead"
    yield f'public = "{PLACEHOLDER}"  # {comment}'


def _unit_lines(table: TableSketch, roles: Roles) -> Iterator[str]:
    if table.row_is_unit:
        yield 'unit = "row"  # each row is protected alone: right only if nobody has two rows'
        return
    if table.unit:
        yield f"unit = {value_text(table.unit)}  # one of them, with all of their rows"
        times = [column.name for column in table.columns if column.type in ("date", "timestamp")]
        if times:
            yield f'# window = "1 day"  # weaker: each day is protected alone; needs time = {value_text(times[0])}'
        return
    yield f'unit = "{PLACEHOLDER}"  # {_UNIT_COMMENT}'
    if link := roles.parent_links.get(table.name):
        yield f"# unit = {_parent_unit_text(link)}  # suggestion: its rows lead to those of {shorten(link.parent)}"
    for column in unit_candidates(table):
        yield f"# unit = {value_text(column.name)}  # suggestion, by its name alone"


def _parent_unit_text(link: Link) -> str:
    entries = {"through": value_text(link.parent), "on": value_text(link.on)}
    return inline_text(entries if link.on == link.key else {**entries, "key": value_text(link.key)})


def _bound_lines(table: TableSketch) -> Iterator[str]:
    if table.row_is_unit:
        return
    groups = value_text(PLACEHOLDER) if table.groups is None else str(table.groups)
    rows = value_text(PLACEHOLDER) if table.rows is None else str(table.rows)
    yield f"groups = {groups}  # a unit counts fully in so many groups of an answer, such as 3"
    yield f"rows = {rows}  # and with so many rows in each, such as 10; both are about accuracy, not privacy"


def _column_lines(column: ColumnSketch, table: TableSketch, roles: Roles) -> Iterator[str]:
    name = key_text(column.name)
    yield from _comment_lines(f"{name}: {note}" for note in column.notes)
    if column.type is None:
        yield f"# {name} is left out: it is stored as {shorten(column.stored_type)}, which questions cannot use"
    elif column.name == table.unit:
        yield f"{name} = {_column_entry_text(replace(column, unique=False))}  # the unit: counted and joined on, never shown"
    elif _is_other_person(column, table):
        yield f"# {name} = {_column_entry_text(column)}  # left out: it seems to hold people, who would not be protected by it"
    else:
        yield from _data_column_lines(column, table, roles)


def _data_column_lines(column: ColumnSketch, table: TableSketch, roles: Roles) -> Iterator[str]:
    # Lookup tables may be public, and then every value of them can be shown; a column of people may become the unit.
    if table.name in roles.lookups or person_noun(column.name) is not None:
        column = replace(column, unique=False)
    name, degrees = key_text(column.name), _max_degrees(column)
    link = roles.references.get((table.name, column.name))
    open_ended = table.name in roles.lookups or _is_identifier(column, table, roles) or column.unique
    bounded = not open_ended and column.type in ("integer", "real", "decimal", "date", "timestamp")
    has_domain = bool(column.keys or column.low or column.high)
    if bounded and not has_domain:
        example = "2024-01-01, 2024-12-31" if column.type in ("date", "timestamp") else "0, 100"
        yield f"{name} = {_column_entry_text(column, between=_PLACEHOLDER_RANGE)}  # from what it means, such as [{example}]"
    else:
        needs_no_comment = (
            has_domain or open_ended or column.guessed
        )  # what is guessed is asked about once for the table
        comment = _TEXT_COMMENT if column.type == "text" and not needs_no_comment else ""
        yield f"{name} = {_column_entry_text(column)}" + (f"  # {comment}" if comment else "")
    if degrees and not has_domain:
        entry = _column_entry_text(column, between=f"[-{degrees}, {degrees}]", step="0.0001", outside='"null"')
        yield f"# {name} = {entry}  # suggestion, by its name: replace the line above by this if it is degrees"
    if link and not has_domain:
        entry = _column_entry_text(column, references=value_text(f"{link.parent}.{link.key}"))
        yield f"# {name} = {entry}  # suggestion: replace the line above by this if {shorten(link.parent)} is public"


def _column_entry_text(column: ColumnSketch, **more: str) -> str:
    entries = {"type": value_text(column.type)}
    if column.keys:
        entries["in"] = f"[{', '.join(column.keys)}]"
    elif column.low or column.high:
        low, high = column.low or value_text(PLACEHOLDER), column.high or value_text(PLACEHOLDER)
        entries["between"] = f"[{low}, {high}]"
    if column.unique and not column.keys:
        more["unique"] = "true"
    return inline_text({**entries, **more})


def _guessed_type_lines(table: TableSketch) -> Iterator[str]:
    """Ask once for all types that the source does not tell."""
    if any(column.guessed for column in table.columns):
        yield f"# {PLACEHOLDER}: the types, which a CSV file does not tell: {_TYPE_CHOICES};"
        yield f"# to a text {_TEXT_COMMENT}"


def _is_other_person(column: ColumnSketch, table: TableSketch) -> bool:
    """Whether the column seems to hold people and cannot be the unit."""
    if column.keys or not suggests_person(column.name):
        return False
    return bool(table.unit) or table.row_is_unit or person_noun(column.name) is None


def _is_identifier(column: ColumnSketch, table: TableSketch, roles: Roles) -> bool:
    """Whether the column is an identifier, or the key of another table, whose size means nothing."""
    linked_columns = [(link.table, link.on) for link in (*roles.parent_links.values(), *roles.references.values())]
    linked_columns += [(link.parent, link.key) for link in roles.parent_links.values()]
    return (
        suggests_key(column.name) or person_noun(column.name) is not None or (table.name, column.name) in linked_columns
    )


def _max_degrees(column: ColumnSketch) -> int | None:
    if column.type not in ("real", "decimal"):
        return None
    return 90 if suggests_latitude(column.name) else 180 if suggests_longitude(column.name) else None


def unit_noun(tables: Sequence[TableSketch]) -> str:
    """Return the word for those who are protected: patient, if the unit is patient_id."""
    nouns = [noun for table in tables if table.unit and (noun := person_noun(table.unit))]
    return nouns[0] if nouns else "person"
