"""The same question for other tools: Python, R, and psql or curl; the token is in the environment of the reader."""

import json
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from discreet.server.requests import QueryRequest


@dataclass(frozen=True)
class Snippet:
    """A few lines for one tool."""

    tool: str
    text: str


def snippets(request: QueryRequest, address: str, pg_port: int | None, name: str, database: str) -> tuple[Snippet, ...]:
    """Return a question as it is asked from other tools; psql only where the server speaks its protocol.

    >>> request = QueryRequest("SELECT 1", epsilon="1/10")
    >>> [each.tool for each in snippets(request, "http://127.0.0.1:8000", 5433, "ana", "town")]
    ['Python', 'psql', 'R']
    >>> [each.tool for each in snippets(request, "http://127.0.0.1:8000", None, "ana", "town")]
    ['Python', 'curl', 'R']
    """
    spend, amount = ("margin", request.margin) if request.margin is not None else ("epsilon", request.epsilon)
    sql = request.sql.strip().removesuffix(";")
    settings = {
        name: str(value) for name, value in ((spend, amount), ("purpose", request.purpose)) if value is not None
    }
    arguments = "".join(f", {name}={_text(value)}" for name, value in settings.items())
    python = (
        "import os\nimport discreet as dc\n\n"
        f'curator = dc.remote({_text(address)}, os.environ["TOKEN"])\n'
        f"answer = curator.ask({_text(sql)}{arguments})\n"
        "print(answer)"
    )
    if pg_port is None:
        body = shlex.quote(json.dumps({"sql": sql, **settings}))
        curl = f"curl -s {address}/api/v1/ask -H \"Authorization: Bearer $TOKEN\" -H 'Accept: text/csv' \\\n  -d {body}"
        return Snippet("Python", python), Snippet("curl", curl), Snippet("R", f"read.csv(pipe({_text(curl)}))")
    host, end = urlsplit(address).hostname or "127.0.0.1", _unused_line(sql)
    commands = [f"SET discreet.{name} = {_sql_text(value)}" for name, value in settings.items()]
    connection = f"host={host} port={pg_port} user={_connection_value(name)} dbname={_connection_value(database)}"
    lines = "\n".join(f"{line};" for line in (*commands, sql))
    psql = f"PGPASSWORD=\"$TOKEN\" psql {shlex.quote(connection)} <<'{end}'\n{lines}\n{end}"
    r = "\n".join(
        [
            "library(RPostgreSQL)",
            f"con <- dbConnect(PostgreSQL(), host = {_text(host)}, port = {pg_port}, user = {_text(name)},",
            f'                 dbname = {_text(database)}, password = Sys.getenv("TOKEN"))',
            *(f"invisible(dbGetQuery(con, {_text(command)}))" for command in commands),
            f"dbGetQuery(con, {_text(sql)})",
        ]
    )
    return Snippet("Python", python), Snippet("psql", psql), Snippet("R", r)


def _text(text: str) -> str:
    """Write a text in double quotes, which Python and R read alike."""
    return json.dumps(text, ensure_ascii=False)


def _sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _connection_value(text: str) -> str:
    """Write a value of a connection string, as libpq reads it."""
    return text if text.isidentifier() else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _unused_line(sql: str) -> str:
    lines, word = set(sql.split("\n")), "SQL"
    while word in lines:
        word += "_"
    return word
