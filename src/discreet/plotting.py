"""The style shared by all figures; matplotlib is optional and imported only when a figure is drawn."""

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which is distinguishable with any kind of colour vision.
BLUE, SKY, GREEN, ORANGE, RED, PURPLE = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7"
INK, GREY = "#333333", "#8a8f98"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
MARKERS = ("o", "s", "^", "D", "v", "P")
WIDTH = 7.2  # inches, shown as about 700 pixels
_TITLE_LINE_LENGTH = 94  # characters of a title on one line
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "discreet",  # makes SVG files reproducible
    "svg.fonttype": "path",  # independent of installed fonts
    "font.family": "DejaVu Sans",  # included in matplotlib
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
    """Return a context with Discreet's matplotlib style; the user's settings apply outside of it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra, and takes half a second
    except ImportError:
        raise ImportError("pictures need matplotlib. Run: pip install 'discreet[pictures]'") from None
    return mpl.rc_context(_STYLE)


def panels(columns: int = 1, rows: int = 1, *, height: float = 3.4, **layout: Any) -> tuple["Figure", list[Any]]:
    """Return a new figure of the standard width and its axes, row by row; each row is `height` inches high."""
    with style():
        from matplotlib.figure import Figure  # noqa: PLC0415

        figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
        axes = np.ravel(figure.subplots(rows, columns, **layout)).tolist()
    for ax in axes:
        ax.tick_params(which="both", labelsize=_STYLE["xtick.labelsize"], colors=INK)  # ticks are created later
    return figure, axes


def set_title(figure: "Figure", text: str) -> None:
    """Set the wrapped title of a figure; math text is off, because names in it are arbitrary."""
    with style():
        figure.suptitle(textwrap.fill(text, _TITLE_LINE_LENGTH), x=0.01, ha="left", parse_math=False)


def add_legend(figure: "Figure", axes: Sequence[Any], columns: int = 4) -> None:
    """Add one legend for these axes below the figure, with each label once."""
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
    """Label the major ticks of these axes with numbers such as 0.01 and 10,000 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: PLC0415 - an extra

    def plain_number(x: float, _: int) -> str:
        return f"{x:,.10g}" if abs(x) >= 1e-4 or x == 0 else f"{x:.0e}".replace("e-0", "e-")

    for axis in axes:
        axis.set_major_formatter(FuncFormatter(plain_number))
        axis.set_minor_formatter(NullFormatter())


def set_epsilon_ticks(axes: Any, epsilons: Sequence[float], label: str = "epsilon") -> None:
    """Set a logarithmic x axis with ticks at these epsilons."""
    axes.set(xscale="log", xlabel=label)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set_xticks([], minor=True)


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """Save a figure reproducibly: the same figure gives the same file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
    return path
