"""Gaussian mixtures, learned privately."""

from discreet.learn.mixture.gaussian_mixture import GaussianMixture

__all__ = ["GaussianMixture"]
