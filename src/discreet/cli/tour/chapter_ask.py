"""The chapter on queries: private answers beside the true values, which only the owner knows."""

import math
from dataclasses import dataclass
from typing import Any

import discreet as dc
from discreet.answer.model import Answer
from discreet.cli.tour.curator_copies import CuratorCopies
from discreet.cli.tour.page import Cell
from discreet.cli.tour.recorder import Recorder, TourContext, good, warn, yes_or_no
from discreet.worlds.town import PEOPLE, Town

EPSILON = "0.1"
CONFIDENCE = 0.95
_JOBS = 8  # steps of the progress bar
GroupKey = tuple[Any, ...]


@dataclass(frozen=True)
class DemoQuery:
    """A query in words and in SQL, without clipping, so that noise is the only error."""

    description: str
    sql: str


QUERIES = (
    DemoQuery("Residents with diabetes", "SELECT COUNT(*) FROM people WHERE ill = 'diabetes'"),
    DemoQuery("Mean age", "SELECT ward, AVG(age) FROM people GROUP BY ward"),
    DemoQuery("Median income", "SELECT MEDIAN(income) FROM people"),
    DemoQuery(
        "Seen in a hospital (join)",
        "SELECT COUNT(DISTINCT person) FROM visits JOIN clinics USING (clinic) WHERE kind = 'hospital'",
    ),
    DemoQuery(
        "5+ visits (subquery)",
        "SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person HAVING COUNT(*) >= 5) AS often",
    ),
)
# Not the mean age again, which would have another margin beside the count.
PRINTED_SQL = "SELECT ward, COUNT(*) AS n, AVG(income) AS income FROM people GROUP BY ward ORDER BY n LIMIT 3"
TrueValues = dict[DemoQuery, dict[GroupKey, float]]


def show_chapter(context: TourContext) -> None:
    """Compare answers with the true values, once and on many copies of the town, and print an answer in full."""
    true_values = {query: _values_by_key(context.town.true_answer(query.sql)) for query in QUERIES}
    copies_per_job = math.ceil(context.repetitions.copies / _JOBS)
    jobs = [context.workers.submit(ask_copies, context.town, true_values, copies_per_job) for _ in range(_JOBS)]
    with dc.open(context.town.policy) as curator:
        _show_comparison(context.recorder, curator, true_values)
        context.recorder.add_section(
            f"Do the margins hold? The same queries on {copies_per_job * _JOBS} copies of the town"
        )
        _show_coverage(context.recorder, context.recorder.wait(jobs, "querying copies of the town"))
        _show_printed_answer(context.recorder, curator)
        _show_partition_selection(context.recorder, curator, context.town)


def ask_copies(town: Town, true_values: TrueValues, count: int) -> dict[DemoQuery, list[bool]]:
    """Ask all queries on `count` copies of the town; return for each answer whether it was within its margin."""
    within_margin: dict[DemoQuery, list[bool]] = {query: [] for query in true_values}
    with dc.open(town.policy) as curator:
        copies = CuratorCopies(curator)
        for _ in range(count):
            with copies.open_copy() as copy:
                for query, truth in true_values.items():
                    answers = _values_and_margins(copy.ask(query.sql, epsilon=EPSILON)).items()
                    within_margin[query] += [abs(value - truth[key]) <= margin for key, (value, margin) in answers]
    return within_margin


