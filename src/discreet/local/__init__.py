"""Local differential privacy: every person randomises their own report, so no curator has to be trusted."""

from discreet.local.aggregator import Aggregator
from discreet.local.error_comparison import compare, curator_error, survey_error
from discreet.local.estimation import LocalEstimate, project_onto_simplex
from discreet.local.frequency_oracles.grr import GRR
from discreet.local.frequency_oracles.hadamard_response import Hadamard
from discreet.local.frequency_oracles.local_hashing import OLH
from discreet.local.frequency_oracles.parity_hashing import ParityHashing
from discreet.local.frequency_oracles.rappor import RAPPOR, PermanentResponse, loss_of_one_report
from discreet.local.frequency_oracles.subset_selection import SubsetSelection
from discreet.local.frequency_oracles.unary_encoding import OUE, SUE
from discreet.local.heavy_hitters import HeavyHitter, HeavyHitterFinder, HeavyHitters
from discreet.local.mean_estimation.duchi import Duchi
from discreet.local.mean_estimation.hybrid import Hybrid
from discreet.local.mean_estimation.noisy_mean import NoisyMean
from discreet.local.mean_estimation.piecewise import Piecewise
from discreet.local.oracle import Oracle
from discreet.local.prefixes import IntegerDomain, StringDomain
from discreet.local.randomized_response import RandomizedResponse
from discreet.local.reports import Reports
from discreet.local.sketch_oracle import Sketch, SketchOracle

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "RAPPOR",
    "SUE",
    "Aggregator",
    "Duchi",
    "Hadamard",
    "HeavyHitter",
    "HeavyHitterFinder",
    "HeavyHitters",
    "Hybrid",
    "IntegerDomain",
    "LocalEstimate",
    "NoisyMean",
    "Oracle",
    "ParityHashing",
    "PermanentResponse",
    "Piecewise",
    "RandomizedResponse",
    "Reports",
    "Sketch",
    "SketchOracle",
    "StringDomain",
    "SubsetSelection",
    "compare",
    "curator_error",
    "loss_of_one_report",
    "project_onto_simplex",
    "survey_error",
]
