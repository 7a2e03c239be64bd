"""What is required is refused by its message, and work that is charged fails without a word about the data."""

import logging

import pytest

from discreet.kernel.errors import FAILED, LOG, Failed, require, run_charged


def test_what_is_required_is_refused_with_its_message():
    require(condition=True, message="unused")
    with pytest.raises(ValueError, match=r"^scale must be positive$"):
        require(condition=False, message="scale must be positive")


def test_work_that_is_charged_returns_its_result():
    assert run_charged("the count", lambda: 42) == 42


def test_work_that_fails_says_so_to_the_analyst_and_why_to_the_owner(caplog):
    with pytest.raises(Failed) as failed:
        run_charged("the count", lambda: 1 // 0)
    assert str(failed.value) == FAILED
    assert (failed.value.__cause__, failed.value.__context__) == (None, None)
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("discreet", "the count failed after it was charged")
    assert record.exc_info[0] is ZeroDivisionError
    # Without any handler Python would print it.
    assert any(isinstance(handler, logging.NullHandler) for handler in LOG.handlers)


def test_an_interrupt_is_not_a_failure():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_charged("the count", interrupted)
