"""Metadata of the released CSV files in the vocabulary CSV on the Web, so that other programs know their columns."""

import json
from pathlib import PurePosixPath
from typing import Any

from discreet.publish.record import ColumnDescription, ReleasePart, ReleaseRecord

_DATATYPES = {
    "integer": "integer",
    "real": "double",
    "decimal": "decimal",
    "boolean": "boolean",
    "text": "string",
    "date": "date",
    "timestamp": "datetime",
}


def csvw_metadata(record: ReleaseRecord) -> str | None:
    """Return the metadata of all released CSV files as JSON; None if no part has one.

    The file of a part is the CSV file with its name, in any folder of the release.

    >>> csvw_metadata(ReleaseRecord("wards", plan_text="", time="", parts=())) is None
    True
    """
    files = {PurePosixPath(name).stem: name for name, _ in record.files if name.endswith(".csv")}
    tables = [_table(part, files[part.name]) for part in record.parts if part.name in files and part.columns]
    if not tables:
        return None
    data = {"@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}], "dc:title": record.name, "tables": tables}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _table(part: ReleasePart, url: str) -> dict[str, Any]:
    notes = " ".join([part.description, *part.notes])
    columns = list(map(_column, part.columns))
    return {"url": url, "dc:title": part.name, "dc:description": notes, "tableSchema": {"columns": columns}}


def _column(column: ColumnDescription) -> dict[str, str]:
    meaning = column.meaning + (f" ({column.domain})" if column.domain else "")
    return {"titles": column.name, "dc:description": meaning, "datatype": _DATATYPES.get(column.type, "string")}
