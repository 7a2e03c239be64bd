"""discreet ledger: look at a ledger, check it, and move it."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

import discreet as dc
from discreet.cli.numbers import number
from discreet.cli.plain_flags import Command, Group
from discreet.cli.stops import stopping
from discreet.kernel.ledger.account import Account
from discreet.places import Place, address, head_beside, ledger_at, line_for, move_to, read_place
from discreet.policy import Policy

app = typer.Typer(cls=Group, help="Show, verify and move a ledger.", no_args_is_help=True, add_completion=False)

_INDENT = 4
Where = Annotated[
    str, typer.Argument(metavar="POLICY", help="The policy; or, with --name, a ledger's own file or postgresql:// URL.")
]
Name = Annotated[str | None, typer.Option(help="The name of the data set in the ledger.")]


@app.command(cls=Command)
def verify(where: Where, name: Name = None) -> None:
    """Verify every hash, total, state and stored answer."""
    with _opened(where, name) as (ledger, _):
        ledger.verify()
        typer.echo(f"{where}: {len(ledger.events())} charges, every hash, total and answer as recorded")


@app.command(cls=Command)
def acknowledge(where: Where, name: Name = None) -> None:
    """Allow queries again after failures or a rollback; the owner's decision is recorded."""
    with _opened(where, name) as (ledger, _):
        ledger.acknowledge()
        typer.echo(f"{where}: acknowledged")


@app.command(cls=Command)
def move(
    where: Where,
    to: Annotated[str, typer.Option(help="A file that does not exist, or postgresql://host/database.")],
    name: Name = None,
) -> None:
    """Move a ledger with all of its entries; run it again if it was interrupted."""
    with stopping():
        place = read_place(to, "--to")
    with _opened(where, name) as (ledger, site), _bar() as tell:
        moved = move_to(ledger, place, name=site.name, head=site.head, tell=tell)
        count = len(ledger.events())
    went = f"moved to {address(place)}" if moved else f"had moved to {address(place)} before, and both agree"
    typer.echo(f"{where}: {count} charges {went}. The policy must say:\n{line_for(place, site.base)}")


@app.command(cls=Command)
def show(
    where: Where,
    name: Name = None,
    long: Annotated[bool, typer.Option("--long", metavar="", help="Also show the mechanism of each charge.")] = False,
) -> None:
    """List the charges with time, analyst, cost and query, and the total spent."""
    with _opened(where, name) as (ledger, _):
        console = Console(highlight=False)
        events = ledger.events()
        for event, line in zip(events, _aligned(events), strict=True):
            console.print(Text(line, "bold"))
            _below(console, _question(event))
            if long:
                _below(console, _mechanism(event))
        typer.echo(f"spent {_cost(ledger.spent())} of {ledger.budget}")
        if (to := ledger.moved) is not None:
            typer.echo(f"moved to {to}")


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


@dataclass(frozen=True)
class _Site:
    """A ledger's place, the data set in it, and, if a policy says so, where its head and the policy lie."""

    place: Place
    name: str
    head: Path | None = None
    base: Path | None = None


@contextmanager
def _opened(where: str, name: str | None) -> Iterator[tuple[Account, _Site]]:
    with stopping():
        site = _Site(read_place(where, "POLICY"), name) if name else _declared(where)
        with ledger_at(site.place, name=site.name, head=site.head) as ledger:
            yield ledger, site


def _declared(where: str) -> _Site:
    """Return where a policy keeps its ledger, and the name in it."""
    file = read_place(where, "POLICY")
    if isinstance(file, str) or _is_database(file):
        raise dc.PolicyError(
            f"{where}: this is a ledger, not a policy. Add --name with its data set, or give the policy."
        )
    policy = Policy.load(file)
    return _Site(policy.ledger, policy.data.name, head_beside(policy), policy.base)


def _is_database(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(15) == b"SQLite format 3"


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far a move has come."""
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task("Moving the ledger", total=None)
        yield lambda done, rows: shown.update(task, completed=done, total=rows)
