"""Connect to a PostgreSQL server safely, and list the types of its columns.

A URL has the form postgresql://user@host:port/database, without a password. Missing parts come from a service file,
from the usual environment variables (PGHOST, PGUSER, PGPASSWORD, …) or from the password file (PGPASSFILE, ~/.pgpass).
Error messages name the server, but never the password, nor the server's own message, which may quote stored data.
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
_URL = re.compile(rf"(?:{'|'.join(SCHEMES)})(?:[^@/]*@)?[^@]*", re.DOTALL)  # at most one @, after the user
_ENCRYPTED_MODES = ("require", "verify-ca", "verify-full")
_CONNECT_TIMEOUT = 10  # seconds
# Detects within a minute that the server is gone; idle and interval are in seconds, tcp_user_timeout in milliseconds.
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
    "PostgreSQL: invalid URL. Expected postgresql://user@host:port/database; in names and passwords, write @ as %40 "
    "and / as %2F."
)
_DRIVER_MISSING = "PostgreSQL: the driver is not installed. Install it with: pip install 'discreet[postgres]'"


class ServerUnreachable(DiscreetError):  # noqa: N818 - like the errors of the kernel
    """No connection to a server; the message names the server and what to check."""


def connect(url: str, **settings: str) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open an autocommit connection, encrypted unless the server is on this machine.

    `settings` are server settings for this connection, such as statement_timeout.
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
    """Import and return psycopg; PolicyError if it is not installed."""
    try:
        import psycopg  # noqa: PLC0415 - optional dependency
    except ImportError:
        raise PolicyError(_DRIVER_MISSING) from None
    return psycopg


def server_description(url: str) -> str:
    """Return a description of the server and database, without the user and password.

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
    """Return why a URL, with the environment, may refer to more than one server; None if it refers to one.

    >>> server_ambiguity("postgresql://a.example,b.example/clinic")
    'the URL or the environment names several servers'
    """
    parameters = _connection_parameters(url)
    if "service" in parameters:
        return "the URL or the environment names a service, and the service file may list several servers"
    several = any("," in str(parameters.get(name) or "") for name in ("host", "hostaddr", "port"))
    return "the URL or the environment names several servers" if several else None


def _connection_parameters(url: str) -> Mapping[str, Any]:
    """Return the parameters of a URL, completed from the environment.

    With a service, the environment is not used for the server itself: the service file, which is not read here, takes
    precedence over it.
    """
    library = driver()
    try:
        from_url = library.conninfo.conninfo_to_dict(url)
    except library.Error:
        raise PolicyError(_INVALID_URL) from None
    # Parts of an unescaped password would be parsed as host, port or database, which error messages show.
    if (url.startswith(SCHEMES) and not _URL.fullmatch(url)) or not re.fullmatch(
        "[0-9,]*", str(from_url.get("port", ""))
    ):
        raise PolicyError(_INVALID_URL)
    if "PGSERVICE" in os.environ:
        from_url = {
            "service": os.environ["PGSERVICE"],
            **from_url,
        }  # even if empty: a file may define a service with an empty name
    names = _OTHER_VARIABLES if "service" in from_url else {**_SERVER_VARIABLES, **_OTHER_VARIABLES}
    from_environment = {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}
    return {**from_environment, **from_url}


def _encryption(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the options for an encrypted connection with a verified certificate, unless the server is local.

    The server of a service is only known from the service file, so it never counts as local.
    """
    hosts = [host for name in ("host", "hostaddr") for host in str(parameters.get(name) or "").split(",") if host]
    service = "service" in parameters
    if all(map(_is_local, hosts)) and not service:
        return {}
    mode = parameters.get("sslmode", "verify-full")
    if mode not in _ENCRYPTED_MODES:
        where = f"service {parameters['service']}" if service else hosts[0]
        raise PolicyError(
            f"{where}: sslmode={mode} does not protect against eavesdropping and tampering. Use sslmode=verify-full."
        )
    has_root_certificate = (
        parameters.get("sslrootcert") or service or mode == "require" or _home_path(".postgresql/root.crt").exists()
    )
    # GSSAPI encryption would be tried before TLS and verifies no certificate.
    return {"sslmode": mode, "gssencmode": "disable", **({} if has_root_certificate else {"sslrootcert": "system"})}


def _is_local(host: str) -> bool:
    """Return whether a host is this machine: a socket folder or a loopback address."""
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _home_path(name: str) -> Path:
    return Path(os.path.expanduser(f"~/{name}"))  # noqa: PTH111 - Path.expanduser raises without a home directory


def _check_secret_files(parameters: Mapping[str, Any]) -> None:
    file = Path(parameters.get("passfile") or _home_path(".pgpass"))
    if _is_readable_by_others(file):
        raise PolicyError(f"{file}: the password file is readable by other users. Run: chmod 600 {file}")
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
                f"{file}: the file contains a password and is readable by other users. Run: chmod 600 {file}"
            )


def _is_readable_by_others(file: Path) -> bool:
    return os.name == "posix" and file.is_file() and bool(stat.S_IMODE(file.stat().st_mode) & 0o077)


def _options(parameters: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the `options` parameter: the settings, after the options of the URL or environment."""
    if not settings:
        return {}
    words = [f"-c {name}={_escape_option(value)}" for name, value in settings.items()]
    return {"options": " ".join([*([str(parameters["options"])] if parameters.get("options") else []), *words])}


def _escape_option(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _connection_hint(error: Exception) -> str:
    """Return the reason of a failed connection and a hint, without quoting the server."""
    message = str(error).lower()
    if "password" in message or "authentication" in message or "pg_hba" in message:
        return "authentication failed. Check the user name, and PGPASSWORD or the file named by PGPASSFILE."
    if "ssl" in message or "certificate" in message or "tls" in message:
        return "could not establish an encrypted connection. Check the server certificate, sslmode and sslrootcert."
    if "does not exist" in message:
        return "the database or user does not exist. Correct the URL, or create it on the server."
    if "too many" in message or "remaining connection slots" in message:
        return "the server has too many connections. Raise max_connections, or close some connections."
    return "cannot connect to the server. Check the host and port, and that the server is running."


# The columns of tables: table oid, name, type oid, whether the role may read it, type name.
# Only PostgreSQL's own types have unqualified names: anyone may create another type called numeric.
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
