"""Options that several commands share, and how their values are checked."""

import io
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.terminal import usage_error
from discreet.kernel.numbers import as_positive
from discreet.policy import Policy
from discreet.progress import report_progress

if TYPE_CHECKING:
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


def check_output_paths(out: Path | None, plot: Path | None) -> None:
    """Exit before anything is charged if a file or a plot cannot be written."""
    for option, path in (("--out", out), ("--plot", plot)):
        if path is not None and not path.absolute().parent.is_dir():
            usage_error(f"{option}: the folder {path.absolute().parent} does not exist.")
    if plot is not None and plot.suffix not in PLOT_SUFFIXES:
        usage_error(f"--plot: the file name must end in {', '.join(PLOT_SUFFIXES)}.")


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
