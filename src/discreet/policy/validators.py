"""Validators for single policy values: numbers, names, texts and locations."""

import re
import unicodedata
import zoneinfo
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import PlainValidator, ValidationInfo

from discreet.kernel.event import bounded_text
from discreet.kernel.numbers import as_fraction
from discreet.policy.problems import did_you_mean, format_value
from discreet.policy.toml import FloatText

_MAX_NAME_BYTES = 63  # PostgreSQL truncates longer names, so that two of them might collide
_PASSWORD = re.compile(
    r"://[^@]*:[^@]*@|(?:^|[?&;\s])[\w-]*(?:passw|passwd|pwd|secret|token|signature|api_?key|access_?key)[\w-]*\s*=",
    re.IGNORECASE,
)
_URL_SCHEMES = {"postgresql": ("postgresql://", "postgres://"), "spark": ("sc://",)}
_URL_EXAMPLES = {"postgresql": "postgresql://reader@db.example/clinic", "spark": "sc://spark.example:15002"}
_CREDENTIAL_HINTS = {
    "postgresql": "environment (PGPASSWORD, AWS_SECRET_ACCESS_KEY) or in a protected file (~/.pgpass)",
    "spark": "environment, as SPARK_REMOTE",
}
URL_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def parse_number(value: Any, name: str) -> Fraction:
    """Parse a finite number exactly; a wrong type is a ValueError too, because pydantic collects only those.

    >>> parse_number(FloatText("1e-9"), "delta")
    Fraction(1, 1000000000)
    """
    try:
        return as_fraction(value.text if isinstance(value, FloatText) else value, name)
    except (TypeError, ValueError):
        raise ValueError(f'{name} must be a finite number such as 0.1 or "1/10", not {format_value(value)}.') from None


def number_where(holds: Callable[[Fraction], object], wanted: str) -> Callable[[Any, str], Fraction]:
    """Return a parser of numbers for which a condition holds."""

    def parse(value: Any, name: str) -> Fraction:
        number = parse_number(value, name)
        if not holds(number):
            raise ValueError(f"{name} must be {wanted}, not {format_value(value)}.")
        return number

    return parse


def parse_count(value: Any, name: str) -> int:
    """Parse an integer from 1 to 2^62."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 62:
        raise ValueError(f"{name} must be an integer from 1 to 2^62, not {format_value(value)}.")
    return value


def _parse_text(value: Any, name: str, form: str, max_length: int, allowed: str = "") -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a quoted string, not {format_value(value)}.")  # noqa: TRY004 - pydantic collects these
    is_control = (unicodedata.category(letter) == "Cc" for letter in value if letter not in allowed)
    if not value.strip() or len(value) > max_length or any(is_control):
        raise ValueError(f"{name} must be {form} of 1 to {max_length:,} characters, not {format_value(value)}.")
    return bounded_text(value, name, max_length=max_length)


def parse_text_line(value: Any, name: str) -> str:
    """Parse a string of one line."""
    return _parse_text(value, name, "one line", 200)


def parse_statement(value: Any, name: str) -> str:
    """Parse a text of up to 2,000 characters, which may have several lines; blanks around it are removed."""
    return _parse_text(value, name, "a text", 2000, "\n").strip()


def parse_identifier(value: Any, name: str) -> str:
    """Parse the name of a table or column: one line of at most 63 bytes; reserved words are allowed."""
    word = parse_text_line(value, name)
    if len(word.encode()) > _MAX_NAME_BYTES:
        raise ValueError(f"{name} must be at most {_MAX_NAME_BYTES} bytes long, not {len(word.encode())}.")
    return word


def parse_location(value: Any, name: str) -> str:
    """Parse a path, a URL or a table's name, without a password."""
    if not isinstance(value, str) or not value.strip() or len(value) > 4000 or "\0" in value or "\n" in value:
        raise ValueError(f"{name} must be a quoted path, URL or table name, not {format_value(value)}.")
    if _PASSWORD.search(unquote(value)):
        hint = _CREDENTIAL_HINTS["spark" if value.startswith(_URL_SCHEMES["spark"]) else "postgresql"]
        raise ValueError(f"{name} must not contain a password: a policy is not secret. Put the password in the {hint}.")
    return value


def parse_ledger_location(value: Any, name: str) -> str:
    """Parse the ledger's location: a file, or a PostgreSQL database that several servers share."""
    location = parse_location(value, name)
    if URL_PREFIX.match(location) and not location.startswith(_URL_SCHEMES["postgresql"]):
        raise ValueError(f"{name} must be a file or a postgresql:// URL, not {format_value(location)}.")
    return location


def parse_connection(value: Any, name: str, engine: str | None) -> str:
    """Parse an engine's URL, without a password or token."""
    if engine == "duckdb":
        raise ValueError(f"{name} is not used by DuckDB, which reads files itself. Set engine, or remove {name}.")
    location, example = parse_location(value, name), _URL_EXAMPLES.get(engine or "", _URL_EXAMPLES["postgresql"])
    schemes = _URL_SCHEMES.get(engine or "", (*_URL_SCHEMES["postgresql"], *_URL_SCHEMES["spark"]))
    if not location.startswith(schemes):
        raise ValueError(f'{name} must be a URL such as "{example}", not {format_value(location)}.')
    option_names = [part.partition("=")[0] for part in location.partition(";")[2].split(";") if part]
    if location.startswith("sc://") and set(option_names) - {"use_ssl"}:
        raise ValueError(
            f"{name} may contain only host, port and use_ssl: a policy is not secret. Put the rest in the "
            "environment, as SPARK_REMOTE."
        )
    return location


def parse_timezone(value: Any, name: str) -> str:
    """Parse the name of a time zone."""
    key = parse_text_line(value, name)
    try:
        if key != "UTC":  # valid even on machines without a time-zone database
            zoneinfo.ZoneInfo(key)
    except (KeyError, ValueError, OSError):
        near = did_you_mean(key, zoneinfo.available_timezones() | {"UTC"})
        raise ValueError(f'{name} must be a time zone such as "Europe/Berlin", not {format_value(key)}{near}') from None
    return key


def format_number(value: Fraction) -> str:
    """Format a number for display, with six significant digits.

    >>> format_number(Fraction(1, 10**9))
    '1e-9'
    """
    return re.sub(r"e([+-])0", r"e\1", f"{float(value):.6g}")


def as_validator(parse: Callable[[Any, str], Any]) -> PlainValidator:
    """Turn a function of (value, name) into a field validator."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        return parse(value, str(info.field_name))

    return PlainValidator(validate)


Portion = Annotated[Fraction, as_validator(number_where(lambda share: 0 <= share < 1, "at least 0 and less than 1"))]
PositiveCount = Annotated[int, as_validator(parse_count)]
Statement = Annotated[str, as_validator(parse_statement)]
TextLine = Annotated[str, as_validator(parse_text_line)]
Identifier = Annotated[str, as_validator(parse_identifier)]
Location = Annotated[str, as_validator(parse_location)]
LedgerSetting = Annotated[str, as_validator(parse_ledger_location)]
TimeZoneName = Annotated[str, as_validator(parse_timezone)]
