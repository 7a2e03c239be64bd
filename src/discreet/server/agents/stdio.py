"""The MCP server on standard input and output, for one person on the owner's machine."""

from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.policy import Policy
from discreet.server.agents.agent_tools import AgentTools
from discreet.server.agents.mcp_server import mcp_server
from discreet.server.people.person import Person, Role
from discreet.server.service import Service


def serve_on_stdio(policy: Policy, by: str, cap: Budget | None) -> None:
    """Serve the tools to the process at the other end of standard input and output, until the input ends."""
    person = Person(by, Role.OWNER if by == OWNER else Role.ANALYST)
    with Service.open(policy) as service:
        mcp_server(AgentTools(service, cap), lambda _: person).run("stdio")
