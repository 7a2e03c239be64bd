"""Answers as files."""

import io

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from fastapi import HTTPException, Response

from discreet.answer.model import Answer
from discreet.publish.file_tables import csv_table, file_table
from discreet.server.pages.rendering import HEADERS


def answer_file(answer: Answer, name: str) -> Response:
    """Return an answer with its margins as CSV, without formulas, or as Parquet, with its cost as metadata."""
    buffer = io.BytesIO()
    match name:
        case "answer.csv":
            pcsv.write_csv(csv_table(file_table(answer)), buffer)
            return attachment(buffer.getvalue(), name, "text/csv; charset=utf-8")
        case "answer.parquet":
            pq.write_table(answer.with_margins(), buffer)
            return attachment(buffer.getvalue(), name, "application/vnd.apache.parquet")
    raise HTTPException(404, "there is no such file.")


def attachment(content: bytes, name: str, kind: str) -> Response:
    """Return a file that browsers save and never show.

    >>> attachment(b"n", "a.csv", "text/csv").headers["content-disposition"]
    'attachment; filename="a.csv"'
    """
    return Response(
        content, media_type=kind, headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    )
