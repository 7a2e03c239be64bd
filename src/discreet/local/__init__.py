"""Local differential privacy: every person adds the noise, and nobody has to be trusted."""

from discreet.kernel.response import RandomizedResponse
from discreet.local.oracle import Estimate, Oracle
from discreet.local.reports import Reports
from discreet.local.schemes.direct import GRR
from discreet.local.simplex import onto_simplex
from discreet.local.tally import Tally

__all__ = [
    "GRR",
    "Estimate",
    "Oracle",
    "RandomizedResponse",
    "Reports",
    "Tally",
    "onto_simplex",
]
