"""The report on a table, as data: what the terminal and the page both show."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from discreet.anonymity.measuring.risk import Risk
from discreet.anonymity.showing.how import Released, how
from discreet.anonymity.showing.parts import Part, classes, exposures, links, losses, telling_apart, told_apart


@dataclass(frozen=True)
class Report:
    """A title, the parts, and the line on what is not protected."""

    title: str
    parts: tuple[Part, ...]
    not_protected: str


def report(result: Risk | Released) -> Report:
    """Say what was measured of a table, or of a table and its release.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.measuring.measuring import measure
    >>> made = report(measure(pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "flu", "no"]}), "age", "ill"))
    >>> made.title
    '3 rows, told apart by age'
    >>> [part.title for part in made.parts]
    ['Classes', 'What the classes tell: ill', 'Linking rows to people', 'What singles people out']
    >>> made.parts[1].sentences
    ('ill has one value only in 2 classes: rows 1-3.',)
    """
    if isinstance(result, Risk):
        first, parts = result, [*_of({"": result}), telling_apart(result), *losses(result)]
    else:
        first, seen = result.before, {"before": result.before, "after": result.after}
        made = Part(f"Made coarser ({result.method})", tuple(how(result)))
        parts = [made, *_of(seen), told_apart(result.before, result.after), *losses(result.after)]
    return Report(f"{first.rows:,} rows, told apart by {', '.join(first.quasi)}", tuple(parts), result.not_protected)


def clean(text: str) -> str:
    r"""Replace what a terminal or a browser would obey instead of showing: names and values are anybody's.

    >>> clean("age\x1b[31m")
    'age�[31m'
    """
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def _of(seen: Mapping[str, Risk]) -> Iterator[Part]:
    yield classes(seen)
    yield from exposures(seen)
    yield links(seen)
