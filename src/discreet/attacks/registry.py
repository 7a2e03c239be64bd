"""The registry of attacks, in the order of the documentation."""

from discreet.attacks.aggregates import census, membership, reconstruct
from discreet.attacks.attack import Attack
from discreet.attacks.models import attributes, correlation, invert, likelihood_ratio, lone_cluster, shadow
from discreet.attacks.queries import (
    advertising,
    averaging,
    differencing,
    random_record,
    rephrasing,
    threshold_game,
)
from discreet.attacks.tables import homogeneity, intersection, linkage, profiles, pseudonyms
from discreet.attacks.validation import require

_TABLES = (pseudonyms, profiles, linkage, homogeneity, intersection)
_QUERIES = (differencing, averaging, rephrasing, threshold_game, random_record, advertising)
_AGGREGATES = (reconstruct, census, membership)
_MODELS = (shadow, likelihood_ratio, attributes, correlation, invert, lone_cluster)
ATTACKS: dict[str, Attack] = {
    module.ATTACK.name: module.ATTACK for module in (*_TABLES, *_QUERIES, *_AGGREGATES, *_MODELS)
}


def attack_named(name: str) -> Attack:
    """Return the registered attack of this name.

    >>> attack_named("threshold_game").docs_page
    'queries'
    """
    require(name in ATTACKS, f"there is no attack {name!r}; choose one of {', '.join(ATTACKS)}")
    return ATTACKS[name]
