"""Local differential privacy: every person adds the noise, and nobody has to be trusted."""

from discreet.kernel.response import RandomizedResponse
from discreet.local.estimate import Estimate
from discreet.local.heavy import Finder, HeavyHitters, Hitter
from discreet.local.oracle import Oracle
from discreet.local.pictures import compare, curator_error, survey_error
from discreet.local.prefixes import Numbers, Texts
from discreet.local.rappor import RAPPOR, Permanent, loss_of_one_report
from discreet.local.reports import Reports
from discreet.local.schemes.binary import Duchi
from discreet.local.schemes.direct import GRR
from discreet.local.schemes.hadamard import Hadamard
from discreet.local.schemes.hashing import OLH
from discreet.local.schemes.hybrid import Hybrid
from discreet.local.schemes.linear import ParityHashing
from discreet.local.schemes.noisy import NoisyMean
from discreet.local.schemes.piecewise import Piecewise
from discreet.local.schemes.subset import SubsetSelection
from discreet.local.schemes.unary import OUE, SUE
from discreet.local.simplex import onto_simplex
from discreet.local.sketch import OpenOracle, Sketch
from discreet.local.tally import Tally

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "RAPPOR",
    "SUE",
    "Duchi",
    "Estimate",
    "Finder",
    "Hadamard",
    "HeavyHitters",
    "Hitter",
    "Hybrid",
    "NoisyMean",
    "Numbers",
    "OpenOracle",
    "Oracle",
    "ParityHashing",
    "Permanent",
    "Piecewise",
    "RandomizedResponse",
    "Reports",
    "Sketch",
    "SubsetSelection",
    "Tally",
    "Texts",
    "compare",
    "curator_error",
    "loss_of_one_report",
    "onto_simplex",
    "survey_error",
]
