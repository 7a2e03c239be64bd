"""The report on a table's anonymity, on the terminal."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discreet.anonymity.showing.parts import Grid, Part
from discreet.anonymity.showing.pictures import Bar
from discreet.anonymity.showing.report import Report, clean

_INDENT = "   "
_WIDEST = 40  # characters of a label
_BAR = 24  # characters of a full bar


def show(made: Report, console: Console) -> None:
    """Print all of it but the line on what is not protected, which is for the end of the command."""
    console.print(Text(clean(made.title), "bold"))
    for part in made.parts:
        _show(part, console)
    console.file.flush()  # where nobody set a locale, what is printed next goes another way out


def _show(part: Part, console: Console) -> None:
    console.print()
    console.print(Text(clean(part.title), "bold cyan"))
    for sentence in part.sentences:
        console.print(Padding(Text(clean(sentence)), (0, 0, 0, len(_INDENT)), expand=False))
    if part.grid is not None:
        _lines(console, _table(part.grid))
    if part.bars:
        console.print(Text(f"{_INDENT}{part.caption}:", "dim"))
        _lines(console, _bars(part.bars))


def _lines(console: Console, table: Table) -> None:
    """Print a table without the blanks that pad its lines."""
    with console.capture() as printed:
        console.print(table)
    for line in filter(str.strip, printed.get().splitlines()):
        console.file.write(f"{_INDENT}{line.rstrip()}\n")


def _table(grid: Grid) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(grid.headers))
    for place, header in enumerate(grid.headers):
        shown.add_column(Text(header), justify="right" if 0 < place < len(grid.headers) - 1 else "left")
    for row in grid.rows:
        shown.add_row(*(Text(clean(cell)) for cell in row))
    return shown


def _bars(listed: tuple[Bar, ...]) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    shown.add_column(max_width=_WIDEST, no_wrap=True, overflow="ellipsis")
    shown.add_column(justify="right")
    shown.add_column()
    for bar in listed:
        shown.add_row(Text(clean(bar.label)), Text(bar.number), Text("█" * round(_BAR * min(bar.share, 1)), "yellow"))
    return shown
