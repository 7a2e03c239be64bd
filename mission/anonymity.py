"""The rows on weaker protection: pseudonyms, linkage, k-anonymity, and how each of them fails."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity, attacks
from mission import lecture
from mission.data import real, table
from mission.rows import record, row

ADULT = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country"]
OPENED = "codes reversed"


@row("A1", "Unkeyed hashes of taxi numbers are reversed, revealing a taxi's day and income; keyed pseudonyms resist")
def a1():
    taxis = real("pseudonyms")
    plain = attacks.pseudonyms(taxis, random_state=0).details
    key = anonymity.new_key()
    keyed = attacks.pseudonyms(taxis, defence=lambda numbers: _keyed(numbers, key), random_state=0).details
    return record(
        "MD5: {upper:,} of {released:,} codes reversed with the {tried:,} numbers of the form 9A99, {both:,} with "
        "their lower-case forms as well, which the city also hashed; one taxi's day: {best}. The same attack on keyed "
        "pseudonyms of the {keyed_released:,} known numbers: {keyed_opened} reversed",
        upper=sum(re.fullmatch(r"\d[A-Z]\d\d", number) is not None for number in taxis.numbers),
        both=plain[OPENED],
        released=plain["codes released"],
        tried=plain["numbers tried"],
        best=plain["best day of one taxi"],
        keyed_released=keyed["codes released"],
        keyed_tried=keyed["numbers tried"],
        keyed_opened=keyed[OPENED],
    )


def _keyed(numbers, key):
    return anonymity.pseudonymise(pa.table({"number": numbers}), "number", key)["number"].to_pylist()


@row("A2", "Linkage: patients without names matched with a list of people by gender, age and zip")
def a2():
    quasi = ["Gender", "Age", "Zip"]
    people = table("linkage_synthetic_demographic")
    released = table("linkage_synthetic_medical")
    kept = released.drop_columns(quasi).join(people.drop_columns("Name"), "ID")  # the hospital's own table
    measured = []
    for patients in (kept, released):
        risk = anonymity.measure(patients, quasi, "Diagnosis", population=people)
        place, person = risk.journalist.unique_links.T
        right = pc.sum(pc.equal(patients["ID"].take(pa.array(place)), people["ID"].take(pa.array(person)))).as_py() or 0
        measured.append((risk, right))
    (exact, named), (coarse, guessed) = measured
    return record(
        "{single:,} of {rows:,} match exactly one name, {named:,} of them correctly; with ages in decades and three "
        "zip digits ({k}-anonymous) {guessed:,}, where a random candidate is correct in {marketer:.1%}; but for "
        "{exposed:,} everybody in their class has the same diagnosis",
        single=exact.journalist.uniquely_linked_rows,
        rows=exact.rows,
        named=named,
        k=coarse.k,
        guessed=guessed,
        marketer=coarse.marketer,
        exposed=len(coarse.sensitive[0].exposed_rows),
    )


@row("A3", "k-anonymity, l-diversity and t-closeness: measured, and achieved by generalisation")
def a3():
    first, second = (anonymity.measure(each, lecture.QUASI).k for each in (lecture.first(), lecture.second()))
    adult = table("adult", [*ADULT, "income", "split"])
    adult = adult.filter(pc.equal(adult["split"], "train")).drop_columns("split").drop_null()
    made = anonymity.anonymise_and_measure(adult, ADULT, 5, "income", l=2, t=0.5)
    before, after = made.before, made.after
    return record(
        "the lecture's tables: {first}- and {second}-anonymous; {rows:,} rows of Adult by {columns} columns: "
        "k {before.k} → {after.k}, l {before.l} → {after.l}, t {before.t:.2f} → {after.t:.2f}, unique rows "
        "{before.unique:,} → {after.unique}, {lost:.1%} of the information lost",
        first=first,
        second=second,
        rows=adult.num_rows,
        columns=len(ADULT),
        before=before,
        after=after,
        lost=after.loss.ncp,
    )


@row(
    "A4",
    "Homogeneity: a k-anonymous class whose members share the value is exposed, and how far other classes narrow it",
)
def a4():
    tables = lecture.first(), lecture.second()
    first, second = (anonymity.measure(each, lecture.QUASI, "condition") for each in tables)
    rows, others = ((risk.sensitive[0].exposed_rows + 1).tolist() for risk in (first, second))
    narrowed = [_narrowed(each) for each in tables]
    return record(
        "first table: {shown}, l = {l}; {left}; second: {others_shown}, l = {others_l}; {others_left}",
        rows=rows,
        others=others,
        l=first.l,
        others_l=second.l,
        narrowed=narrowed,
        shown=_rows(rows),
        others_shown=_rows(others),
        left=_left(narrowed[0]),
        others_left=_left(narrowed[1]),
    )


def _narrowed(patients):
    """Return how many conditions are possible, and how often the best guess is right: in the table, then each class."""
    rows = patients.to_pylist()
    ages = dict.fromkeys(row["age"] for row in rows)
    groups = [[row["condition"] for row in rows if age in (None, row["age"])] for age in (None, *ages)]
    return [(len(set(group)), max(map(group.count, group)) / len(group)) for group in groups]


def _left(narrowed):
    (values, share), *classes = narrowed
    left = ", ".join(f"{few} ({best:.0%})" for few, best in classes)
    return f"its classes leave {left} of {values} conditions possible (best guess right; without the class {share:.0%})"


def _rows(places):
    return f"rows {', '.join(map(str, places))} exposed" if places else "no row exposed"
