"""Publishes a plan until it kills itself at a point of the way: policy file, plan file, folder, point."""

import os
import signal
import sys
from pathlib import Path

from discreet.kernel.reservation import Reservation
from discreet.publish import files, parts, publication


def die(*_args, **_named):
    """End this process as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_between_renames():
    """Let the folder of the earlier release be moved away, and no other be moved to its place."""
    rename = Path.rename

    def rename_or_die(path, target):
        return rename(path, target) if target.name == "old" else die()

    Path.rename = rename_or_die


def replace(owner, name):
    return lambda: setattr(owner, name, die)


POINTS = {
    "charged": replace(publication, "_result_of"),
    "drawn": replace(Reservation, "settle"),
    "first part settled": replace(parts.QueryPart, "release"),
    "all but the rows settled": replace(parts.SyntheticPart, "release"),
    "tables written": replace(files, "_write_texts"),
    "manifest to be written": replace(files, "write_manifest"),
    "to be moved": replace(files, "_replace"),
    "between two moves": die_between_renames,
}

if __name__ == "__main__":
    from typer.testing import CliRunner

    from discreet.cli import app

    policy, plan, folder, point = sys.argv[1:]
    POINTS[point]()
    print(CliRunner().invoke(app, ["publish", policy, plan, "--out", folder]).output)
