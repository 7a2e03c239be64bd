"""Real data, in a folder of the user's."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def real_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table of a folder, or say what is missing where.

    >>> real_table(Path("nowhere"), "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no adult.parquet in nowhere. Name the folder that has it.
    """
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(f"there is no {name} in {folder}. Name the folder that has it.")
    return pq.read_table(path, columns=None if columns is None else list(columns))
