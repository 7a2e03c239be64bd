"""Helpers lie beside the tests; the policies of the golden queries, and random queries, serve here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
sys.path.insert(0, str(Path(__file__).parents[1] / "slow"))
