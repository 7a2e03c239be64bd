"""The picture of an answer shows every number where it belongs, says what its bars mean, and can be read."""

import dataclasses
import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from readable import flaws

from discreet.answer.bias import Bias
from discreet.answer.model import Answer, Cost
from discreet.kernel.event import Receipt
from discreet.kernel.loss import Loss

DAYS = [dt.date(2009, 1, 1) + dt.timedelta(days=7 * week) for week in range(10)]


def answer(columns, margins):
    noise = dict.fromkeys(margins, "discrete Laplace, scale 10")
    return Answer(pa.table(columns), margins=margins, noise=noise, cost=Cost(Loss("1/10")), receipt=Receipt("5e1f"))


def counts(keys, numbers, margin=30.0, name="k"):
    return answer({name: keys, "n": numbers}, {"n": [margin] * len(numbers)})


def notes(figure):
    return figure._supxlabel.get_text()


def heights(axes):
    return [bar.get_height() for bar in axes.patches]


def lengths(axes):
    return [bar.get_width() for bar in axes.patches]


def names(labels):
    return [label.get_text() for label in labels]


def error_bars(axes):
    return [segment.tolist() for lines in axes.collections for segment in lines.get_segments()]


def test_bars_have_labels_and_error_bars():
    figure = counts(["a", "b", "c"], [1000, 1001, 1002]).plot()
    (axes,) = figure.axes
    assert heights(axes) == [1000, 1001, 1002]
    assert names(axes.get_xticklabels()) == ["a", "b", "c"]
    assert [[y for _, y in bar] for bar in error_bars(axes)] == [[970, 1030], [971, 1031], [972, 1032]]
    assert flaws(figure) == []


def test_the_title_names_measures_and_keys_and_the_bars_are_explained():
    figure = answer({"city": ["a"], "sex": ["f"], "n": [1], "x": [2]}, {"n": [1], "x": [1]}).plot()
    assert figure.get_suptitle() == "n and x by city and sex"
    assert "95 %" in notes(figure)
    assert counts(["a"], [1]).plot().axes[0].get_ylabel() == "n"


def test_an_unknown_margin_is_stated():
    figure = answer({"k": ["a", "b"], "n": [1, 2]}, {"n": [1, None]}).plot()
    assert "unknown" in notes(figure)
    assert "unknown" not in notes(counts(["a"], [1]).plot())


def test_large_numbers_have_separators_and_years_have_none():
    figure = counts([2009, 2010, 2011], [2_000_000, 3_000_000, 1_000_000], name="year").plot()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert "2,000,000" in names(axes.get_yticklabels())
    assert "2009" in names(axes.get_xticklabels())


def test_a_line_joins_times_in_their_order():
    (axes,) = answer({"day": [DAYS[2], DAYS[0], DAYS[1]], "n": [30, 10, 20]}, {"n": [1, 1, None]}).plot().axes
    assert not axes.patches
    assert axes.lines[0].get_ydata().tolist() == [10, 20, 30]
    assert axes.get_xlabel() == "day"


def test_a_line_of_one_day_is_drawn_around_it():
    (axes,) = counts([DAYS[0]], [5]).plot().axes
    low, high = axes.get_xlim()
    assert low < axes.convert_xunits(DAYS[0]) < high


def test_a_null_time_is_drawn_beside_the_line():
    figure = counts([*DAYS, None], [*range(100, 110), 40]).plot()
    line, beside = figure.axes
    assert line.lines[0].get_ydata().tolist() == list(range(100, 110))
    assert beside.lines[0].get_ydata().tolist() == [40]
    assert names(beside.get_xticklabels()) == ["NULL"]
    assert flaws(figure) == []


def test_null_the_text_null_and_an_empty_text_are_three_bars():
    (axes,) = counts([None, "NULL", ""], [1, 2, 3]).plot().axes
    assert names(axes.get_xticklabels()) == ["NULL", "'NULL'", "''"]
    assert heights(axes) == [1, 2, 3]


