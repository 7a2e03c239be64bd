"""SET, RESET and SHOW, for every interface that takes SQL statements: what they say, and the settings of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import Token, TokenType

from discreet.dbapi.errors import QuestionRefused
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import as_positive
from discreet.policy.problems import shorten
from discreet.query.syntax.parse import check_text, tokenise

_COMMANDS = ("EXPLAIN", "SET", "RESET", "SHOW")
_COSTS = ("epsilon", "rho", "margin")
NAMES = (*_COSTS, "details", "purpose")
PREFIX = "discreet."
_CATALOG_WORDS = ("TABLES", "COLUMNS")  # after SHOW: statements that the curator answers
_EXAMPLES = {"SET": "SET epsilon = 0.1", "RESET": "RESET epsilon", "SHOW": "SHOW epsilon"}
_SWITCHES = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
_MAX_PURPOSE = 200  # characters
_ALIASES = {("TIME", "ZONE"): "timezone", ("NAMES",): "client_encoding", ("TRANSACTION",): "transaction"}
_LEVEL = ("TRANSACTION", "ISOLATION", "LEVEL")


@dataclass(frozen=True)
class QuerySettings:
    """What SET changes: the cost or margin of a query that states none, whether details are shown, and the purpose.

    At most one of epsilon, rho and margin is set; if none is, the policy's default applies.

    >>> with_setting(QuerySettings(), QuerySettings(), "epsilon", "1/10", Budget(1)).epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    margin: Fraction | None = None
    details: bool = False
    purpose: str | None = None

    @property
    def states_cost(self) -> bool:
        """Whether a cost or a margin is set."""
        return (self.epsilon, self.rho, self.margin) != (None, None, None)

    def without_cost(self) -> "QuerySettings":
        """Return the settings for a query that states its own cost."""
        return replace(self, epsilon=None, rho=None, margin=None)


@dataclass(frozen=True)
class SettingStatement:
    """A SET, RESET or SHOW: the setting in lower case, and its new value as text; None for DEFAULT or without one."""

    name: str
    value: str | None = None
    is_local: bool = False


def split_command(text: str) -> tuple[str, str]:
    """Split off a leading command, replacing it by spaces so that positions in the rest stay the same.

    >>> split_command("explain SELECT 1"), split_command("SELECT 1")
    (('EXPLAIN', '        SELECT 1'), ('', 'SELECT 1'))
    """
    check_text(text)
    text = (
        text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    )  # a byte order mark, as some editors write it
    first = next(iter(tokenise(text)), None)
    if first is None or text[first.start : first.end + 1].upper() not in _COMMANDS:
        return "", text
    command, rest = first.text.upper(), text[: first.start] + " " * len(first.text) + text[first.end + 1 :]
    if command == "SHOW" and any(token.text.upper() in _CATALOG_WORDS for token in tokenise(rest)[:1]):
        return "", text
    return command, rest


def parse_setting(command: str, rest: str) -> SettingStatement:
    """Read what follows SET, RESET or SHOW.

    >>> parse_setting("SET", "LOCAL search_path TO a, 'b'")
    SettingStatement(name='search_path', value='a, b', is_local=True)
    >>> parse_setting("SHOW", "TIME ZONE").name, parse_setting("RESET", "ALL").name
    ('timezone', 'all')
    """
    tokens = [token for token in tokenise(rest) if token.token_type is not TokenType.SEMICOLON]
    is_local = command == "SET" and [token.text.upper() for token in tokens[:1]] == ["LOCAL"]
    if command == "SET" and tokens and tokens[0].text.upper() in ("LOCAL", "SESSION"):
        tokens = tokens[1:]
    name, remaining = _take_name(tokens)
    values = remaining[1:] if remaining and remaining[0].text.upper() in ("=", "TO") else remaining
    has_sign = len(values) < len(remaining)
    if name == "transaction":
        return SettingStatement(name, " ".join(token.text for token in values), is_local)
    if not name or bool(values) != (command == "SET") or has_sign != (bool(values) and not _is_alias(tokens)):
        raise QuestionRefused(f"{command}: syntax error. Write {_EXAMPLES[command]}.")
    if [token.token_type for token in values] == [TokenType.DEFAULT]:
        return SettingStatement(name, None, is_local)
    return SettingStatement(name, _value_text(values) if values else None, is_local)


