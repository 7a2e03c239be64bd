"""The rows on the curator, with simulated towns: differencing of queries and of data versions, and asking."""

import duckdb
import numpy as np
import pyarrow as pa

import discreet as dc
from mission.rows import median_of, rate, record, row

WARDS, RESIDENTS = 1000, 20  # each ward has a governor, whose age is unique there
OLDEST = 99
TOP_INCOME = 100_000
EPSILON = "0.01"
OF_AVERAGES = "0.5"
ILL = "SELECT ward, COUNT(*) AS n FROM people WHERE ill = 1 GROUP BY ward ORDER BY ward"
OTHERS = ILL.replace("ill = 1", f"ill = 1 AND age < {OLDEST}")
INCOMES = "SELECT ward, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY ward ORDER BY ward"

POLICY = """
[data]
name = "town"
ledger = ":memory:"
[budget]
epsilon = "{budget}"
bounds_report = 0
[tables.people]
source = "people"
unit = "person"
groups = 1
rows = 1
[tables.people.columns]
person = {{ type = "integer" }}
ward = {{ type = "integer", between = [0, {last}] }}
age = {{ type = "integer", between = [18, {oldest}] }}
ill = {{ type = "integer", in = [0, 1] }}
income = {{ type = "real", between = [0, {top}] }}
"""


def town(wards=WARDS):
    """Return people sorted by ward; the first of each ward is the governor, ill by a coin toss."""
    rng = np.random.default_rng(60)
    size = wards * RESIDENTS
    age = rng.integers(18, OLDEST, size)
    age[::RESIDENTS] = OLDEST
    ill = np.where(age == OLDEST, rng.integers(0, 2, size), rng.random(size) < 0.1)
    columns = {"person": np.arange(size), "ward": np.repeat(np.arange(wards), RESIDENTS), "age": age, "ill": ill}
    return pa.table({**columns, "income": rng.gamma(4, 9_000, size).clip(0, TOP_INCOME).round()})


def opened(people, budget):
    """Open a town under a pure budget with the person as unit."""
    policy = POLICY.format(budget=budget, last=people["ward"][-1].as_py(), oldest=OLDEST, top=TOP_INCOME)
    return dc.open(dc.policy.Policy.parse(policy), data={"people": people})


def governors(people):
    """Return for each governor whether they are ill."""
    return people["ill"].to_numpy()[::RESIDENTS] == 1


def exactly(people, sql):
    """Answer without noise."""
    with duckdb.connect() as connection:
        connection.register("people", people)
        return connection.sql(sql).to_arrow_table()


def difference(ask):
    """Guess for every ward: ill if the count with the governor exceeds the count without."""
    return column(ask(ILL), "n") - column(ask(OTHERS), "n") >= 1


def column(answer, name, wards=WARDS):
    """Return one column of an answer by ward; non-private SQL omits wards without matching rows."""
    found = np.zeros(wards)
    found[np.asarray(answer["ward"])] = np.asarray(answer[name])
    return found


@row("A5", "Differencing with and without one person: two counts, and two versions of the data")
def a5():
    people = town()
    ill, incomes = governors(people), people["income"].to_numpy()[::RESIDENTS]
    before = people.filter(people["age"].to_numpy() < OLDEST)  # the version before the governors moved in
    guesses = difference(lambda sql: exactly(people, sql))
    errors = np.abs(joined(exactly(before, INCOMES), exactly(people, INCOMES)) - incomes)
    with opened(people, 1) as curator, opened(before, 1) as earlier:
        private = difference(lambda sql: curator.ask(sql, epsilon=EPSILON).frame)
        margin = curator.explain(ILL, epsilon=EPSILON).columns[0].margin
        answers = [each.ask(INCOMES, epsilon=OF_AVERAGES).frame for each in (earlier, curator)]
    noisy = np.abs(np.nan_to_num(joined(*answers), nan=np.median(incomes)) - incomes)  # NULL: too few values
    guess = np.abs(incomes - np.median(incomes))
    return record(
        "{wards:,} governors. Illness inferred correctly from non-private counts: {exact}; at epsilon {epsilon} per "
        "count (± {margin:,.0f}): {private}. Income of the person who joined, from two non-private averages: error at "
        "most {off:.0e}; from private ones (epsilon {of_averages} each): median error {noisy_shown}, against "
        "{guess_shown} for guessing the median income: {verdict}",
        wards=WARDS,
        epsilon=EPSILON,
        of_averages=OF_AVERAGES,
        margin=margin,
        exact=rate((guesses == ill).sum(), WARDS),
        private=rate((private == ill).sum(), WARDS, dc.privacy.posterior_bound(0.5, 2 * float(EPSILON))),
        off=float(errors.max()),
        noisy=float(np.median(noisy)),
        guess=float(np.median(guess)),
        noisy_shown=median_of(noisy, ",.0f"),
        guess_shown=median_of(guess, ",.0f"),
        verdict="worse than guessing" if np.median(noisy) > np.median(guess) else "BETTER than guessing",
    )


def joined(before, after):
    """Return the total income of those who joined between two versions, by ward, from counts and averages."""
    first, second = (column(each, "n") * column(each, "mean") for each in (before, after))
    return second - first


@row("B6", "Curator, analyst, mechanism: the interactive framework")
def b6():
    sql = "SELECT ward, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY ward"
    with opened(town(8), 2) as curator:
        explained = curator.explain(sql, epsilon="1/10")
        answer = curator.ask(sql, epsilon="1/10")
        spent = curator.ledger.spent()
        try:
            curator.ask("SELECT person, income FROM people LIMIT 10", epsilon="1/10")
        except dc.Refused as refusal:
            refused = str(refusal).split(":")[0]
        else:
            refused = None
        verified = _verified(curator.ledger)
        forecast, margin = explained.columns[0].margin, answer.margins["n"][0]
        return record(
            "ask: {wards} wards, margin of n: forecast ± {forecast:,.0f}, answered ± {margin:,.0f}; charged epsilon "
            "{charged:g} ({share:.1%} of the budget); a query for rows was {shown}; epsilon {now:g} spent after it; "
            "the ledger {verified}",
            wards=len(answer),
            forecast=forecast,
            margin=margin,
            spent=spent.epsilon,
            after=curator.ledger.spent().epsilon,
            charged=float(spent.epsilon),
            now=float(curator.ledger.spent().epsilon),
            share=float(answer.share),
            refused=refused,
            shown=f"refused ({refused})" if refused else "NOT refused",
            verified=verified,
        )


def _verified(ledger):
    try:
        ledger.verify()
    except dc.LedgerError as error:
        return f"is NOT intact ({error})"
    return "is intact"
