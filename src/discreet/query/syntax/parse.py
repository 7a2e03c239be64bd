"""Parse SQL safely: any text gives one SELECT or a refusal, in bounded time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser

from discreet.kernel.errors import Refused
from discreet.kernel.numbers import as_positive
from discreet.policy.declarations import AUTO, Bound
from discreet.policy.problems import did_you_mean, shorten
from discreet.query.syntax.syntax_tree import check_counts, end_sentence, line_of

_MAX_TREE_DEPTH = 200
_MAX_STEPS_PER_TOKEN = 20  # ordinary queries take one or two
_SIMPLIFY_HINT = "Simplify it, for example by moving inner queries to WITH."
_TIME_UNITS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
_WRITING_NODES = (exp.DDL, exp.DML, exp.Command, exp.Into, exp.Lock, exp.Set, exp.Pragma)


class _TooManySteps(Exception):  # noqa: N818 - an outcome
    """The parser backtracked too often; nested types and arrays take 2^depth steps."""


def _build_date_diff(args: list[exp.Expr]) -> exp.DateDiff:
    """Return DATE_DIFF('unit', start, end) as DATE_DIFF(end, start, unit), and another order as it is.

    sqlglot would take the third argument for the unit, whatever its name or quotes.
    """
    if len(args) == 3 and isinstance(args[0], exp.Literal | exp.Column) and args[0].name.lower() in _TIME_UNITS:
        return exp.DateDiff(this=args[2], expression=args[1], unit=exp.var(args[0].name))
    built: exp.DateDiff = exp.DateDiff.from_arg_list(args)
    return built


class _BoundedParser(PostgresParser):
    """sqlglot's PostgreSQL parser with a limit on its steps."""

    FUNCTIONS = {  # noqa: RUF012 - as the parser's own
        **PostgresParser.FUNCTIONS,
        "EVERY": exp.LogicalAnd.from_arg_list,
        "DATE_DIFF": _build_date_diff,
        "DATEDIFF": _build_date_diff,
    }
    steps_left = 0

    def _advance(self, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise _TooManySteps
        super()._advance(times)


def build_tree(text: str, tokens: Sequence[Token]) -> exp.Expression:
    """Return the syntax tree of a SELECT; the metadata of functions has their names as written."""
    query = _parse_tokens(text, tokens)
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        if [name for name, value in query.args.items() if value and name != "this"]:
            raise Refused(f"{line_of(query)}: the whole query is in parentheses. Remove the outer ones.")
        query = query.this
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise Refused("line 1: this is not a SELECT. Write a SELECT query.")
    query.pop()  # out of the parentheses
    _check_tree(query)
    check_counts(query)
    for call in query.find_all(exp.Func, exp.Binary):
        if "start" in call.meta:
            call.meta["name"] = text[call.meta["start"] : call.meta["end"] + 1].lower()
    return query


def _parse_tokens(text: str, tokens: Sequence[Token]) -> exp.Expr | None:
    parser = _BoundedParser(dialect=Postgres(), error_level=ErrorLevel.IMMEDIATE)
    parser.steps_left = 1_000 + _MAX_STEPS_PER_TOKEN * len(tokens)
    try:
        statements = parser.parse(list(tokens), text)
    except ParseError as error:
        raise Refused(_syntax_error(error)) from None
    except (RecursionError, _TooManySteps):
        raise Refused(f"line 1: the query is nested too deeply. {_SIMPLIFY_HINT}") from None
    except Exception:  # noqa: BLE001 - any failure of sqlglot is a failure to parse the text
        raise Refused(f"line 1: the query cannot be parsed. {_SIMPLIFY_HINT}") from None
    return statements[0] if len(statements) == 1 else None


def _syntax_error(error: ParseError) -> str:
    details = error.errors[0] if error.errors else {}
    near, line, end = (details.get(key) for key in ("highlight", "line", "col"))
    where = f"line {line or 1}, column {max(1, (end or 1) - len(near or '') + 1)}"
    cause = _parse_cause(str(details.get("description") or ""))
    return f'{where}: syntax error at or near "{shorten(near or "")}"{cause}. Check the query there and just before it.'


def _parse_cause(description: str) -> str:
    """Return what sqlglot says of an error, without the names of its classes."""
    if description.startswith("Required keyword"):
        return ": an argument or operand is missing"
    if description.startswith("The number of provided arguments"):
        return ": too many arguments"
    known = description.startswith("Expect") and "<" not in description
    return f": e{shorten(description[1:])}" if known else ""


def _check_tree(query: exp.Expr) -> None:
    """Refuse statements that write, and trees that are too deep for recursion."""
    waiting = [(query, 1)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, _WRITING_NODES):
            raise Refused(
                f"{line_of(node)}: {node.key.upper()} is not supported, because queries are read-only. Leave it out."
            )
        if depth > _MAX_TREE_DEPTH:
            raise Refused(
                f"{line_of(node)}: an expression is nested more than {_MAX_TREE_DEPTH} levels deep. {_SIMPLIFY_HINT}"
            )
        waiting += [(child, depth + 1) for child in node.iter_expressions()]


_MAX_CHARACTERS = 100_000
_MAX_TOKENS = 10_000  # parsing takes about 30 µs per token
_MAX_NESTING = 40  # sqlglot exhausts the stack soon after
_RECENT_TEXTS = 4  # of which the tokens and the tree are kept; a tree takes up to 200 bytes for each character

_OPENING_OF = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}
_OPENING_OF |= {TokenType.R_BRACE: TokenType.L_BRACE, TokenType.END: TokenType.CASE}
_BEFORE_LISTS = frozenset(
    {
        *(TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY),
        *(TokenType.L_PAREN, TokenType.COMMA),
    }
)
_FIRST_WORDS = frozenset({"SELECT", "WITH", "("})
_SELECT_HINT = "Write a SELECT query."
_STATEMENT_HINTS = {
    **dict.fromkeys(("PRAGMA", "SUMMARIZE"), "SHOW TABLES and DESCRIBE show what the policy declares."),
    **dict.fromkeys(("FROM", "TABLE", "VALUES"), "Begin with SELECT."),
    "ANALYZE": "EXPLAIN without ANALYZE shows the cost and the margins of error, and is free.",
}
_SHOW_TABLES = "SELECT table_name, is_private FROM information_schema.tables"
_DESCRIBE = (
    "SELECT column_name, data_type, is_nullable, minimum, maximum, declared_values, is_unit "
    "FROM information_schema.columns"
)
_OPTION_FIELDS = {  # of PrivacyOptions
    "epsilon": "epsilon",
    "delta": "delta",
    "max_groups_contributed": "groups",
    "max_rows_contributed": "rows",
    "privacy_unit_column": "unit",
}
_TOKENIZER_OFFSET = re.compile(r" from \d+:(\d+)$")  # line and offset where the tokenizer stopped


