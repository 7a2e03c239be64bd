"""The MCP server: tools by name, on standard input and output or as an ASGI application with tokens."""

from collections.abc import Callable
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from discreet import __version__
from discreet.server.agents.agent_tools import AgentTools
from discreet.server.people.person import Person
from discreet.server.requests import QueryRequest

INSTRUCTIONS = (
    "Answers SQL queries on personal data with differential privacy. Every answer to `ask` spends part of a budget "
    "that is never renewed. So call `tables` first, then `rehearse` (dummy data, free) until the SQL works, then "
    "`explain` (free) to see cost and margin of error, and only then `ask`. Asking the same again is free. A refusal "
    "is free and has a hint: repair the query and try again. A number n is followed by n_margin, its 95 % margin of "
    "error from privacy noise. Prefer aggregates over few groups; single people cannot be looked up."
)

Sql = Annotated[str, Field(description="One SELECT with aggregates, as in PostgreSQL.")]
Epsilon = Annotated[
    float | str | None, Field(description="Privacy cost of the answer, such as 0.1. Give this or margin.")
]
Margin = Annotated[
    float | dict[str, float] | None,
    Field(description="Largest acceptable 95 % margin of error, for all noisy columns or by column; sets the cost."),
]
Key = Annotated[str | None, Field(description="Idempotency key: repeating the request with it is never charged twice.")]
Purpose = Annotated[str | None, Field(description="What the answer is for; some policies require it.")]
_FREE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_CHARGED = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def mcp_server(tools: AgentTools, person_of: Callable[[Context], Person]) -> MCPServer:
    """Return the server with the six tools; `person_of` says who is calling."""
    server = MCPServer("discreet", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    async def promise() -> dict[str, Any]:
        return tools.promise()

    async def tables(ctx: Context) -> dict[str, Any]:
        return await tools.tables(person_of(ctx))

    async def explain(ctx: Context, sql: Sql, epsilon: Epsilon = None, margin: Margin = None) -> dict[str, Any]:
        return await tools.explain(person_of(ctx), QueryRequest(sql, epsilon=epsilon, margin=margin))

    async def ask(  # noqa: PLR0913, PLR0917 - arguments of a tool are named
        ctx: Context, sql: Sql, epsilon: Epsilon = None, margin: Margin = None, key: Key = None, purpose: Purpose = None
    ) -> dict[str, Any]:
        request = QueryRequest(sql, epsilon=epsilon, margin=margin, key=key, purpose=purpose)
        return await tools.ask(person_of(ctx), request)

    async def budget(ctx: Context) -> dict[str, Any]:
        return await tools.budget(person_of(ctx))

    async def rehearse(ctx: Context, sql: Sql, epsilon: Epsilon = None, margin: Margin = None) -> dict[str, Any]:
        return await tools.rehearse(person_of(ctx), QueryRequest(sql, epsilon=epsilon, margin=margin))

    for function, description, annotations in (
        (promise, "Who is protected, from what and how strongly, and what is not covered. Free.", _FREE),
        (tables, "Tables and columns that can be queried, with types, ranges and declared values. Free.", _FREE),
        (
            explain,
            "Cost and expected margins of error of a query, without asking it. Free; reads no private data.",
            _FREE,
        ),
        (ask, "The private answer to a query. Charged, unless its answer is stored.", _CHARGED),
        (budget, "The budget: total, spent, and what remains for one more query. Free.", _FREE),
        (rehearse, "Run a query on dummy data, to see whether the SQL works. Free; the numbers mean nothing.", _FREE),
    ):
        server.add_tool(function, description=description, annotations=annotations, structured_output=True)
    return server
