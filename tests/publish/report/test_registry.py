"""The record for the registry is YAML that others read, with the fields that its records have."""

import pytest
from release_examples import RECORD, ROWS, changed_record, policy_with

from discreet.publish import report_of
from discreet.publish.report.yaml_text import write_yaml

yaml = pytest.importorskip("yaml")
FIELDS = {
    "basic": {
        "name",
        "data_curators",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "description",
        "publication_date",
        "data_product_sector",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {
        "model_name",
        "model_name_details",
        "actors",
        "release_type",
        "release_type_details",
        "data_source_type",
        "access_type",
        "access_type_details",
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "registry_authors"},
}
HARD = [
    "yes",
    "1e3",
    " begins with a blank",
    "a: b # c",
    "two\nlines",
    "two\n\n  lines ",
    "\tx\n\ty",
    "- item\n- item",
    "",
    "quote \" ' \\ \x7f \u2028 \x85 ü 🙂",
    "null",
    "a\n",
    "\n",
    "x\r\ny",
    "trailing blank \nline",
]


def test_a_release_has_the_fields_of_the_registry(report):
    data = yaml.safe_load(report.to_registry_yaml())
    assert list(data) == ["url_slug", "status", "tier", "deployment"]
    assert {name: set(section) for name, section in data["deployment"].items()} == FIELDS


def test_the_fields_are_filled_from_policy_and_record(report):
    deployment = yaml.safe_load(report.to_registry_yaml())["deployment"]
    assert deployment["basic"]["name"] == "Wards 2026"
    assert deployment["basic"]["publication_date"] == "2026-11-18"
    assert deployment["privacy_loss"]["privacy_unit"] == "Patient-level"
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters["rho"] == 0.015
    assert parameters["delta"] == 5e-10, "as the conversion of the plan's cost: the rest of it is for selection"
    assert 0.9 < parameters["epsilon"] < 1.2
    assert deployment["deployment_model"]["access_type"] == "Non-interactive"
    assert deployment["dp_variant"]["unprotected_quantities"] == "The owner must state this."


def test_a_policy_alone_is_an_interactive_deployment():
    policy = policy_with(budget={"epsilon": "1"}, release={"invariants": "none", "publisher": "Clinic"})
    deployment = yaml.safe_load(report_of(policy, None).to_registry_yaml())["deployment"]
    assert deployment["deployment_model"]["access_type"] == "Interactive"
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert deployment["basic"]["data_curators"] == [{"data_curator_name": "Clinic"}]
    assert deployment["dp_variant"]["unprotected_quantities"] == "None: nothing was released without noise."


def test_a_release_of_synthetic_rows_only_is_synthetic_data(policy):
    report = report_of(policy, None, changed_record(parts=(ROWS,)))
    assert yaml.safe_load(report.to_registry_yaml())["deployment"]["basic"]["data_product_type"] == "Synthetic data"
    assert "Summary statistics" in report_of(policy, None, RECORD).to_registry_yaml()


@pytest.mark.parametrize("text", HARD, ids=repr)
def test_any_text_is_read_back_as_it_was(text):
    data = {"a": text, "b": {"c": [text, {"d": text, "e": 1}]}, text or "x": True}
    assert yaml.safe_load(write_yaml(data)) == data


def test_numbers_and_empty_values_keep_their_types():
    data = {"a": 1e-9, "b": 1.5, "c": 7, "d": None, "e": False, "f": [], "g": {}, "h": 1e22, "no": "no"}
    assert yaml.safe_load(write_yaml(data)) == data