def _is_alias(tokens: Sequence[Token]) -> bool:
    words = tuple(token.text.upper() for token in tokens[:2])
    return words in _ALIASES or words[:1] in _ALIASES


def _take_name(tokens: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    """Return the name of a setting in lower case, and the tokens after it."""
    words = tuple(token.text.upper() for token in tokens)
    if words[:3] == _LEVEL:
        return "transaction_isolation", tokens[3:]
    if words[:2] == ("CHARACTERISTICS", "AS"):
        return "transaction", tokens[3:]
    for alias, name in _ALIASES.items():
        if words[: len(alias)] == alias:
            return name, tokens[len(alias) :]
    end = 1
    while words[end : end + 1] == (".",):
        end += 2
    return "".join(token.text for token in tokens[:end]).lower(), tokens[end:]


def _value_text(tokens: Sequence[Token]) -> str:
    """Return a value as text: signs and fractions together, lists with commas between."""
    return "".join(", " if token.token_type is TokenType.COMMA else token.text for token in tokens)


def own_setting(name: str) -> str | None:
    """Return a setting of ours without its prefix; None if the name is none of them.

    >>> own_setting("discreet.epsilon"), own_setting("work_mem")
    ('epsilon', None)
    """
    short = name.removeprefix(PREFIX)
    return short if short in NAMES else None


def unknown_setting(command: str, name: str) -> QuestionRefused:
    """Return the refusal of a setting that does not exist."""
    return QuestionRefused(
        f'{command}: unrecognized configuration parameter "{shorten(name)}". The parameters are {", ".join(NAMES)}.'
    )


def with_setting(
    settings: QuerySettings, initial: QuerySettings, name: str, value: str | None, budget: Budget
) -> QuerySettings:
    """Return the settings after SET, or after RESET if the value is None, which restores the initial ones."""
    if name == "details":
        return replace(settings, details=initial.details if value is None else _read_switch(value))
    if name == "purpose":
        if value is not None and len(value) > _MAX_PURPOSE:
            raise QuestionRefused(f"purpose: more than {_MAX_PURPOSE:,} characters. State it in a few words.")
        return replace(settings, purpose=initial.purpose if value is None else value.strip() or None)
    if value is None:
        return replace(settings, epsilon=initial.epsilon, rho=initial.rho, margin=initial.margin)
    cost = read_cost(name, value, budget)
    epsilon, rho, margin = (cost if name == each else None for each in _COSTS)
    return replace(settings, epsilon=epsilon, rho=rho, margin=margin)


def read_cost(name: str, value: object, budget: Budget) -> Fraction:
    """Return a cost or a margin; rho needs a budget with a delta."""
    if name == "rho" and budget.rho is None:
        raise QuestionRefused(
            "rho: the budget is pure (it has no delta), so the cost is in epsilon. Set epsilon instead."
        )
    try:
        return as_positive(value, name)
    except (TypeError, ValueError) as error:
        raise QuestionRefused(f"{error}.") from None


def _read_switch(value: str) -> bool:
    if value.lower() not in _SWITCHES:
        raise QuestionRefused("SET details: the value must be on or off. Write SET details = on.")
    return _SWITCHES[value.lower()]


def shown_value(settings: QuerySettings, name: str, default_epsilon: Fraction | None) -> str | None:
    """Return a setting as SHOW writes it; the cost is the policy's default if none is set.

    >>> shown_value(QuerySettings(), "epsilon", Fraction(1, 4)), shown_value(QuerySettings(), "details", None)
    ('1/4', 'off')
    """
    value = getattr(settings, name)
    if name == "epsilon" and not settings.states_cost:
        value = default_epsilon
    if isinstance(value, bool):
        return "on" if value else "off"
    return None if value is None else str(value)
