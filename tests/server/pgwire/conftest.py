"""One running server for each module of tests, and a connection to it for each test."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from running import running
from wire_client import WireClient


@pytest.fixture(scope="module")
def server():
    """Give a running server with the clinic's data."""
    with running() as found:
        yield found


@pytest.fixture
def connect(server):
    """Give a function that opens connections by psycopg, which are closed at the end."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'discreet[postgres]'")
    opened = []

    def open_connection(name="ana", **arguments):
        arguments = {"autocommit": True, "options": "-c epsilon=1", **arguments}
        opened.append(psycopg.connect(server.url(name), **arguments))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


@pytest.fixture(scope="session")
def recorded():
    """Give the path of catalog queries that real clients sent."""
    data = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[4] / "shared" / "data"))
    path = data.parent / "pg-catalog-queries.json"
    if not path.exists():
        pytest.skip(f"there are no recorded queries at {path}")
    return path


@pytest.fixture
def wire(server):
    """Give a function that opens connections that send any bytes; a name logs in."""
    opened = []

    def open_connection(name=None, **parameters):
        opened.append(WireClient(server.port))
        if name is not None:
            found = opened[-1].log_in(name, server.tokens[name], **{"options": "-c epsilon=1", **parameters})
            assert found[-1][0] == b"Z", found
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()
