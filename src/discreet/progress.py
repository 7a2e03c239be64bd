"""The progress bar of everything that takes long, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_BAR_DELAY_SECONDS = 1.0


@contextmanager
def progress_bar(name: str, *, delay: float = 0.0) -> Iterator[Callable[..., None]]:
    """Yield a function of what is done, of the total and of a new name, which moves a bar; on a terminal only.

    >>> with progress_bar("queries") as show:
    ...     show(1, 2)
    """
    if not sys.stderr.isatty():
        yield lambda *_, **__: None
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is shown
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    started_at, bar = time.monotonic(), Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(name, total=None)

    def show(done: int = 0, total: int | None = None, *, name: str | None = None) -> None:
        bar.update(task, completed=done, total=total, description=name)
        if time.monotonic() - started_at >= delay:
            bar.start()

    try:
        show()
        yield show
    finally:
        bar.stop()


def report_progress(items: Sequence[T], name: str) -> Iterator[T]:
    """Iterate over items; show a progress bar on a terminal, otherwise print at most ten lines.

    >>> list(report_progress([1, 2], "queries"))
    [1, 2]
    """
    is_plain = not sys.stderr.isatty()
    for done, item in enumerate(track(items, name), 1):
        yield item
        if is_plain and 10 * done // len(items) > 10 * (done - 1) // len(items):
            sys.stderr.write(f"{name}: {done} of {len(items)}\n")


def track(items: Sequence[T], name: str) -> Iterator[T]:
    """Iterate over items; on a terminal, show a progress bar after one second.

    >>> list(track([1, 2], "shadow models"))
    [1, 2]
    """
    with progress_bar(name, delay=_BAR_DELAY_SECONDS) as show:
        for done, item in enumerate(items):
            show(done, len(items))
            yield item
