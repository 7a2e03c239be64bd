"""The style shared by all figures. matplotlib is optional and loaded only when something is drawn."""

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLUE, SKY, GREEN, ORANGE, RED, PURPLE = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7"
INK, GREY = "#333333", "#8a8f98"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
MARKERS = ("o", "s", "^", "D", "v", "P")
WIDTH = 7.2  # inches: 700 pixels, the width at which readers see it
_TITLE_LINE_LENGTH = 94  # characters of a title on one line
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "discreet",  # with no date in it, the same picture is the same file
    "svg.fonttype": "path",  # looks the same wherever it is shown
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.titlesize": 10,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "errorbar.capsize": 2,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


def style() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in our style; outside of it, its settings stay those of the user."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - half a second, and an extra
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'discreet[pictures]'") from None
    return mpl.rc_context(_STYLE)


def panels(columns: int = 1, rows: int = 1, *, height: float = 3.4, **layout: Any) -> tuple["Figure", list[Any]]:
    """Return a new figure of our width with so many axes, row by row; `height` inches for each row."""
    with style():
        from matplotlib.figure import Figure  # noqa: PLC0415

        figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
        axes = np.ravel(figure.subplots(rows, columns, **layout)).tolist()
    for ax in axes:
        ax.tick_params(which="both", labelsize=_STYLE["xtick.labelsize"], colors=INK)  # ticks are made later
    return figure, axes


def set_title(figure: "Figure", text: str) -> None:
    """Put a title above a figure, on as many lines as it needs. Names are data: nothing in it is a formula."""
    with style():
        figure.suptitle(textwrap.fill(text, _TITLE_LINE_LENGTH), x=0.01, ha="left", parse_math=False)


def add_legend(figure: "Figure", axes: Sequence[Any], columns: int = 4) -> None:
    """Put one legend for these axes below the figure, where it covers nothing; the same label occurs once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    with style():
        if entries:
            figure.legend(
                entries.values(), entries.keys(), loc="outside lower center", ncols=min(columns, len(entries))
            )


def format_plain_numbers(*axes: Any) -> None:
    """Write the numbers of these axes as 0.01 and 10,000 rather than as powers of ten, or none on minor ticks."""
    from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: PLC0415 - an extra

    def plain_number(x: float, _: int) -> str:
        return f"{x:,.10g}" if abs(x) >= 1e-4 or x == 0 else f"{x:.0e}".replace("e-0", "e-")

    for axis in axes:
        axis.set_major_formatter(FuncFormatter(plain_number))
        axis.set_minor_formatter(NullFormatter())


def set_epsilon_ticks(axes: Any, epsilons: Sequence[float], label: str = "epsilon") -> None:
    """Make the horizontal axis one of these epsilons, on a logarithmic scale."""
    axes.set(xscale="log", xlabel=label)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set_xticks([], minor=True)


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """Write a figure; the same figure gives the same file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
    return path
