"""The registry of attacks: what each attack does and which module defines it. Modules are loaded on first use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any

from discreet.attacks.result import AttackResult


@dataclass(frozen=True)
class Attack:
    """One attack, its descriptions, and a loader for real data.

    `load` reads the files named in `data_files` from a folder.
    """

    run: Callable[..., AttackResult]
    docs_page: str  # docs/attacks/<docs_page>.md
    summary: str  # one sentence: what the attack does
    without_defence: str  # what is released without a defence
    with_easy_fix: str  # what is released with the easy fix
    with_curator: str  # what the curator or the private estimator releases instead
    built_in_data: str  # the data used unless others are given
    data_files: tuple[str, ...] = ()
    comparison: Mapping[str, Any] = field(default_factory=dict)  # settings with which all defences face the same game
    load: Callable[[Path], Any] | None = None

    @property
    def name(self) -> str:
        """The attack's public name."""
        return self.run.__name__

    def with_settings(self, **settings: Any) -> Callable[..., AttackResult]:
        """Return the attack with the settings for a comparison of all defences, and with these."""
        chosen = {**self.comparison, **settings}
        return update_wrapper(partial(self.run, **chosen), self.run) if chosen else self.run


# Attack -> package. The order is that of the documentation.
ATTACK_PACKAGES = {
    "pseudonyms": "tables",
    "profiles": "tables",
    "linkage": "tables",
    "homogeneity": "tables",
    "intersection": "tables",
    "differencing": "queries",
    "averaging": "queries",
    "rephrasing": "queries",
    "threshold_game": "queries",
    "random_record": "queries",
    "advertising": "queries",
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

# Data records and related functions -> module.
OTHER_EXPORTS = {
    "Blocks": "aggregates.blocks",
    "City": "models.city_mixtures",
    "DoseCohort": "models.dose_models",
    "Fact": "tables.patients",
    "Gallery": "models.image_inversion",
    "LabelledData": "models.labelled_data",
    "Panel": "aggregates.panel",
    "Patients": "tables.patients",
    "Population": "queries.attack_targets",
    "Ratings": "tables.linkage_data",
    "Register": "tables.linkage_data",
    "RegressionData": "queries.model_differencing",
    "Secrets": "aggregates.reconstruct",
    "SensitiveAttributeData": "models.labelled_data",
    "Study": "aggregates.reductions",
    "Taxis": "tables.taxis",
    "TwoSets": "queries.threshold_game",
    "TwoTables": "tables.overlapping_tables",
    "Visits": "tables.visits",
    "hidden_rows": "models.hidden_rows",
    "membership_from_reconstruction": "aggregates.reductions",
    "overfitting": "models.overfitting",
    "reconstruction_from_membership": "aggregates.reductions",
}


def attack_named(name: str) -> Attack:
    """Return the registered attack of this name.

    >>> attack_named("threshold_game").docs_page
    'queries'
    """
    if name not in ATTACK_PACKAGES:
        raise ValueError(f"there is no attack {name!r}; choose one of {', '.join(ATTACK_PACKAGES)}")
    attack: Attack = import_module(f"discreet.attacks.{ATTACK_PACKAGES[name]}.{name}").ATTACK
    return attack
