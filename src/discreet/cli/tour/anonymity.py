"""The chapter on anonymity: the easy ways to publish a table, and what they leave open."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import discreet as dc
from discreet.cli.tour.recorder import Recorder, good, warn
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import Town

QUASI = ["ward", "age", "income"]  # what neighbours, employers and voter rolls know
_TARGETS = ((5, None), (25, None), (5, 2))


def tell(stage: Stage) -> None:
    """Publish the town without names, then k-anonymous, and look for people in it."""
    people = pq.read_table(stage.town.folder / "people.parquet")
    _pseudonyms(stage.recorder, people, stage.town)
    _classes(stage.recorder, people)


def _pseudonyms(recorder: Recorder, people: pa.Table, town: Town) -> None:
    recorder.title("Without names is not without people")
    released = dc.anonymity.pseudonymise(people, "person", dc.anonymity.new_key())
    governor = town.governor()
    his = pc.and_(pc.equal(released["ward"], governor.ward), pc.equal(released["age"], governor.age))
    ((name, ill),) = [(row["person"], row["ill"]) for row in released.filter(his).to_pylist()]
    recorder.say(
        f"Every id becomes a pseudonym under a secret key, and nobody without it can turn them back. But the row of "
        f"somebody aged {governor.age} in the ward {governor.ward} is {name[:8]}…, and it says: ",
        warn(ill),
        ". Who is alone in the town, by what others may know of them:",
    )
    found = dc.anonymity.measure(released, QUASI, "ill").uniqueness()
    rows = [(", ".join(each.columns), f"{each.rows:,}", f"{each.share:.1%}") for each in found]
    recorder.table(("known", "rows alone", "of the town"), rows)


def _classes(recorder: Recorder, people: pa.Table) -> None:
    recorder.title("In groups of k, and still seen through")
    rows = []
    for k, values in _TARGETS:
        tried = dc.anonymity.attempt(people, QUASI, k, "ill", l=values)
        seen, lost = len(tried.after.sensitive[0].exposed), tried.after.loss
        name = f"{k}-anonymous" if values is None else f"{k}-anonymous, {values}-diverse"
        verdict = (warn if seen else good)(f"{seen:,}")
        rows.append((name, f"{tried.after.classes:,}", f"{lost.ncp:.1%}" if lost else "", verdict))
    recorder.say(
        "Ages, wards and incomes are made coarser until everybody has company. Nobody is alone any more; but where all "
        "of a group have the same illness, or none, to be in it is enough (the homogeneity attack):"
    )
    recorder.table(("released", "groups", "information lost", "people seen through"), rows)
    recorder.say(
        "Two different values in a group hide little, too, from somebody who knows which one it is not, or who has a "
        "second release of the same people. No such table says what an attacker may know; a curator need not ask."
    )
