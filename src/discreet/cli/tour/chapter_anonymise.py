"""The chapter on anonymisation: common ways to publish a table, and what they disclose."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import discreet as dc
from discreet.cli.tour.recorder import Recorder, TourContext, good, warn
from discreet.worlds.town import Town

QUASI = ["ward", "age", "income"]  # known to neighbours and employers, or from voter rolls
_TARGETS = ((5, None), (25, None), (5, 2))


def show_chapter(context: TourContext) -> None:
    """Pseudonymise and k-anonymise the table of residents, and count those who are still disclosed."""
    people = pq.read_table(context.town.folder / "people.parquet")
    _show_pseudonyms(context.recorder, people, context.town)
    _show_k_anonymity(context.recorder, people)


def _show_pseudonyms(recorder: Recorder, people: pa.Table, town: Town) -> None:
    recorder.add_section("Removing names is not anonymisation")
    released = dc.anonymity.pseudonymise(people, "person", dc.anonymity.new_key())
    governor = town.governor()
    is_governor = pc.and_(pc.equal(released["ward"], governor.ward), pc.equal(released["age"], governor.age))
    ((name, ill),) = [(row["person"], row["ill"]) for row in released.filter(is_governor).to_pylist()]
    recorder.add_paragraph(
        "Each id is replaced by a pseudonym, which cannot be reversed without a secret key. But only one row has age "
        f"{governor.age} and {governor.ward} ward, the Governor's: its pseudonym is {name[:8]}…, and its illness is ",
        warn(ill),
        ". How many residents are unique depends on what others know about them:",
    )
    unique = dc.anonymity.measure(released, QUASI, "ill").uniqueness()
    rows = [
        (", ".join(combination.columns), f"{combination.unique_rows:,}", f"{combination.share:.2%}")
        for combination in unique
    ]
    recorder.add_table(("known", "unique residents", "share"), rows)


def _show_k_anonymity(recorder: Recorder, people: pa.Table) -> None:
    recorder.add_section("k-anonymity, l-diversity and the homogeneity attack")
    rows, disclosed = [], {}
    for k, values in _TARGETS:
        attempt = dc.anonymity.anonymise_and_measure(people, QUASI, k, "ill", l=values)
        disclosed_count, information_loss = len(attempt.after.sensitive[0].exposed_rows), attempt.after.loss
        name = f"{k}-anonymous" if values is None else f"{k}-anonymous, {values}-diverse"
        disclosed[name] = disclosed_count
        verdict = (warn if disclosed_count else good)(f"{disclosed_count:,}")
        rows.append(
            (name, f"{attempt.after.classes:,}", f"{information_loss.ncp:.1%}" if information_loss else "", verdict)
        )
    recorder.add_paragraph(
        "Wards, ages and incomes are generalised until every row shares them with at least k - 1 others. If all rows "
        "of such a class have the same value of ill, the class discloses it:"
    )
    recorder.add_table(("released table", "classes", "information loss", "residents disclosed"), rows)
    safe = [name for name, count in disclosed.items() if not count]
    recorder.add_paragraph(
        f"{len(disclosed) - len(safe)} of {len(disclosed)} tables disclose residents. ",
        *([f"Tables that disclose nobody to this attack: {'; '.join(safe)}. "] if safe else []),
        "An attacker who can rule out one value, or who has a second release about the same people, infers more (try: "
        "discreet attack homogeneity, discreet attack intersection). None of these properties limits what can be "
        "inferred with background knowledge.",
    )
