"""A session with seeded noise, so that tests of accuracy cannot fail by chance."""

import numpy as np

from discreet.kernel.model_release import Combine


class Seeded:
    """A stand-in for FitSession with continuous noise of the same distribution from a seeded generator."""

    def __init__(self, rows, shares, *, epsilon=None, rho=None, seed=0):
        self.rows, self.rng = np.asfortranarray(rows), np.random.default_rng(seed)
        self.is_gaussian = rho is not None
        self.parts = [(rho if self.is_gaussian else epsilon) * share / sum(shares) for share in shares]

    def scale(self, radius=1):
        return radius / np.sqrt(2 * self.parts[0]) if self.is_gaussian else radius / self.parts[0]

    def sd(self, radius=1):
        return self.scale(radius) * (1 if self.is_gaussian else np.sqrt(2))

    def sum(self, rule, public, *, size, radius):
        vectors = np.array(rule(self.rows, public))
        assert vectors.shape == (len(self.rows), size)
        norms = np.linalg.norm(vectors, ord=2 if self.is_gaussian else 1, axis=1)
        vectors *= (radius / np.maximum(norms, radius))[:, np.newaxis]
        return vectors.sum(axis=0) + self._noise(radius, size)

    def sparse_sum(self, rule, public, *, size, radius, combine):
        assert combine is Combine.MEAN
        indices, numbers = (np.array(each) for each in rule(self.rows, public))
        block = size // indices.shape[1]
        norms = np.linalg.norm(numbers, ord=2 if self.is_gaussian else 1, axis=1)
        numbers *= (radius / np.maximum(norms, radius))[:, np.newaxis]
        columns = zip(indices.T, numbers.T, strict=True)
        total = np.concatenate([np.bincount(*column, minlength=block) for column in columns])
        return total + self._noise(radius, size)

    def histogram(self, rule, public, *, cells):
        return np.bincount(rule(self.rows, public), minlength=cells) + self._noise(1, cells)

    def _noise(self, radius, size):
        scale = self.scale(radius)
        self.parts.pop(0)
        return self.rng.normal(0, scale, size) if self.is_gaussian else self.rng.laplace(0, scale, size)
