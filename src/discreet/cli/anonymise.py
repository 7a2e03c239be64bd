"""discreet anonymise: measure how anonymous a table is, and make it more so, from the command line."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.anonymity.report.contents import make_printable
from discreet.cli.anonymise_pipeline import AnonymiseRequest, GoalOptions, run_anonymise
from discreet.cli.terminal import usage_error

Columns = list[str] | None
_COMMAS = "Join columns by commas, without blanks: --quasi zip,age."


def _allow_extra_words(context: typer.Context, table: Path) -> Path:
    """Leave words that are no option to the command: who writes --quasi zip age is told about commas."""
    context.allow_extra_args = True
    return table


def _parse_share(text: str) -> float:
    """Read a share of the rows; percent are said to be none."""
    try:
        return float(text)
    except ValueError:
        percent = text.strip().removesuffix("%").strip()
        example = f"{float(percent) / 100:g}" if percent.replace(".", "", 1).isdecimal() else "0.02"
        raise typer.BadParameter(f"{text!r} is no share of the rows. Write {example}.") from None


def anonymise(  # noqa: PLR0913, PLR0917 - options of a command
    context: typer.Context,
    table: Annotated[Path, typer.Argument(help="The table, in a CSV or Parquet file.", callback=_allow_extra_words)],
    quasi: Annotated[
        Columns, typer.Option(help="Quasi-identifiers, by which people can be recognised: age,sex,zip; repeatable.")
    ] = None,
    sensitive: Annotated[Columns, typer.Option(help="Sensitive columns; repeatable.")] = None,
    k: Annotated[
        int | None, typer.Option(help="Least size of a class; without it, the table is only measured.")
    ] = None,
    l: Annotated[  # noqa: E741 - what everybody calls it
        float | None, typer.Option(help="Least number of different sensitive values in a class (l-diversity).")
    ] = None,
    t: Annotated[
        float | None,
        typer.Option(help="Largest distance of a class's sensitive values from the table's (t-closeness)."),
    ] = None,
    diversity: Annotated[
        str, typer.Option(help="How values are counted for --l.", metavar="distinct|entropy|recursive")
    ] = "distinct",
    c: Annotated[float | None, typer.Option(help="The c of recursive diversity.")] = None,
    method: Annotated[
        str, typer.Option(help="How values are generalised.", metavar="mondrian|full-domain")
    ] = "mondrian",
    suppress: Annotated[
        float, typer.Option(help="Largest share of rows that may be suppressed.", parser=_parse_share, metavar="FLOAT")
    ] = 0,
    categories: Annotated[
        Columns, typer.Option(help="Columns whose numbers are codes, such as zip, and have no order; repeatable.")
    ] = None,
    hierarchies: Annotated[
        Columns, typer.Option(help="A folder of COLUMN.csv, or COLUMN=FILE: lines of value;coarser;…;*; repeatable.")
    ] = None,
    population: Annotated[
        Path | None, typer.Option(help="A table of the population, to measure how many of them match each row.")
    ] = None,
    drop: Annotated[Columns, typer.Option(help="Columns to leave out, such as names; repeatable.")] = None,
    pseudonym: Annotated[
        Columns, typer.Option(help="Columns of ids to replace by keyed pseudonyms; repeatable.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="The key of the pseudonyms, in another folder; created if missing.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the table (.csv, .tsv or .parquet).")] = None,
    html: Annotated[Path | None, typer.Option(help="Where to write the report as a page.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite what is there.")] = False,
) -> None:
    """Measure how anonymous a table is, or make it k-anonymous, and report the attacks that remain."""
    if context.args:
        words = ", ".join([str(table), *context.args])
        usage_error(make_printable(f"TABLE: give one file, not {len(context.args) + 1}: {words}. {_COMMAS}"))
    run_anonymise(
        AnonymiseRequest(
            table=table,
            quasi=tuple(quasi or ()),
            sensitive=tuple(sensitive or ()),
            drop=tuple(drop or ()),
            goals=GoalOptions(k=k, l=l, t=t, diversity=diversity, c=c, method=method, suppress=suppress),
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
