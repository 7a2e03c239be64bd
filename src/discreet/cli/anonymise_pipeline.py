"""The steps of discreet anonymise: check, read, pseudonymise, measure or anonymise, report, write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from discreet import anonymity
from discreet.anonymity.encoding.metadata_removal import strip_arrow
from discreet.anonymity.encoding.table_adapters import adapt_table, resolve_column_names
from discreet.anonymity.pseudonyms.pseudonymisation import describe_attacks_on_pseudonyms
from discreet.anonymity.report.contents import AnonymityReport, build_report, write_report
from discreet.anonymity.report.sections import ReportTable, RiskSection
from discreet.cli.anonymise_options import exit_on_option_error, find_hierarchies, read_or_create_key, store_new_key
from discreet.cli.table_files import (
    WRITABLE_SUFFIXES,
    infer_types,
    is_text_file,
    read_table,
    restore_texts,
    write_table,
)
from discreet.cli.terminal import (
    HTML_SUFFIXES,
    check_output_path,
    print_trimmed,
    replace_unprintable,
    text_table,
    usage_error,
    writing,
)
from discreet.html_page import ChartBar, make_printable

_INDENT = 3
_MAX_LABEL_WIDTH = 40
_BAR_WIDTH = 24


def print_report(anonymity_report: AnonymityReport, console: Console) -> None:
    """Print the report without the line on what is not protected, which comes last in the command."""
    console.print(Text(make_printable(anonymity_report.title), "bold"))
    for part in anonymity_report.sections:
        _print_part(part, console)


def _print_part(part: RiskSection, console: Console) -> None:
    console.print()
    console.print(Text(make_printable(part.title), "bold cyan"))
    for sentence in part.sentences:
        print_trimmed(console, Text(make_printable(sentence)), _INDENT)
    if part.table is not None:
        print_trimmed(console, _rich_table(part.table), _INDENT)
    if part.bars:
        print_trimmed(console, Text(f"{part.caption}:", "dim"), _INDENT)
        print_trimmed(console, _bar_table(part.bars), _INDENT)


def _rich_table(grid: ReportTable) -> Table:
    last = len(grid.headers) - 1
    columns = (
        Column(Text(header), justify="right" if 0 < index < last else "left")
        for index, header in enumerate(grid.headers)
    )
    return text_table(columns, grid.rows)


def _bar_table(bars: tuple[ChartBar, ...]) -> Table:
    label = Column(max_width=_MAX_LABEL_WIDTH, no_wrap=True, overflow="ellipsis")
    rows = ([bar.label, bar.text, Text("█" * round(_BAR_WIDTH * min(bar.share, 1)), "yellow")] for bar in bars)
    return text_table((label, Column(justify="right"), Column()), rows)


@dataclass(frozen=True)
class AnonymiseRequest:
    """The options of the command; without goals, the table is only measured."""

    table: Path
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    drop: tuple[str, ...]
    goals: Mapping[str, Any] | None
    hierarchies: tuple[str, ...]
    categories: tuple[str, ...]
    population: Path | None
    pseudonym: tuple[str, ...]
    key_file: Path | None
    out: Path | None
    html: Path | None
    force: bool


@dataclass(frozen=True)
class _ColumnRoles:
    """The columns in each role."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    categories: tuple[str, ...]
    ids: tuple[str, ...]


def run_anonymise(request: AnonymiseRequest) -> None:
    """Run the command; its last line of output states what is not protected."""
    replace_unprintable()
    _check_request(request)
    with exit_on_option_error():
        table = _drop_columns(read_table(request.table), request.drop)
        roles = _assign_roles(request, table)
        notes = []
        key = read_or_create_key(request.key_file, (request.table, request.out)) if roles.ids else None
        if roles.ids:
            table = _pseudonymise(table, roles.ids, key)
            notes.append(
                describe_attacks_on_pseudonyms(
                    roles.ids, [name for name in table.column_names if name not in roles.ids]
                )
            )
        if roles.quasi:
            result = _measure_or_anonymise(_convert_columns(table, request.table, roles), roles, request)
            notes.append(result.not_protected)
            _print_result(result, request.html)
            if request.goals is not None:
                table = _released_table(result, table, roles, request)
            _warn_of_ids(table, (*roles.quasi, *roles.ids))
        if key is not None and request.key_file is not None:
            store_new_key(key, request.key_file)
    note = _join_notes(notes)
    if request.out is not None:
        write_table(strip_arrow(table).replace_schema_metadata({b"not_protected": note.encode()}), request.out)
        typer.echo(f"{request.out}: {table.num_rows:,} rows written")
    elif request.goals is not None:
        typer.echo("\nNo table was written. Use --out FILE to write it.")
    typer.echo("\n" + make_printable(note))


def _check_request(request: AnonymiseRequest) -> None:
    """Exit before any work if the options contradict each other or would have no effect."""
    check_output_path(request.out, "--out", endings=WRITABLE_SUFFIXES, force=request.force)
    check_output_path(request.html, "--html", endings=HTML_SUFFIXES, force=request.force)
    is_changed = request.goals is not None or bool(request.pseudonym) or bool(request.drop)
    if request.out is not None and not is_changed:
        usage_error("--out: the table would be unchanged. Add --k, --pseudonym or --drop.")
    if request.pseudonym and request.out is None:
        usage_error("--pseudonym: the table would not be written. Add --out with a file.")
    for option, output in (("--out", request.out), ("--html", request.html)):
        _check_not_an_input(option, output, request)
    if not request.quasi and (request.goals is not None or request.html or not request.pseudonym):
        usage_error("--quasi: name the quasi-identifiers, such as --quasi age,sex,zip.")
    if request.goals is not None and request.population is not None:
        usage_error("--population: cannot be combined with --k. Write the table with --out, then measure it.")
    if request.key_file is not None and not request.pseudonym:
        usage_error("--key-file: needs --pseudonym. Add it with the identifier columns.")


