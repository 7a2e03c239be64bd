"""Exact integer noise, by the vector, from a cryptographic keystream.

keystream   random bytes, one stream to each thread and process
inversion   exact sampling from a table
law         the distribution functions, to any number of bits
sampler     noise of any scale
"""

from discreet.kernel.noise.sampler import Sampler, gaussian_sampler, laplace_sampler

__all__ = ["Sampler", "gaussian_sampler", "laplace_sampler"]
