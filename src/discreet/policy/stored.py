"""Columns that are stored as one type and declared as another: what is read of them, and what is lost."""

from discreet.policy.problems import article
from discreet.policy.rules import Hazard, hazard

_NUMBERS = ("integer", "real", "decimal")


def stored_hazard(table: str, column: str, stored: str, declared: str) -> Hazard | None:
    """Return what to ask about a column that may lose values when it is read as what it is declared; None if it cannot.

    >>> print(stored_hazard("visits", "day", "text", "date"))  # doctest: +ELLIPSIS
    D025 table visits, column day: it is stored as text and read as a date: what cannot be read so counts as NULL. ...
    >>> stored_hazard("visits", "cost", "integer", "real")
    """
    lost = _lost(stored, declared)
    if lost is None:
        return None
    return hazard("D025", table, column, stored=stored, read=article(declared), lost=lost)


def _lost(stored: str, declared: str) -> str | None:
    if stored == "text" and declared != "text":
        return "what cannot be read so"
    if stored in _NUMBERS and declared == "boolean":
        return "any number but 0 and 1"
    if stored in ("real", "decimal") and declared == "integer":
        return "any number with a fraction"
    return None
