"""The folder of the examples is importable, and there is a report of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from release_examples import RECORD, ledger_with, policy_with

from discreet.kernel.loss import Loss
from discreet.publish import report_of


@pytest.fixture
def policy():
    return policy_with()


@pytest.fixture
def report(policy):
    with ledger_with(policy, (Loss(None, "1/100"), True, "owner"), (Loss(None, "1/200"), False, "ana")) as ledger:
        return report_of(policy, ledger, RECORD)
