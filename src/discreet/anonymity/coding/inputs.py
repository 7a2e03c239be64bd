"""What every function here is given first: a table, its quasi-identifying columns, and its sensitive ones."""

from dataclasses import dataclass
from typing import Any

from discreet.anonymity.coding.columns import Column, encode
from discreet.anonymity.coding.tables import Rows, names, read


@dataclass(frozen=True, eq=False)
class Inputs:
    """A table whose columns were checked and coded."""

    rows: Rows
    quasi: tuple[Column, ...]
    sensitive: tuple[Column, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are neither."""
        used = {column.name for column in (*self.quasi, *self.sensitive)}
        return tuple(name for name in self.rows.names if name not in used)


def inputs(table: Any, quasi: Any, sensitive: Any = None) -> Inputs:
    """Check a table and the names of its columns, and code these.

    >>> import pyarrow as pa
    >>> inputs(pa.table({"age": [41, 29], "sex": ["F", "M"]}), "age", ["sex", "age"])
    Traceback (most recent call last):
    ValueError: sensitive: 'age' is quasi-identifying too. A column can be one or the other.
    """
    rows = read(table)
    known = names(quasi, "quasi", rows)
    hidden = () if sensitive is None else names(sensitive, "sensitive", rows)
    for name in hidden:
        if name in known:
            raise ValueError(f"sensitive: {name[:60]!r} is quasi-identifying too. A column can be one or the other.")
    if not rows.count:
        raise ValueError("table: it has no rows. Give a table with at least one.")
    return Inputs(rows, coded(rows, known, "quasi"), coded(rows, hidden, "sensitive"))


def coded(rows: Rows, chosen: tuple[str, ...], argument: str) -> tuple[Column, ...]:
    """Code some columns of a table; one without any value is refused."""
    columns = tuple(encode(rows, name) for name in chosen)
    for column in columns:
        if column.null == 0:
            raise ValueError(f"{argument}: column {column.name[:60]!r} has no values, only nulls. Leave it out.")
    return columns
