"""The hazards of differential privacy that a report lists, and the fact of policy, ledger or software for each.

The list covers the subjects of NIST SP 800-226 in our own words; the final text of the standard was not at hand, so
nothing is quoted from it and its numbering is not used. What no file shows is left to the owner.
"""

from collections.abc import Callable
from typing import NamedTuple

from discreet.kernel.ledger.chain import RowKind
from discreet.kernel.loss import ZERO_LOSS, Budget
from discreet.policy import Policy, hazards
from discreet.policy.column_domains import Between, NoDomain
from discreet.policy.declarations import AUTO, PersonInWindow, RowUnit
from discreet.policy.entries import DEFAULT_ROWS_MAX
from discreet.policy.guarantee import neighbour_sentence, pluralise, protected_noun, unit_sentence
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.content import stated_list
from discreet.publish.report.guarantee_chapters import is_unit
from discreet.publish.report.ledger_chapters import NO_LEDGER, LedgerSummary
from discreet.publish.report.number_text import counted_noun, loss_text, rounded_up
from discreet.publish.report.odds import at_most, budget_pair, guess_participation
from discreet.publish.report.release_chapters import NO_INVARIANTS, invariants_of

_GROUP_SIZE = 4  # a family


class Situation(NamedTuple):
    """What hazards are answered from."""

    policy: Policy
    budget: Budget
    summary: LedgerSummary | None
    record: ReleaseRecord | None


Answer = tuple[str, str | None]  # the fact, and what the owner states beside it: None if they must state it


def _unit(now: Situation) -> Answer:
    fact = unit_sentence(now.policy)
    if isinstance(now.policy.unit, RowUnit | PersonInWindow):
        fact += f" All rows of one {now.policy.data.protects} together are protected less."
        return fact, now.policy.release.unit_reason
    return fact, now.policy.release.unit_reason or ""


def _identities(now: Situation) -> Answer:
    if isinstance(now.policy.unit, RowUnit):
        return (
            "Each row is a unit; several rows of one person are protected separately.",
            now.policy.release.unit_reason,
        )
    noun = now.policy.data.protects
    return (
        f"Whether one {noun} has two keys, or two {pluralise(noun)} have one, cannot be checked.",
        now.policy.release.unit_reason,
    )


def _neighbours(now: Situation) -> Answer:
    return f"Add or remove one {protected_noun(now.policy)}. {neighbour_sentence(now.policy)}", ""


def _epsilon(now: Situation) -> Answer:
    noun, odds = protected_noun(now.policy), at_most(guess_participation([budget_pair(now.budget)]))
    fact = (
        f"Epsilon {rounded_up(now.budget.epsilon)} per {noun} in total: an outsider can tell whether one {noun} is in "
        f"the data {odds}, instead of 50 of 100."
    )
    return fact, now.policy.release.epsilon_reason


def _delta(now: Situation) -> Answer:
    if not now.budget.delta:
        return "There is no delta: the bound holds without exception.", ""
    roots = [table for table in now.policy.tables.values() if not table.public]
    sizes = [table.rows_max for table in roots if table.rows_max != DEFAULT_ROWS_MAX]
    compared = f", against at most {max(sizes):,} rows declared" if sizes else "; the number of people is not declared"
    return f"Delta {rounded_up(now.budget.delta)}{compared}.", now.policy.release.epsilon_reason


def _definition(now: Situation) -> Answer:
    if now.budget.rho is None:
        return "Pure epsilon-differential privacy; losses add up as epsilons.", ""
    return "(epsilon, delta)-differential privacy, accounted in rho (zero-concentrated); both are in this report.", ""


def _bounds(now: Situation) -> Answer:
    paid = now.summary.bound_charges if now.summary else 0
    measured = [each for each in hazards(now.policy) if each.id in ("D014", "D018")]
    looks = f" {len(measured)} of the declared look measured." if measured else ""
    ranges = sum(
        isinstance(column.domain, Between)
        for table in now.policy.tables.values()
        if not table.public
        for column in table.columns.values()
    )
    declared, automatic = counted_noun(ranges, "declared range"), counted_noun(paid, "charge")
    return f"{declared}; {automatic} for bounds chosen privately.{looks}", now.policy.release.bounds_reason


def _groups(now: Situation) -> Answer:
    if now.budget.discover:
        total = rounded_up(now.budget.discover)
        return f"Groups are declared, or shown only above a noisy threshold, which costs delta (at most {total}).", ""
    return "Only declared groups are released, including empty ones, so their presence discloses nothing.", ""


def _contributions(now: Situation) -> Answer:
    texts = [
        f"{table.name}: {_bound_text(table.groups)} groups, {_bound_text(table.rows)} rows each"
        for table in now.policy.tables.values()
        if not table.public
    ]
    bounds = "; ".join(texts)
    return f"Bounded under the aggregate, after all joins ({bounds}). Contributions beyond are scaled down.", ""


def _bound_text(bound: object) -> str:
    return "automatic" if bound in (None, AUTO) else str(bound)


