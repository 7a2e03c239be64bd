"""Errors as RFC 9457 describes them: problem details with a type, a title, a status and what else is known."""

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from discreet.kernel.errors import DiscreetError
from discreet.server.problem import Problem, problem_of

MEDIA_TYPE = "application/problem+json"
_STATUS = {
    "invalid-request": 422,  # as FastAPI documents it
    "access-denied": 401,
    "not-allowed": 403,
    "not-found": 404,
    "too-large": 413,
    "too-slow": 408,
    "rate-limited": 429,
    "approval-needed": 422,
    "refused": 422,
    "failed": 500,
    "unavailable": 503,
}
_TITLES = {
    "invalid-request": "The request is not as documented",
    "access-denied": "Access denied",
    "not-allowed": "Not allowed in this role",
    "not-found": "Not found",
    "too-large": "The request is too large",
    "too-slow": "The request took too long to arrive",
    "rate-limited": "Too many requests",
    "approval-needed": "The owner must approve this first",
    "refused": "Refused; nothing was charged",
    "failed": "Charged, but not answered",
    "unavailable": "The service is not available",
}
_MAX_PROBLEMS = 5  # of one request that are listed
_KIND_OF_STATUS = {400: "invalid-request", 404: "not-found", 408: "too-slow", 413: "too-large"}
_NO_SUCH_PATH = "there is nothing at this path. GET /api/v1/openapi.json lists the paths."


_TEXT = {"type": "string"}
_SCHEMA = {
    "type": "object",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "charged": {"type": "boolean", "description": "Whether the question was charged."},
        "hint": {**_TEXT, "description": "How the request can be corrected."},
        "line": {"type": "integer", "description": "The line of the query."},
        "column": {"type": "integer"},
        "clause": _TEXT,
        "approval": {**_TEXT, "description": "The request that the owner must approve."},
    },
    "required": ["type", "title", "status"],
}


def documented_problems() -> dict[int | str, dict[str, Any]]:
    """Return the errors of every path for OpenAPI.

    >>> documented_problems()[429]["description"]
    'Too many requests'
    """
    found: dict[int | str, dict[str, Any]] = {}
    for kind, status in _STATUS.items():
        if status not in found:
            found[status] = {"description": _TITLES[kind], "content": {MEDIA_TYPE: {"schema": _SCHEMA}}}
    found[422]["description"] = "Refused, or not as documented; nothing was charged"
    found[405] = {"description": "This path has other methods", "content": {MEDIA_TYPE: {"schema": _SCHEMA}}}
    return found


def problem_response(problem: Problem) -> Response:
    """Return a problem as problem details.

    >>> problem_response(Problem("failed", "charged.", charged=True)).status_code
    500
    """
    values: dict[str, Any] = {
        "type": f"urn:discreet:{problem.kind}",
        "title": _TITLES[problem.kind],
        "status": _STATUS[problem.kind],
        "detail": problem.message,
        "charged": problem.charged,
    }
    more = {name: getattr(problem, name) for name in ("hint", "approval", "line", "column", "clause")}
    values |= {name: value for name, value in more.items() if value}
    headers = {}
    if problem.kind == "access-denied":
        headers["WWW-Authenticate"] = 'Bearer realm="discreet"'
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(problem.retry_after)))
    text = json.dumps(values, ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), values["status"], headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Make an application answer every error with problem details."""

    async def on_discreet_error(_: Request, error: Exception) -> Response:
        return problem_response(problem_of(error))

    async def on_invalid_request(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [f"{'.'.join(map(str, each['loc']))[:100]}: {each['msg']}" for each in error.errors()[:_MAX_PROBLEMS]]
        return problem_response(Problem("invalid-request", "; ".join(found) + "."))

    async def on_http_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = _KIND_OF_STATUS.get(error.status_code)
        if kind:
            return problem_response(Problem(kind, _NO_SUCH_PATH if kind == "not-found" else error.detail))
        body = {"type": "about:blank", "title": error.detail, "status": error.status_code}
        return Response(json.dumps(body), error.status_code, error.headers, MEDIA_TYPE)

    app.add_exception_handler(DiscreetError, on_discreet_error)
    app.add_exception_handler(Exception, on_discreet_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_error)
