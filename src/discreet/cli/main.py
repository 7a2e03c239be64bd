"""The command line. Each command is imported only when it runs, so that --help is fast."""

import atexit
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import discreet
from discreet.cli.terminal import PlainCommand, PlainGroup

_COMMANDS = {  # module:function, and the first sentence of the help text
    "init": (
        "policy:init",
        "Draft a policy from schemas, without reading any rows; values for you to supply are marked FILL IN.",
    ),
    "check": (
        "policy:check",
        "Check a policy, explain its privacy guarantee, and list hazards.",
    ),
    "dummy": (
        "policy:dummy",
        "Write dummy data that fits a policy, with a copy of the policy for trying queries; no real data is read.",
    ),
    "advise": (
        "advise:advise",
        "Choose contribution bounds and ranges of columns privately, and print them as lines for the policy.",
    ),
    "ask": ("ask:ask", "Run a query at a privacy cost, and print the private answer with its margins of error."),
    "explain": (
        "ask:explain",
        "Show what a query would cost and how accurate its answer would be; free, and no private data is read.",
    ),
    "budget": (
        "ask:budget",
        "Show the total, spent and remaining budget, of each data set of a population and of each analyst.",
    ),
    "fit": ("fit:fit", "Fit a private model to the rows of a query, and print its parameters."),
    "anonymise": (
        "anonymise:anonymise",
        "Measure how anonymous a table is, or make it k-anonymous, and report the attacks that remain.",
    ),
    "attack": (
        "attack:attack",
        "Run an attack on personal data with no defence, with a simple fix, and with the curator.",
    ),
    "publish": (
        "publish:publish",
        "Publish the tables and synthetic rows of a plan, with their margins of error and a report.",
    ),
    "audit": ("audit:audit", "Try to refute the guarantee of a policy, on dummy data, before it is used."),
    "report": (
        "report:report",
        "Report who is protected, from what and how strongly, from policy and ledger; or verify a release.",
    ),
    "mcp": ("serve:mcp", "Let an AI agent ask over the Model Context Protocol, on standard input and output."),
    "demo": ("demo:demo", "Show a tour of about a minute on simulated data, and save it as an HTML page."),
    "analyst": ("analyst:app", "Issue and revoke tokens for a server, and approve requests."),
    "serve": ("serve:serve", "Serve analysts over HTTP and the PostgreSQL protocol, within their limits."),
    "ledger": ("ledger:app", "Show, verify and move a ledger."),
}


class _LazyCommands(Mapping[str, Any]):
    """The commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return _import_command(_COMMANDS[name][0])

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@cache
def _import_command(target: str) -> Any:
    module, _, name = target.partition(":")
    command = getattr(import_module(f"discreet.cli.{module}"), name)
    if not isinstance(command, typer.Typer):
        wrapper = typer.Typer(add_completion=False)
        wrapper.command(cls=PlainCommand)(command)
        command = wrapper
    return typer.main.get_command(command)


class _LazyGroup(PlainGroup):
    """A group that lists commands without importing them, and imports the one that runs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002 - typer's signature
        """Return a stub with the help text for the list of commands."""
        return TyperCommand(cmd_name, help=_COMMANDS[cmd_name][1]) if cmd_name in _COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command to run, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.commands[name] if command else None, rest


class _WithoutPandas:
    """A finder that makes `import pandas` fail until Spark's client, which needs pandas, is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - a finder's
        """Refuse pandas, and leave all other modules to the next finder."""
        if name == "pyspark":
            sys.meta_path.remove(self)
        if name == "pandas":
            raise ModuleNotFoundError("this command does not import pandas", name=name)


class _Program(typer.Typer):
    """The command line; ask, explain and budget start and exit faster."""

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Run a command."""
        if sys.argv[1:2] not in (["ask"], ["explain"], ["budget"]):
            return super().__call__(*args, **settings)
        # pyarrow imports pandas on the first list it converts, to check for data frames, which these commands do not
        # use; this takes half a second.
        sys.meta_path.insert(0, _WithoutPandas())
        try:
            return super().__call__(*args, **settings)
        except SystemExit as end:
            _exit_at_once(end.code)
            raise


def _exit_at_once(code: object) -> None:
    """Exit without freeing objects one by one, which would take a fifth of a query's time."""
    if code is None or isinstance(code, int):
        atexit._run_exitfuncs()  # noqa: SLF001 - there is no public function for it
        with suppress(OSError):  # the reader of a pipe has closed it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code or 0)


app = _Program(
    cls=_LazyGroup,
    help="Differentially private SQL, with exact noise and a durable budget ledger.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"discreet {discreet.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Differentially private SQL, with exact noise and a durable budget ledger."""
