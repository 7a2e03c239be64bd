"""The random programs lie beside the tests that run them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
