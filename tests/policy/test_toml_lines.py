"""The line of every key is found, however the file is written."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_examples import REALISTIC, SMALL

from discreet.policy.toml import key_lines

TEXT = """\
# [not.a.header]
top = 1

[tables.x.columns]   # [nor.this]
a = { type = "real", between = [
  0,
  1,
], note = '''
b = 1''' }
"b c".d = 5
e . f = [[1], [
  2]]
text = \"\"\"
[h]
g = 1 \\"\"\" still inside
\"\"\"
'q''' = 1
[[list]]
z = 1979-05-27 07:32:00
[[ list ]]
y = 0.5
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("tables",), 4),
        (("tables", "x", "columns"), 4),
        (("tables", "x", "columns", "a"), 5),
        (("tables", "x", "columns", "a", "type"), 5),
        (("tables", "x", "columns", "a", "between"), 5),
        (("tables", "x", "columns", "a", "between", 0), 6),
        (("tables", "x", "columns", "a", "between", 1), 7),
        (("tables", "x", "columns", "a", "note"), 8),
        (("tables", "x", "columns", "b c", "d"), 10),
        (("tables", "x", "columns", "e", "f"), 11),
        (("tables", "x", "columns", "e", "f", 1, 0), 12),
        (("tables", "x", "columns", "text"), 13),
        (("list",), 18),
        (("list", "z"), 19),
        (("list", "y"), 21),
    ],
)
def test_the_line_of_every_key_is_found(path, line):
    assert key_lines(TEXT.replace("'q''' = 1", "q = 1"))[path] == line


def test_comments_and_texts_are_not_keys():
    found = key_lines(TEXT.replace("'q''' = 1", "q = 1"))
    assert {path[0] for path in found} == {"top", "tables", "list"}
    assert {path[3] for path in found if len(path) == 4} == {"a", "b c", "e", "text", "q"}


def paths(value, path=()):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*path, key))


@pytest.mark.parametrize("text", [SMALL, *REALISTIC.values()])
def test_every_key_of_the_examples_is_found_on_a_line_that_has_it(text):
    lines, found = text.splitlines(), key_lines(text)
    for path in paths(tomllib.loads(text)):
        name = next(part for part in reversed(path) if isinstance(part, str))
        assert str(name) in lines[found[path] - 1]


@given(st.text(max_size=60) | st.text(alphabet="a.=[]{}\"'#,\n \\1", max_size=60))
def test_any_text_is_scanned_to_its_end(text):
    key_lines(text) if _is_toml(text) else None


def _is_toml(text):
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


@given(
    st.recursive(
        st.integers() | st.text(alphabet='ab]}"#', max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a".] =', max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_every_path_of_any_inline_value_is_found(value):
    text = f"first = 0\n\nvalue = {_inline(value)}\n"
    values = tomllib.loads(text)
    found = key_lines(text)
    assert {path: found[path] for path in paths(values)} == {
        path: 1 if path == ("first",) else 3 for path in paths(values)
    }


def _inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inline(key)} = {_inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else str(value)
