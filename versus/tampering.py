"""What must be caught in our own output: one flipped bit in any file of a release."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet as dc

PLAN = """
[release]
name = "People"
epsilon = 1
[tables.by_box]
sql = "SELECT box, COUNT(*) AS n FROM people GROUP BY box"
[tables.everybody]
sql = "SELECT COUNT(*) AS n FROM people"
"""


def flip_every_file():
    """Return in how many files of a release a flipped bit was caught, and in how many bytes of its manifest."""
    people = pa.table({"person": range(1000), "box": np.arange(1000) % 5})
    columns = {"box": (0, 4)}
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        with dc.open(
            people, table="people", unit="person", budget=1, columns=columns, groups=1, rows=1, ledger=":memory:"
        ) as curator:
            curator.publish(dc.publish.PublicationPlan.parse(PLAN), release)
        files = sorted(path for path in release.rglob("*") if path.is_file())
        manifest = release / "manifest.json"
        size = manifest.stat().st_size
        return {
            "files": len(files),
            "caught": sum(is_caught(release, file, file.stat().st_size // 2) for file in files),
            "manifest_bytes": size,
            "manifest_caught": sum(is_caught(release, manifest, place) for place in range(size)),
        }


def is_caught(release, file, place):
    """Return whether verification reports a release in which the lowest bit of one byte is flipped; then restore it."""
    original = file.read_bytes()
    changed = bytearray(original)
    changed[place] ^= 1
    file.write_bytes(changed)
    try:
        return bool(dc.publish.verify(release))
    finally:
        file.write_bytes(original)
        assert dc.publish.verify(release) == []
