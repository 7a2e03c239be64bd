"""A laboratory of attacks: what leaks without a defence, with the easy fix, and with the curator.

Imported when it is first used; it needs scipy, some attacks scikit-learn (`pip install 'discreet[attacks]'`).

    pseudonyms, linkage, homogeneity, intersection              tables of people, released
    differencing, averaging, rephrasing, threshold_game         questions, answered
    reconstruct, membership                                     sums and means, published
    shadow, likelihood_ratio, attributes                        models, and who was in their data
    correlation, invert, lone_cluster                           models, and what they say of people
    compare                                                     one attack against all defences
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.attacks.comparing import Comparison, compare
from discreet.attacks.laboratory import MODULES, attack_named
from discreet.attacks.result import AttackResult

if TYPE_CHECKING:
    from discreet.attacks.aggregates.membership import membership
    from discreet.attacks.aggregates.reconstruct import reconstruct
    from discreet.attacks.models.attributes import attributes
    from discreet.attacks.models.correlation import correlation
    from discreet.attacks.models.invert import invert
    from discreet.attacks.models.likelihood_ratio import likelihood_ratio
    from discreet.attacks.models.lone_cluster import lone_cluster
    from discreet.attacks.models.shadow import shadow
    from discreet.attacks.queries.averaging import averaging
    from discreet.attacks.queries.differencing import differencing
    from discreet.attacks.queries.rephrasing import rephrasing
    from discreet.attacks.queries.threshold_game import threshold_game
    from discreet.attacks.tables.homogeneity import homogeneity
    from discreet.attacks.tables.intersection import intersection
    from discreet.attacks.tables.linkage import linkage
    from discreet.attacks.tables.pseudonyms import pseudonyms
else:

    def __getattr__(name: str) -> Any:
        if name in MODULES:
            return getattr(import_module(f"discreet.attacks.{MODULES[name]}.{name}"), name)
        raise AttributeError(f"module 'discreet.attacks' has no attribute {name!r}")


__all__ = [
    "AttackResult",
    "Comparison",
    "attack_named",
    "attributes",
    "averaging",
    "compare",
    "correlation",
    "differencing",
    "homogeneity",
    "intersection",
    "invert",
    "likelihood_ratio",
    "linkage",
    "lone_cluster",
    "membership",
    "pseudonyms",
    "reconstruct",
    "rephrasing",
    "shadow",
    "threshold_game",
]
