"""Draw the pictures of the attacks: `make pictures`. Everybody in them is made up.

attack-NAME.svg: what an attack reaches against the easy fix and the curator, or the attack's own picture.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from discreet import attacks

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
EPSILONS = ("1/10", "1/2", 1, 2, 4)


def _compared(name: str) -> Any:
    return attacks.compare(name, epsilons=EPSILONS, random_state=0).figure()


DRAWINGS: dict[str, Callable[[str], Any]] = dict.fromkeys(
    ("pseudonyms", "linkage", "homogeneity", "intersection"), _compared
)


def main(names: list[str]) -> None:
    """Draw the pictures of these attacks, or all."""
    mpl.rcParams["svg.hashsalt"] = "discreet"
    for name in names or DRAWINGS:
        path = FOLDER / f"attack-{name}.svg"
        DRAWINGS[name](name).savefig(path, metadata={"Date": None})
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
