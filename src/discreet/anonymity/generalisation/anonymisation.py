"""anonymise: generalise a table until it is k-anonymous, l-diverse and t-close."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedTable, encode_table
from discreet.anonymity.generalisation.privacy_criteria import AnonymityParameters, build_criteria
from discreet.anonymity.generalisation.recoding import (
    Recoding,
    build_trees,
    describe_attacks_on_recoding,
    max_suppressed_rows,
    recode_by_full_domain,
    recode_by_mondrian,
)
from discreet.anonymity.hierarchies.hierarchy import Hierarchy
from discreet.anonymity.metrics.information_loss import summarise_loss
from discreet.anonymity.metrics.measurement import measure
from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.report.contents import describe_hierarchies
from discreet.anonymity.report.html import render_fragment

_MONDRIAN, _FULL_DOMAIN = METHODS = ("mondrian", "full-domain")
_Hierarchies = Mapping[str, Hierarchy] | None


@dataclass(frozen=True, repr=False)
class AnonymisationResult:
    """A released table, how it was made, and what was measured of the original and of the release.

    levels        full-domain: the level of each column; None for Mondrian, which has others in every class
    found         full-domain: whether these are the best of all levels
    hierarchies   what made each column coarser, for those that have a hierarchy: its name
    suppressed    the rows that were left out, and `kept_rows`: the positions of the others; None if these are all

    >>> import pyarrow as pa
    >>> done = anonymise_and_measure(pa.table({"age": [23, 29, 35, 41], "ill": list("abab")}), "age", 2, "ill")
    >>> done.table["age"].to_pylist(), done.after.k, done.after.loss.ncp
    (['23-29', '23-29', '35-41', '35-41'], 2, 0.333333333333)
    """

    table: Any
    method: str
    k: int
    levels: Mapping[str, int] | None
    optimality: str
    hierarchies: Mapping[str, str]
    suppressed: int
    kept_rows: np.ndarray | None = field(compare=False)
    before: Risk
    after: Risk
    not_protected: str

    def __str__(self) -> str:
        rows = f"{self.method}: {self.after.rows:,} of {self.before.rows:,} rows released, {self.suppressed:,} left out"
        levels = ", ".join(f"{name} {level}" for name, level in (self.levels or {}).items())
        level_lines = [f"levels: {levels} ({self.optimality})"] if levels else []
        return "\n".join([rows, *level_lines, *describe_hierarchies(self), str(self.after)])

    __repr__ = __str__  # as a Risk shows itself

    def _repr_html_(self) -> str:
        return render_fragment(self)


def anonymise(  # noqa: PLR0913, PLR0917 - the rarer ones by name only
    table: Any,
    quasi: Any,
    k: int,
    sensitive: Any = None,
    l: float | None = None,  # noqa: E741 - what everybody calls it
    t: float | None = None,
    hierarchies: _Hierarchies = None,
    *,
    method: str = _MONDRIAN,
    suppress: Any = 0,
    diversity: str = "distinct",
    c: float | None = None,
) -> Any:
    """Make the `quasi` columns coarser until every row is like at least k-1 others in them.

    Every class of like rows then also has `l` well-represented values of each sensitive column (counted as
    `diversity` says: distinct, entropy or recursive, with `c`), and these are within `t` of the whole release.
    "mondrian" gives each class its own ranges, sets or labels, as narrow as its rows allow: the ends of a range are
    values of somebody in the class. "full-domain" has one level of the hierarchies for each column, the best there
    is, and may leave out rows of small classes, at most the share `suppress`; Mondrian never needs to.

    The release is of the library that the table is of. Other columns are as they were. What else the table carried
    stays behind, for it may name people: metadata, attrs, categories that no row has, and the index of pandas, whose
    gaps would also tell which rows went; rows count from 0. What the release does not protect against is in its attrs
    (pandas) or metadata (Arrow), as "not_protected".

    Rows keep their order: shuffle them before you publish if the order says something. With pandas that is
    `frame.sample(frac=1, ignore_index=True)`, with Arrow `table.take(np.random.default_rng().permutation(len(table)))`.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [23, 29, 35, 41], "job": ["cook", "judge", "cook", "cook"], "ill": list("abab")})
    >>> anonymise(people, ["age", "job"], 2).to_pydict()
    {'age': ['23-29', '23-29', '35-41', '35-41'], 'job': ['*', '*', 'cook', 'cook'], 'ill': ['a', 'b', 'a', 'b']}
    """
    encoded = encode_table(table, quasi, sensitive)
    recoding, open_attacks = _recode(encoded, AnonymityParameters(k, l, t, diversity, c), hierarchies, method, suppress)
    return encoded.source.rebuild(recoding.recoded_columns, recoding.kept_rows, note=open_attacks)


def anonymise_and_measure(  # noqa: PLR0913, PLR0917 - those of anonymise
    table: Any,
    quasi: Any,
    k: int,
    sensitive: Any = None,
    l: float | None = None,  # noqa: E741 - what everybody calls it
    t: float | None = None,
    hierarchies: _Hierarchies = None,
    *,
    method: str = _MONDRIAN,
    suppress: Any = 0,
    diversity: str = "distinct",
    c: float | None = None,
) -> AnonymisationResult:
    """Do as `anonymise` does, and measure the table before and after; `help(anonymise)` explains the arguments.

    >>> import pyarrow as pa
    >>> from discreet.anonymity import prefixes
    >>> people = pa.table({"age": [23, 23, 47, 47], "zip": ["13053", "13068", "14850", "14853"]})
    >>> done = anonymise_and_measure(people, ["age", "zip"], 2, hierarchies={"zip": prefixes(5)}, method="full-domain")
    >>> done.before.k, done.after.k, done.levels
    (1, 2, {'age': 0, 'zip': 2})
    """
    encoded = encode_table(table, quasi, sensitive)
    recoding, open_attacks = _recode(encoded, AnonymityParameters(k, l, t, diversity, c), hierarchies, method, suppress)
    release = encoded.source.rebuild(recoding.recoded_columns, recoding.kept_rows, note=open_attacks)
    after = measure(release, quasi, sensitive, hierarchies=hierarchies)
    # What was lost is known; the texts of the release could be misread where a value looks like a label.
    after = replace(
        after, loss=summarise_loss(recoding.loss_by_column, encoded.source.row_count, after.equivalence_classes)
    )
    return AnonymisationResult(
        table=release,
        method=method,
        k=int(k),
        levels=recoding.levels,
        optimality=recoding.optimality,
        hierarchies=_hierarchy_names(hierarchies, after.quasi),
        suppressed=encoded.source.row_count - after.rows,
        kept_rows=recoding.kept_rows,
        before=measure(table, quasi, sensitive, hierarchies=hierarchies),
        after=after,
        not_protected=after.not_protected,
    )


def _hierarchy_names(hierarchies: _Hierarchies, quasi: Sequence[str]) -> dict[str, str]:
    names = {name: tree.name.removeprefix("the hierarchy ") for name, tree in (hierarchies or {}).items()}
    return {name: names[name] for name in quasi if name in names}


def _recode(
    encoded: EncodedTable, parameters: AnonymityParameters, hierarchies: _Hierarchies, method: str, suppress: Any
) -> tuple[Recoding, str]:
    if method not in METHODS:
        raise ValueError(f"method: write {' or '.join(map(repr, METHODS))}, not {str(method)[:60]!r}.")
    max_suppressed_rows(suppress, encoded.source.row_count)
    trees = build_trees(encoded, hierarchies)
    criteria = build_criteria(parameters, encoded, trees)
    if method == _MONDRIAN:
        recoding = recode_by_mondrian(encoded, criteria, trees)
    else:
        recoding = recode_by_full_domain(encoded, criteria, trees, suppress)
    return recoding, describe_attacks_on_recoding(encoded, recoding, trees)
