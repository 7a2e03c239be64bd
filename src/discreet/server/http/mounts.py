"""Interfaces that are mounted beside /api, each by a function `mount(app, service)`.

It adds its routes to the application, and may return an asynchronous context manager that runs as long as the server.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI

from discreet.server.pages.app import add_pages
from discreet.server.service import Service

Mount = Callable[[FastAPI, Service], AbstractAsyncContextManager[Any] | None]


def _mount_agents(app: FastAPI, service: Service) -> AbstractAsyncContextManager[Any] | None:
    """Mount the tools of agents at /mcp, if the extra is installed."""
    if find_spec("mcp") is None:
        return None
    from discreet.server.agents.http_mount import add_agents  # noqa: PLC0415 - an extra

    return add_agents(app, service)


MOUNTS: tuple[Mount, ...] = (_mount_agents, add_pages)
