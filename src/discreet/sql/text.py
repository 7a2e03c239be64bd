"""From words to a syntax tree, safely: whatever the text is, the outcome is one SELECT or a refusal, and soon."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError

from discreet.kernel.errors import Refused
from discreet.kernel.exact import positive
from discreet.policy.problems import brief, nearest
from discreet.sql.places import sentence
from discreet.sql.text_tree import tree

_MOST_LETTERS = 100_000
_MOST_TOKENS = 10_000  # a parser in Python takes some 30 µs for each
_DEEPEST = 40  # sqlglot runs out of stack soon after

_OPENS = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}
_OPENS |= {TokenType.R_BRACE: TokenType.L_BRACE, TokenType.END: TokenType.CASE}
_BEGINS = frozenset({"SELECT", "WITH", "("})
_SELECT = "Ask with SELECT, or WITH … SELECT."
_WAYS_OUT = {
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "PRAGMA", "SUMMARIZE"), "The policy lists the tables and columns."),
    **dict.fromkeys(("FROM", "TABLE", "VALUES"), "Write SELECT in front."),
    "ANALYZE": "EXPLAIN alone tells price and margins, and is free.",
}
_NUMBERS = {"epsilon": "epsilon", "delta": "delta"}
_COUNTS = {"max_groups_contributed": "groups", "max_rows_contributed": "rows"}
_FROM = re.compile(r" from \d+:(\d+)$")  # where the tokenizer stopped: the line, and the offset in the text
_OPTIONS = (*_NUMBERS, *_COUNTS, "privacy_unit_column")


@dataclass(frozen=True)
class Options:
    """What stood in SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(…)."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    groups: int | None = None
    rows: int | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Parsed:
    """A question taken apart: the query, whether only its price is asked for, and what else was written around it."""

    query: exp.Expression
    explain: bool
    options: Options
    within: Fraction | None


def parse(text: str) -> Parsed:
    """Take a question apart; whatever cannot be read is Refused.

    >>> parsed = parse("EXPLAIN SELECT count(*) FROM visits WITHIN 50;")
    >>> parsed.query.sql(), parsed.explain, parsed.within
    ('SELECT COUNT(*) FROM visits', True, Fraction(50, 1))
    """
    check_letters(text)
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text  # some editors begin files with it
    first = tokenise(text)
    explain = bool(first) and first[0].text.upper() == "EXPLAIN"
    if explain:  # the tokenizer takes all that follows for one string; blanks keep the places of the rest
        text = text[: first[0].start] + " " * len(first[0].text) + text[first[0].end + 1 :]
    words = Words(text, tokenise(text) if explain else first)
    words.take_end()
    words.check_statement()
    words.check_nesting()
    within = words.take_within()
    options = words.take_options()
    return Parsed(tree(text, words.tokens), explain, options, within)


def check_letters(text: str) -> None:
    """Refuse a text that is too long, or that cannot be kept."""
    if len(text) > _MOST_LETTERS:
        raise Refused(f"the query has {len(text):,} characters; at most {_MOST_LETTERS:,} are read. Shorten it.")
    if (zero := text.find("\0")) >= 0:
        raise Refused(f"{_where(text, zero)}: there is a NUL character. Take it out.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"{_where(text, error.start)}: half a character (a lone surrogate). Take it out.") from None


def tokenise(text: str) -> list[Token]:
    """Return the words and signs of a text, without its comments."""
    try:
        found = Postgres().tokenize(text)
    except TokenError as error:
        raise Refused(_unclosed(text, str(error.__cause__))) from None
    except Exception:  # noqa: BLE001 - no text may do anything but be read or refused
        raise Refused("line 1: the query cannot be read. Write it more simply.") from None
    if len(found) > _MOST_TOKENS:
        raise Refused(f"line 1: the query has more than {_MOST_TOKENS:,} tokens. Shorten it.")
    for token in found:
        token.comments = []  # some comments are orders to sqlglot
    return found


def _unclosed(text: str, cause: str) -> str:
    found = _FROM.search(cause)
    where = _where(text, int(found[1])) if found else "line 1"
    return f"{where}: a quotation mark or comment that begins here is never closed, or not well formed. Close it."


def _where(text: str, offset: int) -> str:
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)}"


