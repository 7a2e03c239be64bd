"""What a form sends, and its protection: every form carries a token that other sites cannot know."""

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request

MAX_BYTES = 256 * 1024
_MAX_FIELDS = 100
_FORM_TYPE = "application/x-www-form-urlencoded"
FIELD = "form_token"


async def read_form(request: Request, expected: str) -> Mapping[str, str]:
    """Return the fields of a form that carries the expected token; 403 without it, 413 if it is too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM_TYPE:
        raise HTTPException(415, "a form is expected")
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise HTTPException(403, _FOREIGN)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise HTTPException(413, f"the form is longer than {MAX_BYTES // 1024} KB")
    fields = parse_fields(bytes(body))
    if not hmac.compare_digest(fields.get(FIELD, "").encode(), expected.encode()):
        raise HTTPException(403, _FOREIGN)
    return fields


_FOREIGN = "this form is out of date or came from another site. Load the page again, and send the form once more."


def parse_fields(body: bytes) -> dict[str, str]:
    r"""Return the fields of a form; lines end with a newline only, and the last of repeated fields counts.

    >>> parse_fields(b"sql=SELECT+1%0D%0A&cost=")
    {'sql': 'SELECT 1\n', 'cost': ''}
    """
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, encoding="utf-8", errors="strict"
        )
    except ValueError:
        raise HTTPException(400, "the form is not readable") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}
