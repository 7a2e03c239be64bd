"""Private estimators in scikit-learn's shape: they see data only through noisy sums that were paid for.

Imported when it is first used; it needs scikit-learn (`pip install 'discreet[learn]'`).

    GaussianMixture, KMeans, PCA, StandardScaler              what data look like
    GaussianNB, LogisticRegression, LinearRegression          what follows from what
    Recommender                                               who may like what
    evaluate, select, tune                                    how good a model is, and which is best, privately
    draw                                                      a picture of what was learned
"""

from discreet.learn.classes.logistic import LogisticRegression
from discreet.learn.classes.naive_bayes import GaussianNB
from discreet.learn.columns.kmeans import KMeans
from discreet.learn.columns.linear import LinearRegression
from discreet.learn.columns.pca import PCA
from discreet.learn.columns.scaler import StandardScaler
from discreet.learn.drawing import draw
from discreet.learn.judging.choosing import Choice, probabilities, select
from discreet.learn.judging.scoring import Score, evaluate
from discreet.learn.judging.tuning import Price, Trials, Tuned, tune
from discreet.learn.losses import FitLoss
from discreet.learn.mixture import GaussianMixture
from discreet.learn.recommending.recommender import Recommender

__all__ = [
    "PCA",
    "Choice",
    "FitLoss",
    "GaussianMixture",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "Price",
    "Recommender",
    "Score",
    "StandardScaler",
    "Trials",
    "Tuned",
    "draw",
    "evaluate",
    "probabilities",
    "select",
    "tune",
]
