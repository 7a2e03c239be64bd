"""Q2 with SmartNoise SQL on pandas, which it copies into SQLite; that copy is not part of what is measured.

It bounds the rows of a person over all cities, and its epsilon is for each of four columns, so each gets a quarter.
"""

import warnings

import measure
import pandas as pd
from snsql import Privacy, from_connection

QUESTION = "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM shop.sales GROUP BY city"


def main():
    folder, rows, times = measure.arguments()
    warnings.simplefilter("ignore")
    columns = {
        "user": {"type": "int", "private_id": True},
        "city": {"type": "int"},
        "amount": {"type": "float", "lower": measure.LOW, "upper": measure.HIGH},
    }
    table = {"max_ids": measure.GROUPS * measure.ROWS, "sample_max_ids": True, "censor_dims": True, "rows": rows}
    data = pd.read_parquet(folder / "sales.parquet", columns=list(columns))
    privacy = Privacy(epsilon=measure.EPSILON / 4, delta=measure.DELTA * 2 / 3)
    reader = from_connection(data, privacy=privacy, metadata={"": {"shop": {"sales": {**table, **columns}}}})
    epsilon, delta = reader.get_privacy_cost(QUESTION)
    assert epsilon <= measure.EPSILON * 1.001, epsilon
    assert delta <= measure.DELTA * 1.001, delta

    def ask():
        return [row[:2] for row in reader.execute(QUESTION)[1:]]

    measure.tell("smartnoise-sql", ask, times)


main()
