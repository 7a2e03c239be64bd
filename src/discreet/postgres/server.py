"""Connect to a PostgreSQL server safely, and list the types of its columns.

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
_ENCRYPTED_MODES = ("require", "verify-ca", "verify-full")
_CONNECT_TIMEOUT = 10  # seconds until a server that does not answer is given up
# A server that vanished is noticed within a minute; in seconds, how often, and in milliseconds.
_KEEPALIVE = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_SERVER_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
}
_SERVER_VARIABLES |= {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}
_OTHER_VARIABLES = {"passfile": "PGPASSFILE", "options": "PGOPTIONS", "servicefile": "PGSERVICEFILE"}
_PASSWORD_LINE = re.compile(r"^\s*password\s*=", re.MULTILINE)
_INVALID_URL = (
    "PostgreSQL: the URL cannot be read. Write it as postgresql://user@host:port/database, and in names and passwords "
    "@ as %40 and / as %2F."
)
_DRIVER_MISSING = "PostgreSQL: the driver is not installed. Install it with: pip install 'discreet[postgres]'"


class ServerUnreachable(DiscreetError):  # noqa: N818 - as the errors of the kernel are called
    """No connection to a server; the text names the server, and what to look at."""


def connect(url: str, **settings: str) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a connection that commits each statement by itself, encrypted unless the server is on this machine.

    `settings` are the server's own, such as statement_timeout, for this connection alone.
    """
    parameters, library = _connection_parameters(url), driver()
    _check_secret_files(parameters)
    keepalive = {name: value for name, value in _KEEPALIVE.items() if name not in parameters}
    options = {**keepalive, **_encryption(parameters), **_options(parameters, settings)}
    try:
        connection: psycopg.Connection[tuple[Any, ...]] = library.connect(
            url,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT,
            application_name="discreet",
            client_encoding="UTF8",
            **options,
        )
    except library.Error as error:
        raise ServerUnreachable(f"{server_description(url)}: {_connection_hint(error)}") from None
    return connection


def driver() -> Any:
    """Return psycopg, which is loaded where it is needed first."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        raise PolicyError(_DRIVER_MISSING) from None
    return psycopg


def server_description(url: str) -> str:
    """Write where a server is, without who asks and with which password.

    >>> server_description("postgresql://reader@db.example:5433/clinic")
    'PostgreSQL at db.example:5433, database clinic'
    """
    parameters = _connection_parameters(url)
    host = parameters.get("host") or parameters.get("hostaddr") or "this machine"
    if "service" in parameters:
        host = f"service {parameters['service']}"
    elif host != "this machine" and parameters.get("port"):
        host = f"{host}:{parameters['port']}"
    return f"PostgreSQL at {host}, database {parameters.get('dbname') or parameters.get('user') or 'of the user'}"


def server_ambiguity(url: str) -> str | None:
    """Say why more servers than one may answer to a URL, with what the environment adds; None if there is one only.

    >>> server_ambiguity("postgresql://a.example,b.example/clinic")
    'the URL, or the environment, names several servers'
    """
    parameters = _connection_parameters(url)
    if "service" in parameters:
        return "the URL, or the environment, names a service, and its file may name several servers"
    several = any("," in str(parameters.get(name) or "") for name in ("host", "hostaddr", "port"))
    return "the URL, or the environment, names several servers" if several else None


def _connection_parameters(url: str) -> Mapping[str, Any]:
    """Read a URL, and add what the environment says about the same.

    With a service, it says nothing of where the server is: what the file has, which is not known here, counts before.
    """
    library = driver()
    try:
        from_url = library.conninfo.conninfo_to_dict(url)
    except library.Error:
        raise PolicyError(_INVALID_URL) from None
    # A password that is not escaped would be read as a host, a port, a database …, and these are shown.
    if (url.startswith(SCHEMES) and not _URL.fullmatch(url)) or not re.fullmatch(
        "[0-9,]*", str(from_url.get("port", ""))
    ):
        raise PolicyError(_INVALID_URL)
    if "PGSERVICE" in os.environ:
        from_url = {"service": os.environ["PGSERVICE"], **from_url}  # also an empty one: a file may have that
    names = _OTHER_VARIABLES if "service" in from_url else {**_SERVER_VARIABLES, **_OTHER_VARIABLES}
    from_environment = {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}
    return {**from_environment, **from_url}


def _encryption(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Ask for an encrypted connection to a server whose certificate fits, unless it is on this machine.

    Where the server of a service is, only its file says: it may be anywhere, whatever host is named beside it.
    """
    hosts = [host for name in ("host", "hostaddr") for host in str(parameters.get(name) or "").split(",") if host]
    service = "service" in parameters
    if all(map(_is_local, hosts)) and not service:
        return {}
    mode = parameters.get("sslmode", "verify-full")
    if mode not in _ENCRYPTED_MODES:
        where = f"service {parameters['service']}" if service else hosts[0]
        raise PolicyError(
            f"{where}: sslmode={mode} lets others on the way read and change what is sent. Use sslmode=verify-full."
        )
    has_root_certificate = (
        parameters.get("sslrootcert") or service or mode == "require" or _home_path(".postgresql/root.crt").exists()
    )
    # Kerberos would come before TLS, and look at no certificate.
    return {"sslmode": mode, "gssencmode": "disable", **({} if has_root_certificate else {"sslrootcert": "system"})}


