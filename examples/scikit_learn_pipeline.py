# %% [markdown]
# # In a scikit-learn pipeline
#
# Private estimators fit into pipelines, with bounds declared for what comes out of the step before. Two private steps
# cost the sum of their losses.

# %%
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discreet as dc

rng = np.random.default_rng(5)
age, income = rng.integers(18, 90, 20_000), rng.gamma(3, 15_000, 20_000).clip(0, 200_000)
X = np.column_stack([age, income])
y = (0.04 * (age - 50) + (income - 45_000) / 25_000 + rng.logistic(0, 1, 20_000) > 0).astype(int)
X, new, y, new_y = train_test_split(X, y, random_state=0)

# %%
usual = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
private = make_pipeline(
    dc.learn.StandardScaler(epsilon="1/4", bounds=([18, 0], [90, 200_000])),
    dc.learn.LogisticRegression(epsilon="3/4", bounds=(-5, 5), classes=[0, 1]),
).fit(X, y)
print(f"accuracy: usual {usual.score(new, new_y):.3f}, private {private.score(new, new_y):.3f}")
for name, step in private.named_steps.items():
    print(f"{name}: {step.loss_}")

# %% [markdown]
# The score above was computed from other people's data, so it is not private. This one is:

# %%
print(dc.learn.evaluate(private, new, new_y, metric="accuracy", epsilon="1/2"))
