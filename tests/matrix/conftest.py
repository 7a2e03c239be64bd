"""Makes the random programs in this folder importable by the tests."""

import os
import sys
from pathlib import Path

import pytest

from discreet.postgres.server import connect

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def connection(postgres):
    """A database whose own order of texts is a language's: every comparison must say its own."""
    name = f"matrix_{os.getpid()}"
    with connect(postgres.url()) as server:
        icu = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'" if server.info.server_version >= 150000 else ""
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {icu}")
    with connect(postgres.url(name), enable_nestloop="off", jit="off", statement_timeout="60s") as opened:
        yield opened
