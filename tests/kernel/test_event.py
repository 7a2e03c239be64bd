"""Events as data: canonical, of bounded length, and storable in every database."""

import pytest

from discreet.kernel.event import Event, bounded_text, canonical_json, combine_mechanisms

LONGEST = 1_000_000


def made(**parts):
    return Event(**{"mechanism": "{}", "sensitivity": "{}", "question": "q", **parts})


def test_canonical_json_has_one_text_for_equal_data():
    assert canonical_json({"b": [1, None], "a": {"d": "x", "c": True}}) == '{"a":{"c":true,"d":"x"},"b":[1,null]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


@pytest.mark.parametrize("text", ["a", "ab", "Zoë \U0001f600", "\ud7ff\ue000"])
def test_a_bounded_text_is_returned(text):
    assert bounded_text(text, "name", max_length=len(text)) == text


@pytest.mark.parametrize(
    ("value", "error"),
    [(1, TypeError), (b"a", TypeError), (None, TypeError), ("", ValueError), ("abcd", ValueError)]
    + [(f"a{bad}", ValueError) for bad in ("\0", "\ud800", "\udfff", "\udabc")],
)
def test_another_text_is_refused_by_name(value, error):
    with pytest.raises(error, match=r"^name must"):
        bounded_text(value, "name", max_length=3)


@pytest.mark.parametrize(
    "longest",
    [
        {"by": "b" * 200},
        {"question": "q" * LONGEST},
        {"mechanism": '"' + "m" * (LONGEST - 2) + '"'},
        {"sensitivity": '"' + "s" * (LONGEST - 2) + '"'},
    ],
    ids=lambda longest: next(iter(longest)),
)
def test_the_longest_texts_of_an_event_are_accepted_and_longer_ones_refused(longest):
    made(**longest)
    ((name, text),) = longest.items()
    with pytest.raises(ValueError, match=f"^{name} must have 1 to {len(text)} characters"):
        made(**{name: text[0] + text})
    with pytest.raises(TypeError, match=f"^{name} must be a str"):
        made(**{name: 1})


@pytest.mark.parametrize("text", ["laplace", '{"b":1,"a":2}', '{"a": 1}', "NaN", "[" * 100_000, "[1"])
def test_a_mechanism_and_its_sensitivity_are_canonical(text):
    for name in ("mechanism", "sensitivity"):
        with pytest.raises(ValueError, match=f"^{name} must be canonical JSON"):
            made(**{name: text})


class Text(str):
    """A text that could be anything."""

    __slots__ = ()


@pytest.mark.parametrize(
    "wrong",
    ["a", ["a"], [("a",)], (["a"],), (("a",), ["b"]), (("a" * 101,),), (("a", 1),), ((b"a",),), ((Text("a"),),)],
)
def test_fingerprints_and_what_they_follow_are_tuples_of_short_texts(wrong):
    for name in ("fingerprints", "follows"):
        with pytest.raises(TypeError, match=f"^{name} must be tuples of short texts"):
            made(**{name: wrong})


def test_short_texts_have_at_most_a_hundred_characters():
    for parts in ((), ((),), (("a" * 100, ""),), (("a",), ("b", "c"))):
        assert made(fingerprints=parts, follows=parts).follows == parts


def test_one_mechanism_stays_as_it_is_and_several_become_one():
    one, two = ('{"name":"laplace"}', '{"l1":"1"}'), ('{"name":"gaussian"}', '{"l1":"2"}')
    assert combine_mechanisms([one]) == one
    assert combine_mechanisms([one, two]) == (
        '{"name":"several","parts":[{"name":"laplace"},{"name":"gaussian"}]}',
        '[{"l1":"1"},{"l1":"2"}]',
    )
    assert combine_mechanisms([two, one, one])[1] == '[{"l1":"2"},{"l1":"1"},{"l1":"1"}]'
