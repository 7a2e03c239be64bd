"""discreet publish: publish the tables and synthetic rows of a plan."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.terminal import (
    LogOption,
    PolicyFile,
    count_of,
    exit_on_error,
    format_rounded_down,
    log_for_owner,
    step_progress,
    usage_error,
)
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.kernel.event import OWNER
from discreet.policy import Policy
from discreet.policy.toml import read_policy_text
from discreet.pricing.remaining_budget import cost_in_budget, remaining_text
from discreet.publish.dry_run import forecast
from discreet.publish.plan import PublicationPlan
from discreet.publish.publication import Release
from discreet.publish.publication import publish as publish_plan

_EXIT_MISSING = 4
_REPORT_NOTE = (
    "report.html lists all charged queries, with constants and who asked: read it before you pass the folder on."
)


def publish(  # noqa: PLR0913, PLR0917 - options of a command
    policy: PolicyFile,
    plan: Annotated[
        Path, typer.Argument(help="The plan: a TOML file with sections release, tables.NAME and synthetic.NAME.")
    ],
    out: Annotated[Path | None, typer.Option(help="The folder to publish in.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show costs, margins and cells only; free.")
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="Another name for this publication: the same plan and key are charged once.")
    ] = None,
    log: LogOption = None,
) -> None:
    """Publish the tables and synthetic rows of a plan, with their margins of error and a report.

    The whole plan is charged at once, before any data is read. Publishing the
    same plan again is free: results are read back from the ledger. A part that
    was charged but lost in a crash stays charged, is missing, and is reported so.

    The report lists every query that the ledger was charged for, with its
    constants (WHERE name = 'Bob') and who asked: read it before you pass the
    folder on.

    Exit codes: 0 published, 2 wrong usage, policy or plan, 3 refused,
    4 charged, but a part is missing.
    """
    if out is None and not dry_run:
        usage_error("--out is missing. Give the folder to publish in, or --dry-run.")
    with exit_on_error():
        loaded, text = PublicationPlan.load(plan), read_policy_text(policy)
        declared = Policy.load(policy)
        with log_for_owner(declared, log), open_curator(declared) as curator:
            if dry_run:
                expected = forecast(curator, loaded)
                for line in expected.lines():
                    typer.echo(line)
                limits = curator.releases.limits(OWNER)
                if not all(limit.covers(expected.cost) for limit in limits):
                    typer.echo(f"\nNot enough budget is left for this plan. {remaining_text(limits)}")
                return
            assert out is not None
            with step_progress() as progress:
                release = publish_plan(curator, loaded, out, key=key, policy_text=text, progress=progress)
            _print_summary(release, curator)
    if release.missing:
        raise typer.Exit(_EXIT_MISSING)


def _print_summary(release: Release, curator: Curator) -> None:
    tables, rows = len(release.tables), len(release.synthetic)
    counts = [count_of(tables, "table")] if tables else []
    counts += [f"{count_of(rows, 'set')} of synthetic rows"] if rows else []
    typer.echo(f"{release.folder}: {' and '.join(counts) or 'nothing'} published, with report.html.")
    remaining = f"epsilon {format_rounded_down(curator.budget().remaining.epsilon)} remains."
    if release.paid.rho:
        typer.echo(f"Cost: {cost_in_budget(release.paid, curator.policy.budget)}; {remaining}")
    else:
        typer.echo(f"Nothing was charged, because this plan was published before; {remaining}")
    for note in release.notes:
        typer.echo(note)
    typer.echo(_REPORT_NOTE)
    for name in release.missing:
        typer.echo(f"{name}: charged, but its result is missing; it is never drawn again for this plan.", err=True)
