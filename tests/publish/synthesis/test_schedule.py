"""The releases are fixed beforehand, and use the whole budget."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.publish.synthesis import SynthesisSettings, release_schedule

shares = st.fractions(0, Fraction(2, 5), max_denominator=100)
positive_shares = st.fractions(Fraction(1, 100), Fraction(2, 5), max_denominator=100)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=6),
    st.builds(
        SynthesisSettings,
        rounds=st.integers(1, 4),
        model_cells=st.integers(1, 1000),
        columns_share=positive_shares,
        distances_share=positive_shares,
        quality_share=shares,
    ),
)
def test_the_shares_add_up_to_one(sizes, settings):
    schedule = release_schedule(sizes, settings)
    assert sum(release.share for release in schedule) == 1
    assert all(release.share > 0 and release.count > 0 for release in schedule)


def test_without_pairs_the_single_columns_get_everything():
    assert [(release.kind, release.share) for release in release_schedule([5], SynthesisSettings())] == [("tables", 1)]
    assert len(release_schedule([1, 1, 9], SynthesisSettings())) == 1
    assert len(release_schedule([9, 9], SynthesisSettings(model_cells=80))) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_cells", 0),
        ("rounds", 0),
        ("steps", 0),
        ("columns_share", 0),
        ("columns_share", 0.97),
        ("distances_share", 1),
        ("distances_share", 0),
        ("quality_share", -0.1),
        ("norm", 3),
        ("group_share", 0),
        ("group_share", 2),
    ],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        SynthesisSettings(**{name: value})


def test_shares_are_exact_decimals():
    assert SynthesisSettings(columns_share=0.1).columns_share == Fraction(1, 10)
