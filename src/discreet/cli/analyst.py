"""discreet analyst: who may ask a server, read its ledger or act for the owner, and what waits for approval."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.terminal import PlainCommand, PlainGroup, PolicyFile, exit_on_error, usage_error
from discreet.curator.ledger_location import open_or_create_ledger
from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger import Ledger
from discreet.policy import Policy
from discreet.server.approvals import Approvals
from discreet.server.people import People, Person, Role

app = typer.Typer(
    cls=PlainGroup,
    help="Issue and revoke tokens for a server, and approve requests.",
    no_args_is_help=True,
    add_completion=False,
)
_ROLES = "|".join(role.value for role in Role)
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The person's name; an analyst must be listed under budget.analysts.")
]
Identifier = Annotated[str, typer.Argument(metavar="ID", help="The identifier of the request.")]


@app.command(cls=PlainCommand)
def add(
    policy: PolicyFile,
    name: Name,
    role: Annotated[str, typer.Option(metavar=_ROLES, help="What the person may do.")] = Role.ANALYST.value,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="The last day of the token, such as 2026-12-31.")
    ] = None,
) -> None:
    """Issue a token, which is printed once and replaces an earlier one of the same name; the act is recorded."""
    if role not in [each.value for each in Role]:
        usage_error(f"--role: {role!r} is not a role. Use one of {_ROLES}.")
    last_day = _parse_day(until)
    with _opened(policy) as (declared, ledger):
        issued = People(declared).add(ledger, name, Role(role), last_day)
    typer.echo(issued.token)
    typer.echo(
        f"{_describe(issued.person)}. This token is shown once and stored nowhere: hand it over through a secure "
        "channel. It is the password for PostgreSQL, and the bearer token for HTTP.",
        err=True,
    )


@app.command("list", cls=PlainCommand)
def list_people(policy: PolicyFile) -> None:
    """List everybody with a token, with role and last day."""
    with exit_on_error():
        for person in People(Policy.load(policy)).everybody():
            typer.echo(_describe(person) + (", expired" if person.is_expired else ""))


@app.command(cls=PlainCommand)
def revoke(policy: PolicyFile, name: Name) -> None:
    """Make a person's token invalid at once; the act is recorded."""
    with _opened(policy) as (declared, ledger):
        People(declared).revoke(ledger, name)
        typer.echo(f"{name}: revoked")


@app.command(cls=PlainCommand)
def approvals(policy: PolicyFile) -> None:
    """List the questions and plans that wait for approval, with their costs."""
    with exit_on_error():
        for each in Approvals(Policy.load(policy)).waiting():
            state = "approved, not used yet" if each.is_approved else "waiting"
            purpose = f", purpose: {each.purpose}" if each.purpose else ""
            typer.echo(f"{each.id}  {each.time[:16].replace('T', ' ')}  {each.by}  {each.cost}  {state}{purpose}")
            typer.echo("\n".join(f"    {line}" for line in each.text.splitlines()))


@app.command(cls=PlainCommand)
def approve(policy: PolicyFile, identifier: Identifier) -> None:
    """Approve a question or plan, which its analyst may then ask for once; the act is recorded."""
    with _opened(policy) as (declared, ledger):
        Approvals(declared).approve(ledger, identifier)
        typer.echo(f"{identifier}: approved")


@app.command(cls=PlainCommand)
def reject(policy: PolicyFile, identifier: Identifier) -> None:
    """Reject a question or plan; the act is recorded."""
    with _opened(policy) as (declared, ledger):
        Approvals(declared).reject(ledger, identifier)
        typer.echo(f"{identifier}: rejected")


@contextmanager
def _opened(policy: Path) -> Iterator[tuple[Policy, Ledger]]:
    with exit_on_error():
        declared = Policy.load(policy)
        if declared.data.ledger == ":memory:":
            raise PolicyError('ledger: ":memory:" ends with its process, and so would its people. Name a file.')
        with open_or_create_ledger(declared) as ledger:
            yield declared, ledger


def _parse_day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        usage_error(f"--until: {text!r} is not a date. Write it as 2026-12-31.")


def _describe(person: Person) -> str:
    return f"{person.name}: {person.role.value}" + (f", until {person.until}" if person.until else "")
