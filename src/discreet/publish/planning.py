"""From a plan to its parts: tables over the same rows become a family, and the cost is divided by weights."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction

from discreet import privacy
from discreet.answer.text import short_number
from discreet.curator import prepared_queries
from discreet.curator.curator import Curator
from discreet.curator.prepared_queries import PreparedQuery, plan_query, totals_planner
from discreet.estimate.planned_release import QueryPlan
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import canonical_json
from discreet.kernel.fingerprint import digest
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.policy import Policy
from discreet.policy.guarantee import unit_phrase
from discreet.pricing.cost_request import CostRequest, data_version
from discreet.pricing.remaining_budget import cost_in_budget
from discreet.privacy.calibration import reserved_noises
from discreet.publish.codes import coded_rows
from discreet.publish.declared_levels import declared_parents
from discreet.publish.describe import ADDED_SUFFIXES
from discreet.publish.eligible import AddingTable, adding_table
from discreet.publish.family import Family, family_fingerprint, plan_family, row_measure
from discreet.publish.family_axes import FamilyAxes, family_axes
from discreet.publish.family_notes import clipping_notes, omission_notes
from discreet.publish.marginals.axes import table_shape
from discreet.publish.marginals.noise_margins import Noise, margin_factor
from discreet.publish.marginals.scales import UnreachableLimits
from discreet.publish.parts import FamilyPart, Part, QueryPart, SyntheticPart
from discreet.publish.plan import PublicationPlan
from discreet.publish.synthetic import MAX_STORED_VALUES, SyntheticReleases, synthetic_columns

_MAX_CELLS = 2_500_000  # of all tables of a family, so that the ledger can store them
_MAX_SYNTHETIC_ROWS = 1 << 16  # of a unit
_ROUNDING = 1.001  # by which rounding may widen a requested variance


@dataclass(frozen=True)
class _Shares:
    """The cost that is left for parts with weights, and the sum of these weights."""

    total: Loss
    weights: Fraction

    def of(self, weight: Fraction) -> Loss:
        """Return the share of a weight."""
        share = weight / self.weights
        return Loss(None, self.total.rho * share) if self.total.epsilon is None else Loss(self.total.epsilon * share)


def plan_parts(
    curator: Curator, plan: PublicationPlan, charged: Callable[[str], Loss | None] = lambda _: None
) -> list[Part]:
    """Return the parts of a plan, each with its cost; PolicyError names the line of what cannot be published.

    `charged` returns the cost of a part that was charged before, which the ledger's other answers must not change.
    """
    total = _total_cost(curator, plan)
    planner = totals_planner(curator.releases)
    queries = {name: _plan_query(planner, plan, name) for name in plan.tables}
    families = _families(curator, queries)
    in_family = {table.name for tables, _ in families for table in tables}
    with_margins = {
        name: _prepare(curator, plan, name, CostRequest(margin=entry.margin))
        for name, entry in plan.tables.items()
        if entry.margin is not None and name not in in_family
    }
    weights = {name: entry.weight or Fraction(1) for name, entry in plan.tables.items() if name not in with_margins}
    weights |= {name: entry.weight for name, entry in plan.synthetic.items()}
    shares = _Shares(_rest(plan, curator.policy.budget, total, with_margins), sum(weights.values(), Fraction(0)))
    parts: list[Part] = [
        _family_part(plan, curator.policy, f"family-{index}", tables, axes, shares, weights, charged)
        for index, (tables, axes) in enumerate(families, start=1)
    ]
    for name in plan.tables:
        if name not in in_family:
            query = with_margins.get(name) or _prepare(curator, plan, name, _request(shares.of(weights[name])))
            parts.append(
                QueryPart(name, plan.tables[name].sql, query, record_of(plan, name, **query.release_plan.record))
            )
    parts += [
        _synthetic_part(curator, plan, name, charged(name) or shares.of(weights[name])) for name in plan.synthetic
    ]
    return parts


def record_of(plan: PublicationPlan, part: str, **facts: object) -> str:
    """Return the record of a part in the ledger; it names the plan by its digest."""
    stated = {} if plan.release.purpose is None else {"stated_purpose": plan.release.purpose}
    record = {"publication": plan.release.name, "plan": digest(plan.text), "part": part, **stated, **facts}
    return canonical_json(record)


def _total_cost(curator: Curator, plan: PublicationPlan) -> Loss:
    """Return the cost of the whole plan."""
    budget, entry = curator.policy.budget, plan.release
    if entry.rho is None:
        assert entry.epsilon is not None
        return privacy.cost_of(budget, entry.epsilon)
    if budget.rho is None:
        plan.refuse(("release", "rho"), "the budget is pure epsilon-DP. Give epsilon instead of rho.")
    return Loss(None, entry.rho)


def cost_text(plan: PublicationPlan, budget: Budget, cost: Loss) -> str:
    """Return a cost in the unit in which the plan states its own."""
    if plan.release.rho is not None:
        return f"rho {short_number(cost.rho)}"
    epsilon = cost_in_budget(cost, budget).epsilon if cost.epsilon is None else cost.epsilon
    assert epsilon is not None
    return f"epsilon {short_number(epsilon)}"


def _rest(plan: PublicationPlan, budget: Budget, total: Loss, with_margins: Mapping[str, PreparedQuery]) -> Loss:
    """Return what is left of the cost for the parts with weights."""
    spent = sum((query.release_plan.marginal_cost for query in with_margins.values()), ZERO_LOSS)
    amount, whole = (spent.rho, total.rho) if total.epsilon is None else (spent.epsilon, total.epsilon)
    assert amount is not None
    if amount > whole or (amount == whole and len(with_margins) < len(plan.tables) + len(plan.synthetic)):
        spent_text, total_text = (cost_text(plan, budget, cost) for cost in (spent, total))
        message = f"the margins cost {spent_text}, but the release has {total_text}. Allow wider ones."
        plan.refuse(("tables", next(iter(with_margins)), "margin"), message)
    return Loss(None, whole - amount) if total.epsilon is None else Loss(whole - amount)


def _amount_text(cost: Loss) -> str:
    return str(cost.rho if cost.epsilon is None else cost.epsilon)


def _request(cost: Loss) -> CostRequest:
    return CostRequest(rho=cost.rho) if cost.epsilon is None else CostRequest(epsilon=cost.epsilon)


def _plan_query(planner: Callable[[str], QueryPlan], plan: PublicationPlan, name: str) -> QueryPlan:
    try:
        query = planner(plan.tables[name].sql)
    except (Refused, PolicyError) as refusal:
        plan.refuse(("tables", name, "sql"), str(refusal))
    if query.is_free:
        plan.refuse(("tables", name, "sql"), "the query reads no private table, so there is nothing to publish.")
    if query.explain:
        plan.refuse(("tables", name, "sql"), "EXPLAIN has no result to publish. Use --dry-run, which is free.")
    if query.within is not None or query.options.epsilon is not None or query.options.delta is not None:
        hint = "Leave out WITHIN and the epsilon and delta of OPTIONS; give the table a weight or a margin."
        plan.refuse(("tables", name, "sql"), f"the plan determines the cost of its tables. {hint}")
    _check_columns(plan, name, query.postprocess.names)
    return query


def _check_columns(plan: PublicationPlan, name: str, columns: Sequence[str]) -> None:
    """Refuse columns with the names of columns that the files of a table have besides."""
    added = {f"{column}{ending}": column for column in columns for ending in ADDED_SUFFIXES}
    for column in columns:
        if column in added:
            plan.refuse(
                ("tables", name, "sql"),
                f"the file has a column {column!r} that belongs to {added[column]!r}. Use another name.",
            )


def _prepare(curator: Curator, plan: PublicationPlan, name: str, request: CostRequest) -> PreparedQuery:
    try:
        return prepared_queries.prepare(curator.releases, plan.tables[name].sql, request)
    except (Refused, PolicyError) as refusal:
        plan.refuse(("tables", name, "sql"), str(refusal))


def _families(curator: Curator, queries: Mapping[str, QueryPlan]) -> list[tuple[list[AddingTable], FamilyAxes]]:
    """Return the groups of at least two tables that add up over the same rows, with their axes."""
    groups: dict[str, list[AddingTable]] = {}
    for name, query in queries.items():
        if (table := adding_table(name, query)) is not None:
            groups.setdefault(table.relation_digest, []).append(table)
    families = []
    for tables in groups.values():
        relation = tables[0].release.question.relation
        axes = family_axes((table.release for table in tables), declared_parents(curator, relation))
        if len(tables) > 1 and axes.coded:
            families.append((tables, axes))
    return families


def rows_per_unit(declared: int | None, questions: Sequence[Question], *, l1: bool) -> int:
    """Return how many rows of a unit count in full: one if it has only one, else as declared, or by the policy."""
    if not any(question.needs_clipping for question in questions):
        return max(question.relation.shape.max_rows_per_unit or 1 for question in questions)
    if declared is not None:
        return declared
    bounds = [question.bounds for question in questions]
    return max(each.groups * each.rows if l1 else math.ceil(math.sqrt(each.groups) * each.rows) for each in bounds)


def _family_part(  # noqa: PLR0913, PLR0917 - a plan and its shares
    plan: PublicationPlan,
    policy: Policy,
    name: str,
    tables: Sequence[AddingTable],
    axes: FamilyAxes,
    shares: _Shares,
    weights: Mapping[str, Fraction],
    charged: Callable[[str], Loss | None],
) -> FamilyPart:
    cost = charged(name) or shares.of(sum((weights[table.name] for table in tables), Fraction(0)))
    (mechanism,) = reserved_noises(cost, [1])
    noise = Noise.GAUSSIAN if cost.epsilon is None else Noise.LAPLACE
    rows = rows_per_unit(plan.release.rows, [table.release.question for table in tables], l1=noise is Noise.LAPLACE)
    margins = {table.name: plan.tables[table.name].margin for table in tables}
    limits = {name: (float(margin) / margin_factor(noise)) ** 2 for name, margin in margins.items() if margin}
    try:
        family = plan_family(tables, axes, weights, limits, mechanism=mechanism, rows=rows)
    except UnreachableLimits as error:
        factor = _rounded_up(error.factor**0.5)
        named, margin = next((name, margin) for name, margin in margins.items() if margin)
        least = short_number(float(margin) * factor, 3)
        others = f", if the other margins are also {factor:g} times as wide" * (len(limits) > 1)
        message = f"the margin cannot be reached at this cost: the least is about {least}{others}. Allow a wider one."
        plan.refuse(("tables", named, "margin"), message)
    _check_scales(plan, family)
    _check_limits(plan, family, limits)
    _check_cells(plan, family)
    sqls = {table.name: plan.tables[table.name].sql for table in tables}
    facts = {
        "cost": _amount_text(cost),
        "tables": list(map(list, sqls.items())),
        "rows": rows,
        "steps": [[block.measure, block.table, block.steps] for block in family.blocks],
        "structure": family.structure_digest,
    }
    found_by = family_fingerprint(tables[0].relation_digest, data_version(policy))
    clipping = clipping_notes(family, rows, unit_phrase(policy), declared=plan.release.rows is not None)
    record, notes = record_of(plan, name, **facts), (*omission_notes(family), *clipping)
    return FamilyPart(name, cost, record, family.rows, found_by, family, tuple(sqls.values()), notes)


def _rounded_up(factor: float) -> float:
    """Return a factor with three digits, so that it is not too small."""
    return float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(factor * _ROUNDING))


def _check_scales(plan: PublicationPlan, family: Family) -> None:
    """Refuse tables that get no noise of their own and follow from no other, because their cells are all zero."""
    for table in family.tables:
        shown = family.keys.table_of(table.release)
        measures = {family.measures.index(row_measure(total)) for total in table.release.question.totals}
        if not all(family.forecasts[index].covers(shown) for index in measures):
            hint = "Declare fewer rows per unit, or give it more weight."
            plan.refuse(("tables", table.name), f"nothing of a row would count in this table. {hint}")


def _check_limits(plan: PublicationPlan, family: Family, limits: Mapping[str, float]) -> None:
    """Refuse margins that are missed because scales are whole steps, as with very many rows per unit."""
    for table in family.tables:
        counted = [index for index, measure in enumerate(family.measures) if measure.expr is None]
        for index in counted if table.name in limits else ():
            shown = family.keys.table_of(table.release)
            if family.forecasts[index].variance(shown).max() > limits[table.name] * _ROUNDING:
                message = (
                    "the margin cannot be reached with this bound on rows per unit. Lower it, or allow a wider margin."
                )
                plan.refuse(("tables", table.name, "margin"), message)


def _check_cells(plan: PublicationPlan, family: Family) -> None:
    """Refuse a family of too many cells."""
    for table in family.tables:
        shape = table_shape(family.axes, family.keys.table_of(table.release))
        if math.prod(shape) > _MAX_CELLS:
            plan.refuse(
                ("tables", table.name, "sql"), f"the table has {math.prod(shape):,} cells. Group by fewer values."
            )
    cells = sum(math.prod(table_shape(family.axes, block.table)) for block in family.blocks)
    if cells > _MAX_CELLS:
        plan.refuse(
            ("tables",), f"the tables have {cells:,} cells, more than {_MAX_CELLS:,}. Publish fewer in one plan."
        )


def _synthetic_part(curator: Curator, plan: PublicationPlan, name: str, cost: Loss) -> SyntheticPart:
    entry = plan.synthetic[name]
    try:
        relation, columns = synthetic_columns(curator, plan, name)
    except Refused as refusal:
        plan.refuse(("synthetic", name), str(refusal))
    question = _question_on(curator, relation, entry.table)
    rows = rows_per_unit(plan.release.rows, [question], l1=cost.epsilon is not None)
    if rows > _MAX_SYNTHETIC_ROWS:
        message = f"a unit may have {rows:,} rows, more than {_MAX_SYNTHETIC_ROWS:,}. Declare fewer: rows in [release]."
        plan.refuse(("synthetic", name), message)
    if entry.rows != "same" and entry.rows * len(columns) > MAX_STORED_VALUES:
        message = f"at most {MAX_STORED_VALUES // len(columns):,} rows of {len(columns)} columns can be stored."
        plan.refuse(("synthetic", name, "rows"), message)
    sizes = [column.axis.size for column in columns]
    releases = SyntheticReleases.within(cost, sizes, rows)
    names = ", ".join(column.declared.name for column in columns)
    count = None if entry.rows == "same" else entry.rows
    rows_to_sum = coded_rows(relation, [column.axis for column in columns])
    facts = {"table": entry.table, "columns": list(entry.columns), "sizes": sizes, "rows": rows, "count": str(count)}
    facts |= {"cost": _amount_text(cost), "meaning": digest(rows_to_sum)}
    record = record_of(plan, name, **facts)
    return SyntheticPart(
        name, cost, record, rows_to_sum, "", columns, releases, count, f"Rows of {entry.table} with the columns {names}"
    )


def _question_on(curator: Curator, relation: Relation, table: str) -> Question:
    """Return a question about the rows of synthetic rows, whose contribution bounds apply."""
    quoted = '"' + table.replace('"', '""') + '"'
    plan = plan_query(curator.releases, f"SELECT COUNT(*) AS n FROM {quoted}")  # noqa: S608 - a declared name
    question = plan.answering[0].question
    assert question.relation.shape.unit == relation.shape.unit
    return question
