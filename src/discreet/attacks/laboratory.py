"""All attacks, by their names. A module is loaded when its attack is first used."""

from importlib import import_module

from discreet.attacks.listing import Attack

# Name of the attack: the module that has it. The order is that of the course.
MODULES = {
    "pseudonyms": "tables",
    "linkage": "tables",
    "homogeneity": "tables",
    "intersection": "tables",
    "differencing": "queries",
    "averaging": "queries",
    "rephrasing": "queries",
    "threshold_game": "queries",
    "reconstruct": "aggregates",
    "membership": "aggregates",
    "shadow": "models",
    "likelihood_ratio": "models",
    "attributes": "models",
    "correlation": "models",
    "invert": "models",
    "lone_cluster": "models",
}


def attack_named(name: str) -> Attack:
    """Return what the laboratory knows about an attack.

    >>> attack_named("threshold_game").topic
    'queries'
    """
    if name not in MODULES:
        raise ValueError(f"there is no attack {name!r}; there are {', '.join(MODULES)}")
    found: Attack = import_module(f"discreet.attacks.{MODULES[name]}.{name}").ATTACK
    return found
