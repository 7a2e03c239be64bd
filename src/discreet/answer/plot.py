"""Plot an answer: its noisy columns over its keys, with margins of error. Needs matplotlib."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.answer.text import enumerate_words, is_number, key_texts, margin_legend, round_to_margin, truncate
from discreet.plotting import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    MARKERS,
    RED,
    WIDTH,
    format_plain_numbers,
    panels,
    set_title,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.answer.model import Answer

_MAX_CATEGORIES = 30  # categories, or fewer where each has several bars
_MAX_VERTICAL_BARS = 12, 72  # maximum number of categories side by side, and of letters in their names together
_MAX_ERROR_BARS = 60  # with more points, margins are drawn as a band
_MAX_LEGEND_LENGTH = 20  # letters of a name beside its colour
_WIDE_MARGIN_FACTOR = 10  # times the usual margin; wider margins are ignored for the scale of the axis
_ERROR_BAR_NOTE = "Error bars: {legend}."
_BIAS_NOTE = "Thin line upwards: estimated clipping bias, where it exceeds the margin."
_NO_BAR_NOTE = "No bar: margin unknown."
_ARROW_NOTE = "Arrow: the value or its margin of error extends beyond the axis."
_OMITTED_NOTE = "The {shown} largest of {all:,} groups, chosen by noisy values: they tend to be overstated."
_NULL_PANEL_WIDTH = 0.06  # the width of the panel for NULL beside a time line, as a share


@dataclass(frozen=True)
class _Layout:
    """Where the rows of an answer are drawn: for each series, positions on the axis and the rows drawn there.

    `ticks` labels the positions if they are categories. `nulls` are rows whose key is NULL if positions are times or
    numbers.
    """

    series: dict[str, list[tuple[Any, int]]]
    ticks: list[str] | None
    nulls: dict[str, list[int]]
    axis_label: str
    colour_label: str = ""
    omitted_note: str = ""

    @property
    def horizontal(self) -> bool:
        ticks = self.ticks or []
        return len(ticks) > _MAX_VERTICAL_BARS[0] or sum(map(len, ticks)) > _MAX_VERTICAL_BARS[1]


def answer_figure(answer: "Answer") -> "Figure":
    """Draw each noisy column over the keys, with its margins as error bars."""
    with style():
        keys = [name for name in answer.table.column_names if name not in answer.margins]
        numbers = {name: answer.table.column(name).to_pylist() for name in answer.margins}
        measures = [name for name, column in numbers.items() if any(map(is_number, column))]
        if not len(answer):
            return _empty_figure(_figure_title(list(numbers), keys))
        if not measures:
            raise ValueError("plot needs at least one noisy column of numbers; this answer has none")
        layout = _choose_layout(answer, keys, _to_floats(numbers[measures[0]]))
        figure, grid = _make_panels(layout, len(measures))
        notes: dict[str, None] = {}
        for axes, name in zip(grid, measures, strict=True):
            margins = np.array(answer.margins[name], np.float64)  # None is nan: no error bar
            biases = _visible_bias(answer, name, margins)
            notes |= dict.fromkeys(_draw_measure(axes, layout, _to_floats(numbers[name]), margins, biases))
            is_single_value = not keys and len(answer) == 1
            measure_label = (
                f"{truncate(name)}: {_value_with_margin(numbers[name][0], answer.margins[name][0])}"
                if is_single_value
                else truncate(name)
            )
            _label_axes(axes, layout, measure_label, as_title=is_single_value or len(measures) > 1)
        if len(layout.series) > 1:
            _add_colour_legend(figure, grid[0][0], layout.colour_label)
        legend = margin_legend(answer).removeprefix("± is the ")
        footnotes = [
            *(note.replace("{legend}", legend) for note in notes),
            *([layout.omitted_note] if layout.omitted_note else []),
        ]
        figure.supxlabel("\n".join(footnotes), x=0.01, ha="left", fontsize=7.5, color=GREY)
        set_title(figure, _figure_title(measures, keys))
        return figure


def _visible_bias(answer: "Answer", name: str, margins: np.ndarray) -> np.ndarray:
    """Return the estimated bias of each row, NaN where there is none or it is within the margin."""
    column = answer.bias.get(name, [None] * len(answer))
    biases = np.array([bias.estimate if bias else None for bias in column], np.float64)
    return np.where(biases > np.nan_to_num(margins), biases, np.nan)


def _value_with_margin(value: Any, margin: float | None) -> str:
    return " ± ".join(round_to_margin(value if isinstance(value, int) else float(value), margin))


def _figure_title(measures: Sequence[str], keys: Sequence[str]) -> str:
    measure_names, key_names = ([truncate(name) for name in names] for names in (measures, keys))
    return (
        f"{enumerate_words(measure_names)} by {enumerate_words(key_names)}" if keys else enumerate_words(measure_names)
    )


def _empty_figure(title: str) -> "Figure":
    figure, (axes,) = panels(height=1.2)
    axes.set_axis_off()
    axes.text(0.5, 0.5, "The answer has no rows.", ha="center", va="center", transform=axes.transAxes)
    set_title(figure, title)
    return figure


def _to_floats(column: Iterable[Any]) -> np.ndarray:
    numbers = np.array([float(value) if is_number(value) else np.nan for value in column])
    return np.where(np.isfinite(numbers), numbers, np.nan)


# Where the rows stand


def _choose_layout(answer: "Answer", keys: list[str], values: np.ndarray) -> _Layout:
    columns = [answer.table.column(key).to_pylist() for key in keys]
    if len(keys) == 2 and (layout := _two_key_layout(columns, keys, values)):
        return layout
    if len(keys) == 1 and _is_ordered(columns[0]):
        return _continuous_layout(columns[0], [None] * len(answer), truncate(keys[0]))
    names = [", ".join(row) for row in zip(*map(_key_labels, columns), strict=True)] or [""] * len(answer)
    return _category_layout(list(enumerate(names)), [None] * len(answer), truncate(", ".join(keys)), values)


def _two_key_layout(columns: list[list[Any]], keys: list[str], values: np.ndarray) -> _Layout | None:
    """Let one key have the axis and the other the colours; None if there are too many colours for that."""
    for axis, colour in ((0, 1), (1, 0)):
        names = _key_labels(columns[colour])
        # Truncated names of two values may be equal.
        distinguishable = len(set(columns[colour])) == len(set(names)) <= len(COLOURS)
        if distinguishable and len(set(zip(*columns, strict=True))) == len(values):
            axis_label, colour_label = truncate(keys[axis]), truncate(keys[colour])
            if _is_ordered(columns[axis]):
                return _continuous_layout(columns[axis], names, axis_label, colour_label)
            categories = list(zip(columns[axis], _key_labels(columns[axis]), strict=True))
            return _category_layout(categories, names, axis_label, values, colour_label)
    return None


def _is_ordered(column: list[Any]) -> bool:
    """Return whether keys are times or numbers, which can be joined by a line."""
    present = [value for value in column if value is not None]
    return bool(present) and (all(map(is_number, present)) or all(isinstance(value, date) for value in present))


def _continuous_layout(
    column: list[Any], series: Sequence[str | None], axis_label: str, colour_label: str = ""
) -> _Layout:
    points: dict[str, list[tuple[Any, int]]] = {name or "": [] for name in series}
    nulls: dict[str, list[int]] = {name: [] for name in points}
    for row, (value, name) in enumerate(zip(column, series, strict=True)):
        if value is None:
            nulls[name or ""].append(row)
        else:
            points[name or ""].append((float(value) if is_number(value) else value, row))
    ordered = {name: sorted(series_points, key=lambda point: point[0]) for name, series_points in points.items()}
    return _Layout(ordered, None, nulls, axis_label, colour_label)


def _category_layout(
    categories: list[tuple[Any, str]],
    series: Sequence[str | None],
    axis_label: str,
    values: np.ndarray,
    colour_label: str = "",
) -> _Layout:
    """Assign positions to the categories, in the answer's order; if there are many, to the largest ones, by size."""
    rows: dict[tuple[Any, str], list[int]] = {}
    for row, category in enumerate(categories):
        rows.setdefault(category, []).append(row)
    names = list(dict.fromkeys(name or "" for name in series))
    max_categories, shown_categories, omitted_note = max(5, _MAX_CATEGORIES * 2 // (len(names) + 1)), list(rows), ""
    if len(rows) > max_categories:
        sizes = np.nan_to_num(np.abs(values), nan=-1.0)
        shown_categories = sorted(rows, key=lambda category: -max(sizes[row] for row in rows[category]))[
            :max_categories
        ]
        omitted_note = _OMITTED_NOTE.format(shown=max_categories, all=len(rows))
    points: dict[str, list[tuple[Any, int]]] = {name: [] for name in names}
    width = 0.8 / len(names)
    for position, category in enumerate(shown_categories):
        for row in rows[category]:
            name = series[row] or ""
            points[name].append((position + width * (names.index(name) - (len(names) - 1) / 2), row))
    return _Layout(points, [text for _, text in shown_categories], {}, axis_label, colour_label, omitted_note)


def _key_labels(column: list[Any]) -> list[str]:
    """Write keys so that NULL is not the text 'NULL', and an empty text can be seen."""
    texts = key_texts(column)
    return [f"'{text}'" if value in ("NULL", "") else text for value, text in zip(column, texts, strict=True)]


# What is drawn


def _make_panels(layout: _Layout, count: int) -> tuple["Figure", list[list[Any]]]:
    """Return axes for each measure, side by side if bars are horizontal; and those for NULL beside a time line."""
    if any(layout.nulls.values()):
        ratios = {"width_ratios": (1, _NULL_PANEL_WIDTH), "sharey": "row"}
        figure, all_axes = panels(2, count, height=2.3 if count > 1 else 3.2, **ratios)
        return figure, [all_axes[first : first + 2] for first in range(0, len(all_axes), 2)]
    if not layout.horizontal:
        single = not layout.axis_label  # a number without keys needs no room for others
        figure, all_axes = panels(1, count, height=2.3 if count > 1 else 3.2, sharex=True)
        if single:
            figure.set_size_inches(WIDTH / 2, figure.get_figheight())
        return figure, [[axes] for axes in all_axes]
    panels_per_row = min(count, 3)
    panel_rows, bars_height = -(-count // panels_per_row), len(layout.ticks or ()) * (0.1 + 0.1 * len(layout.series))
    figure, all_axes = panels(panels_per_row, panel_rows, height=1.1 + bars_height, sharey=True)
    for axes in all_axes[count:]:
        axes.set_axis_off()
    return figure, [[axes] for axes in all_axes[:count]]


def _draw_measure(
    panel: list[Any], layout: _Layout, values: np.ndarray, margins: np.ndarray, biases: np.ndarray
) -> list[str]:
    """Draw one measure; return the notes to print below it."""
    axes, shown_rows = panel[0], [row for points in layout.series.values() for _, row in points]
    shown_rows += [row for rows in layout.nulls.values() for row in rows]
    low, high = _axis_limits(values[shown_rows], margins[shown_rows], biases[shown_rows])
    (axes.set_xlim if layout.horizontal else axes.set_ylim)(low, high)
    colours = COLOURS if len(layout.series) > 1 else (BLUE,)
    for number, (name, points) in enumerate(layout.series.items()):
        positions, rows = [position for position, _ in points], [row for _, row in points]
        line_style = {"color": colours[number], "label": name}
        if layout.ticks is None:
            _draw_line(axes, positions, values[rows], margins[rows], {**line_style, "marker": MARKERS[number]})
            nulls = layout.nulls[name]
            if nulls:
                offset = 0.1 * (number - (len(layout.series) - 1) / 2)
                error_bar_style = {"fmt": MARKERS[number], "ecolor": INK, "elinewidth": 0.8, **line_style}
                panel[1].errorbar([offset] * len(nulls), values[nulls], margins[nulls], **error_bar_style)
                _draw_bias(panel[1], [offset] * len(nulls), values[nulls], biases[nulls], horizontal=False)
                _mark_out_of_range(panel[1], [offset] * len(nulls), values[nulls], margins[nulls], horizontal=False)
        else:
            _draw_bars(axes, layout, positions, (values[rows], margins[rows]), line_style)
        _draw_bias(axes, positions, values[rows], biases[rows], horizontal=layout.horizontal)
        _mark_out_of_range(axes, positions, values[rows], margins[rows], horizontal=layout.horizontal)
    (axes.axvline if layout.horizontal else axes.axhline)(0, color=INK, lw=0.5)
    format_plain_numbers(axes.xaxis if layout.horizontal else axes.yaxis)
    out_of_range = (values + margins)[shown_rows] > high, (values - margins)[shown_rows] < low
    notes = [_ERROR_BAR_NOTE] if np.isfinite(margins[shown_rows]).any() else []
    notes += [_BIAS_NOTE] if np.isfinite(biases[shown_rows]).any() else []
    notes += [_NO_BAR_NOTE] if (np.isnan(margins[shown_rows]) & np.isfinite(values[shown_rows])).any() else []
    return notes + ([_ARROW_NOTE] if np.any(out_of_range) else [])


def _axis_limits(values: np.ndarray, margins: np.ndarray, biases: np.ndarray) -> tuple[float, float]:
    """Return the ends of the axis: all values, biases and margins, except margins that are much wider than usual."""
    sorted_margins = np.sort(margins[np.isfinite(margins)])
    median_margin = float(sorted_margins[(sorted_margins.size - 1) // 2]) if sorted_margins.size else 0.0
    has_wide_margin = (
        margins > _WIDE_MARGIN_FACTOR * median_margin
        if median_margin
        else margins > _WIDE_MARGIN_FACTOR * np.nanmax(np.abs(values))
    )
    typical_values = values[~has_wide_margin & np.isfinite(values)]
    low, high = min(0.0, *typical_values, 0.0), max(0.0, *typical_values, 0.0)
    headroom = max(high - low, 3 * median_margin)
    known_margins = np.nan_to_num(margins)
    ends = np.nanmin(values - known_margins), np.nanmax(values + known_margins)
    low, high = min(low, max(ends[0], low - headroom)), max(high, min(ends[1], high + headroom))
    high = max(high, float(np.nanmax(np.nan_to_num(values + biases, nan=high), initial=high)))
    span = (high - low) or 1.0
    return low - 0.05 * span * (low < 0), high + 0.05 * span


def _draw_line(
    axes: Any, positions: list[Any], values: np.ndarray, margins: np.ndarray, line_style: dict[str, Any]
) -> None:
    if len(positions) > _MAX_ERROR_BARS:
        axes.plot(positions, values, **{**line_style, "marker": ""})
        axes.fill_between(positions, values - margins, values + margins, color=line_style["color"], alpha=0.25, lw=0)
    else:
        axes.errorbar(positions, values, yerr=margins, ecolor=INK, elinewidth=0.8, **line_style)


def _draw_bars(
    axes: Any,
    layout: _Layout,
    positions: list[float],
    values_and_margins: tuple[np.ndarray, np.ndarray],
    bar_style: dict[str, Any],
) -> None:
    values, margins = values_and_margins
    size = 0.8 / len(layout.series)
    error_bar_style: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 0.8}
    if layout.horizontal:
        axes.barh(positions, values, size, **bar_style)
        axes.errorbar(values, positions, xerr=margins, **error_bar_style)
    else:
        axes.bar(positions, values, size, **bar_style)
        axes.errorbar(positions, values, yerr=margins, **error_bar_style)


def _draw_bias(axes: Any, positions: list[Any], values: np.ndarray, biases: np.ndarray, *, horizontal: bool) -> None:
    """Draw a thin line with a cap from each value up to value + bias; above a band of margins, one line for all."""
    if len(positions) > _MAX_ERROR_BARS:
        axes.plot(positions, values + biases, color=RED, lw=0.8, ls="--")
        return
    for position, value, bias in zip(positions, values, biases, strict=True):
        if np.isfinite(value) and np.isfinite(bias):
            along, across = [value, value + bias], [position, position]
            ends = (along, across) if horizontal else (across, along)
            axes.plot(*ends, color=RED, lw=0.8, zorder=3)
            axes.plot(ends[0][1:], ends[1][1:], "|" if horizontal else "_", color=RED, ms=6, mew=0.8, zorder=3)


def _mark_out_of_range(
    axes: Any, positions: list[Any], values: np.ndarray, margins: np.ndarray, *, horizontal: bool
) -> None:
    """Put an arrow where an error bar goes beyond the axis."""
    low, high = axes.get_xlim() if horizontal else axes.get_ylim()
    for limit, exceeds, markers in ((high, values + margins > high, ">^"), (low, values - margins < low, "<v")):
        arrow_positions = [position for position, is_outside in zip(positions, exceeds, strict=True) if is_outside]
        coordinates = (
            ([limit] * len(arrow_positions), arrow_positions)
            if horizontal
            else (arrow_positions, [limit] * len(arrow_positions))
        )
        if arrow_positions:
            axes.plot(*coordinates, markers[0 if horizontal else 1], color=RED, ms=5, clip_on=False, zorder=5)


def _label_axes(panel: list[Any], layout: _Layout, measure: str, *, as_title: bool) -> None:
    """Name the axes, and the categories on them."""
    axes = panel[0]
    key_axis, value_axis = (axes.yaxis, axes.xaxis) if layout.horizontal else (axes.xaxis, axes.yaxis)
    if as_title:
        axes.set_title(measure, parse_math=False)
    else:
        value_axis.set_label_text(measure, parse_math=False)
    subplot_spec = axes.get_subplotspec()
    if subplot_spec is not None and (subplot_spec.is_first_col() if layout.horizontal else subplot_spec.is_last_row()):
        key_axis.set_label_text(layout.axis_label, parse_math=False)
    if layout.ticks is not None:
        key_axis.set_ticks(range(len(layout.ticks)), layout.ticks, parse_math=False)
        axes.tick_params(axis="y" if layout.horizontal else "x", length=0)
        limits = (-0.6, len(layout.ticks) - 0.4)
        if layout.horizontal:
            axes.set_ylim(*reversed(limits))
        else:
            axes.set_xlim(*limits)
    else:
        _format_continuous_axis(axes, layout)
    for null_axes in panel[1:]:
        null_axes.set_xticks([0], ["NULL"])
        null_axes.set_xlim(-0.5, 0.5)
        null_axes.spines["left"].set_visible(False)
        null_axes.tick_params(axis="y", left=False, labelleft=False)
        null_axes.axhline(0, color=INK, lw=0.5)


def _add_colour_legend(figure: "Figure", axes: Any, title: str) -> None:
    handles, labels = axes.get_legend_handles_labels()
    short = [label if len(label) <= _MAX_LEGEND_LENGTH else f"{label[: _MAX_LEGEND_LENGTH - 1]}…" for label in labels]
    legend = figure.legend(handles, short, loc="outside right upper", title=title)
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)


def _format_continuous_axis(axes: Any, layout: _Layout) -> None:
    dates, ticker = (import_module(f"matplotlib.{name}") for name in ("dates", "ticker"))  # an extra
    positions = [position for points in layout.series.values() for position, _ in points]
    if isinstance(positions[0], date):
        locator = dates.AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=all(map(float.is_integer, positions)), nbins=10))
        axes.xaxis.set_major_formatter(ticker.ScalarFormatter(useOffset=False))
    if math.isclose(*axes.get_xlim()):
        axes.margins(x=0.5)