def _sensitivity(now: Situation) -> Answer:
    charges = counted_noun(len(now.summary.events) if now.summary else 0, "charge")
    return f"The kernel derives it from the query's algebra, as whole numbers, and records it ({charges}).", ""


def _floating_point(_: Situation) -> Answer:
    return "Values are rounded to a public grid and summed as whole numbers; the noise is discrete and exact.", ""


def _randomness(_: Situation) -> Answer:
    return "A keystream per process and thread, seeded by the operating system. No function takes a seed.", ""


def _timing(now: Situation) -> Answer:
    if now.policy.budget_entry.analysts:
        known = "Published files show when charges were made, before data is read, and the day of the release."
        return f"{known} Analysts who ask directly can measure how long answers take: this is not protected.", ""
    return "Nobody but the owner asks, and published files do not show how long anything took.", ""


def _errors(_: Situation) -> Answer:
    return "Refusals are decided before data is read; after the charge there is one fixed message.", ""


def _reset(now: Situation) -> Answer:
    if now.summary is None:
        return NO_LEDGER, ""
    changes, losses = now.summary.changes(RowKind.BUDGET), now.summary.changes(RowKind.ACKNOWLEDGE)
    lost = sum((act.lost for act in losses), ZERO_LOSS)
    counted = "" if lost == ZERO_LOSS else f", which counted {loss_text(lost)} as spent"
    acts = f"{counted_noun(len(changes), 'change')} of its terms, {counted_noun(len(losses), 'acknowledgement')}"
    return f"What was spent is never reset. In the ledger: {acts} of failures or rollbacks{counted}.", ""


def _populations(now: Situation) -> Answer:
    others = stated_list(now.policy.release.other_releases, "The owner states that there are no others.")
    statement = None if now.policy.release.other_releases is None else others
    if now.policy.data.population:
        names = sorted(now.summary.terms.datasets or ()) if now.summary else [now.policy.data.name]
        return f"One account for the population {now.policy.data.population}: {', '.join(names)}.", statement
    return "One account for this data set alone; losses from other data are not included.", statement


def _composition(now: Situation) -> Answer:
    if now.summary is None:
        return NO_LEDGER, ""
    charges, spent = counted_noun(len(now.summary.events), "charge"), loss_text(now.summary.spent)
    return f"{charges}, {spent} in total. What would exceed the limit is refused, also if chosen adaptively.", ""


def _collusion(now: Situation) -> Answer:
    analysts = counted_noun(len(now.policy.budget_entry.analysts), "analyst")
    return f"The total limit applies to everyone together: the owner and {analysts}.", ""


def _changing_data(now: Situation) -> Answer:
    version = now.policy.data.version
    if version is None:
        return "No version is declared: cached answers are reused even if the data change.", ""
    return f"The owner states that data labelled {version!r} never change.", ""


def _post_processing(now: Situation) -> Answer:
    steps = now.record.post_processing if now.record else ()
    done = f" Here: {' '.join(steps)}" if steps else ""
    return f"It uses released numbers only, so it costs no privacy.{done}", ""


def _invariants(now: Situation) -> Answer:
    listed = invariants_of(now.policy, now.record)
    statement = None if listed is None else stated_list(listed, NO_INVARIANTS)
    return "Discreet releases nothing but public tables without noise.", statement


def _public_tables(now: Situation) -> Answer:
    names = [name for name, table in now.policy.tables.items() if table.public]
    if not names:
        return "No table is public.", ""
    return (
        f"Not protected: {', '.join(names)}. They must not be derived from the private data.",
        now.policy.release.bounds_reason,
    )


def _access(now: Situation) -> Answer:
    return (
        "Differential privacy does not protect the raw data, their copies or their backups.",
        now.policy.release.access,
    )


def _correlated(now: Situation) -> Answer:
    nouns, epsilon = pluralise(protected_noun(now.policy)), rounded_up(_GROUP_SIZE * now.budget.epsilon)
    bound = f"epsilon {epsilon}{' and a larger delta' if now.budget.delta else ''}"
    fact = f"For {_GROUP_SIZE} {nouns} together the bound is {bound}; data about relatives are not covered."
    return fact, now.policy.release.related_people


def _missing(now: Situation) -> Answer:
    columns = [column for table in now.policy.tables.values() if not table.public for column in table.columns.values()]
    shown = [column.name for column in columns if column.null]
    fact = (
        f"Missing values are a group of their own in: {', '.join(shown)}."
        if shown
        else "Missing values are in no group."
    )
    return f"{fact} They are left out of sums and means.", now.policy.release.missing_values


def _free_text(now: Situation) -> Answer:
    open_columns = [
        f"{table.name}.{column.name}"
        for table in now.policy.tables.values()
        if not table.public
        for column in table.columns.values()
        if isinstance(column.domain, NoDomain)
        and column.type == "text"
        and not (column.unique or is_unit(table, column))
    ]
    if not open_columns:
        return "Every text column that can be queried has declared values.", ""
    return (
        f"Without declared values: {', '.join(open_columns)}. They are released only above a threshold, if at all.",
        "",
    )


