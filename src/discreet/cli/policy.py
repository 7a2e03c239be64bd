"""discreet check: what a policy promises, and what to think about again."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from discreet.kernel.errors import PolicyError
from discreet.policy import Policy, explain, hazards


def check(policy: Annotated[Path, typer.Argument(help="The policy file.")]) -> None:
    """Read a policy, say in plain sentences what it promises, and point out hazards."""
    try:
        found = Policy.load(policy)
    except PolicyError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    console = Console(highlight=False)
    for sentence in explain(found):
        console.print(f"• {sentence}", markup=False)
    listed = hazards(found)
    if not listed:
        console.print("\nNo hazards seen.")
    for hazard in listed:
        where = ", ".join(part for part in (hazard.table, hazard.column) if part) or "the policy"
        said = f" {where}: {hazard.message} {hazard.fix}"
        console.print()
        console.print(Text.assemble((hazard.id, "yellow"), said))
