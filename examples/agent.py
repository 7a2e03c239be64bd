# %% [markdown]
# # An AI agent asks, within its cap
#
# `discreet mcp` gives an agent tools to query private data over the Model Context Protocol. Here a script takes the
# place of the agent: it rehearses, repairs a refused query from its hint, asks, and cannot spend more than its cap.

# %%
import asyncio
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mcp import Client
from mcp.client.stdio import StdioServerParameters

# %% [markdown]
# ## The owner's side: data, a policy, and a cap
# The agent is charged as one analyst, and this connection may spend epsilon 0.5.

# %%
folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(11)
visits = pa.table(
    {
        "patient": rng.integers(0, 12_000, 30_000),
        "ward": rng.choice(["surgery", "medicine", "children"], 30_000, p=[0.5, 0.3, 0.2]),
        "cost": rng.gamma(2, 100, 30_000).clip(0, 2000).round(),
    }
)
pq.write_table(visits, folder / "visits.parquet")
(folder / "policy.toml").write_text(
    """
    [data]
    name = "clinic"
    protects = "patient"
    [budget]
    epsilon = 2.0
    [budget.analysts]
    agent = { epsilon = 1.0 }
    [tables.visits]
    source = "visits.parquet"
    unit = "patient"
    groups = 3
    rows = 6
    [tables.visits.columns]
    patient = { type = "integer" }
    ward = { type = "text", in = ["surgery", "medicine", "children"] }
    cost = { type = "real", between = [0, 2000] }
    """
)
command = ["-m", "discreet", "mcp", str(folder / "policy.toml"), "--by", "agent", "--cap", "0.5"]

# %% [markdown]
# ## The agent's side: only tools
# Refusals are results with a hint, so that an agent can repair its query.


# %%
COUNT_ABOVE = "SELECT COUNT(*) AS n FROM visits WHERE cost > {}"
Result = dict[str, Any]


def repaired(sql: str, refusal: Result) -> str:
    """Return a query with the word that the hint suggests in place of the unknown one."""
    (wrong,), (right,) = re.findall(r'"(\w+)"', refusal["problem"]), re.findall(r"mean (\w+)", refusal["hint"])
    return sql.replace(wrong, right)


async def agent() -> Result:
    async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:

        async def call(tool: str, **arguments: str | float) -> Result:
            return (await client.call_tool(tool, arguments)).structured_content

        print("tables:", [table["table"] for table in (await call("tables"))["tables"]])
        sql = "SELECT wrad, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY wrad"
        result = await call("rehearse", sql=sql)  # on dummy data, free
        print("rehearsal:", result["problem"], result["hint"])
        sql = repaired(sql, result)
        forecast = await call("explain", sql=sql, epsilon=0.3)  # free, too
        print("forecast:", forecast["status"])
        answer = await call("ask", sql=sql, epsilon=0.3)
        print(answer["columns"])
        for row in answer["rows"]:
            print(row)
        numbers = 0
        while answer["status"] == "answered":  # more questions, until the cap is reached
            numbers += 1
            answer = await call("ask", sql=COUNT_ABOVE.format(100 * numbers), epsilon=0.05)
        print(f"refused after {numbers} answers:", answer["problem"])
        return await call("budget")


# %%
with ThreadPoolExecutor() as thread:  # Jupyter has an event loop of its own in this one
    budget = thread.submit(asyncio.run, agent()).result()
print("spent under the cap: epsilon", budget["spent_under_cap"]["epsilon"], "of", budget["cap_epsilon"])
