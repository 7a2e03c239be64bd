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
from discreet.anonymity.metrics.measurement import measure, summarise_loss
from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.report.contents import describe_hierarchies, render_fragment
from discreet.arguments import require

_MONDRIAN, _FULL_DOMAIN = METHODS = ("mondrian", "full-domain")
_Hierarchies = Mapping[str, Hierarchy] | None


@dataclass(frozen=True, repr=False)
class AnonymisationResult:
    """A released table, how it was generalised, and the risk measured before and after.

    levels        full-domain only: the generalisation level of each column; None for Mondrian
    optimality    full-domain only: whether these levels are optimal
    hierarchies   the name of the hierarchy of each column that has one
    suppressed    the number of suppressed rows; `kept_rows` are the positions of the others, None if all are kept

    >>> import pyarrow as pa
    >>> result = anonymise_and_measure(pa.table({"age": [23, 29, 35, 41], "ill": list("abab")}), "age", 2, "ill")
    >>> result.table["age"].to_pylist(), result.after.k, result.after.loss.ncp
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
        released = f"{self.after.rows:,} of {self.before.rows:,} rows released"
        rows = f"{self.method}: {released}, {self.suppressed:,} suppressed"
        levels = ", ".join(f"{name} {level}" for name, level in (self.levels or {}).items())
        level_lines = [f"levels: {levels} ({self.optimality})"] if levels else []
        return "\n".join([rows, *level_lines, *describe_hierarchies(self), str(self.after)])

    __repr__ = __str__  # a readable summary at the prompt, as for Risk

    def _repr_html_(self) -> str:
        return render_fragment(self)


def anonymise(  # noqa: PLR0913, PLR0917 - the rarer ones are keyword-only
    table: Any,
    quasi: Any,
    k: int,
    sensitive: Any = None,
    l: float | None = None,  # noqa: E741 - the name in the literature
    t: float | None = None,
    hierarchies: _Hierarchies = None,
    *,
    method: str = _MONDRIAN,
    suppress: Any = 0,
    diversity: str = "distinct",
    c: float | None = None,
) -> Any:
    """Generalise the `quasi` columns until every row equals at least k-1 others in them.

    With `l`, every equivalence class also has `l` well-represented values of each sensitive column: `diversity` is
    "distinct", "entropy" or "recursive" (with `c`). With `t`, the sensitive values of every class are within distance
    `t` of those of the whole release. "mondrian" gives each class its own ranges, sets or labels, as narrow as its
    rows allow; the ends of a range are values that occur in the class. "full-domain" finds the best generalisation
    level for each column and may suppress rows of small classes, at most the share `suppress`.

    The release is a table of the same library. Columns that are neither quasi-identifying nor sensitive are unchanged.
    Metadata, attrs, unused categories and the pandas index are removed, because they can identify people. The attacks
    that remain possible are listed under "not_protected" in attrs (pandas) or in the metadata (Arrow).

    Rows keep their order: if it is informative, shuffle them before publication, with
    `frame.sample(frac=1, ignore_index=True)` in pandas or
    `table.take(np.random.default_rng().permutation(len(table)))` in Arrow.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [23, 29, 35, 41], "job": ["cook", "judge", "cook", "cook"], "ill": list("abab")})
    >>> anonymise(people, ["age", "job"], 2).to_pydict()
    {'age': ['23-29', '23-29', '35-41', '35-41'], 'job': ['*', '*', 'cook', 'cook'], 'ill': ['a', 'b', 'a', 'b']}
    """
    encoded = encode_table(table, quasi, sensitive)
    recoding, open_attacks = _recode(encoded, AnonymityParameters(k, l, t, diversity, c), hierarchies, method, suppress)
    return encoded.source.rebuild(recoding.recoded_columns, recoding.kept_rows, note=open_attacks)


def anonymise_and_measure(  # noqa: PLR0913, PLR0917 - the parameters of anonymise
    table: Any,
    quasi: Any,
    k: int,
    sensitive: Any = None,
    l: float | None = None,  # noqa: E741 - the name in the literature
    t: float | None = None,
    hierarchies: _Hierarchies = None,
    *,
    method: str = _MONDRIAN,
    suppress: Any = 0,
    diversity: str = "distinct",
    c: float | None = None,
) -> AnonymisationResult:
    """Anonymise a table and measure it before and after; the arguments are those of `anonymise`.

    >>> import pyarrow as pa
    >>> from discreet.anonymity import prefixes
    >>> people = pa.table({"age": [23, 23, 47, 47], "zip": ["13053", "13068", "14850", "14853"]})
    >>> trees = {"zip": prefixes(5)}
    >>> result = anonymise_and_measure(people, ["age", "zip"], 2, hierarchies=trees, method="full-domain")
    >>> result.before.k, result.after.k, result.levels
    (1, 2, {'age': 0, 'zip': 2})
    """
    encoded = encode_table(table, quasi, sensitive)
    recoding, open_attacks = _recode(encoded, AnonymityParameters(k, l, t, diversity, c), hierarchies, method, suppress)
    release = encoded.source.rebuild(recoding.recoded_columns, recoding.kept_rows, note=open_attacks)
    after = measure(release, quasi, sensitive, hierarchies=hierarchies)
    # The loss is taken from the recoding: parsing the released labels could misread a value that looks like a label.
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
    require(method in METHODS, f"expected {' or '.join(map(repr, METHODS))}, not {str(method)[:60]!r}.", "method")
    max_suppressed_rows(suppress, encoded.source.row_count)
    trees = build_trees(encoded, hierarchies)
    criteria = build_criteria(parameters, encoded, trees)
    if method == _MONDRIAN:
        recoding = recode_by_mondrian(encoded, criteria, trees)
    else:
        recoding = recode_by_full_domain(encoded, criteria, trees, suppress)
    return recoding, describe_attacks_on_recoding(encoded, recoding, trees)
