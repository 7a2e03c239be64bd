"""What every chapter of the tour needs: output to the terminal and the page, the town, workers, repetitions."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.terminal import print_trimmed
from discreet.plotting import save_figure
from discreet.progress import progress_bar
from discreet.worlds.town import Town

_MAX_WIDTH = 100  # columns; longer lines are hard to read
_INDENT = 3
T = TypeVar("T")


class Tone(StrEnum):
    """Tone of a text, shown as a colour; the text must be clear without it."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    QUIET = "quiet"


_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.WARN: "yellow", Tone.QUIET: "dim"}


@dataclass(frozen=True)
class StyledText:
    """A piece of text with its tone."""

    text: str
    tone: Tone = Tone.PLAIN

    def __str__(self) -> str:
        return self.text


Cell = str | StyledText


def good(text: str) -> StyledText:
    """Mark a result that is as promised."""
    return StyledText(text, Tone.GOOD)


def warn(text: str) -> StyledText:
    """Mark a refusal, or a result that is not as promised."""
    return StyledText(text, Tone.WARN)


def quiet(text: str) -> StyledText:
    """Mark text that may be skipped."""
    return StyledText(text, Tone.QUIET)


def yes_or_no(holds: object) -> StyledText:
    """Return a styled yes or no."""
    return good("yes") if holds else warn("no")


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    pieces: tuple[Cell, ...]


@dataclass(frozen=True)
class CodeBlock:
    """Preformatted text: a query in SQL, or a printed answer."""

    text: str


@dataclass(frozen=True)
class TableBlock:
    """A table; all columns but the first are right-aligned."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A saved picture with its caption."""

    path: Path
    caption: str


Block = Paragraph | CodeBlock | TableBlock | Picture


@dataclass
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: list[Block] = field(default_factory=list)


class Recorder:
    """Prints blocks and keeps them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        self._out = Console(highlight=False)
        if self._out.width > _MAX_WIDTH:
            self._out = Console(highlight=False, width=_MAX_WIDTH)

    def add_section(self, text: str) -> None:
        """Begin a section."""
        self.sections.append(Section(text))
        print_trimmed(self._out, Text(f"\n{len(self.sections)}. {text}", "bold cyan"))

    def add_paragraph(self, *pieces: Cell) -> None:
        """Add a paragraph."""
        self._record(Paragraph(pieces))
        print_trimmed(self._out, Text.assemble(*map(_rich_text, pieces)), _INDENT)

    def add_code(self, text: str) -> None:
        """Add preformatted text."""
        if self.sections[-1].blocks and isinstance(self.sections[-1].blocks[-1], CodeBlock):
            print_trimmed(self._out, Text())
        self._record(CodeBlock(text))
        free_columns = self._out.width - max(map(len, text.splitlines()))
        print_trimmed(self._out, Text(text), _INDENT if free_columns < 0 else min(_INDENT, free_columns))

    def add_table(self, headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Add a table."""
        grid = TableBlock(tuple(headers), tuple(tuple(row) for row in rows))
        self._record(grid)
        table = Table(box=box.SIMPLE, pad_edge=False)
        for index, header in enumerate(grid.headers):
            table.add_column(header, justify="right" if index else "left", vertical="bottom")
        for row in grid.rows:
            table.add_row(*map(_rich_text, row))
        print_trimmed(self._out, table, _INDENT)

    def add_picture(self, path: Path, caption: str) -> None:
        """Add a saved picture; the terminal shows its path."""
        self._record(Picture(path, caption))
        print_trimmed(self._out, Text.assemble(f"{caption} ", (str(path), "dim")), _INDENT)

    def draw_picture(self, draw: Callable[[], Any], name: str, caption: str) -> None:
        """Draw a figure, save it under this name and add it; without matplotlib, add a note instead."""
        try:
            figure = draw()
        except ImportError:
            self.add_paragraph("No picture: drawing needs matplotlib (pip install 'discreet[pictures]').")
        else:
            self.add_picture(save_figure(figure, self.folder / name), caption)

    def with_progress(self, items: Iterable[T], label: str, total: int) -> Iterator[T]:
        """Iterate with progress on stderr: a bar on a terminal, otherwise a plain line."""
        if not sys.stderr.isatty():
            sys.stderr.write(f"discreet: {label}\n")
        with progress_bar(label) as show:
            for done, item in enumerate(items, 1):
                show(done, total)
                yield item

    def wait(self, jobs: Sequence[Future[T]], label: str) -> list[T]:
        """Wait for jobs in worker processes, and return their results in the order of the jobs."""
        for done in self.with_progress(as_completed(jobs), label, len(jobs)):
            done.result()
        return [job.result() for job in jobs]

    def print_line(self, text: str) -> None:
        """Print a line that does not appear on the page."""
        self._out.print(text, markup=False, soft_wrap=True)

    def _record(self, block: Block) -> None:
        self.sections[-1].blocks.append(block)


def _rich_text(piece: Cell) -> Text:
    return Text(piece.text, _STYLES[piece.tone]) if isinstance(piece, StyledText) else Text(piece)


_WORKERS = 2


@dataclass(frozen=True)
class Repetitions:
    """Numbers of copies of the town, of plays of the differencing game, and of repeated queries."""

    copies: int = 100
    plays: int = 600
    repeats: int = 200


FULL_TOUR = Repetitions()


@dataclass(frozen=True)
class TourContext:
    """Everything that a chapter needs."""

    recorder: Recorder
    town: Town
    workers: Executor
    repetitions: Repetitions


@contextmanager
def worker_pool() -> Iterator[Executor]:
    """Yield a pool of worker processes; jobs that have not started are cancelled at the end."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads than cores slow the workers down
    # Forking a process in which DuckDB runs threads may hang the child; spawning does not.
    pool = ProcessPoolExecutor(_WORKERS, get_context("spawn"), _initialise_worker)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _initialise_worker() -> None:
    """Let Ctrl-C end a worker silently, and hide its progress: the main process reports both."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as the process runs
