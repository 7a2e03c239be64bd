"""The checker of claims, on a small trusted base of its own. `make check` runs it on the real one."""

import json
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import claims  # noqa: E402

NOISE = '''"""Noise that promises something."""

from typing import Protocol

from discreet.kernel.numbers import round_up, round_down

_WIDTH = 8
_UNUSED = 1


def loss(scale: int) -> int:
    """Return what the noise costs.

    Claim: the loss is at most the returned number,
        for every scale.
    Proof: by the triangle inequality.
    Needs: nothing.
    Checked by: test_loss

    >>> loss(1)
    9
    """
    return _helper(scale) + 1  # never zero


def _helper(scale):
    return round_up(scale) * _WIDTH


class Noise:
    step: int = 1

    def perturb(self, value):
        """Add noise.

        Claim: the distribution of the output is that of the noise, moved by the value.
        Proof: nothing else is read.
        Needs: loss; `source` is a keystream.
        Checked by: test_perturb"""
        return self._move(value, f"{value:.3g}")

    def _move(self, value, text):
        return value + len(text) * self.width

    @property
    def width(self):
        return 7

    @property
    def unread(self):
        return 5


class Mechanism(Protocol):
    def perturb(self, value): ...
'''
NUMBERS = "def round_up(x):\n    return x + 2\n\n\ndef round_down(x):\n    return x - 2\n"
ALPHA = '''"""It comes before the noise in the alphabet, and after it in the page."""

from discreet.kernel.noise import Noise


def draw(noise: Noise):
    """Draw.

    Claim: it draws.
    Proof: it perturbs.
    Needs: Noise.perturb.
    Checked by: test_draw
    """
    return noise.perturb(0)


def show(value):
    return str(value)
'''
SURVEY = '''"""The local model."""

from discreet.kernel.noise import loss


def perturb(value, mechanism):
    """Randomise.

    Claim: it is random.
    Proof: by loss.
    Needs: loss.
    Checked by: test_perturb
    """
    return mechanism.perturb(value) + loss(1)


class Scheme:
    def perturb(self, value):
        """Randomise.

        Claim: it is random.
        Proof: it adds 1.
        Needs: nothing.
        Checked by: test_perturb
        """
        return value + 1
'''
TESTS = "def test_loss(): ...\ndef test_draw(): ...\n\n\nclass TestNoise:\n    def test_perturb(self): ...\n"
LOSS, PERTURB, DRAW = "kernel.noise.loss", "kernel.noise.Noise.perturb", "kernel.alpha.draw"
SURVEYED, SCHEME = "local.survey.perturb", "local.survey.Scheme.perturb"
ON_LOSS = [DRAW, PERTURB, LOSS, SURVEYED]


@pytest.fixture
def project(tmp_path):
    files = {"kernel/noise": NOISE, "kernel/numbers": NUMBERS, "kernel/alpha": ALPHA, "local/survey": SURVEY}
    for name, text in files.items():
        path = tmp_path / "src" / "discreet" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_noise.py").write_text(TESTS)
    claims.seal(tmp_path)
    claims.main(["proofs"], tmp_path)
    return tmp_path


def change(root, old, new, file="kernel/noise"):
    path = root / "src" / "discreet" / f"{file}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def to_read(root):
    """Return what has changed, each with the claims to read again."""
    found = [line.split(": re-read ") for line in claims.problems(root) if ": re-read " in line]
    return {word: names.split(", ") for word, names in found}


def test_a_sealed_project_has_no_problems(project, capsys):
    assert claims.problems(project) == []
    assert claims.main(["check"], project) == 0
    assert "0 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "edit", "changed", "broken"),
    [
        ("noise", ("+ 1  #", "+ 2  #"), LOSS, ON_LOSS),
        ("noise", ("scale: int)", "scale: int = 1)"), LOSS, ON_LOSS),
        ("noise", ("scale) * _WIDTH", "scale) - _WIDTH"), "kernel.noise._helper", ON_LOSS),
        ("noise", ("_WIDTH = 8", "_WIDTH = 9"), "kernel.noise._WIDTH", ON_LOSS),
        ("noise", ("_WIDTH = 8", "_WIDTH = 8.0"), "kernel.noise._WIDTH", ON_LOSS),
        ("numbers", ("x + 2", "x + 3"), "kernel.numbers.round_up", ON_LOSS),
        ("noise", ("value + len", "value - len"), "kernel.noise.Noise._move", [DRAW, PERTURB, SURVEYED]),
        ("noise", (":.3g", ":.4g"), PERTURB, [DRAW, PERTURB, SURVEYED]),
        ("noise", ("return 7", "return 8"), "kernel.noise.Noise.width", [DRAW, PERTURB, SURVEYED]),
        ("noise", ("step: int = 1", "step: int = 2"), "kernel.noise.Noise", [DRAW, PERTURB, SURVEYED]),
        ("alpha", ("perturb(0)", "perturb(1)"), DRAW, [DRAW]),
    ],
)
def test_a_change_names_what_changed_and_every_claim_that_rests_on_it(project, file, edit, changed, broken):
    change(project, *edit, f"kernel/{file}")
    assert to_read(project) == {f"{changed} changed": sorted(broken)}
    assert claims.main(["check"], project) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # never zero", "  # at least one"),
        ("triangle inequality", "theorem of Pythagoras"),
        ("_helper(scale) + 1", "(\n        _helper( scale )\n        + 1\n    )"),
        ('f"{value:.3g}"', '(f"" f"{value:.3g}")'),
        ("def _helper(scale):", 'def _helper(scale):\n    """Multiply."""'),
        ("_UNUSED = 1", "_UNUSED = 2"),
        ("return 5", "return 6"),
    ],
)
def test_comments_docstrings_layout_and_unused_code_leave_the_seals(project, old, new):
    change(project, old, new)
    assert to_read(project) == {}


