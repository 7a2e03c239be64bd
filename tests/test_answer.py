"""Answers carry their margins and their price, print for people, and let nothing of their keys act as code."""

import builtins
import dataclasses
import datetime as dt
import json
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet.answer.bias import POSSIBLE_BIAS, Bias
from discreet.answer.model import Answer, Cost, ExplainedColumn, Explanation
from discreet.answer.text import (
    cost_sentence,
    escape_unprintable,
    is_reliable,
    key_texts,
    round_to_margin,
    short_number,
)
from discreet.kernel.event import Receipt
from discreet.kernel.loss import Loss

GAUSSIAN = Cost(Loss(None, "1/8000"), Fraction(1, 10), Fraction(1, 10**9), Fraction(1, 84))
HOSTILE = "<script>alert('$x^2$')</script>\n\x1b[31m\u202e"


def answer(columns, margins, **changes):
    noise = dict.fromkeys(margins, "discrete Laplace, scale 10")
    parts = {"noise": noise, "cost": Cost(Loss("1/10")), "receipt": Receipt("5e1f")} | changes
    return Answer(pa.table(columns), margins=margins, **parts)


def cities(rows=3):
    return answer({"city": [f"c{i}" for i in range(rows)], "n": [1000 + i for i in range(rows)]}, {"n": [30.0] * rows})


# What an answer holds


def test_an_answer_is_plain_frozen_data():
    one = cities()
    assert one.loss == Loss("1/10")
    assert one.share is None
    assert one.receipt.id == "5e1f"
    assert one.noise == {"n": "discrete Laplace, scale 10"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.notes = ()


def test_margins_may_be_arrays_and_non_finite_ones_are_none():
    one = answer({"a": [1.0, 2.0, 3.0, 4.0]}, {"a": np.array([0.5, np.nan, np.inf, 2])})
    assert one.margins == {"a": [0.5, None, None, 2.0]}
    assert answer({"a": [1, 2]}, {"a": [None, 3]}).margins == {"a": [None, 3.0]}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"margins": {"m": [1.0]}}, "same columns"),
        ({"noise": {}}, "same columns"),
        ({"margins": {"n": [1.0, 2.0]}}, "each of the 1 rows"),
        ({"table": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])}, "the same name"),
        ({"bias": {"m": [None]}}, "bias must name noisy columns"),
        ({"bias": {"n": [None, None]}}, "each of the 1 rows"),
    ],
)
def test_inconsistent_parts_of_an_answer_are_refused(changes, told):
    parts = {
        "table": pa.table({"n": [1]}),
        "margins": {"n": [1.0]},
        "noise": {"n": "x"},
        "cost": Cost(Loss(1)),
        "receipt": Receipt("1"),
    }
    with pytest.raises(ValueError, match=told):
        Answer(**parts | changes)


def test_a_number_is_reliable_when_its_margin_is_at_most_a_quarter_of_it():
    one = answer({"k": list("abcde"), "n": [100, 99, -400, None, 7]}, {"n": [25, 25, 25, 25, None]})
    assert one.reliable == {"n": [True, False, True, None, None]}
    assert is_reliable(Decimal(100), 25.0) is True
    assert is_reliable("a", 25.0) is None


def test_one_number_can_be_read_directly():
    one = answer({"n": [731]}, {"n": [30]})
    assert (one.value, one.margin) == (731, 30.0)
    assert answer({"n": [731]}, {}).margin is None


@pytest.mark.parametrize("columns", [{"n": [1, 2]}, {"n": [1], "m": [2]}, {"n": pa.array([], pa.int64())}])
@pytest.mark.parametrize("name", ["value", "margin"])
def test_an_answer_of_another_shape_has_no_single_number(columns, name):
    with pytest.raises(ValueError, match="one row and one column"):
        getattr(answer(columns, {}), name)


def test_an_answer_is_its_rows():
    one = cities()
    assert len(one) == 3
    assert list(one) == [("c0", 1000), ("c1", 1001), ("c2", 1002)]


# Other libraries


def test_tables_have_exactly_the_selected_columns():
    one = cities()
    assert one.to_arrow().column_names == ["city", "n"]
    assert list(one.to_pandas().columns) == one.to_polars().columns == ["city", "n"]


