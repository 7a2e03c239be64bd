"""What stands before a question, or instead of one: EXPLAIN, SET, RESET and SHOW."""

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import TokenType

from discreet.dbapi.errors import QuestionRefused
from discreet.kernel.exact import positive
from discreet.kernel.loss import Budget
from discreet.policy.problems import brief
from discreet.sql.text import check_letters, tokenise

_WORDS = ("EXPLAIN", "SET", "RESET", "SHOW")
_SETTINGS = ("epsilon", "rho")
_VALUES = (TokenType.NUMBER, TokenType.STRING, TokenType.SLASH)
_FORMS = {"SET": "SET epsilon = '1/10'", "RESET": "RESET epsilon", "SHOW": "SHOW epsilon"}


@dataclass(frozen=True)
class Offer:
    """What a connection pays for a question that does not name its own price; neither: what the policy says."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None


def taken(text: str) -> tuple[str, str]:
    """Take off the first word if it is not the question's; blanks keep the places of the rest.

    >>> taken("explain SELECT 1"), taken("SELECT 1")
    (('EXPLAIN', '        SELECT 1'), ('', 'SELECT 1'))
    """
    check_letters(text)
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text  # some editors begin files with it
    first = next(iter(tokenise(text)), None)
    if first is None or text[first.start : first.end + 1].upper() not in _WORDS:
        return "", text
    return first.text.upper(), text[: first.start] + " " * len(first.text) + text[first.end + 1 :]


def setting(word: str, rest: str) -> tuple[str, str | None]:
    """Read what follows SET, RESET or SHOW: the setting, and its new value as text; None for DEFAULT, or none."""
    found = [token for token in tokenise(rest) if token.token_type is not TokenType.SEMICOLON]
    name = found[0].text.lower() if found else ""
    if name not in _SETTINGS:
        raise QuestionRefused(f'{word}: there is no setting "{brief(name)}". The settings are epsilon and rho.')
    values = found[2:] if word == "SET" and len(found) > 2 and found[1].text.upper() in ("=", "TO") else []
    if [token.token_type for token in values] == [TokenType.DEFAULT]:
        return name, None
    if bool(values) != (word == "SET") or len(found) != 1 + bool(values) + len(values):
        raise QuestionRefused(f"{word}: it cannot be read. Write {_FORMS[word]}.")
    if any(token.token_type not in _VALUES for token in values):
        raise QuestionRefused(f"SET {name}: it must be a number above 0. Write SET {name} = '1/10'.")
    return name, "".join(token.text for token in values) if values else None


def offer_of(name: str, value: object, budget: Budget) -> Offer:
    """Return what is offered once a price is set; a rho needs a budget that counts in it."""
    if name == "rho" and budget.rho is None:
        raise QuestionRefused("rho: the budget is pure, so prices are in epsilon. Set epsilon instead.")
    try:
        price = positive(value, name)
    except (TypeError, ValueError) as error:
        raise QuestionRefused(f"{error}.") from None
    return Offer(rho=price) if name == "rho" else Offer(epsilon=price)
