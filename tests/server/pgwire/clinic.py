"""A small clinic: a policy with private and public tables, its data, and the catalog that people see of it."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from discreet.policy import Policy

WARDS = ["A", "B", "C"]
DECLARED = {
    "data": {"name": "clinic", "ledger": ":memory:"},
    "budget": {
        "epsilon": 1000,
        "analysts": {"ana": {"epsilon": 500}, "bob": {"epsilon": 1, "each": "1/4", "tables": ["visits"]}},
    },
    "server": {"tick": 0, "requests_per_minute": 10**6, "failures_per_minute": 1000},
    "tables": {
        "visits": {
            "source": "visits.csv",
            "unit": "patient",
            "groups": 3,
            "rows": 2,
            "columns": {
                "patient": {"type": "integer"},
                "ward": {"type": "text", "in": WARDS},
                "age": {"type": "integer", "between": [0, 120]},
                "cost": {"type": "decimal", "between": [0, 1000], "step": "0.01"},
                "day": {"type": "date", "between": [dt.date(2026, 1, 1), dt.date(2026, 12, 31)]},
                "seen": {"type": "timestamp", "between": [dt.datetime(2026, 1, 1), dt.datetime(2026, 12, 31)]},
                "weight": {"type": "real", "between": [0, 200], "null": True},
                "new": {"type": "boolean"},
            },
        },
        "tests": {
            "source": "tests.csv",
            "unit": {"through": "patients", "on": "patient"},
            "groups": 1,
            "rows": 2,
            "columns": {
                "patient": {"type": "integer"},
                "ward": {"type": "text", "references": "wards.ward"},
            },
        },
        "patients": {
            "source": "patients.csv",
            "unit": "patient",
            "groups": 1,
            "rows": 1,
            "columns": {"patient": {"type": "integer"}, "sex": {"type": "text", "in": ["f", "m"]}},
        },
        "wards": {
            "source": "wards.csv",
            "public": True,
            "columns": {"ward": {"type": "text"}, "floor": {"type": "integer"}},
        },
    },
}


def clinic_policy(**server):
    """Return the policy; keywords are settings of the server."""
    return Policy.from_dict(DECLARED | {"server": DECLARED["server"] | server})


def clinic_data(size=300):
    """Return the tables by name."""
    numbers = range(size)
    start = dt.date(2026, 1, 1)
    return {
        "visits": pa.table(
            {
                "patient": [number // 2 for number in numbers],
                "ward": [WARDS[number % 3] for number in numbers],
                "age": [number % 90 for number in numbers],
                "cost": pa.array([Decimal(number) + Decimal("0.25") for number in numbers], pa.decimal128(9, 2)),
                "day": [start + dt.timedelta(days=number % 300) for number in numbers],
                "seen": [dt.datetime(2026, 1, 1, 8) + dt.timedelta(hours=number) for number in numbers],
                "weight": [None if number % 10 == 0 else 50.0 + number % 40 for number in numbers],
                "new": [number % 2 == 0 for number in numbers],
            }
        ),
        "tests": pa.table({"patient": list(range(0, size, 2)), "ward": [WARDS[i % 3] for i in range(0, size, 2)]}),
        "patients": pa.table({"patient": list(numbers), "sex": ["fm"[number % 2] for number in numbers]}),
        "wards": pa.table({"ward": WARDS, "floor": [1, 2, 3]}),
    }
