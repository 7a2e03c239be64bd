"""The start page: one question, two worlds, on simulated data, for everybody."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread
from typing import Any

from fastapi import APIRouter, Request, Response

from discreet.server.pages.guards import PageRoute, current_session
from discreet.server.pages.rendering import Pages
from discreet.worlds.two_worlds.page import record_json, worlds_html
from discreet.worlds.two_worlds.record import build_record

_LOG = logging.getLogger("discreet")
_LOCK = Lock()  # visitors who come while the record is being made wait for the same one


def start_routes(pages: Pages) -> APIRouter:
    """Return the route of the start page."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)

    @router.get("/")
    async def show(request: Request) -> Response:
        worlds, record = await asyncio.to_thread(first_page)
        return pages.render(request, "start.html", current_session(pages, request), worlds=worlds, record=record)

    return router


@contextmanager
def start_page_in_preparation() -> Iterator[None]:
    """Make the content of the start page meanwhile, so that the first visitor does not wait for it."""
    preparation = Thread(target=_prepare, name="start page")
    preparation.start()
    try:
        yield
    finally:
        preparation.join()  # a process that ends while it uses an engine would be aborted


def _prepare() -> None:
    try:
        first_page()
    except Exception:  # noqa: BLE001 - such as a full disk; the server has other pages, and the first visitor tries again
        _LOG.exception("the start page could not be prepared")


def first_page() -> tuple[str, str]:
    """Return the content of the start page and its record, made once in the life of a server, in about two seconds."""
    with _LOCK:
        record = _record()
        return _worlds(), record_json(record)


@cache
def _record() -> dict[str, Any]:
    return build_record()


@cache
def _worlds() -> str:
    return worlds_html(_record())
