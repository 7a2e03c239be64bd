"""The conversion of zCDP, and the exact delta of Gaussian noise, computed independently with many digits."""

import mpmath
import numpy as np


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def best_bound(rho, delta):
    """Return the least of Canonne, Kamath and Steinke's bound over all orders, by another search."""
    with mpmath.workdps(40):
        r, d = real(rho), real(delta)

        def bound(x):
            a = 1 + mpmath.exp(x)
            return a * r + (mpmath.log(1 / d) - mpmath.log(a)) / (a - 1) + mpmath.log(1 - 1 / a)

        start = min(np.linspace(-15, 35, 400), key=lambda x: bound(mpmath.mpf(x)))
        step, x = mpmath.mpf("0.1"), mpmath.mpf(float(start))
        while step > mpmath.mpf(10) ** -12:
            best = min((x - step, x, x + step), key=bound)
            step, x = (step / 3, best) if best == x else (step, best)
        return max(mpmath.mpf(0), bound(x))


def gaussian_delta(rho, epsilon):
    """Return the exact delta of a Gaussian release of this rho (Balle and Wang)."""
    root = mpmath.sqrt(2 * rho)
    return mpmath.ncdf(root / 2 - epsilon / root) - mpmath.exp(epsilon) * mpmath.ncdf(-root / 2 - epsilon / root)
