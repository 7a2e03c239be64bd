"""Private estimators in scikit-learn's shape: they see data only through noisy sums that were paid for.

Imported when it is first used; it needs scikit-learn (`pip install 'discreet[learn]'`).

    GaussianMixture, KMeans, PCA, StandardScaler              what data look like
    GaussianNB, LogisticRegression, LinearRegression          what follows from what
    Recommender                                               who may like what
    evaluate, select, tune                                    how good a model is, and which is best, privately
    draw                                                      a picture of what was learned
"""

from discreet.learn.cluster import KMeans
from discreet.learn.decomposition import PCA
from discreet.learn.fit_cost import FitLoss
from discreet.learn.linear_model.least_squares import LinearRegression
from discreet.learn.linear_model.logistic import LogisticRegression
from discreet.learn.mixture import GaussianMixture
from discreet.learn.model_plot import draw
from discreet.learn.model_selection.evaluation import Score, evaluate
from discreet.learn.model_selection.hyperparameter_tuning import StepBudget, Trials, TuningResult, tune
from discreet.learn.model_selection.private_selection import SelectionResult, probabilities, select
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.preprocessing import StandardScaler
from discreet.learn.recommend.recommender import Recommender

__all__ = [
    "PCA",
    "FitLoss",
    "GaussianMixture",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "Recommender",
    "Score",
    "SelectionResult",
    "StandardScaler",
    "StepBudget",
    "Trials",
    "TuningResult",
    "draw",
    "evaluate",
    "probabilities",
    "select",
    "tune",
]
