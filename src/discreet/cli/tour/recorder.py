"""The tour's output: printed to the terminal at once, and kept for the page."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import track
from rich.table import Table
from rich.text import Text

_WIDEST = 100  # columns; longer lines are hard to read
_INDENT = 3
Each = TypeVar("Each")


class Tone(StrEnum):
    """How something is meant; colour only repeats what the words say."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    QUIET = "quiet"


_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.WARN: "yellow", Tone.QUIET: "dim"}


@dataclass(frozen=True)
class Words:
    """A piece of text with its tone."""

    text: str
    tone: Tone = Tone.PLAIN

    def __str__(self) -> str:
        return self.text


Cell = str | Words


def good(text: str) -> Words:
    """Mark what is as promised."""
    return Words(text, Tone.GOOD)


def warn(text: str) -> Words:
    """Mark what is not, or is refused."""
    return Words(text, Tone.WARN)


def quiet(text: str) -> Words:
    """Mark what may be skipped."""
    return Words(text, Tone.QUIET)


def yes_or_no(holds: object) -> Words:
    """Say whether something holds."""
    return good("yes") if holds else warn("no")


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    pieces: tuple[Cell, ...]


@dataclass(frozen=True)
class Listing:
    """Text that stands as it is: a question in SQL, or an answer as it prints."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table; every column but the first is aligned to the right."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A picture that was saved, and what it shows."""

    path: Path
    caption: str


Block = Paragraph | Listing | Grid | Picture


@dataclass
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: list[Block] = field(default_factory=list)


class Recorder:
    """Prints what it is given, and keeps it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        self._out = Console(highlight=False)
        if self._out.width > _WIDEST:
            self._out = Console(highlight=False, width=_WIDEST)
        self._err = Console(stderr=True)

    def title(self, text: str) -> None:
        """Begin a section."""
        self.sections.append(Section(text))
        self._print(Text(f"\n{len(self.sections)}. {text}", "bold cyan"))

    def say(self, *pieces: Cell) -> None:
        """Say a few sentences."""
        self._keep(Paragraph(pieces))
        self._print(Text.assemble(*map(_text, pieces)), _INDENT)

    def show(self, text: str) -> None:
        """Show text as it is."""
        if self.sections[-1].blocks and isinstance(self.sections[-1].blocks[-1], Listing):
            self._print(Text())
        self._keep(Listing(text))
        room = self._out.width - max(map(len, text.splitlines()))
        self._print(Text(text), _INDENT if room < 0 else min(_INDENT, room))

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Show a table."""
        grid = Grid(tuple(headers), tuple(tuple(row) for row in rows))
        self._keep(grid)
        table = Table(box=box.SIMPLE, pad_edge=False)
        for place, header in enumerate(grid.headers):
            table.add_column(header, justify="right" if place else "left", vertical="bottom")
        for row in grid.rows:
            table.add_row(*map(_text, row))
        self._print(table, _INDENT)

    def picture(self, path: Path, caption: str) -> None:
        """Show a picture that was saved: here its path, on the page all of it."""
        self._keep(Picture(path, caption))
        self._print(Text.assemble(f"{caption} ", (str(path), "dim")), _INDENT)

    def watch(self, each: Iterable[Each], label: str, total: int) -> Iterator[Each]:
        """Iterate with progress on stderr: a bar on a terminal, otherwise a plain line."""
        if not sys.stderr.isatty():
            sys.stderr.write(f"discreet: {label}\n")
            return iter(each)
        return iter(track(each, label, total, console=self._err, transient=True))

    def wait(self, jobs: Sequence[Future[Each]], label: str) -> list[Each]:
        """Wait for other processes, and return their results in the order of the jobs."""
        for done in self.watch(as_completed(jobs), label, len(jobs)):
            done.result()
        return [job.result() for job in jobs]

    def last(self, text: str) -> None:
        """Print a line that is not for the page."""
        self._out.print(text, markup=False, soft_wrap=True)

    def _keep(self, block: Block) -> None:
        self.sections[-1].blocks.append(block)

    def _print(self, shown: Text | Table, indent: int = 0) -> None:
        with self._out.capture() as printed:
            self._out.print(Padding(shown, (0, 0, 0, indent), expand=False))
        for line in printed.get().splitlines():
            self._out.file.write(line.rstrip() + "\n")  # what pads a line to its width is not worth copying
        self._out.file.flush()


def _text(piece: Cell) -> Text:
    return Text(piece.text, _STYLES[piece.tone]) if isinstance(piece, Words) else Text(piece)
