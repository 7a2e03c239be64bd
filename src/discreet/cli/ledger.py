"""discreet ledger: show, verify and move a ledger."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

import discreet as dc
from discreet.cli.terminal import PlainCommand, PlainGroup, count_of, exit_on_error, format_budget, format_fraction
from discreet.curator.ledger_location import (
    LedgerLocation,
    address_without_user,
    checkpoint_path,
    move_ledger_to,
    open_ledger_at,
    open_policy_ledger,
    parse_location_option,
    policy_line,
)
from discreet.curator.ledger_terms import set_budget_of_policy
from discreet.kernel.ledger import Ledger
from discreet.ledger_admin.verify import verify_ledger
from discreet.policy import Policy
from discreet.progress import progress_bar
from discreet.publish.ledger_history import read_history

app = typer.Typer(cls=PlainGroup, help="Show, verify and move a ledger.", no_args_is_help=True, add_completion=False)

_INDENT = 4
LedgerArgument = Annotated[
    str,
    typer.Argument(
        metavar="POLICY", help="The policy file; or, with --name, the file or postgresql:// URL of a ledger."
    ),
]
NameOption = Annotated[str | None, typer.Option(help="The name of the data set or population of the ledger.")]


@app.command(cls=PlainCommand)
def verify(where: LedgerArgument, name: NameOption = None) -> None:
    """Verify every hash, total, state and stored answer."""
    with _open_site(where, name) as (ledger, _):
        verify_ledger(ledger)
        typer.echo(
            f"{where}: {count_of(len(ledger.events()), 'charge')}; all hashes, totals, states and answers verified"
        )


@app.command(cls=PlainCommand)
def acknowledge(where: LedgerArgument, name: NameOption = None) -> None:
    """Allow queries again after failures or a rollback; the owner's decision is recorded."""
    with _open_site(where, name) as (ledger, _):
        ledger.acknowledge()
        typer.echo(f"{where}: acknowledged")


