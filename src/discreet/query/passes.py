"""The passes from SQL text to a query plan; a query that cannot be answered is refused.

parse        text to syntax tree                                                     syntax/parse
resolve      every name, alias, position and * to the source that it means           syntax/resolve
bind         types, ranges and ownership of private rows; releases as questions      bind, expressions/, relations/,
             to the kernel; what remains is a query over released tables             aggregation/
normalise    the smallest question, in a form that equal queries share               column_pruning, canonical_form
postprocess  the query over released tables, compiled before anything is charged     discreet.postprocess
histograms   histograms that report on clipping, or that bounds are chosen from      aggregation/contribution_histogram
"""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from sqlglot import exp

from discreet.engines.table_source import UNAVAILABLE_MESSAGE, EngineError
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import PlannedRelease, QueryPlan, declared_keys, release_schema
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import OWNER
from discreet.policy import ColumnUnit, Policy, WindowUnit
from discreet.policy.declarations import Bound
from discreet.postprocess import PostprocessPlan, compile_query
from discreet.query.aggregation.contribution_bounds import with_limited_sums
from discreet.query.aggregation.contribution_histogram import with_histograms
from discreet.query.bind import bind_query, bind_released_query
from discreet.query.canonical_form import canonical_release
from discreet.query.column_pruning import prune_columns
from discreet.query.expressions.operands import UndeclaredValue
from discreet.query.free_query import FreeTables, find_table, free_tables, policy_table
from discreet.query.relations.bound_sources import BindContext, PrivateSource, PublicTables, RequestedBounds
from discreet.query.syntax import parse
from discreet.query.syntax.resolve import resolve_query
from discreet.query.syntax.resolved_query import ResolvedQuery, ResolvedTable, all_sources
from discreet.query.syntax.syntax_tree import refuse

T = TypeVar("T")
_LOG = logging.getLogger("discreet")
_UNREADABLE = "line 1: the query is not supported. Nothing was read or charged. Simplify it."


@dataclass(frozen=True)
class QueryDraft:
    """A query between passes; each pass fills in its part.

    `resolved` is the query as asked, and `outer` the query over released tables, whose sources have the releases as
    they were bound as keys; `releases` has them by these keys, named and in their final form. `planned` has them with
    their histograms.
    """

    sql: str
    context: BindContext
    parsed: parse.ParsedQuery | None = None
    resolved: ResolvedQuery | None = None
    free: FreeTables | None = None
    outer: ResolvedQuery | None = None
    releases: Mapping[PlannedRelease, PlannedRelease] = field(default_factory=dict)
    planned: tuple[PlannedRelease, ...] = ()
    postprocess: PostprocessPlan | None = None


def parse_text(draft: QueryDraft) -> QueryDraft:
    """Parse the text; contribution bounds of the call take precedence over those in OPTIONS."""
    parsed = parse.parse_query(draft.sql)
    from_call, from_text = draft.context.requested_bounds, parsed.options
    limits = RequestedBounds(from_call.groups or from_text.groups, from_call.rows or from_text.rows)
    _check_unit_option(from_text.unit, draft.context)
    return replace(draft, parsed=parsed, context=replace(draft.context, requested_bounds=limits))


def _check_unit_option(name: str | None, context: BindContext) -> None:
    """Refuse a privacy unit other than the policy's."""
    units = {table.unit.name for table in context.visible_tables if isinstance(table.unit, ColumnUnit | WindowUnit)}
    if name is not None and name.lower() not in {unit.lower() for unit in units}:
        cause = f"privacy_unit_column must be the policy's privacy unit: {', '.join(sorted(units)) or 'a single row'}"
        raise Refused(f"line 1, OPTIONS: {cause}. Name it, or leave the option out.")


def resolve_names(draft: QueryDraft) -> QueryDraft:
    """Resolve the names of the query, and find out whether it reads private tables."""
    assert draft.parsed is not None
    query, described = draft.parsed.query, draft.parsed.described
    if described is not None:
        assert isinstance(query, exp.Select)
        query = query.where(exp.column("table_name").eq(policy_table(described, draft.context).name))
    resolved = resolve_query(query, partial(find_table, context=draft.context))
    return replace(draft, resolved=resolved, free=free_tables(resolved, draft.context))


def bind_rows(draft: QueryDraft) -> QueryDraft:
    """Bind private rows, and find the releases; a query that reads no private table has none."""
    assert draft.resolved is not None
    if draft.free is not None:
        return replace(draft, outer=draft.resolved)
    outer = bind_released_query(draft.resolved, draft.context)
    keys = [item.source.key for item in all_sources(outer) if isinstance(item.source, ResolvedTable)]
    bound = dict.fromkeys(key for key in keys if isinstance(key, PlannedRelease))
    return replace(
        draft, outer=outer, releases={key: replace(key, name=f"r{number}") for number, key in enumerate(bound)}
    )


