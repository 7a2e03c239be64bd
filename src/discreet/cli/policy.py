"""discreet init, check, dummy: writing a policy, reading it critically, and trying it on fake data."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from discreet.cli.sources import look_at_sources, spark_catalog
from discreet.cli.stops import showing_warnings, stopping
from discreet.data_stamp import change_in_words, changed_tables
from discreet.kernel.errors import PolicyError
from discreet.policy import Hazard, Policy, draft, explain, hazards, place_hazards, write_dummy
from discreet.policy.dummies.dummy import ROWS
from discreet.policy.dummies.files import is_dummy
from discreet.policy.marks import MARK, commented_marks, find_marks
from discreet.policy.toml import read_text, read_values

File = Annotated[Path, typer.Argument(help="The policy file.")]
Force = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite what is there.")]


def check(
    policy: File,
    strict: Annotated[
        bool, typer.Option("--strict", metavar="", help="Treat hazards as errors (exit code 2).")
    ] = False,
) -> None:
    """Check a policy, explain what it guarantees, and list hazards; of the data, only schemas are read."""
    try:
        found = Policy.load(policy)
        with showing_warnings():
            sources = look_at_sources(found)
    except PolicyError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    console = Console(highlight=False)
    for sentence in explain(found):
        console.print(f"• {sentence}", markup=False)
    listed = [*hazards(found), *place_hazards(found, read_text(policy)), *sources.hazards]
    if not listed:
        console.print("\nNo hazards seen.")
    for hazard in listed:
        _show(console, hazard)
    for problem in sources.problems:
        typer.echo(f"{policy}: {problem}", err=True)
    if changed := changed_tables(found):
        typer.echo(change_in_words(found, changed), err=True)
    if sources.problems or (strict and listed):
        raise typer.Exit(2)


def _show(console: Console, hazard: Hazard) -> None:
    where = ", ".join(part for part in (hazard.table, hazard.column) if part) or hazard.section
    console.print()
    console.print(Text.assemble((hazard.id, "yellow"), f" {where}: {hazard.message} {hazard.fix}"))


def init(  # noqa: PLR0913, PLR0917 - options of a command
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Parquet, CSV or DuckDB files, patterns of them, file.duckdb/table; or a postgresql:// or sc:// URL "
            "without a password, and the names of tables there."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The policy to write.")] = Path("policy.toml"),
    unit: Annotated[str | None, typer.Option(help="The column of the privacy unit.")] = None,
    types: Annotated[
        list[str] | None, typer.Option(help="Column types for CSV files: column=type,column=type.")
    ] = None,
    metadata: Annotated[
        Path | None, typer.Option("--from", help="Metadata of SmartNoise (YAML) or CSV on the Web (JSON).")
    ] = None,
    force: Force = False,
) -> None:
    """Draft a policy from schemas, without reading a row; decisions for a human are marked FILL IN."""
    with stopping():
        _keep(out, force)
        given = data or []
        catalog = spark_catalog(given[0], given[1:]) if given and given[0].startswith("sc://") else None
        text = draft(
            [] if catalog else given,
            unit=unit,
            types=_types(types or []),
            metadata=metadata,
            base=out.parent,
            catalog=catalog,
        )
        _write(out, text)
    values, guesses = read_values(text, str(out)), len(commented_marks(text))
    told = f"{_count(len(values['tables']), 'table')}, {_count(len(list(find_marks(values))), 'value')} to fill in"
    told += f", types of {_count(guesses, 'table')} to look at (or: --types column=type,…)" if guesses else ""
    typer.echo(f"{out}: {told}. Search for {MARK}; then: discreet check {out}")


def dummy(
    policy: File,
    out: Annotated[Path, typer.Option(help="The folder for the dummy data and their policy.")],
    rows: Annotated[int, typer.Option(help="Rows of each private table.")] = ROWS,
    seed: Annotated[int, typer.Option(help="Another seed gives other data.", min=0)] = 0,
    force: Force = False,
) -> None:
    """Write dummy data that fits a policy, and a copy of the policy to try queries on; no real data is read."""
    with stopping():
        found = Policy.load(policy)
        if is_dummy(out):
            _keep(out / "policy.toml", force)
        try:
            made = write_dummy(found, out, rows=rows, random_state=seed)
        except OSError as error:
            raise PolicyError(f"--out: {out} cannot be written ({error.strerror}). Name another folder.") from None
    for name, source in made.sources.items():
        typer.echo(f"{out / source}: dummy data for {name}")
    typer.echo(f'Then: discreet ask {made.policy} "SELECT …" --epsilon …')


def _keep(file: Path, force: bool) -> None:
    if os.path.lexists(file) and not force:
        raise PolicyError(f"{file} is there already. Name another place, or overwrite it with --force.")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise PolicyError(f"{file}: cannot be written ({error.strerror}). Name another place with --out.") from None


def _types(words: list[str]) -> dict[str, str]:
    found = {}
    for word in filter(None, (part.strip() for each in words for part in each.split(","))):
        column, equals, kind = word.rpartition("=")
        if not equals or not column.strip():
            raise PolicyError("--types: write column=type,column=type, such as patient=integer,cost=decimal.")
        found[column.strip()] = kind.strip()
    return found


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
