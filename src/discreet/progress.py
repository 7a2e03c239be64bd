"""Progress of long attacks and audits, on standard error."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_BAR_DELAY_SECONDS = 1.0


def report_progress(items: Sequence[T], name: str) -> Iterator[T]:
    """Iterate over items; show a progress bar on a terminal, otherwise print at most ten lines.

    >>> list(report_progress([1, 2], "queries"))
    [1, 2]
    """
    if sys.stderr.isatty():
        yield from track(items, name)
        return
    for done, item in enumerate(items):
        yield item
        if 10 * (done + 1) // len(items) > 10 * done // len(items):
            sys.stderr.write(f"{name}: {done + 1} of {len(items)}\n")


def track(items: Sequence[T], name: str) -> Iterator[T]:
    """Iterate over items; on a terminal, show a progress bar after one second.

    >>> list(track([1, 2], "shadow models"))
    [1, 2]
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is shown
    from rich.progress import Progress  # noqa: PLC0415

    started_at, bar = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(name, total=len(items))
    try:
        for done, item in enumerate(items):
            if time.monotonic() - started_at > _BAR_DELAY_SECONDS and not bar.live.is_started:
                bar.start()
            bar.update(task, completed=done)
            yield item
    finally:
        bar.stop()
