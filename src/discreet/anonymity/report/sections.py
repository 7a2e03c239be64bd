"""The sections of the report: classes, sensitive columns, linkage, uniqueness, information loss."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb

from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.open_attacks import format_count
from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.metrics.uniqueness import UniqueCombination, max_combination_size
from discreet.anonymity.report.bar_chart import ChartBar

_CLASS_SIZE_BINS = (1, 2, 5, 10, 20, 50, 100)  # where each bar of class sizes begins
_RISK_THRESHOLD = 0.2  # above it, in a class of fewer than five, a row counts as risky
_MAX_SINGLE_COLUMNS = 12
_MAX_LISTED_SPANS = 12
_MIN_SHOWN_SHARE = 0.001
_MAX_COMPARED_KEYS = 20_000_000  # rows times subsets of columns that are looked at: a few seconds

RisksByStage = Mapping[str, Risk]  # by when: "before" and "after", or "" for a single measurement
MetricRow = tuple[str, Sequence[str], str]


@dataclass(frozen=True)
class ReportTable:
    """A table of texts: a name, numbers, and what they mean; headers only where there are several numbers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RiskSection:
    """A heading, what is said below it, a table, and bars with what they show."""

    title: str
    sentences: tuple[str, ...] = ()
    table: ReportTable | None = None
    bars: tuple[ChartBar, ...] = ()
    caption: str = ""


def class_section(stages: RisksByStage) -> RiskSection:
    """Tell how many rows look alike."""
    risks = list(stages.values())
    rows = [
        ("k", [f"{risk.k:,}" for risk in risks], "the smallest class"),
        ("classes", [f"{risk.classes:,}" for risk in risks], "of rows that look alike"),
        ("largest", [f"{max(risk.sizes):,}" for risk in risks], "the largest class"),
        ("alone", [f"{risk.unique:,}" for risk in risks], "rows that look like no other"),
    ]
    bars = tuple(bar for stage, risk in stages.items() for bar in _class_size_bars(risk, stage))
    return RiskSection("Classes", (), _build_table(stages, rows), bars, "Share of the rows by the size of their class")


def attribute_sections(stages: RisksByStage) -> Iterator[RiskSection]:
    """Tell what the classes say about each sensitive column."""
    for column_risks in zip(*(risk.sensitive for risk in stages.values()), strict=True):
        latest = column_risks[-1]
        yield RiskSection(
            f"What the classes tell: {latest.column}",
            tuple(_homogeneity_sentences(latest)),
            _build_table(stages, _attribute_metrics(column_risks)),
        )


def linkage_section(stages: RisksByStage) -> RiskSection:
    """Tell how surely rows can be linked to people."""
    risks = list(stages.values())
    population_size = risks[-1].population
    rows = [
        (
            "prosecutor",
            [_format_percent(risk.prosecutor.highest_risk) for risk in risks],
            "surest link of a person in the table",
        ),
        ("mean", [_format_percent(risk.prosecutor.mean_risk) for risk in risks], "the same, over all rows"),
        (
            "risky",
            [_format_percent(risk.prosecutor.share_above(_RISK_THRESHOLD)) for risk in risks],
            "rows linked with more than 20 %",
        ),
    ]
    if population_size is None:
        sentence = "No population was given: whoever is looked for is taken to be in the table."
        return RiskSection("Linking rows to people", (sentence,), _build_table(stages, rows))
    rows += [
        (
            "journalist",
            [_format_percent(risk.journalist.highest_risk) for risk in risks],
            f"surest link to one of {population_size:,} people",
        ),
        (
            "one person",
            [f"{risk.journalist.uniquely_linked_rows:,}" for risk in risks],
            "rows that only one of them fits",
        ),
        ("nobody", [f"{risk.journalist.unmatched_rows:,}" for risk in risks], "rows that none of them fits"),
        ("marketer", [_format_percent(risk.marketer) for risk in risks], "rows linked rightly if all are tried"),
    ]
    return RiskSection("Linking rows to people", (), _build_table(stages, rows))


def uniqueness_section(risk: Risk) -> RiskSection:
    """Tell which columns single people out: each alone, and the worst two, three and so on."""
    max_columns = max_combination_size(len(risk.quasi))
    while (
        max_columns > 1
        and risk.rows * sum(comb(len(risk.quasi), size) for size in range(1, max_columns + 1)) > _MAX_COMPARED_KEYS
    ):
        max_columns -= 1
    combinations = risk.uniqueness(max_columns)
    singles = sorted(
        (combination for combination in combinations if len(combination.columns) == 1),
        key=lambda each: -each.unique_rows,
    )
    worst = [
        max(_combinations_of_size(combinations, size), key=lambda each: each.unique_rows)
        for size in range(2, max_columns + 1)
    ]
    bars = tuple(
        ChartBar(_combination_label(each.columns, risk.quasi), each.share, _format_percent(each.share))
        for each in (*singles[:_MAX_SINGLE_COLUMNS], *worst)
    )
    sentence = f"Of more than one column, the worst of each number is shown, up to {max_columns} of {len(risk.quasi)}."
    return RiskSection(
        "What singles people out", (sentence,) if worst else (), None, bars, "Share of the rows that are alone by"
    )


