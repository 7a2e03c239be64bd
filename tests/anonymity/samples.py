"""Tables to measure, each as columns of plain values: made here, shipped with scikit-learn, or shared real data."""

import os
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))

# Each set: how it is made, its quasi-identifying columns, its sensitive ones.
SETS = {
    "iris": (["sepal", "petal"], ["kind", "width"]),
    "wine": (["alcohol", "hue"], ["kind", "acid"]),
    "breast_cancer": (["radius", "texture"], ["kind", "smooth"]),
    "digits": (["left", "right"], ["digit"]),
    "diabetes": (["sex", "age", "bmi"], ["progress"]),
    "made": (["a", "b"], ["word", "number"]),
    "hospital": (["zip", "age"], ["condition"]),
    "adult": (["sex", "race", "marital_status"], ["income", "hours_per_week", "occupation"]),
    "pums_10000": (["sex", "educ", "race"], ["married", "income"]),
    "pums_ca_1000": (["sex", "race", "age"], ["educ"]),
    "warfarin": (["gender", "race", "age"], ["dose", "cyp2c9"]),
    "linkage": (["Gender", "Age"], ["Diagnosis", "Outcome"]),
}


def sample(name):
    """Return the columns of a set, without rows that lack one; skip the test if its file is not there."""
    quasi, sensitive = SETS[name]
    columns = _MADE[name]()
    columns = {each: columns[each] for each in (*quasi, *sensitive)}
    rows = [row for row in zip(*columns.values(), strict=True) if None not in row]
    return {each: list(values) for each, values in zip(columns, zip(*rows, strict=True), strict=True)}


def _iris():
    data, target, names = _loaded("iris")
    return {
        "sepal": _binned(data[:, 0], 1),
        "petal": _binned(data[:, 3], 1),
        "kind": [names[each] for each in target],
        "width": _binned(data[:, 1], 0.2),
    }


def _wine():
    data, target, names = _loaded("wine")
    return {
        "alcohol": _binned(data[:, 0], 1),
        "hue": _binned(data[:, 10], 0.5),
        "kind": [names[each] for each in target],
        "acid": _binned(data[:, 1], 0.5),
    }


def _breast_cancer():
    data, target, names = _loaded("breast_cancer")
    return {
        "radius": _binned(data[:, 0], 4),
        "texture": _binned(data[:, 1], 6),
        "kind": [names[each] for each in target],
        "smooth": _binned(data[:, 4], 0.01),
    }


def _digits():
    data, target, _ = _loaded("digits")
    return {"left": _binned(data[:, 20], 4), "right": _binned(data[:, 43], 4), "digit": [int(each) for each in target]}


def _diabetes():
    data, target, _ = _loaded("diabetes")
    return {
        "sex": ["A" if each > 0 else "B" for each in data[:, 1]],
        "age": _binned(data[:, 0], 0.05),
        "bmi": _binned(data[:, 2], 0.06),
        "progress": _binned(target, 25),
    }


def _made():
    """Numbers that look random, by a rule that needs no library."""
    digits = [(i * i * 7919 + i * 104729) % 1000003 for i in range(1, 401)]
    return {
        "a": [each % 3 for each in digits],
        "b": ["uvwx"[each // 3 % 4] for each in digits],
        "word": [["red", "green", "blue", "grey"][min(each // 12 % 7, 3)] for each in digits],
        "number": [each // 84 % 23 * (each // 1932 % 2 + 1) for each in digits],
    }


def _hospital():
    """Type the twelve patients of the l-diversity paper, as it generalises them."""
    ages = ["<30"] * 4 + [">=40"] * 4 + ["3*"] * 4
    zips = ["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4
    heart, viral, cancer = "Heart Disease", "Viral Infection", "Cancer"
    return {
        "zip": zips,
        "age": ages,
        "condition": [heart, heart, viral, viral, cancer, heart, viral, viral, cancer, cancer, cancer, cancer],
    }


def _adult():
    return _read("adult.parquet")


def _pums():
    read = _read("pums_10000.parquet")
    return read | {"income": _binned(read["income"], 10000)}


def _pums_ca():
    read = _read("pums_ca_1000.parquet")
    return read | {"age": _binned(read["age"], 20)}


def _warfarin():
    read = _read("warfarin_iwpc.parquet")
    return read | {"dose": [None if each is None else int(each // 7) for each in read["dose_mg_week"]]}


def _linkage():
    return _read("linkage_synthetic_medical.parquet")


def _read(file):
    path = DATA / file
    if not path.exists():
        pytest.skip(f"needs {file} in DISCREET_DATA")
    table = pc.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    return table.to_pydict()


def _loaded(name):
    datasets = pytest.importorskip("sklearn.datasets")
    found = getattr(datasets, f"load_{name}")()
    return found.data, found.target, [str(each) for each in getattr(found, "target_names", [])]


def _binned(values, width):
    return [int(each // width) for each in values]


_MADE = {
    "iris": _iris,
    "wine": _wine,
    "breast_cancer": _breast_cancer,
    "digits": _digits,
    "diabetes": _diabetes,
    "made": _made,
    "hospital": _hospital,
    "adult": _adult,
    "pums_10000": _pums,
    "pums_ca_1000": _pums_ca,
    "warfarin": _warfarin,
    "linkage": _linkage,
}
