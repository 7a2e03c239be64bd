"""An answer as a picture: its noisy columns over its keys, with margins of error. matplotlib is an extra."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.answer_text import clipped, is_number, key_texts, rounded
from discreet.figures import BLUE, COLOURS, GREY, INK, MARKS, RED, WIDTH, entitle, panels, plain_numbers, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.answer import Answer

_MOST = 30  # categories, or fewer where each has several bars
_UPRIGHT = 12, 72  # so many categories, with names of so many letters in all, fit side by side
_BAND = 60  # of more points, margins are a band
_SHORT = 20  # letters of a name beside its colour
_WIDE = 10  # times the usual margin: such a point does not set the scale
_BARS = "Error bars: 95 % margin of error from privacy noise."
_NO_BAR = "No bar: margin unknown."
_BEYOND = "Arrow: the value or its margin of error extends beyond the axis."
_SOME = "The {shown} largest of {all:,} groups, chosen by noisy values: they tend to be overstated."
_SIDE = 0.06  # the width of the panel for NULL beside a time line, as a share


@dataclass(frozen=True)
class _Layout:
    """Where the rows of an answer are drawn: for each series, places on the axis and the rows that stand there.

    `ticks` names the places where they are categories. `nulls` are rows whose key is NULL where places are times or
    numbers.
    """

    series: dict[str, list[tuple[Any, int]]]
    ticks: list[str] | None
    nulls: dict[str, list[int]]
    label: str
    colours_are: str = ""
    omitted: str = ""

    @property
    def horizontal(self) -> bool:
        ticks = self.ticks or []
        return len(ticks) > _UPRIGHT[0] or sum(map(len, ticks)) > _UPRIGHT[1]


def answer_figure(answer: "Answer") -> "Figure":
    """Draw each noisy column over the keys, with its margins as error bars."""
    with style():
        keys = [name for name in answer.table.column_names if name not in answer.margins]
        numbers = {name: answer.table.column(name).to_pylist() for name in answer.margins}
        measures = [name for name, column in numbers.items() if any(map(is_number, column))]
        if not len(answer):
            return _no_rows(_title(list(numbers), keys))
        if not measures:
            raise ValueError("plot needs at least one noisy column of numbers; this answer has none")
        layout = _layout(answer, keys, _floats(numbers[measures[0]]))
        figure, grid = _panels(layout, len(measures))
        notes: dict[str, None] = {}
        for axes, name in zip(grid, measures, strict=True):
            margins = np.array(answer.margins[name], np.float64)  # None is nan: no error bar
            notes |= dict.fromkeys(_draw(axes, layout, _floats(numbers[name]), margins))
            alone = not keys and len(answer) == 1
            shown = f"{clipped(name)}: {_noisy(numbers[name][0], answer.margins[name][0])}" if alone else clipped(name)
            _name(axes, layout, shown, above=alone or len(measures) > 1)
        if len(layout.series) > 1:
            _name_colours(figure, grid[0][0], layout.colours_are)
        told = [*notes, *([layout.omitted] if layout.omitted else [])]
        figure.supxlabel("\n".join(told), x=0.01, ha="left", fontsize=7.5, color=GREY)
        entitle(figure, _title(measures, keys))
        return figure


def _noisy(value: Any, margin: float | None) -> str:
    return " ± ".join(rounded(value if isinstance(value, int) else float(value), margin))


def _title(measures: Sequence[str], keys: Sequence[str]) -> str:
    shown, over = ([clipped(name) for name in names] for names in (measures, keys))
    return f"{_listed(shown)} by {_listed(over)}" if keys else _listed(shown)


def _listed(names: list[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])


def _no_rows(title: str) -> "Figure":
    figure, (axes,) = panels(height=1.2)
    axes.set_axis_off()
    axes.text(0.5, 0.5, "The answer has no rows.", ha="center", va="center", transform=axes.transAxes)
    entitle(figure, title)
    return figure


def _floats(column: Iterable[Any]) -> np.ndarray:
    numbers = np.array([float(value) if is_number(value) else np.nan for value in column])
    return np.where(np.isfinite(numbers), numbers, np.nan)


# Where the rows stand


def _layout(answer: "Answer", keys: list[str], values: np.ndarray) -> _Layout:
    columns = [answer.table.column(key).to_pylist() for key in keys]
    if len(keys) == 2 and (layout := _two_keys(columns, keys, values)):
        return layout
    if len(keys) == 1 and _is_ordered(columns[0]):
        return _over_time(columns[0], [None] * len(answer), clipped(keys[0]))
    names = [", ".join(row) for row in zip(*map(_texts, columns), strict=True)] or [""] * len(answer)
    return _over_names(list(enumerate(names)), [None] * len(answer), clipped(", ".join(keys)), values)


def _two_keys(columns: list[list[Any]], keys: list[str], values: np.ndarray) -> _Layout | None:
    """Let one key have the axis and the other the colours; None if there are too many colours for that."""
    for axis, colour in ((0, 1), (1, 0)):
        names = _texts(columns[colour])
        few = len(set(columns[colour])) == len(set(names)) <= len(COLOURS)  # else two would have one name
        if few and len(set(zip(*columns, strict=True))) == len(values):
            label, colours_are = clipped(keys[axis]), clipped(keys[colour])
            if _is_ordered(columns[axis]):
                return _over_time(columns[axis], names, label, colours_are)
            categories = list(zip(columns[axis], _texts(columns[axis]), strict=True))
            return _over_names(categories, names, label, values, colours_are)
    return None


def _is_ordered(column: list[Any]) -> bool:
    """Tell whether keys are times or numbers, which a line may join."""
    known = [value for value in column if value is not None]
    return bool(known) and (all(map(is_number, known)) or all(isinstance(value, date) for value in known))


def _over_time(column: list[Any], series: Sequence[str | None], label: str, colours_are: str = "") -> _Layout:
    points: dict[str, list[tuple[Any, int]]] = {name or "": [] for name in series}
    nulls: dict[str, list[int]] = {name: [] for name in points}
    for row, (value, name) in enumerate(zip(column, series, strict=True)):
        if value is None:
            nulls[name or ""].append(row)
        else:
            points[name or ""].append((float(value) if is_number(value) else value, row))
    ordered = {name: sorted(each, key=lambda point: point[0]) for name, each in points.items()}
    return _Layout(ordered, None, nulls, label, colours_are)


def _over_names(
    categories: list[tuple[Any, str]],
    series: Sequence[str | None],
    label: str,
    values: np.ndarray,
    colours_are: str = "",
) -> _Layout:
    """Give each category a place: in the answer's order, or of many the largest, the largest first."""
    rows: dict[tuple[Any, str], list[int]] = {}
    for row, category in enumerate(categories):
        rows.setdefault(category, []).append(row)
    names = list(dict.fromkeys(name or "" for name in series))
    most, shown, omitted = max(5, _MOST * 2 // (len(names) + 1)), list(rows), ""
    if len(rows) > most:
        sizes = np.nan_to_num(np.abs(values), nan=-1.0)
        shown = sorted(rows, key=lambda category: -max(sizes[row] for row in rows[category]))[:most]
        omitted = _SOME.format(shown=most, all=len(rows))
    points: dict[str, list[tuple[Any, int]]] = {name: [] for name in names}
    width = 0.8 / len(names)
    for place, category in enumerate(shown):
        for row in rows[category]:
            name = series[row] or ""
            points[name].append((place + width * (names.index(name) - (len(names) - 1) / 2), row))
    return _Layout(points, [text for _, text in shown], {}, label, colours_are, omitted)


def _texts(column: list[Any]) -> list[str]:
    """Write keys so that NULL is not the text 'NULL', and an empty text can be seen."""
    told = key_texts(column)
    return [f"'{text}'" if value in ("NULL", "") else text for value, text in zip(column, told, strict=True)]


# What is drawn


def _panels(layout: _Layout, count: int) -> tuple["Figure", list[list[Any]]]:
    """Return axes for each measure, side by side if bars are horizontal; and those for NULL beside a time line."""
    if any(layout.nulls.values()):
        ratios = {"width_ratios": (1, _SIDE), "sharey": "row"}
        figure, every = panels(2, count, height=2.3 if count > 1 else 3.2, **ratios)
        return figure, [every[place : place + 2] for place in range(0, len(every), 2)]
    if not layout.horizontal:
        single = not layout.label  # a number without keys needs no room for others
        figure, every = panels(1, count, height=2.3 if count > 1 else 3.2, sharex=True)
        if single:
            figure.set_size_inches(WIDTH / 2, figure.get_figheight())
        return figure, [[axes] for axes in every]
    side = min(count, 3)
    lines, bars = -(-count // side), len(layout.ticks or ()) * (0.1 + 0.1 * len(layout.series))
    figure, every = panels(side, lines, height=1.1 + bars, sharey=True)
    for axes in every[count:]:
        axes.set_axis_off()
    return figure, [[axes] for axes in every[:count]]


def _draw(panel: list[Any], layout: _Layout, values: np.ndarray, margins: np.ndarray) -> list[str]:
    """Draw one measure; return what has to be said below."""
    axes, shown = panel[0], [row for points in layout.series.values() for _, row in points]
    shown += [row for rows in layout.nulls.values() for row in rows]
    low, high = _limits(values[shown], margins[shown])
    (axes.set_xlim if layout.horizontal else axes.set_ylim)(low, high)
    colours = COLOURS if len(layout.series) > 1 else (BLUE,)
    for number, (name, points) in enumerate(layout.series.items()):
        places, rows = [place for place, _ in points], [row for _, row in points]
        look = {"color": colours[number], "label": name}
        if layout.ticks is None:
            _draw_line(axes, places, values[rows], margins[rows], {**look, "marker": MARKS[number]})
            nulls = layout.nulls[name]
            if nulls:
                offset = 0.1 * (number - (len(layout.series) - 1) / 2)
                bar = {"fmt": MARKS[number], "ecolor": INK, "elinewidth": 0.8, **look}
                panel[1].errorbar([offset] * len(nulls), values[nulls], margins[nulls], **bar)
                _mark_clipped(panel[1], [offset] * len(nulls), values[nulls], margins[nulls], horizontal=False)
        else:
            _draw_bars(axes, layout, places, (values[rows], margins[rows]), look)
        _mark_clipped(axes, places, values[rows], margins[rows], horizontal=layout.horizontal)
    (axes.axvline if layout.horizontal else axes.axhline)(0, color=INK, lw=0.5)
    plain_numbers(axes.xaxis if layout.horizontal else axes.yaxis)
    beyond = (values + margins)[shown] > high, (values - margins)[shown] < low
    notes = [_BARS] if np.isfinite(margins[shown]).any() else []
    notes += [_NO_BAR] if (np.isnan(margins[shown]) & np.isfinite(values[shown])).any() else []
    return notes + ([_BEYOND] if np.any(beyond) else [])


def _limits(values: np.ndarray, margins: np.ndarray) -> tuple[float, float]:
    """Return the ends of the axis: all values and margins, except those of points that are much wider than usual."""
    known = np.sort(margins[np.isfinite(margins)])
    usual = float(known[(known.size - 1) // 2]) if known.size else 0.0
    wide = margins > _WIDE * usual if usual else margins > _WIDE * np.nanmax(np.abs(values))
    calm = values[~wide & np.isfinite(values)]
    low, high = min(0.0, *calm, 0.0), max(0.0, *calm, 0.0)
    room = max(high - low, 3 * usual)
    reach = np.nan_to_num(margins)
    ends = np.nanmin(values - reach), np.nanmax(values + reach)
    low, high = min(low, max(ends[0], low - room)), max(high, min(ends[1], high + room))
    span = (high - low) or 1.0
    return low - 0.05 * span * (low < 0), high + 0.05 * span


def _draw_line(axes: Any, places: list[Any], values: np.ndarray, margins: np.ndarray, look: dict[str, Any]) -> None:
    if len(places) > _BAND:
        axes.plot(places, values, **{**look, "marker": ""})
        axes.fill_between(places, values - margins, values + margins, color=look["color"], alpha=0.25, lw=0)
    else:
        axes.errorbar(places, values, yerr=margins, ecolor=INK, elinewidth=0.8, **look)


def _draw_bars(
    axes: Any,
    layout: _Layout,
    places: list[float],
    numbers: tuple[np.ndarray, np.ndarray],
    look: dict[str, Any],
) -> None:
    values, margins = numbers
    size = 0.8 / len(layout.series)
    line: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 0.8}
    if layout.horizontal:
        axes.barh(places, values, size, **look)
        axes.errorbar(values, places, xerr=margins, **line)
    else:
        axes.bar(places, values, size, **look)
        axes.errorbar(places, values, yerr=margins, **line)


def _mark_clipped(axes: Any, places: list[Any], values: np.ndarray, margins: np.ndarray, *, horizontal: bool) -> None:
    """Put an arrow where an error bar goes beyond the axis."""
    low, high = axes.get_xlim() if horizontal else axes.get_ylim()
    for end, gone, mark in ((high, values + margins > high, ">^"), (low, values - margins < low, "<v")):
        there = [place for place, out in zip(places, gone, strict=True) if out]
        at = ([end] * len(there), there) if horizontal else (there, [end] * len(there))
        if there:
            axes.plot(*at, mark[0 if horizontal else 1], color=RED, ms=5, clip_on=False, zorder=5)


def _name(panel: list[Any], layout: _Layout, measure: str, *, above: bool) -> None:
    """Name the axes, and the categories on them."""
    axes = panel[0]
    along, across = (axes.yaxis, axes.xaxis) if layout.horizontal else (axes.xaxis, axes.yaxis)
    if above:
        axes.set_title(measure, parse_math=False)
    else:
        across.set_label_text(measure, parse_math=False)
    spot = axes.get_subplotspec()
    if spot is not None and (spot.is_first_col() if layout.horizontal else spot.is_last_row()):
        along.set_label_text(layout.label, parse_math=False)
    if layout.ticks is not None:
        along.set_ticks(range(len(layout.ticks)), layout.ticks, parse_math=False)
        axes.tick_params(axis="y" if layout.horizontal else "x", length=0)
        ends = (-0.6, len(layout.ticks) - 0.4)
        if layout.horizontal:
            axes.set_ylim(*reversed(ends))
        else:
            axes.set_xlim(*ends)
    else:
        _name_line(axes, layout)
    for side in panel[1:]:
        side.set_xticks([0], ["NULL"])
        side.set_xlim(-0.5, 0.5)
        side.spines["left"].set_visible(False)
        side.tick_params(axis="y", left=False, labelleft=False)
        side.axhline(0, color=INK, lw=0.5)


def _name_colours(figure: "Figure", axes: Any, title: str) -> None:
    handles, labels = axes.get_legend_handles_labels()
    short = [label if len(label) <= _SHORT else f"{label[: _SHORT - 1]}…" for label in labels]
    legend = figure.legend(handles, short, loc="outside right upper", title=title)
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)


def _name_line(axes: Any, layout: _Layout) -> None:
    dates, ticker = (import_module(f"matplotlib.{name}") for name in ("dates", "ticker"))  # an extra
    places = [place for points in layout.series.values() for place, _ in points]
    if isinstance(places[0], date):
        locator = dates.AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=all(map(float.is_integer, places)), nbins=10))
        axes.xaxis.set_major_formatter(ticker.ScalarFormatter(useOffset=False))
    if math.isclose(*axes.get_xlim()):
        axes.margins(x=0.5)
