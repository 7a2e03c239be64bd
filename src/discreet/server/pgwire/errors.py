"""Errors as PostgreSQL reports them: SQLSTATE, message, hint and position."""

import re

from discreet.kernel.errors import DiscreetError, Failed
from discreet.pricing.allocation import CostMissing
from discreet.server.errors import AccessDenied, ApprovalNeeded, NotAllowed, RateLimited
from discreet.server.pgwire.settings import UnknownSetting
from discreet.server.problem import Problem, hint_of, problem_of

_NO_COST = (
    "epsilon: the cost of the answer is missing; there is no default. State it: SET epsilon = 0.1, or SET margin = 50."
)
_BY_MESSAGE: tuple[tuple[str, str], ...] = (  # the first pattern that occurs decides
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
    (ApprovalNeeded, "42501"),
    (RateLimited, "53400"),
    (Failed, "XX000"),
)
_UNAVAILABLE = "58000"  # system_error
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

    >>> from discreet.kernel.errors import Refused
    >>> error_fields(Refused("line 1, column 8: column x does not exist. Did you mean y?"), "SELECT x")
    {'C': '42703', 'M': 'line 1, column 8: column x does not exist.', 'H': 'Did you mean y?', 'P': '8'}
    """
    problem = _problem(error)
    fields = {"C": _state(error, problem), "M": problem.message.removesuffix(problem.hint).rstrip()}
    if problem.hint:
        fields["H"] = problem.hint
    if problem.line and (place := _offset_of(problem, text)) is not None:
        fields["P"] = str(place + offset + 1)
    return fields


def _problem(error: Exception) -> Problem:
    if isinstance(error, CostMissing):
        return Problem("refused", f"{_NO_COST} {error.free}".rstrip(), hint_of(f"{_NO_COST} {error.free}".rstrip()))
    if isinstance(error, WireError):
        return Problem("refused", str(error), hint_of(str(error)))
    return problem_of(error)


def _state(error: Exception, problem: Problem) -> str:
    if isinstance(error, WireError):
        return error.state
    state = next((state for kind, state in _BY_CLASS if isinstance(error, kind)), "")
    if state or problem.kind != "refused":
        return state or _UNAVAILABLE
    return next((state for pattern, state in _BY_MESSAGE if re.search(pattern, problem.message)), "42000")


def _offset_of(problem: Problem, text: str) -> int | None:
    """Return where in the statement the place is that a refusal names."""
    lines, line = text.split("\n"), (problem.line or 1) - 1
    if not text or line >= len(lines):
        return None
    start = sum(len(each) + 1 for each in lines[:line])
    if problem.column:
        return min(start + problem.column - 1, len(text) - 1)
    clause = re.search(rf"\b{problem.clause}\b", lines[line], re.IGNORECASE) if problem.clause else None
    return start + (clause.start() if clause else len(lines[line]) - len(lines[line].lstrip()))
