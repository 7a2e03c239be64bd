"""Measure the course's attacks for the pages of the server, with noise from a seed: `python tools/attack_record.py`."""

import json
import sys
from pathlib import Path
from typing import Any

from discreet import attacks
from discreet.attacks.attack import Attack
from discreet.attacks.registry import ATTACKS
from discreet.attacks.result import AttackResult

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "src" / "discreet" / "server" / "pages" / "attack_record.json"
EPSILONS = ("0.1", "1")


def measured(attack: Attack) -> dict[str, Any]:
    """Return one attack with its results against every defence."""
    comparison = attacks.compare(attack.with_settings(), epsilons=list(EPSILONS), random_state=0)
    return {
        "name": attack.name,
        "group": attack.function.__module__.split(".")[2],
        "summary": attack.summary,
        "data": attack.data.built_in,
        "metric": comparison.results[0].metric,
        "results": [_result(attack, result) for result in comparison.results],
    }


def _result(attack: Attack, result: AttackResult) -> dict[str, Any]:
    low, high = result.evidence.interval()
    return {
        "defence": result.defence,
        "epsilon": None if result.epsilon is None else f"{float(result.epsilon):g}",
        "released": attack.releases[result.defence].description,
        "success": round(result.success, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "baseline": round(result.baseline, 4),
        "ceiling": None if result.ceiling is None else round(result.ceiling, 4),
    }


def main() -> int:
    """Write the record."""
    sys.path.append(str(ROOT / "tests"))
    from seeded_noise import seeded  # noqa: PLC0415 - a module of the tests

    with seeded():
        record = [measured(attack) for attack in ATTACKS.values()]
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {RECORD.relative_to(ROOT)}: {len(record)} attacks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
