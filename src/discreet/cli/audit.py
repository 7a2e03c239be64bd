"""discreet audit: try to refute the guarantee of a policy before it is used."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from discreet.audit.policy.result import COVERAGE, PolicyAudit, parse_arguments, write_report
from discreet.cli.terminal import (
    HTML_SUFFIXES,
    check_output_path,
    exit_on_error,
    print_trimmed,
    replace_unprintable,
    run_policy_audit,
    text_table,
    usage_error,
    writing,
)
from discreet.html_page import make_printable
from discreet.policy import Policy

_MAX_NAME_WIDTH = 46  # characters of a name
_EXIT_REFUTED = 1  # the exit code


def audit(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Annotated[Path, typer.Argument(help="The policy file. Its data and its ledger are not opened.")],
    runs: Annotated[int, typer.Option(help="Runs of each query, both with and without the planted unit.")] = 2000,
    epsilon: Annotated[str, typer.Option(help="The epsilon of each query, such as 0.5.")] = "1",
    confidence: Annotated[float, typer.Option(help="Confidence level; the false-alarm rate is 1 - this.")] = 0.95,
    only: Annotated[
        list[str] | None, typer.Option(help="Only audits whose names contain this, such as SUM; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the dummy data.", min=0)] = 0,
    html: Annotated[Path | None, typer.Option(help="Where to write the report as an HTML page.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite an existing file.")] = False,
) -> None:
    """Try to refute the guarantee of a policy, on dummy data, before it is used.

    One unit is planted where it is easiest to detect: at the bounds and beyond
    them, with too many rows, in too many groups, with NULL and NaN, alone.
    Every kind of query that the policy allows is asked many times with it and
    without it, through the real curator. The table compares the claimed cost
    with a lower bound on the privacy loss that the answers prove. The ledger
    is checked as well: charged before data is read, durable after a crash,
    never overspent. An audit can refute a guarantee; it cannot prove one.

    Exit codes: 0 no claim refuted, 1 a claim is refuted, 2 wrong usage or policy.
    """
    replace_unprintable()
    check_output_path(html, "--html", endings=HTML_SUFFIXES, force=force)
    _check_arguments(runs, epsilon, confidence)
    with exit_on_error():
        declared, chosen = Policy.load(policy), tuple(only or ())
        settings = {"epsilon": epsilon, "confidence": confidence, "only": chosen, "random_state": seed}
        result = run_policy_audit(declared, runs=runs, **settings)
    _print_result(result, Console())
    if html is not None:
        with writing("--html", html):
            typer.echo(f"\nReport written to {write_report(result, html)}")
    typer.echo(f"\n{make_printable(result.verdict)}\n{COVERAGE[0]}")
    if not result.holds:
        raise typer.Exit(_EXIT_REFUTED)


def _check_arguments(runs: int, epsilon: str, confidence: float) -> None:
    try:
        parse_arguments(runs, epsilon, confidence)
    except (TypeError, ValueError) as error:
        usage_error(f"--{error}.")


def _print_result(result: PolicyAudit, console: Console) -> None:
    console.print(Text(make_printable(f"Audit of the policy {result.policy}"), "bold"))
    if result.findings:
        print_trimmed(console, Group("", _findings_table(result)))
        if result.note:
            console.print(Text(result.note, "dim"))
    print_trimmed(console, Group("", _checks_table(result)))
    if result.refused_queries:
        names = "; ".join(query.name for query in result.refused_queries)
        console.print()
        console.print(Text(make_printable(f"Refused by the policy, so not audited: {names}"), "dim"))


def _findings_table(result: PolicyAudit) -> Table:
    columns = [Column("audit", max_width=_MAX_NAME_WIDTH, overflow="fold")]
    columns += [Column(name, no_wrap=True) for name in ("claim", "lower bound", "cost used", "")]
    rows = (
        [*cells, Text(make_printable(verdict), "green" if finding.holds else "bold red")]
        for (*cells, verdict), finding in zip(result.summary_rows(), result.findings, strict=True)
    )
    return text_table(columns, rows)


def _checks_table(result: PolicyAudit) -> Table:
    columns = Column("deterministic check", overflow="fold"), Column(no_wrap=True)
    passed, failed = Text("passed", "green"), Text("FAILED", "bold red")
    rows = (
        [check.name, passed] if check.holds else [f"{check.name}: {check.coverage}", failed] for check in result.checks
    )
    return text_table(columns, rows)
