"""The passes from SQL text to a query plan; a query that cannot be answered is refused.

syntax/            text to syntax tree, and source positions for refusals
free_query         queries that read no private table, which need no release
resolve            which SELECT is the release: private rows below it, released tables above it
expressions/       expressions on single rows: binding, ranges and domains
relations/         the SELECTs below the release: tables, joins, conditions, subqueries, aggregation per unit
aggregation/       the release: groups, aggregates and contribution bounds, as one question to the kernel
column_pruning, canonical_form     the smallest question, in a form that equal queries share
aggregation/contribution_histogram the histograms that report on clipping, or that bounds are chosen from
discreet.postprocess               the query over the released tables
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from sqlglot import exp

from discreet import postprocess as after
from discreet.engines.table_source import UNAVAILABLE_MESSAGE, EngineError
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import PlannedRelease, QueryPlan, release_schema
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import OWNER
from discreet.policy import ColumnUnit, Policy, WindowUnit
from discreet.policy.declarations import Bound
from discreet.postprocess import PostprocessPlan
from discreet.query.aggregation.contribution_bounds import with_limited_sums
from discreet.query.aggregation.contribution_histogram import with_histograms
from discreet.query.bind_context import BindContext, PlannedReleases, RequestedBounds
from discreet.query.canonical_form import canonical_release
from discreet.query.column_pruning import prune_columns
from discreet.query.expressions.declared_values import UndeclaredValue
from discreet.query.free_query import FreeQuery, free_query
from discreet.query.relations.scope import PrivateSource
from discreet.query.resolve import resolve_query, split_at_releases
from discreet.query.syntax import parse
from discreet.query.syntax.source_position import refuse
from discreet.query.table_sources import PublicTables

T = TypeVar("T")
_LOG = logging.getLogger("discreet")
_UNREADABLE = "line 1: the query is not supported. Nothing was read or charged. Simplify it."


@dataclass(frozen=True)
class QueryDraft:
    """A query between passes; each pass fills in its part."""

    sql: str
    context: BindContext
    parsed: parse.ParsedQuery | None = None
    outer_query: exp.Expr | None = None
    releases: tuple[PlannedRelease, ...] = ()
    free: FreeQuery | None = None
    postprocess: PostprocessPlan | None = None


def parse_text(draft: QueryDraft) -> QueryDraft:
    """Parse the text; contribution bounds of the call take precedence over those in OPTIONS."""
    parsed = parse.parse_query(draft.sql)
    from_call, from_text = draft.context.requested_bounds, parsed.options
    limits = RequestedBounds(from_call.groups or from_text.groups, from_call.rows or from_text.rows)
    _check_unit_option(from_text.unit, draft.context)
    names = {node.name for node in parsed.query.find_all(exp.Identifier)}
    return replace(
        draft, parsed=parsed, context=replace(draft.context, requested_bounds=limits, releases=PlannedReleases(names))
    )


def _check_unit_option(name: str | None, context: BindContext) -> None:
    """Refuse a privacy unit other than the policy's."""
    units = {table.unit.name for table in context.visible_tables if isinstance(table.unit, ColumnUnit | WindowUnit)}
    if name is not None and name.lower() not in {unit.lower() for unit in units}:
        cause = f"privacy_unit_column must be the policy's privacy unit: {', '.join(sorted(units)) or 'a single row'}"
        raise Refused(f"line 1, OPTIONS: {cause}. Name it, or leave the option out.")


def find_releases(draft: QueryDraft) -> QueryDraft:
    """Split the query into releases and the query over them; without private tables there are no releases."""
    assert draft.parsed is not None
    free = free_query(draft.parsed, draft.context)
    if free is not None:
        return replace(draft, outer_query=free.query, free=free)
    outer_query = split_at_releases(
        draft.parsed.query, draft.context
    )  # modifies the tree, which is not used afterwards
    table_names = {table.name for table in outer_query.find_all(exp.Table)}
    return replace(
        draft,
        outer_query=outer_query,
        releases=tuple(release for release in draft.context.releases.planned if release.name in table_names),
    )


def normalise_questions(draft: QueryDraft) -> QueryDraft:
    """Prune columns, and bring questions into canonical form."""
    return replace(
        draft,
        releases=tuple(
            canonical_release(replace(release, question=prune_columns(release.question))) for release in draft.releases
        ),
    )


def limit_sums(draft: QueryDraft) -> QueryDraft:
    """Give sums the largest terms that were chosen for them; only now, in canonical form, is their order known."""
    return replace(draft, releases=tuple(with_limited_sums(release, draft.context) for release in draft.releases))


def add_histograms(draft: QueryDraft) -> QueryDraft:
    """Add the contribution histograms that report on clipping, or that automatic bounds are chosen from."""
    return replace(draft, releases=with_histograms(draft.releases, draft.context.policy.budget_entry))


def plan_postprocessing(draft: QueryDraft) -> QueryDraft:
    """Compile the query over the released tables, before anything is charged."""
    assert draft.outer_query is not None
    released = {release.name: release_schema(release) for release in draft.releases}
    schemas = released if draft.free is None else draft.free.schemas
    return replace(draft, postprocess=after.compile_query(draft.outer_query, schemas))


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
    find_releases,
    normalise_questions,
    limit_sums,
    plan_postprocessing,
    add_histograms,
)


def _run_passes(draft: QueryDraft) -> QueryDraft:
    for step in PASSES:
        draft = step(draft)
    return draft


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
    draft = run_reader(lambda: _run_passes(QueryDraft(sql, context)))
    assert draft.parsed is not None
    assert draft.postprocess is not None
    parsed = draft.parsed
    outer_sql = draft.outer_query.sql(dialect="postgres") if draft.outer_query is not None else ""
    return QueryPlan(
        sql,
        parsed.explain,
        parsed.options,
        parsed.within,
        draft.releases,
        outer_sql,
        draft.postprocess,
        None if draft.free is None else draft.free.catalog,
    )


def plan_row_query(sql: str, policy: Policy, public_tables: PublicTables, *, by: str = OWNER) -> PrivateSource:
    """Plan a SELECT without aggregates; Refused unless it returns private rows."""
    return run_reader(lambda: _plan_private_source(sql, BindContext(policy, public_tables, by)))


def _plan_private_source(sql: str, context: BindContext) -> PrivateSource:
    parsed = parse.parse_query(sql)
    if parsed.explain:
        raise Refused("EXPLAIN: not supported for the query of a model. A model costs the epsilon that it is given.")
    source = resolve_query(exp.Subquery(this=parsed.query.copy()), {}, context)
    if not isinstance(source, PrivateSource):
        cause = "a model is fitted to rows, and this query returns none"
        raise refuse(parsed.query, "SELECT", cause, "Write SELECT column, … FROM a private table, without aggregates.")
    return source
