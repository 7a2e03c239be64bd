"""The two tables of the lecture, with twelve rows each; >=40 and >40 are one class, a blank and a bullet mean *."""

import pyarrow as pa

QUASI = ("zip", "age", "nationality")
FIRST = """AIDS, Heart Disease, Viral Infection, Viral Infection
Cancer, Heart Disease, Viral Infection, Viral Infection
Cancer, Cancer, Cancer, Cancer"""
SECOND = """AIDS, Tuberculosis, Flu, Tuberculosis, Cancer, Cancer
Cancer, Cancer, Cancer, Tuberculosis, Viral Infection, Viral Infection"""


def table(ages, conditions):
    """Return a table in which each line of conditions is a class with one age."""
    rows = [
        {"zip": "130**", "age": age, "nationality": "*", "condition": condition}
        for age, group in zip(ages, conditions.splitlines(), strict=True)
        for condition in group.split(", ")
    ]
    return pa.Table.from_pylist(rows)


def first():
    """Return the 4-anonymous table."""
    return table(("<30", ">=40", "3*"), FIRST)


def second():
    """Return the 6-anonymous table."""
    return table(("<35", ">35"), SECOND)


def possible(patients, place):
    """Return the conditions that are possible for the person in a row, given their class."""
    rows = patients.to_pylist()
    return {row["condition"] for row in rows if row["age"] == rows[place]["age"]}
