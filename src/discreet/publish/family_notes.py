"""What tables that add up leave out and clip, in words: from the plan and the policy alone, whatever the data are."""

from collections.abc import Sequence

from discreet.answer.text import enumerate_words
from discreet.publish.family import Family

_MAX_NAMED = 4  # tables in a list


def omission_notes(family: Family) -> tuple[str, ...]:
    """State which rows are left out of tables for the keys of others; nothing if every table has all such keys."""
    owners = {where: names for where, names in family.excluded_by.items() if len(names) < len(family.tables)}
    if not owners:
        return ()
    tables = _listed([table.name for table in family.tables])
    reasons = ", or ".join(f"{where} (because of {names[0]})" if names else where for where, names in owners.items())
    hint = " Declare null = true for a column to keep NULL as a group of its own." * any("NULL" in w for w in owners)
    return (f"{tables} add up, so each of them leaves out rows where {reasons}.{hint}",)


def clipping_notes(family: Family, rows: int, unit: str, *, declared: bool) -> tuple[str, ...]:
    """State from how many rows a unit may be clipped, and that the bias is not measured; nothing if none can be.

    `rows` count in full: as `declared` by the plan, or else by the contribution bounds of the policy.
    """
    questions = [table.release.question for table in family.tables]
    if not any(question.needs_clipping for question in questions):
        return ()
    norm = family.noise.value
    bounds = max((question.bounds for question in questions), key=lambda each: each.groups * each.rows**norm)
    source = "rows in the plan" if declared else f"from groups = {bounds.groups} and rows = {bounds.rows}"
    counted = f"{rows:,} rows of each {unit} count" if rows > 1 else f"one row of each {unit} counts"
    tables = _listed([table.name for table in family.tables])
    unmeasured = "Clipping bias is not measured for tables that add up, and margins do not include it."
    return (f"{tables}: {counted} in full ({source}); more may be clipped. {unmeasured}",)


def _listed(names: Sequence[str]) -> str:
    """Join names, at most some of them.

    >>> _listed(["a", "b"]), _listed(list("abcdefgh"))
    ('a and b', 'a, b, c, d and 4 more')
    """
    rest = [f"{len(names) - _MAX_NAMED:,} more"] if len(names) > _MAX_NAMED else []
    return enumerate_words([*names[:_MAX_NAMED], *rest])
