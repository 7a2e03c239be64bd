# %% [markdown]
# # Where people check in: a private mixture on a map
#
# A Gaussian mixture summarises where 8,000 people go. Each person is protected with all of their check-ins, so
# nobody's home can be found in it.

# %%
import numpy as np

import discreet as dc

# %% [markdown]
# ## Simulated check-ins
# Four districts, and one person who lives alone, far outside.

# %%
rng = np.random.default_rng(7)
districts = np.array([[-73.99, 40.75], [-73.95, 40.68], [-73.87, 40.76], [-74.02, 40.71]])
home = districts[rng.choice(4, 8_000, p=[0.45, 0.25, 0.2, 0.1])] + rng.normal(0, 0.012, (8_000, 2))
person = np.repeat(np.arange(8_000), rng.integers(1, 12, 8_000))
points = home[person] + rng.normal(0, 0.006, (len(person), 2))
lone = np.array([[-74.30, 40.95]] * 60)
points, person = np.vstack([points, lone]), np.concatenate([person, np.full(60, 8_000)])

# %% [markdown]
# ## The same model, without and with privacy

# %%
from sklearn.mixture import GaussianMixture

bounds = ([-74.4, 40.5], [-73.6, 41.0])
exact = GaussianMixture(5, n_init=5, random_state=0).fit(points)
private = dc.learn.GaussianMixture(5, epsilon=1, delta=1e-6, bounds=bounds).fit(points, unit=person)
print("nearest component to the lone house, in degrees")
for name, model in (("exact", exact), ("private", private)):
    print(f"  {name:8}{np.abs(model.means_ - lone[0]).sum(axis=1).min():.3f}")

# %% [markdown]
# The exact model puts a component on the lone house. The private one must not depend on it by more than epsilon
# allows, and is nearly as good a description of everybody else.

# %%
crowd = points[person < 8_000]
print(f"log-likelihood per check-in: exact {exact.score(crowd):.2f}, private {private.score(crowd):.2f}")
print(private.loss_)

# %%
axes = dc.learn.draw(private)
axes.set_title("Five private components: released parameters only")
axes.figure.savefig("checkins_map.png", dpi=120)
