"""The report says what was measured, and nothing that it is given can run or hide in it."""

import io
import re
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from rich.console import Console

from discreet.anonymity import anonymise_and_measure, measure, prefixes
from discreet.anonymity.report.contents import build_report, render_fragment, render_page
from discreet.cli.anonymise_pipeline import print_report
from discreet.html_page import ChartBar, bar_chart, make_printable

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J\u202e\ud800"
VOID = {"meta", "rect", "br"}


def people():
    return pa.table(
        {
            "zip": ["13053", "13068", "13068", "13053", "14853", "14853", "14850", "14850"],
            "age": [28, 29, 21, 23, 50, 55, 47, 49],
            "ill": ["heart", "heart", "viral", "viral", "cancer", "cancer", "cancer", "cancer"],
        }
    )


def part(made, title):
    (found,) = [each for each in made.sections if each.title == title]
    return found


def numbers(made, title):
    return {row[0]: row[1:-1] for row in part(made, title).table.rows}


class Outline(HTMLParser):
    """Checks that every element is closed where it should be, and keeps names, attributes and text."""

    def __init__(self):
        super().__init__()
        self.open, self.names, self.attributes, self.text = [], set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def outline(html):
    found = Outline()
    found.feed(html)
    found.close()
    assert found.open == []
    return found


def printed(made, width=100):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_report(made, console)
    return console.file.getvalue()


def test_a_measurement_is_reported_in_sections():
    made = build_report(measure(people(), ["zip", "age"], "ill"))
    assert made.title == "8 rows, quasi-identifiers: zip, age"
    assert numbers(made, "Equivalence classes") == {
        "k": ("1",),
        "classes": ("8",),
        "largest": ("1",),
        "unique": ("8",),
    }
    assert numbers(made, "Attribute disclosure: ill")["l"] == ("1",)
    assert numbers(made, "Identity disclosure")["prosecutor"] == ("100 %",)
    assert made.not_protected.startswith("Not protected against: linkage attack (8 rows")


def test_a_release_is_reported_beside_its_original():
    done = anonymise_and_measure(people(), ["zip", "age"], 4, "ill", hierarchies={"zip": prefixes(5)})
    made = build_report(done)
    rows, tree = part(made, "Generalisation (mondrian)").sentences
    assert rows == "8 of 8 rows were released, 0 suppressed."
    assert tree.startswith("Generalised by a hierarchy: zip (prefixes(5)); ")
    (only,) = part(build_report(anonymise_and_measure(people(), "zip", 4)), "Generalisation (mondrian)").sentences
    assert only == rows
    assert part(made, "Equivalence classes").table.headers == ("", "before", "after", "")
    assert numbers(made, "Equivalence classes")["k"] == ("1", str(done.after.k))
    assert numbers(made, "Information loss")["suppressed"] == ("0",)
    assert [bar.label for bar in part(made, "Information loss").bars] == ["zip", "age"]
    assert made.not_protected == done.not_protected


def test_levels_of_a_full_domain_release_are_reported():
    done = anonymise_and_measure(people(), "zip", 4, hierarchies={"zip": prefixes(5)}, method="full-domain")
    told = part(build_report(done), "Generalisation (full-domain)").sentences[1]
    assert told.startswith(f"Generalisation levels: zip {done.levels['zip']} (")


def test_a_full_domain_release_without_hierarchies_is_reported_as_such():
    done = anonymise_and_measure(people(), ["zip", "age"], 4, method="full-domain")
    assert (
        part(build_report(done), "Generalisation (full-domain)").sentences[-1].startswith("No hierarchy for zip, age: ")
    )


def test_a_release_reports_what_singled_people_out_before():
    told = part(build_report(anonymise_and_measure(people(), ["zip", "age"], 4)), "Uniqueness: before")
    assert told.bars == part(build_report(measure(people(), ["zip", "age"])), "Uniqueness").bars
    assert "no row is unique" in told.sentences[-1]
    still = part(build_report(anonymise_and_measure(people(), ["zip", "age"], 1)), "Uniqueness: before")
    assert "still unique" in still.sentences[-1]


