"""What discreet anonymise does, step by step: check, read, pseudonymise, measure or anonymise, tell, write."""

import io
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import Console

from discreet import anonymity
from discreet.anonymity.coding.bare import bare_arrow
from discreet.anonymity.coding.tables import names, read
from discreet.anonymity.pseudonyms.pseudonyms import not_protected
from discreet.anonymity.showing.page import write_report
from discreet.anonymity.showing.report import clean, report
from discreet.cli.anonymity_keys import find_key, keep_key
from discreet.cli.anonymity_report import show
from discreet.cli.anonymity_words import spelled
from discreet.cli.csv_text import as_written
from discreet.cli.files import check_place, is_text, read_table, typed, write_table
from discreet.cli.hierarchies import find_hierarchies
from discreet.cli.stops import wrong

_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Goals:
    """What shall hold for the released table; without k it is only measured."""

    k: int | None
    l: float | None  # noqa: E741 - what everybody calls it
    t: float | None
    diversity: str
    c: float | None
    method: str
    suppress: float


@dataclass(frozen=True)
class Request:
    """All options of the command."""

    table: Path
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    drop: tuple[str, ...]
    goals: Goals
    hierarchies: tuple[str, ...]
    categories: tuple[str, ...]
    population: Path | None
    pseudonym: tuple[str, ...]
    key_file: Path | None
    out: Path | None
    html: Path | None
    force: bool


@dataclass(frozen=True)
class _Roles:
    """The columns that play each part."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    categories: tuple[str, ...]
    ids: tuple[str, ...]


def carry_out(request: Request) -> None:
    """Do what was asked; the last line says what is not protected."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII only gets question marks, not an end
    _check(request)
    with spelled():
        given = _without(read_table(request.table), request.drop)
        roles = _roles(request, given)
        notes = []
        key = find_key(request.key_file, (request.table, request.out)) if roles.ids else None
        if roles.ids:
            given = _pseudonymised(given, roles.ids, key)
            notes.append(not_protected(roles.ids, [name for name in given.column_names if name not in roles.ids]))
        if roles.quasi:
            result = _result(_ready(given, request.table, roles), roles, request)
            notes.append(result.not_protected)
            _tell(result, request.html)
            if request.goals.k is not None:
                given = _released(result, given, roles, request)
            _warn_of_ids(given, (*roles.quasi, *roles.ids))
        if key is not None and request.key_file is not None:
            keep_key(key, request.key_file)
    note = _joined(notes)
    if request.out is not None:
        write_table(bare_arrow(given).replace_schema_metadata({b"not_protected": note.encode()}), request.out)
        typer.echo(f"{request.out}: {given.num_rows:,} rows written")
    elif request.goals.k is not None:
        typer.echo("\nNo table was written: --out FILE writes it.")
    typer.echo("\n" + clean(note))


def _check(request: Request) -> None:
    """Stop before any work if it could not be done, or would come to nothing."""
    check_place(request.out, "--out", request.force)
    check_place(request.html, "--html", request.force, endings=_PAGES)
    is_changed = request.goals.k is not None or bool(request.pseudonym) or bool(request.drop)
    if request.out is not None and not is_changed:
        wrong("--out: nothing would be different there. Say what to change: --k, --pseudonym or --drop.")
    if request.pseudonym and request.out is None:
        wrong("--pseudonym: the table with them would not be written. Name a file for it with --out.")
    for option, place in (("--out", request.out), ("--html", request.html)):
        _check_spared(option, place, request)
    if not request.quasi and (request.goals.k is not None or request.html or not request.pseudonym):
        wrong("--quasi: name the columns by which people can be recognised, such as --quasi age,sex,zip.")
    for name in ("l", "t", "c", "suppress"):
        if request.goals.k is None and getattr(request.goals, name):
            wrong(f"--{name}: this is for a table to be made. Add --k, such as --k 5.")
    if request.goals.k is not None and request.population is not None:
        wrong("--population: this is for measuring. Write the table with --out, then measure that one.")
    if request.key_file is not None and not request.pseudonym:
        wrong("--key-file: this is for pseudonyms. Add --pseudonym with the column of ids.")


def _check_spared(option: str, place: Path | None, request: Request) -> None:
    """Stop if a file that is read would be overwritten, by whatever name or link."""
    trees = [Path(text.partition("=")[2]) for text in request.hierarchies]
    trees += [file for text in request.hierarchies for file in Path(text).glob("*.csv")]
    read_from = [("table", request.table), ("population", request.population), ("key", request.key_file)]
    for what, path in [*read_from, *(("hierarchy", file) for file in trees)]:
        if place is not None and path is not None and place.exists() and path.exists() and place.samefile(path):
            wrong(f"{option}: this is the {what} itself, which would be lost. Name another file.")


