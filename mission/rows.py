"""The list of rows, and how a row joins it."""

from collections.abc import Callable
from dataclasses import dataclass


class NeedsDataError(Exception):
    """A row's data set is not on this machine."""


@dataclass(frozen=True)
class Row:
    id: str
    what: str
    run: Callable[[], str]


ROWS: list[Row] = []

# The order of the mission, with what is still to be built.
ORDER = (
    "A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 B1 B2 B3 B4 B5 B6 B7 B8 "
    "C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 D1 D2 D3 D4 D5 D6 D7 E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11"
).split()


def row(id_: str, what: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    def join(run: Callable[[], str]) -> Callable[[], str]:
        ROWS.append(Row(id_, what, run))
        return run

    return join
