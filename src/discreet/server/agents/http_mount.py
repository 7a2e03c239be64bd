"""The MCP server at /mcp: every request carries a token, which the application's gate checks, and has no session."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from fastapi import FastAPI
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from discreet.server.agents.agent_tools import AgentTools
from discreet.server.agents.mcp_server import mcp_server
from discreet.server.http.gate import AGENTS_PATH, MAX_BODY
from discreet.server.people.person import Person
from discreet.server.service import Service


def add_agents(app: FastAPI, service: Service) -> AbstractAsyncContextManager[None]:
    """Mount the MCP server on an app, and return what has to run while it serves."""
    server = mcp_server(AgentTools(service), _person_of)
    agents = server.streamable_http_app(
        streamable_http_path=AGENTS_PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_BODY,
        # A page in a browser cannot know the token, and cookies are not looked at.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.routes.append(Route(AGENTS_PATH, agents))
    return server.session_manager.run()


def _person_of(context: Context) -> Person:
    request: Any = context.request_context.request
    return cast("Person", request.state.person)