def _check_not_an_input(option: str, output: Path | None, request: AnonymiseRequest) -> None:
    """Exit if an input file would be overwritten, also under another path or through a link."""
    hierarchy_files = [Path(text.partition("=")[2]) for text in request.hierarchies]
    hierarchy_files += [file for text in request.hierarchies for file in Path(text).glob("*.csv")]
    inputs = [("table", request.table), ("population", request.population), ("key", request.key_file)]
    for what, path in [*inputs, *(("hierarchy", file) for file in hierarchy_files)]:
        if output is not None and path is not None and output.exists() and path.exists() and output.samefile(path):
            usage_error(f"{option}: would overwrite the {what} itself. Choose another file.")


def _split_columns(options: Sequence[str], table: pa.Table) -> tuple[str, ...]:
    """Split a,b,c into names, unless the table has a column with exactly that name."""
    parts = [[text] if text in table.column_names else text.split(",") for text in options]
    return tuple(part.strip() if part not in table.column_names else part for group in parts for part in group if part)


def _drop_columns(table: pa.Table, options: Sequence[str]) -> pa.Table:
    columns = _split_columns(options, table)
    return table.drop_columns(list(resolve_column_names(columns, "drop", adapt_table(table)))) if columns else table


def _assign_roles(request: AnonymiseRequest, table: pa.Table) -> _ColumnRoles:
    quasi, sensitive = _split_columns(request.quasi, table), _split_columns(request.sensitive, table)
    categories, ids = _split_columns(request.categories, table), _split_columns(request.pseudonym, table)
    for name in ids:
        if name in quasi + sensitive:
            usage_error(
                make_printable(f"--pseudonym: {name!r} is also in --quasi or --sensitive. Remove it from one of them.")
            )
    for name in categories:
        if name not in quasi + sensitive:
            usage_error(make_printable(f"--categories: {name!r} is neither in --quasi nor in --sensitive."))
    for argument, columns in (("quasi", quasi), ("sensitive", sensitive), ("column", ids)):
        if columns:
            resolve_column_names(columns, argument, adapt_table(table))  # before a key is created
    return _ColumnRoles(quasi, sensitive, categories, ids)


def _pseudonymise(table: pa.Table, ids: Sequence[str], key: bytes | None) -> pa.Table:
    for name in ids:
        table = anonymity.pseudonymise(table, name, key)  # explains why a key is needed
    return table


def _convert_columns(table: pa.Table, path: Path, roles: _ColumnRoles) -> pa.Table:
    """Convert text columns to numbers and dates, and categories to text."""
    if is_text_file(path):
        table = infer_types(table, [name for name in (*roles.quasi, *roles.sensitive) if name not in roles.categories])
    for name in roles.categories:
        if table.column_names.count(name) == 1 and not pa.types.is_nested(table.schema.field(name).type):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return table


def _measure_or_anonymise(table: pa.Table, roles: _ColumnRoles, request: AnonymiseRequest) -> Any:
    sensitive = list(roles.sensitive) or None
    hierarchies = find_hierarchies(request.hierarchies, (*roles.quasi, *roles.sensitive)) or None
    if request.goals is not None:
        return anonymity.anonymise_and_measure(
            table, list(roles.quasi), sensitive=sensitive, hierarchies=hierarchies, **request.goals
        )
    population = None
    if request.population is not None:
        population_roles = replace(
            roles, sensitive=(), categories=tuple(name for name in roles.categories if name in roles.quasi)
        )
        population = _convert_columns(
            read_table(request.population, "--population"), request.population, population_roles
        )
    return anonymity.measure(table, list(roles.quasi), sensitive, population=population, hierarchies=hierarchies)


def _released_table(result: Any, original: pa.Table, roles: _ColumnRoles, request: AnonymiseRequest) -> pa.Table:
    """Return the released table; for CSV, with the original texts of unchanged columns."""
    if request.out is not None and is_text_file(request.out):
        return restore_texts(result.table, original, result.kept_rows, roles.quasi)
    return result.table


def _join_notes(notes: Sequence[str]) -> str:
    """Join notes that all start with "Not protected against" into one line."""
    start = "Not protected against: "
    return start + "; ".join(note.removeprefix(start).removesuffix(".") for note in notes) + "."


def _print_result(result: Any, html: Path | None) -> None:
    print_report(build_report(result), Console(highlight=False))
    if html is not None:
        with writing("--html", html):
            write_report(result, html)
        typer.echo(f"{html}: report written")


def _warn_of_ids(table: pa.Table, covered: Sequence[str]) -> None:
    """Warn of columns whose values are unique to each row: with them, every row is unique."""
    for name in table.column_names:
        if name not in covered and table.num_rows > 1 and _is_unique(table[name]):
            message = f"{make_printable(name)!r} has a different value in every row and may identify people."
            typer.echo(f"discreet: {message} Add it to --drop, --pseudonym or --quasi.", err=True)


def _is_unique(column: pa.ChunkedArray) -> bool:
    try:
        return bool(pc.count_distinct(column, mode="all").as_py() == len(column))
    except pa.ArrowException:  # nested types
        return False
