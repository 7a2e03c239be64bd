"""An agent with the MCP tools alone: in this process, over standard input and output, and over HTTP."""

import asyncio
import json
import re
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("mcp")

import httpx
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from discreet.kernel.loss import Budget
from discreet.policy import Policy
from discreet.server.agents.agent_tools import AgentTools
from discreet.server.agents.mcp_server import mcp_server
from discreet.server.http.app import create_app
from discreet.server.people import Role
from discreet.server.people.person import Person
from discreet.server.requests import QueryRequest
from discreet.server.service import Service

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
POLICY = """
[data]
name = "clinic"
protects = "patient"
ledger = "ledger.sqlite"
[server]
tick = 0
[budget]
epsilon = 10
[budget.analysts]
agent = { epsilon = 4 }
[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = 3
rows = 5
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B", "C"] }
cost = { type = "integer", between = [0, 100] }
"""
AGENT = Person("agent", Role.ANALYST)


def visits():
    rng = np.random.default_rng(7)
    wards = rng.choice(["A", "B", "C"], 20_000, p=[0.5, 0.3, 0.2])
    return pa.table({"patient": rng.integers(0, 8_000, 20_000), "ward": wards, "cost": rng.integers(0, 100, 20_000)})


VISITS = visits()


@pytest.fixture
def clinic(tmp_path):
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "policy.toml"


@pytest.fixture
def service(clinic):
    with Service.open(Policy.load(clinic)) as opened:
        yield opened


def play(service, script, cap=None, person=AGENT):
    """Run a coroutine function that gets a function to call tools with."""

    async def run():
        async with Client(mcp_server(AgentTools(service, cap), lambda _: person)) as client:
            return await script(caller(client))

    return asyncio.run(run())


def caller(client):
    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    return call


def once(service, tool, cap=None, **arguments):
    async def script(call):
        return await call(tool, **arguments)

    return play(service, script, cap)


def repaired(arguments, refusal):
    """What an agent makes of a hint: the suggested word for the one in quotes or capitals, or the suggested cost."""
    if suggestion := re.search(r"Did you mean '?(\w+)'?\?", refusal["hint"]):
        wrong = re.search(r"[\"'](\w+)[\"']|function (\w+)", refusal["problem"])
        return arguments | {"sql": arguments["sql"].replace(wrong[1] or wrong[2], suggestion[1])}
    cost = re.search(r"such as ([0-9.]+[0-9])", refusal["hint"])
    return arguments | {"epsilon": float(cost[1])}


QUESTIONS = [  # each with the true answer, and the largest error that noise at epsilon 0.3 has with 1 - 1e-9
    ({"sql": BY_WARD, "epsilon": 0.3}, [10_000, 6_000, 4_000], 2_500),
    ({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.3}, [20_000], 2_500),
    ({"sql": "SELECT COUNT(DISTINCT patient) AS n FROM visits", "epsilon": 0.3}, [7_350], 200),
    ({"sql": "SELECT AVG(cost) AS m FROM visits", "epsilon": 0.3}, [49.5], 15),
    ({"sql": "SELECT MEDAIN(cost) AS m FROM visits", "epsilon": 0.3}, [49.5], 15),
    ({"sql": "SELECT SUM(cost) AS s FROM visits WHERE wrad = 'A'", "epsilon": 0.3}, [495_000], 250_000),
    ({"sql": "SELECT COUNT(*) AS n FROM visits WHERE ward = 'c'", "epsilon": 0.3}, [4_000], 2_500),
    ({"sql": "SELECT COUNT(*) AS n FROM visits WHERE cost >= 50"}, [10_000], 5_000),
    ({"sql": "SELECT COUNT(*) AS n FROM visits WHERE cost < 50", "margin": 400}, [10_000], 5_000),
    ({"sql": BY_WARD, "epsilon": 0.3}, [10_000, 6_000, 4_000], 2_500),  # again: free
]


@pytest.mark.long
def test_an_agent_answers_ten_questions_within_its_budget_and_repairs_what_is_refused(service):
    refused = []

    async def script(call):
        answers = []
        assert [table["table"] for table in (await call("tables"))["tables"]] == ["visits"]
        for asked, *_ in QUESTIONS:
            arguments, result = asked, await call("ask", **asked)
            while result["status"] == "refused":
                refused.append(result["problem"])
                arguments = repaired(arguments, result)
                result = await call("ask", **arguments)
            answers.append(result)
        return answers, await call("budget")

    answers, budget = play(service, script)
    assert len(refused) == 4
    for answer, (_, truth, error) in zip(answers, QUESTIONS, strict=True):
        numbers = [
            row[answer["columns"].index(next(n for n in "nms" if n in answer["columns"]))] for row in answer["rows"]
        ]
        assert numbers == pytest.approx(truth, abs=error)
    assert answers[-1]["charged"]["epsilon"] == 0
    assert budget["spent_epsilon"] == pytest.approx(float(service.ledger.spent("agent").epsilon))
    assert 0 < budget["spent_epsilon"] <= budget["epsilon"] == 4