def _is_local(host: str) -> bool:
    """Whether a host is this machine: a socket's folder, or a loopback address."""
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _home_path(name: str) -> Path:
    return Path(os.path.expanduser(f"~/{name}"))  # noqa: PTH111 - which fails where nobody lives


def _check_secret_files(parameters: Mapping[str, Any]) -> None:
    file = Path(parameters.get("passfile") or _home_path(".pgpass"))
    if _is_readable_by_others(file):
        raise PolicyError(f"{file}: others may read this file of passwords. Take that away: chmod 600 {file}")
    if "service" not in parameters:
        return
    files = [Path(parameters.get("servicefile") or _home_path(".pg_service.conf"))]
    files += [Path(folder) / "pg_service.conf" for folder in [os.environ.get("PGSYSCONFDIR")] if folder]
    for file in files:
        if (
            _is_readable_by_others(file)
            and os.access(file, os.R_OK)
            and _PASSWORD_LINE.search(file.read_text(errors="replace"))
        ):
            raise PolicyError(
                f"{file}: others may read this file, and a password in it. Take one of them away: chmod 600 {file}"
            )


def _is_readable_by_others(file: Path) -> bool:
    return os.name == "posix" and file.is_file() and bool(stat.S_IMODE(file.stat().st_mode) & 0o077)


def _options(parameters: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Write settings as the command line of the server has them, after those that the URL or environment has."""
    if not settings:
        return {}
    words = [f"-c {name}={_escape_option(value)}" for name, value in settings.items()]
    return {"options": " ".join([*([str(parameters["options"])] if parameters.get("options") else []), *words])}


def _escape_option(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _connection_hint(error: Exception) -> str:
    """Say why there is no connection, in words of ours."""
    message = str(error).lower()
    if "password" in message or "authentication" in message or "pg_hba" in message:
        return "the server does not admit this user. Check the user, and PGPASSWORD or the file of PGPASSFILE."
    if "ssl" in message or "certificate" in message or "tls" in message:
        return "no encrypted connection. Check the server's certificate, sslmode and sslrootcert."
    if "does not exist" in message:
        return "there is no such database or user. Correct the URL, or make it there."
    if "too many" in message or "remaining connection slots" in message:
        return "the server has too many connections. Raise max_connections, or close some."
    return "the server does not answer. Check host and port, and that it runs."


# The columns of tables: number of the table, name, number of the type, whether the role may read it, name of the type.
# Only PostgreSQL's own types go by a bare name: anybody may call another one numeric.
COLUMNS_QUERY = """
WITH RECURSIVE columns AS (
    SELECT attrelid, attnum, attname, atttypid AS kind FROM pg_attribute
    WHERE {tables} AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attrelid, attnum, attname, typbasetype FROM columns JOIN pg_type ON oid = kind WHERE typtype = 'd'
)
SELECT attrelid::bigint, attname::text, kind::bigint, has_column_privilege(attrelid, attnum, 'SELECT'), CASE
    WHEN typtype = 'e' THEN 'enum'
    WHEN nspname = 'pg_catalog' THEN format_type(kind, NULL)
    WHEN typname = 'citext' AND typtype = 'b' AND typcategory = 'S' THEN 'citext'
    ELSE quote_ident(nspname) || '.' || quote_ident(typname) END
FROM columns JOIN pg_type AS t ON t.oid = kind JOIN pg_namespace AS n ON n.oid = typnamespace
WHERE typtype <> 'd' ORDER BY attrelid, attnum
"""
TYPE_FAMILIES = {
    "bigint": "integer",
    **dict.fromkeys(("smallint", "integer"), "narrow"),
    **dict.fromkeys(("real", "double precision"), "real"),
    "numeric": "decimal",
    "boolean": "boolean",
    **dict.fromkeys(("text", "character varying", "character", "name", "citext", "enum", "uuid"), "text"),
    "date": "date",
    "timestamp without time zone": "local",
    "timestamp with time zone": "instant",
}
