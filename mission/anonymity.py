"""The rows on the weaker baseline: pseudonyms, linkage, k-anonymity, and how each of them fails."""

import hashlib
import itertools
import os
import string
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from discreet import anonymity
from mission import lecture
from mission.rows import NeedsDataError, row

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
ADULT = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country"]


def table(name, columns=None):
    """Return a real data set."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        raise NeedsDataError(f"{name} in DISCREET_DATA")
    return pq.read_table(path, columns=columns)


@row("A1", "Plain hashes of taxi numbers are opened, with a taxi's day and income; keyed pseudonyms are not")
def a1():
    released = set(table("nyctaxi2013_medallions")["medallion"].to_pylist())
    days = table("nyctaxi2013_taxi_days", ["medallion", "pickuptime", "total"])
    began = time.perf_counter()
    digits, letters = string.digits, string.ascii_uppercase
    numbers = ["".join(each) for each in itertools.product(digits, letters, digits, digits)]
    opened = {md5: number for number in numbers if (md5 := _md5(number)) in released}
    seconds = time.perf_counter() - began
    taxis, best = _seen(days.filter(pc.is_in(days["medallion"], pa.array(list(opened)))))
    keyed = _coded(opened.values(), anonymity.new_key())
    tried = {_md5(number) for number in numbers} | _coded(numbers, anonymity.new_key())
    return (
        f"MD5: {len(opened):,} of {len(released):,} opened by trying {len(numbers):,} numbers in {seconds:.2f} s, "
        f"trips of {taxis} taxis with them, one day of {best['fare_count']} and {best['fare_sum']:,.0f} dollars; keyed "
        f"pseudonyms of the same {len(keyed):,}: {len(keyed & tried)} opened"
    )


def _seen(trips):
    """Return how many taxis there are, and the best day of one."""
    trips = trips.group_by(["medallion", "pickuptime"]).aggregate([("total", "max")])  # some are in the data twice
    day = pc.cast(trips["pickuptime"], pa.date32(), safe=False)
    days = pa.table({"taxi": trips["medallion"], "day": day, "fare": trips["total_max"]})
    found = days.group_by(["taxi", "day"]).aggregate([("fare", "sum"), ("fare", "count")]).to_pylist()
    return len({each["taxi"] for each in found}), max(found, key=lambda each: each["fare_sum"])


def _md5(number):
    return hashlib.md5(number.encode(), usedforsecurity=False).hexdigest().upper()


def _coded(numbers, key):
    coded = anonymity.pseudonymise(pa.table({"medallion": list(numbers)}), "medallion", key)
    return set(coded["medallion"].to_pylist())


@row("A2", "Linkage: patients without names matched with a list of people by gender, age and zip")
def a2():
    quasi = ["Gender", "Age", "Zip"]
    people = table("linkage_synthetic_demographic")
    released = table("linkage_synthetic_medical")
    kept = released.drop_columns(quasi).join(people.drop_columns("Name"), "ID")  # what the hospital has itself
    told = []
    for patients in (kept, released):
        risk = anonymity.measure(patients, quasi, "Diagnosis", population=people)
        row, person = risk.journalist.found.T
        right = pc.sum(pc.equal(patients["ID"].take(pa.array(row)), people["ID"].take(pa.array(person)))).as_py() or 0
        told.append((risk, right))
    (exact, named), (coarse, guessed) = told
    return (
        f"{exact.journalist.single:,} of {exact.rows:,} fit one name only, {named:,} of them the right one; in ages "
        f"of ten years and three digits ({coarse.k}-anonymous) {guessed:,}, and whoever tries them all is right in "
        f"{coarse.marketer:.1%}; but {len(coarse.sensitive[0].exposed):,} share the diagnosis of all like them"
    )


@row("A3", "k-anonymity, l-diversity and t-closeness: measured, and reached by coarser values")
def a3():
    said = [f"{anonymity.measure(each, lecture.QUASI).k}" for each in (lecture.first(), lecture.second())]
    adult = table("adult", [*ADULT, "income", "split"])
    adult = adult.filter(pc.equal(adult["split"], "train")).drop_columns("split").drop_null()
    began = time.perf_counter()
    made = anonymity.attempt(adult, ADULT, 5, "income", l=2, t=0.5)
    seconds = time.perf_counter() - began
    before, after = made.before, made.after
    return (
        f"the lecture's tables: {said[0]}- and {said[1]}-anonymous; {adult.num_rows:,} rows of Adult by {len(ADULT)} "
        f"columns in {seconds:.1f} s: k {before.k} → {after.k}, l {before.l} → {after.l}, t {before.t:.2f} → "
        f"{after.t:.2f}, rows alone {before.unique:,} → {after.unique}, {after.loss.ncp:.1%} of the information lost"
    )


@row("A4", "Homogeneity: a k-anonymous class whose members share the sensitive value is exposed")
def a4():
    found = [anonymity.measure(each, lecture.QUASI, "condition") for each in (lecture.first(), lecture.second())]
    rows = [(risk.sensitive[0].exposed + 1).tolist() for risk in found]
    return (
        f"first table: rows {rows[0][0]}-{rows[0][-1]}, l = {found[0].l}; second: {rows[1] or 'none'}, l = {found[1].l}"
    )