@dataclass(frozen=True)
class PrivacyOptions:
    """The values of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(…)."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    groups: Bound | None = None
    rows: Bound | None = None
    unit: str | None = None


@dataclass(frozen=True)
class ParsedQuery:
    """A parsed query: its syntax tree, whether it is an EXPLAIN, its privacy options, and its WITHIN margin.

    `described` is the table of a DESCRIBE, whose tree selects the columns of all tables.
    """

    query: exp.Expression
    explain: bool
    options: PrivacyOptions
    within: Fraction | None
    described: exp.Table | None = None


@lru_cache(maxsize=_RECENT_TEXTS)
def parse_query(text: str) -> ParsedQuery:
    """Parse a query; Refused if that is not possible. Nothing may change the tree, which later callers get too.

    >>> parsed = parse_query("EXPLAIN SELECT count(*) FROM visits WITHIN 50;")
    >>> parsed.query.sql(), parsed.explain, parsed.within
    ('SELECT COUNT(*) FROM visits', True, Fraction(50, 1))
    >>> parse_query("SHOW TABLES").query.sql()
    'SELECT table_name, is_private FROM information_schema.tables'
    """
    check_text(text)
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text  # a byte order mark
    tokens, words = tokenise(text), set()
    for word in ("EXPLAIN", "SHOW"):  # the tokenizer takes the rest for one string; spaces keep the positions
        if tokens and tokens[0].text.upper() == word:
            words.add(word)
            text = text[: tokens[0].start] + " " * len(word) + text[tokens[0].end + 1 :]
            tokens = tokenise(text)
    explain, stream = "EXPLAIN" in words, TokenStream(text, tokens)
    stream.take_semicolons()
    if "SHOW" in words or stream.describes:
        described = stream.take_described_table()
        catalog_sql = _SHOW_TABLES if described is None else _DESCRIBE
        return ParsedQuery(build_tree(catalog_sql, tokenise(catalog_sql)), explain, PrivacyOptions(), None, described)
    stream.check_statement()
    stream.check_nesting()
    stream.check_commas()
    stream.check_top()
    within = stream.take_within()
    options = stream.take_options()
    return ParsedQuery(build_tree(text, stream.tokens), explain, options, within)


def check_text(text: str) -> None:
    """Refuse a text that is too long, or that cannot be stored."""
    if len(text) > _MAX_CHARACTERS:
        raise Refused(f"the query has {len(text):,} characters; the limit is {_MAX_CHARACTERS:,}. Shorten it.")
    if (zero := text.find("\0")) >= 0:
        raise Refused(f"{_line_and_column(text, zero)}: NUL characters are not allowed. Remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"{_line_and_column(text, error.start)}: invalid Unicode (a lone surrogate). Remove it."
        ) from None


@lru_cache(maxsize=_RECENT_TEXTS)
def tokenise(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text, without comments; who reads a text often asks for them again."""
    try:
        tokens = Postgres().tokenize(text)
    except TokenError as error:
        raise Refused(_unclosed_message(text, str(error.__cause__))) from None
    except Exception:  # noqa: BLE001 - every text is parsed or refused
        raise Refused("line 1: the query cannot be parsed. Simplify it.") from None
    if len(tokens) > _MAX_TOKENS:
        raise Refused(f"line 1: the query has more than {_MAX_TOKENS:,} tokens. Shorten it.")
    for token in tokens:
        token.comments = []  # sqlglot interprets some comments as hints
        if token.token_type is TokenType.VAR and not token.text.isprintable():
            code = next(f"U+{ord(letter):04X}" for letter in token.text if not letter.isprintable())
            where = _line_and_column(text, token.start)
            raise Refused(f'{where}: "{shorten(token.text)}" contains an invisible character ({code}). Delete it.')
    return tuple(tokens)