def test_an_agent_in_a_loop_cannot_exceed_its_cap(service):
    async def script(call):
        results = [
            await call("ask", sql=f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}", epsilon=0.3)
            for number in range(1, 12)
        ]
        return results, await call("budget")

    results, budget = play(service, script, cap=Budget(1))
    assert [result["status"] for result in results] == ["answered"] * 3 + ["refused"] * 8
    assert "cap of epsilon 1" in results[-1]["problem"]
    assert budget["spent_under_cap"]["epsilon"] == pytest.approx(0.9)
    assert float(service.ledger.spent("agent").epsilon) == pytest.approx(0.9)


def test_a_request_that_is_cancelled_counts_under_the_cap(service):
    """A query that has begun is charged although nobody waits for it any more, and then its answer is stored."""
    began, go_on = threading.Event(), threading.Event()
    engine = service.curator._engine._private
    totals = engine.totals

    def slow(question):
        began.set()
        go_on.wait()
        return totals(question)

    async def run():
        tools, cost = AgentTools(service, Budget(1)), {"epsilon": "0.6"}
        asked = asyncio.create_task(tools.ask(AGENT, QueryRequest(BY_WARD, **cost)))
        await asyncio.to_thread(began.wait)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        go_on.set()
        other = QueryRequest("SELECT COUNT(DISTINCT patient) AS n FROM visits", **cost)
        return await tools.ask(AGENT, other)

    engine.totals = slow
    try:
        assert asyncio.run(run())["status"] == "refused"
    finally:
        go_on.set()


def test_questions_at_the_same_moment_cannot_exceed_the_cap_together(service):
    async def script(call):
        asked = [
            call("ask", sql=f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}", epsilon=0.4)
            for number in range(1, 6)
        ]
        return await asyncio.gather(*asked)

    results = play(service, script, cap=Budget(1))
    assert sorted(result["status"] for result in results) == ["answered"] * 2 + ["refused"] * 3


def test_without_a_cap_the_ledger_limits_an_agent(service):
    async def script(call):
        return [
            await call("ask", sql=f"SELECT SUM(cost + {number}) AS s FROM visits", epsilon=1.5) for number in range(4)
        ]

    results = play(service, script)
    assert [result["status"] for result in results] == ["answered"] * 2 + ["refused"] * 2
    assert "not enough budget" in results[-1]["message"]


def test_a_rehearsal_is_marked_and_leaves_no_trace(service):
    result = once(service, "rehearse", sql=BY_WARD)
    assert (result["data"], result["charged"]["epsilon"], result["receipt"]) == ("dummy", 0, None)
    assert "dummy data" in result["notes"][0]
    assert once(service, "rehearse", sql="SELECT nothing FROM visits")["status"] == "refused"
    assert service.ledger.events() == []


def test_explaining_shows_margins_but_no_engine_sql(service):
    result = once(service, "explain", sql=BY_WARD, epsilon=0.5)
    assert result["columns"][0]["margin"] > 0
    assert "sql" not in result
    assert service.ledger.events() == []


def test_a_failure_after_the_charge_says_so_and_nothing_else(service):
    engine = service.curator._engine._private

    def fail(question):
        raise RuntimeError("patient 4711 costs 1e400")

    engine.totals = fail
    result = once(service, "ask", sql=BY_WARD, epsilon=0.5)
    assert (result["status"], result["charged"]) == ("failed", True)
    assert "4711" not in json.dumps(result)


def test_an_auditor_may_not_ask(service):
    async def script(call):
        return await call("ask", sql=BY_WARD, epsilon=0.5)

    result = play(service, script, person=Person("kim", Role.AUDITOR))
    assert result["status"] == "refused"
    assert service.ledger.events() == []


@pytest.mark.long
def test_the_command_serves_an_agent_on_standard_input_and_output(clinic):
    command = [sys.executable, "-m", "discreet", "mcp", str(clinic), "--by", "agent", "--cap", "0.5"]

    async def run():
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            call = caller(client)
            first = await call("ask", sql=BY_WARD, epsilon=0.4)
            return first, await call("ask", sql="SELECT COUNT(*) AS n FROM visits", epsilon=0.4), await call("promise")

    first, second, promise = asyncio.run(run())
    assert (first["status"], second["status"]) == ("answered", "refused")
    assert promise["protects"] == "patient"


async def http_request(service, token):
    """Ask for the list of tools over HTTP, in this process."""
    app = create_app(service)
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        return await client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_over_http_no_token_or_a_wrong_one_is_denied(service, token):
    response = asyncio.run(http_request(service, token))
    assert response.status_code == 401
    assert response.json()["type"] == "urn:discreet:access-denied"
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_over_http_a_token_opens_the_tools(service):
    token = service.people.add(service.ledger, "agent", Role.ANALYST).token
    response = asyncio.run(http_request(service, token))
    assert response.status_code == 200, response.text
    names = {tool["name"] for tool in response.json()["result"]["tools"]}
    assert names == {"promise", "tables", "explain", "ask", "budget", "rehearse"}


def test_a_revoked_token_is_denied(service):
    token = service.people.add(service.ledger, "agent", Role.ANALYST).token
    service.people.revoke(service.ledger, "agent")
    assert asyncio.run(http_request(service, token)).status_code == 401
