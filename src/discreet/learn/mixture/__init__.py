"""Differentially private Gaussian mixtures."""

from discreet.learn.mixture.gaussian_mixture import GaussianMixture

__all__ = ["GaussianMixture"]