def test_the_trusted_base_does_not_rest_on_the_local_model(project):
    change(project, "value + 1", "value + 2", "local/survey")
    assert to_read(project) == {f"{SCHEME} changed": sorted([SCHEME, SURVEYED])}


def test_a_special_method_belongs_to_every_use_of_its_class(project):
    change(project, "class Noise:", "class Noise:\n    def __post_init__(self):\n        return 1\n\n")
    assert to_read(project) == {"kernel.noise.Noise.__post_init__ is newly used": sorted([DRAW, PERTURB, SURVEYED])}


def test_an_import_under_another_name_is_a_change(project):
    change(project, "import round_up, round_down", "import round_down as round_up")
    used = "kernel.numbers.round_down is newly used"
    assert to_read(project) == {"kernel.noise._helper changed": sorted(ON_LOSS), used: sorted(ON_LOSS)}


def test_code_that_goes_away_and_needs_that_change_are_named(project):
    change(project, "Needs: Noise.perturb.", "Needs: Noise.perturb, show.", "kernel/alpha")
    assert to_read(project) == {"kernel.alpha.show is newly used": [DRAW]}
    claims.seal(project)
    change(project, "def show(value):\n    return str(value)\n", "", "kernel/alpha")
    found = claims.problems(project)
    assert f"{DRAW}: Needs names show, which does not exist" in found
    assert to_read(project) == {"kernel.alpha.show is gone": [DRAW]}


def test_code_that_is_no_longer_reached_because_it_changed_is_named(project):
    method = "    def _move(self, value, text):\n"
    change(project, method, f"    def open(self):\n        self.state = 1\n\n{method}        value += self.state\n")
    claims.seal(project)
    change(project, "self.state = 1", "return None")
    assert to_read(project) == {"kernel.noise.Noise.open changed": sorted([DRAW, PERTURB, SURVEYED])}


def test_statements_that_define_nothing_are_part_of_all_code_of_their_module(project):
    change(project, "def round_down", "round_up.cache = {}\nprint(round_up)\n\n\ndef round_down", "kernel/numbers")
    assert to_read(project) == {"kernel.numbers.<startup> is newly used": sorted(ON_LOSS)}


def test_a_claim_that_is_new_or_gone_is_found(project):
    change(project, "Claim: it draws", "It draws", "kernel/alpha")
    assert f"{DRAW}: claims nothing any more" in claims.problems(project)
    change(project, "It draws", "Claim: it draws", "kernel/alpha")
    change(project, "def show(value):", 'def show(value):\n    """Claim: it shows."""', "kernel/alpha")
    assert "not sealed yet: read kernel.alpha.show" in claims.problems(project)


def test_a_missing_test_is_found(project):
    (project / "tests" / "test_noise.py").write_text(TESTS.replace("test_loss", "test_other"))
    assert f"{LOSS}: is checked by test_loss, which does not exist" in claims.problems(project)


@pytest.mark.parametrize("block", ["Proof", "Needs", "Checked by"])
def test_a_missing_block_is_found(project, block):
    change(project, f"    {block}:", f"    {block.upper()}:")
    assert f"{LOSS}: has no {block}" in claims.problems(project)


def test_an_empty_or_doubled_block_and_an_old_seal_are_found(project):
    change(project, "Proof: by the triangle inequality.", "Proof:")
    change(project, "Proof: nothing else is read.", "Proof: nothing.\n        Proof: else.")
    change(project, "Proof: it perturbs.", "Proof: it perturbs.\n    Seal: 0123456789ab", "kernel/alpha")
    found = claims.problems(project)
    assert f"{LOSS}: has no Proof" in found
    assert f"{PERTURB}: has a second Proof" in found
    assert [line for line in found if line.startswith(f"{DRAW}: has a Seal")]


def test_a_function_that_must_make_a_claim_is_found(project):
    change(project, "_UNUSED = 1", "_UNUSED = 1\n\n\ndef laplace_for(scale):\n    return scale")
    promise = "kernel.noise.laplace_for: promises something about privacy by its name and has no Claim"
    assert claims.problems(project) == [promise]