def test_nulls_do_not_turn_integers_into_floats_in_pandas():
    frame = answer({"n": [2**62 + 1, None], "b": [True, None], "x": [0.5, None]}, {}).to_pandas()
    assert frame.dtypes.astype(str).to_dict() == {"n": "Int64", "b": "boolean", "x": "float64"}
    assert frame["n"][0] == 2**62 + 1
    assert frame["n"].isna().tolist() == frame["b"].isna().tolist() == frame["x"].isna().tolist() == [False, True]


def test_whatever_reads_arrow_reads_an_answer():
    one = cities()
    assert pa.table(one).equals(one.table)
    assert pa.RecordBatchReader.from_stream(one).read_all().equals(one.table)


@pytest.mark.parametrize(
    ("method", "library", "install"),
    [
        ("to_pandas", "pandas", "pip install pandas"),
        ("to_polars", "polars", "pip install polars"),
        ("plot", "matplotlib", r"pip install 'discreet\[pictures\]'"),
    ],
)
def test_a_missing_library_is_named_with_how_to_get_it(method, library, install, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=install):
        getattr(cities(), method)()


def test_margins_are_in_a_column_after_the_noisy_one():
    one = answer({"k": ["a", "b"], "n": [1, 2], "x": [0.5, 0.25], "n_margin": [8, 9]}, {"n": [3, 3], "x": [None, 1]})
    table = one.with_margins()
    assert table.column_names == ["k", "n", "n_margin_1", "x", "x_margin", "n_margin"]
    assert table.column("n_margin_1").to_pylist() == [3.0, 3.0]
    assert table.column("x_margin").to_pylist() == [None, 1.0]
    assert table.schema.field("x_margin").type == pa.float64()


# Clipping bias


def visits(bias=None):
    biases = bias or [Bias(1, 320.0), Bias(1, 12.5)]
    return answer({"clinic": ["A", "B"], "n": [1731, 100]}, {"n": [20, 20]}, bias={"n": biases})


def test_bias_is_in_two_columns_after_the_margin():
    one = answer(
        {"k": ["a", "b"], "n": [9, 8], "s": [1.5, 2.5], "m": [1, 2]},
        {"n": [1, 1], "s": [1, 1], "m": [1, 1]},
        bias={"n": [Bias(3, 4.5, 9), None], "s": [POSSIBLE_BIAS, POSSIBLE_BIAS]},
    )
    table = one.with_margins()
    assert table.column_names[1:5] == ["n", "n_margin", "n_bias", "n_bias_low"]
    assert table.column_names[5:] == ["s", "s_margin", "s_bias", "s_bias_low", "m", "m_margin"]
    assert (table["n_bias"].to_pylist(), table["n_bias_low"].to_pylist()) == ([4.5, None], [3, None])
    assert (table["s_bias"].to_pylist(), table["s_bias_low"].to_pylist()) == ([None, None], [0, 0])


def test_the_columns_of_an_answer_do_not_depend_on_its_rows():
    empty = answer({"n": pa.array([], pa.int64())}, {"n": []}, bias={"n": []})
    assert empty.with_margins().column_names == ["n", "n_margin", "n_bias", "n_bias_low"]


def test_bias_is_plain_data_for_json():
    data = json.loads(json.dumps(visits([Bias(3, 4.5, 9), None]).to_dict()))
    assert data["bias"] == {"n": [{"low": 3, "estimate": 4.5, "high": 9}, None]}
    assert json.loads(visits().to_arrow().schema.metadata[b"discreet"])["bias"] == visits().to_dict()["bias"]


@pytest.mark.parametrize(
    ("bias", "reliable"),
    [
        (None, True),
        (Bias(0), True),
        (Bias(5), True),
        (Bias(5.5), False),
        (Bias(0, 5), True),
        (Bias(0, 5.5), True),  # nothing is proved
        (Bias(1, 5.5), False),
        (Bias(5.5, 1), False),
        (Bias(0, 1, high=50), True),
    ],
)
def test_a_number_is_reliable_when_margin_and_bias_are_at_most_a_quarter_of_it(bias, reliable):
    assert is_reliable(100, 20, bias) is reliable
    assert visits([None, bias]).reliable == {"n": [True, reliable]}
    assert ("~100 ± 20" in repr(visits([None, bias]))) is not reliable


