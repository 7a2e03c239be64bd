"""Attacks on releases without a defence, with an easy fix, and protected by the curator.

All need scipy, some also scikit-learn (`pip install 'discreet[attacks]'`).

    pseudonyms, profiles, linkage, homogeneity, intersection    released tables
    differencing, averaging, rephrasing, threshold_game         answered queries
    random_record, advertising                                  one record, and reports of advertisements
    reconstruct, census, membership                             published sums, tables and means
    shadow, likelihood_ratio, attributes                        membership and attribute inference from models
    correlation, invert, lone_cluster                           what models disclose about people
    overfitting                                                 membership inference against overfitting
    hidden_rows                                                 noise at home or a curator: accuracy and attacks
    membership_from_reconstruction, reconstruction_from_membership    reductions between the two attacks
    compare                                                     one attack against all defences
    Register, Ratings, Population, Secrets, LabelledData, ...   records for your own data
"""

from discreet.attacks.aggregates.census import census
from discreet.attacks.aggregates.membership import membership
from discreet.attacks.aggregates.reconstruct import reconstruct
from discreet.attacks.aggregates.reductions import membership_from_reconstruction, reconstruction_from_membership
from discreet.attacks.comparison import Comparison, compare
from discreet.attacks.data.blocks import Blocks
from discreet.attacks.data.city import City
from discreet.attacks.data.dose_cohort import DoseCohort
from discreet.attacks.data.gallery import Gallery
from discreet.attacks.data.labelled_data import LabelledData, SensitiveAttributeData
from discreet.attacks.data.numeric_data import RegressionData, TwoSets
from discreet.attacks.data.overlapping_tables import TwoTables
from discreet.attacks.data.panel import Panel
from discreet.attacks.data.patients import Fact, Patients
from discreet.attacks.data.population import Population
from discreet.attacks.data.register import Ratings, Register
from discreet.attacks.data.secret_bits import Secrets, Study
from discreet.attacks.data.taxis import Taxis
from discreet.attacks.data.visits import Visits
from discreet.attacks.models.attributes import attributes
from discreet.attacks.models.correlation import correlation
from discreet.attacks.models.hidden_rows import hidden_rows
from discreet.attacks.models.invert import invert
from discreet.attacks.models.likelihood_ratio import likelihood_ratio
from discreet.attacks.models.lone_cluster import lone_cluster
from discreet.attacks.models.overfitting import overfitting
from discreet.attacks.models.shadow import shadow
from discreet.attacks.queries.advertising import advertising
from discreet.attacks.queries.averaging import averaging
from discreet.attacks.queries.differencing import differencing
from discreet.attacks.queries.random_record import random_record
from discreet.attacks.queries.rephrasing import rephrasing
from discreet.attacks.queries.threshold_game import threshold_game
from discreet.attacks.registry import attack_named
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.homogeneity import homogeneity
from discreet.attacks.tables.intersection import intersection
from discreet.attacks.tables.linkage import linkage
from discreet.attacks.tables.profiles import profiles
from discreet.attacks.tables.pseudonyms import pseudonyms

__all__ = [
    "AttackResult",
    "Blocks",
    "City",
    "Comparison",
    "DoseCohort",
    "Fact",
    "Gallery",
    "LabelledData",
    "Panel",
    "Patients",
    "Population",
    "Ratings",
    "Register",
    "RegressionData",
    "Secrets",
    "SensitiveAttributeData",
    "Study",
    "Taxis",
    "TwoSets",
    "TwoTables",
    "Visits",
    "advertising",
    "attack_named",
    "attributes",
    "averaging",
    "census",
    "compare",
    "correlation",
    "differencing",
    "hidden_rows",
    "homogeneity",
    "intersection",
    "invert",
    "likelihood_ratio",
    "linkage",
    "lone_cluster",
    "membership",
    "membership_from_reconstruction",
    "overfitting",
    "profiles",
    "pseudonyms",
    "random_record",
    "reconstruct",
    "reconstruction_from_membership",
    "rephrasing",
    "shadow",
    "threshold_game",
]
