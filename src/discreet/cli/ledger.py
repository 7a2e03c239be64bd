"""discreet ledger: look at a ledger, and check it."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

import discreet as dc
from discreet.cli.numbers import number
from discreet.cli.stops import stopping
from discreet.policy import Policy

app = typer.Typer(help="Look at a ledger, and check it.", no_args_is_help=True)

_INDENT = 4
File = Annotated[Path, typer.Argument(help="The policy; or, with --name, a ledger's own file.")]
Name = Annotated[str | None, typer.Option(help="The data set that the ledger belongs to.")]


@app.command()
def verify(file: File, name: Name = None) -> None:
    """Recompute every hash, total, state and answer."""
    with _opened(file, name) as ledger:
        ledger.verify()
        typer.echo(f"{file}: {len(ledger.events())} charges, every hash, total and answer as recorded")


@app.command()
def acknowledge(file: File, name: Name = None) -> None:
    """Let a data set serve again after failures or a rollback: an owner's act, on record."""
    with _opened(file, name) as ledger:
        ledger.acknowledge()
        typer.echo(f"{file}: acknowledged")


@app.command()
def show(
    file: File,
    name: Name = None,
    long: Annotated[bool, typer.Option("--long", metavar="", help="Show the mechanism of each charge, too.")] = False,
) -> None:
    """List what was charged: when, by whom, at which price, for which question; and what is spent."""
    with _opened(file, name) as ledger:
        console = Console(highlight=False)
        events = ledger.events()
        for event, line in zip(events, _aligned(events), strict=True):
            console.print(Text(line, "bold"))
            _below(console, _question(event))
            if long:
                _below(console, _mechanism(event))
        typer.echo(f"spent {_cost(ledger.spent())} of {ledger.budget}")


def _aligned(events: Sequence[dc.Event]) -> list[str]:
    """Write time, who, state and price of each charge, one under the other."""
    rows = [(event.time[:16].replace("T", " "), event.by, str(event.state), _cost(event.loss)) for event in events]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _below(console: Console, text: str) -> None:
    """Print a text indented, on as many lines as it needs."""
    for line in Text(text).wrap(console, max(console.width - _INDENT, 20)):
        console.print(" " * _INDENT + line.plain.rstrip(), markup=False, soft_wrap=True)


def _cost(loss: dc.Loss | None) -> str:
    if loss is None:
        return ""
    cost = f"rho {number(loss.rho)}" if loss.epsilon is None else f"epsilon {number(loss.epsilon)}"
    return cost + (f", delta {float(loss.delta):.3g}" if loss.delta else "")


def _mechanism(event: dc.Event) -> str:
    data = json.loads(event.mechanism)
    if data.get("name") == "several":
        return ", ".join(_words(part) for part in data["parts"])
    return _words(data)


def _words(data: dict[str, Any]) -> str:
    if data.get("name") == "refined":
        return f"laplace {_brief(data['before'])} → {_brief(data['scale'])}"
    if data.get("name") == "threshold":
        return f"threshold on {_words(json.loads(data['noise']))}"
    return " ".join([str(data.pop("name", "")), *map(_brief, data.values())]).strip()


def _brief(value: Any) -> str:
    """Write a long fraction for reading; the ledger itself has it exactly."""
    text = str(value)
    return f"{float(Fraction(text)):.4g}" if re.fullmatch(r"[0-9]+/[0-9]{4,}|[0-9]{7,}", text) else text


def _question(event: dc.Event) -> str:
    try:
        return str(json.loads(event.question)["sql"])
    except (ValueError, KeyError, TypeError):
        return event.question  # another program's words


@contextmanager
def _opened(file: Path, name: str | None) -> Iterator[dc.Ledger]:
    with stopping():
        place, known = (file, name) if name else _declared(file)
        ledger = dc.open_ledger(place, name=known)
        try:
            yield ledger
        finally:
            ledger.close()


def _declared(file: Path) -> tuple[Path, str]:
    """Return where a policy keeps its ledger, and the name in it."""
    if file.is_file() and file.read_bytes()[:15] == b"SQLite format 3":
        raise dc.PolicyError(
            f"{file}: this is a ledger, not a policy. Add --name with its data set, or give the policy."
        )
    policy = Policy.load(file)
    if not isinstance(policy.ledger, Path):
        raise dc.PolicyError("ledger: PostgreSQL is not available yet. Use a file.")
    return policy.ledger, policy.data.name
