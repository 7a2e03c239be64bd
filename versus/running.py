"""Runs the adapters, each in the environment of its tool, and collects scores: what the stored results consist of."""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from bench.peers.running import INSTALLING, NotMeasuredError, environment

HERE = Path(__file__).parent / "tools"
TOOLS_FILE = Path(__file__).with_name("tools.toml")
SECONDS = 1_500  # for one job on a busy machine


def tools():
    """Return the tools by name, without the list of losses."""
    return {name: tool for name, tool in tomllib.loads(TOOLS_FILE.read_text()).items() if name != "losses"}


def losses():
    """Return what Discreet loses, as rows of text."""
    return tomllib.loads(TOOLS_FILE.read_text())["losses"]


def python_of(name, tool):
    """Return the Python of a tool's environment, installed if it is not there."""
    return Path(sys.executable) if not tool["packages"] else environment(f"versus-{name}", tool["packages"])


def run(python, tool, job, seconds=SECONDS):
    """Do a job in a process of its own and return its version and result."""
    with tempfile.TemporaryDirectory() as folder:
        file, words = _prepared(python, tool, job, folder)
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise NotMeasuredError(f"not finished within {seconds:.0f} s") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
            raise NotMeasuredError(last[:160])
        return json.loads(file.read_text())


def kill_and_restart(python, tool, job, seconds=INSTALLING):
    """Let a tool spend a part of its budget, kill it with SIGKILL once it has answered, and ask what is left."""
    with tempfile.TemporaryDirectory() as folder:
        job = {**job, "folder": folder}
        _, words = _prepared(python, tool, {**job, "task": "spend"}, folder)
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            answered = any(line.strip() == "answered" for line in iter(process.stdout.readline, ""))
            process.kill()
        if not answered:
            raise NotMeasuredError("it did not answer")
        return run(python, tool, {**job, "task": "remaining"}, seconds)["result"]


def _prepared(python, tool, job, folder):
    file, result = Path(folder) / "job.json", Path(folder) / "result.json"
    file.write_text(json.dumps({**job, "out": str(result)}))
    return result, [str(python), "-W", "ignore", str(HERE / tool["script"]), str(file)]
