"""The pages on serving and on asking a server name every option, path and error, and their commands work."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
import typer

from discreet.cli import app
from discreet.policy import Policy
from discreet.policy.entries import ServerEntry
from discreet.server.http.app import create_app
from discreet.server.http.problem_details import _STATUS
from discreet.server.people import Role
from discreet.server.service import Service

ROOT = Path(__file__).parents[2]
SERVING, ANALYSTS = ((ROOT / "docs" / name).read_text() for name in ("serving.md", "analysts.md"))
VALUES = {
    "data": {"name": "v", "ledger": ":memory:"},
    "budget": {"epsilon": 1},
    "tables": {"v": {"source": "v", "unit": "row", "columns": {"a": {"type": "integer"}}}},
}


@pytest.fixture(scope="module")
def paths():
    with Service.open(Policy.from_dict(VALUES), data={"v": pa.table({"a": [1]})}) as service:
        return create_app(service, ()).openapi()["paths"]


def test_every_option_of_the_commands_is_on_the_page():
    commands = typer.main.get_command(app).commands
    found = [*commands["serve"].params, *(p for each in commands["analyst"].commands.values() for p in each.params)]
    options = {word for param in found for word in param.opts if word.startswith("--")} - {"--help"}
    assert {option for option in options if option not in SERVING} == set()


def test_every_setting_and_role_is_on_the_page():
    (settings,) = re.findall(r"```toml\n\[server\]\n(.*?)```", SERVING, re.DOTALL)
    assert re.findall(r"^(\w+) =", settings, re.MULTILINE) == list(ServerEntry.model_fields)
    Policy.from_dict({**VALUES, "server": {"tick": 0.25, "purpose": "required", "approval_above": 0.5}})
    assert all(f"| `{role.value}` |" in SERVING for role in Role)


def test_every_path_is_on_the_page_and_no_other(paths):
    stems = {re.sub(r"/\{.*", "", path) for path in paths}
    named = {path.rstrip("/") for path in re.findall(r"(?:GET|POST) (/[\w/]+)", SERVING)}
    assert {re.sub(r"/ID.*", "", path) for path in named} == stems
    assert set(re.findall(r"\$URL(/api/v1/\w+)", ANALYSTS)) <= set(paths)


def test_every_error_is_on_the_page_with_its_status():
    rows = re.findall(r"^\| (\d{3}(?:, \d{3})?) \| (.*?) \|", SERVING, re.MULTILINE)
    kinds = [(codes.split(", "), re.findall(r"`([a-z-]+)`", text)) for codes, text in rows]
    shown = {(code, kind) for codes, named in kinds for code in codes for kind in named}
    assert {(str(status), kind) for kind, status in _STATUS.items()} - shown == {("404", "not-found")}
