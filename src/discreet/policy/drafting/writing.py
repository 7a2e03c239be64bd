"""Sketches become the text of a policy; every value that only a human can supply says FILL IN."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from discreet.policy.drafting.links import Link, Roles, unit_candidates
from discreet.policy.drafting.sketch import Catalog, ColumnSketch, TableSketch
from discreet.policy.marks import MARK
from discreet.policy.names import holds_people, is_key, is_latitude, is_longitude, person_word
from discreet.policy.problems import brief
from discreet.policy.toml_text import inline_text, key_text, value_text

_ENDS = f'["{MARK}", "{MARK}"]'
_HEAD = """\
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
_MEASURED = """
# Bounds and lists are those of the metadata. If a program took them from the data, they tell about single people:
# replace them by what the columns mean."""
_KINDS = "integer, real, decimal, boolean, date, timestamp or text"
_UNIT = 'who is protected: a column of people; "row" for single rows; or public = true instead of unit, groups, rows'
_TEXT = "add in = [..] if its values are few and known; otherwise groups must be discovered"


def write_head(name: str, protects: str, origin: str, catalog: Catalog | None = None) -> str:
    """Write the sections on the data set and its budget; `catalog` is where its tables are, if not in files."""
    words = "engine   = {}\nconnection = {}  # no password: that is in the environment\n"
    return _HEAD.format(
        origin=origin,
        warning=_MEASURED if origin == "metadata" else "",
        name=value_text(name),
        protects=value_text(protects),
        ledger=value_text(f"{name.replace('/', '_')}.ledger.sqlite"),
        mark=MARK,
        engine=words.format(value_text(catalog.engine), value_text(catalog.url)) if catalog else "",
    )


def write_table(table: TableSketch, roles: Roles) -> str:
    """Write the section of one table."""
    lines = [f"[tables.{key_text(table.name)}]", *_notes(table.notes)]
    lines.append(f"source = {value_text(table.source or MARK)}")
    lookup = table.name in roles.lookups and not table.unit and not table.row
    lines += _lookup_lines(table) if lookup else [*_unit_lines(table, roles), *_limit_lines(table)]
    lines += [f"rows_max = {table.rows_max}"] if table.rows_max else []
    lines += ["", f"[tables.{key_text(table.name)}.columns]", *_guess_lines(table)]
    lines += [line for column in table.columns for line in _column_lines(column, table, roles)]
    return "\n".join(lines) + "\n"


def _notes(notes: Iterable[str]) -> list[str]:
    """Write comments; a name in one must not end its line."""
    return ["# " + "".join(letter if letter.isprintable() else "�" for letter in note) for note in notes]


def _lookup_lines(table: TableSketch) -> Iterator[str]:
    words = f"true, if {brief(table.name)} could be printed in a newspaper; otherwise write unit instead"
    yield f'public = "{MARK}"  # {words}'


def _unit_lines(table: TableSketch, roles: Roles) -> Iterator[str]:
    if table.row:
        yield 'unit = "row"  # each row is protected alone: right only if nobody has two rows'
        return
    if table.unit:
        yield f"unit = {value_text(table.unit)}  # one of them, with all of their rows"
        times = [column.name for column in table.columns if column.type in ("date", "timestamp")]
        if times:
            yield f'# window = "1 day"  # weaker: each day is protected alone; needs time = {value_text(times[0])}'
        return
    yield f'unit = "{MARK}"  # {_UNIT}'
    if link := roles.through.get(table.name):
        yield f"# unit = {_through_text(link)}  # suggestion: its rows lead to those of {brief(link.parent)}"
    for column in unit_candidates(table):
        yield f"# unit = {value_text(column.name)}  # suggestion, by its name alone"


def _through_text(link: Link) -> str:
    entries = {"through": value_text(link.parent), "on": value_text(link.on)}
    return inline_text(entries if link.on == link.key else {**entries, "key": value_text(link.key)})


def _limit_lines(table: TableSketch) -> Iterator[str]:
    if table.row:
        return
    groups = value_text(MARK) if table.groups is None else str(table.groups)
    rows = value_text(MARK) if table.rows is None else str(table.rows)
    yield f"groups = {groups}  # a unit counts fully in so many groups of an answer, such as 3"
    yield f"rows = {rows}  # and with so many rows in each, such as 10; both are about accuracy, not privacy"