def uniqueness_before_section(before: Risk, after: Risk) -> RiskSection:
    """Tell which columns singled people out before; whoever is alone by some columns is so by all of them."""
    section = uniqueness_section(before)
    sentence = (
        "In the release nobody is alone by any of them." if after.k > 1 else "In the release k is 1: some still are."
    )
    return replace(section, title=f"{section.title}: before", sentences=(*section.sentences, sentence))


def loss_sections(risk: Risk) -> Iterator[RiskSection]:
    """Tell what a release lost, if that is known."""
    loss = risk.loss
    if loss is None:
        return
    rows = (
        ("penalty", _format_percent(loss.ncp), "mean share of a column's width that a value covers (NCP)"),
        ("discernibility", f"{loss.discernibility:,}", "sum of squared class sizes"),
        ("average class", _format_number(loss.average_class), "as a multiple of the smallest"),
        ("left out", f"{loss.suppressed:,}", "rows"),
    )
    bars = tuple(ChartBar(name, share, _format_percent(share)) for name, share in loss.columns.items())
    yield RiskSection("What was lost", (), ReportTable(("", "", ""), rows), bars, "Penalty of each column")


def _build_table(stages: RisksByStage, rows: Sequence[MetricRow]) -> ReportTable:
    headers = ("", *stages, "")
    return ReportTable(headers, tuple((name, *values, meaning) for name, values, meaning in rows))


def _class_size_bars(risk: Risk, stage: str) -> Iterator[ChartBar]:
    for low, high in pairwise((*_CLASS_SIZE_BINS, risk.rows + 2)):
        rows = sum(size * count for size, count in risk.sizes.items() if low <= size < high)
        if rows:
            last = low == _CLASS_SIZE_BINS[-1]
            span = "alone" if low == 1 else f"class of {low} or more" if last else f"class of {low}-{high - 1}"
            yield ChartBar(f"{stage}: {span}" if stage else span, rows / risk.rows, _format_percent(rows / risk.rows))


def _attribute_metrics(column_risks: Sequence[AttributeRisk]) -> list[MetricRow]:
    return [
        ("l", [f"{risk.l:,}" for risk in column_risks], "fewest different values in a class"),
        ("entropy l", [_format_number(one.entropy_l) for one in column_risks], "the same, rare values counting less"),
        (
            "recursive c",
            [_format_number(one.recursive[0]) for one in column_risks],
            "commonest value to the l-th and rarer",
        ),
        (
            "t",
            [_format_number(one.t) for one in column_risks],
            f"farthest class from the table ({column_risks[-1].distance} distance)",
        ),
        ("alpha", [_format_percent(one.alpha) for one in column_risks], "surest guess of a value in a class"),
        ("beta", [_format_number(one.beta) for one in column_risks], "largest relative gain of a value over the table"),
        ("delta", [_format_number(one.delta) for one in column_risks], "largest log-ratio of a value to the table"),
        (
            "no doubt",
            [f"{len(one.exposed_rows):,}" for one in column_risks],
            "rows in classes of one value: homogeneity",
        ),
    ]


def _homogeneity_sentences(risk: AttributeRisk) -> Iterator[str]:
    if risk.homogeneous:
        class_count = format_count(risk.homogeneous, "class", "classes")
        yield f"{risk.column} has one value only in {class_count}: rows {_format_row_numbers((risk.exposed_rows + 1).tolist())}."


def _format_row_numbers(rows: Sequence[int]) -> str:
    """Write numbers of rows, neighbours as a range."""
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
    """Name some columns, or if that is shorter those that are missing."""
    missing = [name for name in quasi if name not in columns]
    if len(columns) == 1 or len(missing) >= len(columns):
        return " + ".join(columns)
    return f"all but {', '.join(missing)}" if missing else f"all {len(quasi)}"


def _combinations_of_size(combinations: Sequence[UniqueCombination], size: int) -> list[UniqueCombination]:
    return [combination for combination in combinations if len(combination.columns) == size]


def _format_percent(share: float) -> str:
    """Write a share so that what is not nothing or all does not look like it."""
    if 0 < share < _MIN_SHOWN_SHARE:
        return "< 0.1 %"
    if 1 - _MIN_SHOWN_SHARE < share < 1:
        return "> 99.9 %"
    return f"{share * 100:.0f} %" if share in {0, 1} else f"{share * 100:.1f} %"


def _format_number(value: float) -> str:
    return f"{value:.3g}"
