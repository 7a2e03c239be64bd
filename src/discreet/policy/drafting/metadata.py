"""Metadata of other programs: what they say about tables, as sketches."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.csvw import is_csvw, read_csvw
from discreet.policy.drafting.plain_yaml import read_yaml
from discreet.policy.drafting.sketch import TableSketch
from discreet.policy.drafting.smartnoise import read_smartnoise
from discreet.policy.toml import Real

_LARGEST = 10_000_000  # bytes


def read_metadata(file: Path) -> tuple[str | None, Sequence[TableSketch]]:
    """Read metadata of SmartNoise (YAML, or the same as JSON) or CSV on the Web (JSON): a name, and tables."""
    text = _text(file)
    try:
        values = _json(text) if text.lstrip().startswith("{") else read_yaml(text)
    except ValueError as error:
        words = f"line {error.lineno}: not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
        raise PolicyError(f"{file}: {words}. Correct it, or write the policy by hand.") from None
    except RecursionError:
        raise PolicyError(f"{file}: nested too deeply. Write the policy by hand.") from None
    try:
        return read_csvw(values, file.parent) if is_csvw(values) else read_smartnoise(values)
    except ValueError as error:
        raise PolicyError(
            f"{file}: {error}. Give metadata of SmartNoise (collection, schema, table, columns) or of CSV on the Web "
            "(tableSchema with columns)."
        ) from None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise PolicyError(f"{file}: larger than 10 MB. Metadata are smaller; give their file.")
        return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise PolicyError(f"{file}: cannot be read ({why}). Give a file of metadata in YAML or JSON.") from None


def _json(text: str) -> Any:
    return json.loads(text, parse_float=Real, parse_constant=_no_number)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")
