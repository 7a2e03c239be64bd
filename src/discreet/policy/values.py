"""Single values of the file: exact numbers, names, texts and places, each refused with its own reason."""

import re
import unicodedata
import zoneinfo
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import PlainValidator, ValidationInfo

from discreet.kernel.event import bounded_text
from discreet.kernel.exact import fraction
from discreet.policy.problems import nearest, shown
from discreet.policy.toml import Real

_LONGEST_NAME = 63  # bytes: PostgreSQL cuts longer names, and two of them might become one
_PASSWORD = re.compile(
    r"://[^@]*:[^@]*@|(?:^|[?&;\s])[\w-]*(?:passw|passwd|pwd|secret|token|signature|api_?key|access_?key)[\w-]*\s*=",
    re.IGNORECASE,
)
_SCHEMES = {"postgresql": ("postgresql://", "postgres://"), "spark": ("sc://",)}
_EXAMPLES = {"postgresql": "postgresql://reader@db.example/clinic", "spark": "sc://spark.example:15002"}
_INSTEAD = {
    "postgresql": "environment (PGPASSWORD, AWS_SECRET_ACCESS_KEY) or in a protected file (~/.pgpass)",
    "spark": "environment, as SPARK_REMOTE",
}
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def number(value: Any, name: str) -> Fraction:
    """Read a finite number exactly; a wrong type is a ValueError too, because pydantic gathers only those.

    >>> number(Real("1e-9"), "delta")
    Fraction(1, 1000000000)
    """
    try:
        return fraction(value.text if isinstance(value, Real) else value, name)
    except (TypeError, ValueError):
        raise ValueError(f'{name} must be a finite number such as 0.1 or "1/10", not {shown(value)}.') from None


def count(value: Any, name: str) -> int:
    """Read a whole number from 1 to 2^62."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 62:
        raise ValueError(f"{name} must be a whole number from 1 to 2^62, not {shown(value)}.")
    return value


def text(value: Any, name: str) -> str:
    """Read a text of one line."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text in quotes, not {shown(value)}.")  # noqa: TRY004 - gathered by pydantic
    if not value.strip() or len(value) > 200 or any(unicodedata.category(letter) == "Cc" for letter in value):
        raise ValueError(f"{name} must be one line of 1 to 200 characters, not {shown(value)}.")
    return bounded_text(value, name, longest=200)


def identifier(value: Any, name: str) -> str:
    """Read the name of a table or column: any one line of at most 63 bytes; reserved words are fine."""
    word = text(value, name)
    if len(word.encode()) > _LONGEST_NAME:
        raise ValueError(f"{name} must have at most {_LONGEST_NAME} bytes, not {len(word.encode())}. Shorten it.")
    return word


def place(value: Any, name: str) -> str:
    """Read where something lies: a path, a URL or a name, but never with a password in it."""
    if not isinstance(value, str) or not value.strip() or len(value) > 4000 or "\0" in value or "\n" in value:
        raise ValueError(f"{name} must be a path, a URL or a table's name in quotes, not {shown(value)}.")
    if _PASSWORD.search(unquote(value)):
        instead = _INSTEAD["spark" if value.startswith(_SCHEMES["spark"]) else "postgresql"]
        raise ValueError(
            f"{name} must not contain a password: many may read a policy. Leave it out, and give it in the {instead}."
        )
    return value


def ledger(value: Any, name: str) -> str:
    """Read where the ledger lies: a file, or a PostgreSQL database that several servers share."""
    found = place(value, name)
    if URL.match(found) and not found.startswith(_SCHEMES["postgresql"]):
        raise ValueError(f"{name} must be a file or a postgresql:// URL, not {shown(found)}.")
    return found


def connection(value: Any, name: str, engine: str | None) -> str:
    """Read where an engine is: a URL of its kind, and never with a password or a token in it."""
    if engine == "duckdb":
        raise ValueError(
            f"{name} goes with another engine: DuckDB reads files itself. Name the engine, or leave it out."
        )
    found, example = place(value, name), _EXAMPLES.get(engine or "", _EXAMPLES["postgresql"])
    schemes = _SCHEMES.get(engine or "", (*_SCHEMES["postgresql"], *_SCHEMES["spark"]))
    if not found.startswith(schemes):
        raise ValueError(f'{name} must be a URL such as "{example}", not {shown(found)}.')
    said = [part.partition("=")[0] for part in found.partition(";")[2].split(";") if part]
    if found.startswith("sc://") and set(said) - {"use_ssl"}:
        raise ValueError(
            f"{name} may say use_ssl and nothing else beside host and port: many may read a policy. Give the rest in "
            "the environment, as SPARK_REMOTE."
        )
    return found


def zone(value: Any, name: str) -> str:
    """Read the name of a time zone."""
    key = text(value, name)
    try:
        if key != "UTC":  # known even where the machine has no list of zones
            zoneinfo.ZoneInfo(key)
    except (KeyError, ValueError, OSError):
        near = nearest(key, zoneinfo.available_timezones() | {"UTC"})
        raise ValueError(f'{name} must be a time zone such as "Europe/Berlin", not {shown(key)}{near}') from None
    return key


def written(value: Fraction) -> str:
    """Write a number for reading, not for reckoning.

    >>> written(Fraction(1, 10**9))
    '1e-9'
    """
    return re.sub(r"e([+-])0", r"e\1", f"{float(value):.6g}")


def validated(read: Callable[[Any, str], Any]) -> PlainValidator:
    """Turn a reader of (value, name) into a field's validator."""

    def check(value: Any, info: ValidationInfo) -> Any:
        return read(value, str(info.field_name))

    return PlainValidator(check)


def _part(value: Any, name: str) -> Fraction:
    part = number(value, name)
    if not 0 <= part < 1:
        raise ValueError(f"{name} must be a share from 0 up to, not including, 1, not {shown(value)}.")
    return part


Part = Annotated[Fraction, validated(_part)]
Count = Annotated[int, validated(count)]
Text = Annotated[str, validated(text)]
Identifier = Annotated[str, validated(identifier)]
Place = Annotated[str, validated(place)]
LedgerPlace = Annotated[str, validated(ledger)]
Zone = Annotated[str, validated(zone)]