def normalise_questions(draft: QueryDraft) -> QueryDraft:
    """Prune columns, bring questions into canonical form, and give sums the largest terms chosen for them.

    The order of the totals, to which those terms refer, is known only in canonical form.
    """

    def normalise(release: PlannedRelease) -> PlannedRelease:
        pruned = replace(release, question=prune_columns(release.question))
        return with_limited_sums(canonical_release(pruned), draft.context)

    return replace(draft, releases={key: normalise(release) for key, release in draft.releases.items()})


def plan_postprocessing(draft: QueryDraft) -> QueryDraft:
    """Compile the query over the released tables, before anything is charged."""
    assert draft.outer is not None
    if draft.free is not None:
        return replace(draft, postprocess=compile_query(draft.outer, draft.free.schemas))
    schemas = {release.name: release_schema(release) for release in draft.releases.values()}
    names: dict[Hashable, str] = {key: release.name for key, release in draft.releases.items()}
    return replace(draft, postprocess=compile_query(draft.outer, schemas, names))


def add_histograms(draft: QueryDraft) -> QueryDraft:
    """Add the contribution histograms that report on clipping, or that automatic bounds are chosen from."""
    releases = with_histograms(tuple(draft.releases.values()), draft.context.policy.budget_entry)
    return replace(draft, planned=releases)


def run_reader(reader: Callable[[], T]) -> T:
    """Call a function that plans a query; any failure refuses the query, and unexpected ones are logged for the
    owner.
    """
    try:
        return reader()
    except UndeclaredValue as refusal:
        raise Refused(str(refusal)) from None
    except (Refused, PolicyError):
        raise
    except EngineError:  # while reading public tables
        _LOG.exception("the engine failed while a query was being planned")
        raise Refused(UNAVAILABLE_MESSAGE) from None
    except RecursionError:
        raise Refused(_UNREADABLE) from None
    except Exception:  # noqa: BLE001 - as the docstring says
        _LOG.exception("planning a query failed")
        raise Refused(_UNREADABLE) from None


PASSES: tuple[Callable[[QueryDraft], QueryDraft], ...] = (
    parse_text,
    resolve_names,
    bind_rows,
    normalise_questions,
    plan_postprocessing,
    add_histograms,
)


def draft_query(
    sql: str, context: BindContext, passes: Sequence[Callable[[QueryDraft], QueryDraft]] = PASSES
) -> QueryDraft:
    """Run all passes on a query, without reading private data; Refused if it cannot be answered."""

    def run_passes() -> QueryDraft:
        draft = QueryDraft(sql, context)
        for step in passes:
            draft = step(draft)
        return draft

    return run_reader(run_passes)


def totals_planner(policy: Policy, public_tables: PublicTables) -> Callable[[str], QueryPlan]:
    """Return a function that plans queries of the owner's without contribution histograms."""
    context = BindContext(policy, public_tables, OWNER)
    return lambda sql: plan_of(draft_query(sql, context, PASSES[:-1]))


def plan_query(  # noqa: PLR0913 - the query, its context, and two bounds
    sql: str,
    policy: Policy,
    public_tables: PublicTables,
    *,
    by: str = OWNER,
    groups: Bound | None = None,
    rows: Bound | None = None,
    chosen_bounds: Mapping[str, ChosenBounds] = MappingProxyType({}),
) -> QueryPlan:
    """Plan a query, without reading private data; Refused if it cannot be answered.

    `chosen_bounds` has the automatic contribution bounds that are already chosen, by AutomaticBounds.key.
    """
    context = BindContext(policy, public_tables, by, RequestedBounds(groups, rows), chosen_bounds=chosen_bounds)
    return plan_of(draft_query(sql, context))


def plan_of(draft: QueryDraft) -> QueryPlan:
    """Return the plan of a query after all passes."""
    assert draft.parsed is not None
    assert draft.postprocess is not None
    parsed, catalog = draft.parsed, None if draft.free is None else draft.free.catalog
    planned = draft.planned or tuple(draft.releases.values())
    keys = declared_keys(planned) if catalog is None else None
    return QueryPlan(
        draft.sql,
        parsed.explain,
        parsed.options,
        parsed.within,
        planned if keys is None else (),
        draft.postprocess,
        catalog if keys is None else keys,
        shows_declared_keys=keys is not None,
    )


def plan_row_query(sql: str, policy: Policy, public_tables: PublicTables, *, by: str = OWNER) -> PrivateSource:
    """Plan a SELECT without aggregates; Refused unless it returns private rows."""
    return run_reader(lambda: _plan_private_source(sql, BindContext(policy, public_tables, by)))


def _plan_private_source(sql: str, context: BindContext) -> PrivateSource:
    parsed = parse.parse_query(sql)
    if parsed.explain:
        raise Refused("EXPLAIN: not supported for the query of a model. A model costs the epsilon that it is given.")
    source = bind_query(resolve_query(parsed.query, partial(find_table, context=context)), {}, context)
    if not isinstance(source, PrivateSource):
        cause = "a model is fitted to rows, and this query returns none"
        raise refuse(parsed.query, "SELECT", cause, "Write SELECT column, … FROM a private table, without aggregates.")
    return source
