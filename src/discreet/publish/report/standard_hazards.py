"""Known hazards of differential privacy, each answered by a fact of the policy, the ledger or the software.

The list covers the subjects of NIST SP 800-226 in our own words; the final text of the standard was not at hand, so
nothing is quoted from it and its numbering is not used. What no file shows is left to the owner.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from discreet.kernel.ledger.chain import RowKind
from discreet.kernel.loss import ZERO_LOSS, Budget
from discreet.policy import Hazard, Policy, hazards
from discreet.policy.column_domains import Between, NoDomain
from discreet.policy.declarations import AUTO, PersonInWindow, RowUnit
from discreet.policy.entries import DEFAULT_ROWS_MAX
from discreet.policy.guarantee import neighbour_sentence, pluralise, protected_noun, unit_sentence
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.content import OWNER_MUST_STATE, Chapter, ContentTable, stated_list
from discreet.publish.report.ledger_chapters import NO_LEDGER, LedgerSummary
from discreet.publish.report.number_text import counted_noun, loss_text, rounded_up
from discreet.publish.report.odds import budget_pair, guess_participation, odds_text
from discreet.publish.report.release_chapters import NO_INVARIANTS, invariants_of

_GROUP_SIZE = 4  # a family


class Situation(NamedTuple):
    """What hazards are answered from."""

    policy: Policy
    budget: Budget
    summary: LedgerSummary | None
    record: ReleaseRecord | None


Answer = tuple[str, str | None]  # the fact, and what the owner states beside it: None if they must state it


@dataclass(frozen=True)
class HazardAnswer:
    """A hazard, the risk, the fact that answers it, and the owner's statement: None if missing, "" if not needed."""

    id: str
    hazard: str
    risk: str
    fact: str
    statement: str | None

    @property
    def text(self) -> str:
        """Fact and statement as one text."""
        return " ".join(filter(None, [self.fact, OWNER_MUST_STATE if self.statement is None else self.statement]))


def answer_hazards(situation: Situation) -> list[HazardAnswer]:
    """Return the answer to every hazard, in the order of the list."""
    return [HazardAnswer(id_, name, risk, *find(situation)) for id_, (name, risk, find) in _HAZARDS.items()]


def hazards_chapter(situation: Situation) -> Chapter:
    """Return all hazards with their answers, and the findings of the policy's own check."""
    answers = answer_hazards(situation)
    open_ones = [each.hazard for each in answers if each.statement is None]
    findings = hazards(situation.policy)
    count = f"{len(answers) - len(open_ones)} of {len(answers)} are answered"
    return Chapter(
        "hazards",
        "Known hazards",
        (
            (
                "What can undo the protection although the noise is right. The subjects are those of NIST SP 800-226, "
                "in our own words: nothing is quoted, and its final text was not at hand."
            ),
            f"{count}{'; the owner must still state: ' + ', '.join(open_ones).lower() if open_ones else ''}.",
        ),
        (
            ContentTable(("Hazard", "Risk", "Answer"), tuple((each.hazard, each.risk, each.text) for each in answers)),
            *([_findings_table(findings)] if findings else []),
        ),
        facts={
            "answers": [asdict(each) for each in answers],
            "owner must state": [each.id for each in answers if each.statement is None],
            "findings": [{"id": each.id, "location": each.location, "message": each.message} for each in findings],
        },
    )


def _findings_table(findings: Sequence[Hazard]) -> ContentTable:
    rows = tuple((each.id, each.location, f"{each.message} {each.hint}") for each in findings)
    return ContentTable(
        ("Id", "Place", "Finding"), rows, "Findings of `discreet check` in this policy; some are justified"
    )


def _unit(now: Situation) -> Answer:
    fact = unit_sentence(now.policy)
    if isinstance(now.policy.unit, RowUnit | PersonInWindow):
        fact += f" That is less than a whole {now.policy.data.protects}."
        return fact, now.policy.release.unit_reason
    return fact, now.policy.release.unit_reason or ""


def _identities(now: Situation) -> Answer:
    if isinstance(now.policy.unit, RowUnit):
        return "Rows are the units, so it matters how many rows one person has.", now.policy.release.unit_reason
    noun = now.policy.data.protects
    return (
        f"That no {noun} has two keys, and no key two {pluralise(noun)}, cannot be checked.",
        now.policy.release.unit_reason,
    )


