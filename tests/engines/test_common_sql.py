"""What the dialects of all engines share, without an engine."""

from dataclasses import replace
from datetime import date

import pytest

from discreet.engines.common_sql import COMMON_OPERATIONS, changed_letters, in_list, is_range
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.kernel.expr import Call, Column, Type
from discreet.kernel.sqlgen.expr_sql import apply_operation


def test_all_letters_that_change_are_found():
    letters = map(chr, range(0x110000))  # surrogates, which no text has, do not change
    assert changed_letters(str.upper) == {letter: letter.upper() for letter in letters if letter.upper() != letter}


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ((3, 1, 2), "x BETWEEN INTEGER:1 AND INTEGER:3"),
        ((1, 2, 4), "x IN (INTEGER:1, INTEGER:2, INTEGER:4)"),
        ((1, 2), "x IN (INTEGER:1, INTEGER:2)"),
    ],
)
def test_consecutive_values_are_a_range(values, written):
    write_list = in_list(lambda value, kind: f"{kind.name}:{value}")
    assert write_list("x", values, Type.INTEGER) == written


def test_only_integers_and_days_are_ranges():
    assert is_range([date(2026, 1, 31), date(2026, 2, 1), date(2026, 1, 30)])
    assert not is_range([date(2026, 1, 31), date(2026, 2, 1), date(2026, 2, 3)])
    for values in (("a", "b", "c"), (1.0, 2.0, 3.0), (False, True, None), (1, 2, None)):
        assert not is_range(values)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_least_and_greatest_compare_every_argument(count):
    texts = [f"a{at}" for at in range(count)]
    for name in ("least", "greatest"):
        sql = COMMON_OPERATIONS[name](texts, ())
        assert [text for text in texts if text in sql] == texts
        assert sql.count(f"{name.upper()}(") == count - 1


def test_texts_are_joined_and_cut_off_where_a_dialect_has_no_function():
    call = Call("join", (Column("a", Type.TEXT), Column("b", Type.TEXT)))
    assert apply_operation(call, ["a", "b"], replace(DUCKDB, operations={})) == "SUBSTRING(a || b, 1, 2000)"
