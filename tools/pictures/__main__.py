"""Draw all pictures of the documentation (`make pictures`), or some: `python -m tools.pictures checkins bounds`.

All noise is seeded here, so that the same code draws the same files. Some pictures need data in DISCREET_DATA; `page`,
the picture of the interactive page, needs Chromium, and has real noise, so it is only taken if it is named.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from discreet.plotting import save_figure
from tools.pictures import attacks, bounds, learning, local, publishing, tour

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
PAGE = "page"
PICTURES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    **bounds.PICTURES,
    **tour.PICTURES,
    **local.PICTURES,
    **learning.PICTURES,
    **attacks.PICTURES,
    **publishing.PICTURES,
}


def main(names: Sequence[str], folder: Path = FOLDER) -> int:
    """Measure and draw the named pictures, or all."""
    sys.path.append(str(ROOT / "tests"))
    from seeded_noise import seeded  # noqa: PLC0415 - a module of the tests

    for unknown in set(names) - {*PICTURES, PAGE}:
        print(f"no picture {unknown!r}; available: {', '.join([*PICTURES, PAGE])}", file=sys.stderr)
        return 2
    for name in names or PICTURES:
        if name == PAGE:
            _take_picture_of_page(folder)
            continue
        measure, draw = PICTURES[name]
        try:
            with seeded():
                figure = draw(measure())
        except FileNotFoundError as error:
            print(f"skipped {name}.svg: it needs {error.filename or error}; set DISCREET_DATA")
            continue
        print(f"drew {save_figure(figure, folder / f'{name}.svg').name}", flush=True)
    return 0


def _take_picture_of_page(folder: Path) -> None:
    from tools.pictures.page import draw_page  # noqa: PLC0415 - it needs a browser

    try:
        print(f"took {draw_page(folder).name}", flush=True)
    except FileNotFoundError as error:
        print(f"skipped {PAGE}: it needs {error.filename}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
