"""Errors as analysts may see them, whatever the interface: kind, message, hint and position; nothing of the data."""

import logging
import re
from dataclasses import dataclass

from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.server.errors import AccessDenied, ApprovalNeeded, NotAllowed, RateLimited

_LOG = logging.getLogger("discreet")
_KINDS: dict[type[Exception], str] = {AccessDenied: "access-denied", NotAllowed: "not-allowed", Failed: "failed"}
_POSITION = re.compile(r"line (\d+)(?:, column (\d+))?(?:, ([A-Z][A-Z ]*))?\b")
_UNAVAILABLE = (
    "the service cannot record or read at the moment; the reason is in the owner's log. If a question was being asked, "
    "it may have been charged. Ask again later with the same key."
)


@dataclass(frozen=True)
class Problem:
    """An error: its kind, a message of one or two sentences, and where in the query it is, if that is known.

    >>> problem = problem_of(Refused("line 2, WHERE: cannot compare text with integer. Cast one of them."))
    >>> problem.kind, problem.line, problem.clause, problem.hint
    ('refused', 2, 'WHERE', 'Cast one of them.')
    """

    kind: str
    message: str
    hint: str = ""
    line: int | None = None
    column: int | None = None
    clause: str | None = None
    charged: bool = False
    approval: str | None = None
    retry_after: float | None = None


def problem_of(error: Exception) -> Problem:
    """Return an error as analysts may see it; one that they may not see is logged for the owner."""
    text = str(error)
    match error:
        case RateLimited():
            return Problem("rate-limited", text, retry_after=error.seconds)
        case ApprovalNeeded():
            return Problem("approval-needed", text, hint_of(text), approval=error.approval)
        case Refused() | PolicyError():
            return _refusal(text)
        case AccessDenied() | NotAllowed() | Failed():
            return Problem(_KINDS[type(error)], text, charged=isinstance(error, Failed))
    _LOG.error("a request could not be handled", exc_info=error)
    return Problem("unavailable", _UNAVAILABLE)


def _refusal(text: str) -> Problem:
    found = _POSITION.match(text)
    line, column, clause = found.groups() if found else (None, None, None)
    return Problem(
        "refused",
        text,
        hint_of(text),
        line=int(line) if line else None,
        column=int(column) if column else None,
        clause=clause,
    )


def hint_of(text: str) -> str:
    """Return what follows the first sentence: how the request can be corrected."""
    return text.partition(". ")[2].strip()
