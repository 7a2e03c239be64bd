"""Shared by all commands: --help, progress, errors, exit codes, the owner's log, options, output files and numbers."""

import io
import json
import logging
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from discreet.kernel.errors import DiscreetError, Failed, Refused
from discreet.progress import progress_bar, report_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table

    from discreet.audit.policy.result import PolicyAudit
    from discreet.kernel.loss import Budget
    from discreet.policy import Policy


class PlainCommand(TyperCommand):
    """A command whose flags have no type in --help, and whose arguments are shown as POLICY."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with the types of flags hidden and the names of arguments in capitals."""
        return _name_arguments(_hide_flag_types(super().get_params(ctx)))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; required arguments have no braces."""
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """A group of commands whose flags have no type in --help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with the types of flags hidden."""
        return _hide_flag_types(super().get_params(ctx))


def _hide_flag_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _name_arguments(params: list[Any]) -> list[Any]:
    for param in params:
        if param.param_type_name == "argument" and param.metavar is None and param.nargs == 1:
            param.metavar = param.name.upper()
    return params


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print errors and warnings on stderr; exit with the code of the error."""
    try:
        with print_warnings():
            yield
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        raise typer.Exit(_exit_code(error)) from None


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print each warning on stderr as one line."""
    with warnings.catch_warnings():
        warnings.showwarning = cast("Any", _print_warning)
        yield


def _print_warning(message: Warning | str, *_: object) -> None:
    typer.echo(f"discreet: {message}", err=True)


@contextmanager
def step_progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the step that begins, on stderr: a bar on a terminal, otherwise plain lines."""
    with progress_bar("") as show:
        is_terminal = sys.stderr.isatty()
        yield lambda step: show(name=step) if is_terminal else typer.echo(f"{step} …", err=True)


def usage_error(problem: str) -> NoReturn:
    """Print the problem on stderr and exit with code 2."""
    typer.echo(f"discreet: {problem}", err=True)
    raise typer.Exit(2)


def with_option_name(message: str, options: Mapping[str, str]) -> str:
    """Return a message that begins with the name of an argument with the option in its place.

    >>> with_option_name("epsilon: too low. Give one, such as 0.5.", {"epsilon": "--epsilon"})
    '--epsilon: too low. Give one, such as 0.5.'
    """
    name, colon, problem = message.partition(":")
    return f"{options[name]}:{problem}" if colon and name in options else message


def _exit_code(error: DiscreetError) -> int:
    if isinstance(error, Failed):
        return 4
    return 3 if isinstance(error, Refused) else 2


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_of(1, "table"), count_of(2000, "row")
    ('1 table', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_MAX_INTEGER_LENGTH = 5  # longer integers are rounded, too


def format_fraction(value: Fraction) -> str:
    """Format a number as a decimal with four significant digits; the ledger itself is exact.

    >>> format_fraction(Fraction(1, 10)), format_fraction(Fraction(3)), format_fraction(Fraction(123457, 1000000))
    ('0.1', '3', '0.1235')
    """
    return str(value) if _is_short_integer(value) else f"{float(value):.4g}"


def format_rounded_down(value: Fraction) -> str:
    """Format a remaining budget as a decimal, rounded down so that a query at this cost still fits.

    >>> format_rounded_down(Fraction(1, 2)), format_rounded_down(Fraction(87659, 100000))
    ('0.5', '0.8765')
    """
    if _is_short_integer(value):
        return str(value)
    rounded = Context(prec=4, rounding=ROUND_FLOOR).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded:g}"


def format_budget(budget: "Budget") -> str:
    """Format the epsilon and delta of a budget.

    >>> from discreet.kernel.loss import Budget
    >>> format_budget(Budget("1/2", delta="1e-9"))
    'epsilon 0.5, delta 1e-09'
    """
    return f"epsilon {format_fraction(budget.epsilon)}" + (f", delta {float(budget.delta):g}" if budget.delta else "")


def _is_short_integer(value: Fraction) -> bool:
    return value.denominator == 1 and len(str(value)) <= _MAX_INTEGER_LENGTH


PLOT_SUFFIXES = (".svg", ".png", ".pdf")
HTML_SUFFIXES = (".html", ".htm")
PolicyFile = Annotated[Path, typer.Argument(help="The policy file.")]
By = Annotated[str, typer.Option(help="The analyst to charge: a label, not a login.")]


def positive_number(text: str, option: str) -> Fraction:
    """Return a positive number, or exit."""
    from discreet.kernel.numbers import as_positive  # noqa: PLC0415 - not for `discreet --help`

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


def text_table(columns: "Iterable[Column]", rows: "Iterable[Iterable[Any]]", **style: Any) -> "Table":
    """Return a table, without lines unless the style has them; what a terminal cannot show is replaced in texts."""
    from rich.table import Table  # noqa: PLC0415 - not for `discreet --help`
    from rich.text import Text  # noqa: PLC0415

    from discreet.html_page import make_printable  # noqa: PLC0415

    table = Table(*columns, **{"box": None, "pad_edge": False, "padding": (0, 2, 0, 0), **style})
    table.show_header = any(column.header for column in table.columns)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(make_printable(cell)) for cell in row))
    return table


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


def run_policy_audit(policy: "Policy", **settings: Any) -> "PolicyAudit":
    """Audit a policy with progress on stderr, or exit and name the package that is missing."""
    with needing_extra("audits", "attacks"):
        from discreet.audit.policy.audit import audit_policy  # noqa: PLC0415 - an extra

        return audit_policy(policy, track=report_progress, **settings)


@contextmanager
def needing_extra(what: str, extra: str) -> Iterator[None]:
    """Exit and name a package that is missing, and the extra that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).startswith("discreet"):
            raise
        usage_error(f"{what} need {error.name}, which is not installed: pip install 'discreet[{extra}]'.")


LogOption = Annotated[
    Path | None,
    typer.Option(help="The owner's log of why queries failed (default: beside the ledger)."),
]
_MAX_BYTES = 1_000_000  # one older file of the same size is kept


class OwnerOnlyFileHandler(RotatingFileHandler):
    """A log file of bounded size, created on the first message and readable by its owner only."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW  # never follow a symbolic link
        descriptor = os.open(self.baseFilename, flags, 0o600)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)  # an existing file may have other permissions
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - logging's name
        """Report that logging failed, without the message itself, which may contain raw data."""
        error = sys.exc_info()[1]
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        typer.echo(f"discreet: cannot write the log {self.baseFilename} ({why}). Choose another with --log.", err=True)


class _TerminalHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print a message that is about the data set, not about a query."""
        prefix = "warning" if record.levelno == logging.WARNING else "discreet"
        typer.echo(f"{prefix}: {record.getMessage()}", err=True)


@contextmanager
def log_for_owner(policy: "Policy", log_file: Path | None) -> Iterator[None]:
    """Write the owner's log while a curator is open, and name it in the message of a failure."""
    if log_file is not None and not log_file.absolute().parent.is_dir():
        usage_error(f"--log: the folder {log_file.absolute().parent} does not exist.")
    from discreet.curator.data_stamp import owner_log_path  # noqa: PLC0415 - not for `discreet --help`

    path = (log_file or owner_log_path(policy)).absolute()
    file = OwnerOnlyFileHandler(path, maxBytes=_MAX_BYTES, backupCount=1, delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handlers = {"discreet": file, "discreet.owner": _TerminalHandler()}
    for name, handler in handlers.items():
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    except Failed as error:
        raise Failed(f"{error} See the log {path}." if path.exists() else str(error)) from None
    finally:
        for name, handler in handlers.items():
            logging.getLogger(name).removeHandler(handler)
        file.close()
