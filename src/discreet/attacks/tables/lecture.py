"""The two tables of a lecture, each of twelve patients of one hospital: 4-anonymous and 6-anonymous."""

import pyarrow as pa

from discreet.attacks.tables.patients import Fact, Patients

_QUASI = ["zip", "age", "nationality"]
_FIRST = {
    "<30": "AIDS, Heart Disease, Viral Infection, Viral Infection",
    ">=40": "Cancer, Heart Disease, Viral Infection, Viral Infection",
    "3*": "Cancer, Cancer, Cancer, Cancer",
}
_SECOND = {
    "<35": "AIDS, Tuberculosis, Flu, Tuberculosis, Cancer, Cancer",
    ">35": "Cancer, Cancer, Cancer, Tuberculosis, Viral Infection, Viral Infection",
}


def first_table(*facts: Fact) -> Patients:
    """Return the 4-anonymous table: in its last class everybody has the same.

    >>> first_table().table.num_rows, len(first_table().values)
    (12, 4)
    """
    return _patients(_FIRST, facts)


def second_table(*facts: Fact) -> Patients:
    """Return the 6-anonymous table: three conditions at least in each class.

    >>> second_table().values
    ['AIDS', 'Cancer', 'Flu', 'Tuberculosis', 'Viral Infection']
    """
    return _patients(_SECOND, facts)


def _patients(classes: dict[str, str], facts: tuple[Fact, ...]) -> Patients:
    rows = [
        {"zip": "130**", "age": age, "nationality": "*", "condition": condition}
        for age, conditions in classes.items()
        for condition in conditions.split(", ")
    ]
    return Patients(pa.Table.from_pylist(rows), _QUASI, "condition", facts)
