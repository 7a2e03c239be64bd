"""Real data, in a folder of the user's."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.attacks.checking import file_in


def real_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table of a folder, or say what is missing where.

    >>> real_table(Path("nowhere"), "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: adult.parquet is not in nowhere: name the folder that has it
    """
    return pq.read_table(file_in(folder, name), columns=None if columns is None else list(columns))
