"""How many values an id can have, judged by the formats seen: that many tries open a plain hash of it."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_PER_SECOND = 1_000_000  # values hashed by one core in plain Python; compiled programs and graphics cards try far more
_TOO_MANY = 2**80
_SIZES = {"9": 10, "A": 26, "a": 26}
_CLASSES = ((r"\p{Nd}", "9"), (r"\p{Lu}", "A"), (r"\p{Ll}", "a"))
_UNITS = ((365.25 * 86400, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


@dataclass(frozen=True)
class Candidates:
    """What the values look like, and how many look like that."""

    form: str
    count: int


def candidates(values: pa.Array) -> Candidates:
    """Judge how many candidates there are for the distinct values of a column.

    >>> candidates(pa.array(["5D12", "9Y99"]))
    Candidates(form='ids such as 9A99 (9 a digit, A a letter)', count=26000)
    """
    values = values.drop_null()
    if not len(values):
        return Candidates("no ids at all", 1)
    kind = values.type
    if pa.types.is_boolean(kind):
        return Candidates("true and false", 2)
    if pa.types.is_date(kind):
        ends = pc.min_max(values.cast(pa.date32()).cast(pa.int32())).as_py()
        return Candidates("the days from the first to the last", ends["max"] - ends["min"] + 1)
    if pa.types.is_integer(kind):
        digits = max(len(str(abs(end))) for end in pc.min_max(values).as_py().values())
        return Candidates(f"whole numbers of up to {digits} digits", 10**digits)
    return _of_texts(values.cast(pa.string()))


def _of_texts(values: pa.Array) -> Candidates:
    for pattern, letter in _CLASSES:
        values = pc.replace_substring_regex(values, pattern, letter)
    forms = pc.value_counts(values)
    listed = dict(zip(forms.field("values").to_pylist(), forms.field("counts").to_pylist(), strict=True))
    usual = max(listed, key=lambda form: listed[form])
    more = f" and {len(listed) - 1:,} other formats" if len(listed) > 1 else ""
    shown = usual if len(usual) <= 40 else f"{usual[:39]}…"
    return Candidates(f"ids such as {shown} (9 a digit, A a letter){more}", sum(map(_of_form, listed)))


def _of_form(form: str) -> int:
    count = 1
    for letter in form:
        count *= _SIZES.get(letter, 1)
        if count > _TOO_MANY:
            break
    return count


def why_no_hash(found: Candidates) -> str:
    """Say what a plain hash of such values would hide.

    >>> why_no_hash(Candidates("ids such as 9A99", 26_000))
    'ids such as 9A99 are 26,000 candidates, and one core hashes all of them in 0.03 s'
    """
    if found.count > _TOO_MANY:
        return (
            f"{found.form} are many, but those in use (names, addresses, another list) are tried from lists in seconds"
        )
    return f"{found.form} are {found.count:,} candidates, and one core hashes all of them in {_lasting(found.count)}"


def _lasting(count: int) -> str:
    seconds = count / _PER_SECOND
    for size, name in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{max(seconds, 0.01):.1g} s"
