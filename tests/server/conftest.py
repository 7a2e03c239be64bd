"""Fixtures of the server's tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from served import FakeTime, open_service


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
