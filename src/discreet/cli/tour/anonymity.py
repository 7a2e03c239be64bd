"""The chapter on anonymity: the common ways to publish a table, and what they disclose."""

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
    """Publish the town with pseudonyms, then k-anonymous, and look for people in it."""
    people = pq.read_table(stage.town.folder / "people.parquet")
    _pseudonyms(stage.recorder, people, stage.town)
    _classes(stage.recorder, people)


def _pseudonyms(recorder: Recorder, people: pa.Table, town: Town) -> None:
    recorder.title("Removing names is not anonymisation")
    released = dc.anonymity.pseudonymise(people, "person", dc.anonymity.new_key())
    governor = town.governor()
    his = pc.and_(pc.equal(released["ward"], governor.ward), pc.equal(released["age"], governor.age))
    ((name, ill),) = [(row["person"], row["ill"]) for row in released.filter(his).to_pylist()]
    recorder.say(
        "Each id is replaced by a pseudonym under a secret key, which cannot be reversed without the key. But only one "
        f"row has age {governor.age} and {governor.ward} ward: {name[:8]}…, and its illness is ",
        warn(ill),
        ". How many residents are unique, by what others may know of them:",
    )
    unique = dc.anonymity.measure(released, QUASI, "ill").uniqueness()
    rows = [(", ".join(each.columns), f"{each.rows:,}", f"{each.share:.2%}") for each in unique]
    recorder.table(("known", "unique residents", "of all"), rows)


def _classes(recorder: Recorder, people: pa.Table) -> None:
    recorder.title("k-anonymity, l-diversity and the homogeneity attack")
    rows, disclosed = [], {}
    for k, values in _TARGETS:
        tried = dc.anonymity.attempt(people, QUASI, k, "ill", l=values)
        seen, lost = len(tried.after.sensitive[0].exposed), tried.after.loss
        name = f"{k}-anonymous" if values is None else f"{k}-anonymous, {values}-diverse"
        disclosed[name] = seen
        verdict = (warn if seen else good)(f"{seen:,}")
        rows.append((name, f"{tried.after.classes:,}", f"{lost.ncp:.1%}" if lost else "", verdict))
    recorder.say(
        "Wards, ages and incomes are generalised until every row shares them with at least k - 1 others. If all rows "
        "of such a class have the same value of ill, the class discloses it:"
    )
    recorder.table(("released table", "classes", "information loss", "residents disclosed"), rows)
    safe = [name for name, seen in disclosed.items() if not seen]
    recorder.say(
        f"{len(disclosed) - len(safe)} of {len(disclosed)} tables disclose residents. ",
        *(
            [f"Nobody is disclosed by the one that is {' or '.join(safe)}, as far as this attack goes. "]
            if safe
            else []
        ),
        "An attacker who can rule out one value, or who has a second release about the same people, infers more "
        "(discreet attack homogeneity, discreet attack intersection): none of these properties bounds what somebody "
        "with other knowledge can infer.",
    )
