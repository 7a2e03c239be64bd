"""The owner's log: why a query failed after it was charged. It may contain raw data, so only its owner can read it."""

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
def log_for_owner(policy: Policy, log_file: Path | None) -> Iterator[None]:
    """Write the owner's log while a curator is open, and name it in the message of a failure."""
    if log_file is not None and not log_file.absolute().parent.is_dir():
        usage_error(f"--log: the folder {log_file.absolute().parent} does not exist.")
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
