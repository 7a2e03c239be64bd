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
    "census": "aggregates",
    "membership": "aggregates",
    "shadow": "models",
    "likelihood_ratio": "models",
    "attributes": "models",
    "correlation": "models",
    "invert": "models",
    "lone_cluster": "models",
}

# What attacks are run on, and what belongs to them, by the modules that have it.
OTHERS = {
    "Blocks": "aggregates.blocks",
    "City": "models.city",
    "Fact": "tables.patients",
    "Gallery": "models.images",
    "Labelled": "models.people",
    "Panel": "aggregates.panel",
    "Patients": "tables.patients",
    "People": "queries.people",
    "Ratings": "tables.ratings",
    "Register": "tables.registers",
    "Rows": "queries.fits",
    "Secretive": "models.secrets",
    "Secrets": "aggregates.reconstruct",
    "Study": "aggregates.study",
    "Taxis": "tables.taxis",
    "Treated": "models.patients",
    "TwoSets": "queries.threshold_game",
    "TwoTables": "tables.hospitals",
    "membership_from_reconstruction": "aggregates.reductions",
    "overfitting": "models.overfitting",
    "reconstruction_from_membership": "aggregates.reductions",
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
