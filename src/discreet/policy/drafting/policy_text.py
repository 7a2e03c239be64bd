"""Write sketches as the text of a policy, with FILL IN for values that the owner must supply."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from discreet.html_page import make_printable
from discreet.policy.drafting.sketch import CatalogSketch, ColumnSketch, TableSketch
from discreet.policy.drafting.table_roles import Link, Roles, unit_candidates
from discreet.policy.name_patterns import person_noun, suggests
from discreet.policy.problems import PLACEHOLDER, shorten
from discreet.policy.toml import inline_text, key_text, value_text

_PLACEHOLDER_RANGE = f'["{PLACEHOLDER}", "{PLACEHOLDER}"]'
_HEADER = """\
# A draft from {origin} alone; no row was read. Search for FILL, and supply each value from the meaning of the data,
# never from the data itself. Commented lines are suggestions. Then run: discreet check POLICY{warning}{csv_note}

[data]
name     = {name}
protects = {protects}  # the noun for one privacy unit
# version = "2026-01"  # your label for the data, if you change it whenever the data changes
timezone = "UTC"  # for dates and days, such as "Europe/Berlin"
{engine}ledger   = {ledger}  # the record of all charges

[budget]
epsilon = "{mark}"  # total privacy budget of all analysts, never renewed: 1 is strong, above 10 is weak
# delta = 1e-9  # far below one over the number of people; without it, groups must be declared (no partition selection)

# For several data sets about the same people: population = "residents" in [data], the same ledger in each policy, and
# [budget.dataset]
# epsilon = 0.5  # the limit of this data set under the budget of the population

# [budget.analysts]
# ana = {{ epsilon = 0.5, each = 0.05 }}
"""
_METADATA_WARNING = """
# Bounds and lists come from the metadata. If they were computed from the data, they may disclose individuals:
# replace them by values from the meaning of the columns."""
_CSV_NOTE = """
# In CSV files, numbers need decimal points (12.5) and dates the form 2026-12-31. Values that cannot be
# read, such as 12,5 or 31.12.2026, become NULL; discreet check warns of it."""
_TYPE_CHOICES = "integer, real, decimal, boolean, date, timestamp or text"
_UNIT_COMMENT = (
    'the column that identifies people; "row" for single rows; or public = true instead of unit, groups, rows'
)
_SAMPLE_COMMENT = 'sample = "simple"  # if the units are a simple random sample: margins then include sampling error'
_NULL_COMMENT = "null = true makes NULL a group"
_TEXT_COMMENT = "add in = [..] if its values are few and known; otherwise grouping needs partition selection"


def write_header(
    name: str, protects: str, origin: str, catalog: CatalogSketch | None = None, *, csv_values: bool = False
) -> str:
    """Return the sections [data] and [budget]; `catalog` is the server of the tables, if they are not in files.

    `csv_values` says that CSV files have numbers or dates, whose format matters.
    """
    engine_lines = "engine   = {}\nconnection = {}  # without a password, which belongs in the environment\n"
    return _HEADER.format(
        origin=origin,
        warning=_METADATA_WARNING if origin == "metadata" else "",
        csv_note=_CSV_NOTE if csv_values else "",
        name=value_text(name),
        protects=value_text(protects),
        ledger=value_text(f"{name.replace('/', '_')}.ledger.sqlite"),
        mark=PLACEHOLDER,
        engine=engine_lines.format(value_text(catalog.engine), value_text(catalog.url)) if catalog else "",
    )


def write_table(table: TableSketch, roles: Roles) -> str:
    """Return the section of one table."""
    lines = [f"[tables.{key_text(table.name)}]", *_comment_lines(table.notes)]
    lines.append(f"source = {value_text(table.source or PLACEHOLDER)}")
    lookup = table.name in roles.lookups and not table.unit and not table.row_is_unit
    lines += _lookup_lines(table) if lookup else [*_unit_lines(table, roles), *_bound_lines(table)]
    lines += ["", f"[tables.{key_text(table.name)}.columns]", *_guessed_type_lines(table)]
    lines += [line for column in table.columns for line in _column_lines(column, table, roles)]
    return "\n".join(lines) + "\n"


def _comment_lines(notes: Iterable[str]) -> list[str]:
    """Format comments; a name in a note must not end its line."""
    return ["# " + make_printable(note) for note in notes]


def _lookup_lines(table: TableSketch) -> Iterator[str]:
    comment = f"true if all of {shorten(table.name)} could be published; otherwise write unit instead"
    yield f'public = "{PLACEHOLDER}"  # {comment}'


def _unit_lines(table: TableSketch, roles: Roles) -> Iterator[str]:
    if table.row_is_unit:
        yield 'unit = "row"  # each row is protected on its own: correct only if nobody has more than one row'
        return
    if table.unit:
        yield f"unit = {value_text(table.unit)}  # protected with all of their rows"
        times = [column.name for column in table.columns if column.type in ("date", "timestamp")]
        if times:
            yield f'# window = "1 day"  # weaker: each day is protected on its own; needs time = {value_text(times[0])}'
        return
    yield f'unit = "{PLACEHOLDER}"  # {_UNIT_COMMENT}'
    if link := roles.parent_links.get(table.name):
        yield f"# unit = {_parent_unit_text(link)}  # suggestion: its rows belong to rows of {shorten(link.parent)}"
    for column in unit_candidates(table):
        yield f"# unit = {value_text(column.name)}  # suggestion from its name alone"


