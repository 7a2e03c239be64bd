"""The examples run from top to bottom, in a folder of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from servers.spark import no_sail, sail

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


def run_example(path, folder, **environment):
    settings = os.environ | {"MPLBACKEND": "agg"} | environment
    done = subprocess.run([sys.executable, path], cwd=folder, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem != "spark"], ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    assert len(run_example(path, tmp_path).splitlines()) >= 4


@pytest.mark.long
@pytest.mark.skipif(bool(no_sail()), reason=no_sail() or "")
def test_the_example_on_spark_runs_on_a_server(tmp_path):
    with sail() as server:
        printed = run_example(EXAMPLES[0].with_name("spark.py"), tmp_path, SPARK_REMOTE=server.url)
    assert re.search(r"north +[\d,]+ ± ", printed)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_notebook_in_the_percent_format(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    assert text.count("\n# %%") >= 3
