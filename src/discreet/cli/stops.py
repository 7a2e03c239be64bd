"""How a command ends when it cannot go on: 2 wrong usage or policy, 3 refused, 4 failed and charged."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, cast

import typer

from discreet.kernel.errors import DiscreetError, Failed, Refused


@contextmanager
def stopping() -> Iterator[None]:
    """Say on stderr what went wrong, and end with its code; warnings are said in the same way."""
    try:
        with showing_warnings():
            yield
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        raise typer.Exit(_code(error)) from None


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Say warnings on stderr, each as a sentence."""
    with warnings.catch_warnings():
        warnings.showwarning = cast("Any", _warned)
        yield


def _warned(message: Warning | str, *_: object) -> None:
    typer.echo(f"discreet: {message}", err=True)


def wrong(problem: str) -> NoReturn:
    """Say what is wrong with the usage, and end."""
    typer.echo(f"discreet: {problem}", err=True)
    raise typer.Exit(2)


def _code(error: DiscreetError) -> int:
    if isinstance(error, Failed):
        return 4
    return 3 if isinstance(error, Refused) else 2
