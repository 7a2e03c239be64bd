"""The syntax tree of one SELECT, from a parser that cannot run for long, nor build anything too deep to walk."""

from collections.abc import Sequence

from sqlglot import Token, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.postgres import PostgresParser

from discreet.kernel.errors import Refused
from discreet.policy.problems import brief
from discreet.sql.counts import check_counts
from discreet.sql.places import place

_DEEPEST = 200
_STEPS = 20  # an ordinary query takes one or two a token
_SIMPLER = "Write it more simply, with the inner parts named in WITH."
_CHANGES = (exp.DDL, exp.DML, exp.Command, exp.Into, exp.Lock, exp.Set, exp.Pragma)


class _TooLong(Exception):  # noqa: N818 - an outcome
    """The parser went back and forth too often: nested types and arrays take it 2^depth steps."""


class _Parser(PostgresParser):
    """PostgreSQL's parser with a limit on its steps."""

    left = 0

    def _advance(self, times: int = 1) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooLong
        super()._advance(times)


def tree(text: str, tokens: Sequence[Token]) -> exp.Expression:
    """Return the tree of a SELECT; functions remember the name that they were called by."""
    found = _parsed(text, tokens)
    while isinstance(found, exp.Subquery) and isinstance(found.this, exp.Query):
        if [name for name, value in found.args.items() if value and name != "this"]:
            raise Refused(f"{place(found)}: the whole query stands in parentheses. Take off the outer ones.")
        found = found.this
    if not isinstance(found, exp.Select | exp.SetOperation):
        raise Refused("line 1: this is not a SELECT. Ask with SELECT, or WITH … SELECT.")
    found.pop()  # out of the parentheses
    _check(found)
    check_counts(found)
    for call in found.find_all(exp.Func, exp.Binary):
        if "start" in call.meta:
            call.meta["name"] = text[call.meta["start"] : call.meta["end"] + 1].lower()
    return found


def _parsed(text: str, tokens: Sequence[Token]) -> exp.Expr | None:
    parser = _Parser(dialect=Postgres(), error_level=ErrorLevel.IMMEDIATE)
    parser.left = 1_000 + _STEPS * len(tokens)
    try:
        statements = parser.parse(list(tokens), text)
    except ParseError as error:
        raise Refused(_told(error)) from None
    except (RecursionError, _TooLong):
        raise Refused(f"line 1: the query is nested too deeply to be read. {_SIMPLER}") from None
    except Exception:  # noqa: BLE001 - whatever sqlglot stumbles over, the text is at fault
        raise Refused(f"line 1: the query cannot be read. {_SIMPLER}") from None
    return statements[0] if len(statements) == 1 else None


def _told(error: ParseError) -> str:
    known = error.errors[0] if error.errors else {}
    near, line, end = (known.get(key) for key in ("highlight", "line", "col"))
    where = f"line {line or 1}, column {max(1, (end or 1) - len(near or '') + 1)}"
    cause = str(known.get("description") or "")
    said = f": {brief(cause.lower())}" if cause.startswith("Expect") and "<" not in cause else ""
    return f'{where}: the query cannot be read at "{brief(near or "")}"{said}. Look there, and just before it.'


def _check(query: exp.Expr) -> None:
    """Refuse what changes data, and trees that are too deep for those who walk them."""
    waiting = [(query, 1)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, _CHANGES):
            raise Refused(
                f"{place(node)}: {node.key.upper()} changes data or locks it: questions only read. Leave it out."
            )
        if depth > _DEEPEST:
            raise Refused(f"{place(node)}: an expression is more than {_DEEPEST} steps deep. {_SIMPLER}")
        waiting += [(child, depth + 1) for child in node.iter_expressions()]
