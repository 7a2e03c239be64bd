"""Texts with several statements."""

import pytest

from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.statements import split_statements


def test_statements_are_split_at_semicolons_outside_of_quotes():
    assert split_statements("; SELECT 1;;\n-- nothing\n; SELECT ';' ; ") == [(1, " SELECT 1"), (25, " SELECT ';' ")]
    assert split_statements(";;") == []


def test_a_message_of_very_many_statements_is_refused_before_they_are_read():
    assert len(split_statements("a;" * 100)) == 100
    with pytest.raises(WireError, match="at most 100 statements"):
        split_statements("a;" * 101)
