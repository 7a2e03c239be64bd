"""The files of a release: tables as Parquet and CSV, synthetic rows, report, manifest, and scripts that read them."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.engines.locked_folder import create_locked_folder, remove_orphans
from discreet.kernel.errors import PolicyError
from discreet.publish.file_tables import csv_table
from discreet.publish.manifest import file_digests, write_manifest
from discreet.publish.parts import PartResult
from discreet.publish.plan import PublicationPlan
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.report import Report, write_report

_READ_PY = '''"""Read the tables of this release, with their 95 % margins of error (columns ending in _margin)."""

import os
from pathlib import Path

import pandas as pd

folder = Path(__file__).parent
tables = {path.stem: pd.read_parquet(path) for path in sorted((folder / "tables").glob("*.parquet"))}
synthetic = {path.stem: pd.read_parquet(path) for path in sorted((folder / "synthetic").glob("*.parquet"))}

if __name__ == "__main__":
    try:
        for name, table in (tables | synthetic).items():
            print(name, table.head(), sep="\\n", end="\\n\\n", flush=True)
    except BrokenPipeError:  # the reader, such as head, has ended
        os._exit(0)
'''
_READ_R = """# Read the tables of this release, with their 95 % margins of error (columns ending in _margin).
files <- list.files("tables", pattern = "[.]csv$", full.names = TRUE)
# An apostrophe precedes texts that a spreadsheet would take for formulas.
read <- function(file) {
  table <- read.csv(file)
  table[] <- lapply(table, function(x) if (is.character(x)) sub("^'('*[=+@\t\r-])", "\\1", x) else x)
  table
}
tables <- lapply(setNames(files, sub("[.]csv$", "", basename(files))), read)
for (name in names(tables)) {
  cat(name, "\\n")
  print(head(tables[[name]]))
}
"""


def write_release(
    folder: Path,
    plan: PublicationPlan,
    results: Iterable[PartResult],
    record: ReleaseRecord,
    report_on: Callable[[ReleaseRecord], Report],
) -> ReleaseRecord:
    """Write all files beside the folder first, and then put them in its place; return the record with their hashes.

    The results are in the ledger, so that an attempt that failed can be repeated without charge.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{folder.name}-unfinished-"
        made = create_locked_folder(str(folder.parent), prefix)
        fresh = Path(made.path)
        try:
            _write_tables(fresh, results)
            complete = replace(record, files=tuple(file_digests(fresh).items()))
            _write_texts(fresh, plan, report_on(complete))
            _forget_times(fresh, complete.time)
            fresh.chmod(0o755)
            _replace(folder, fresh, prefix)
        finally:
            made.remove()
        remove_orphans(str(folder.parent), prefix)  # of processes that were killed
    except OSError as error:
        raise PolicyError(
            f"--out: cannot write {folder} ({error.strerror or error}). The results are in the ledger: publish the "
            "same plan again, in another folder if needed, at no charge."
        ) from None
    return complete


def _write_tables(folder: Path, results: Iterable[PartResult]) -> None:
    for result in results:
        for name, written in zip(result.names, result.files, strict=False):
            kind = "synthetic" if result.kind == "synthetic rows" else "tables"
            (folder / kind).mkdir(exist_ok=True)
            table = written.table
            texts = [column.name for column in table.schema if pa.types.is_string(column.type)]
            pq.write_table(table, folder / kind / f"{name}.parquet", compression="zstd", use_dictionary=texts)
            if kind == "tables":
                pcsv.write_csv(csv_table(table, written.formulas), folder / kind / f"{name}.csv")


def _write_texts(folder: Path, plan: PublicationPlan, report: Report) -> None:
    for name, text in (("plan.toml", plan.text), ("read.py", _READ_PY), ("read.R", _READ_R)):
        (folder / name).write_text(text, "utf-8")
    write_report(report, folder)
    digests = dict(report.record.files) if report.record else {}
    write_manifest(
        folder, policy_text=report.policy_text, plan_text=plan.text, ledger=report.ledger_point, digests=digests
    )


def _forget_times(folder: Path, day: str) -> None:
    """Date all files to the day, because how long the release took may depend on the data."""
    seconds = datetime.fromisoformat(day).timestamp()
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (seconds, seconds))


def _replace(folder: Path, fresh: Path, prefix: str) -> None:
    """Put a folder in the place of another, which is kept until the new one is there."""
    if not folder.exists():
        fresh.rename(folder)
        return
    old = create_locked_folder(str(folder.parent), prefix)
    try:
        earlier = folder.rename(Path(old.path) / "old")
        try:
            fresh.rename(folder)
        except OSError:
            earlier.rename(folder)
            raise
    finally:
        old.remove()
