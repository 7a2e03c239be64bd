"""discreet anonymise: measure how anonymous a table is, or make it k-anonymous."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.anonymise_pipeline import AnonymiseRequest, run_anonymise
from discreet.cli.terminal import usage_error
from discreet.html_page import make_printable

Columns = list[str] | None
_COMMAS = "Separate columns by commas, without spaces: --quasi zip,age."


def _allow_extra_words(context: typer.Context, table: Path) -> Path:
    """Let the command handle extra arguments, so that `--quasi zip age` gets a hint about commas."""
    context.allow_extra_args = True
    return table


def _parse_share(text: str) -> float:
    """Parse a share of the rows; for a percentage, suggest the share."""
    try:
        return float(text)
    except ValueError:
        percent = text.strip().removesuffix("%").strip()
        example = f"{float(percent) / 100:g}" if percent.replace(".", "", 1).isdecimal() else "0.02"
        raise typer.BadParameter(f"{text!r} is not a share of the rows. Write {example}.") from None


def anonymise(  # noqa: PLR0913, PLR0917 - options of a command
    context: typer.Context,
    table: Annotated[Path, typer.Argument(help="The table: a CSV or Parquet file.", callback=_allow_extra_words)],
    quasi: Annotated[Columns, typer.Option(help="Quasi-identifiers, such as age,sex,zip; repeatable.")] = None,
    sensitive: Annotated[Columns, typer.Option(help="Sensitive columns; repeatable.")] = None,
    k: Annotated[
        int | None, typer.Option(help="Minimum size of an equivalence class; without it, the table is only measured.")
    ] = None,
    l: Annotated[  # noqa: E741 - its usual name
        float | None, typer.Option(help="Minimum number of distinct sensitive values in a class (l-diversity).")
    ] = None,
    t: Annotated[
        float | None,
        typer.Option(help="Maximum distance between the sensitive values of a class and of the table (t-closeness)."),
    ] = None,
    diversity: Annotated[
        str, typer.Option(help="The kind of diversity for --l.", metavar="distinct|entropy|recursive")
    ] = "distinct",
    c: Annotated[float | None, typer.Option(help="The parameter c of recursive diversity.")] = None,
    method: Annotated[
        str, typer.Option(help="The generalisation method.", metavar="mondrian|full-domain")
    ] = "mondrian",
    suppress: Annotated[
        float,
        typer.Option(help="Maximum share of rows to suppress, such as 0.02.", parser=_parse_share, metavar="FLOAT"),
    ] = 0,
    categories: Annotated[
        Columns, typer.Option(help="Numeric columns that are unordered codes, such as zip; repeatable.")
    ] = None,
    hierarchies: Annotated[
        Columns,
        typer.Option(help="A folder of COLUMN.csv files, or COLUMN=FILE; lines are value;coarser;…;*; repeatable."),
    ] = None,
    population: Annotated[
        Path | None, typer.Option(help="A table of the population, to measure how many people match each row.")
    ] = None,
    drop: Annotated[Columns, typer.Option(help="Columns to remove, such as names; repeatable.")] = None,
    pseudonym: Annotated[
        Columns, typer.Option(help="Identifier columns to replace by keyed pseudonyms; repeatable.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="The file of the pseudonym key, in another folder; created if missing.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write the table to (.csv, .tsv or .parquet).")] = None,
    html: Annotated[Path | None, typer.Option(help="The HTML file to write the report to.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite existing files.")] = False,
) -> None:
    """Measure how anonymous a table is, or make it k-anonymous, and report the attacks that remain."""
    if context.args:
        words = ", ".join([str(table), *context.args])
        usage_error(make_printable(f"TABLE: expected one file, not {len(context.args) + 1}: {words}. {_COMMAS}"))
    for name, value in (("l", l), ("t", t), ("c", c), ("suppress", suppress)):
        if k is None and value:
            usage_error(f"--{name}: needs --k. Add it, such as --k 5.")
    whole_l = int(l) if l is not None and l.is_integer() else l
    goals = {"k": k, "l": whole_l, "t": t, "diversity": diversity, "c": c, "method": method, "suppress": suppress}
    run_anonymise(
        AnonymiseRequest(
            table=table,
            quasi=tuple(quasi or ()),
            sensitive=tuple(sensitive or ()),
            drop=tuple(drop or ()),
            goals=None if k is None else goals,
            hierarchies=tuple(hierarchies or ()),
            categories=tuple(categories or ()),
            population=population,
            pseudonym=tuple(pseudonym or ()),
            key_file=key_file,
            out=out,
            html=html,
            force=force,
        )
    )
