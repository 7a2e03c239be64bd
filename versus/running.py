"""Runs the adapters, each in the environment of its tool, and collects scores: what the stored results consist of."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path

from bench.peers.running import INSTALLING, NotMeasuredError, environment

HERE = Path(__file__).parent / "tools"
TOOLS_FILE = Path(__file__).with_name("tools.toml")
SECONDS = 4 * 3600  # for one job, on however busy a machine


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
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise NotMeasuredError(f"not finished within {seconds:.0f} s") from None
        finally:
            _end_group(process)
        if process.returncode:
            last = (errors.strip().splitlines() or [f"ended with {process.returncode}"])[-1]
            raise NotMeasuredError(last[:160])
        return json.loads(file.read_text())


def kill_and_restart(python, tool, job, seconds=INSTALLING):
    """Let a tool spend a part of its budget, kill it with SIGKILL once it has answered, and ask what is left."""
    with tempfile.TemporaryDirectory() as folder:
        job = {**job, "folder": folder}
        _, words = _prepared(python, tool, {**job, "task": "spend"}, folder)
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        ) as process:
            assert process.stdout is not None
            answered = any(line.strip() == "answered" for line in iter(process.stdout.readline, ""))
            _end_group(process)
        if not answered:
            raise NotMeasuredError("it did not answer")
        return run(python, tool, {**job, "task": "remaining"}, seconds)["result"]


def _end_group(process):
    """Kill a process and all that it started, such as the server of a tool that needs one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _prepared(python, tool, job, folder):
    file, result = Path(folder) / "job.json", Path(folder) / "result.json"
    file.write_text(json.dumps({**job, "out": str(result)}))
    return result, [str(python), "-W", "ignore", str(HERE / tool["script"]), str(file)]
