# %% [markdown]
# # Publish tables and synthetic rows once
#
# A plan is charged as a whole before any data is read. Its tables add up exactly, its rows are synthetic, and anybody
# can verify that nothing was changed since.

# %%
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet as dc

rng = np.random.default_rng(3)
town = rng.choice(["Aston", "Berry", "Corby"], 20_000, p=[0.5, 0.3, 0.2])
people = pa.table(
    {
        "person": np.arange(20_000),
        "town": town,
        "sex": rng.choice(["f", "m"], 20_000),
        "age": rng.integers(0, 100, 20_000),
        "works": rng.random(20_000) < np.where(town == "Aston", 0.7, 0.5),
    }
)

# %%
plan = dc.publish.PublicationPlan.parse(
    """
    [release]
    name = "Three towns"
    epsilon = 2
    [tables.by_town]
    sql = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
    [tables.by_town_and_sex]
    sql = "SELECT town, sex, COUNT(*) AS n FROM people GROUP BY town, sex"
    [synthetic.rows]
    table = "people"
    columns = ["town", "sex", "works"]
    rows = 1000
    """
)
curator = dc.open(
    people,
    table="people",
    unit="person",
    budget=(3, 1e-9),
    columns={
        "town": ["Aston", "Berry", "Corby"],
        "sex": ["f", "m"],
        "age": (0, 99),
        "works": [False, True],
    },
    groups=1,
    rows=1,
    version="2026",
    ledger=":memory:",
)

# %%
folder = Path(tempfile.mkdtemp()) / "three-towns"
release = dc.publish.publish(curator, plan, folder)
for name, table in release.tables.items():
    print(name, table.table.to_pylist()[:2])
print("synthetic:", release.synthetic["rows"].table.slice(0, 2).to_pylist())

# %% [markdown]
# The sums of the finer table are the numbers of the coarser one.

# %%
fine, coarse = release.tables["by_town_and_sex"].table, release.tables["by_town"].table
sums = fine.group_by("town").aggregate([("n", "sum")]).sort_by("town")["n_sum"].to_pylist()
print(np.allclose(sums, coarse.sort_by("town")["n"].to_pylist()))
print(sorted(path.name for path in folder.iterdir()))
curator.close()
