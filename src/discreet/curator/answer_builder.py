"""Build answers and explanations from released totals: columns, margins, notes and cost."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from hashlib import sha256

import numpy as np
import pyarrow as pa

from discreet import postprocess
from discreet.answer.margins import combine_margins
from discreet.answer.model import Answer, Cost, ExplainedColumn, Explanation
from discreet.answer.text import INTEGER_DIVISION_NOTE, plain_number
from discreet.estimate.clipping_report import clipping_report
from discreet.estimate.estimators import VarianceStatistic, describe_noise
from discreet.estimate.grouping_sets import ReleasedCells, assemble_subtotals
from discreet.estimate.intervals import ReleaseNoise
from discreet.estimate.planned_release import (
    Frequencies,
    Mean,
    NoisyCount,
    PairMeasure,
    PlannedRelease,
    Quantile,
    QueryPlan,
    Variance,
    assemble_table,
    column_origins,
    describes_population,
    estimate_measure,
    noisy_columns,
    noisy_sources,
    noisy_total,
    selects_by_noise,
    total_indices,
)
from discreet.estimate.quantiles import extreme_notes, rank_margin, redraw_estimate, value_estimates
from discreet.estimate.sampling import SampledRelease, SamplingError
from discreet.kernel.errors import Failed, Refused
from discreet.kernel.event import Receipt
from discreet.kernel.loss import ZERO_LOSS, Budget
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import GroupKey, SelectedGroups
from discreet.kernel.selection import QuantileSelection
from discreet.kernel.sqlgen.dialect import Dialect, quote_name
from discreet.kernel.sqlgen.question_sql import write_selects
from discreet.policy import Policy
from discreet.policy.declarations import SimpleRandomSample
from discreet.policy.guarantee import pluralise, protected_noun
from discreet.pricing import CombinedRelease, ReleasePiece, ReleasePlan, margin_times_count, noise_type_for, total_cost
from discreet.pricing.remaining_budget import cost_in_budget

_MAX_REDRAW_SHIFT = 2.0**61  # that a redraw moves a number
_SELECTION_NOTE = "Rows were selected by noisy values, so the values shown tend to be overstated or understated."
_HIDDEN_SELECTION_NOTE = (
    "Rows were selected by noisy values that are not shown: rows near the limit may be missing, or shown by chance."
)
_NEGATIVE_COUNT_NOTE = "Negative counts are noise around small counts; setting them to 0 would bias sums."
_NULL_NOTE = "NULL: too few values in the group at this epsilon."
_QUANTILE_MARGIN_TEXT = "the margin spans the values whose rank is within about {0} rows of the {1}"
_EXTREMES = {Fraction(0): "minimum", Fraction(1): "maximum"}
_SUBTOTAL_MARGIN_TEXT = "± {0} in a group (95 %), about √k times that in a subtotal over k groups"
_MARGIN_TEXTS = {
    Frequencies: "values whose counts differ by less than the noise may be in another order",
    PairMeasure: "the margin depends on the number of value pairs in the group and on their variances",
}
_PENDING_NOISE_TEXT = "noise in proportion to the contribution bounds"
_PENDING_MARGIN_TEXT = "the margin depends on the contribution bounds, which will be chosen privately"
_SEVERAL_DRAWS_NOTE = "Groups that only one of several releases selected have that release's wider margin."
_PROPAGATION_NOTE = (
    "The sampling error of a number computed from several aggregates is an upper bound for any correlation of them."
)
_DECLARED_KEYS_NOTE = "All declared values are shown, whether they occur or not. Add COUNT(*) to count them."
_NO_COST = Cost(ZERO_LOSS, share=Fraction(0))
_FREE_LIMIT_TEXT = (
    "line 1: the query exceeded the limits on time, memory or rows. Nothing was charged. Simplify it, or add LIMIT."
)
_FORECAST_NOTE = "Margins here are from privacy noise; those of the answer include the sampling error too."
_MARGIN_FORMULAS = {
    "mean": "± {0} to {1} divided by the number of values in the group, if that is large",
    "variance": "± {0} to {1} divided by the number of values in the group, if that is large",
    "deviation": "± {0} to {1} divided by the number of values in the group and by twice the deviation",
}


def build_answer(
    plan: QueryPlan, tables: Sequence[CombinedRelease], release_plan: ReleasePlan, policy: Policy, budget: Budget
) -> Answer:
    """Return the answer to a query from its released totals; `budget` is that of the analyst who asks."""
    releases = [
        (part, table, _row_positions(part, table))
        for part, table in zip(plan.releases, tables, strict=True)
        if not part.histogram
    ]
    released: dict[str, pa.Table] = {}
    margins: dict[tuple[str, str], np.ndarray] = {}
    sampling: dict[tuple[str, str], SamplingError] = {}
    for part, table, rows in releases:
        released[part.name], column_margins, column_sampling = _assemble_pieces(part, table, rows)
        margins |= {(part.name, name): widths for name, widths in column_margins.items()}
        sampling |= {(part.name, name): error for name, error in column_sampling.items()}

    def redraw(times: int) -> Mapping[str, pa.Table]:
        return {part.name: _redraw(part, times, table, rows) for part, table, rows in releases}

    sampling_widths = {column: error.margins for column, error in sampling.items()}
    result = postprocess.run_with_margins(plan.postprocess, released, margins, redraw, sampling_widths)
    noise_margins, sampling_margins = result.noise_margins, result.sampling_margins
    result_margins = combine_margins(noise_margins, sampling_margins)
    clipping = clipping_report(plan, tables, policy, released, result)
    noises = [[piece.noises for piece in table.pieces] for table in tables]
    return Answer(
        table=result.table,
        margins=result_margins,
        noise={name: _noise_description(plan, noises, name) for name in result_margins},
        cost=cost_in_budget(total_cost(tables, noise_type_for(policy)), budget),
        receipt=Receipt(max((table.latest for table in tables), key=lambda draw: draw.order).receipt),
        left_out=(
            *plan.left_out,
            *_selection_sentences(plan, tables, result_margins, policy),
            *_extreme_sentences(plan, tables),
            *null_notes(plan, released),
        ),
        bounds=_bound_sentences(plan, tables),
        bias=clipping.bias,
        clipping=clipping.sentences,
        notes=(
            *clipping.notes,
            *_sampling_notes(plan, sampling, sampling_margins, policy),
            *interpretation_notes(plan, released, noise_margins),
            *release_plan.notes,
            *([_SEVERAL_DRAWS_NOTE] if any(len(each) > 1 for each in noises) else []),
        ),
        paid=release_plan.marginal_cost,
        noise_margins=noise_margins if sampling else {},
        sampling_margins=sampling_margins,
        uncorrelated_sampling=frozenset(_uncorrelated_columns(plan, sampling)),
        correlated_noise=frozenset(
            name for name, origin in column_origins(plan).items() if isinstance(origin, postprocess.MixedOrigin)
        ),
    )


def build_free_answer(plan: QueryPlan, tables: Mapping[str, pa.Table]) -> Answer:
    """Return the answer to a query that reads no private table."""
    try:
        table = postprocess.run(plan.postprocess, tables)
    except Failed:
        raise Refused(_FREE_LIMIT_TEXT) from None
    keys = plan.shows_declared_keys
    return Answer(table, margins={}, noise={}, cost=_NO_COST, receipt=None, left_out=(_DECLARED_KEYS_NOTE,) * keys)


def free_explanation() -> Explanation:
    """Return the explanation of a query that reads no private table."""
    return Explanation(_NO_COST, columns=())


def _row_positions(part: PlannedRelease, table: CombinedRelease) -> list[np.ndarray]:
    """Return where each piece's rows are in the whole table, which is sorted by the keys in the analyst's order."""
    sizes = [len(piece.noisy.keys) for piece in table.pieces]
    positions = np.arange(sum(sizes))
    if len(sizes) > 1 or part.key_order != tuple(sorted(part.key_order)):
        keys = [key for piece in table.pieces for key in piece.noisy.keys]
        positions[_sort_rows(part, keys)] = np.arange(len(positions))
    return np.split(positions, np.cumsum(sizes)[:-1])


def _sort_rows(part: PlannedRelease, keys: Sequence[GroupKey]) -> list[int] | np.ndarray:
    """Return the row numbers sorted by key: in the declared order, or ascending with NULL last."""
    groups = part.question.groups
    if isinstance(groups, SelectedGroups):
        return sorted(
            range(len(keys)),
            key=lambda row: [(keys[row][key_index] is None, keys[row][key_index]) for key_index in part.key_order],
        )
    # Declared keys are all there, and the last one changes fastest.
    return np.arange(len(keys)).reshape([len(domain) for domain in groups.domains]).transpose(part.key_order).ravel()


def _assemble_pieces(
    part: PlannedRelease, table: CombinedRelease, rows: Sequence[np.ndarray]
) -> tuple[pa.Table, dict[str, np.ndarray], dict[str, SamplingError]]:
    """Return the released table, and the margins and sampling errors of its measures row by row."""
    if part.grouping_sets:
        return *assemble_subtotals(part, _released_cells(table, rows)), {}
    piece_tables, piece_margins, piece_errors = [], [], []
    for piece in table.pieces:
        noisy = piece.noisy
        selected_values = value_estimates(part, piece.noises, noisy)
        piece_table, estimates = assemble_table(part, noisy.keys, noisy.values, piece.noises, selected_values)
        piece_tables.append(piece_table)
        piece_margins.append({name: estimate.margins for name, estimate in estimates.items()})
        if part.sample:
            sampled = SampledRelease(part, part.sample, noisy.values, piece.noises)
            piece_errors.append(sampled.errors(estimates))
    order = np.argsort(np.concatenate(rows))
    joined = {name: np.concatenate([each[name] for each in piece_margins])[order] for name in piece_margins[0]}
    errors = {
        name: replace(error, margins=np.concatenate([each[name].margins for each in piece_errors])[order])
        for name, error in (piece_errors[0] if piece_errors else {}).items()
    }
    whole = pa.concat_tables(piece_tables)
    return (whole if (order == np.arange(len(order))).all() else whole.take(pa.array(order))), joined, errors


def _selection_sentences(
    plan: QueryPlan, tables: Sequence[CombinedRelease], margins: Mapping[str, list[float | None]], policy: Policy
) -> Iterator[str]:
    """Yield how noise decided which rows are shown, where no number shows it."""
    if not margins and selects_by_noise(plan):
        yield _HIDDEN_SELECTION_NOTE
    units = pluralise(protected_noun(policy))
    for part, table in zip(plan.releases, tables, strict=True):
        if table.thresholds and not part.histogram:
            lowest = min(cut for cuts in table.thresholds for cut in cuts) / _selection_step(part)
            crowd, groups = f"about {math.ceil(lowest):,} {units}", part.question.groups
            is_single = isinstance(groups, SelectedGroups) and groups.max_groups == 1
            weaker = "" if is_single else f"; {units} in several groups count for less"
            if any(len(piece.noisy.keys) for piece in table.pieces):
                yield f"Groups of fewer than {crowd} are left out, of totals too{weaker}."
            else:
                yield f"No group reached the threshold of {crowd}{weaker}. More epsilon lowers it."


def _sampling_notes(
    plan: QueryPlan,
    sampling: Mapping[tuple[str, str], SamplingError],
    sampling_margins: Mapping[str, list[float | None]],
    policy: Policy,
) -> tuple[str, ...]:
    """State what totals estimate, and where the sampling error is an upper bound or unknown."""
    expanded = any(describes_population(part, measure.estimator) for part in plan.releases for measure in part.measures)
    notes = [_expansion_note(policy.sample, policy.data.protects)] if policy.sample and expanded else []
    notes += [error.note for error in sampling.values() if error.note]
    known = [name for name, margins in sampling_margins.items() if any(margin is not None for margin in margins)]
    if any(len(noisy_sources(plan, column_origins(plan)[name])) > 1 for name in known):
        notes.append(_PROPAGATION_NOTE)
    return tuple(dict.fromkeys(notes))


def _expansion_note(sample: SimpleRandomSample, noun: str) -> str:
    return (
        f"Counts and sums are estimates for the population of {sample.population_size:,}: each {noun} in the sample "
        f"stands for {float(sample.expansion):,.6g}."
    )


def _uncorrelated_columns(plan: QueryPlan, sampling: Mapping[tuple[str, str], SamplingError]) -> Iterator[str]:
    """Yield the columns whose sampling errors are uncorrelated between rows."""
    for name, origin in column_origins(plan).items():
        sources = noisy_sources(plan, origin)
        if sources and all(
            (key := (part.name, measure.name)) in sampling and sampling[key].uncorrelated for part, measure in sources
        ):
            yield name


def interpretation_notes(
    plan: QueryPlan, tables: Mapping[str, pa.Table], margins: Mapping[str, list[float | None]]
) -> tuple[str, ...]:
    """Return notes on how to read the numbers."""
    rows_selected = bool(margins) and selects_by_noise(plan)
    computed = [
        name
        for name, origin in column_origins(plan).items()
        if isinstance(origin, postprocess.RowWiseOrigin)
        and not any(isinstance(measure.estimator, Quantile) for _, measure in noisy_sources(plan, origin))
    ]
    truncated = any(margin == 0 for name in computed for margin in margins.get(name, ()))
    negative = any(_has_negative_counts(part, tables[part.name]) for part in plan.answering) and not rows_selected
    conditions = (
        (_SELECTION_NOTE, rows_selected),
        (INTEGER_DIVISION_NOTE, truncated),
        (_NEGATIVE_COUNT_NOTE, negative),
    )
    return tuple(note for note, holds in conditions if holds)


def null_notes(plan: QueryPlan, tables: Mapping[str, pa.Table]) -> tuple[str, ...]:
    """Say why numbers are missing, if any is."""
    return (_NULL_NOTE,) * any(_has_nulls(part, tables[part.name]) for part in plan.answering)


def _extreme_sentences(plan: QueryPlan, tables: Sequence[CombinedRelease]) -> list[str]:
    """Say how many rows lie beyond each MIN and MAX."""
    releases = zip(plan.releases, tables, strict=True)
    return [text for part, table in releases for text in extreme_notes(part, table.pieces[0].noises)]


def build_explanation(
    plan: QueryPlan, release_plan: ReleasePlan, budget: Budget, dialect: Dialect, over_budget_note: str = ""
) -> Explanation:
    """Return the cost of a query, its margins of error, and the engine's SQL with the policy's table names."""
    display_dialect = replace(dialect, table_source=quote_name)
    return Explanation(
        cost=cost_in_budget(release_plan.total_cost, budget),
        columns=tuple(_explain_column(plan, release_plan, name) for name in noisy_columns(plan)),
        groups=" ".join(
            sentence
            for part, thresholds in zip(plan.releases, release_plan.thresholds, strict=True)
            if not part.histogram and not (part in plan.pending and thresholds)
            if (sentence := _groups_sentence(part, thresholds))
        ),
        bounds=(*plan.left_out, *dict.fromkeys(note for part in plan.releases for note in part.bounds_notes)),
        sql=";\n".join(dict.fromkeys(_engine_sql(plan, display_dialect))),
        notes=(
            *([_FORECAST_NOTE] if any(part.sample for part in plan.releases) else []),
            *release_plan.notes,
            *([over_budget_note] if over_budget_note else []),
        ),
        paid=release_plan.marginal_cost,
    )


def _engine_sql(plan: QueryPlan, dialect: Dialect) -> Iterator[str]:
    """Yield the SELECTs of a plan; instead of those of histograms, which are long, a comment."""
    pending = {part.name for part in plan.pending}
    for part in plan.releases:
        if part.histogram:
            chooses = any(target.release in pending for target in part.histogram.targets)
            purpose = "from which the bounds are chosen" if chooses else "for the report on clipping"
            yield f"-- {'first' if chooses else 'and'} a contribution histogram, {purpose}"
        elif part.name not in pending:
            yield from write_selects(part.question, dialect).values()


def _released_cells(table: CombinedRelease, rows: Sequence[np.ndarray]) -> ReleasedCells:
    """Return all groups of a release in the order of its rows."""
    order = np.argsort(np.concatenate(rows))
    keys = [key for piece in table.pieces for key in piece.noisy.keys]
    values = np.concatenate([piece.noisy.values for piece in table.pieces])
    noise_of = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    noises = [piece.noises for piece in table.pieces]
    return ReleasedCells([keys[row] for row in order], values[order], noises, noise_of[order])


def _redraw(part: PlannedRelease, times: int, table: CombinedRelease, rows: Sequence[np.ndarray]) -> pa.Table:
    """Return a released table with fresh noise, `times` times over, to see how far results move."""
    if not part.grouping_sets:
        return pa.concat_tables(map(partial(_redraw_piece, part, times), table.pieces, rows))
    cells = _released_cells(table, rows)
    values = np.zeros((times, *cells.values.shape), np.int64)
    for piece, piece_rows in zip(table.pieces, rows, strict=True):
        values[:, piece_rows] = _redraw_totals(piece, times, _seeded_rng(piece)).reshape(times, len(piece_rows), -1)
    return assemble_subtotals(part, replace(cells, values=np.concatenate(values)), times)[0]


def _seeded_rng(piece: ReleasePiece) -> np.random.Generator:
    """Return a generator seeded by the released values, so that a cached answer has the same margins again."""
    return np.random.default_rng(int.from_bytes(sha256(piece.noisy.values.tobytes()).digest()[:8]))


def _redraw_totals(piece: ReleasePiece, times: int, rng: np.random.Generator) -> np.ndarray:
    values = np.tile(piece.noisy.values, (times, 1))
    for column, noise in enumerate(piece.noises):
        scale, size = float(noise.scale), len(values)
        sample = rng.laplace(0, scale, size) if isinstance(noise, Laplace) else rng.normal(0, scale, size)
        values[:, column] += np.rint(np.clip(sample, -_MAX_REDRAW_SHIFT, _MAX_REDRAW_SHIFT)).astype(np.int64)
    return values


def _redraw_piece(part: PlannedRelease, times: int, piece: ReleasePiece, rows: np.ndarray) -> pa.Table:
    noisy, groups, rng = piece.noisy, len(rows), _seeded_rng(piece)
    values = _redraw_totals(piece, times, rng)
    selected_values = value_estimates(part, piece.noises, noisy)
    redrawn_values = {name: redraw_estimate(estimate, times, rng) for name, estimate in selected_values.items()}
    table, _ = assemble_table(part, noisy.keys * times, values, piece.noises, redrawn_values)
    table = table.append_column(postprocess.DRAW, pa.array(np.repeat(np.arange(times), groups)))
    return table.append_column(postprocess.ROW, pa.array(np.tile(rows, times)))


def _noise_description(plan: QueryPlan, noises: Sequence[Sequence[tuple[ReleaseNoise, ...]]], name: str) -> str:
    """Describe the noise of a column; `noises` has those of each release and of each piece of it."""
    descriptions = [
        _describe_mechanism(part, total_index, piece_noises)
        for part, measure in noisy_sources(plan, column_origins(plan)[name])
        for piece_noises in noises[plan.releases.index(part)]
        for total_index in total_indices(measure.estimator)
    ]
    return "; ".join(dict.fromkeys(descriptions)) or "computed from noisy numbers"


def _describe_mechanism(part: PlannedRelease, index: int, noises: tuple[ReleaseNoise, ...]) -> str:
    noise, question = noises[index], part.question
    if isinstance(noise, QuantileSelection):
        rows = float(noise.scale / (1 << question.fraction_bits(question.totals[index])))
        return f"exponential mechanism, scale {rows:.4g} rows"
    return describe_noise(noisy_total(part, index, np.zeros((1, len(question.totals)), np.int64), noises))


def _explain_column(plan: QueryPlan, release_plan: ReleasePlan, name: str) -> ExplainedColumn:
    origin = column_origins(plan)[name]
    if any(part in plan.pending for part, _ in noisy_sources(plan, origin)):
        return ExplainedColumn(name, _PENDING_NOISE_TEXT, margin_depends_on=_PENDING_MARGIN_TEXT)
    noise = _noise_description(plan, [[part_noises] for part_noises in release_plan.noises], name)
    if not isinstance(origin, postprocess.ColumnOrigin):
        return ExplainedColumn(name, noise, margin_depends_on="the margin follows from the columns it is computed from")
    ((part, measure),) = noisy_sources(plan, origin)
    noises = release_plan.noises[plan.releases.index(part)]
    zeros = np.zeros((1, len(part.question.totals)), np.int64)
    if isinstance(measure.estimator, Quantile):
        rank = rank_margin(part, measure.estimator, noises[measure.estimator.total])
        statistic = _EXTREMES.get(measure.estimator.target.level, "quantile")
        margin_text = _QUANTILE_MARGIN_TEXT.format(plain_number(rank, 2), statistic)
        return ExplainedColumn(name, noise, margin_depends_on=margin_text)
    if isinstance(measure.estimator, Frequencies | PairMeasure):
        return ExplainedColumn(name, noise, margin_depends_on=_MARGIN_TEXTS[type(measure.estimator)])
    if isinstance(measure.estimator, Mean | Variance):
        ends = [plain_number(each, 3) for each in margin_times_count(part, measure, noises)]
        formula = _MARGIN_FORMULAS[_statistic_name(measure.estimator)]
        return ExplainedColumn(name, noise, margin_depends_on=formula.format(*ends))
    margin = float(estimate_measure(part, measure.estimator, zeros, noises).margins[0])
    in_subtotals = _SUBTOTAL_MARGIN_TEXT.format(plain_number(margin, 3)) if part.grouping_sets else ""
    return ExplainedColumn(name, noise, None if in_subtotals else margin, in_subtotals)


def _statistic_name(recipe: Mean | Variance) -> str:
    if isinstance(recipe, Mean):
        return "mean"
    return "variance" if recipe.statistic in (VarianceStatistic.VAR_POP, VarianceStatistic.VAR_SAMP) else "deviation"


def _groups_sentence(part: PlannedRelease, thresholds: Sequence[Sequence[int]]) -> str:
    groups = part.question.groups
    if not isinstance(groups, SelectedGroups):
        return f"{groups.key_count:,} declared groups, all shown." if part.question.by else ""
    step = _selection_step(part)
    rounds = [" in the first round or ".join(f"{cut / step:,.4g}" for cut in cuts) for cuts in thresholds]
    thresholds_text = ", or in another release ".join(rounds)
    if groups.max_groups == 1:
        return f"Partition selection: a group is shown if its noisy number of units is at least {thresholds_text}."
    in_second = " in the second" if any(len(cuts) > 1 for cuts in thresholds) else ""
    left = " not yet shown" if in_second else ""
    return (
        f"Partition selection: a group is shown if its noisy weight is at least {thresholds_text}{in_second}; "
        f"a unit in k groups{left} adds 1/√k to each."
    )


def _selection_step(part: PlannedRelease) -> int:
    """Return what the thresholds of partition selection are multiples of."""
    return 1 << part.question.fraction_bits(part.question.totals[0])


def _bound_sentences(plan: QueryPlan, tables: Sequence[CombinedRelease]) -> tuple[str, ...]:
    releases = list(zip(plan.releases, tables, strict=True))
    bound_texts = [sentence for part in plan.releases for sentence in part.bounds_notes]
    group_texts = [_groups_sentence(part, table.thresholds) for part, table in releases if table.thresholds]
    return (*plan.left_out, *dict.fromkeys([*bound_texts, *group_texts]))


def _has_nulls(part: PlannedRelease, table: pa.Table) -> bool:
    """Whether a mean, a variance, a quantile or a frequent value is missing for some group."""
    nullable = Mean | Variance | PairMeasure | Quantile | Frequencies
    names = [measure.name for measure in part.measures if isinstance(measure.estimator, nullable)]
    return any(table.column(name).null_count for name in names)


def _has_negative_counts(part: PlannedRelease, table: pa.Table) -> bool:
    counts = [measure.name for measure in part.measures if isinstance(measure.estimator, NoisyCount)]
    return any((table.column(name).to_numpy() < 0).any() for name in counts)
