"""Performance settings of an engine: nothing here affects privacy."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """How much of the machine the engine may use; nothing here affects privacy.

    `memory` is a share or a size ("4GB"); what does not fit, and not more than `disk`, is spilled to a private folder
    inside `folder` (None: the system's place for temporary files), which is removed at the end (engines/spill.py).

    >>> Tuning(memory="4GB", threads=2, seconds=60).disk
    '20GB'
    """

    memory: str = "50%"
    threads: int | None = None
    seconds: float = 600
    folder: str | None = None
    disk: str = "20GB"  # a question that fills the disk would stop the ledger too
    remember: int = 1 << 28  # bytes of exact totals that are kept for other questions about the same rows and groups

    def __post_init__(self) -> None:
        if not 0.001 <= self.seconds <= 10**7:
            raise ValueError(f"seconds must lie between 0.001 and 10^7, not {self.seconds!r}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {self.threads!r}")
        if self.remember < 0:
            raise ValueError(f"remember must not be below 0, not {self.remember!r}")
