"""Shared by all commands: usage and flags in --help, progress, exit codes, errors and warnings, number formats."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from discreet.kernel.errors import DiscreetError, Failed, Refused
from discreet.progress import progress_bar

if TYPE_CHECKING:
    from discreet.kernel.loss import Budget


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
