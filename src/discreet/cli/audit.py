"""discreet audit: try to refute what a policy promises, before anybody asks."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.anonymity.showing.report import clean
from discreet.audit.policy_page import write_page
from discreet.audit.policy_result import COVERS, PolicyAudit, read_numbers
from discreet.cli.files import check_place
from discreet.cli.stops import stopping, wrong
from discreet.policy import Policy

_PAGES = (".html", ".htm")
_WIDEST = 46  # characters of a name
_BROKEN = 1  # the exit code


def audit(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Annotated[Path, typer.Argument(help="The policy file. Its data and its ledger are not opened.")],
    runs: Annotated[int, typer.Option(help="Runs of each query with the planted unit, and without it.")] = 2000,
    epsilon: Annotated[str, typer.Option(help="The epsilon of each query, such as 1/2.")] = "1",
    confidence: Annotated[float, typer.Option(help="Confidence level; the false-alarm rate is 1 - this.")] = 0.95,
    only: Annotated[
        list[str] | None, typer.Option(help="Keep the audits whose names contain this, such as SUM; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other data.", min=0)] = 0,
    html: Annotated[Path | None, typer.Option(help="Where to write the report as a page.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite what is there.")] = False,
) -> None:
    """Try to refute the guarantee of a policy, on simulated data, before it is used.

    A unit is planted where it shows most: at the bounds and beyond them, with
    too many rows, in too many groups, with NULL and NaN, alone. Every kind of
    question that the policy allows is asked many times with it and without it,
    through the real curator; the table shows what the answers prove to be
    lost, beside what is claimed. The account is checked as well: paid before
    read, kept after a crash, never overspent. An audit can refute, it cannot
    prove.

    Exit codes: 0 nothing was found, 1 a claim is broken, 2 wrong usage or policy.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII only gets question marks, not an end
    check_place(html, "--html", force, endings=_PAGES)
    _check_numbers(runs, epsilon, confidence)
    with stopping():
        found = _audited(Policy.load(policy), runs, epsilon, confidence, tuple(only or ()), seed)
    _show(found, Console())
    if html is not None:
        typer.echo(f"\n{write_page(found, html)}: the report as a page")
    typer.echo(f"\n{clean(found.verdict)}\n{COVERS[0]}")
    if not found.holds:
        raise typer.Exit(_BROKEN)


def _check_numbers(runs: int, epsilon: str, confidence: float) -> None:
    try:
        read_numbers(runs, epsilon, confidence)
    except (TypeError, ValueError) as error:
        wrong(f"--{error}.")


def _audited(  # noqa: PLR0913, PLR0917 - as the command
    policy: Policy, runs: int, epsilon: str, confidence: float, only: tuple[str, ...], seed: int
) -> PolicyAudit:
    try:
        from discreet.attacks.progress import report  # noqa: PLC0415 - with it come extras
        from discreet.audit.policy_audit import audit_policy  # noqa: PLC0415

        return audit_policy(
            policy, runs=runs, epsilon=epsilon, confidence=confidence, only=only, random_state=seed, track=report
        )
    except ImportError as error:
        wrong(f"audits need scipy, which is not installed ({error.name}): pip install 'discreet[attacks]'.")


def _show(found: PolicyAudit, console: Console) -> None:
    console.print(Text(clean(f"Audit of the policy {found.policy}"), "bold"))
    if found.findings:
        _print(_measured(found), console)
        if found.note:
            console.print(Text(found.note, "dim"))
    _print(_checked(found), console)
    if found.unasked:
        names = "; ".join(each.name for each in found.unasked)
        console.print()
        console.print(Text(clean(f"Not allowed by the policy, so not audited: {names}"), "dim"))
    console.file.flush()


def _measured(found: PolicyAudit) -> Table:
    shown = _table("audit", "claim", "lower bound", "price used", "")
    for line, each in zip(found.lines(), found.findings, strict=True):
        *cells, verdict = map(clean, line)
        shown.add_row(*map(Text, cells), Text(verdict, "green" if each.holds else "bold red"))
    return shown


def _checked(found: PolicyAudit) -> Table:
    shown = _table("checked without statistics", "")
    for check in found.checks:
        name = check.name if check.holds else f"{check.name}: {check.seen}"
        shown.add_row(Text(clean(name)), Text("yes", "green") if check.holds else Text("BROKEN", "bold red"))
    return shown


def _table(first: str, *others: str) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column(first, max_width=None if len(others) == 1 else _WIDEST, overflow="fold")
    for name in others:
        shown.add_column(name, no_wrap=True)
    return shown


def _print(table: Table, console: Console) -> None:
    """Print a table without the blanks that pad its lines."""
    with console.capture() as printed:
        console.print(table)
    for line in ["", *printed.get().splitlines()]:
        console.file.write(f"{line.rstrip()}\n")
