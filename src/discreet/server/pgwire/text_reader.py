"""What texts say: their statements, and the tree of each query; in threads, because a long text takes long to read."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar, cast

from sqlglot import TokenType, exp

from discreet.query.syntax.parse import parse_query, tokenise
from discreet.server.people.person import Person
from discreet.server.pgwire.actions import Statement
from discreet.server.pgwire.catalog.translate import is_catalog_query
from discreet.server.pgwire.statements import read_statement, split_statements
from discreet.server.service import Service

_MAX_CHARACTERS = 200_000  # of the texts that are remembered; a tree takes up to 200 bytes for each
_SCHEMA = "public"
T = TypeVar("T")


@dataclass(frozen=True)
class QueryText:
    """A parsed query: its text and tree, whether it is about the catalog, and whether it states its own cost."""

    text: str
    tree: exp.Expr
    is_catalog: bool
    states_cost: bool


class TextReader:
    """Reads texts in their person's turn; those that were read lately are remembered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._remembered: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._characters = 0

    async def pieces(self, person: Person, text: str) -> list[tuple[int, str]]:
        """Return the texts of the statements of a message, each with where it begins; a new message counts."""
        if ("message", text) not in self._remembered:
            self._service.count_request(person)
        return await self._read(person, text, ("message", text), lambda: split_statements(text))

    async def statement(self, person: Person, text: str, offset: int) -> Statement:
        """Return what a statement does; Refused if its form is wrong."""
        return await self._read(person, text, (text, offset), lambda: read_statement(text, offset))

    async def query(self, person: Person, text: str, own_tables: frozenset[str]) -> QueryText:
        """Return a parsed query; Refused if it cannot be parsed. `own_tables` are those that the person may query."""
        return await self._read(person, text, (text, own_tables), lambda: _parse(text, own_tables))

    async def work(self, person: Person, work: Callable[[], T]) -> T:
        """Do something else with a text, which counts as a request."""
        self._service.count_request(person)
        return await self._service.run_light(person, work)

    async def _read(self, person: Person, text: str, key: Hashable, read: Callable[[], T]) -> T:
        if key in self._remembered:
            self._remembered.move_to_end(key)
            return cast("T", self._remembered[key][1])
        result = await self._service.run_light(person, read)
        self._remember(key, len(text), result)
        return result

    def _remember(self, key: Hashable, characters: int, result: object) -> None:
        replaced, _ = self._remembered.pop(key, (0, None))
        self._remembered[key] = characters, result
        self._characters += characters - replaced
        while self._characters > _MAX_CHARACTERS and len(self._remembered) > 1:
            _, (forgotten, _) = self._remembered.popitem(last=False)
            self._characters -= forgotten


def _parse(text: str, own_tables: frozenset[str]) -> QueryText:
    plain = plain_text(text)
    parsed = parse_query(plain)
    is_catalog = parsed.described is None and is_catalog_query(parsed.query, own_tables)
    states_cost = parsed.options.epsilon is not None or parsed.within is not None
    return QueryText(plain, parsed.query, is_catalog, states_cost)


def plain_text(text: str) -> str:
    """Replace what the parser does not know by what means the same, so that positions stay as they are.

    The policy's tables are in no schema but public, and oid[] is an array of integers.

    >>> plain_text('SELECT v.n FROM public.visits v, "public"."wards" WHERE x = ANY($1::oid[])')
    'SELECT v.n FROM        visits v,          "wards" WHERE x = ANY($1::int[])'
    """
    lower = text.lower()
    if _SCHEMA not in lower and "oid" not in lower:
        return text
    tokens = tokenise(text)
    for array in [token for token, end in pairwise(tokens) if token.text.lower() == "oid" and end.text == "["]:
        text = f"{text[: array.start]}int{text[array.end + 1 :]}"
    pairs = [(token, dot) for token, dot in pairwise(tokens) if _is_schema(token.text, token.token_type)]
    if any(dot.token_type is not TokenType.DOT for _, dot in pairs):
        return text  # something else has this name too
    for token, dot in pairs:
        text = text[: token.start] + " " * (dot.end + 1 - token.start) + text[dot.end + 1 :]
    return text


def _is_schema(text: str, kind: TokenType) -> bool:
    return text == _SCHEMA if kind is TokenType.IDENTIFIER else kind is TokenType.VAR and text.lower() == _SCHEMA
