"""Write dummy tables as files, with a copy of the policy that refers to them."""

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from discreet.kernel.errors import PolicyError
from discreet.policy.dummy_data.dummy_tables import DEFAULT_ROWS, dummy
from discreet.policy.entries import TuningEntry
from discreet.policy.model import Policy, write_policy

_WILDCARD = re.compile(r"[*?\[]")
_CSV = re.compile(r"\.[ct]sv(?:\.gz)?$", re.IGNORECASE)
_DUCKDB_TABLE = re.compile(r"\.(?:duckdb|ddb|db)/[^/]+$", re.IGNORECASE)
_UNSAFE_CHARACTERS = re.compile(r"[^\w-]+")
_HEADER = "# Dummy data that fits a policy, for trying out queries. It contains no real data."


@dataclass(frozen=True)
class DummyFiles:
    """The files of dummy data: the policy to query, and each table's source in it."""

    policy: Path
    sources: Mapping[str, str]


def write_dummy(policy: Policy, folder: str | Path, *, rows: int = DEFAULT_ROWS, random_state: int = 0) -> DummyFiles:
    """Write dummy data for a policy into a folder, with a copy of the policy that has its own ledger.

    Each table has the format of its source (Parquet, CSV, several files for a pattern, a DuckDB file), or else Parquet.
    The folder must be new or empty, or contain earlier dummy data, which is replaced together with its ledger.

    >>> import tempfile
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_dummy(policy, folder, rows=50)
    ...     files.sources, Policy.load(files.policy).data.name
    ({'visits': 'visits.csv'}, 'visits-dummy')
    """
    path = Path(folder)
    _prepare_folder(path)
    tables = dummy(policy, rows, random_state=random_state)
    file_names = _file_names(policy)
    path.mkdir(parents=True, exist_ok=True)
    sources = {name: _write_table(tables[name], policy.tables[name].source, file_names[name], path) for name in tables}
    dummy_sources = {name: replace(table, source=sources[name]) for name, table in policy.tables.items()}
    local_settings = {"ledger": "ledger.sqlite", "engine": "duckdb", "connection": None}
    names = {key: f"{value[:190]}-dummy" for key in ("name", "population") if (value := getattr(policy.data, key))}
    data = policy.data.model_copy(update={**names, **local_settings})
    text = write_policy(replace(policy, data=data, tables=MappingProxyType(dummy_sources), tuning=TuningEntry()))
    file = path / "policy.toml"
    file.write_text(f"{_HEADER}\n\n{text}")
    return DummyFiles(file, sources)


def is_dummy_folder(folder: Path) -> bool:
    """Whether a folder contains dummy data."""
    try:
        with (folder / "policy.toml").open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER.encode()
    except OSError:
        return False


def _prepare_folder(folder: Path) -> None:
    """Refuse a folder with other files; delete the ledger of earlier dummy data."""
    if is_dummy_folder(folder):
        for file in folder.glob("ledger.sqlite*"):
            file.unlink()
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PolicyError(
            f"{folder}: the folder is not empty and does not contain dummy data. Choose a new or empty folder."
        )


def _file_names(policy: Policy) -> dict[str, str]:
    """Return a distinct file name for each table, without characters that are unsafe in a path."""
    names: dict[str, str] = {}
    for table in policy.tables:
        safe_name = _UNSAFE_CHARACTERS.sub("_", table)
        taken = {name.lower() for name in names.values()}
        names[table] = safe_name if safe_name.lower() not in taken else f"{safe_name}_{len(names)}"
    return names


def _write_table(table: pa.Table, source: str, name: str, folder: Path) -> str:
    """Write one table and return its source in the new policy."""
    if _DUCKDB_TABLE.search(source):
        return _write_duckdb_table(table, name, folder)
    csv_suffix = _CSV.search(source)
    suffix = csv_suffix[0].lower() if csv_suffix else ".parquet"
    if not _WILDCARD.search(source):
        _write_file(table, folder / f"{name}{suffix}")
        return f"{name}{suffix}"
    (folder / name).mkdir(exist_ok=True)
    half = table.num_rows // 2
    _write_file(table.slice(0, half), folder / name / f"part-1{suffix}")
    _write_file(table.slice(half), folder / name / f"part-2{suffix}")
    return f"{name}/*{suffix}"


def _write_file(table: pa.Table, file: Path) -> None:
    if file.suffix == ".parquet":
        pq.write_table(table, file)
        return
    options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in file.name else ",")
    with gzip.open(file, "wb") if file.suffix == ".gz" else file.open("wb") as stream:
        pyarrow.csv.write_csv(table, stream, options)


def _write_duckdb_table(table: pa.Table, name: str, folder: Path) -> str:
    with duckdb.connect(str(folder / "dummy.duckdb")) as connection:
        connection.register("arrow_table", table)
        connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM arrow_table')  # noqa: S608 - letters and _ only
        connection.unregister("arrow_table")
    return f"dummy.duckdb/{name}"
