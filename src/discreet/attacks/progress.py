"""How far a long attack has come, on a terminal's error stream."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_PATIENCE = 1.0  # seconds without a sign of life that nobody minds


def track(items: Sequence[T], name: str) -> Iterator[T]:
    """Go through items; on a terminal, show a bar once that has taken a second.

    >>> list(track([1, 2], "shadow models"))
    [1, 2]
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is shown
    from rich.progress import Progress  # noqa: PLC0415

    begun, shown = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task = shown.add_task(name, total=len(items))
    try:
        for done, item in enumerate(items):
            if time.monotonic() - begun > _PATIENCE and not shown.live.is_started:
                shown.start()
            shown.update(task, completed=done)
            yield item
    finally:
        shown.stop()
