"""The commands; each group of them has a file of its own."""

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import discreet
from discreet.cli.ask import ask, budget, explain
from discreet.cli.demo import tour
from discreet.cli.ledger import app as ledger_app
from discreet.cli.policy import check
from discreet.cli.questions import ask_the_town

app = typer.Typer(
    help="Differential privacy with exact noise and a ledger that nothing can overspend.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.add_typer(ledger_app, name="ledger")
for command in (check, ask, explain, budget):
    app.command()(command)


class Chapter(StrEnum):
    """The chapters of the tour."""

    ALL = "all"
    ASK = "ask"
    KERNEL = "kernel"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {discreet.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Differential privacy with exact noise and a ledger that nothing can overspend."""


@app.command()
def demo(
    chapter: Annotated[Chapter, typer.Argument(help="What to show.")] = Chapter.ALL,
    pictures: Annotated[Path, typer.Option(help="Where to save the pictures.")] = Path("tour"),
) -> None:
    """Take a short tour on data that is made up on the spot."""
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        typer.echo(f"--pictures: no folder can be made at {pictures} ({error.strerror}). Name another.", err=True)
        raise typer.Exit(2) from None
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII only gets question marks, not an end
    if chapter in (Chapter.ALL, Chapter.ASK):
        ask_the_town()
    if chapter in (Chapter.ALL, Chapter.KERNEL):
        tour(pictures)
