"""Helpers lie beside the tests; random queries begin with the golden ones."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
sys.path.insert(0, str(Path(__file__).parents[1]))
