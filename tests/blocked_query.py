"""Ask with a key and be held up while the data are read: python blocked_query.py POLICY

Prints "reading" when the question is charged and the data are about to be read, waits for a line, and then prints the
number that was answered.
"""

import sys

import pyarrow as pa

import discreet as dc

SQL = "SELECT COUNT(*) AS n FROM visits"
TOML = """
[data]
name = "visits"
ledger = "{ledger}"
[budget]
epsilon = 10.0
[tables.visits]
source = "visits"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = {{ type = "integer" }}
"""


def opened(policy):
    return dc.open(policy, data={"visits": pa.table({"patient": list(range(100))})})


def number(curator, **more):
    return curator.ask(SQL, epsilon="1/10", **{"key": "k", **more}).to_arrow()["n"][0].as_py()


def main(policy):
    with opened(policy) as curator:
        totals = curator._engine.totals

        def held_up(question):
            print("reading", flush=True)
            sys.stdin.readline()
            return totals(question)

        curator._engine.totals = held_up
        print(number(curator), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
