"""The rows on released tables: two that are read together, and people found in them by what others know."""

import os
import time
from pathlib import Path

from discreet import attacks
from discreet.attacks.tables.hospitals import lecture_tables
from discreet.attacks.tables.ratings import FILE, read_ratings
from discreet.attacks.tables.registers import governor
from mission.rows import NeedsDataError, row

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
PATIENTS = 135_000


@row("A14", "Intersection: two k-anonymous tables, read together")
def a14():
    lecture = attacks.intersection(lecture_tables(), k=4)
    left = "the lecture's tables leave {:.0f} and {:.0f} values possible, together {:.0f}"
    large = attacks.intersection(random_state=0)
    easy = attacks.intersection(defence="easy", random_state=0)
    private = attacks.intersection(defence="curator", epsilon="1/10", random_state=0)
    certain = [each.details["values that are certain"] for each in (large, easy)]
    return (
        f"{left.format(*lecture.details['values left by the first, the second, both'])}: {_left()}; of "
        f"{large.details['people in both']:,} made-up patients of two 5-anonymous tables "
        f"{large.details['values that are certain by one of the tables']} values are certain by one, {certain[0]} by "
        f"both (by classes of 10 with three values at least: {certain[1]}); two curators at 1/20 each: guessed "
        f"{private.success:.1%}, of strangers {private.baseline:.1%}"
    )


def _left():
    """Return what both tables leave possible for the person of 28, who is in the first row of each."""
    classes = []
    for patients, place in zip(lecture_tables().tables, lecture_tables().both[0], strict=True):
        rows = patients.table.to_pylist()
        classes.append({each["condition"] for each in rows if each["age"] == rows[place]["age"]})
    return ", ".join(sorted(classes[0] & classes[1]))


@row("B1", "Linkage: a governor's record by zip code, birth date and sex; viewers by a few ratings")
def b1():
    if not (DATA / FILE).exists():
        raise NeedsDataError(f"{FILE} in DISCREET_DATA")
    began = time.perf_counter()
    found = attacks.linkage(governor(PATIENTS, random_state=0)).details
    seconds = time.perf_counter() - began
    few = attacks.linkage(read_ratings(DATA, known=3), random_state=0).details
    hard = read_ratings(DATA, known=8, wrong=2, days=14)
    rough = attacks.linkage(hard, random_state=0)
    private = attacks.linkage(hard, defence="curator", epsilon="1/10", random_state=0)
    return (
        f"{found['named rightly']:,} of {found['patients']:,} made-up patients named, {found['named wrongly']} "
        f"wrongly, in {seconds:.1f} s; three known ratings single out {few['alone with what is known']} of "
        f"{few['people']} viewers; eight, two of them wrong and days known within two weeks, name "
        f"{rough.details['named rightly']} and {rough.details['named wrongly']} wrongly; counts of the curator at "
        f"1/10: {private.success:.1%}, of strangers {private.baseline:.1%}"
    )
