"""Q2 with Discreet, in a process of its own as the peers are; `one.toml` lets one question take all of delta."""

from dataclasses import replace
from itertools import count

import measure

import discreet as dc
from discreet.engines.duckdb.engine import Tuning

QUESTION = "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM sales GROUP BY city"


def main():
    folder, _, times = measure.arguments()
    # Nothing is remembered: neither an answer, by a version of its own each time, nor an exact total.
    with dc.open(folder / "one.toml", tuning=Tuning(totals_cache=0)) as shop:
        versions = (f"version {number}" for number in count())

        def ask():
            data = shop.policy.data.model_copy(update={"version": next(versions)})
            anew = dc.Curator(replace(shop.policy, data=data), shop._engine, shop.ledger)
            answer = anew.ask(QUESTION, epsilon=1, groups=measure.GROUPS, rows=measure.ROWS).table
            return zip(answer["city"].to_pylist(), answer["n"].to_pylist(), strict=True)

        measure.tell("discreet", ask, times)


main()
