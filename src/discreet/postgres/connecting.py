"""The way to a PostgreSQL server: who it is, how the password gets there, and that nobody can listen.

A place is a URL without a password, postgresql://user@host:port/database. What it leaves out comes from the usual
environment (PGHOST, PGUSER, PGPASSWORD, …), from the file of PGPASSFILE (~/.pgpass) or from a service file. Texts of
errors name the server and never the password, nor what the server said: that may quote what is stored there.
"""

import ipaddress
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import DiscreetError, PolicyError

if TYPE_CHECKING:
    import psycopg

_ENCRYPTED = ("require", "verify-ca", "verify-full")
_PATIENCE = 10  # seconds until a server that does not answer is given up
# A server that vanished is noticed within a minute; in seconds, how often, and in milliseconds.
_ALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "30000"}
_MISSING = "PostgreSQL: the driver is not installed. Install it with: pip install 'discreet[postgres]'"


class Unreachable(DiscreetError):  # noqa: N818 - as the errors of the kernel are called
    """No connection to a server; the text names the server, and what to look at."""


def connect(url: str, **settings: str) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a connection that commits each statement by itself, encrypted unless the server is on this machine.

    `settings` are the server's own, such as statement_timeout, for this connection alone.
    """
    known, library = _known(url), driver()
    _check_password_file(known)
    alive = {name: value for name, value in _ALIVE.items() if name not in known}
    chosen = {**alive, **_encryption(known), **_options(known, settings)}
    try:
        opened: psycopg.Connection[tuple[Any, ...]] = library.connect(
            url,
            autocommit=True,
            connect_timeout=_PATIENCE,
            application_name="discreet",
            client_encoding="UTF8",
            **chosen,
        )
    except library.Error as error:
        raise Unreachable(f"{shown(url)}: {_reason(error)}") from None
    return opened


def driver() -> Any:
    """Return psycopg, which is loaded where it is needed first."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        raise PolicyError(_MISSING) from None
    return psycopg


def shown(url: str) -> str:
    """Write where a server is, without who asks and with which password.

    >>> shown("postgresql://reader@db.example:5433/clinic")
    'PostgreSQL at db.example:5433, database clinic'
    """
    known = _known(url)
    host = known.get("host") or known.get("hostaddr")
    if not host:
        host = f"service {known['service']}" if known.get("service") else "this machine"
    elif known.get("port"):
        host = f"{host}:{known['port']}"
    return f"PostgreSQL at {host}, database {known.get('dbname') or known.get('user') or 'of the user'}"


def names_several(url: str) -> bool:
    """Tell whether a URL, with what the environment adds, names more servers than one, of which any may answer.

    >>> names_several("postgresql://a.example,b.example/clinic"), names_several("postgresql://a.example/clinic")
    (True, False)
    """
    known = _known(url)
    return any("," in str(known.get(name) or "") for name in ("host", "hostaddr", "port"))


def _known(url: str) -> Mapping[str, Any]:
    """Read a URL, and add what the environment says about the same."""
    library = driver()
    try:
        said = library.conninfo.conninfo_to_dict(url)
    except library.Error:
        raise PolicyError(
            "PostgreSQL: the URL cannot be read. Write it as postgresql://user@host:port/database."
        ) from None
    names = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER"}
    names |= {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "passfile": "PGPASSFILE", "options": "PGOPTIONS"}
    names |= {"service": "PGSERVICE"}
    found = {name: os.environ[word] for name, word in names.items() if os.environ.get(word)}
    return {**found, **said}


def _encryption(known: Mapping[str, Any]) -> dict[str, str]:
    """Ask for an encrypted connection to a server whose certificate fits, unless it is on this machine.

    Where the server of a service file is, only that file says: without a host beside it, it may be anywhere.
    """
    places = [place for name in ("host", "hostaddr") for place in str(known.get(name) or "").split(",") if place]
    service = known.get("service")
    if all(map(_is_here, places)) and (places or not service):
        return {}
    mode = known.get("sslmode", "verify-full")
    if mode not in _ENCRYPTED:
        where = places[0] if places else f"service {service}"
        raise PolicyError(
            f"{where}: sslmode={mode} lets others on the way read and change what is sent. Use sslmode=verify-full."
        )
    own = known.get("sslrootcert") or service or mode == "require" or _home(".postgresql/root.crt").exists()
    return {"sslmode": mode, **({} if own else {"sslrootcert": "system"})}


def _is_here(place: str) -> bool:
    """Whether a host is this machine: a socket's folder, or a loopback address."""
    if place.startswith(("/", "@")) or place == "localhost":
        return True
    try:
        return ipaddress.ip_address(place).is_loopback
    except ValueError:
        return False


def _home(name: str) -> Path:
    return Path(os.path.expanduser(f"~/{name}"))  # noqa: PTH111 - which fails where nobody lives


def _check_password_file(known: Mapping[str, Any]) -> None:
    file = Path(known.get("passfile") or _home(".pgpass"))
    if os.name == "posix" and file.is_file() and stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise PolicyError(f"{file}: others may read this file of passwords. Take that away: chmod 600 {file}")


def _options(known: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Write settings as the command line of the server has them, after those that the URL or environment has."""
    if not settings:
        return {}
    words = [f"-c {name}={_escaped(value)}" for name, value in settings.items()]
    return {"options": " ".join([*([str(known["options"])] if known.get("options") else []), *words])}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _reason(error: Exception) -> str:
    """Say why there is no connection, in words of ours."""
    words = str(error).lower()
    if "password" in words or "authentication" in words or "pg_hba" in words:
        return "the server does not admit this user. Check the user, and PGPASSWORD or the file of PGPASSFILE."
    if "ssl" in words or "certificate" in words or "tls" in words:
        return "no encrypted connection. Check the server's certificate, sslmode and sslrootcert."
    if "does not exist" in words:
        return "there is no such database or user. Correct the URL, or make it there."
    if "too many" in words or "remaining connection slots" in words:
        return "the server has too many connections. Raise max_connections, or close some."
    return "the server does not answer. Check host and port, and that it runs."
