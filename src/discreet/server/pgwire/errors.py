"""Errors as PostgreSQL reports them: SQLSTATE, message, hint and position."""

import logging
import re

from discreet.kernel.errors import DiscreetError, Failed, Refused
from discreet.pricing.allocation import CostMissing
from discreet.server.errors import AccessDenied, NotAllowed, RateLimited
from discreet.server.pgwire.settings import UnknownSetting

_LOG = logging.getLogger("discreet")
_PLACE = re.compile(r"line (\d+)(?:, column (\d+)|, ([A-Z][A-Z ]+))?:")
_SENTENCE_END = re.compile(r"(?<=[^\d][.?]) (?=[A-Z])|(?<=\d\.) (?=[A-Z])")
_UNEXPECTED = "the server could not handle the request; the reason is in the owner's log."
_NO_COST = "epsilon: the cost of the answer is missing; there is no default. State it: SET epsilon = 0.1."
_STATES: tuple[tuple[str, str], ...] = (  # the first pattern that occurs decides
    (
        r"syntax error|unterminated|unmatched|unclosed|cannot be parsed|is empty|not a SELECT|only one statement",
        "42601",
    ),
    (r"(?:table|relation) .*does not exist", "42P01"),
    (r"column .*does not exist", "42703"),
    (r"[Nn]ot enough budget|remains", "53400"),
    (r"cannot compare|cannot convert|expected .*, not", "42804"),
    (r"not supported|not allowed|would return individual rows", "0A000"),
    (r"ambiguous", "42702"),
    (r"GROUP BY", "42803"),
)
_BY_CLASS: tuple[tuple[type[Exception], str], ...] = (
    (UnknownSetting, "42704"),
    (CostMissing, "22023"),
    (AccessDenied, "28P01"),
    (NotAllowed, "42501"),
    (RateLimited, "53400"),
    (Failed, "XX000"),
)
Fields = dict[str, str]


class WireError(DiscreetError):
    """An error that only the PostgreSQL interface has, with its SQLSTATE.

    >>> WireError("26000", "the prepared statement does not exist.").state
    '26000'
    """

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


def error_fields(error: Exception, text: str = "", offset: int = 0) -> Fields:
    """Return the fields of an error response; `text` is the statement, which begins at `offset` of what was sent.

    >>> error_fields(Refused("line 1, column 8: column x does not exist. Did you mean y?"), "SELECT x")
    {'C': '42703', 'M': 'line 1, column 8: column x does not exist.', 'H': 'Did you mean y?', 'P': '8'}
    """
    message = _message(error)
    cause, *rest = _SENTENCE_END.split(message, maxsplit=1)
    fields = {"C": _state(error, message), "M": cause}
    if rest:
        fields["H"] = rest[0]
    if text and (place := _position(message, text)) is not None:
        fields["P"] = str(place + offset + 1)
    return fields


def _message(error: Exception) -> str:
    if isinstance(error, CostMissing):
        return f"{_NO_COST} {error.free}".rstrip()
    if isinstance(error, Refused | Failed | AccessDenied | NotAllowed | RateLimited | WireError):
        return str(error)
    _LOG.error("a request over the PostgreSQL protocol failed", exc_info=error)
    return _UNEXPECTED  # whatever it was may depend on data, or be meant for the owner


def _state(error: Exception, message: str) -> str:
    if isinstance(error, WireError):
        return error.state
    state = next((state for kind, state in _BY_CLASS if isinstance(error, kind)), "")
    if state or not isinstance(error, Refused):
        return state or "XX000"
    return next((state for pattern, state in _STATES if re.search(pattern, message)), "42000")


def _position(message: str, text: str) -> int | None:
    """Return the offset in the statement of the place that a refusal names."""
    found = _PLACE.match(message)
    if found is None:
        return None
    lines = text.split("\n")
    line = int(found[1]) - 1
    if line >= len(lines):
        return None
    start = sum(len(each) + 1 for each in lines[:line])
    if found[2]:
        return min(start + int(found[2]) - 1, max(0, len(text) - 1))
    clause = re.search(rf"\b{found[3].strip()}\b", lines[line], re.IGNORECASE) if found[3] else None
    return start + (clause.start() if clause else len(lines[line]) - len(lines[line].lstrip()))
