# %% [markdown]
# # On Spark
#
# The same policy, queries and numbers, where the data do not fit on one machine: SQL goes in by Spark Connect, integer
# totals come out. Set `SPARK_REMOTE` to the address of a server (`sc://…`).

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc

rng = np.random.default_rng(11)
folder = Path(tempfile.mkdtemp())
trips = pa.table(
    {
        "rider": rng.integers(0, 5_000, 50_000),
        "zone": rng.choice(["north", "south", "east"], 50_000),
        "fare": rng.gamma(3, 5, 50_000).clip(0, 100),
    }
)
pq.write_table(trips, folder / "trips.parquet")

# %%
(folder / "trips.toml").write_text(
    f"""
[data]
name = "trips"
protects = "rider"
engine = "spark"
connection = "{os.environ.get("SPARK_REMOTE", "sc://localhost:15002")}"
[budget]
epsilon = 2
[tables.trips]
source = "trips.parquet"
unit = "rider"
groups = 3
rows = 8
[tables.trips.columns]
rider = {{ type = "integer" }}
zone = {{ type = "text", in = ["north", "south", "east"] }}
fare = {{ type = "real", between = [0, 100] }}
"""
)

# %%
with dc.open(folder / "trips.toml") as curator:
    print(curator.ask("SELECT zone, COUNT(*) AS n, AVG(fare) AS fare FROM trips GROUP BY zone", epsilon=1))
