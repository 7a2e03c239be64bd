"""discreet ledger: look at a ledger, and check it."""

import json
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
        table = Table("time", "by", "state", "cost", "mechanism", "question")
        for event in ledger.events():
            when = event.time[:16].replace("T", " ")
            table.add_row(when, event.by, str(event.state), _cost(event.loss), _mechanism(event), event.question)
        Console().print(table)
        typer.echo(f"spent {_cost(ledger.spent())} of {ledger.budget}")


def _cost(loss: dc.Loss | None) -> str:
    if loss is None:
        return ""
    cost = f"rho {float(loss.rho):.6g}" if loss.epsilon is None else f"epsilon {loss.epsilon}"
    return cost + (f", delta {float(loss.delta):.3g}" if loss.delta else "")


def _mechanism(event: dc.Event) -> str:
    data = json.loads(event.mechanism)
    return " ".join(map(str, (data.pop("name", ""), *data.values()))).strip()


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