@app.command("set-budget", cls=PlainCommand)
def set_budget(policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy file.")]) -> None:
    """Apply the budget section of a policy to its ledger, also for a whole population; the change is recorded."""
    with exit_on_error(), open_policy_ledger(declared := Policy.load(policy)) as ledger:
        changes = set_budget_of_policy(ledger, declared)
        typer.echo(f"{policy}: {'; '.join(changes)}. Recorded." if changes else f"{policy}: nothing differs")


@app.command(cls=PlainCommand)
def move(
    where: LedgerArgument,
    to: Annotated[str, typer.Option(help="A file that does not exist, or postgresql://host/database.")],
    name: NameOption = None,
) -> None:
    """Move a ledger with all of its entries; run it again if it was interrupted."""
    with exit_on_error():
        target = parse_location_option(to, "--to")
    with _open_site(where, name) as (ledger, site), progress_bar("Moving the ledger") as report_progress:
        is_new_move = move_ledger_to(
            ledger, target, name=site.name, checkpoint=site.checkpoint, progress=report_progress
        )
        count = count_of(len(ledger.events()), "charge")
    outcome = "moved to" if is_new_move else "had already been moved, unchanged, to"
    typer.echo(
        f"{where}: {count} {outcome} {address_without_user(target)}. Set in the policy:\n"
        f"{policy_line(target, site.policy_folder)}"
    )


@app.command(cls=PlainCommand)
def show(
    where: LedgerArgument,
    name: NameOption = None,
    long: Annotated[bool, typer.Option("--long", metavar="", help="Also show the mechanism of each charge.")] = False,
) -> None:
    """List the charges with time, analyst, cost and query, the owner's other acts, and the total spent."""
    with _open_site(where, name) as (ledger, _):
        console = Console(highlight=False)
        events = ledger.events()
        for event, line in zip(events, _charge_lines(events), strict=True):
            console.print(Text(line, "bold"))
            _print_indented(console, _query_text(event))
            if long:
                _print_indented(console, _describe_mechanism(event))
        for act in read_history(ledger).recorded_acts:
            console.print(Text(f"{_format_time(act.time)}  {act}"))
        typer.echo(f"spent {_format_cost(ledger.spent())} of {format_budget(ledger.terms.budget)}")
        if (to := ledger.moved_to) is not None:
            typer.echo(f"moved to {to}")


def _charge_lines(events: Sequence[dc.Event]) -> list[str]:
    """Format time, analyst, state and cost of each charge in aligned columns."""
    in_population = any(event.dataset for event in events)
    rows = [
        (
            _format_time(event.time),
            event.by,
            *([event.dataset or "(lost)"] * in_population),
            str(event.state),
            _format_cost(event.loss),
        )
        for event in events
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _print_indented(console: Console, text: str) -> None:
    """Print a text indented and wrapped."""
    for line in Text(text).wrap(console, max(console.width - _INDENT, 20)):
        console.print(" " * _INDENT + line.plain.rstrip(), markup=False, soft_wrap=True)


def _format_time(time: str) -> str:
    return time[:16].replace("T", " ")


def _format_cost(loss: dc.Loss | None) -> str:
    if loss is None:
        return ""
    cost = f"rho {format_fraction(loss.rho)}" if loss.epsilon is None else f"epsilon {format_fraction(loss.epsilon)}"
    return cost + (f", delta {float(loss.delta):.3g}" if loss.delta else "")


def _describe_mechanism(event: dc.Event) -> str:
    data = json.loads(event.mechanism)
    if data.get("name") == "several":
        return ", ".join(_describe_noise(part) for part in data["parts"])
    return _describe_noise(data)


def _describe_noise(data: dict[str, Any]) -> str:
    if data.get("name") == "refined":
        return f"laplace {_shorten_fraction(data['before'])} → {_shorten_fraction(data['scale'])}"
    if data.get("name") == "partition selection":
        rounds = [_describe_noise(json.loads(json.loads(each)["noise"])) for each in data["rounds"]]
        return f"partition selection on {', then '.join(rounds)}"
    return " ".join([str(data.pop("name", "")), *map(_shorten_fraction, data.values())]).strip()


def _shorten_fraction(value: Any) -> str:
    """Round a long fraction for display; the ledger itself is exact."""
    text = str(value)
    return f"{float(Fraction(text)):.4g}" if re.fullmatch(r"[0-9]+/[0-9]{4,}|[0-9]{7,}", text) else text


def _query_text(event: dc.Event) -> str:
    try:
        record = json.loads(event.question)
        purpose = f"{str(record['purpose']).capitalize()} for: " if "purpose" in record else ""
        stated = f" (purpose: {record['stated_purpose']})" if "stated_purpose" in record else ""
        return f"{purpose}{record['sql']}{stated}"
    except (ValueError, KeyError, TypeError):
        return event.question  # not written by `ask`


@dataclass(frozen=True)
class _LedgerSite:
    """A ledger's location, its data set and, if given by a policy, the checkpoint file and the policy's folder."""

    location: LedgerLocation
    name: str
    checkpoint: Path | None = None
    policy_folder: Path | None = None
    dataset: str = ""


@contextmanager
def _open_site(where: str, name: str | None) -> Iterator[tuple[Ledger, _LedgerSite]]:
    with exit_on_error():
        site = _LedgerSite(parse_location_option(where, "POLICY"), name) if name else _site_of_policy(where)
        with open_ledger_at(site.location, name=site.name, dataset=site.dataset, checkpoint=site.checkpoint) as ledger:
            yield ledger, site


def _site_of_policy(where: str) -> _LedgerSite:
    """Return the ledger of a policy."""
    file = parse_location_option(where, "POLICY")
    if isinstance(file, str) or _is_sqlite_file(file):
        raise dc.PolicyError(
            f"{where}: this is a ledger, not a policy. Add --name with the data set's name, or give the policy."
        )
    return _site_of(Policy.load(file))


def _site_of(policy: Policy) -> _LedgerSite:
    return _LedgerSite(policy.ledger_location, policy.account, checkpoint_path(policy), policy.base, policy.dataset)


def _is_sqlite_file(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(15) == b"SQLite format 3"
