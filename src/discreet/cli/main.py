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
from typer.core import TyperCommand, TyperGroup

import discreet

_COMMANDS = {  # where it is, and the first sentence of its help
    "init": (
        "policy:init",
        "Draft a policy from schemas alone, without reading a row; what a human must decide says FILL IN.",
    ),
    "check": (
        "policy:check",
        (
            "Read a policy, say in plain sentences what it promises, and point out hazards; "
            "of data, only schemas are read."
        ),
    ),
    "dummy": (
        "policy:dummy",
        "Make up data that fit a policy, with a copy of it to try questions on; the real data are never read.",
    ),
    "ask": ("ask:ask", "Ask a question, pay for it, and print the private answer with its margins."),
    "explain": (
        "ask:explain",
        "Say what a question would cost and how exact its answer would be: free, and without a look at private data.",
    ),
    "budget": (
        "ask:budget",
        "Show what may be learned in all, what was, and what is left: for the data set and each analyst.",
    ),
    "fit": ("fit:fit", "Learn a private model from the rows of a query, pay for it, and print what was learned."),
    "anonymise": (
        "anonymise:anonymise",
        "Measure how anonymous a table is, or make it k-anonymous; and say what that does not protect against.",
    ),
    "attack": (
        "attack:attack",
        "Attack people's data as an outsider would: without a defence, with the easy fix, and with the curator.",
    ),
    "audit": ("audit:audit", "Try to refute what a policy promises, on made-up data, before anybody asks."),
    "demo": ("demo:demo", "Take a tour of a minute on data that is made up on the spot; it is saved as a page, too."),
    "ledger": ("ledger:app", "Look at a ledger, check it, and move it."),
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
        alone.command()(found)
        found = alone
    return typer.main.get_command(found)


class _Group(TyperGroup):
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
    help="Differential privacy with exact noise and a ledger that nothing can overspend.",
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
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Differential privacy with exact noise and a ledger that nothing can overspend."""
