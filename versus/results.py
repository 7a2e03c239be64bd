"""The stored results: one JSON file beside the code, from which the page can be written again without measuring."""

import json
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
FILE = HERE / "results.json"
PAGE = HERE.parent / "docs" / "versus.md"
FIXED_BEFOREHAND = ("protocol.toml", "hospital.py", "scoring.py")  # what a result depends on, beside the tools


def file_hashes():
    """Return the hash of every file that was fixed before the results."""
    return {name: sha256((HERE / name).read_bytes()).hexdigest() for name in FIXED_BEFOREHAND}


def load():
    """Return the stored results, or None."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else None


def put(place, value):
    """Put what was measured in its place; results that were measured under another protocol are dropped."""
    found = load()
    if found is None or found["fixed"] != file_hashes():
        found = {"fixed": file_hashes(), "tools": {}, "tampering": {}}
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    store(found)


def store(found):
    """Write results with one line for each publication of a tool."""
    tools = []
    for name, tool in found["tools"].items():
        rest = json.dumps({key: value for key, value in tool.items() if key != "publications"})
        if "publications" in tool:
            publications = ",\n".join(map(json.dumps, tool["publications"]))
            rest = f'{{"publications": [\n{publications}\n],\n{rest[1:]}'
        tools.append(f'"{name}": {rest}')
    listed = ",\n".join(tools)
    rest = json.dumps({key: value for key, value in found.items() if key != "tools"})
    FILE.write_text(f'{{"tools": {{\n{listed}\n}},\n{rest[1:]}\n', encoding="utf-8")