class Words:
    """The tokens of a text, from which the parts that sqlglot cannot read are taken one by one."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._text = text
        self.tokens = list(tokens)

    def take_end(self) -> None:
        """Take off the last semicolons; others separate statements, and only one is read."""
        while self.tokens and self.tokens[-1].token_type is TokenType.SEMICOLON:
            self.tokens.pop()
        for token in self.tokens:
            if token.token_type is TokenType.SEMICOLON:
                raise self._refuse(
                    token, "a second statement begins after the semicolon", "Ask one question at a time."
                )

    def check_statement(self) -> None:
        """Refuse everything but SELECT."""
        if not self.tokens:
            raise Refused(f"line 1: the query is empty. {_SELECT}")
        first = self.tokens[0]
        word = first.text.upper()
        inside = self.tokens[1].text.upper() if len(self.tokens) > 1 else ""
        if word not in _BEGINS or first.token_type is TokenType.IDENTIFIER or (word == "(" and inside not in _BEGINS):
            word = word if word != "(" else inside or "("
            cause = f"{brief(word)} does not begin a question: questions only read"
            raise self._refuse(first, cause, _WAYS_OUT.get(word, _SELECT))

    def check_nesting(self) -> None:
        """Refuse brackets and CASE that do not match, or that are nested too deeply for a reader that recurses."""
        opened: list[Token] = []
        for token in self.tokens:
            kind = token.token_type
            if kind in _OPENS.values():
                opened.append(token)
                if len(opened) > _DEEPEST:
                    cause = f"brackets and CASE are nested more than {_DEEPEST} deep"
                    raise self._refuse(token, cause, "Name the inner parts in WITH.")
            elif kind in _OPENS:
                if opened and opened[-1].token_type is _OPENS[kind]:
                    opened.pop()
                elif kind is not TokenType.END:
                    raise self._refuse(token, f'"{token.text}" closes nothing', "Open it, or take it out.")
        if opened:
            raise self._refuse(opened[-1], f'"{opened[-1].text}" is never closed', "Close it.")

    def take_within(self) -> Fraction | None:
        """Take off WITHIN 50 at the end."""
        if not self.tokens or self.tokens[-1].token_type not in (TokenType.NUMBER, TokenType.STRING):
            return None
        number = self.tokens[-1]
        if self._word(-3) == "WITHIN" and self._word(-2) in ("+", "-"):
            raise self._refuse(number, "WITHIN takes a number above 0, without a sign", "Write WITHIN 50, for ±50.")
        if self._word(-2) != "WITHIN":
            return None
        del self.tokens[-2:]
        return self._positive(number, "WITHIN")

    def take_options(self) -> Options:
        """Take out WITH DIFFERENTIAL_PRIVACY OPTIONS(…), which may follow one SELECT."""
        places = [at for at in range(len(self.tokens)) if self._word(at) == "DIFFERENTIAL_PRIVACY"]
        places = [at for at in places if self._word(at - 1) == "WITH" and self._word(at - 2) == "SELECT"]
        if not places:
            return Options()
        if len(places) > 1:
            cause = "WITH DIFFERENTIAL_PRIVACY stands at more than one SELECT"
            raise self._refuse(self.tokens[places[1]], cause, "Leave it at one: the price is that of the whole query.")
        at = places[0]
        if self._word(at + 1) != "OPTIONS" or self._word(at + 2) != "(":
            del self.tokens[at - 1 : at + 1]
            return Options()
        end = next(i for i in range(at, len(self.tokens)) if self.tokens[i].token_type is TokenType.R_PAREN)
        inside = self.tokens[at + 3 : end]
        del self.tokens[at - 1 : end + 1]
        return self._options(inside)

    def _options(self, tokens: list[Token]) -> Options:
        found: dict[str, Fraction | int | str] = {}
        for start in range(0, len(tokens), 4):
            name, *rest = tokens[start : start + 4]
            key = name.text.lower()
            if key not in _OPTIONS:
                cause = f'there is no option "{brief(name.text)}"{nearest(key, _OPTIONS)}'
                raise self._refuse(name, cause, f"The options are {', '.join(_OPTIONS)}.")
            if [token.text for token in (*rest[:1], *rest[2:])] not in (["="], ["=", ","]) or len(rest) < 2:
                raise self._refuse(name, f"{key} has no value", f"Write {key} = value, with commas between options.")
            field = _NUMBERS.get(key) or _COUNTS.get(key) or "unit"
            if field in found:
                raise self._refuse(name, f"{key} is given twice", "Give it once.")
            found[field] = self._option(key, rest[1])
        return Options(**found)  # type: ignore[arg-type]

    def _option(self, key: str, value: Token) -> Fraction | int | str:
        if key in _NUMBERS:
            return self._positive(value, key)
        if key in _COUNTS:
            if (
                value.token_type is not TokenType.NUMBER
                or not value.text.isdecimal()
                or len(value.text) > 9
                or not int(value.text)
            ):
                raise self._refuse(value, f"{key} must be a whole number above 0", f"Write {key} = 5.")
            return int(value.text)
        if value.token_type not in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING):
            raise self._refuse(value, f"{key} must be the name of a column", f"Write {key} = person.")
        return value.text

    def _positive(self, token: Token, name: str) -> Fraction:
        try:
            return positive(token.text if token.token_type in (TokenType.NUMBER, TokenType.STRING) else "", name)
        except ValueError:
            way_out = f"Write {name} 50." if name == "WITHIN" else f"Write {name} = 0.1, or '1/10'."
            raise self._refuse(token, f"{name} must be a number above 0", way_out) from None

    def _word(self, at: int) -> str:
        inside = -len(self.tokens) <= at < len(self.tokens)
        return self.tokens[at].text.upper() if inside and self.tokens[at].token_type is not TokenType.STRING else ""

    def _refuse(self, token: Token, cause: str, way_out: str) -> Refused:
        return Refused(f"{_where(self._text, token.start)}: {sentence(cause)} {sentence(way_out)}")