def test_the_sign_for_unreliable_numbers_is_explained_with_the_bias_where_it_counts():
    assert "~ unreliable: margin and bias exceed 25 % of the value" in " ".join(repr(visits()).split())
    margin_only = answer({"n": [3]}, {"n": [1]}, bias={"n": [POSSIBLE_BIAS]})
    assert "~ unreliable: the margin exceeds 25 % of the value" in " ".join(repr(margin_only).split())


def test_details_state_the_bias_of_each_column():
    assert "Clipping bias of n: estimate 13 to 320 per row." in visits().details()
    assert "Clipping bias of n: at least 3, estimate 4.5, at most 9." in visits([Bias(3, 4.5, 9), None]).details()
    assert "Clipping bias of n: possible, not measured." in visits([POSSIBLE_BIAS, POSSIBLE_BIAS]).details()
    assert "Clipping bias" not in visits([None, None]).details()


def test_html_has_the_bias_of_a_number_as_its_title():
    html = visits([Bias(300, 320.0), None])._repr_html_()
    assert 'title="clipping bias: at least 300, estimate 320"' in html
    assert html.count("title=") == 1


# Numbers for people


@pytest.mark.parametrize(
    ("value", "margin", "shown"),
    [
        (731, 30.0, ("731", "30")),
        (731, 3.0, ("731", "3")),
        (731, 2.5, ("731", "2.5")),
        (731, 61.9, ("731", "62")),
        (123_456, 1234.0, ("123,500", "1,300")),
        (-123_456, 1234.0, ("-123,500", "1,300")),
        (12.3456, 0.123, ("12.35", "0.13")),
        (12.3456, 0.13, ("12.35", "0.13")),
        (12.3456, 99.4, ("12", "100")),
        (-0.001, 0.5, ("0.00", "0.50")),
        (1234.5, 0.0, ("1,234.5", "0")),
        (1234.5, None, ("1,234.5", "?")),
        (2**62 + 1, 3.0, ("4,611,686,018,427,387,905", "3")),
        (1e-20, 3e-21, ("1e-20", "3e-21")),
        (1.5e20, 3.0, ("1.5e+20", "3")),
        (float("inf"), 3.0, ("inf", "?")),
    ],
)
def test_a_value_is_shown_to_two_digits_of_its_margin(value, margin, shown):
    assert round_to_margin(value, margin) == shown


def test_a_shown_margin_is_never_below_the_margin():
    for margin in np.exp(np.random.default_rng(1).uniform(-12, 20, 2000)):
        shown = float(round_to_margin(1.0, float(margin))[1].replace(",", ""))
        assert margin * (1 - 1e-6) <= shown <= margin * 1.11


def test_short_numbers_have_few_digits():
    shown = [short_number(Fraction(1, 3)), short_number(Fraction(1, 10**12)), short_number(2), short_number(12_345_678)]
    assert shown == ["0.3333", "1e-12", "2", "1.235e7"]


def test_keys_are_written_plainly():
    assert key_texts([None, False, 2009, 0.1, "x" * 50]) == ["NULL", "false", "2009", "0.1", "x" * 39 + "…"]
    midnight, morning = (dt.datetime(2009, 1, 1, hour, tzinfo=dt.UTC) for hour in (0, 6))
    assert key_texts([midnight, None]) == ["2009-01-01", "NULL"]
    assert key_texts([midnight, morning])[0] == "2009-01-01 00:00:00+00:00"


# Text


def test_an_answer_prints_a_table_and_three_lines():
    one = answer(
        {"category": ["food", "shop", None], "n": [1731, -4, 250], "mean": [12.345, None, 8.0]},
        {"n": [30, 30, 30], "mean": [0.51, None, None]},
        cost=GAUSSIAN,
        clipping=("12 ± 3 visitors are clipped.",),
        bounds=("Each visitor contributes at most 20 rows per group.",),
        notes=("Negative counts are noise.",),
        remaining=Fraction(29999, 10000),
    )
    assert repr(one).splitlines() == [
        "category           n          mean",
        "food      1,731 ± 30  12.35 ± 0.51",
        "shop        ~-4 ± 30   NULL",
        "NULL        250 ± 30      8 ± ?",
        "",
        "± is the 95 % margin of error from privacy noise; ~ unreliable: the margin",
        "exceeds 25 % of the value; ± ?: margin unknown.",
        "12 ± 3 visitors are clipped.",
        "Cost: epsilon 0.1 at delta 1e-9 (1.19 % of the budget's rho); epsilon 2.999",
        "remains for one more query.",
    ]
    assert one.details().splitlines() == [
        "Negative counts are noise.",
        "Each visitor contributes at most 20 rows per group.",
        "Noise of n: discrete Laplace, scale 10.",
        "Noise of mean: discrete Laplace, scale 10.",
        "Privacy cost: epsilon 0.1, rho 0.000125. Ledger entry: 5e1f.",
    ]


