"""The container files: what can be checked without an engine, and the image itself where there is one."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from discreet.cli import app

ROOT = Path(__file__).resolve().parent.parent
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
TEXT = CONTAINERFILE.read_text()
SERVICE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]["discreet"]
INSTRUCTIONS = re.findall(r"^([A-Z]+) (.*)$", TEXT, re.MULTILINE)
EXTRAS = re.compile(r"'(?:\.|discreet)\[([\w,]+)\]'")


def arguments(instruction):
    return [text for name, text in INSTRUCTIONS if name == instruction]


def sources():
    """Return the files and folders of the checkout that are copied into the image."""
    return [word for text in arguments("COPY") if "--from" not in text for word in text.split()[:-1]]


def command():
    (entry,), (words,) = arguments("ENTRYPOINT"), arguments("CMD")
    return [*json.loads(entry), *json.loads(words)]


def options(words):
    return {name: words[words.index(name) + 1] for name in words if name.startswith("--")}


def test_everything_that_is_copied_is_in_the_repository_and_sent_to_the_engine():
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    assert sources() == ["pyproject.toml", "README.md", "LICENSE", "constraints.txt", "src"]
    assert [name for name in sources() if not any(f"{path}/".startswith(f"{name}/") for path in tracked)] == []
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert sent == set(sources())


def test_both_stages_install_the_same_extras_which_exist():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    built, installed = (set(words.split(",")) for words in EXTRAS.findall(TEXT))
    assert built == installed == {"postgres", "server"} <= set(declared)


def test_the_command_is_one_of_ours_and_listens_where_the_image_says():
    program, name, policy, *_ = command()
    serve = typer.main.get_command(app).commands[name]
    assert (program, policy) == ("discreet", "policy.toml")
    parsed = serve.make_context(name, command()[2:], resilient_parsing=False).params
    assert parsed["http"].endswith(f":{arguments('EXPOSE')[0]}")
    assert SERVICE["ports"] == [f"{arguments('EXPOSE')[0]}:{arguments('EXPOSE')[0]}"]
    assert {parsed["tls_cert"].name, parsed["tls_key"].name} == {"cert.pem", "key.pem"}


def test_the_image_runs_without_privileges_and_writes_to_its_volume_only():
    assert INSTRUCTIONS.index(("USER", "discreet")) > max(
        i for i, (name, _) in enumerate(INSTRUCTIONS) if name == "RUN"
    )
    assert arguments("VOLUME") == [arguments("WORKDIR")[-1]] == [SERVICE["volumes"][0].partition(":")[2]]
    assert SERVICE["read_only"] is True
    assert SERVICE["cap_drop"] == ["ALL"]


def test_compose_builds_this_file():
    context = (ROOT / "deploy" / SERVICE["build"]["context"]).resolve()
    assert context / SERVICE["build"]["dockerfile"] == CONTAINERFILE


@pytest.mark.long
def test_the_copied_files_make_a_wheel(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in sources():
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert len(list(tmp_path.glob("discreet-*.whl"))) == 1


@pytest.mark.slow
def test_the_image_is_built_and_starts():
    engine = shutil.which("docker") or shutil.which("podman")
    if engine is None or subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no container engine is running on this machine")
    build = [engine, "build", "--quiet", "--file", CONTAINERFILE, ROOT]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    run = [engine, "run", "--rm", "--read-only", built.stdout.strip(), "--version"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.startswith("discreet ")
