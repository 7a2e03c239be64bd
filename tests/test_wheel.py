"""The wheel: what is built from the tree works in an environment of its own."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
SESSION = """
import discreet as dc, pyarrow as pa, pathlib
visits = pa.table({"patient": [1, 1, 2], "ward": ["A", "B", "A"]})
declared = {"unit": "patient", "columns": {"ward": ["A", "B"]}, "groups": 1, "rows": 1}
with dc.open(visits, budget=1, ledger=":memory:", **declared) as curator:
    print(curator.ask("SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", epsilon=1).frame.num_rows, dc.__file__)
"""


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_wheel_has_every_file_of_the_package_and_works_in_a_fresh_environment(tmp_path):
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("discreet-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("discreet/")}
    tracked = run("git", "-C", ROOT, "ls-files", "src/discreet").split()
    assert {name.removeprefix("src/") for name in tracked} <= packed

    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=True)
    python = fresh / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel)
    folder = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # The dependencies are those of this environment; its own editable copy of the package is not on this path.
    (folder / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    rows, place = run(python, "-c", SESSION).split()
    assert (rows, Path(place).is_relative_to(fresh)) == ("2", True)
    assert run(fresh / "bin" / "discreet", "--version").startswith("discreet ")
