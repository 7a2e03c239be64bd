"""The sections of the anonymity report: classes, sensitive columns, linkage, uniqueness, information loss."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb

from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.linkage_risk import UniqueCombination, max_combination_size
from discreet.anonymity.metrics.risk import Risk, format_count
from discreet.html_page import ChartBar

_CLASS_SIZE_BINS = (1, 2, 5, 10, 20, 50, 100)  # lower ends
_RISK_THRESHOLD = 0.2  # exceeded in classes of fewer than 5 rows
_MAX_SINGLE_COLUMNS = 12
_MAX_LISTED_SPANS = 12
_MIN_SHOWN_SHARE = 0.001
_MAX_COMPARED_KEYS = 20_000_000  # rows times combinations of columns, which take a few seconds

RisksByStage = Mapping[str, Risk]  # keys: "before" and "after", or "" for a single measurement
MetricRow = tuple[str, Sequence[str], str]


@dataclass(frozen=True)
class ReportTable:
    """A table of strings: each row has a name, one or two numbers, and their meaning."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RiskSection:
    """A heading with sentences, a table, and a bar chart with its caption."""

    title: str
    sentences: tuple[str, ...] = ()
    table: ReportTable | None = None
    bars: tuple[ChartBar, ...] = ()
    caption: str = ""


def class_section(stages: RisksByStage) -> RiskSection:
    """Return the section on class sizes."""
    risks = list(stages.values())
    rows = [
        ("k", [f"{risk.k:,}" for risk in risks], "size of the smallest class"),
        ("classes", [f"{risk.classes:,}" for risk in risks], "sets of rows with equal quasi-identifiers"),
        ("largest", [f"{max(risk.sizes):,}" for risk in risks], "size of the largest class"),
        ("unique", [f"{risk.unique:,}" for risk in risks], "rows that are alone in their class"),
    ]
    bars = tuple(bar for stage, risk in stages.items() for bar in _class_size_bars(risk, stage))
    return RiskSection("Equivalence classes", (), _build_table(stages, rows), bars, "Share of rows by class size")


def attribute_sections(stages: RisksByStage) -> Iterator[RiskSection]:
    """Yield a section on attribute disclosure for each sensitive column."""
    for column_risks in zip(*(risk.sensitive for risk in stages.values()), strict=True):
        latest = column_risks[-1]
        yield RiskSection(
            f"Attribute disclosure: {latest.column}",
            tuple(_homogeneity_sentences(latest)),
            _build_table(stages, _attribute_metrics(column_risks)),
        )


def linkage_section(stages: RisksByStage) -> RiskSection:
    """Return the section on linking rows to people."""
    risks = list(stages.values())
    population_size = risks[-1].population
    rows = [
        (
            "prosecutor",
            [_format_percent(risk.prosecutor.highest_risk) for risk in risks],
            "highest risk if the person is known to be in the table",
        ),
        ("mean", [_format_percent(risk.prosecutor.mean_risk) for risk in risks], "mean prosecutor risk over all rows"),
        (
            "high risk",
            [_format_percent(risk.prosecutor.share_above(_RISK_THRESHOLD)) for risk in risks],
            "rows with a prosecutor risk above 20 %",
        ),
    ]
    if population_size is None:
        sentence = "No population was given: the attacker is assumed to know that the person is in the table."
        return RiskSection("Identity disclosure", (sentence,), _build_table(stages, rows))
    rows += [
        (
            "journalist",
            [_format_percent(risk.journalist.highest_risk) for risk in risks],
            f"highest risk given a population of {population_size:,} people",
        ),
        (
            "unique match",
            [f"{risk.journalist.uniquely_linked_rows:,}" for risk in risks],
            "rows that match exactly one person",
        ),
        ("no match", [f"{risk.journalist.unmatched_rows:,}" for risk in risks], "rows that match nobody"),
        (
            "marketer",
            [_format_percent(risk.marketer) for risk in risks],
            "expected correct links if all rows are linked",
        ),
    ]
    return RiskSection("Identity disclosure", (), _build_table(stages, rows))


def uniqueness_section(risk: Risk) -> RiskSection:
    """Return the section on unique rows: by each column, and by the worst combination of each size."""
    max_columns = max_combination_size(len(risk.quasi))
    while (
        max_columns > 1
        and risk.rows * sum(comb(len(risk.quasi), size) for size in range(1, max_columns + 1)) > _MAX_COMPARED_KEYS
    ):
        max_columns -= 1
    combinations = risk.uniqueness(max_columns)
    singles = sorted(
        (combination for combination in combinations if len(combination.columns) == 1),
        key=lambda combination: -combination.unique_rows,
    )
    worst = [
        max(_combinations_of_size(combinations, size), key=lambda combination: combination.unique_rows)
        for size in range(2, max_columns + 1)
    ]
    bars = tuple(
        ChartBar(
            _combination_label(combination.columns, risk.quasi),
            combination.share,
            _format_percent(combination.share),
        )
        for combination in (*singles[:_MAX_SINGLE_COLUMNS], *worst)
    )
    sizes = f"up to {max_columns} of {len(risk.quasi)} columns"
    sentence = f"Of the combinations of several columns, the worst of each size is shown ({sizes})."
    return RiskSection("Uniqueness", (sentence,) if worst else (), None, bars, "Share of rows that are unique by")


