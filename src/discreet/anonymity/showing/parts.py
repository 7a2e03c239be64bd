"""The parts of the report: classes, what they tell, who can be linked, by what, and what was lost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb

from discreet.anonymity.measuring.exposure import Exposure
from discreet.anonymity.measuring.risk import Risk
from discreet.anonymity.measuring.uniqueness import Alone, largest_subset
from discreet.anonymity.measuring.unprotected import counted
from discreet.anonymity.showing.pictures import Bar

_SIZES = (1, 2, 5, 10, 20, 50, 100)  # where each bar of class sizes begins
_FIFTH = 0.2  # above it, in a class of fewer than five, a row counts as risky
_SINGLES = 12
_LISTED = 12
_LEAST = 0.001
_MOST_KEYS = 20_000_000  # rows times subsets of columns that are looked at: a few seconds

Seen = Mapping[str, Risk]  # by when: "before" and "after", or "" for a single measurement
Measure = tuple[str, Sequence[str], str]


@dataclass(frozen=True)
class Grid:
    """A table of texts: a name, numbers, and what they mean; headers only where there are several numbers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Part:
    """A heading, what is said below it, a table, and bars with what they show."""

    title: str
    sentences: tuple[str, ...] = ()
    grid: Grid | None = None
    bars: tuple[Bar, ...] = ()
    caption: str = ""


def classes(seen: Seen) -> Part:
    """Tell how many rows look alike."""
    risks = list(seen.values())
    rows = [
        ("k", [f"{risk.k:,}" for risk in risks], "the smallest class"),
        ("classes", [f"{risk.classes:,}" for risk in risks], "of rows that look alike"),
        ("largest", [f"{max(risk.sizes):,}" for risk in risks], "the largest class"),
        ("alone", [f"{risk.unique:,}" for risk in risks], "rows that look like no other"),
    ]
    bars = tuple(bar for when, risk in seen.items() for bar in _sizes(risk, when))
    return Part("Classes", (), _grid(seen, rows), bars, "Share of the rows by the size of their class")


def exposures(seen: Seen) -> Iterator[Part]:
    """Tell what the classes say about each sensitive column."""
    for each in zip(*(risk.sensitive for risk in seen.values()), strict=True):
        last = each[-1]
        yield Part(f"What the classes tell: {last.column}", tuple(_alike(last)), _grid(seen, _measures(each)))


def links(seen: Seen) -> Part:
    """Tell how surely rows can be linked to people."""
    risks = list(seen.values())
    people = risks[-1].population
    rows = [
        ("prosecutor", [_percent(risk.prosecutor.highest) for risk in risks], "surest link of a person in the table"),
        ("mean", [_percent(risk.prosecutor.mean) for risk in risks], "the same, over all rows"),
        ("risky", [_percent(risk.prosecutor.above(_FIFTH)) for risk in risks], "rows linked with more than 20 %"),
    ]
    if people is None:
        said = "No population was given: whoever is looked for is taken to be in the table."
        return Part("Linking rows to people", (said,), _grid(seen, rows))
    rows += [
        (
            "journalist",
            [_percent(risk.journalist.highest) for risk in risks],
            f"surest link to one of {people:,} people",
        ),
        ("one person", [f"{risk.journalist.single:,}" for risk in risks], "rows that only one of them fits"),
        ("nobody", [f"{risk.journalist.unmatched:,}" for risk in risks], "rows that none of them fits"),
        ("marketer", [_percent(risk.marketer) for risk in risks], "rows linked rightly if all are tried"),
    ]
    return Part("Linking rows to people", (), _grid(seen, rows))


def telling_apart(risk: Risk) -> Part:
    """Tell which columns single people out: each alone, and the worst two, three and so on."""
    most = largest_subset(len(risk.quasi))
    while most > 1 and risk.rows * sum(comb(len(risk.quasi), size) for size in range(1, most + 1)) > _MOST_KEYS:
        most -= 1
    found = risk.uniqueness(most)
    singles = sorted((each for each in found if len(each.columns) == 1), key=lambda each: -each.rows)
    worst = [max(_of_size(found, size), key=lambda each: each.rows) for size in range(2, most + 1)]
    bars = tuple(
        Bar(_short(each.columns, risk.quasi), each.share, _percent(each.share))
        for each in (*singles[:_SINGLES], *worst)
    )
    said = f"Of more than one column, the worst of each number is shown, up to {most} of {len(risk.quasi)}."
    return Part("What singles people out", (said,) if worst else (), None, bars, "Share of the rows that are alone by")


