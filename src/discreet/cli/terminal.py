"""What all commands share: flags in --help, exit codes, warnings, and numbers as they are printed."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from discreet.kernel.errors import DiscreetError, Failed, Refused


class PlainCommand(TyperCommand):
    """A command with plain flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, flags without a type."""
        return _hide_flag_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands with plain flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, flags without a type."""
        return _hide_flag_types(super().get_params(ctx))


def _hide_flag_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Say on stderr what went wrong, and end with its code; warnings are said in the same way."""
    try:
        with print_warnings():
            yield
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        raise typer.Exit(_exit_code(error)) from None


@contextmanager
def print_warnings() -> Iterator[None]:
    """Say warnings on stderr, each as a sentence."""
    with warnings.catch_warnings():
        warnings.showwarning = cast("Any", _print_warning)
        yield


def _print_warning(message: Warning | str, *_: object) -> None:
    typer.echo(f"discreet: {message}", err=True)


def usage_error(problem: str) -> NoReturn:
    """Say what is wrong with the usage, and end."""
    typer.echo(f"discreet: {problem}", err=True)
    raise typer.Exit(2)


def _exit_code(error: DiscreetError) -> int:
    if isinstance(error, Failed):
        return 4
    return 3 if isinstance(error, Refused) else 2


_MAX_EXACT_LENGTH = 5  # characters of a fraction that is still read at a glance


def format_fraction(value: Fraction) -> str:
    """Write a fraction as it is if it is short, and with four digits otherwise; the ledger itself has it exactly.

    >>> format_fraction(Fraction(1, 10)), format_fraction(Fraction(3)), format_fraction(Fraction(123457, 1000000))
    ('1/10', '3', '0.1235')
    """
    return str(value) if len(str(value)) <= _MAX_EXACT_LENGTH else f"{float(value):.4g}"


def format_rounded_down(value: Fraction) -> str:
    """Write what is left or may be asked for: shortened, it is a little less, so that it can be typed and is granted.

    >>> format_rounded_down(Fraction(1, 2)), format_rounded_down(Fraction(87659, 100000))
    ('1/2', '0.8765')
    """
    if len(str(value)) <= _MAX_EXACT_LENGTH:
        return str(value)
    rounded = Context(prec=4, rounding=ROUND_FLOOR).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded:g}"
