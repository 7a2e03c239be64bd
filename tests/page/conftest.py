import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium


@pytest.fixture(scope="session")
def browser():
    with chromium() as started:
        yield started