def uniqueness_before_section(before: Risk, after: Risk) -> RiskSection:
    """Return the section on unique rows of the original; a row that is unique by some columns is unique by all."""
    section = uniqueness_section(before)
    sentence = (
        "In the release, no row is unique by any of them."
        if after.k > 1
        else "In the release, k is 1: some rows are still unique."
    )
    return replace(section, title=f"{section.title}: before", sentences=(*section.sentences, sentence))


def loss_sections(risk: Risk) -> Iterator[RiskSection]:
    """Yield the section on information loss, if it was measured."""
    loss = risk.loss
    if loss is None:
        return
    rows = (
        ("NCP", _format_percent(loss.ncp), "mean share of a column's domain that a released value covers"),
        ("discernibility", f"{loss.discernibility:,}", "sum of squared class sizes"),
        ("average class", _format_number(loss.average_class), "mean class size, as a multiple of the smallest"),
        ("suppressed", f"{loss.suppressed:,}", "rows"),
    )
    bars = tuple(ChartBar(name, share, _format_percent(share)) for name, share in loss.columns.items())
    yield RiskSection("Information loss", (), ReportTable(("", "", ""), rows), bars, "NCP of each column")


def _build_table(stages: RisksByStage, rows: Sequence[MetricRow]) -> ReportTable:
    headers = ("", *stages, "")
    return ReportTable(headers, tuple((name, *values, meaning) for name, values, meaning in rows))


def _class_size_bars(risk: Risk, stage: str) -> Iterator[ChartBar]:
    for low, high in pairwise((*_CLASS_SIZE_BINS, risk.rows + 2)):
        rows = sum(size * count for size, count in risk.sizes.items() if low <= size < high)
        if rows:
            last = low == _CLASS_SIZE_BINS[-1]
            span = "unique" if low == 1 else f"class of {low} or more" if last else f"class of {low}-{high - 1}"
            yield ChartBar(f"{stage}: {span}" if stage else span, rows / risk.rows, _format_percent(rows / risk.rows))


def _attribute_metrics(column_risks: Sequence[AttributeRisk]) -> list[MetricRow]:
    return [
        ("l", [f"{risk.l:,}" for risk in column_risks], "fewest distinct values in a class"),
        ("entropy l", [_format_number(risk.entropy_l) for risk in column_risks], "exponential of the lowest entropy"),
        (
            "recursive c",
            [_format_number(risk.recursive[0]) for risk in column_risks],
            "count of the most frequent value over that of the l-th and rarer ones",
        ),
        (
            "t",
            [_format_number(risk.t) for risk in column_risks],
            f"largest distance of a class from the table ({column_risks[-1].distance} distance)",
        ),
        ("alpha", [_format_percent(risk.alpha) for risk in column_risks], "largest share of one value in a class"),
        ("beta", [_format_number(risk.beta) for risk in column_risks], "largest relative gain over the table's share"),
        ("delta", [_format_number(risk.delta) for risk in column_risks], "largest log-ratio to the table's share"),
        (
            "homogeneous",
            [f"{len(risk.exposed_rows):,}" for risk in column_risks],
            "rows in classes with a single value",
        ),
    ]


def _homogeneity_sentences(risk: AttributeRisk) -> Iterator[str]:
    if risk.homogeneous:
        class_count = format_count(risk.homogeneous, "class", "classes")
        rows = _format_row_numbers((risk.exposed_rows + 1).tolist())
        yield f"{risk.column} has a single value in {class_count}: rows {rows}."


def _format_row_numbers(rows: Sequence[int]) -> str:
    """Return row numbers as text, with consecutive ones as a range."""
    spans: list[list[int]] = []
    for row in rows:
        if spans and row == spans[-1][1] + 1:
            spans[-1][1] = row
        elif len(spans) == _MAX_LISTED_SPANS:
            return ", ".join(map(_format_span, spans)) + ", …"
        else:
            spans.append([row, row])
    return ", ".join(map(_format_span, spans))


def _format_span(ends: Sequence[int]) -> str:
    return f"{ends[0]}" if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"


def _combination_label(columns: Sequence[str], quasi: Sequence[str]) -> str:
    """Return the names of the columns, or "all but" the missing ones if these are fewer."""
    missing = [name for name in quasi if name not in columns]
    if len(columns) == 1 or len(missing) >= len(columns):
        return " + ".join(columns)
    return f"all but {', '.join(missing)}" if missing else f"all {len(quasi)}"


def _combinations_of_size(combinations: Sequence[UniqueCombination], size: int) -> list[UniqueCombination]:
    return [combination for combination in combinations if len(combination.columns) == size]


def _format_percent(share: float) -> str:
    """Return a share as a percentage; only 0 and 1 are shown as 0 % and 100 %."""
    if 0 < share < _MIN_SHOWN_SHARE:
        return "< 0.1 %"
    if 1 - _MIN_SHOWN_SHARE < share < 1:
        return "> 99.9 %"
    return f"{share * 100:.0f} %" if share in {0, 1} else f"{share * 100:.1f} %"


def _format_number(value: float) -> str:
    return f"{value:.3g}"