@pytest.mark.parametrize(
    ("paid", "text"),
    [
        (Loss("1/10"), "Cost: epsilon 0.1."),
        (Loss(0), "No charge: cached answer, which cost epsilon 0.1."),
        (Loss("1/20"), "Charged epsilon 0.05: partly reused from earlier answers, full cost epsilon 0.1."),
    ],
)
def test_the_line_on_the_cost_begins_with_what_was_charged_now(paid, text):
    assert cost_sentence(answer({"n": [9]}, {"n": [1]}, paid=paid)) == text


def test_the_remaining_budget_is_rounded_down():
    assert "epsilon 0.6666 remains" in repr(answer({"n": [9]}, {"n": [1]}, remaining=Fraction(2, 3)))


def test_arrow_tables_carry_the_rest_of_the_answer_as_metadata():
    one = answer({"n": [9]}, {"n": [1]}, notes=("A note.",))
    for table in (one.to_arrow(), one.with_margins()):
        metadata = json.loads(table.schema.metadata[b"discreet"])
        assert metadata == one.to_dict()
        assert (metadata["cost"]["epsilon"], metadata["notes"], metadata["receipt"]) == (0.1, ["A note."], "5e1f")
        assert metadata["exact"]["cost"]["epsilon"] == "1/10"


def test_the_remaining_budget_is_in_json_as_a_decimal_and_as_a_fraction():
    data = answer({"n": [9]}, {"n": [1]}, remaining=Fraction(2, 3)).to_dict()
    assert (data["remaining"], data["exact"]["remaining"]) == (pytest.approx(2 / 3), "2/3")


def test_symbols_that_do_not_occur_are_not_explained():
    assert "~" not in repr(cities())
    assert "± ?" not in repr(cities())
    assert "±" not in repr(answer({"a": [1]}, {}))


def test_long_tables_are_truncated_and_the_rest_is_counted():
    text = repr(cities(2000))
    assert "… 1,960 more rows" in text
    assert "c39 " in text
    assert "c40 " not in text
    assert "… 1 more row\n" in repr(cities(41))
    assert "more row" not in repr(cities(40))


def test_an_empty_table_is_described_as_such():
    assert "(no rows)" in repr(cities(0))
    assert "(no rows)" not in repr(cities(1))


def test_text_fits_into_80_columns():
    columns = {f"a_rather_long_name_{i}": [123_456.7, 1.0] for i in range(9)}
    long = answer(
        {"key": ["k" * 70, "短い"]} | columns, {name: [0.5, None] for name in columns}, bounds=("long " * 40,)
    )
    lines = repr(long).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("k" * 39 in line for line in lines) > 1  # the key is repeated beside the columns that follow below
    for name in columns:
        assert name in repr(long)


def test_wide_characters_and_accents_do_not_break_the_columns():
    lines = repr(answer({"key": ["東京", "e\u0301a", "abcd"], "n": [1, 1, 1]}, {"n": [0, 0, 0]})).splitlines()
    assert lines[1:4] == ["東京  1 ± 0", "e\u0301a    1 ± 0", "abcd  1 ± 0"]


def test_invisible_characters_in_a_key_are_escaped():
    one = answer({HOSTILE: [HOSTILE], "n": [1]}, {"n": [1]}, notes=(HOSTILE,))
    assert all(c.isprintable() or c == "\n" for c in repr(one))
    assert escape_unprintable("\x1b\u202e\n") == r"\x1b\u202e\n"


# HTML


