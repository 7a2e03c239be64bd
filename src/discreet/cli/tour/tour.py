"""The chapters in their order; a new one is a file with a function `tell`, and two lines here."""

import tempfile
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from discreet.cli.tour import anonymity, asking, attack, budget, kernel, learning, local
from discreet.cli.tour.page import write_page
from discreet.cli.tour.recorder import Recorder
from discreet.cli.tour.stage import FULL, Sizes, Stage, hands
from discreet.cli.tour.town import Town, build


class Chapter(StrEnum):
    """The chapters of the tour, in their order."""

    ALL = "all"
    ASK = "ask"
    ATTACK = "attack"
    BUDGET = "budget"
    KERNEL = "kernel"
    LEARN = "learn"
    ANONYMISE = "anonymise"
    LOCAL = "local"


CHAPTERS: dict[Chapter, Callable[[Stage], None]] = {
    Chapter.ASK: asking.tell,
    Chapter.ATTACK: attack.tell,
    Chapter.BUDGET: budget.tell,
    Chapter.KERNEL: kernel.tell,
    Chapter.LEARN: learning.tell,
    Chapter.ANONYMISE: anonymity.tell,
    Chapter.LOCAL: local.tell,
}


def take(chapter: Chapter, folder: Path, sizes: Sizes = FULL) -> Path:
    """Run a chapter, or all of them, and save page and pictures in the folder; the page's path is the last line."""
    began = time.perf_counter()
    recorder = Recorder(folder)
    with tempfile.TemporaryDirectory() as place, hands() as lent:
        build(Path(place))
        stage = Stage(recorder, Town(Path(place)), lent, sizes)
        for each, tell in CHAPTERS.items():
            if chapter in (Chapter.ALL, each):
                tell(stage)
    seconds = time.perf_counter() - began
    whole = chapter is Chapter.ALL
    path = write_page(folder / ("tour.html" if whole else f"tour-{chapter}.html"), recorder.sections, seconds)
    if whole:
        recorder.last("\nFor your own data (Parquet, CSV or DuckDB files), start with: discreet init DATA")
    recorder.last(f"\n{seconds:.1f} seconds. Saved as a page, which needs no network:")
    recorder.last(str(path))
    return path
