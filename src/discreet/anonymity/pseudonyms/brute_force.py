"""The cost of a brute-force attack on a plain hash, estimated from the format of the values."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_HASHES_PER_SECOND = 1_000_000  # one core in plain Python; compiled programs and graphics cards are far faster
_MAX_SEARCHABLE = 2**80
_CHARACTER_CLASS_SIZES = {"9": 10, "A": 26, "a": 26}
_CHARACTER_CLASSES = ((r"\p{Nd}", "9"), (r"\p{Lu}", "A"), (r"\p{Ll}", "a"))
_TIME_UNITS = ((365.25 * 86400, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


@dataclass(frozen=True)
class CandidateSpace:
    """A description of the format of some values, and the number of values with this format."""

    description: str
    count: int


def estimate_candidates(values: pa.Array) -> CandidateSpace:
    """Estimate how many candidates there are for the distinct values of a column.

    >>> estimate_candidates(pa.array(["5D12", "9Y99"]))
    CandidateSpace(description='ids of the form 9A99 (9: digit, A: letter)', count=26000)
    """
    values = values.drop_null()
    if not len(values):
        return CandidateSpace("an empty column", 1)
    kind = values.type
    if pa.types.is_boolean(kind):
        return CandidateSpace("booleans", 2)
    if pa.types.is_date(kind):
        ends = pc.min_max(values.cast(pa.date32()).cast(pa.int32())).as_py()
        return CandidateSpace("dates between the first and the last", ends["max"] - ends["min"] + 1)
    if pa.types.is_integer(kind):
        digits = max(len(str(abs(end))) for end in pc.min_max(values).as_py().values())
        return CandidateSpace(f"integers of up to {digits} digits", 10**digits)
    return _text_candidates(values.cast(pa.string()))


def _text_candidates(values: pa.Array) -> CandidateSpace:
    for pattern, letter in _CHARACTER_CLASSES:
        values = pc.replace_substring_regex(values, pattern, letter)
    formats = pc.value_counts(values)
    format_counts = dict(zip(formats.field("values").to_pylist(), formats.field("counts").to_pylist(), strict=True))
    most_common = max(format_counts, key=lambda text_format: format_counts[text_format])
    more = f" and {len(format_counts) - 1:,} other formats" if len(format_counts) > 1 else ""
    shown = most_common if len(most_common) <= 40 else f"{most_common[:39]}…"
    return CandidateSpace(
        f"ids of the form {shown} (9: digit, A: letter){more}", sum(map(_count_for_format, format_counts))
    )


def _count_for_format(text_format: str) -> int:
    count = 1
    for letter in text_format:
        count *= _CHARACTER_CLASS_SIZES.get(letter, 1)
        if count > _MAX_SEARCHABLE:
            break
    return count


def explain_brute_force(space: CandidateSpace) -> str:
    """Describe how quickly a plain hash of such values can be reversed.

    >>> explain_brute_force(CandidateSpace("ids of the form 9A99", 26_000))
    '26,000 candidates for ids of the form 9A99, which one core hashes in 0.03 s'
    """
    if space.count > _MAX_SEARCHABLE:
        return f"{space.description} are too many to enumerate, but lists of those in use are hashed in seconds"
    candidates = "1 candidate" if space.count == 1 else f"{space.count:,} candidates"
    return f"{candidates} for {space.description}, which one core hashes in {_format_duration(space.count)}"


def _format_duration(count: int) -> str:
    seconds = count / _HASHES_PER_SECOND
    for size, name in _TIME_UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{max(seconds, 0.01):.1g} s"
