"""A record for OpenDP's registry of deployments, with the fields of its records of autumn 2026.

What the registry asks for and no file shows is left to the owner, in the same words as in the report.
"""

import re
from collections.abc import Mapping
from typing import Any

from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy
from discreet.policy.declarations import PersonInWindow, RowUnit
from discreet.policy.guarantee import neighbour_sentence, protected_noun, unit_sentence
from discreet.pricing.remaining_budget import cost_in_budget
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.content import Chapter, stated, stated_list
from discreet.publish.report.number_text import rounded_up
from discreet.publish.report.release_chapters import NO_INVARIANTS, invariants_of
from discreet.publish.report.yaml_text import write_yaml


def registry_yaml(  # noqa: PLR0913, PLR0917 - what a report has
    policy: Policy,
    budget: Budget,
    record: ReleaseRecord | None,
    cost: Loss | None,
    chapters: Mapping[str, Chapter],
    version: str,
) -> str:
    """Return the record of a release, or of a policy that answers queries, as YAML."""
    deployment = {
        "basic": _basic(policy, record),
        "dp_variant": {
            "variant_name": "Pure DP" if budget.rho is None else "Zero-concentrated DP",
            "data_domain": _domain(policy),
            "unprotected_quantities": stated_list(invariants_of(policy, record), NO_INVARIANTS),
        },
        "privacy_loss": _privacy_loss(policy, budget, cost, chapters),
        "deployment_model": _model(policy, record, chapters),
        "accounting": {
            "post_processing": _post_processing(record),
            "composition": "\n".join(chapters["budget"].sentences),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "\n".join(chapters["bounds"].notes),
            "mechanisms": _mechanisms(budget, version),
            "justification": stated(policy.release.epsilon_reason),
        },
        "administrative": {"sources": stated(None), "registry_authors": [stated(None)]},
    }
    name = record.name if record else policy.data.name
    slug = re.sub(r"[^a-z0-9]+", "-", f"{name} {policy.data.name}".lower()).strip("-")
    return write_yaml({"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment})


def _basic(policy: Policy, record: ReleaseRecord | None) -> dict[str, Any]:
    release, kinds = policy.release, {part.kind for part in record.parts} if record else set()
    return {
        "name": record.name if record else policy.data.name,
        "data_curators": [{"data_curator_name": stated(release.publisher)}],
        "intended_use": stated(release.intended_use),
        "data_product_type": "Synthetic data" if kinds == {"synthetic rows"} else "Summary statistics",
        "data_product_region": stated(release.region),
        "description": _description(policy, record),
        **({"publication_date": record.time[:10]} if record else {}),
        "data_product_sector": stated(release.sector),
    }


def _description(policy: Policy, record: ReleaseRecord | None) -> str:
    if record is None:
        return f"Differentially private answers to queries about {policy.data.name}."
    parts = "; ".join(f"{part.name} ({part.kind}, {part.state})" for part in record.parts)
    return f"{record.name}, from {policy.data.name}: {parts}."


def _domain(policy: Policy) -> str:
    tables = [
        f"{name} ({', '.join(f'{column.name}: {column.type}' for column in table.columns.values())})"
        for name, table in policy.tables.items()
        if not table.public
    ]
    return f"All tables with these columns: {'; '.join(tables)}."


def _privacy_loss(policy: Policy, budget: Budget, cost: Loss | None, chapters: Mapping[str, Chapter]) -> dict[str, Any]:
    return {
        "privacy_unit": _unit_level(policy),
        "privacy_unit_details": f"{unit_sentence(policy)}\nNeighbouring data sets: add or remove one "
        f"{protected_noun(policy)}.\n{neighbour_sentence(policy)}",
        "privacy_parameters": _parameters(budget, cost),
        "privacy_parameters_details": "\n".join(chapters["summary"].sentences),
    }


def _unit_level(policy: Policy) -> str:
    match policy.unit:
        case RowUnit():
            return "Row-level"
        case PersonInWindow(_, window, _):
            return f"{policy.data.protects.capitalize()}-{window}-level"
    return f"{policy.data.protects.capitalize()}-level"


def _parameters(budget: Budget, cost: Loss | None) -> dict[str, float]:
    """Return the parameters of the release, or those of the budget; bounds are rounded up."""
    if cost is None:
        values = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    elif budget.rho is None and cost.epsilon is not None:
        values = {"epsilon": cost.epsilon, "delta": cost.delta, "rho": None}
    else:
        converted = cost_in_budget(cost, budget)
        values = {"epsilon": converted.epsilon, "delta": converted.delta + cost.delta, "rho": cost.rho}
    return {name: float(rounded_up(value)) for name, value in values.items() if value}


def _model(policy: Policy, record: ReleaseRecord | None, chapters: Mapping[str, Chapter]) -> dict[str, str]:
    trust = chapters["threats"].tables[0].rows
    analysts = ", ".join(policy.budget_entry.analysts) or "none besides the owner"
    interactive = record is None
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the raw data; only noisy results leave its process.",
        "actors": "\n".join(f"- {who} ({trusted}): {why}" for who, trusted, why in trust),
        "release_type": "Many releases" if interactive else "One release",
        "release_type_details": "\n".join(chapters["budget"].sentences[:1]),
        "data_source_type": stated(None) if interactive else "Static",
        "access_type": "Interactive" if interactive else "Non-interactive",
        "access_type_details": f"Analysts: {analysts}. The budget holds for all together, even if they collude.",
    }


def _post_processing(record: ReleaseRecord | None) -> str:
    return "\n".join(record.post_processing) if record and record.post_processing else "None."


def _mechanisms(budget: Budget, version: str) -> str:
    noise = "Laplace" if budget.rho is None else "Gaussian"
    return (
        f"- Discrete {noise} noise on whole numbers, exactly sampled (Discreet {version}).\n"
        "- Floating point: values are rounded to a public grid before they are summed.\n"
        "- Timing: published files show none; answers in the owner's own process are not protected.\n"
        "- A charge is recorded durably before any data is read."
    )
