"""The way to a PostgreSQL server: who it is, how the password gets there, and that nobody can listen.

A place is a URL without a password, postgresql://user@host:port/database. What it leaves out comes from a service file,
from the usual environment (PGHOST, PGUSER, PGPASSWORD, …) or from the file of PGPASSFILE (~/.pgpass). Texts of errors
name the server and never the password, nor what the server said: that may quote what is stored there.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import DiscreetError, PolicyError

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")
_URL = re.compile(rf"(?:{'|'.join(SCHEMES)})(?:[^@/]*@)?[^@]*", re.DOTALL)  # one @, behind who asks
_ENCRYPTED = ("require", "verify-ca", "verify-full")
_PATIENCE = 10  # seconds until a server that does not answer is given up
# A server that vanished is noticed within a minute; in seconds, how often, and in milliseconds.
_ALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "30000"}
_PLACE = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER"}
_PLACE |= {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}
_REST = {"passfile": "PGPASSFILE", "options": "PGOPTIONS", "servicefile": "PGSERVICEFILE"}
_PASSWORD = re.compile(r"^\s*password\s*=", re.MULTILINE)
_UNREADABLE = (
    "PostgreSQL: the URL cannot be read. Write it as postgresql://user@host:port/database, and in names and passwords "
    "@ as %40 and / as %2F."
)
_MISSING = "PostgreSQL: the driver is not installed. Install it with: pip install 'discreet[postgres]'"


class Unreachable(DiscreetError):  # noqa: N818 - as the errors of the kernel are called
    """No connection to a server; the text names the server, and what to look at."""


def connect(url: str, **settings: str) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a connection that commits each statement by itself, encrypted unless the server is on this machine.

    `settings` are the server's own, such as statement_timeout, for this connection alone.
    """
    known, library = _known(url), driver()
    _check_secret_files(known)
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
    host = known.get("host") or known.get("hostaddr") or "this machine"
    if "service" in known:
        host = f"service {known['service']}"
    elif host != "this machine" and known.get("port"):
        host = f"{host}:{known['port']}"
    return f"PostgreSQL at {host}, database {known.get('dbname') or known.get('user') or 'of the user'}"


def doubt_of_server(url: str) -> str | None:
    """Say why more servers than one may answer to a URL, with what the environment adds; None if there is one only.

    >>> doubt_of_server("postgresql://a.example,b.example/clinic")
    'the URL, or the environment, names several servers'
    """
    known = _known(url)
    if "service" in known:
        return "the URL, or the environment, names a service, and its file may name several servers"
    several = any("," in str(known.get(name) or "") for name in ("host", "hostaddr", "port"))
    return "the URL, or the environment, names several servers" if several else None


def _known(url: str) -> Mapping[str, Any]:
    """Read a URL, and add what the environment says about the same.

    With a service, it says nothing of where the server is: what the file has, which is not known here, counts before.
    """
    library = driver()
    try:
        said = library.conninfo.conninfo_to_dict(url)
    except library.Error:
        raise PolicyError(_UNREADABLE) from None
    # A password that is not escaped would be read as a host, a port, a database …, and these are shown.
    if (url.startswith(SCHEMES) and not _URL.fullmatch(url)) or not re.fullmatch("[0-9,]*", str(said.get("port", ""))):
        raise PolicyError(_UNREADABLE)
    if "PGSERVICE" in os.environ:
        said = {"service": os.environ["PGSERVICE"], **said}  # also an empty one: a file may have that
    names = _REST if "service" in said else {**_PLACE, **_REST}
    found = {name: os.environ[word] for name, word in names.items() if os.environ.get(word)}
    return {**found, **said}


def _encryption(known: Mapping[str, Any]) -> dict[str, str]:
    """Ask for an encrypted connection to a server whose certificate fits, unless it is on this machine.

    Where the server of a service is, only its file says: it may be anywhere, whatever host is named beside it.
    """
    places = [place for name in ("host", "hostaddr") for place in str(known.get(name) or "").split(",") if place]
    service = "service" in known
    if all(map(_is_here, places)) and not service:
        return {}
    mode = known.get("sslmode", "verify-full")
    if mode not in _ENCRYPTED:
        where = f"service {known['service']}" if service else places[0]
        raise PolicyError(
            f"{where}: sslmode={mode} lets others on the way read and change what is sent. Use sslmode=verify-full."
        )
    own = known.get("sslrootcert") or service or mode == "require" or _home(".postgresql/root.crt").exists()
    # Kerberos would come before TLS, and look at no certificate.
    return {"sslmode": mode, "gssencmode": "disable", **({} if own else {"sslrootcert": "system"})}


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


def _check_secret_files(known: Mapping[str, Any]) -> None:
    file = Path(known.get("passfile") or _home(".pgpass"))
    if _others_may_read(file):
        raise PolicyError(f"{file}: others may read this file of passwords. Take that away: chmod 600 {file}")
    if "service" not in known:
        return
    files = [Path(known.get("servicefile") or _home(".pg_service.conf"))]
    files += [Path(folder) / "pg_service.conf" for folder in [os.environ.get("PGSYSCONFDIR")] if folder]
    for file in files:
        if _others_may_read(file) and os.access(file, os.R_OK) and _PASSWORD.search(file.read_text(errors="replace")):
            raise PolicyError(
                f"{file}: others may read this file, and a password in it. Take one of them away: chmod 600 {file}"
            )


def _others_may_read(file: Path) -> bool:
    return os.name == "posix" and file.is_file() and bool(stat.S_IMODE(file.stat().st_mode) & 0o077)


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