def _neighbours(now: Situation) -> Answer:
    return f"Add or remove one {protected_noun(now.policy)}. {neighbour_sentence(now.policy)}", ""


def _epsilon(now: Situation) -> Answer:
    odds = odds_text(guess_participation([budget_pair(now.budget)]))
    fact = (
        f"Epsilon {rounded_up(now.budget.epsilon)} per {protected_noun(now.policy)} for everything together: an "
        f"outsider guesses who takes part rightly in at most {odds} instead of 50 of 100."
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
    return (
        (
            "(epsilon, delta)-differential privacy, accounted in rho (zero-concentrated). The split of delta is fixed "
            "once. Epsilon at other deltas is in this report."
        ),
        "",
    )


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
        threshold = f"with a threshold that costs delta (at most {rounded_up(now.budget.discover)} in total)"
        return f"Groups are declared, or shown {threshold}: a group of one unit is hidden but for that delta.", ""
    return "Only declared groups are released; empty ones too, so that nothing follows from their presence.", ""


def _contributions(now: Situation) -> Answer:
    texts = [
        f"{table.name}: {_bound_text(table.groups)} groups, {_bound_text(table.rows)} rows each"
        for table in now.policy.tables.values()
        if not table.public
    ]
    return f"Bounded under the aggregate, after all joins ({'; '.join(texts)}). More is scaled down.", ""


def _bound_text(bound: object) -> str:
    return "automatic" if bound in (None, AUTO) else str(bound)


def _sensitivity(now: Situation) -> Answer:
    charges = counted_noun(len(now.summary.events) if now.summary else 0, "charge")
    return f"The kernel derives it from the query's algebra, as whole numbers, and records it ({charges}).", ""


def _floating_point(_: Situation) -> Answer:
    return "Values are rounded to a public grid and summed as whole numbers; the noise is discrete and exact.", ""


def _randomness(_: Situation) -> Answer:
    return "A keystream per process and thread, seeded by the operating system. No signature has a seed.", ""


def _timing(now: Situation) -> Answer:
    if now.policy.budget_entry.analysts:
        return "Published files show no times. Analysts who ask directly can measure them: this is not protected.", ""
    return "Nobody but the owner asks, and published files show no times.", ""


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
    return "One account for this data set alone; other data about the same people are not in it.", statement


def _composition(now: Situation) -> Answer:
    if now.summary is None:
        return NO_LEDGER, ""
    spent = loss_text(now.summary.spent)
    return (
        f"{len(now.summary.events)} charges add up to {spent}; a charge above the limit is refused, adaptively too.",
        "",
    )


def _collusion(now: Situation) -> Answer:
    analysts = counted_noun(len(now.policy.budget_entry.analysts), "analyst")
    return f"The total holds for everybody together: the owner and {analysts}.", ""


def _changing_data(now: Situation) -> Answer:
    version = now.policy.data.version
    if version is None:
        return "No version is declared: answers are never refined in a pure budget, and new data cost again.", ""
    return f"The owner states that data labelled {version!r} never change.", ""


def _post_processing(now: Situation) -> Answer:
    steps = now.record.post_processing if now.record else ()
    done = f" Here: {' '.join(steps)}" if steps else ""
    return f"Works on released numbers only, so it costs nothing and cannot undo the protection.{done}", ""


def _invariants(now: Situation) -> Answer:
    listed = invariants_of(now.policy, now.record)
    return "Discreet itself releases nothing without noise.", None if listed is None else stated_list(
        listed, NO_INVARIANTS
    )


def _public_tables(now: Situation) -> Answer:
    names = [name for name, table in now.policy.tables.items() if table.public]
    if not names:
        return "No table is public.", ""
    return (
        f"Not protected: {', '.join(names)}. They must not come from the private data.",
        now.policy.release.bounds_reason,
    )


def _access(now: Situation) -> Answer:
    return (
        "Differential privacy does not protect the raw data, their copies or their backups.",
        now.policy.release.access,
    )


def _correlated(now: Situation) -> Answer:
    nouns, epsilon = pluralise(protected_noun(now.policy)), rounded_up(_GROUP_SIZE * now.budget.epsilon)
    fact = (
        f"For {_GROUP_SIZE} {nouns} together the bound is epsilon {epsilon}; what relatives disclose is not protected."
    )
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
        if isinstance(column.domain, NoDomain) and column.type == "text"
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
    return (
        (
            f"{', '.join(names)}: made from noisy tables only. No row stands for a person, a rare one least of all; "
            "numbers computed from them have no margins."
        ),
        "",
    )


def _trust(_: Situation) -> Answer:
    return "Central model: the owner holds the raw data and adds the noise. People have to trust the owner.", ""


def _small_groups(now: Situation) -> Answer:
    tables = sum(part.margins is not None for part in now.record.parts) if now.record else 0
    where = (
        f"margins of {counted_noun(tables, 'released table')}, small groups first"
        if tables
        else "every answer has margins"
    )
    return f"Noise hides small groups and clipping understates heavy contributors: {where}.", ""


def _software(_: Situation) -> Answer:
    return "A small trusted base with proofs and tests; `discreet audit` tries to refute a policy's guarantee.", ""


_Entry = tuple[str, str, Callable[[Situation], Answer]]


def _entries() -> Iterator[tuple[str, _Entry]]:
    yield "unit", ("Privacy unit and its grain", "A row or a day is protected, but readers think of a person.", _unit)
    yield (
        "identities",
        ("One person, several keys", "Whoever has two accounts is protected as two people.", _identities),
    )
    yield "neighbours", ("Neighbouring data sets", "Epsilons of different relations are compared.", _neighbours)
    yield "epsilon", ("Choice of epsilon", "A large epsilon promises little.", _epsilon)
    yield (
        "delta",
        ("Choice of delta", "A delta near one over the number of people allows full disclosure of some.", _delta),
    )
    yield "definition", ("Variant of the definition", "Parameters of different variants are confused.", _definition)
    yield "bounds", ("Bounds taken from the data", "The smallest and largest value disclose somebody.", _bounds)
    yield "groups", ("Groups taken from the data", "A group that appears discloses its only member.", _groups)
    yield "contributions", ("Unbounded contributions", "One unit with many rows exceeds the noise.", _contributions)
    yield "sensitivity", ("Wrong sensitivity", "Joins and duplicates multiply a person's rows.", _sensitivity)
    yield "floating point", ("Floating-point numbers", "Low bits of noise or of sums disclose values.", _floating_point)
    yield "randomness", ("Predictable randomness", "A seed or a fork makes noise removable.", _randomness)
    yield "timing", ("Side channels", "The time of an answer depends on somebody's rows.", _timing)
    yield "errors", ("Errors and metadata", "A message, a row count or a refusal discloses a value.", _errors)
    yield "reset", ("Budget resets", "A budget that starts anew is no limit.", _reset)
    yield "populations", ("Several budgets for the same people", "Each is kept, their sum is not.", _populations)
    yield "composition", ("Many releases", "Losses add up, also if later queries depend on answers.", _composition)
    yield "collusion", ("Colluding analysts", "Analysts combine answers that each was allowed.", _collusion)
    yield "changing data", ("Data that change", "The difference of two releases shows the newcomers.", _changing_data)
    yield (
        "post-processing",
        ("Post-processing", "A later step reads the data again, or biases the result.", _post_processing),
    )
    yield "invariants", ("Invariants", "Exact totals beside noisy ones are outside the guarantee.", _invariants)
    yield (
        "public tables",
        ("Public tables", "A list of places visited is not public because it is called so.", _public_tables),
    )
    yield "access", ("Access to the raw data", "Whoever reads the data needs no release.", _access)
    yield "correlated", ("People who resemble each other", "Relatives and friends disclose a person.", _correlated)
    yield "missing", ("Missing values", "Who is missing, and why, biases the result.", _missing)
    yield "free text", ("Open text", "A text can identify somebody by itself.", _free_text)
    yield "synthetic", ("Synthetic rows", "They look like people, and are believed more than tables.", _synthetic)
    yield "trust", ("Central or local trust", "Readers think that nobody holds the raw data.", _trust)
    yield "small groups", ("Bias against small groups", "Noise and clipping hurt minorities most.", _small_groups)
    yield "software", ("Defects of the software", "A defect undoes the guarantee on paper.", _software)


_HAZARDS = dict(_entries())
