"""Fixtures of the server's tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from served import FakeTime, Serving, open_service


@pytest.fixture
def fake_time():
    return FakeTime()


@pytest.fixture
def served():
    """Open services with settings of [server] and close them at the end."""
    opened = []

    def open_with(**settings):
        service = open_service(**settings)
        opened.append(service)
        return service

    yield open_with
    for service in opened:
        service.close()


@pytest.fixture
def serving():
    """Serve the clinic over HTTP with settings of [server]."""
    opened = []

    def serve_with(**settings):
        server = Serving(open_service(**settings))
        opened.append(server)
        return server

    yield serve_with
    for server in opened:
        server.close()
