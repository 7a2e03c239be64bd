"""The commands; each group of them has a file of its own."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

import discreet
from discreet.cli.anonymise import anonymise
from discreet.cli.ask import ask, budget, explain
from discreet.cli.attack import attack
from discreet.cli.audit import audit
from discreet.cli.fit import fit
from discreet.cli.ledger import app as ledger_app
from discreet.cli.plain_flags import Command, Group
from discreet.cli.policy import check, dummy, init
from discreet.cli.tour.tour import Chapter, take

app = typer.Typer(
    cls=Group,
    help="Differentially private SQL, with exact noise and a durable budget ledger.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.add_typer(ledger_app, name="ledger")
for command in (init, check, dummy, ask, explain, budget, fit, anonymise, attack, audit):
    app.command(cls=Command)(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {discreet.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Differentially private SQL, with exact noise and a durable budget ledger."""


@app.command(cls=Command)
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
