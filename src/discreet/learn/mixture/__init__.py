"""Gaussian mixtures, learned privately."""

from discreet.learn.mixture.estimator import GaussianMixture

__all__ = ["GaussianMixture"]
