"""Real data sets, in the folder named by `DISCREET_DATA`."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet import attacks
from mission.rows import NeedsDataError

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))


def table(name: str, columns: list[str] | None = None) -> pa.Table:
    """Return a real data set."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        raise NeedsDataError(f"{name} in DISCREET_DATA")
    return pq.read_table(path, columns=columns)


def arrays(name: str, *wanted: str) -> list[np.ndarray]:
    """Return columns of a real data set."""
    read = table(name, list(wanted))
    return [read[column].to_numpy() for column in wanted]


def real(attack: str) -> Any:
    """Return the real data of an attack."""
    found = attacks.attack_named(attack)
    if missing := [name for name in found.data.files if not (DATA / name).exists()]:
        raise NeedsDataError(f"{missing[0].removesuffix('.parquet')} in DISCREET_DATA")
    return found.data.read(DATA)
