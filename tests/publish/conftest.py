"""Modules beside the tests of published tables are importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