def test_homogeneous_rows_are_numbered_from_one_and_limited():
    risk = measure(pa.table({"q": [1, 1, 2, 2, 3, 3], "s": list("aaabcc")}), "q", "s")
    assert part(build_report(risk), "Attribute disclosure: s").sentences == (
        "s has a single value in 2 classes: rows 1-2, 5-6.",
    )
    scattered = measure(pa.table({"q": [*range(99), 7], "s": ["a"] * 50 + ["b"] * 50}), "q", "s")
    (told,) = part(build_report(scattered), "Attribute disclosure: s").sentences
    assert told.endswith("rows 1-7, 9-99.")
    every_other = pa.table({"q": [i if i % 2 else 0 for i in range(100)], "s": ["a", "b"] * 50})
    (told,) = part(build_report(measure(every_other, "q", "s")), "Attribute disclosure: s").sentences
    assert told.endswith("rows 1-100.")
    halves = pa.table({"q": [i // 2 for i in range(100)], "s": [str(i % 4 // 2 * (i % 2)) for i in range(100)]})
    (told,) = part(build_report(measure(halves, "q", "s")), "Attribute disclosure: s").sentences
    assert told.endswith("45-46, ….")


def test_a_population_is_reported():
    town = pa.table({"zip": ["13053"] * 3 + ["14850"], "age": [28, 28, 23, 47]})
    made = build_report(measure(people(), ["zip", "age"], population=town))
    found = numbers(made, "Identity disclosure")
    assert found["unique match"] == ("2",)
    assert found["no match"] == ("5",)
    assert found["journalist"] == ("100 %",)
    assert found["marketer"] == ("31.2 %",)  # 2 rows fit one person and one fits two, of 8


def test_bars_of_class_sizes_add_up_to_all_rows():
    table = pa.table({"q": [0] + [1] * 3 + [2] * 7 + [3] * 150})
    found = part(build_report(measure(table, "q")), "Equivalence classes").bars
    assert [bar.label for bar in found] == ["unique", "class of 2-4", "class of 5-9", "class of 100 or more"]
    assert sum(bar.share for bar in found) == pytest.approx(1)


def test_columns_that_single_people_out_are_named_each_and_worst_together():
    table = pa.table({"a": [1, 1, 1, 1], "b": [1, 2, 1, 2], "c": [1, 1, 2, 2]})
    found = part(build_report(measure(table, ["a", "b", "c"])), "Uniqueness").bars
    assert [(bar.label, bar.text) for bar in found] == [
        ("a", "0 %"),
        ("b", "0 %"),
        ("c", "0 %"),
        ("all but a", "100 %"),
        ("all 3", "100 %"),
    ]


def test_shares_near_0_or_100_percent_are_not_shown_as_such():
    table = pa.table({"q": [0] * 5000 + [1]})
    found = part(build_report(measure(table, "q")), "Equivalence classes").bars
    assert [bar.text for bar in found] == ["< 0.1 %", "> 99.9 %"]


@pytest.mark.parametrize("write", [render_page, render_fragment])
def test_hostile_names_and_values_are_shown_and_never_executed(write):
    table = pa.table({HOSTILE.replace("\ud800", ""): ["a", "b", "b"], "s": ["x", "y", "y"]})
    html = write(measure(table, table.column_names[0], "s"))
    assert "<script" not in html
    found = outline(html)
    assert "<script>alert(1)</script>\"'&�[2J�" in "".join(found.text)
    assert "script" not in found.names
    assert not [name for name in found.attributes if name.startswith("on") or name in {"href", "src"}]
    html.encode()


def test_the_page_is_self_contained():
    html = render_page(anonymise_and_measure(people(), ["zip", "age"], 4, "ill"))
    found = outline(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not found.names & {"script", "link", "img", "iframe", "object", "style "}
    assert "default-src 'none'" in html
    assert [place for place in re.findall(r"https?://[^\"'\s<]+", html) if place != "http://www.w3.org/2000/svg"] == []
    assert "Not protected against: " in "".join(found.text)
    assert html.count("<svg") == 3


def test_a_notebook_shows_an_anonymisation_result():
    done = anonymise_and_measure(people(), ["zip", "age"], 4, "ill")
    assert done._repr_html_() == render_fragment(done)


def test_bars_stay_inside_the_chart():
    drawn = bar_chart([ChartBar("x" * 100, 7.0, "700 %"), ChartBar("y", -1.0, "")], "Title & <text>")
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([0-9.]+)"', drawn)]
    assert widths == [370.0, 0.0]
    assert "Title &amp; &lt;text&gt;" in drawn
    assert "x" * 41 not in drawn
    outline(drawn)


def test_the_terminal_shows_the_same_and_executes_nothing():
    table = pa.table({"a\x1b[2J\nb": ["a", "b", "b"], "s[red]": ["x", "y", "y"]})
    text = printed(build_report(measure(table, "a\x1b[2J\nb", "s[red]")))
    assert "\x1b" not in text
    assert "quasi-identifiers: a�[2J�b" in text
    assert "Attribute disclosure: s[red]" in text
    assert re.search(r"k +1 +size of the smallest class", text)


@pytest.mark.parametrize("width", [20, 60, 200])
def test_the_terminal_may_be_narrow_or_wide(width):
    text = printed(build_report(anonymise_and_measure(people(), ["zip", "age"], 4, "ill")), width)
    assert max(map(len, text.splitlines())) <= width + 3
    assert "Information loss" in text


def test_invisible_characters_are_replaced():
    assert make_printable("a\x00b\u202ec\ud800d é 漢") == "a�b�c�d é 漢"