def _parent_unit_text(link: Link) -> str:
    entries = {"through": value_text(link.parent), "on": value_text(link.on)}
    return inline_text(entries if link.on == link.key else {**entries, "key": value_text(link.key)})


def _bound_lines(table: TableSketch) -> Iterator[str]:
    yield f"# {_SAMPLE_COMMENT}"
    if table.row_is_unit:
        return
    groups = value_text(PLACEHOLDER) if table.groups is None else str(table.groups)
    rows = value_text(PLACEHOLDER) if table.rows is None else str(table.rows)
    yield f'groups = {groups}  # maximum groups per unit, such as 3, or "auto": chosen privately'
    yield f"rows = {rows}  # maximum rows per unit and group, such as 10; both affect accuracy, not privacy"


def _column_lines(column: ColumnSketch, table: TableSketch, roles: Roles) -> Iterator[str]:
    name = key_text(column.name)
    yield from _comment_lines(f"{name}: {note}" for note in column.notes)
    if column.type is None:
        yield f"# {name} is omitted: type {shorten(column.stored_type)} is not supported"
    elif column.name == table.unit:
        entry = _column_entry_text(replace(column, unique=False))
        yield f"{name} = {entry}  # the unit: can be counted and joined on, but is never released"
    elif _is_other_person(column, table):
        entry = _column_entry_text(column)
        yield f"# {name} = {entry}  # omitted: it appears to identify people, who would not be protected"
    else:
        yield from _data_column_lines(column, table, roles)


def _data_column_lines(column: ColumnSketch, table: TableSketch, roles: Roles) -> Iterator[str]:
    # A lookup table may become public, and a column of people the unit; neither may be declared unique.
    if table.name in roles.lookups or person_noun(column.name) is not None:
        column = replace(column, unique=False)
    name, degrees = key_text(column.name), _max_degrees(column)
    link = roles.references.get((table.name, column.name))
    open_ended = table.name in roles.lookups or _is_identifier(column, table, roles) or column.unique
    bounded = not open_ended and column.type in ("integer", "real", "decimal", "date", "timestamp")
    has_domain = bool(column.low or column.high)
    if bounded and not has_domain:
        example = "2024-01-01, 2024-12-31" if column.type in ("date", "timestamp") else "0, 100"
        entry = _column_entry_text(column, between=_PLACEHOLDER_RANGE)
        comments = [f"from its meaning, such as [{example}]"]
    else:
        needs_no_comment = has_domain or open_ended or column.guessed  # guessed types have one comment per table
        entry = _column_entry_text(column)
        comments = [_TEXT_COMMENT] if column.type == "text" and not needs_no_comment else []
    comments += [_NULL_COMMENT] if column.nullable and not column.unique else []
    yield f"{name} = {entry}" + (f"  # {'; '.join(comments)}" if comments else "")
    if degrees and not has_domain:
        entry = _column_entry_text(column, between=f"[-{degrees}, {degrees}]", step="0.0001", outside='"null"')
        yield f"# {name} = {entry}  # suggestion from its name: replaces the line above if the values are degrees"
    if link and not has_domain:
        entry = _column_entry_text(column, references=value_text(f"{link.parent}.{link.key}"))
        yield f"# {name} = {entry}  # suggestion: replaces the line above if {shorten(link.parent)} is public"


def _column_entry_text(column: ColumnSketch, **more: str) -> str:
    entries = {"type": value_text(column.type)}
    if column.low or column.high:
        low, high = column.low or value_text(PLACEHOLDER), column.high or value_text(PLACEHOLDER)
        entries["between"] = f"[{low}, {high}]"
    if column.unique:
        more["unique"] = "true"
    return inline_text({**entries, **more})


def _guessed_type_lines(table: TableSketch) -> Iterator[str]:
    """Ask once per table for the column types that the source does not define."""
    if any(column.guessed for column in table.columns):
        yield f"# {PLACEHOLDER}: the types, which a CSV file does not define: {_TYPE_CHOICES};"
        yield f"# for text columns, {_TEXT_COMMENT}"


def _is_other_person(column: ColumnSketch, table: TableSketch) -> bool:
    """Whether the column appears to identify people but cannot be the unit."""
    if not suggests(column.name, "a person"):
        return False
    return bool(table.unit) or table.row_is_unit or person_noun(column.name) is None


def _is_identifier(column: ColumnSketch, table: TableSketch, roles: Roles) -> bool:
    """Whether the column is an identifier or a key of another table, for which a range is meaningless."""
    linked_columns = [(link.table, link.on) for link in (*roles.parent_links.values(), *roles.references.values())]
    linked_columns += [(link.parent, link.key) for link in roles.parent_links.values()]
    return (
        suggests(column.name, "a key")
        or person_noun(column.name) is not None
        or (table.name, column.name) in linked_columns
    )


def _max_degrees(column: ColumnSketch) -> int | None:
    if column.type not in ("real", "decimal"):
        return None
    return 90 if suggests(column.name, "a latitude") else 180 if suggests(column.name, "a longitude") else None


def unit_noun(tables: Sequence[TableSketch]) -> str:
    """Return the noun for one unit: "patient" if the unit is patient_id."""
    nouns = [noun for table in tables if table.unit and (noun := person_noun(table.unit))]
    return nouns[0] if nouns else "person"
