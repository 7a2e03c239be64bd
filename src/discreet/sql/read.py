"""Reading a query: from words to what is asked of the kernel, and what is computed from its answer."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from discreet.engines.sources import AWAY, EngineError
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import OWNER
from discreet.policy import Column, ColumnInWindow, Policy
from discreet.sql import after, text
from discreet.sql.after import After
from discreet.sql.canonical import canonical
from discreet.sql.plan import Part, Plan, schema
from discreet.sql.rows.leaves import Publics
from discreet.sql.rows.prune import pruned
from discreet.sql.separate import separate
from discreet.sql.values.declared import NotDeclared
from discreet.sql.world import Limits, Releases, World

T = TypeVar("T")
_LOG = logging.getLogger("discreet")
_LOST = "line 1: the query cannot be understood. Nothing was read or charged. Write it in fewer or simpler steps."


@dataclass(frozen=True)
class Draft:
    """A query on its way from words to a plan; each pass fills in what it finds."""

    words: str
    world: World
    parsed: text.Parsed | None = None
    above: exp.Expr | None = None
    parts: tuple[Part, ...] = ()
    follows: After | None = None


def parse(draft: Draft) -> Draft:
    """Take the words apart; limits in the text count where the call gives none."""
    found = text.parse(draft.words)
    said, written = draft.world.limits, found.options
    limits = Limits(said.groups or written.groups, said.rows or written.rows)
    _check_unit(written.unit, draft.world)
    names = {node.name for node in found.query.find_all(exp.Identifier)}
    return replace(draft, parsed=found, world=replace(draft.world, limits=limits, releases=Releases(names)))


def _check_unit(name: str | None, world: World) -> None:
    """Stop if the text names another unit than the owner: who is protected is not the question's to say."""
    units = {table.unit.name for table in world.tables if isinstance(table.unit, Column | ColumnInWindow)}
    if name is not None and name.lower() not in {unit.lower() for unit in units}:
        words = f"privacy_unit_column must be what the policy protects: {', '.join(sorted(units)) or 'a single row'}"
        raise Refused(f"line 1, OPTIONS: {words}. Name it, or leave the option out.")


def divide(draft: Draft) -> Draft:
    """Find the releases, and the query above them."""
    assert draft.parsed is not None
    above = separate(draft.parsed.query, draft.world)  # it changes the tree, which nobody reads afterwards
    read = {table.name for table in above.find_all(exp.Table)}
    return replace(draft, above=above, parts=tuple(part for part in draft.world.releases.parts if part.name in read))


def narrow(draft: Draft) -> Draft:
    """Leave out the columns that no question needs, and give equal questions one form."""
    return replace(draft, parts=tuple(canonical(replace(part, question=pruned(part.question))) for part in draft.parts))


def follow(draft: Draft) -> Draft:
    """Check what is computed from the released tables, before anything is paid for."""
    assert draft.above is not None
    return replace(draft, follows=after.plan(draft.above, {part.name: schema(part) for part in draft.parts}))


def understood(reading: Callable[[], T]) -> T:
    """Return what was read; whatever stops the reader, the query is Refused, and the log tells the owner."""
    try:
        return reading()
    except NotDeclared as refusal:
        raise Refused(str(refusal)) from None
    except (Refused, PolicyError):
        raise
    except EngineError:  # when asked for what is public: it is not reached
        _LOG.exception("the engine stopped while a query was read")
        raise Refused(AWAY) from None
    except RecursionError:
        raise Refused(_LOST) from None
    except Exception:  # noqa: BLE001 - as the docstring says
        _LOG.exception("the reader stopped at a query")
        raise Refused(_LOST) from None


PASSES: tuple[Callable[[Draft], Draft], ...] = (parse, divide, narrow, follow)


def _passed(draft: Draft) -> Draft:
    for step in PASSES:
        draft = step(draft)
    return draft


def read(  # noqa: PLR0913 - who asks what of whom, and two limits
    words: str,
    policy: Policy,
    publics: Publics,
    *,
    by: str = OWNER,
    groups: int | None = None,
    rows: int | None = None,
) -> Plan:
    """Read a query; whatever cannot be answered is Refused, and no private data is read."""
    draft = understood(lambda: _passed(Draft(words, World(policy, publics, by, Limits(groups, rows)))))
    assert draft.parsed is not None
    assert draft.follows is not None
    parsed = draft.parsed
    above = draft.above.sql(dialect="postgres") if draft.above is not None else ""
    return Plan(words, parsed.explain, parsed.options, parsed.within, draft.parts, above, draft.follows)
