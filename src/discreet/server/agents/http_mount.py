"""The MCP server as an ASGI application: every request carries a token, and has no session."""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse

from discreet.server.agents.agent_tools import AgentTools
from discreet.server.agents.mcp_server import mcp_server
from discreet.server.errors import AccessDenied, RateLimited
from discreet.server.people.person import Person
from discreet.server.service import Service

_MAX_BODY = 1_000_000  # bytes of a request
_PERSON = "discreet.person"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AgentApp:
    """The ASGI application at /mcp; its `lifespan` must be running while it serves."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._server = mcp_server(AgentTools(service), _person_of)
        self._app = self._server.streamable_http_app(
            streamable_http_path="/",
            json_response=True,
            stateless_http=True,
            max_request_body_size=_MAX_BODY,
            # A page in a browser cannot know the token, and cookies are not looked at.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run what serves the requests."""
        async with self._server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request with a valid token; any other is answered with 401 or 429."""
        request = Request(scope)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        address = request.client.host if request.client else ""
        try:
            bearer = token.strip() if scheme.lower() == "bearer" else ""
            scope[_PERSON] = self._service.person_for_token(bearer, address)
        except AccessDenied as error:
            response = JSONResponse({"error": str(error)}, 401, {"WWW-Authenticate": "Bearer"})
        except RateLimited as error:
            response = JSONResponse({"error": str(error)}, 429, {"Retry-After": str(int(error.seconds) + 1)})
        else:
            await self._app(scope, receive, send)
            return
        await response(scope, receive, send)


def _person_of(context: Context) -> Person:
    request: Any = context.request_context.request
    return cast("Person", request.scope[_PERSON])
