"""Q2 with Discreet, in a process of its own as the peers are; `one.toml` lets one question take all of delta."""

import measure

import discreet as dc

QUESTION = "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM sales GROUP BY city"


def main():
    folder, _, times = measure.arguments()
    with dc.open(folder / "one.toml") as shop:

        def ask():
            answer = shop.ask(QUESTION, epsilon=1, groups=measure.GROUPS, rows=measure.ROWS).table
            return zip(answer["city"].to_pylist(), answer["n"].to_pylist(), strict=True)

        measure.tell("discreet", ask, times)


main()
