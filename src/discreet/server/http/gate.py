"""What every request passes first: who asks, how large it may be, and how long it may take to arrive or to be read."""

import asyncio
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.kernel.errors import DiscreetError
from discreet.server.errors import AccessDenied
from discreet.server.http.problem_details import problem_response
from discreet.server.people import Person
from discreet.server.problem import Problem, problem_of
from discreet.server.service import Service

MAX_BODY = 1_000_000  # bytes
_BODY_SECONDS = 10.0  # for the whole body to arrive
_SEND_SECONDS = 30.0  # for a client to read a part of the response
_OPEN_PATHS = frozenset({"/health", "/api/v1/openapi.json"})
AGENTS_PATH = "/mcp"
_GUARDED = ("/api/", "/metrics", AGENTS_PATH)
_JSON = (b"content-type", b"application/json")
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_PRIVATE_HEADERS = (*_HEADERS, (b"cache-control", b"no-store"))


class Gate:
    """Lets requests to the API, metrics and tools of agents pass with a valid token, all within their limits."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_guarded, limited = _is_guarded(scope["path"]), _LimitedBody(receive)
        respond = _timed(send, _PRIVATE_HEADERS if is_guarded else _HEADERS)
        try:
            if is_guarded:
                scope.setdefault("state", {})["person"] = self._person_of(scope)
                scope["headers"] = _with_json_body(scope["headers"])
            limited.check_length(scope)
        except DiscreetError as error:
            await problem_response(problem_of(error))(scope, receive, respond)
        except HTTPException as error:
            await problem_response(Problem("too-large", error.detail))(scope, receive, respond)
        else:
            await self._app(scope, limited.receive, respond)

    def _person_of(self, scope: Scope) -> Person:
        address = scope["client"][0] if scope.get("client") else ""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        if kind.lower() != "bearer" or not token:
            raise AccessDenied
        return self._service.person_for_token(token.strip(), address)


def _with_json_body(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers that say what every body here is, because curl -d calls it a form."""
    return [*((name, value) for name, value in headers if name != b"content-type"), _JSON]


def _is_guarded(path: str) -> bool:
    return path.startswith(_GUARDED) and path not in _OPEN_PATHS


class _LimitedBody:
    """The body of a request, up to its largest size and its longest time."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size = receive, 0
        self._deadline = asyncio.get_running_loop().time() + _BODY_SECONDS
        self._is_complete = False

    def check_length(self, scope: Scope) -> None:
        """Reject a body that says it is too large, before it is read."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > MAX_BODY:
                raise HTTPException(413, f"a request may have {MAX_BODY:,} bytes.")

    async def receive(self) -> Message:
        """Return the next part."""
        if self._is_complete:
            return await self._receive()  # waits for the client to leave
        try:
            async with asyncio.timeout_at(self._deadline):  # wait_for would begin a task for each part
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not arrive within {_BODY_SECONDS:g} seconds.") from None
        self._size += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._size > MAX_BODY:
            raise HTTPException(413, f"a request may have {MAX_BODY:,} bytes.")
        return message


def _timed(send: Send, headers: Iterable[tuple[bytes, bytes]]) -> Send:
    """Add headers to the response, and give up on a client that does not read it."""

    async def send_in_time(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *headers]
        async with asyncio.timeout(_SEND_SECONDS):
            await send(message)

    return send_in_time
