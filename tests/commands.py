"""Run commands, in this process or in a new one."""

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys

from typer.testing import CliRunner

from discreet.cli import app

TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}


def run(*words, cwd, text=True, **more):
    """Run a command in this process, because starting one takes half a second."""
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(app, list(map(str, words)), env=TERMINAL, **more)
    outputs = (done.stdout, done.stderr) if text else (done.stdout_bytes, done.stderr_bytes)
    return subprocess.CompletedProcess(words, done.exit_code, *outputs)


def run_process(*words, cwd, **more):
    """Run a command in a new process, as a shell does."""
    command = [sys.executable, "-c", "from discreet.cli import app; app()", *map(str, words)]
    environment = {**os.environ, **TERMINAL}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more)


def check_commands(text, folder):
    """Run the commands after a $ in a block of a page, and compare what they print; `...` stands for anything."""
    for command, expected in re.findall(r"^\$ discreet (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        done = run(*shlex.split(command), cwd=folder)
        assert done.returncode == 0, done.stderr
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, done.stdout, flags), done.stdout