def _column_lines(column: ColumnSketch, table: TableSketch, roles: Roles) -> Iterator[str]:
    name = key_text(column.name)
    yield from _notes(f"{name}: {note}" for note in column.notes)
    if column.type is None:
        yield f"# {name} is left out: it is stored as {brief(column.stored)}, which questions cannot use"
    elif column.name == table.unit:
        yield f"{name} = {_entry(replace(column, unique=False))}  # the unit: counted and joined on, never shown"
    elif _is_other_person(column, table):
        yield f"# {name} = {_entry(column)}  # left out: it seems to hold people, who would not be protected by it"
    else:
        yield from _plain_lines(column, table, roles)


def _plain_lines(column: ColumnSketch, table: TableSketch, roles: Roles) -> Iterator[str]:
    # Lookup tables may be public, and then every value of them can be shown; a column of people may become the unit.
    if table.name in roles.lookups or person_word(column.name) is not None:
        column = replace(column, unique=False)
    name, degrees = key_text(column.name), _degrees(column)
    link = roles.references.get((table.name, column.name))
    open_ended = table.name in roles.lookups or _leads(column, table, roles) or column.unique
    bounded = not open_ended and column.type in ("integer", "real", "decimal", "date", "timestamp")
    known = bool(column.keys or column.low or column.high)
    if bounded and not known:
        example = "2024-01-01, 2024-12-31" if column.type in ("date", "timestamp") else "0, 100"
        yield f"{name} = {_entry(column, between=_ENDS)}  # from what it means, such as [{example}]"
    else:
        told = known or open_ended or column.guessed  # what is guessed is asked about once for the table
        words = _TEXT if column.type == "text" and not told else ""
        yield f"{name} = {_entry(column)}" + (f"  # {words}" if words else "")
    if degrees and not known:
        entry = _entry(column, between=f"[-{degrees}, {degrees}]", step="0.0001", outside='"null"')
        yield f"# {name} = {entry}  # suggestion, by its name: replace the line above by this if it is degrees"
    if link and not known:
        entry = _entry(column, references=value_text(f"{link.parent}.{link.key}"))
        yield f"# {name} = {entry}  # suggestion: replace the line above by this if {brief(link.parent)} is public"


def _entry(column: ColumnSketch, **more: str) -> str:
    entries = {"type": value_text(column.type)}
    if column.keys:
        entries["in"] = f"[{', '.join(column.keys)}]"
    elif column.low or column.high:
        low, high = column.low or value_text(MARK), column.high or value_text(MARK)
        entries["between"] = f"[{low}, {high}]"
    if column.unique and not column.keys:
        more["unique"] = "true"
    return inline_text({**entries, **more})


def _guess_lines(table: TableSketch) -> Iterator[str]:
    """Ask once for all types that the source does not tell."""
    if any(column.guessed for column in table.columns):
        yield f"# {MARK}: the types, which a CSV file does not tell: {_KINDS};"
        yield f"# to a text {_TEXT}"


def _is_other_person(column: ColumnSketch, table: TableSketch) -> bool:
    """Whether the column seems to hold people and cannot be the unit."""
    if column.keys or not holds_people(column.name):
        return False
    return bool(table.unit) or table.row or person_word(column.name) is None


def _leads(column: ColumnSketch, table: TableSketch, roles: Roles) -> bool:
    """Whether the column is an identifier, or the key of another table, whose size means nothing."""
    ends = [(link.table, link.on) for link in (*roles.through.values(), *roles.references.values())]
    ends += [(link.parent, link.key) for link in roles.through.values()]
    return is_key(column.name) or person_word(column.name) is not None or (table.name, column.name) in ends


def _degrees(column: ColumnSketch) -> int | None:
    if column.type not in ("real", "decimal"):
        return None
    return 90 if is_latitude(column.name) else 180 if is_longitude(column.name) else None


def word_for(tables: Sequence[TableSketch]) -> str:
    """Return the word for those who are protected: patient, if the unit is patient_id."""
    units = [word for table in tables if table.unit and (word := person_word(table.unit))]
    return units[0] if units else "person"
