"""Bar charts as inline SVG, without scripts or external fonts; every label is escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LINE_HEIGHT, _BAR_HEIGHT = 640, 22, 14
_LABEL_WIDTH, _NUMBER_WIDTH = 250, 70
_MAX_LABEL_LENGTH = 32  # in characters


@dataclass(frozen=True)
class ChartBar:
    """A label, a share from 0 to 1, and the text beside the bar."""

    label: str
    share: float
    text: str


def draw_bars(bars: Sequence[ChartBar], title: str) -> str:
    """Return a horizontal bar chart as SVG; the title is for screen readers.

    >>> draw_bars([ChartBar("age & sex", 0.5, "50 %")], "Unique rows").count("<rect")
    1
    """
    height = _LINE_HEIGHT * len(bars) + 4
    content = "".join(_draw_bar(bar, _LINE_HEIGHT * index + 4) for index, bar in enumerate(bars))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        f"<title>{escape(title)}</title>\n{content}</svg>\n"
    )


def _draw_bar(bar: ChartBar, top: int) -> str:
    share = min(max(bar.share, 0.0), 1.0)
    width = share * (_WIDTH - _LABEL_WIDTH - _NUMBER_WIDTH)
    middle = top + _BAR_HEIGHT - 3
    label = bar.label if len(bar.label) <= _MAX_LABEL_LENGTH else f"{bar.label[: _MAX_LABEL_LENGTH - 1]}…"
    return (
        f'<text x="{_LABEL_WIDTH - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width:.1f}" height="{_BAR_HEIGHT}" fill="#b5562c"/>'
        f'<text x="{_LABEL_WIDTH + width + 6:.1f}" y="{middle}">{escape(bar.text)}</text>\n'
    )
