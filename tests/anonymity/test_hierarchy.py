"""Hierarchies: reading them, making them by rule, and applying them to columns of any type."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from discreet.anonymity import intervals, prefixes, read_hierarchy
from discreet.anonymity.encoding.encoded_table import encode_column
from discreet.anonymity.hierarchies.taxonomy_tree import build_tree
from tests.anonymity.samples import DATA

AGES = "28;<30;*\n31;30-39;*\n37;30-39;*\n41;>=40;*"


def column(values, kind=None):
    return encode_column(pa.table({"it": pa.array(values, kind)}), "it")


def labels(values, hierarchy, level, kind=None):
    """Return the label of each value on a level."""
    coded = column(values, kind)
    tree = build_tree(coded, hierarchy)
    return [tree.labels[level][tree.codes[level][code]] for code in coded.codes]


def test_a_hierarchy_is_read_from_a_text_or_a_file(tmp_path):
    file = tmp_path / "age.csv"
    file.write_text("\ufeff" + AGES + "\n\n", encoding="utf-8")
    for source in (AGES, file, str(file)):
        found = read_hierarchy(source)
        assert found.height == 2
        assert found.leaves == ("28", "31", "37", "41")
        assert found.path("41") == (">=40", "*")


def test_quotes_protect_a_semicolon():
    assert read_hierarchy('"a;b";"both; of them";*\nc;c;*').path("a;b") == ("both; of them", "*")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b;*\nc;*", "3 in line 1, 2 in line 2"),
        ("a;x;*\na;y;*", "'a' on level 0 has two parents, 'x' and 'y'"),
        ("a;x;1;*\nb;x;2;*", "'x' on level 1 has two parents, '1' and '2'"),
        ("a\nb", "no levels"),
        (";\n;", "no levels"),
    ],
)
def test_labels_that_are_not_a_tree_are_refused(text, words):
    with pytest.raises(ValueError, match=f"^source: .*{words}"):
        read_hierarchy(text)


def test_a_missing_file_raises_its_own_error():
    words = r"^source: file no_such_file.csv does not exist\. .* lines such as"
    with pytest.raises(FileNotFoundError, match=words):
        read_hierarchy("no_such_file.csv")


def test_a_source_of_another_type_or_encoding_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"^source: .* not dict\."):
        read_hierarchy({"28": "20-29"})
    (tmp_path / "name.csv").write_bytes("Zo\xeb;*\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"^source: the hierarchy name.csv .* UTF-8"):
        read_hierarchy(tmp_path / "name.csv")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([31, 37], pa.int8()),
        ([31.0, 37.0], pa.float64()),
        ([Decimal("31.00"), Decimal("37.00")], pa.decimal128(6, 2)),
        (["31", "37"], pa.string()),
        (["31", "37"], pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_values_of_any_type_find_their_line(values, kind):
    assert labels(values, read_hierarchy(AGES), 1, kind) == ["30-39", "30-39"]


def test_booleans_and_dates_find_their_line():
    assert labels([True, False], read_hierarchy("TRUE;yes;*\nfalse;no;*"), 1) == ["yes", "no"]
    days = read_hierarchy("2024-01-31;January;*\n2024-02-01;February;*")
    assert labels([date(2024, 2, 1)], days, 1) == ["February"]


def test_a_value_without_a_line_is_refused_by_its_row_and_not_shown():
    with pytest.raises(ValueError, match=r"1 of the 2 distinct values of 'it', the first in row 2") as seen:
        build_tree(column([31, 31, 99]), read_hierarchy(AGES))
    assert "99" not in str(seen.value)


def test_losses_count_all_leaves_that_are_listed():
    tree = build_tree(column([28, 31]), read_hierarchy(AGES))
    assert tree.losses.tolist() == [[0, 0], [0, 0.5], [1, 1]]


def test_losses_of_a_rule_count_the_values_of_the_column():
    tree = build_tree(column(["13053", "13068", "14850", "14853"]), prefixes(5))
    assert tree.losses[:, 0].tolist() == [0, 0, 0.5, 0.5, 1, 1]
    assert tree.losses[:, 3].tolist() == [0, 0.5, 0.5, 0.5, 1, 1]


def test_a_hierarchy_without_a_last_label_gets_one():
    tree = build_tree(column(["a", "b", "c"]), read_hierarchy("a;x\nb;x\nc;y"))
    assert tree.labels[1:] == (("x", "y"), ("*",))
    assert tree.height == 2


def test_null_stays_null_up_to_the_last_level():
    hierarchy = read_hierarchy(AGES)
    assert labels([28, None], hierarchy, 1) == ["<30", None]
    assert labels([28, None], hierarchy, 2) == ["*", "*"]
    assert build_tree(column([28, None]), hierarchy).losses.tolist() == [[0, 0], [0, 0], [1, 1]]


def test_a_column_without_a_hierarchy_has_two_levels():
    tree = build_tree(column(["a", None, "b"]))
    assert tree.labels == (("a", "b", None), ("*",))
    assert tree.losses.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_intervals_of_integers_and_reals():
    assert labels([0, 37, 100], intervals(0, 100, [5, 20]), 1) == ["0-4", "35-39", "100"]
    assert labels([0, 37, 100], intervals(0, 100, [5, 20]), 2) == ["0-19", "20-39", "100"]
    assert labels([0.1, 0.3], intervals(0, 1, 0.1), 1) == ["[0.1, 0.2)", "[0.3, 0.4)"]
    assert labels([-7, 3], intervals(-10, 9, 5), 1) == ["-10 to -6", "0-4"]
    assert labels([2.5, 3.0], intervals(0, 9, 5), 1) == ["[0, 5)", "[0, 5)"]


def test_every_interval_lies_in_one_of_the_next_level():
    numbers = np.round(np.arange(0, 3, 0.05), 2).tolist()
    tree = build_tree(column(numbers), intervals(0, 3, [0.1, 0.3, 0.6]))
    for level in range(tree.height):
        above = {}
        for low, high in zip(tree.codes[level].tolist(), tree.codes[level + 1].tolist(), strict=True):
            assert above.setdefault(low, high) == high


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 10, [2, 3]), "multiple"),
        ((0, 10, [4, 2]), "multiple"),
        ((0, 10, []), "at least one width"),
        ((0, 10, 0), "above 0"),
        ((10, 0, 2), "high must be above low"),
    ],
)
def test_intervals_that_do_not_nest_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        intervals(*arguments)


def test_intervals_of_texts_are_refused():
    with pytest.raises(TypeError, match="low must be a number"):
        intervals("a", 10, 2)


@pytest.mark.parametrize("value", ["12", True, date(2024, 1, 1), 101, -1, float("inf")])
def test_intervals_have_no_path_for_other_values(value):
    assert intervals(0, 100, 10).path(value) is None


def test_prefixes_hide_the_last_characters():
    assert labels(["13053", "14850"], prefixes(5), 2) == ["130**", "148**"]
    assert labels([2139, 10025], prefixes(5), 3) == ["02***", "10***"]


@pytest.mark.parametrize("value", ["1305", "130531", 1.5, True, -123])
def test_prefixes_have_no_path_for_codes_of_other_lengths(value):
    assert prefixes(5).path(value) is None


@pytest.mark.parametrize("length", [0, -1, 2.0, True, "5"])
def test_prefixes_of_no_length_are_refused(length):
    with pytest.raises(ValueError, match="length"):
        prefixes(length)


@pytest.mark.skipif(not (DATA / "adult_hierarchies").is_dir(), reason="the shared data are not here")
def test_the_shared_hierarchies_cover_their_columns():
    import pyarrow.parquet as pq

    adult = pq.read_table(DATA / "adult.parquet")
    heights = {}
    for file in sorted((DATA / "adult_hierarchies").iterdir()):
        name = {"salary-class": "income"}.get(file.stem, file.stem.replace("-", "_"))
        tree = build_tree(encode_column(adult, name), read_hierarchy(file))
        assert len(tree.labels[-1]) == 1
        assert (np.diff(tree.losses, axis=0) >= 0).all()
        heights[name] = tree.height
    assert (heights["age"], heights["education"], heights["sex"]) == (4, 3, 1)


def test_a_number_on_two_lines_with_different_labels_is_refused():
    with pytest.raises(ValueError, match=r"'30' in line 1 and '30.0' in line 3 are the same number"):
        read_hierarchy("30;x;*\n\n30.0;y;*")
    assert read_hierarchy("30;x;*\n30.0;x;*").path(30) == ("x", "*")


def test_an_ambiguous_real_has_no_path_in_a_hierarchy():
    ids = read_hierarchy("12345678901234567890;x;*\n12345678901234567891;y;*")
    assert ids.path(12345678901234567890.0) is None
    assert ids.path(12345678901234567891) == ids.path("12345678901234567891") == ("y", "*")


def test_a_field_too_long_to_read_is_refused_with_its_line():
    with pytest.raises(ValueError, match=r"line 2 .*\(field larger than field limit"):
        read_hierarchy(f"30;x;*\n{'3' * 140_000};y;*")
