"""discreet demo: a tour on simulated data."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.tour.tour import Chapter, take


def demo(
    chapter: Annotated[Chapter, typer.Argument(help="The chapter to show.")] = Chapter.ALL,
    out: Annotated[Path, typer.Option(help="Where to save the page and its pictures.")] = Path("tour"),
) -> None:
    """Show a tour of about a minute on simulated data, and save it as an HTML page."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        typer.echo(f"--out: no folder can be made at {out} ({error.strerror}). Name another.", err=True)
        raise typer.Exit(2) from None
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII only gets question marks, not an end
    take(chapter, out)
