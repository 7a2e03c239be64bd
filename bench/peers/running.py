"""Runs a script of this folder in an environment of its own, made when it is first needed."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PLACE = Path(".peers")
PEERS = {
    "Discreet": ("with_discreet.py", []),
    "OpenDP": ("with_opendp.py", ["opendp[polars]==0.16.*"]),
    "Qrlew": ("with_qrlew.py", ["pyqrlew==0.9.*", "duckdb>=2,<3", "pandas"]),
    "SmartNoise SQL": ("with_smartnoise.py", ["smartnoise-sql==1.0.*", "pyarrow"]),
}
INSTALLING = 600
LEARNERS = {
    "diffprivlib": ("with_diffprivlib.py", ["diffprivlib==0.6.*", "scikit-learn==1.5.2", "numpy<2", "setuptools<80"])
}
# Additive models whose effects can be drawn.
ADDITIVE = {"interpret": ("with_interpret.py", ["interpret-core==0.7.8"])}
# Both hash texts, which xxhash 4 refuses; pure-ldp does not say that it needs scikit-learn and statsmodels.
RANDOMIZERS = {
    "pure-ldp": ("with_pure_ldp.py", ["pure-ldp==1.2.*", "xxhash<4", "scikit-learn", "statsmodels"]),
    "multi-freq-ldpy": ("with_multi_freq_ldpy.py", ["multi-freq-ldpy==0.2.*", "xxhash<4"]),
}
ANONYMISERS = {
    "anonypy": ("with_anonypy.py", ["anonypy==0.2.*", "pandas", "pyarrow"]),
    "pycanon": ("with_pycanon.py", ["pycanon==1.3.*", "pyarrow"]),
}
# ART does not say that it needs packaging.
ATTACKERS = {"ART": ("with_art.py", ["adversarial-robustness-toolbox==1.20.*", "packaging", "scikit-learn>=1.6"])}
# AIM uses pandas and polars with it, and an interface of mbi that its second version lacks.
SYNTHESISERS = {
    "OpenDP AIM": (
        "with_opendp_aim.py",
        ["opendp==0.16.*", "mbi==1.1.*", "polars==1.36.*", "pandas", "pyarrow", "scikit-learn", "randomgen"],
    )
}


class NotMeasuredError(Exception):
    """A peer that could not be installed or did not finish; the text says why."""


def run(peer, folder, rows, times, seconds):
    """Return what a peer's script tells of one table."""
    script, packages = PEERS[peer]
    python = environment(_name(script), packages) if packages else sys.executable
    words = [str(python), str(HERE / script), str(folder), str(rows), str(times)]
    return json.loads(_output(words, seconds).splitlines()[-1])


def run_jobs(peer, jobs, seconds):
    """Return what a peer's script tells of every job in a file."""
    script, packages = (LEARNERS | ADDITIVE | RANDOMIZERS | ANONYMISERS | ATTACKERS | SYNTHESISERS)[peer]
    python = environment(_name(script), packages)
    return json.loads(_output([str(python), str(HERE / script), str(jobs)], seconds).splitlines()[-1])["told"]


def python_output(name, packages, code, *arguments):
    """Return what Python code prints in an environment with these packages."""
    return _output([str(environment(name, packages)), "-c", code, *map(str, arguments)], INSTALLING)


def environment(name, packages):
    """Return the Python of an environment with these packages, made if it is not there."""
    folder = PLACE / name
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        _output([sys.executable, "-m", "venv", str(folder)], INSTALLING)
        _output([str(python), "-m", "pip", "install", "--quiet", *packages], INSTALLING)
        ready.touch()
    return python


def _name(script):
    return Path(script).stem.removeprefix("with_")


def _output(words, seconds):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(f"not finished within {seconds:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise NotMeasuredError(last[:160])
    return done.stdout
