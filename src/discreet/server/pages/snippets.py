"""The same question for other tools: psql, Python, R and curl."""

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


def snippets(request: QueryRequest, address: str, name: str, database: str) -> tuple[Snippet, ...]:
    """Return a question as it is asked from other tools; the token is left for the reader to fill in.

    >>> request = QueryRequest("SELECT 1", epsilon="1/10")
    >>> [each.tool for each in snippets(request, "http://127.0.0.1:8000", "ana", "town")]
    ['Python', 'psql', 'R']
    """
    host = urlsplit(address).hostname or "127.0.0.1"
    setting, amount = ("margin", request.margin) if request.margin is not None else ("epsilon", request.epsilon)
    sql = request.sql.strip().removesuffix(";")
    argument = "" if amount is None else f", {setting}={_python_text(str(amount))}"
    set_line = "" if amount is None else f"SET discreet.{setting} = '{amount}';\n"
    end = _unused_line(sql)
    python = (
        "import discreet as dc\n\n"
        f'with dc.remote({_python_text(address)}, token="dsc_…") as remote:\n'
        f"    answer = remote.ask({_python_text(sql)}{argument})\n"
        "    print(answer)"
    )
    connection = f"host={host} user={_connection_value(name)} dbname={_connection_value(database)}"
    psql = f"psql {shlex.quote(connection)} <<'{end}'\n{set_line}{sql};\n{end}"
    r = (
        "library(DBI)\n"
        f"con <- dbConnect(RPostgreSQL::PostgreSQL(), host = {_python_text(host)}, user = {_python_text(name)},\n"
        f'                 dbname = {_python_text(database)}, password = Sys.getenv("DISCREET_TOKEN"))\n'
        + (f"dbExecute(con, {_python_text(set_line.strip())})\n" if set_line else "")
        + f"dbGetQuery(con, {_python_text(sql)})"
    )
    return Snippet("Python", python), Snippet("psql", psql), Snippet("R", r)


def _python_text(text: str) -> str:
    """Write a text in double quotes, which Python and R read alike."""
    return json.dumps(text, ensure_ascii=False)


def _connection_value(text: str) -> str:
    """Write a value of a connection string, as libpq reads it."""
    return text if text.isidentifier() else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _unused_line(sql: str) -> str:
    lines, word = set(sql.split("\n")), "SQL"
    while word in lines:
        word += "_"
    return word
