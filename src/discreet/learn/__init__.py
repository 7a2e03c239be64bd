"""Differentially private estimators with scikit-learn's interface; they see the data only through noisy sums.

Imported on first use; needs scikit-learn (`pip install 'discreet[learn]'`).

    GaussianMixture, KMeans, PCA, StandardScaler              density, clusters, components, scaling
    EmpiricalCovariance                                       covariances and correlations, with margins
    GaussianNB, LogisticRegression, LinearRegression          classification and regression
    ExplainableBoostingClassifier, ExplainableBoostingRegressor   additive models whose effects can be drawn
    NoisyRows                                                 noise that people add to their rows at home
    Recommender                                               recommendations from ratings
    evaluate, select, tune                                    private scores, model selection and tuning
    draw                                                      a plot of a fitted model
"""

from discreet.learn.boosting.explainable_boosting import ExplainableBoostingClassifier, ExplainableBoostingRegressor
from discreet.learn.cluster import KMeans
from discreet.learn.covariance import EmpiricalCovariance
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
from discreet.learn.noisy_rows import NoisyRows
from discreet.learn.preprocessing import StandardScaler
from discreet.learn.recommend.recommender import Recommender

__all__ = [
    "PCA",
    "EmpiricalCovariance",
    "ExplainableBoostingClassifier",
    "ExplainableBoostingRegressor",
    "FitLoss",
    "GaussianMixture",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "NoisyRows",
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
