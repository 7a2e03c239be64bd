"""Performance settings: in the policy or in Python, and apart from everything that affects privacy."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.curator.open import tuning_from_policy
from discreet.policy import Policy, write_policy

VALUES = {
    "data": {"name": "visits", "ledger": ":memory:"},
    "budget": {"epsilon": 1},
    "tables": {"visits": {"source": "v", "unit": "who", "columns": {"who": {"type": "integer"}}}},
}
SAID = {"memory": "2GB", "threads": 1, "seconds": 2.5, "folder": "spilled", "disk": "3GB", "totals_cache": "1MB"}


def test_every_setting_can_be_written_in_the_policy(tmp_path):
    policy = Policy.from_dict({**VALUES, "tuning": SAID}, tmp_path)
    wanted = {**SAID, "folder": str(tmp_path / "spilled"), "totals_cache": 1_000_000}
    assert tuning_from_policy(policy) == dc.Tuning(**wanted)
    assert tuning_from_policy(Policy.from_dict(VALUES)) == dc.Tuning()
    assert Policy.parse(write_policy(policy), tmp_path) == policy


def test_the_engine_gets_the_settings_of_the_policy_unless_others_are_given(tmp_path):
    policy = Policy.from_dict({**VALUES, "tuning": {"seconds": 7, "folder": str(tmp_path)}})
    data = {"visits": pa.table({"who": [1, 2]})}
    with dc.open(policy, data=data) as curator:
        assert curator._engine.seconds == 7
        assert len(list(tmp_path.iterdir())) == 1  # its spill folder
    with dc.open(policy, data=data, tuning=dc.Tuning(seconds=8)) as curator:
        assert curator._engine.seconds == 8


def test_performance_settings_do_not_change_the_ledgers_fingerprint():
    assert (
        Policy.from_dict({**VALUES, "tuning": SAID}).unit_fingerprint() == Policy.from_dict(VALUES).unit_fingerprint()
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory", "much"),
        ("memory", 4),
        ("memory", "120%"),
        ("disk", "50%"),
        ("threads", 0),
        ("seconds", 0),
        ("seconds", "1e9"),
        ("totals_cache", 7),
        ("thread", 2),
    ],
)
def test_wrong_settings_are_named(key, value):
    with pytest.raises(dc.PolicyError, match=rf"\[tuning\].*{key}"):
        Policy.from_dict({**VALUES, "tuning": {key: value}})


def test_a_value_that_is_not_a_section_is_named():
    with pytest.raises(dc.PolicyError, match="tuning"):
        Policy.from_dict({**VALUES, "tuning": 7})
