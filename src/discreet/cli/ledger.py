"""discreet ledger: look at a ledger, and check it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import discreet as dc

app = typer.Typer(help="Look at a ledger, and check it.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The ledger's file.")]
Name = Annotated[str, typer.Option(help="The data set that the ledger belongs to.")]
_REFUSED = 3


@app.command()
def verify(file: File, name: Name) -> None:
    """Recompute every hash, total, state and answer."""
    with _opened(file, name) as ledger:
        ledger.verify()
        typer.echo(f"{file}: {len(ledger.events())} charges, every hash, total and answer as recorded")


@app.command()
def show(file: File, name: Name) -> None:
    """List what was charged, and what is spent."""
    with _opened(file, name) as ledger:
        table = Table("time", "by", "state", "loss", "mechanism", "question")
        for event in ledger.events():
            loss = str(event.loss).removeprefix("Loss(").removesuffix(")")
            table.add_row(event.time, event.by, str(event.state), loss, event.mechanism, event.question)
        Console().print(table)
        typer.echo(f"spent {ledger.spent()} of {ledger.budget}")


@contextmanager
def _opened(file: Path, name: str) -> Iterator[dc.Ledger]:
    try:
        ledger = dc.open_ledger(file, name=name)
        try:
            yield ledger
        finally:
            ledger.close()
    except dc.DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        raise typer.Exit(_REFUSED if isinstance(error, dc.Refused) else 2) from None
