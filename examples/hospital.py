# %% [markdown]
# # A hospital's data, asked with privacy
#
# Open a data frame, ask what is often asked, and read the answer: numbers with margins, what clipping removed, and
# what it cost.

# %%
import numpy as np
import pandas as pd

import discreet as dc

# %% [markdown]
# ## The data
# Simulated here: 30,000 visits of 12,000 patients, some of whom come much more often than others.

# %%
rng = np.random.default_rng(2026)
often = rng.pareto(3, 12_000) + 1
patient = rng.choice(12_000, 30_000, p=often / often.sum())
ward = rng.choice(["surgery", "medicine", "children", "maternity"], 30_000, p=[0.3, 0.4, 0.2, 0.1])
visits = pd.DataFrame(
    {
        "patient": patient,
        "ward": ward,
        "cost": rng.gamma(2, np.where(ward == "surgery", 300, 110)).clip(0, 2000).round(2),
        "readmitted": rng.random(30_000) < np.where(ward == "medicine", 0.14, 0.08),
    }
)

# %% [markdown]
# ## What is public is declared, never taken from the data
# The privacy unit, the budget, the names of the wards, and the range of costs. How many wards and visits of a patient
# count is left to Discreet ("auto"): a small part of each cost buys a noisy histogram from which the bounds are
# chosen.

# %%
curator = dc.open(
    visits,
    table="visits",
    unit="patient",
    budget=(3, 1e-9),
    columns={
        "ward": ["children", "maternity", "medicine", "surgery"],
        "cost": (0, 2000),
        "readmitted": [False, True],
    },
    ledger=":memory:",
)

# %%
by_ward = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward ORDER BY n DESC"
print(curator.explain(by_ward, epsilon=1))

# %%
answer = curator.ask(by_ward, epsilon=1)
print(answer)

# %% [markdown]
# The truth is known here, because the data are simulated.

# %%
print(visits.groupby("ward").agg(n=("cost", "size"), mean=("cost", "mean")).round(1).sort_values("n", ascending=False))

# %% [markdown]
# Rates, shares and comparisons follow from released numbers, with margins of their own.

# %%
rates = curator.ask(
    "SELECT ward, AVG(CASE WHEN readmitted THEN 1 ELSE 0 END) AS rate, COUNT(*) / SUM(COUNT(*)) OVER () AS share "
    "FROM visits GROUP BY ward",
    epsilon="1/2",
)
print(rates)

# %% [markdown]
# Asking again is free, and a query that could single somebody out is refused or answered with as much noise as any
# other.

# %%
print(curator.ask(by_ward, epsilon=1).paid)
try:
    curator.ask("SELECT * FROM visits WHERE patient = 17", epsilon=1)
except dc.Refused as refusal:
    print(refusal)

# %%
print(curator.budget().remaining)
curator.close()