def test_two_keys_are_grouped_bars_with_a_colour_for_each_value_of_one():
    keys = {"city": ["Bonn", "Bonn", "Trier", "Trier", None], "sex": ["f", "m", "f", None, "m"]}
    figure = answer({**keys, "n": [1, 2, 3, 4, 5]}, {"n": [1] * 5}).plot()
    (axes,) = figure.axes
    assert names(axes.get_xticklabels()) == ["Bonn", "Trier", "NULL"]
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "sex"
    assert names(legend.get_texts()) == ["f", "m", "NULL"]
    bars = {round(bar.get_x() + bar.get_width() / 2, 2): bar.get_height() for bar in axes.patches}
    assert bars == {-0.27: 1, 0.0: 2, 0.73: 3, 1.27: 4, 2.0: 5}
    assert len({bar.get_facecolor() for bar in axes.patches}) == 3
    assert flaws(figure) == []


def test_the_key_with_few_values_has_the_colours():
    cities = [f"c{number}" for number in range(8)]
    figure = answer({"sex": ["f"] * 8 + ["m"] * 8, "city": cities * 2, "n": range(16)}, {"n": [1] * 16}).plot()
    assert names(figure.legends[0].get_texts()) == ["f", "m"]
    assert names(figure.axes[0].get_xticklabels()) == cities


def test_a_day_and_a_name_are_a_line_for_each_name():
    keys = {"day": DAYS[:3] * 2, "site": ["north"] * 3 + ["south"] * 3}
    figure = answer({**keys, "n": [1, 2, 3, 4, 5, 6]}, {"n": [1] * 6}).plot()
    lines = {line.get_label(): line for line in figure.axes[0].containers}
    assert lines["south"].lines[0].get_ydata().tolist() == [4, 5, 6]
    assert flaws(figure) == []


def test_names_that_differ_only_where_they_are_truncated_stay_distinct():
    long = ["x" * 60 + "1", "x" * 60 + "2"]
    (axes,) = answer({"k": ["a", "a"], "t": long, "n": [1, 2]}, {"n": [1, 1]}).plot().axes
    assert sorted(lengths(axes)) == [1, 2]
    places = [bar.get_y() for bar in axes.patches]
    assert len(set(places)) == 2


def test_two_rows_with_the_same_two_keys_are_two_bars():
    (axes,) = answer({"a": ["x", "x"], "b": ["y", "y"], "n": [1, 2]}, {"n": [1, 1]}).plot().axes
    assert heights(axes) == [1, 2]


def test_each_noisy_column_of_numbers_has_its_own_panel():
    one = answer(
        {"k": [1, 2], "n": [3, 4], "x": [0.5, None], "t": ["a", "b"]}, {"n": [1, 1], "x": [1, None], "t": [None] * 2}
    )
    assert [axes.get_title(loc="left") for axes in one.plot().axes] == ["n", "x"]


def test_long_names_are_drawn_beside_horizontal_bars():
    figure = counts([f"a rather long name, no. {number}" for number in range(12)], list(range(12))).plot()
    (axes,) = figure.axes
    assert lengths(axes) == list(range(12))
    assert axes.yaxis_inverted()  # the first row is the uppermost
    assert flaws(figure) == []


def test_of_many_groups_the_largest_are_drawn_and_a_note_states_it():
    figure = counts([f"c{number}" for number in range(2000)], [number % 997 for number in range(2000)]).plot()
    (axes,) = figure.axes
    assert len(axes.patches) == 30
    assert lengths(axes) == sorted((number % 997 for number in range(2000)), reverse=True)[:30]
    assert names(axes.get_yticklabels())[:2] == ["c996", "c1993"]
    assert "30 largest of 2,000" in notes(figure)
    assert flaws(figure) == []


def test_one_wide_margin_does_not_set_the_scale():
    figure = answer({"k": list("abcd"), "x": [50.0, 49, 48, 900]}, {"x": [1, 1, 2, 4000]}).plot()
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert -60 < low < high < 120
    arrows = {(line.get_marker(), *line.get_xydata()[0]) for line in axes.lines if line.get_marker() in ("^", "v")}
    assert arrows == {("^", 3, high), ("v", 3, low)}
    assert "beyond the axis" in notes(figure)


@pytest.mark.parametrize("margins", [[30, 30, 30], [1000, 1000, 1000], [10, 20, 40], [None, None, None]])
def test_usual_margins_are_shown_in_full(margins):
    figure = answer({"k": list("abc"), "n": [10, 20, 30]}, {"n": margins}).plot()
    low, high = figure.axes[0].get_ylim()
    for value, margin in zip((10, 20, 30), margins, strict=True):
        assert low <= value - (margin or 0)
        assert value + (margin or 0) <= high
    assert "beyond" not in notes(figure)