def test_an_indented_claim_is_not_overlooked(project):
    change(project, "    Claim: the loss", "        Claim: the loss")
    assert f"{LOSS}: has no Claim" in claims.problems(project)


@pytest.mark.parametrize(
    ("needs", "unknown"),
    [
        ("nothing", []),
        ("Noise.perturb, round_up, kernel.numbers.round_up, numbers.round_down", []),
        ("step; the noise is wide", []),
        ("Noise.width, perturb; AES is a pseudo-random permutation, atomic and durable", []),
        ("os.urandom; `scale` and `statement_timeout` are as they were, e.g. large", []),
        ("the engine numbers rows, which round_up ensures; local.survey.Scheme", []),
        ("rounded_up", ["rounded_up"]),
        ("Noise.perturbs", ["Noise.perturbs"]),
        ("refien, round_up", ["refien"]),
        ("what round_sideways ensures", ["round_sideways"]),
        ("kernel.noise.gone", ["kernel.noise.gone"]),
    ],
)
def test_needs_must_name_what_exists(project, needs, unknown):
    change(project, "Needs: nothing.", f"Needs: {needs}.")
    found = [line for line in claims.problems(project) if "which does not exist" in line]
    assert found == [f"{LOSS}: Needs names {word}, which does not exist" for word in unknown]


def test_used_claims_that_needs_omits_are_counted_and_listed(project, capsys):
    change(project, "Needs: loss.", "Needs: nothing.", "local/survey")
    claims.seal(project)
    assert claims.main(["needs"], project) == 0
    assert capsys.readouterr().out == f"{SURVEYED}: {PERTURB}, {LOSS}, {SCHEME}\n"
    claims.main(["proofs"], project)
    assert claims.main(["check"], project) == 0  # a hint, not a failure
    assert "1 claims use others" in capsys.readouterr().out


def test_exempt_code_must_exist_and_no_claim_may_rest_on_it(project, capsys):
    assert claims.main(["unreached"], project) == 0
    unreached = ["kernel.alpha.show", "kernel.noise.Noise.unread", "kernel.noise._UNUSED", "kernel.numbers.round_down"]
    assert capsys.readouterr().out.split() == unreached
    names = '["kernel.alpha.show", "kernel.alpha.gone", "kernel.noise._helper"]'
    (project / "tools" / "unsealed.toml").write_text(f'[[unsealed]]\nnames = {names}\nreason = "It only displays."\n')
    assert claims.problems(project) == [
        "tools/unsealed.toml: kernel.alpha.gone does not exist",
        "tools/unsealed.toml: a claim rests on kernel.noise._helper; remove the entry",
    ]
    claims.main(["unreached"], project)
    assert "kernel.alpha.show" not in capsys.readouterr().out


def test_a_stale_page_is_found(project):
    change(project, "triangle", "square")
    assert claims.problems(project) == ["docs/proofs.md: is out of date; run `python tools/claims.py proofs`"]


def test_only_the_named_seals_are_renewed_and_the_change_stays_named_for_the_others(project, capsys):
    change(project, "+ 1  #", "+ 2  #")
    assert claims.main(["seal", LOSS, PERTURB], project) == 0
    assert capsys.readouterr().out.split() == sorted([LOSS, PERTURB])
    assert to_read(project) == {f"{LOSS} changed": [DRAW, SURVEYED]}
    assert claims.main(["seal", DRAW, SURVEYED], project) == 0
    assert claims.problems(project) == []
    again = json.loads((project / "tools" / "seals.json").read_text())
    claims.main(["seal", "--all"], project)
    assert json.loads((project / "tools" / "seals.json").read_text()) == again


def test_seals_are_renewed_by_name_or_all_of_them_on_purpose(project, capsys):
    with pytest.raises(ValueError, match=r"no such claim: kernel\.noise\.gone"):
        claims.seal(project, ("kernel.noise.gone",))
    assert claims.main(["seal", "kernel.noise.gone"], project) == 2
    assert claims.main(["seal"], project) == 2
    change(project, "Claim: it draws", "It draws", "kernel/alpha")
    assert claims.main(["seal", DRAW], project) == 0
    assert to_read(project) == {}
    assert DRAW not in json.loads((project / "tools" / "seals.json").read_text())["claims"]


def test_seals_are_the_same_on_every_version_of_python(project):
    sealed = json.loads((project / "tools" / "seals.json").read_text())
    assert sealed["claims"][PERTURB] == "66e43a33119a"


def test_the_page_follows_the_imports_and_is_the_same_every_time(project):
    page = (project / "docs" / "proofs.md").read_text()
    assert page.index("## kernel.noise") < page.index("## kernel.alpha") < page.index("## local.survey")
    assert "### `loss(scale: int) -> int`" in page
    assert "**Claim.** the loss is at most the returned number, for every scale." in page
    copy = project / "copy"
    shutil.copytree(project / "src", copy / "src")
    assert claims.proofs(copy) == page


def test_wrong_usage_prints_the_commands(capsys):
    assert claims.main([]) == 2
    assert "claims.py check" in capsys.readouterr().out