def _show_comparison(recorder: Recorder, curator: dc.Curator, true_values: TrueValues) -> None:
    recorder.add_section(f"Queries on a simulated town of {PEOPLE:,} residents")
    rows: list[tuple[Cell, ...]] = []
    within = []
    for query, truth in true_values.items():
        cost = EPSILON
        for key, (value, margin) in _values_and_margins(curator.ask(query.sql, epsilon=EPSILON)).items():
            label = ": ".join((query.description, *key))
            within.append(abs(value - truth[key]) <= margin)
            answer = f"{format_number(value)} ± {format_number(margin)}"
            rows.append((label, format_number(truth[key]), answer, yes_or_no(within[-1]), cost))
            cost = ""
    recorder.add_table(("query", "true value", "answer ± 95 %", "within?", "epsilon"), rows)
    total, spent, _ = curator.budget()
    assert total.rho
    recorder.add_paragraph(
        "Noise is added to every answer, so that it reveals little about any one resident. Epsilon is the privacy "
        "cost: the smaller it is, the more noise is added. ± is the "
        f"{CONFIDENCE:.0%} margin of error from this noise; {sum(within)} of {len(within)} answers are within it. The "
        f"{len(true_values)} queries spent {float(spent.rho / total.rho):.2%} of a budget of epsilon "
        f"{float(total.epsilon):g} with a delta, in which counts and averages get Gaussian noise. Each resident lives "
        "in one ward, so a query about all wards costs no more than a query about one of them (parallel composition)."
    )


def _show_coverage(recorder: Recorder, results: list[dict[DemoQuery, list[bool]]]) -> None:
    within_by_query = {
        query: [is_within for within_margin in results for is_within in within_margin[query]] for query in results[0]
    }
    all_within = [is_within for flags in within_by_query.values() for is_within in flags]
    rows = [_coverage_row(query.description, flags) for query, flags in within_by_query.items()]
    rows.append(_coverage_row("all queries", all_within))
    recorder.add_table(("query", "answers", "within margin", "expected", "by chance"), rows)
    share, error = sum(all_within) / len(all_within), _sampling_error(len(all_within))
    if share >= CONFIDENCE - 2 * error:  # four standard errors: once in thirty thousand tours
        verdict = good(f"That agrees with {CONFIDENCE:.0%}")
    else:
        verdict = warn(f"That is below {CONFIDENCE:.0%} by more than chance explains")
    recorder.add_paragraph(
        f"Every copy draws fresh noise. {share:.1%} of all answers are within their margin. ",
        verdict,
        ". By chance: the 95 % sampling error of each share.",
    )


def _coverage_row(description: str, within_margin: list[bool]) -> tuple[str, ...]:
    share = sum(within_margin) / len(within_margin)
    return (
        description,
        f"{len(within_margin):,}",
        f"{share:.1%}",
        f"{CONFIDENCE:.0%}",
        f"± {_sampling_error(len(within_margin)):.1%}",
    )


def _sampling_error(answers: int) -> float:
    return 1.96 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / answers)


def _show_printed_answer(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.add_section("An answer as Discreet prints it")
    recorder.add_code(PRINTED_SQL)
    recorder.add_code(repr(curator.ask(PRINTED_SQL, epsilon=EPSILON)))


def _show_partition_selection(recorder: Recorder, curator: dc.Curator, town: Town) -> None:
    sql = "SELECT street, COUNT(DISTINCT person) AS people FROM visits GROUP BY street"
    recorder.add_section("Groups that the policy does not list: partition selection")
    recorder.add_code(sql)
    listed_streets = {street for street, _ in curator.ask(sql, epsilon=EPSILON)}
    visitors = dict(town.true_answer(sql))
    single = {street for street, people in visitors.items() if people == 1}
    recorder.add_paragraph(
        "The mere presence of a street in the answer could reveal its only visitor. The data has "
        f"{len(visitors):,} streets, {len(single):,} of them with a single visitor. The answer lists "
        f"{len(listed_streets):,} streets, {len(listed_streets & single):,} of them with a single visitor: a street is "
        "listed only if its noisy number of visitors exceeds a threshold, which depends on epsilon and delta."
    )


def _values_by_key(rows: list[tuple[Any, ...]]) -> dict[GroupKey, float]:
    return {tuple(row[:-1]): float(row[-1]) for row in rows}


def _values_and_margins(answer: Answer) -> dict[GroupKey, tuple[float, float]]:
    """Return the value and the margin of each group; the last column is the noisy one."""
    (margins,) = answer.margins.values()
    return {tuple(row[:-1]): (float(row[-1]), margin or 0.0) for row, margin in zip(answer, margins, strict=True)}


def format_number(number: float) -> str:
    """Format a number with at most two decimals and thousands separators."""
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:,.2f}"
