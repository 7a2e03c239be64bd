"""What makes a picture hard to read: texts that are cut off or lie on each other, legends that cover something."""

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_SLACK = 1.0  # pixels


def flaws(figure: Figure, smallest: float = 6.5) -> list[str]:
    """Return what is wrong with a figure, as it is laid out when it is saved."""
    figure.draw_without_rendering()
    unseen = _unseen(figure)
    texts = [
        each
        for each in figure.findobj(Text)
        if each.get_visible() and each.get_text().strip() and id(each) not in unseen
    ]
    boxes = [(each.get_text(), each.get_window_extent()) for each in texts]
    found = [f"cut off: {text!r}" for text, box in boxes if not _is_within(box, figure.bbox)]
    found += [f"too small: {each.get_text()!r}" for each in texts if each.get_fontsize() < smallest]
    found += [f"one on the other: {one!r}, {two!r}" for (one, a), (two, b) in combinations(boxes, 2) if _overlap(a, b)]
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        if legend is not None:
            box = legend.get_window_extent()
            found += [f"legend outside: {box}"] if not _is_within(box, figure.bbox) else []
            found += ["legend on a panel" for axes in figure.axes if axes.axison and _overlap(box, axes.bbox)]
    return found


def _unseen(figure: Figure) -> set[int]:
    """Return which texts are kept but not drawn: those of ticks beyond the ends of an axis."""
    axes = [(each, axis) for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    kept = {tick for _, axis in axes for tick in (*axis.majorTicks, *axis.minorTicks)}
    drawn = {tick for each, axis in axes if each.axison for tick in axis._update_ticks()}
    return {id(text) for tick in kept - drawn for text in (tick.label1, tick.label2)}


def _is_within(box: Bbox, page: Bbox) -> bool:
    return (
        box.x0 >= page.x0 - _SLACK
        and box.y0 >= page.y0 - _SLACK
        and box.x1 <= page.x1 + _SLACK
        and box.y1 <= page.y1 + _SLACK
    )


def _overlap(a: Bbox, b: Bbox) -> bool:
    wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide > _SLACK and high > _SLACK
