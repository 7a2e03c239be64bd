"""discreet init, check, dummy: draft a policy, check it, and try it on dummy data."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from discreet.cli.source_check import check_source_schemas, spark_catalog
from discreet.cli.terminal import PolicyFile, check_output_path, count_of, exit_on_error, print_warnings, writing
from discreet.curator.data_stamp import changed_tables, changed_tables_warning
from discreet.kernel.errors import PolicyError
from discreet.policy import Hazard, Policy, draft, explain, find_file_hazards, hazards, write_dummy
from discreet.policy.dummy_data.dummy_files import is_dummy_folder
from discreet.policy.dummy_data.dummy_tables import DEFAULT_ROWS
from discreet.policy.problems import PLACEHOLDER, find_placeholders, placeholder_comment_lines
from discreet.policy.toml import KeyPath, key_lines, parse_toml, read_policy_text

ForceOption = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite existing files.")]


def check(
    policy: PolicyFile,
    strict: Annotated[
        bool, typer.Option("--strict", metavar="", help="Treat hazards as errors (exit code 2).")
    ] = False,
) -> None:
    """Check a policy, explain its privacy guarantee, and list hazards.

    Only schemas are read, not the data; but a CSV file has no types, so its
    first rows are read, to see whether their values fit the declared ones.
    """
    try:
        loaded_policy = Policy.load(policy)
        with print_warnings():
            sources = check_source_schemas(loaded_policy)
    except PolicyError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    text = read_policy_text(policy)
    console = Console(highlight=False)
    for sentence in explain(loaded_policy):
        console.print(f"• {sentence}", markup=False)
    all_hazards = [
        *hazards(loaded_policy),
        *find_file_hazards(loaded_policy, text),
        *sources.hazards,
    ]
    if not all_hazards:
        console.print("\nNo hazards found.")
    lines = key_lines(text)
    for hazard in all_hazards:
        _print_hazard(console, hazard, lines.get(_key_of(hazard)))
    for problem in sources.problems:
        typer.echo(f"{policy}: {problem}", err=True)
    if changed := changed_tables(loaded_policy):
        typer.echo(f"warning: {changed_tables_warning(loaded_policy, changed)}", err=True)
    if sources.problems or (strict and all_hazards):
        raise typer.Exit(2)


def _key_of(hazard: Hazard) -> KeyPath:
    """Return the keys of the policy that a hazard is about."""
    if hazard.table is None:
        return (hazard.section.strip("[]"),)
    return ("tables", hazard.table, *(("columns", hazard.column) if hazard.column else ()))


def _print_hazard(console: Console, hazard: Hazard, line: int | None) -> None:
    where = ", ".join(part for part in (hazard.table, hazard.column) if part) or hazard.section
    where += f" (line {line})" if line else ""
    console.print()
    console.print(Text.assemble((hazard.id, "yellow"), f" {where}: {hazard.message} {hazard.hint}"))


def init(  # noqa: PLR0913, PLR0917 - options of a command
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Parquet, CSV or DuckDB files, patterns such as *.parquet, or file.duckdb/table; or a postgresql:// "
            "or sc:// URL without a password, followed by the names of its tables (default: all)."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The policy file to write.")] = Path("policy.toml"),
    unit: Annotated[str | None, typer.Option(help="The column that identifies the privacy unit.")] = None,
    types: Annotated[
        list[str] | None, typer.Option(help="Column types for CSV files, such as patient=integer,cost=decimal.")
    ] = None,
    metadata: Annotated[Path | None, typer.Option("--from", help="SmartNoise metadata (YAML).")] = None,
    force: ForceOption = False,
) -> None:
    """Draft a policy from schemas, without reading any rows; values for you to supply are marked FILL IN."""
    with exit_on_error():
        check_output_path(out, "--out", force=force)
        sources = data or []
        catalog = spark_catalog(sources[0], sources[1:]) if sources and sources[0].startswith("sc://") else None
        text = draft(
            [] if catalog else sources,
            unit=unit,
            types=_parse_types(types or []),
            metadata=metadata,
            base=out.parent,
            catalog=catalog,
        )
        with writing("--out", out):
            out.write_text(text)
    values, guesses = parse_toml(text, str(out)), len(placeholder_comment_lines(text))
    tables = count_of(len(values["tables"]), "table")
    summary = f"{tables}, {count_of(len(list(find_placeholders(values))), 'value')} to fill in"
    summary += f", column types of {count_of(guesses, 'table')} to check (or use --types)" if guesses else ""
    typer.echo(f"{out}: {summary}. Search for {PLACEHOLDER}, then run: discreet check {out}")


def dummy(
    policy: PolicyFile,
    out: Annotated[Path, typer.Option(help="The folder for the dummy data and its policy.")],
    rows: Annotated[int, typer.Option(help="Number of rows in each private table.")] = DEFAULT_ROWS,
    seed: Annotated[int, typer.Option(help="Random seed of the dummy data.", min=0)] = 0,
    force: ForceOption = False,
) -> None:
    """Write dummy data that fits a policy, with a copy of the policy for trying queries; no real data is read."""
    with exit_on_error():
        loaded_policy = Policy.load(policy)
        if is_dummy_folder(out):
            check_output_path(out / "policy.toml", "--out", force=force)
        with writing("--out", out):
            dummy_data = write_dummy(loaded_policy, out, rows=rows, random_state=seed)
    for name, source in dummy_data.sources.items():
        typer.echo(f"{out / source}: dummy data for {name}")
    typer.echo(f'Then run: discreet ask {dummy_data.policy} "SELECT …" --epsilon …')


def _parse_types(texts: list[str]) -> dict[str, str]:
    types = {}
    for word in filter(None, (part.strip() for text in texts for part in text.split(","))):
        column, equals, kind = word.rpartition("=")
        if not equals or not column.strip():
            raise PolicyError("--types: expected column=type,column=type, such as patient=integer,cost=decimal.")
        types[column.strip()] = kind.strip()
    return types
