"""The settings of a session: those of queries, and those of PostgreSQL that clients set and show."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from zoneinfo import ZoneInfo

from discreet.dbapi.settings import QuerySettings, own_setting, shown_value, with_setting
from discreet.kernel.errors import Refused
from discreet.kernel.loss import Budget
from discreet.policy.problems import shorten

SERVER_VERSION = "15.0"  # whose catalog and protocol clients may expect
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "application_name": "",
        "backslash_quote": "safe_encoding",
        "bytea_output": "hex",
        "client_encoding": "UTF8",
        "client_min_messages": "notice",
        "datestyle": "ISO, MDY",
        "default_table_access_method": "heap",
        "default_transaction_deferrable": "off",
        "default_transaction_isolation": "read committed",
        "default_transaction_read_only": "on",
        "enable_seqscan": "on",
        "escape_string_warning": "on",
        "extra_float_digits": "1",
        "geqo": "on",
        "idle_in_transaction_session_timeout": "0",
        "in_hot_standby": "off",
        "integer_datetimes": "on",
        "intervalstyle": "postgres",
        "is_superuser": "off",
        "jit": "off",
        "lc_collate": "C.UTF-8",
        "lc_ctype": "C.UTF-8",
        "lc_messages": "C.UTF-8",
        "lc_monetary": "C.UTF-8",
        "lc_numeric": "C.UTF-8",
        "lc_time": "C.UTF-8",
        "lock_timeout": "0",
        "max_identifier_length": "63",
        "max_index_keys": "32",
        "password_encryption": "scram-sha-256",
        "quote_all_identifiers": "off",
        "row_security": "on",
        "search_path": '"$user", public',
        "server_encoding": "UTF8",
        "server_version": SERVER_VERSION,
        "server_version_num": "150000",
        "session_authorization": "",
        "ssl_renegotiation_limit": "0",
        "standard_conforming_strings": "on",
        "statement_timeout": "0",
        "synchronize_seqscans": "on",
        "timezone": "UTC",
        "transaction_deferrable": "off",
        "transaction_isolation": "read committed",
        "transaction_read_only": "on",
        "work_mem": "4MB",
        "xmloption": "content",
    }
)
_REPORTED = (  # whenever they change
    *("application_name", "client_encoding", "default_transaction_read_only", "in_hot_standby", "integer_datetimes"),
    *("is_superuser", "server_encoding", "server_version", "session_authorization", "standard_conforming_strings"),
)
_REPORTED_AS = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"} | {
    name: name for name in _REPORTED
}
_FIXED = frozenset(
    {
        *("in_hot_standby", "integer_datetimes", "is_superuser", "max_identifier_length", "max_index_keys"),
        *("server_encoding", "server_version", "server_version_num", "session_authorization", "lc_collate", "lc_ctype"),
    }
)
_ENCODINGS = ("utf8", "utf-8", "unicode", "sql_ascii", "auto")
_SEVERITIES = ("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error")
_MILLISECONDS = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}
_MAX_VALUE = 1_000  # characters
_OFFSET = re.compile(r"(?:GMT|UTC)?[+-]\d{1,2}(?::\d\d)?", re.ASCII)


class UnknownSetting(Refused):
    """A setting that does not exist."""


@dataclass(frozen=True)
class SessionSettings:
    """The settings of one session; `own` are those of queries, the others PostgreSQL's.

    `initial` and `startup` are what RESET leads back to, and `default_epsilon` is the policy's cost of a query that
    states none.

    >>> settings = SessionSettings(Budget(1)).with_value("epsilon", "1/10").with_value("DateStyle", "ISO")
    >>> settings.shown("epsilon"), settings.shown("datestyle"), settings.shown("work_mem")
    ('1/10', 'ISO, MDY', '4MB')
    """

    budget: Budget
    own: QuerySettings = field(default_factory=QuerySettings)
    initial: QuerySettings = field(default_factory=QuerySettings)
    changed: Mapping[str, str] = field(default_factory=dict)
    startup: Mapping[str, str] = field(default_factory=dict)
    default_epsilon: Fraction | None = None

    def with_value(self, name: str, value: str | None) -> "SessionSettings":
        """Return the settings after SET; after RESET if the value is None."""
        name = name.lower()
        if own := own_setting(name):
            return replace(self, own=with_setting(self.own, self.initial, own, value, self.budget))
        if name == "transaction":  # levels of isolation, which make no difference
            return self
        if name not in DEFAULTS:
            raise unknown_setting(name)
        if value is None:
            others = {key: each for key, each in self.changed.items() if key != name}
            return replace(self, changed=others | {key: each for key, each in self.startup.items() if key == name})
        if name in _FIXED and value != self.shown(name):
            raise Refused(f'{name}: parameter "{name}" cannot be changed.')
        return replace(self, changed={**self.changed, name: _checked(name, value)})

    def reset(self) -> "SessionSettings":
        """Return the settings after RESET ALL."""
        return replace(self, own=self.initial, changed=dict(self.startup))

    def as_initial(self) -> "SessionSettings":
        """Return settings to which RESET leads back."""
        return replace(self, initial=self.own, startup=self.changed)

    def with_user(self, name: str) -> "SessionSettings":
        """Return the settings of a session of this user."""
        return replace(self, changed={**self.changed, "session_authorization": name})

    def shown(self, name: str) -> str | None:
        """Return a setting as SHOW does; None if it is one of ours and not set."""
        name = name.lower()
        if own := own_setting(name):
            return shown_value(self.own, own, self.default_epsilon)
        if name not in DEFAULTS:
            raise unknown_setting(name)
        return self.changed.get(name, DEFAULTS[name])

    def reported(self) -> dict[str, str]:
        """Return what clients are told whenever it changes."""
        return {title: self.changed.get(name, DEFAULTS[name]) for name, title in _REPORTED_AS.items()}

    @property
    def shows_notices(self) -> bool:
        """Whether the client wants notices."""
        level = self.shown("client_min_messages") or ""
        return _SEVERITIES.index(level) <= _SEVERITIES.index("notice")

    @property
    def timeout_seconds(self) -> float | None:
        """The time after which a statement is cancelled; None if there is none."""
        return read_milliseconds(self.shown("statement_timeout") or "0") / 1000 or None


def unknown_setting(name: str) -> UnknownSetting:
    """Return the refusal of a setting that does not exist."""
    return UnknownSetting(
        f'unrecognized configuration parameter "{shorten(name)}". SHOW ALL lists the parameters; those of queries are '
        "epsilon, rho, margin, details and purpose."
    )


def read_milliseconds(text: str) -> float:
    """Read a time such as 500, 5s or 2min; Refused if it is none.

    >>> read_milliseconds("2min"), read_milliseconds("250")
    (120000, 250)
    """
    digits = text.strip().rstrip("usmindh ")
    unit = text.strip()[len(digits) :].strip()
    if not digits.isdecimal() or len(digits) > 10 or unit not in _MILLISECONDS:
        raise Refused(f'invalid value for a time: "{shorten(text)}". Write milliseconds, or a unit as in 5s.')
    return int(digits) * _MILLISECONDS[unit]


def _checked(name: str, value: str) -> str:
    """Return a value as it is shown; Refused where accepting it would mislead the client."""
    if len(value) > _MAX_VALUE or not value.isprintable():
        raise Refused(f"{name}: the value is too long, or cannot be printed. Shorten it.")
    lower = value.lower().strip()
    if name == "client_encoding":
        if lower not in _ENCODINGS:
            raise Refused(f'client_encoding: "{shorten(value)}" is not supported. Use UTF8.')
        return "UTF8"
    if name == "datestyle":
        if "iso" not in lower and set(lower.replace(",", " ").split()) - {"mdy", "dmy", "ymd", "default"}:
            raise Refused(f'DateStyle: "{shorten(value)}" is not supported. Use ISO.')
        return f"ISO, {next((order for order in ('dmy', 'ymd') if order in lower), 'mdy').upper()}"
    if name == "timezone":
        return _checked_zone(value)
    if name == "client_min_messages" and lower not in _SEVERITIES:
        raise Refused("client_min_messages: the values are debug5 to debug1, log, notice, warning and error.")
    if name.endswith("_timeout"):
        read_milliseconds(value)
    if name == "standard_conforming_strings" and lower not in ("on", "true", "1", "yes"):
        raise Refused("standard_conforming_strings: only on is supported. Write E'…' for escapes.")
    return lower if name in ("client_min_messages", "standard_conforming_strings") else value


def _checked_zone(value: str) -> str:
    if _OFFSET.fullmatch(value):
        return value
    try:
        return ZoneInfo(value).key
    except (ValueError, OSError, KeyError):
        raise Refused(f'TimeZone: "{shorten(value)}" is not known. Write a name such as Europe/Berlin.') from None