def _synthetic(now: Situation) -> Answer:
    names = [part.name for part in now.record.parts if part.kind == "synthetic rows"] if now.record else []
    if not names:
        return "No synthetic rows are in this release.", ""
    fact = (
        f"{', '.join(names)}: generated from noisy tables only. No row corresponds to a person, and numbers computed "
        "from the rows have no margins of error."
    )
    return fact, ""


def _trust(_: Situation) -> Answer:
    return "Central model: the owner holds the raw data and adds the noise.", ""


def _small_groups(now: Situation) -> Answer:
    tables = sum(part.margins is not None for part in now.record.parts) if now.record else 0
    where = f"for {counted_noun(tables, 'released table')}, small groups first" if tables else "for every answer"
    return f"Margins of error are stated {where}; the clipping bias is stated where it was estimated.", ""


def _software(_: Situation) -> Answer:
    return "A small trusted base with proofs and tests; `discreet audit` tries to refute a policy's guarantee.", ""


HAZARDS: dict[str, tuple[str, str, Callable[[Situation], Answer]]] = {  # name, risk and answer
    "unit": (
        "Privacy unit and its grain",
        "If a row or a day is the unit, people with several of them are protected less than readers may assume.",
        _unit,
    ),
    "identities": (
        "One person, several keys",
        "A person with two keys counts as two units, which are protected separately.",
        _identities,
    ),
    "neighbours": (
        "Neighbouring data sets",
        "An epsilon means different things under add/remove and under substitution.",
        _neighbours,
    ),
    "epsilon": (
        "Choice of epsilon",
        "A large epsilon is a weak guarantee.",
        _epsilon,
    ),
    "delta": (
        "Choice of delta",
        "If delta is close to one over the number of people, somebody's data may be disclosed in full.",
        _delta,
    ),
    "definition": (
        "Variant of the definition",
        "Parameters of different variants cannot be compared directly.",
        _definition,
    ),
    "bounds": (
        "Bounds taken from the data",
        "A minimum, maximum or quantile taken from the data discloses extreme values.",
        _bounds,
    ),
    "groups": (
        "Groups taken from the data",
        "A group that is shown because one person is in it discloses that person.",
        _groups,
    ),
    "contributions": (
        "Unbounded contributions",
        "A unit with many rows may change a result by more than the noise hides.",
        _contributions,
    ),
    "sensitivity": (
        "Wrong sensitivity",
        "Joins and duplicates can multiply a unit's contribution, and then the noise is too small.",
        _sensitivity,
    ),
    "floating point": (
        "Floating-point numbers",
        "Low-order bits of the noise, and the rounding of sums, can disclose values.",
        _floating_point,
    ),
    "randomness": (
        "Predictable randomness",
        "Noise that can be reproduced, from a seed or in a forked process, can be subtracted.",
        _randomness,
    ),
    "timing": (
        "Side channels",
        "The time that an answer takes can depend on somebody's rows.",
        _timing,
    ),
    "errors": (
        "Errors and metadata",
        "Error messages, row counts and refusals can disclose values.",
        _errors,
    ),
    "reset": (
        "Budget resets",
        "If a budget starts again, the losses still add up.",
        _reset,
    ),
    "populations": (
        "Several budgets for the same people",
        "Losses in separate accounts about the same people add up without a limit.",
        _populations,
    ),
    "composition": (
        "Many releases",
        "The losses of all releases add up, also when queries depend on earlier answers.",
        _composition,
    ),
    "collusion": (
        "Colluding analysts",
        "Analysts can combine the answers that each of them received.",
        _collusion,
    ),
    "changing data": (
        "Data that change",
        "The difference between releases on old and new data can disclose who was added.",
        _changing_data,
    ),
    "post-processing": (
        "Post-processing",
        "A later step that uses the raw data again is not covered.",
        _post_processing,
    ),
    "invariants": (
        "Invariants",
        "Exact numbers that are published beside noisy ones are outside the guarantee.",
        _invariants,
    ),
    "public tables": (
        "Public tables",
        "A public table that was derived from the private data discloses them.",
        _public_tables,
    ),
    "access": (
        "Access to the raw data",
        "Anyone who can read the raw data bypasses the protection.",
        _access,
    ),
    "correlated": (
        "People who resemble each other",
        "Data about relatives and friends can disclose facts about a person.",
        _correlated,
    ),
    "missing": (
        "Missing values",
        "Missing values can bias results and disclose who is missing.",
        _missing,
    ),
    "free text": (
        "Open text",
        "Texts can identify people by themselves.",
        _free_text,
    ),
    "synthetic": (
        "Synthetic rows",
        "Synthetic rows can be mistaken for real people, or for accurate data.",
        _synthetic,
    ),
    "trust": (
        "Central or local trust",
        "In the central model, people have to trust whoever holds the raw data.",
        _trust,
    ),
    "small groups": (
        "Bias against small groups",
        "Noise affects small groups most, and clipping affects heavy contributors.",
        _small_groups,
    ),
    "software": (
        "Defects of the software",
        "An error in the implementation can void the guarantee.",
        _software,
    ),
}