def _unclosed_message(text: str, cause: str) -> str:
    match = _TOKENIZER_OFFSET.search(cause)
    where = _line_and_column(text, int(match[1])) if match else "line 1"
    return f"{where}: unterminated or malformed quoted string or comment. Close it."


def _line_and_column(text: str, offset: int) -> str:
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)}"


class TokenStream:
    """The tokens of a query, from which the extensions that sqlglot does not know are removed one by one."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._text = text
        self.tokens = list(tokens)

    def take_semicolons(self) -> None:
        """Remove trailing semicolons, and refuse a second statement."""
        while self.tokens and self.tokens[-1].token_type is TokenType.SEMICOLON:
            self.tokens.pop()
        for token in self.tokens:
            if token.token_type is TokenType.SEMICOLON:
                raise self._refuse(token, "only one statement is allowed", "Send one query at a time.")

    @property
    def describes(self) -> bool:
        """Whether the statement is DESCRIBE or DESC."""
        return self._word_at(0) in ("DESCRIBE", "DESC")

    def take_described_table(self) -> exp.Table | None:
        """Return the table of DESCRIBE t or [SHOW] COLUMNS FROM t; None for [SHOW] TABLES."""
        words = [self._word_at(at) for at in range(len(self.tokens))]
        if words == ["TABLES"]:
            return None
        leading = 1 if self.describes else 2
        expected = self.describes or words[:2] in (["COLUMNS", "FROM"], ["COLUMNS", "IN"])
        name = self.tokens[-1] if expected and len(words) == leading + 1 else None
        if name is None or not (name.token_type is TokenType.IDENTIFIER or words[-1].isidentifier()):
            place = self.tokens[0] if self.tokens else Token(TokenType.VAR, "")
            cause = f'syntax error at or near "{shorten(place.text)}"'
            raise self._refuse(place, cause, "Write SHOW TABLES, or DESCRIBE and the name of one table.")
        identifier = exp.to_identifier(name.text, quoted=name.token_type is TokenType.IDENTIFIER)
        identifier.meta["line"] = name.line
        return exp.Table(this=identifier)

    def check_statement(self) -> None:
        """Refuse everything except SELECT and WITH."""
        if not self.tokens:
            raise Refused(f"line 1: the query is empty. {_SELECT_HINT}")
        first = self.tokens[0]
        word = first.text.upper()
        inside = self.tokens[1].text.upper() if len(self.tokens) > 1 else ""
        if (
            word not in _FIRST_WORDS
            or first.token_type is TokenType.IDENTIFIER
            or (word == "(" and inside not in _FIRST_WORDS)
        ):
            word = word if word != "(" else inside or "("
            cause = f'syntax error at or near "{shorten(word)}": expected SELECT or WITH'
            raise self._refuse(first, cause, _STATEMENT_HINTS.get(word, _SELECT_HINT))

    def check_commas(self) -> None:
        """Refuse a comma with nothing before it, which sqlglot ignores."""
        for before, token in pairwise(self.tokens):
            if token.token_type is TokenType.COMMA and before.token_type in _BEFORE_LISTS:
                raise self._refuse(token, 'syntax error at or near ","', "Write an expression before it, or remove it.")

    def check_top(self) -> None:
        """Refuse SELECT TOP 10, with a hint."""
        for at, token in enumerate(self.tokens):
            number = self.tokens[at + 1] if at + 1 < len(self.tokens) else token
            if (
                self._word_at(at) == "TOP"
                and number.token_type is TokenType.NUMBER
                and self._word_at(at - 1) in ("SELECT", "DISTINCT")
            ):
                hint = f"Write ORDER BY … LIMIT {shorten(number.text)} at the end."
                raise self._refuse(token, "TOP is not supported", hint)

    def check_nesting(self) -> None:
        """Refuse unbalanced brackets and CASE, and those nested too deeply for a recursive parser."""
        opened: list[Token] = []
        for token in self.tokens:
            kind = token.token_type
            if kind in _OPENING_OF.values():
                opened.append(token)
                if len(opened) > _MAX_NESTING:
                    cause = f"brackets and CASE are nested more than {_MAX_NESTING} levels deep"
                    raise self._refuse(token, cause, "Move inner queries to WITH.")
            elif kind in _OPENING_OF:
                if opened and opened[-1].token_type is _OPENING_OF[kind]:
                    opened.pop()
                elif kind is not TokenType.END:
                    raise self._refuse(token, f'unmatched "{token.text}"', "Open it, or remove it.")
        if opened:
            raise self._refuse(opened[-1], f'unclosed "{opened[-1].text}"', "Close it.")

    def take_within(self) -> Fraction | None:
        """Remove a trailing WITHIN 50, and return its number."""
        if not self.tokens or self.tokens[-1].token_type not in (TokenType.NUMBER, TokenType.STRING):
            return None
        number = self.tokens[-1]
        if self._word_at(-3) == "WITHIN" and self._word_at(-2) in ("+", "-"):
            raise self._refuse(number, "WITHIN takes a positive number without a sign", "Write WITHIN 50, for ±50.")
        if self._word_at(-2) != "WITHIN":
            return None
        del self.tokens[-2:]
        return self._positive_number(number, "WITHIN")

    def take_options(self) -> PrivacyOptions:
        """Remove WITH DIFFERENTIAL_PRIVACY OPTIONS(…), which may follow one SELECT, and return the options."""
        positions = [at for at in range(len(self.tokens)) if self._word_at(at) == "DIFFERENTIAL_PRIVACY"]
        positions = [at for at in positions if self._word_at(at - 1) == "WITH" and self._word_at(at - 2) == "SELECT"]
        if not positions:
            return PrivacyOptions()
        if len(positions) > 1:
            cause = "WITH DIFFERENTIAL_PRIVACY is given more than once"
            raise self._refuse(self.tokens[positions[1]], cause, "Give it once: its cost is that of the whole query.")
        at = positions[0]
        if self._word_at(at + 1) != "OPTIONS" or self._word_at(at + 2) != "(":
            del self.tokens[at - 1 : at + 1]
            return PrivacyOptions()
        end = next(i for i in range(at, len(self.tokens)) if self.tokens[i].token_type is TokenType.R_PAREN)
        inside = self.tokens[at + 3 : end]
        del self.tokens[at - 1 : end + 1]
        return self._parse_options(inside)

    def _parse_options(self, tokens: list[Token]) -> PrivacyOptions:
        values: dict[str, Fraction | int | str] = {}
        for start in range(0, len(tokens), 4):
            name, *rest = tokens[start : start + 4]
            key = name.text.lower()
            if key not in _OPTION_FIELDS:
                cause = f'option "{shorten(name.text)}" does not exist{did_you_mean(key, _OPTION_FIELDS)}'
                raise self._refuse(name, cause, f"The options are {', '.join(_OPTION_FIELDS)}.")
            if [token.text for token in (*rest[:1], *rest[2:])] not in (["="], ["=", ","]) or len(rest) < 2:
                raise self._refuse(name, f"{key} has no value", f"Write {key} = value, with commas between options.")
            if _OPTION_FIELDS[key] in values:
                raise self._refuse(name, f"{key} is given twice", "Give it once.")
            values[_OPTION_FIELDS[key]] = self._option_value(key, rest[1])
        return PrivacyOptions(**values)  # type: ignore[arg-type]

    def _option_value(self, key: str, value: Token) -> Fraction | int | str:
        if key in ("epsilon", "delta"):
            return self._positive_number(value, key)
        if key != "privacy_unit_column":
            if value.token_type is not TokenType.NUMBER and value.text.lower() == AUTO:
                return AUTO
            if (
                value.token_type is not TokenType.NUMBER
                or not value.text.isdecimal()
                or len(value.text) > 9
                or not int(value.text)
            ):
                raise self._refuse(value, f"{key} must be a positive integer or 'auto'", f"Write {key} = 5, or 'auto'.")
            return int(value.text)
        if value.token_type not in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING):
            raise self._refuse(value, f"{key} must be a column name", f"Write {key} = person.")
        return value.text

    def _positive_number(self, token: Token, name: str) -> Fraction:
        try:
            return as_positive(token.text if token.token_type in (TokenType.NUMBER, TokenType.STRING) else "", name)
        except ValueError:
            hint = f"Write {name} 50." if name == "WITHIN" else f"Write {name} = 0.1, or '1/10'."
            raise self._refuse(token, f"{name} must be a positive number", hint) from None

    def _word_at(self, at: int) -> str:
        inside = -len(self.tokens) <= at < len(self.tokens)
        return self.tokens[at].text.upper() if inside and self.tokens[at].token_type is not TokenType.STRING else ""

    def _refuse(self, token: Token, cause: str, hint: str) -> Refused:
        return Refused(f"{_line_and_column(self._text, token.start)}: {end_sentence(cause)} {end_sentence(hint)}")
