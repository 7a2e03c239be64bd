"""What discreet anonymise does, step by step: check, read, pseudonymise, measure or anonymise, tell, write."""

import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import Console

from discreet import anonymity
from discreet.anonymity.coding.tables import names, read
from discreet.anonymity.pseudonyms.pseudonyms import not_protected
from discreet.anonymity.showing.page import write_report
from discreet.anonymity.showing.report import clean, report
from discreet.cli.anonymity_report import show
from discreet.cli.files import check_place, is_text, read_table, typed, write_table
from discreet.cli.hierarchies import find_hierarchies
from discreet.cli.stops import wrong

_SAME = (
    "quasi",
    "sensitive",
    "drop",
    "k",
    "l",
    "t",
    "c",
    "diversity",
    "method",
    "suppress",
    "hierarchies",
    "population",
)
_OPTIONS = {"column": "--pseudonym", "key": "--key-file", "path": "--key-file", "table": "TABLE"}
_OPTIONS |= {name: f"--{name}" for name in _SAME}
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
    population: Path | None
    pseudonym: str | None
    key_file: Path | None
    out: Path | None
    html: Path | None
    force: bool


def carry_out(request: Request) -> None:
    """Do what was asked; the last line says what is not protected."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII only gets question marks, not an end
    _check(request)
    with _spelled():
        given = _without(read_table(request.table), request.drop)
        quasi, sensitive = _columns(request.quasi, given), _columns(request.sensitive, given)
        notes = []
        if request.pseudonym is not None:
            given = _pseudonymised(given, request.pseudonym, (*quasi, *sensitive), request)
            notes.append(
                not_protected(request.pseudonym, [name for name in given.column_names if name != request.pseudonym])
            )
        if quasi:
            given = typed(given, (*quasi, *sensitive)) if is_text(request.table) else given
            result = _result(given, quasi, sensitive, request)
            notes.append(result.not_protected)
            _tell(result, request.html)
            if request.goals.k is not None:
                given = result.table
                _warn_of_ids(given, (*quasi, *sensitive, request.pseudonym))
    if request.out is not None:
        write_table(given, request.out)
        typer.echo(f"{request.out}: {given.num_rows:,} rows written")
    typer.echo("\n" + "\n".join(map(clean, notes)))


def _check(request: Request) -> None:
    """Stop before any work if it could not be done, or would come to nothing."""
    check_place(request.out, "--out", request.force)
    check_place(request.html, "--html", request.force, endings=_PAGES)
    is_changed = request.goals.k is not None or request.pseudonym is not None or bool(request.drop)
    if request.out is not None and not is_changed:
        wrong("--out: nothing would be different there. Say what to change: --k, --pseudonym or --drop.")
    if request.out is not None and request.out.resolve() == request.table.resolve():
        wrong("--out: this is the table itself, which would be lost. Name another file.")
    if not request.quasi and (request.goals.k is not None or request.html or request.pseudonym is None):
        wrong("--quasi: name the columns by which people can be recognised, such as --quasi age,sex,zip.")
    for name in ("l", "t", "c", "suppress"):
        if request.goals.k is None and getattr(request.goals, name):
            wrong(f"--{name}: this is for a table to be made. Add --k, such as --k 5.")
    if request.goals.k is not None and request.population is not None:
        wrong("--population: this is for measuring. Write the table with --out, then measure that one.")
    if request.key_file is not None and request.pseudonym is None:
        wrong("--key-file: this is for pseudonyms. Add --pseudonym with the column of ids.")


def _columns(given: Sequence[str], table: pa.Table) -> tuple[str, ...]:
    """Split a,b,c into names; a name that has a comma itself is one if the table has it."""
    parts = [[text] if text in table.column_names else text.split(",") for text in given]
    return tuple(part.strip() if part not in table.column_names else part for each in parts for part in each if part)


def _without(table: pa.Table, given: Sequence[str]) -> pa.Table:
    dropped = _columns(given, table)
    return table.drop_columns(list(names(dropped, "drop", read(table)))) if dropped else table


def _pseudonymised(table: pa.Table, column: str, used: Sequence[str], request: Request) -> pa.Table:
    if column in used:
        wrong(f"--pseudonym: {column!r} is in --quasi or --sensitive, too. An id can be only one of them.")
    names(column, "column", read(table))  # before a key is made for it
    if request.key_file is None:
        return anonymity.pseudonymise(table, column, None)  # which tells why there must be a key
    return anonymity.pseudonymise(table, column, _key(request.key_file, (request.table, request.out)))


def _key(file: Path, beside: Sequence[Path | None]) -> bytes:
    """Read a key, or make one; never in the folder of the data, with which it would be given away."""
    for path in beside:
        if path is not None and path.resolve().parent == file.resolve().parent:
            wrong(
                f"--key-file: {file} is in the folder of {path}. Keep the key apart from the data: name another folder."
            )
    if file.exists():
        return anonymity.read_key(file)
    key = anonymity.write_key(file)
    typer.echo(f"{file}: a new key. Keep it apart from the data; whoever has it can undo the pseudonyms.", err=True)
    return key


def _result(table: pa.Table, quasi: Sequence[str], sensitive: Sequence[str], request: Request) -> Any:
    hidden = list(sensitive) or None
    trees = find_hierarchies(request.hierarchies, (*quasi, *sensitive)) or None
    if request.goals.k is not None:
        goals = asdict(request.goals)
        if goals["l"] is not None and goals["l"].is_integer():
            goals["l"] = int(goals["l"])
        return anonymity.attempt(table, list(quasi), sensitive=hidden, hierarchies=trees, **goals)
    people = None
    if request.population is not None:
        people = read_table(request.population, "--population")
        people = typed(people, quasi) if is_text(request.population) else people
    return anonymity.measure(table, list(quasi), hidden, population=people, hierarchies=trees)


def _tell(result: Any, html: Path | None) -> None:
    show(report(result), Console(highlight=False))
    if html is not None:
        try:
            write_report(result, html)
        except OSError as error:
            wrong(f"--html: {html} cannot be written ({error.strerror}). Name another place.")
        typer.echo(f"{html}: the report as a page")


def _warn_of_ids(table: pa.Table, used: Sequence[str | None]) -> None:
    """Point at columns that are different in every row: as long as they are there, everybody is alone."""
    for name in table.column_names:
        if name not in used and table.num_rows > 1 and _is_id(table[name]):
            told = f"{clean(name)!r} is different in every row, stays as it is, and can name people."
            typer.echo(f"discreet: {told} Add it to --drop, or make it a --pseudonym.", err=True)


def _is_id(column: pa.ChunkedArray) -> bool:
    try:
        return bool(pc.count_distinct(column, mode="all").as_py() == len(column))
    except pa.ArrowException:  # lists and such
        return False


@contextmanager
def _spelled() -> Iterator[None]:
    """Say what is wrong as the command line spells it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = re.sub(r"^(\w+):", lambda match: f"{_OPTIONS.get(match[1], match[1])}:", str(error))
        wrong(clean(text.replace("Give new_key(), and keep it", "Name a file for one with --key-file, and keep it")))
