"""discreet demo: the chapters of the tour on simulated data, in their order."""

import tempfile
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.terminal import replace_unprintable, writing
from discreet.cli.tour import (
    chapter_anonymise,
    chapter_ask,
    chapter_attack,
    chapter_budget,
    chapter_kernel,
    chapter_learn,
    chapter_local,
    chapter_publish,
)
from discreet.cli.tour.page import write_tour
from discreet.cli.tour.recorder import FULL_TOUR, Recorder, Repetitions, TourContext, worker_pool
from discreet.worlds.town import Town, write_town
from discreet.worlds.two_worlds.page import static_page
from discreet.worlds.two_worlds.record import build_record

CHAPTERS: dict[str, Callable[[TourContext], None]] = {
    "ask": chapter_ask.show_chapter,
    "attack": chapter_attack.show_chapter,
    "budget": chapter_budget.show_chapter,
    "kernel": chapter_kernel.show_chapter,
    "learn": chapter_learn.show_chapter,
    "anonymise": chapter_anonymise.show_chapter,
    "local": chapter_local.show_chapter,
    "publish": chapter_publish.show_chapter,
}
TourChapter = StrEnum(
    "TourChapter", ["ALL", "ASK", "ATTACK", "BUDGET", "KERNEL", "LEARN", "ANONYMISE", "LOCAL", "PUBLISH"]
)


def run_tour(chapter: TourChapter, folder: Path, repetitions: Repetitions = FULL_TOUR) -> Path:
    """Run a chapter or all chapters, and save the page and its pictures; the last printed line is the page's path."""
    start = time.perf_counter()
    recorder = Recorder(folder)
    with tempfile.TemporaryDirectory() as town_folder, worker_pool() as workers:
        write_town(Path(town_folder))
        context = TourContext(recorder, Town(Path(town_folder)), workers, repetitions)
        for listed_chapter, show_chapter in CHAPTERS.items():
            if chapter in (TourChapter.ALL, listed_chapter):
                show_chapter(context)
    seconds = time.perf_counter() - start
    is_complete = chapter is TourChapter.ALL
    path = write_tour(folder / ("tour.html" if is_complete else f"tour-{chapter}.html"), recorder.sections, seconds)
    if is_complete:
        recorder.print_line("\nAn interactive page to send to somebody: discreet demo --page page.html")
        recorder.print_line("For your own data (Parquet, CSV or DuckDB files), start with: discreet init DATA")
    recorder.print_line(f"\n{seconds:.1f} seconds. Saved as a self-contained HTML page:")
    recorder.print_line(str(path))
    return path


def demo(
    chapter: Annotated[TourChapter, typer.Argument(help="The chapter to show.")] = TourChapter.ALL,
    out: Annotated[Path, typer.Option(help="Where to save the page and its pictures.")] = Path("tour"),
    page: Annotated[
        Path | None, typer.Option(help="Instead, write one interactive page: a question, its cost, and an attack.")
    ] = None,
) -> None:
    """Show a tour of about a minute on simulated data, and save it as an HTML page."""
    if page is not None:
        _write_interactive_page(page)
        return
    with writing("--out", out):
        out.mkdir(parents=True, exist_ok=True)
    replace_unprintable()
    run_tour(chapter, out)


def _write_interactive_page(path: Path) -> None:
    typer.echo("discreet: asking the curator at every epsilon of the page", err=True)
    text = static_page(build_record())
    with writing("--page", path):
        path.write_text(text, encoding="utf-8")
    typer.echo(str(path))
