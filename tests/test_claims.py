"""The checker of claims, on a small kernel of its own. `make check` runs it on the real one."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_spec = importlib.util.spec_from_file_location("claims_tool", ROOT / "tools" / "claims.py")
claims = importlib.util.module_from_spec(_spec)
sys.modules["claims_tool"] = claims
_spec.loader.exec_module(claims)


MODULE = '''"""Noise that promises something."""

from typing import Protocol

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
    return scale * _WIDTH


class Noise:
    def perturb(self, value):
        """Add noise.

        Claim: the law of the output is that of the noise, moved by the value.
        Proof: nothing else is read.
        Needs: loss.
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
TESTS = "def test_loss(): ...\n\n\nclass TestNoise:\n    def test_perturb(self): ...\n"


@pytest.fixture
def project(tmp_path):
    kernel = tmp_path / "src" / "discreet" / "kernel"
    kernel.mkdir(parents=True)
    (kernel / "noise.py").write_text(MODULE)
    (kernel / "alpha.py").write_text("from discreet.kernel.noise import loss\n" + MODULE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_noise.py").write_text(TESTS)
    claims.seal(tmp_path)
    claims.main(["proofs"], tmp_path)
    return tmp_path


def change(root, old, new, file="src/discreet/kernel/noise.py"):
    path = root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def problems_about(root, start):
    return [problem for problem in claims.problems(root) if problem.startswith(start)]


def test_a_sealed_project_has_no_problems(project, capsys):
    assert claims.problems(project) == []
    assert claims.main(["check"], project) == 0


@pytest.mark.parametrize(
    ("old", "new", "broken"),
    [
        ("+ 1  #", "+ 2  #", "kernel.noise.loss"),
        ("scale: int)", "scale: int = 1)", "kernel.noise.loss"),
        ("scale * _WIDTH", "scale - _WIDTH", "kernel.noise.loss"),
        ("_WIDTH = 8", "_WIDTH = 9", "kernel.noise.loss"),
        ("_WIDTH = 8", "_WIDTH = 8.0", "kernel.noise.loss"),
        ("value + len", "value - len", "kernel.noise.Noise.perturb"),
        (":.3g", ":.4g", "kernel.noise.Noise.perturb"),
        ("return 7", "return 8", "kernel.noise.Noise.perturb"),
    ],
)
def test_a_changed_constant_property_or_helper_breaks_the_seal(project, capsys, old, new, broken):
    change(project, old, new)
    found = problems_about(project, "kernel")
    assert found == [f"{broken}: {claims.RESEAL.format(broken)}"]
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
def test_comments_docstrings_layout_and_strangers_leave_the_seal(project, old, new):
    change(project, old, new)
    assert problems_about(project, "kernel") == []


def test_a_missing_test_is_found(project):
    change(project, "test_loss", "test_other", "tests/test_noise.py")
    assert "kernel.noise.loss: is checked by test_loss, which does not exist" in claims.problems(project)


@pytest.mark.parametrize("block", ["Proof", "Needs", "Checked by"])
def test_a_missing_block_is_found(project, block):
    change(project, f"    {block}:", f"    {block.upper()}:")
    assert f"kernel.noise.loss: has no {block}" in claims.problems(project)


def test_an_empty_or_doubled_block_is_found(project):
    change(project, "Proof: by the triangle inequality.", "Proof:")
    change(project, "Proof: nothing else is read.", "Proof: nothing.\n        Proof: else.")
    found = claims.problems(project)
    assert "kernel.noise.loss: has no Proof" in found
    assert "kernel.noise.Noise.perturb: has a second Proof" in found


def test_a_promise_without_a_claim_is_found(project):
    change(project, "_UNUSED = 1", "_UNUSED = 1\n\n\ndef laplace_for(scale):\n    return scale")
    assert [problem.split(":")[0] for problem in problems_about(project, "kernel")] == ["kernel.noise.laplace_for"]


def test_an_indented_claim_is_not_overlooked(project):
    change(project, "    Claim: the loss", "        Claim: the loss")
    assert "kernel.noise.loss: has no Claim" in claims.problems(project)
    assert claims.seal(project) == []


def test_a_stale_page_is_found(project):
    change(project, "triangle", "square")
    assert claims.problems(project) == ["docs/proofs.md: is out of date; run `python tools/claims.py proofs`"]


def test_only_the_named_seals_are_renewed(project, capsys):
    change(project, "+ 1  #", "+ 2  #")
    change(project, "value + len", "value - len")
    assert claims.main(["seal", "kernel.noise.loss"], project) == 0
    assert capsys.readouterr().out.split() == ["kernel.noise.loss"]
    assert [problem.split(":")[0] for problem in problems_about(project, "kernel")] == ["kernel.noise.Noise.perturb"]
    with pytest.raises(ValueError, match=r"no such claim: kernel\.noise\.gone"):
        claims.seal(project, ("kernel.noise.gone",))
    assert claims.main(["seal", "kernel.noise.gone"], project) == 2


def test_a_new_seal_stands_at_the_end_of_the_blocks_and_changes_nothing_else(project):
    text = (project / "src/discreet/kernel/noise.py").read_text()
    first, second = re.findall(r"Seal: [0-9a-f]{12}", text)
    assert f"    Checked by: test_loss\n    {first}\n\n    >>> loss(1)" in text
    assert f'        Checked by: test_perturb\n        {second}\n        """\n' in text
    restored = text.replace(f"    {first}\n", "", 1).replace(f'\n        {second}\n        """', '"""')
    assert restored == MODULE
    assert claims.seal(project) == []


def test_the_page_follows_the_imports_and_is_the_same_every_time(project):
    page = (project / "docs" / "proofs.md").read_text()
    assert page.index("## kernel.noise") < page.index("## kernel.alpha")
    assert "### `loss(scale: int) -> int`" in page
    assert "**Claim.** the loss is at most the returned number, for every scale." in page
    copy = project / "copy"
    shutil.copytree(project / "src", copy / "src")
    assert claims.proofs(copy) == page


def test_wrong_usage_prints_the_commands(capsys):
    assert claims.main([]) == 2
    assert "claims.py check" in capsys.readouterr().out
