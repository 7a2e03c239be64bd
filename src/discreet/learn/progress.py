"""How far a long fit has come, on a terminal's error stream; nobody else sees it."""

import sys
import time
from types import TracebackType
from typing import Any

_PATIENCE = 1.0  # seconds without a sign of life that nobody minds


class Bar:
    """A bar that is shown once a fit has taken a second: entered and left once for every draw.

    >>> bar = Bar("GaussianMixture", draws=2)
    >>> with bar:
    ...     pass
    >>> bar.done
    1
    """

    def __init__(self, name: str, draws: int) -> None:
        self._name, self._draws, self.done = name, draws, 0
        self._begun = time.monotonic()
        self._shown: Any = None
        self._task: Any = None

    def __enter__(self) -> None:
        if self._shown is None and time.monotonic() - self._begun > _PATIENCE and sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415 - only where a bar is shown
            from rich.progress import Progress  # noqa: PLC0415

            self._shown = Progress(console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(f"{self._name}: private sums", total=self._draws, completed=self.done)
            self._shown.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.done += 1
        if self._shown is None:
            return
        self._shown.update(self._task, completed=self.done)
        if self.done == self._draws or kind is not None:
            self._shown.stop()
            self._shown = None
