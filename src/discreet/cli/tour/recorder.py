"""What every chapter of the tour needs: output to the terminal and the page, the town, workers, repetitions."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.terminal import print_trimmed
from discreet.cli.tour.page import Cell, Section, inline_svg, styled_html
from discreet.html_page import html_cell, html_table
from discreet.plotting import save_figure
from discreet.progress import progress_bar
from discreet.worlds.town import Town

_MAX_WIDTH = 100  # columns; longer lines are hard to read
_INDENT = 3
T = TypeVar("T")


def good(text: str) -> Text:
    """Mark a result that is as promised; the text must be clear without its colour."""
    return Text(text, "green")


def warn(text: str) -> Text:
    """Mark a refusal, or a result that is not as promised."""
    return Text(text, "yellow")


def yes_or_no(holds: object) -> Text:
    """Return a styled yes or no."""
    return good("yes") if holds else warn("no")


class Recorder:
    """Prints what a chapter adds, and keeps it as HTML."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        self._picture_count = 0
        self._out = Console(highlight=False)
        if self._out.width > _MAX_WIDTH:
            self._out = Console(highlight=False, width=_MAX_WIDTH)

    def add_section(self, text: str) -> None:
        """Begin a section."""
        self.sections.append(Section(text))
        print_trimmed(self._out, Text(f"\n{len(self.sections)}. {text}", "bold cyan"))

    def add_paragraph(self, *pieces: Cell) -> None:
        """Add a paragraph."""
        self.sections[-1].html.append(f"<p>{''.join(map(styled_html, pieces))}</p>\n")
        print_trimmed(self._out, Text.assemble(*pieces), _INDENT)

    def add_code(self, text: str) -> None:
        """Add preformatted text: a query in SQL, or a printed answer."""
        html = self.sections[-1].html
        if html and html[-1].startswith("<pre"):
            print_trimmed(self._out, Text())
        html.append(f'<pre class="{"sql" if text.startswith("SELECT") else "output"}">{escape(text)}</pre>\n')
        free_columns = self._out.width - max(map(len, text.splitlines()))
        print_trimmed(self._out, Text(text), _INDENT if free_columns < 0 else min(_INDENT, free_columns))

    def add_table(self, headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Add a table; all columns but the first are right-aligned."""
        table, cells = Table(box=box.SIMPLE, pad_edge=False), []
        for index, header in enumerate(headers):
            table.add_column(header, justify="right" if index else "left", vertical="bottom")
        for row in rows:
            cells.append([html_cell(styled_html(cell)) for cell in row])
            table.add_row(*(Text.assemble(cell) for cell in row))
        self.sections[-1].html.append(f'<div class="wide">{html_table(headers, cells)}</div>\n')
        print_trimmed(self._out, table, _INDENT)

    def draw_picture(self, draw: Callable[[], Any], name: str, caption: str) -> None:
        """Draw a figure, save it under this name and add it; without matplotlib, add a note instead."""
        try:
            figure = draw()
        except ImportError:
            self.add_paragraph("No picture: drawing needs matplotlib (pip install 'discreet[pictures]').")
            return
        path = save_figure(figure, self.folder / name)
        self._picture_count += 1
        svg = inline_svg(path.read_text(encoding="utf-8"), f"i{self._picture_count}")
        self.sections[-1].html.append(f"<figure>\n{svg}\n<figcaption>{escape(caption)}</figcaption>\n</figure>\n")
        print_trimmed(self._out, Text.assemble(f"{caption} ", (str(path), "dim")), _INDENT)

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
