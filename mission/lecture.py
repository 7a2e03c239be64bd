"""The lecture's two tables of twelve rows: >=40 and >40 are read as one class, a blank and a bullet as *."""

import pyarrow as pa

QUASI = ("zip", "age", "nationality")
FIRST = """AIDS, Heart Disease, Viral Infection, Viral Infection
Cancer, Heart Disease, Viral Infection, Viral Infection
Cancer, Cancer, Cancer, Cancer"""
SECOND = """AIDS, Tuberculosis, Flu, Tuberculosis, Cancer, Cancer
Cancer, Cancer, Cancer, Tuberculosis, Viral Infection, Viral Infection"""


def table(ages, conditions):
    """Return a table whose every line of conditions is a group of one age."""
    rows = [
        {"zip": "130**", "age": age, "nationality": "*", "condition": condition}
        for age, group in zip(ages, conditions.splitlines(), strict=True)
        for condition in group.split(", ")
    ]
    return pa.Table.from_pylist(rows)


def first():
    """Return the 4-anonymous one."""
    return table(("<30", ">=40", "3*"), FIRST)


def second():
    """Return the 6-anonymous one."""
    return table(("<35", ">35"), SECOND)


def possible(patients, place):
    """Return the conditions that a table leaves possible for somebody whose class is known."""
    rows = patients.to_pylist()
    return {row["condition"] for row in rows if row["age"] == rows[place]["age"]}
