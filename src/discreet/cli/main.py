"""The commands. What a command needs is imported when it runs: the list of commands needs none of it."""

import atexit
import gc
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
from discreet.cli.plain_flags import Command, Group

_COMMANDS = {  # where it is, and the first sentence of its help
    "init": (
        "policy:init",
        "Draft a policy from schemas, without reading a row; decisions for a human are marked FILL IN.",
    ),
    "check": (
        "policy:check",
        "Check a policy, explain what it guarantees, and list hazards; of the data, only schemas are read.",
    ),
    "dummy": (
        "policy:dummy",
        "Write dummy data that fits a policy, and a copy of the policy to try queries on; no real data is read.",
    ),
    "ask": ("ask:ask", "Run a query at a privacy cost, and print the private answer with its margins of error."),
    "explain": (
        "ask:explain",
        "Show what a query would cost and how accurate its answer would be; free, and no private data is read.",
    ),
    "budget": ("ask:budget", "Show the total, spent and remaining budget of the data set and of each analyst."),
    "fit": ("fit:fit", "Fit a private model to the rows of a query, and print its parameters."),
    "anonymise": (
        "anonymise:anonymise",
        "Measure how anonymous a table is, or make it k-anonymous, and report the attacks that remain.",
    ),
    "attack": (
        "attack:attack",
        "Run an attack on personal data with no defence, with a simple fix, and with the curator.",
    ),
    "audit": ("audit:audit", "Try to refute the guarantee of a policy, on simulated data, before it is used."),
    "demo": ("demo:demo", "Show a tour of about a minute on simulated data, and save it as an HTML page."),
    "ledger": ("ledger:app", "Show, verify and move a ledger."),
}


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return _imported(_COMMANDS[name][0])

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@cache
def _imported(where: str) -> Any:
    module, _, name = where.partition(":")
    found = getattr(import_module(f"discreet.cli.{module}"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(cls=Command)(found)
        found = alone
    return typer.main.get_command(found)


class _Group(Group):
    """Lists commands without importing them, and imports the one that runs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002 - typer's signature
        """Return what the list of commands shows of one."""
        return TyperCommand(cmd_name, help=_COMMANDS[cmd_name][1]) if cmd_name in _COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that shall run."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, self.commands[name] if known else None, rest


class _WithoutPandas:
    """Lets no `import pandas` succeed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - a finder's
        """Stop the search for pandas, and leave all others to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError("discreet does without pandas here", name=name)


class _Program(typer.Typer):
    """The command line as a program: its process ends with the command."""

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Run a command, and make the short ones shorter."""
        if sys.argv[1:2] not in (["ask"], ["explain"], ["budget"]):
            return super().__call__(*args, **settings)
        # pyarrow imports pandas at the first list that it is given, to see whether it is a frame: half a second, and
        # these commands have no frames.
        sys.meta_path.insert(0, _WithoutPandas())
        gc.disable()  # to search what was imported for garbage takes a tenth of the time, and there is little to find
        try:
            return super().__call__(*args, **settings)
        except SystemExit as end:
            _leave(end.code)
            raise


def _leave(code: object) -> None:
    """End the process without freeing object by object what it had, which takes a fifth of a question's time."""
    if code is None or isinstance(code, int):
        atexit._run_exitfuncs()  # noqa: SLF001 - nothing else runs them early
        with suppress(OSError):  # nobody reads on; the interpreter's own end says so
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code or 0)


app = _Program(
    cls=_Group,
    help="Differentially private SQL, with exact noise and a durable budget ledger.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {discreet.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Differentially private SQL, with exact noise and a durable budget ledger."""
