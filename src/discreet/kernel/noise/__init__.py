"""Exact integer noise, by the vector, from a cryptographic keystream.

keystream          random bytes, one stream per thread and process
inverse_transform  exact sampling from a table
distribution       the distribution functions, to any number of bits
tail_bounds        upper bounds on tail probabilities
sampler            noise of any scale
"""

from discreet.kernel.noise.sampler import Sampler, gaussian_sampler, laplace_sampler

__all__ = ["Sampler", "gaussian_sampler", "laplace_sampler"]
