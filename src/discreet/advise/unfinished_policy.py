"""Read a policy whose contribution bounds and ranges are still to be filled in."""

from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError
from discreet.policy import Policy
from discreet.policy.problems import find_placeholders
from discreet.policy.toml import parse_toml, read_policy_text


def load_unfinished(file: Path) -> Policy:
    """Read a policy file; `groups`, `rows` and `between` that are FILL IN count as missing.

    All other values must be there: the errors are those of `Policy.load`.
    """
    values = parse_toml(read_policy_text(file), str(file))
    if not _drop_placeholders(values):
        return Policy.load(file)
    try:
        return Policy.from_dict(values, file.parent, name=str(file))
    except PolicyError:
        Policy.load(file)  # which names the lines
        raise


def _drop_placeholders(values: dict[str, Any]) -> bool:
    """Remove what advice chooses, where it is to be filled in; return whether anything was."""
    tables = _sections(values.get("tables"))
    dropped = [_drop(table, key) for table in tables for key in ("groups", "rows")]
    dropped += [_drop(column, "between") for table in tables for column in _sections(table.get("columns"))]
    return any(dropped)


def _drop(section: dict[str, Any], key: str) -> bool:
    if key in section and any(find_placeholders({key: section[key]})):
        del section[key]
        return True
    return False


def _sections(value: object) -> list[dict[str, Any]]:
    return [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []
