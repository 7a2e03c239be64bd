"""How fitted models are split off, and judged on held-out rows: the same for every peer, whatever made them."""

import numpy as np
from sklearn.metrics import roc_auc_score


def split(rows, seed):
    """Return the places of the rows to fit and of those to judge."""
    order = np.random.default_rng(seed).permutation(rows)
    return np.split(order, [rows * 3 // 4])


def score(model, held, labels):
    """Return the accuracy of a classifier, the R² of a regression."""
    return model.score(held, labels)


def inertia(model, held, _):
    """Return the mean squared distance to the nearest centre."""
    apart = held[:, None, :] - model.cluster_centers_[None, :, :]
    return (apart**2).sum(axis=2).min(axis=1).mean()


def kept(model, held, _):
    """Return the share of the variance that lies in the components' subspace."""
    centred = held - held.mean(axis=0)
    basis, _ = np.linalg.qr(model.components_.T)
    return ((centred @ basis) ** 2).sum() / (centred**2).sum()


def spread(model, held, _):
    """Return how far means and deviations usually are off, in deviations: the median over features."""
    deviation = held.std(axis=0)
    known = deviation > 0
    off = np.abs(np.concatenate([model.mean_ - held.mean(axis=0), np.sqrt(model.var_) - deviation]).reshape(2, -1))
    return np.median(off[:, known] / deviation[known])


JUDGES = {
    "GaussianNB": score,
    "KMeans": inertia,
    "LinearRegression": score,
    "LogisticRegression": score,
    "PCA": kept,
    "StandardScaler": spread,
}


def auc(model, held, labels):
    """Return the area under the ROC curve of a classifier for two classes."""
    return roc_auc_score(labels, model.predict_proba(held)[:, 1])


def rmse(model, held, target):
    """Return the root mean squared error of a regression."""
    return np.sqrt(np.mean((model.predict(held) - target) ** 2))


ADDITIVE = {"classification": auc, "regression": rmse}
