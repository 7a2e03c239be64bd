"""The owner's log: why a query failed after it was charged. It may quote raw values, so only its owner can read it."""

import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.terminal import usage_error
from discreet.curator.data_stamp import owner_log_path
from discreet.kernel.errors import Failed
from discreet.policy import Policy

LogOption = Annotated[
    Path | None,
    typer.Option(help="The owner's log, which says why a query failed; beside the ledger unless you say otherwise."),
]
_MAX_BYTES = 1_000_000  # bytes; as much again is kept of what came before


class _OwnerOnlyFileHandler(RotatingFileHandler):
    """A file of bounded size that is made when something is logged, and readable by its owner only."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW  # a link may lead anywhere
        descriptor = os.open(self.baseFilename, flags, 0o600)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)  # also if it was there before
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - logging's name
        """Say that nothing could be logged; what should have been may hold raw values, and is not shown."""
        error = sys.exc_info()[1]
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        typer.echo(
            f"discreet: the log {self.baseFilename} cannot be written ({why}). Name another with --log.", err=True
        )


class _TerminalHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Show the owner what concerns the data set as a whole, and no query."""
        typer.echo(f"discreet: {record.getMessage()}", err=True)


@contextmanager
def log_for_owner(policy: Policy, log_file: Path | None) -> Iterator[None]:
    """Keep the owner's log while a curator is open; a failure names it."""
    if log_file is not None and not log_file.absolute().parent.is_dir():
        usage_error(f"--log: there is no folder {log_file.absolute().parent}.")
    path = (log_file or owner_log_path(policy)).absolute()
    file = _OwnerOnlyFileHandler(path, maxBytes=_MAX_BYTES, backupCount=1, delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handlers = {"discreet": file, "discreet.owner": _TerminalHandler()}
    for name, handler in handlers.items():
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    except Failed as error:
        raise Failed(f"{error} The log is {path}." if path.exists() else str(error)) from None
    finally:
        for name, handler in handlers.items():
            logging.getLogger(name).removeHandler(handler)
        file.close()
