"""What was fixed before the results is complete, the results were measured under it, and the page shows it."""

import copy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from versus import hospital, page, results, running, summary  # noqa: E402

PROTOCOL = hospital.protocol()
SECTIONS = {
    "data": {"patients", "seed", "wards", "months", "codes", "sha256"},
    "privacy": {"unit", "epsilon", "delta", "rule"},
    "bounds": {"visits", "wards", "diagnoses", "per_group", "cost", "most_visits"},
    "scoring": {"error", "coverage", "width", "interval_score", "additivity", "intervals"},
    "audit": {"claim", "outputs", "confidence", "count", "sum"},
    "crash": {"epsilon", "spend"},
    "tampering": {"half_noise", "one_byte"},
    "attacks": {"epsilon", "differencing", "reconstruction", "repeats"},
}
CLAIMS = {"margins", "adds_up", "budget", "durable"}


def stored():
    found = results.load()
    assert found is not None, "run `make versus`"
    return found


def small(patients):
    return {**PROTOCOL, "data": {**PROTOCOL["data"], "patients": patients}}


def test_the_protocol_is_complete():
    assert PROTOCOL.keys() == SECTIONS.keys() | {"questions", "runs"}
    assert {section: set(PROTOCOL[section]) for section in SECTIONS} == SECTIONS
    assert all({"text", "keys"} == set(question) for question in PROTOCOL["questions"].values())
    assert PROTOCOL["runs"].keys() == running.tools().keys()


def test_every_question_has_a_truth_without_bounds():
    table = hospital.visits(small(2_000)["data"])
    truth = hospital.truth(table, PROTOCOL["data"]["months"])
    assert truth.keys() == PROTOCOL["questions"].keys()
    assert truth["visits"][()] == table.num_rows == sum(truth["visits_by_ward_and_month"].values())
    assert all(
        {len(key) for key in cells} == {len(PROTOCOL["questions"][question]["keys"])}
        for question, cells in truth.items()
    )


def test_the_hospital_is_always_the_same_and_another_seed_makes_another():
    data = small(500)["data"]
    assert hospital.digest(hospital.visits(data)) == hospital.digest(hospital.visits(data))
    assert hospital.digest(hospital.visits(data)) != hospital.digest(hospital.visits({**data, "seed": 1}))


@pytest.mark.long
def test_the_hospital_is_that_of_the_protocol():
    assert hospital.digest(hospital.visits(PROTOCOL["data"])) == PROTOCOL["data"]["sha256"]


def test_the_results_were_measured_under_the_present_protocol():
    assert stored()["fixed"] == results.file_hashes()


def test_the_page_shows_the_hash_of_everything_that_was_fixed():
    text = results.PAGE.read_text(encoding="utf-8")
    assert all(f"`{value}`" in text for value in results.file_hashes().values())


def test_the_page_is_what_the_stored_results_give():
    assert page.page(stored()) == results.PAGE.read_text(encoding="utf-8")


def test_every_tool_has_an_adapter_that_explains_itself_and_pinned_packages():
    for name, tool in running.tools().items():
        text = (running.HERE / tool["script"]).read_text(encoding="utf-8")
        assert text.startswith('"""'), name
        assert all("==" in package for package in tool["packages"]), name
        assert tool.get("claims", {}).keys() <= CLAIMS, name
        assert tool.get("by_hand", {}).keys() <= PROTOCOL["questions"].keys(), name


def test_every_measured_tool_has_a_version_a_date_and_all_questions():
    for name, tool in stored()["tools"].items():
        assert tool["date"], name
        if "publications" in tool:
            assert tool["version"], name
            assert len(tool["publications"]) == PROTOCOL["runs"][name], name
            assert all(p["questions"].keys() == PROTOCOL["questions"].keys() for p in tool["publications"]), name
        else:
            assert tool["not_measured"], name


def test_a_tool_that_does_not_install_is_reported_with_the_reason():
    found = copy.deepcopy(stored())
    found["tools"]["tumult"] = {"date": "2026-01-01", "releases": None, "not_measured": "no Java on this machine"}
    assert "| Tumult Analytics | not measured: no Java on this machine | 2026-01-01 | 0 |" in page.page(found)


def test_what_a_tool_does_not_claim_is_never_called_a_failure():
    text = results.PAGE.read_text(encoding="utf-8").lower()
    assert "not claimed" in text
    assert "fails" not in text


def test_half_of_our_noise_and_every_flipped_bit_were_caught():
    tampered = stored()["tampering"]
    assert tampered["half_noise"]["refuted"]
    assert tampered["one_byte"]["caught"] == tampered["one_byte"]["files"] > 5


def test_the_readme_s_short_form_states_what_the_page_shows():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = stored()["tools"]
    own = {name: tool for name, tool in found.items() if "task" not in running.tools()[name] and "version" in tool}
    discreet = found["discreet"]
    best = sum("discreet" in summary.lowest(own, question) for question in PROTOCOL["questions"])
    patients = summary.values(discreet, "patients_by_ward", "coverage")
    assert "(docs/versus.md)" in readme
    assert f"in {best} of {len(PROTOCOL['questions'])} questions" in readme
    assert f"{summary.coverage(discreet).split()[0]} % of its printed intervals" in readme
    assert f"only {summary.number(sum(patients) / len(patients))} % for distinct patients" in readme