def test_keys_are_escaped_in_html():
    one = answer(
        {HOSTILE: [HOSTILE], "n": [1]},
        {"n": [1]},
        receipt=Receipt("<i>"),
        bounds=("<b>bold</b>",),
        notes=("<u>", "&amp;"),
    )
    html = one._repr_html_()
    assert set(re.findall(r"</?([a-z0-9]+)", html)) == {
        *("table", "thead", "tbody", "tr", "th", "td", "p", "details", "summary")
    }
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;bold" in html
    assert "&amp;amp;" in html
    assert "'" not in html  # no text can end an attribute


def test_html_shows_what_text_shows():
    html = cities(2000)._repr_html_()
    assert "<td" in html
    assert "1,000 ± 30" in html
    assert "… 1,960 more rows" in html
    assert "Cost: epsilon 0.1" in html
    assert html.count("<tr>") == 41


# Prices and explanations


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost(Loss("1/10")), "epsilon 0.1"),
        (
            Cost(Loss("1/10", None, "1e-9"), share=Fraction(1)),
            "epsilon 0.1 plus delta 1e-9 for partition selection (100 % of the budget)",
        ),
        (Cost(Loss(None, "1/8000")), "rho 0.000125"),
        (GAUSSIAN, "epsilon 0.1 at delta 1e-9 (1.19 % of the budget's rho)"),
        (
            Cost(Loss(None, "1/8", "1e-12"), Fraction(2), Fraction(1, 10**9)),
            "epsilon 2 at delta 1e-9 plus delta 1e-12 for partition selection",
        ),
    ],
)
def test_a_cost_is_stated_in_epsilon_where_it_has_one(cost, text):
    assert str(cost) == text


def explanation():
    return Explanation(
        cost=GAUSSIAN,
        columns=(
            ExplainedColumn("n", "discrete Gaussian, scale 30", 61.9),
            ExplainedColumn(
                "mean", "discrete Gaussian, scale 900", margin_depends_on="± 5 at 1,000 visitors, ± 0.5 at 10,000"
            ),
            ExplainedColumn("top", "exponential mechanism"),
        ),
        groups="Groups are discovered: one is shown when its noisy number of visitors reaches 61.",
        bounds=("Each visitor counts in at most 5 groups.",),
        sql="SELECT city\nFROM visits",
        notes=("<b>",),
    )


def test_an_explanation_prints_cost_margins_groups_and_bounds_and_its_details_the_sql():
    printed = repr(explanation()).splitlines()
    assert explanation().details().splitlines() == [
        "Would cost epsilon 0.1 at delta 1e-9 (1.19 % of the budget's rho). No data was",
        "read.",
        "",
        "n: ± 62 (95 %); discrete Gaussian, scale 30.",
        "mean: ± 5 at 1,000 visitors, ± 0.5 at 10,000; discrete Gaussian, scale 900.",
        "top: margin unknown; exponential mechanism.",
        "",
        "Groups are discovered: one is shown when its noisy number of visitors reaches",
        "61.",
        "Each visitor counts in at most 5 groups.",
        "",
        "<b>",
        "",
        "The engine runs:",
        "  SELECT city",
        "  FROM visits",
    ]
    assert printed == explanation().details().splitlines()[:-4]


def test_an_explanation_is_escaped_in_html():
    html = explanation()._repr_html_()
    assert set(re.findall(r"</?([a-z0-9]+)", html)) == {"p", "ul", "li", "pre", "details", "summary"}
    assert "&lt;b&gt;" in html
    assert "SELECT city\nFROM visits" in html


def test_an_explanation_is_plain_data_for_json():
    data = json.loads(json.dumps(explanation().to_dict()))
    assert data["cost"] == {
        "epsilon": 0.1,
        "rho": 0.000125,
        "delta": 0,
        "at_delta": 1e-9,
        "share": pytest.approx(1 / 84),
        "share_of": "rho",
    }
    assert data["exact"]["cost"] == {
        "epsilon": "1/10",
        "rho": "1/8000",
        "delta": "0",
        "at_delta": "1/1000000000",
        "share": "1/84",
        "share_of": "rho",
    }
    assert [column["margin"] for column in data["columns"]] == [61.9, None, None]
    assert data["sql"] == "SELECT city\nFROM visits"
    pure = Explanation(cost=Cost(Loss("1/10")), columns=()).to_dict()["cost"]
    assert (pure["epsilon"], pure["at_delta"], pure["share"], pure["share_of"]) == (0.1, 0, None, None)
