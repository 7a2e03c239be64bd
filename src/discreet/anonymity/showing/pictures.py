"""Bars as inline SVG: no script, no font, nothing fetched, and every label escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LINE, _BAR = 640, 22, 14
_LABELS, _NUMBERS = 250, 70  # what labels and numbers may take of the width
_LONGEST = 32  # characters of a label that fit


@dataclass(frozen=True)
class Bar:
    """A label, a share from 0 to 1, and the share as it is written beside the bar."""

    label: str
    share: float
    number: str


def bars(listed: Sequence[Bar], title: str) -> str:
    """Draw one bar below the other; the title is for those who hear the page.

    >>> bars([Bar("age & sex", 0.5, "50 %")], "Unique rows").count("<rect")
    1
    """
    height = _LINE * len(listed) + 4
    inside = "".join(_drawn(bar, _LINE * place + 4) for place, bar in enumerate(listed))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        f"<title>{escape(title)}</title>\n{inside}</svg>\n"
    )


def _drawn(bar: Bar, top: int) -> str:
    share = min(max(bar.share, 0.0), 1.0)
    width = share * (_WIDTH - _LABELS - _NUMBERS)
    middle = top + _BAR - 3
    label = bar.label if len(bar.label) <= _LONGEST else f"{bar.label[: _LONGEST - 1]}…"
    return (
        f'<text x="{_LABELS - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{_LABELS}" y="{top}" width="{width:.1f}" height="{_BAR}" fill="#b5562c"/>'
        f'<text x="{_LABELS + width + 6:.1f}" y="{middle}">{escape(bar.number)}</text>\n'
    )
