import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium


@pytest.fixture(scope="module")  # playwright runs an event loop in this thread, which others cannot run beside
def browser():
    with chromium() as started:
        yield started