def _columns(given: Sequence[str], table: pa.Table) -> tuple[str, ...]:
    """Split a,b,c into names; a name that has a comma itself is one if the table has it."""
    parts = [[text] if text in table.column_names else text.split(",") for text in given]
    return tuple(part.strip() if part not in table.column_names else part for each in parts for part in each if part)


def _without(table: pa.Table, given: Sequence[str]) -> pa.Table:
    dropped = _columns(given, table)
    return table.drop_columns(list(names(dropped, "drop", read(table)))) if dropped else table


def _roles(request: Request, table: pa.Table) -> _Roles:
    quasi, sensitive = _columns(request.quasi, table), _columns(request.sensitive, table)
    categories, ids = _columns(request.categories, table), _columns(request.pseudonym, table)
    for name in ids:
        if name in quasi + sensitive:
            wrong(clean(f"--pseudonym: {name!r} is in --quasi or --sensitive, too. An id can be only one of them."))
    for name in categories:
        if name not in quasi + sensitive:
            wrong(clean(f"--categories: {name!r} is neither in --quasi nor in --sensitive."))
    for argument, given in (("quasi", quasi), ("sensitive", sensitive), ("column", ids)):
        if given:
            names(given, argument, read(table))  # before a key is made
    return _Roles(quasi, sensitive, categories, ids)


def _pseudonymised(table: pa.Table, ids: Sequence[str], key: bytes | None) -> pa.Table:
    for name in ids:
        table = anonymity.pseudonymise(table, name, key)  # which tells why there must be a key
    return table


def _ready(table: pa.Table, path: Path, roles: _Roles) -> pa.Table:
    """Make numbers and dates of texts that are, and texts of all that shall be codes."""
    if is_text(path):
        table = typed(table, [name for name in (*roles.quasi, *roles.sensitive) if name not in roles.categories])
    for name in roles.categories:
        if table.column_names.count(name) == 1 and not pa.types.is_nested(table.schema.field(name).type):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return table


def _result(table: pa.Table, roles: _Roles, request: Request) -> Any:
    hidden = list(roles.sensitive) or None
    trees = find_hierarchies(request.hierarchies, (*roles.quasi, *roles.sensitive)) or None
    if request.goals.k is not None:
        goals = asdict(request.goals)
        if goals["l"] is not None and goals["l"].is_integer():
            goals["l"] = int(goals["l"])
        return anonymity.attempt(table, list(roles.quasi), sensitive=hidden, hierarchies=trees, **goals)
    people = None
    if request.population is not None:
        theirs = replace(
            roles, sensitive=(), categories=tuple(name for name in roles.categories if name in roles.quasi)
        )
        people = _ready(read_table(request.population, "--population"), request.population, theirs)
    return anonymity.measure(table, list(roles.quasi), hidden, population=people, hierarchies=trees)


def _released(result: Any, given: pa.Table, roles: _Roles, request: Request) -> pa.Table:
    """Return the release; in CSV what did not change is written as it was."""
    if request.out is not None and is_text(request.out):
        return as_written(result.table, given, result.kept, roles.quasi)
    return result.table


def _joined(notes: Sequence[str]) -> str:
    """Make one line of several that begin and end alike."""
    start = "Not protected against: "
    return start + "; ".join(note.removeprefix(start).removesuffix(".") for note in notes) + "."


def _tell(result: Any, html: Path | None) -> None:
    show(report(result), Console(highlight=False))
    if html is not None:
        try:
            write_report(result, html)
        except OSError as error:
            wrong(f"--html: {html} cannot be written ({error.strerror}). Name another place.")
        typer.echo(f"{html}: the report as a page")


def _warn_of_ids(table: pa.Table, used: Sequence[str]) -> None:
    """Point at columns that are different in every row: as long as they are there, everybody is alone."""
    for name in table.column_names:
        if name not in used and table.num_rows > 1 and _is_id(table[name]):
            told = f"{clean(name)!r} is different in every row, and can name people."
            typer.echo(f"discreet: {told} Add it to --drop, --pseudonym or --quasi.", err=True)


def _is_id(column: pa.ChunkedArray) -> bool:
    try:
        return bool(pc.count_distinct(column, mode="all").as_py() == len(column))
    except pa.ArrowException:  # lists and such
        return False