def told_apart(before: Risk, after: Risk) -> Part:
    """Tell which columns singled people out before; whoever is alone by some columns is so by all of them."""
    part = telling_apart(before)
    now = "In the release nobody is alone by any of them." if after.k > 1 else "In the release k is 1: some still are."
    return replace(part, title=f"{part.title}: before", sentences=(*part.sentences, now))


def losses(risk: Risk) -> Iterator[Part]:
    """Tell what a release lost, if that is known."""
    lost = risk.loss
    if lost is None:
        return
    rows = (
        ("penalty", _percent(lost.ncp), "mean share of a column's width that a value covers (NCP)"),
        ("discernibility", f"{lost.discernibility:,}", "sum of squared class sizes"),
        ("average class", _number(lost.average_class), "as a multiple of the smallest"),
        ("left out", f"{lost.suppressed:,}", "rows"),
    )
    bars = tuple(Bar(name, share, _percent(share)) for name, share in lost.columns.items())
    yield Part("What was lost", (), Grid(("", "", ""), rows), bars, "Penalty of each column")


def _grid(seen: Seen, rows: Sequence[Measure]) -> Grid:
    headers = ("", *seen, "")
    return Grid(headers, tuple((name, *values, meaning) for name, values, meaning in rows))


def _sizes(risk: Risk, when: str) -> Iterator[Bar]:
    for low, high in pairwise((*_SIZES, risk.rows + 2)):
        rows = sum(size * count for size, count in risk.sizes.items() if low <= size < high)
        if rows:
            last = low == _SIZES[-1]
            span = "alone" if low == 1 else f"class of {low} or more" if last else f"class of {low}-{high - 1}"
            yield Bar(f"{when}: {span}" if when else span, rows / risk.rows, _percent(rows / risk.rows))


def _measures(each: Sequence[Exposure]) -> list[Measure]:
    return [
        ("l", [f"{one.l:,}" for one in each], "fewest different values in a class"),
        ("entropy l", [_number(one.entropy_l) for one in each], "the same, rare values counting less"),
        ("recursive c", [_number(one.recursive[0]) for one in each], "commonest value to the l-th and rarer"),
        ("t", [_number(one.t) for one in each], f"farthest class from the table ({each[-1].distance} distance)"),
        ("alpha", [_percent(one.alpha) for one in each], "surest guess of a value in a class"),
        ("beta", [_number(one.beta) for one in each], "largest relative gain of a value over the table"),
        ("delta", [_number(one.delta) for one in each], "largest log-ratio of a value to the table"),
        ("no doubt", [f"{len(one.exposed):,}" for one in each], "rows in classes of one value: homogeneity"),
    ]


def _alike(exposed: Exposure) -> Iterator[str]:
    if exposed.homogeneous:
        alike = counted(exposed.homogeneous, "class", "classes")
        yield f"{exposed.column} has one value only in {alike}: rows {_ranges((exposed.exposed + 1).tolist())}."


def _ranges(rows: Sequence[int]) -> str:
    """Write numbers of rows, neighbours as a range."""
    spans: list[list[int]] = []
    for row in rows:
        if spans and row == spans[-1][1] + 1:
            spans[-1][1] = row
        elif len(spans) == _LISTED:
            return ", ".join(map(_span, spans)) + ", …"
        else:
            spans.append([row, row])
    return ", ".join(map(_span, spans))


def _span(ends: Sequence[int]) -> str:
    return f"{ends[0]}" if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"


def _short(columns: Sequence[str], quasi: Sequence[str]) -> str:
    """Name some columns, or if that is shorter those that are missing."""
    missing = [name for name in quasi if name not in columns]
    if len(columns) == 1 or len(missing) >= len(columns):
        return " + ".join(columns)
    return f"all but {', '.join(missing)}" if missing else f"all {len(quasi)}"


def _of_size(found: Sequence[Alone], size: int) -> list[Alone]:
    return [each for each in found if len(each.columns) == size]


def _percent(share: float) -> str:
    """Write a share so that what is not nothing or all does not look like it."""
    if 0 < share < _LEAST:
        return "< 0.1 %"
    if 1 - _LEAST < share < 1:
        return "> 99.9 %"
    return f"{share * 100:.0f} %" if share in {0, 1} else f"{share * 100:.1f} %"


def _number(value: float) -> str:
    return f"{value:.3g}"
