# %% [markdown]
# # A survey that needs no trust
#
# Everybody randomises their own answer before it leaves the phone. What is collected proves nothing about anybody, and
# still gives the shares and the mean, with margins.

# %%
import numpy as np

import discreet as dc

rng = np.random.default_rng(1)
answers = rng.choice(["never", "once", "often"], 40_000, p=[0.62, 0.27, 0.11])

# %% [markdown]
# ## On each phone
# The survey is public; each report is a single value.

# %%
survey = dc.local.GRR(["never", "once", "often"], epsilon=1)
print("one report:", next(survey.perturb(["often"]).messages()))
print("reports of someone who says often:", [round(float(p), 3) for p in survey.distribution("often").values()])

# %% [markdown]
# ## At the office

# %%
estimate = survey.estimate(survey.perturb(list(answers)))
for value, share, margin in zip(["never", "once", "often"], estimate.estimates, estimate.margins, strict=True):
    print(f"{value:6} {share:.3f} ± {margin:.3f}   (truth {np.mean(answers == value):.3f})")

# %% [markdown]
# ## A number: hours of sleep

# %%
hours = rng.normal(7, 1.2, 40_000).clip(0, 12)
sleep = dc.local.Piecewise(0, 12, epsilon=1)
mean = sleep.estimate(sleep.perturb(hours))
print(f"mean {mean.estimates:.2f} ± {mean.margins:.2f} hours   (truth {hours.mean():.2f})")
print(sleep.loss())
