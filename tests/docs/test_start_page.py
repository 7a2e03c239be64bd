"""The way from a CSV file to a publication on the start page: its files are written and its commands run."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
from commands import check_commands

PAGE = (Path(__file__).parents[2] / "docs" / "start.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def visits():
    """Generated visits with the columns of the page."""
    draw, count = np.random.default_rng(3), 20_000
    patient = draw.integers(0, 8_000, count)
    return pa.table(
        {
            "patient": patient,
            "ward": draw.choice(["surgery", "medicine", "children"], count, p=[0.5, 0.35, 0.15]),
            "sex": np.where(patient % 2, "f", "m"),
            "day": pa.array(draw.integers(20_454, 20_544, count).astype("int32")).cast(pa.date32()),
            "cost": draw.gamma(2, 90, count).round(2),
        }
    )


def _replace_lines(file, lines):
    """Replace the lines of a policy that begin with the same names."""
    new = {line.split()[0]: line for line in lines.splitlines()}
    text = "\n".join(new.pop(line.split()[0], line) for line in file.read_text().splitlines())
    assert not new
    file.write_text(text)


@pytest.mark.long
def test_the_way_from_a_csv_file_to_a_publication_works_as_printed(tmp_path):
    pcsv.write_csv(visits(), tmp_path / "visits.csv")
    section = PAGE.partition("## From your own CSV file to a publication")[2].partition("\n## ")[0]
    kinds = []
    for block in BLOCK.finditer(section):
        language, text = block.groups()
        kinds.append(language)
        file = tmp_path / re.findall(r"`(\w+\.toml)`", section[: block.start()])[-1] if language else None
        if file is None:
            check_commands(text, tmp_path)
        elif text.startswith("["):
            file.write_text(text)
        else:
            _replace_lines(file, text)
    assert (kinds.count("toml"), kinds.count("")) == (3, 6)
    assert (tmp_path / "release" / "tables" / "by_month.csv").exists()
