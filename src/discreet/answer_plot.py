"""An answer as a picture. matplotlib is loaded only when one is drawn."""

from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from discreet.answer_text import clipped, is_number, key_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.answer import Answer

_INK, _FILL = "#333333", "#3b6ea8"
_BARS = 200  # more cannot be told apart
_NAMES = 40  # beside each other; of more bars only some are named


def answer_figure(answer: "Answer") -> "Figure":
    """Draw each noisy column over the keys, with its margins as error bars."""
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - half a second, and an extra
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from None
    names = [name for name in answer.margins if any(map(is_number, answer.table.column(name).to_pylist()))]
    if not names:
        raise ValueError("plot needs at least one noisy column of numbers; this answer has none")
    keys = [name for name in answer.table.column_names if name not in answer.margins]
    places = _ordered(answer, keys)
    figure, grid = plt.subplots(
        len(names), 1, sharex=True, squeeze=False, layout="constrained", figsize=(8, 1.5 + 2.2 * len(names))
    )
    plt.close(figure)  # else a notebook shows it twice
    for axes, name in zip(grid[:, 0], names, strict=True):
        values = np.array([np.nan if v is None else float(v) for v in answer.table.column(name).to_pylist()])
        margins = np.array(answer.margins[name], np.float64)  # None is nan: no error bar
        if places is None:
            _draw_bars(axes, values[:_BARS], margins[:_BARS])
        else:
            _draw_line(axes, places, values, margins)
        axes.axhline(0, color=_INK, lw=0.5)
        axes.set_title(clipped(name), loc="left", fontsize="medium", parse_math=False)
    if places is None:
        _name_bars(grid[-1, 0], answer, keys)
        if len(answer) > _BARS:
            grid[0, 0].set_title(f"the first {_BARS} of {len(answer):,} rows", loc="right", fontsize="medium")
    grid[-1, 0].set_xlabel(clipped(", ".join(keys)), parse_math=False)
    return figure


def _ordered(answer: "Answer", keys: list[str]) -> np.ndarray | None:
    """Return the keys if they are one column of times or numbers, which a line may join."""
    if len(keys) != 1 or not len(answer):
        return None
    places = answer.table.column(keys[0]).to_pylist()
    if all(is_number(place) for place in places):
        return np.array(places, np.float64)
    return np.array(places) if all(isinstance(place, date) for place in places) else None


def _draw_line(axes: "Axes", places: np.ndarray, values: np.ndarray, margins: np.ndarray) -> None:
    order = np.argsort(places, kind="stable")
    places, values, margins = places[order], values[order], margins[order]
    axes.errorbar(places, values, yerr=margins, color=_FILL, ecolor=_INK, marker=".", capsize=2)
    axes.tick_params(axis="x", rotation=30 if places.dtype == object else 0)


def _draw_bars(axes: "Axes", values: np.ndarray, margins: np.ndarray) -> None:
    places = np.arange(len(values))
    axes.bar(places, values, color=_FILL)
    axes.errorbar(places, values, yerr=margins, fmt="none", ecolor=_INK, capsize=2)


def _name_bars(axes: "Axes", answer: "Answer", keys: list[str]) -> None:
    columns = (key_texts(answer.table.column(key).slice(0, _BARS).to_pylist()) for key in keys)
    names = [", ".join(row) for row in zip(*columns, strict=True)]
    every = max(1, -(-len(names) // _NAMES))
    axes.set_xticks(
        range(0, len(names), every),
        names[::every],
        rotation=90 if len(names) > 5 else 0,
        fontsize="small",
        parse_math=False,
    )
