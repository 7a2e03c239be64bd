"""Interfaces that are mounted beside /api, each by a function `mount(app, service)`.

It adds its routes to the application, and may return an asynchronous context manager that runs as long as the server.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI

from discreet.server.pages.app import add_pages
from discreet.server.service import Service

Mount = Callable[[FastAPI, Service], AbstractAsyncContextManager[Any] | None]
MOUNTS: tuple[Mount, ...] = (add_pages,)  # agents at /mcp, the pages at /
