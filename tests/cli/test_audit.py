"""discreet audit, as an owner runs it."""

import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from discreet.audit.policy import audit, neighbouring_databases
from discreet.audit.policy.result import CheckResult, Finding, PolicyAudit, RefusedQuery, report_html
from discreet.cli import app
from discreet.kernel import mechanism, noise
from discreet.kernel.mechanism import Laplace

POLICY = """
[data]
name = "clinic"
protects = "patient"
[budget]
epsilon = 2
[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
street = { type = "text" }
"""


@pytest.fixture(autouse=True)
def few_places(monkeypatch):
    places = tuple(place for place in neighbouring_databases.PLACEMENTS if "too" in place.name or place.alone)
    monkeypatch.setattr(neighbouring_databases, "PLACEMENTS", places)
    monkeypatch.setattr(audit, "error_prone_queries", lambda *_: [])


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "policy.toml"


def run(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)], env={"COLUMNS": "100", "NO_COLOR": "1"})


SURE = ("--confidence", 1 - 1e-9, "--runs", 100)


@pytest.mark.long
def test_a_sound_curator_exits_with_0_a_table_and_a_page(policy, tmp_path):
    done = run(policy, *SURE, "--html", tmp_path / "audit.html")
    assert done.exit_code == 0, done.output
    assert re.search(r"visits: COUNT\(\*\) +ε 1 +(ε ≥ \S+|none above 0) +100 % +not refuted\n", done.output)
    assert "Refused by the policy, so not audited: visits: COUNT(*) by street" in done.output
    assert "claims was refuted" in done.output
    assert "never prove it" in done.stdout.splitlines()[-1]
    assert "running queries: 5 of 5\n" in done.stderr  # progress: plain lines where there is no terminal
    assert "visits: COUNT(*)" in (tmp_path / "audit.html").read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.html", "policy.toml"]


@pytest.mark.long
def test_half_the_noise_exits_with_1_and_is_named(policy, monkeypatch, tmp_path):
    def perturb(self, values):
        scale = self.scale / 2
        return mechanism.add_noise(values, noise.laplace_sampler(scale.numerator, scale.denominator))

    monkeypatch.setattr(Laplace, "perturb", perturb)
    done = run(
        policy, "--runs", 2500, "--confidence", 1 - 1e-9, "--only", "distinct patient", "--html", tmp_path / "a.html"
    )
    assert done.exit_code == 1, done.output
    assert "REFUTED" in done.output
    assert "claims refuted: visits: COUNT(DISTINCT patient)." in done.output
    assert '<td class="bad">REFUTED</td>' in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--runs", 10), "--runs"),
        (("--epsilon", "0"), "--epsilon"),
        (("--confidence", 1.5), "--confidence"),
        (("--only", "MAXIMUM"), "no audit has 'MAXIMUM' in its name. Available: visits: COUNT(*)"),
        (("--html", "audit.pdf"), "--html: the file name must end in .html"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_hint(policy, words, message):
    done = run(policy, *words)
    assert done.exit_code == 2
    assert message in done.output


def test_an_existing_page_is_overwritten_only_with_force(policy, tmp_path):
    (tmp_path / "audit.html").write_text("mine")
    done = run(policy, *SURE, "--html", tmp_path / "audit.html")
    assert done.exit_code == 2
    assert (tmp_path / "audit.html").read_text() == "mine"


def test_a_wrong_or_missing_policy_exits_with_2(tmp_path):
    assert run(tmp_path / "none.toml").exit_code == 2
    (tmp_path / "policy.toml").write_text("[data]")
    assert run(tmp_path / "policy.toml").exit_code == 2


def test_the_help_says_what_is_opened_and_what_the_exit_codes_mean():
    said = " ".join(run("--help").output.split())
    for words in ("data and its ledger are not opened", "0 no claim refuted", "1 a claim is refuted", "cannot prove"):
        assert words in said.replace("│ ", "").replace(" │", "")


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


def test_the_page_runs_nothing_fetches_nothing_and_escapes_every_name():
    evil = "<script>alert(1)</script>\x1b[31m\" onload='x'"
    finding = Finding(evil, evil, evil, "epsilon", 1.0, 0.0, 2.5, 1.0, evil)
    made = report_html(
        PolicyAudit(
            evil,
            evil,
            100,
            0.95,
            (finding,),
            (CheckResult(evil, holds=False, coverage=evil),),
            (RefusedQuery(evil, evil),),
        )
    )
    seen = _Page()
    seen.feed(made)
    assert "script" not in seen.tags
    assert not [name for name, value in seen.attributes if name.startswith("on") or name in ("src", "href")]
    assert "default-src 'none'" in made
    assert "\x1b" not in made


def test_the_page_draws_a_bar_for_each_finding_and_a_line_for_the_claim():
    findings = tuple(Finding(f"t: {low}", "SELECT", "here", "rho", 0.5, 0.0, low, 1.0, "it") for low in (0.0, 0.4, 9.0))
    made = report_html(PolicyAudit("clinic", "patient", 100, 0.95, findings, (), ()))
    assert made.count("<rect") == 3
    assert "ρ ≥ 0<" not in made  # noqa: RUF001 - rho
    assert "none above 0: the sample size (100 runs" in made
    assert made.count("<line") == 1
    assert made.count('#b5302c"/>') == 1
