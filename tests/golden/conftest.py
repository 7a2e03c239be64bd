"""The policies, and how a plan is written down, lie beside the queries."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
