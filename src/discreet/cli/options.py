"""Options that several commands share, and how their values are checked."""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.terminal import usage_error
from discreet.kernel.numbers import as_positive
from discreet.policy import Policy
from discreet.progress import report_progress

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.audit.policy.result import PolicyAudit

PLOT_SUFFIXES = (".svg", ".png", ".pdf")
HTML_SUFFIXES = (".html", ".htm")
PolicyFile = Annotated[Path, typer.Argument(help="The policy file.")]
By = Annotated[str, typer.Option(help="The analyst to charge: a label, not a login.")]


def positive_number(text: str, option: str) -> Fraction:
    """Return a positive number, or exit."""
    try:
        return as_positive(text, option)
    except (TypeError, ValueError) as error:
        usage_error(f"{error}.")


def check_output_path(path: Path | None, option: str, *, endings: tuple[str, ...] = (), force: bool = True) -> None:
    """Exit, before any work, if a file cannot be written or, without `force`, would overwrite another."""
    if path is None:
        return
    if not path.absolute().parent.is_dir():
        usage_error(f"{option}: the folder {path.absolute().parent} does not exist.")
    if endings and path.suffix.lower() not in endings:
        usage_error(f"{option}: the file name must end in {', '.join(endings)}.")
    if os.path.lexists(path) and not force:
        usage_error(f"{option}: {path} already exists. Choose another path, or overwrite it with --force.")


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Exit and name the option if a file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        usage_error(f"{option}: cannot write {path} ({error.strerror or error}). Choose another path.")


def parse_assignment(text: str, option: str) -> tuple[str, Any]:
    """Parse NAME=VALUE; a value is JSON, or else plain text."""
    name, equals, value = text.partition("=")
    if not equals or not value or not name.isidentifier():
        usage_error(f"{option}: expected name=value, such as n_components=5, not {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def print_trimmed(console: "Console", content: Any, indent: int = 0) -> None:
    """Print without trailing blanks."""
    with console.capture() as printed:
        console.print(content, width=console.width - indent)
    for line in printed.get().splitlines():
        console.file.write(f"{' ' * indent}{line}".rstrip() + "\n")
    console.file.flush()  # without a locale, typer.echo writes to another stream


def replace_unprintable() -> None:
    """Let a terminal that prints ASCII only show question marks for other characters."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def run_policy_audit(policy: Policy, **settings: Any) -> "PolicyAudit":
    """Audit a policy with progress on stderr, or exit and name the package that is missing."""
    try:
        from discreet.audit.policy.audit import audit_policy  # noqa: PLC0415 - an extra

        return audit_policy(policy, track=report_progress, **settings)
    except ImportError as error:
        usage_error(f"audits need {error.name}, which is not installed: pip install 'discreet[attacks]'.")
