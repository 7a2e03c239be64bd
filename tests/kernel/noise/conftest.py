"""The reference lies beside the tests that compare with it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