def test_margins_of_many_days_are_a_band():
    days = [dt.date(2009, 1, 1) + dt.timedelta(days=day) for day in range(100)]
    (axes,) = counts(days, list(range(100))).plot().axes
    assert axes.collections[0].get_paths()[0].vertices[:, 1].max() == 99 + 30


def test_a_single_number_is_drawn_and_written():
    figure = answer({"n": [731_123]}, {"n": [30_000]}).plot()
    (axes,) = figure.axes
    assert heights(axes) == [731_123]
    assert axes.get_title(loc="left") == "n: 731,000 ± 30,000"
    assert figure.get_suptitle() == "n"
    assert flaws(figure) == []


def test_the_plot_of_an_empty_answer_states_it():
    none = answer({"k": pa.array([], pa.string()), "n": pa.array([], pa.int64())}, {"n": []}).plot()
    assert "no rows" in none.axes[0].texts[0].get_text()
    assert none.get_suptitle() == "n by k"


@pytest.mark.long
def test_names_are_drawn_as_they_are_and_not_as_formulas():
    keys = {"$\\frac$": ["$\\undefined$", "b"], "$k$": ["$\\x$", "$\\y$"]}
    answer({**keys, "$n$": [1, 2]}, {"$n$": [1, 1]}).plot().draw_without_rendering()  # a formula would fail here
    answer({"$\\frac$": ["$\\undefined$"], "$n$": [1]}, {"$n$": [1]}).plot().draw_without_rendering()
    answer({"$\\frac$": [1, 2], "$n$": [1, 2]}, {"$n$": [1, 1]}).plot().draw_without_rendering()


def test_an_answer_without_noisy_numbers_cannot_be_plotted():
    with pytest.raises(ValueError, match="at least one noisy column"):
        answer({"k": ["a"]}, {}).plot()


def test_drawing_leaves_the_users_settings_alone():
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 17, "axes.spines.top": True}):
        before = dict(mpl.rcParams)
        counts(["a"], [1]).plot()
        assert dict(mpl.rcParams) == before


def test_nan_is_not_drawn_and_affects_nothing_else():
    (axes,) = counts(["a", "b"], [np.nan, 3.0]).plot().axes
    assert np.isfinite(axes.get_ylim()).all()


def with_bias(one, *estimates):
    return dataclasses.replace(one, bias={"n": [Bias(0, estimate) for estimate in estimates]})


def thin_lines(axes):
    return [line for line in axes.lines if line.get_linewidth() == 0.8 and len(line.get_xdata()) == 2]


def test_a_thin_line_goes_from_the_value_up_by_a_bias_that_exceeds_the_margin():
    figure = with_bias(counts(["a", "b", "c"], [1000, 800, 600]), 320.0, 30.0, None).plot()
    (axes,) = figure.axes
    assert [list(line.get_ydata()) for line in thin_lines(axes)] == [[1000, 1320]]
    assert axes.get_ylim()[1] >= 1320
    assert "clipping bias" in notes(figure)
    assert flaws(figure) == []
    assert "clipping bias" not in notes(with_bias(counts(["a"], [1000]), 20.0).plot())


def test_the_bias_of_horizontal_bars_and_of_lines_is_drawn_too():
    keys = [f"a rather long name {i}" for i in range(15)]
    (bars,) = with_bias(counts(keys, [1000] * 15), *[90.0] * 15).plot().axes
    assert [list(line.get_xdata()) for line in thin_lines(bars)] == [[1000, 1090]] * 15
    figure = with_bias(counts([*DAYS, None], [1000] * 11), *[90.0] * 11).plot()
    assert [len(thin_lines(axes)) for axes in figure.axes] == [10, 1]
    assert flaws(figure) == []


def test_the_bias_of_many_days_is_one_line():
    days = [dt.date(2009, 1, 1) + dt.timedelta(days=day) for day in range(100)]
    (axes,) = with_bias(counts(days, [1000] * 100), *[90.0] * 100).plot().axes
    assert any(np.all(np.asarray(line.get_ydata()) == 1090) for line in axes.lines)
