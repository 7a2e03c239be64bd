"""Asks the same kind of question again and again until somebody kills it; prints what it has seen."""

import sys

import discreet as dc

if __name__ == "__main__":
    with dc.open(sys.argv[1]) as curator:
        for number in range(100_000):
            answer = curator.ask("SELECT COUNT(*) AS n FROM t", epsilon="1/1000", key=f"{sys.argv[2]}-{number}")
            print(answer.receipt.id, answer.value, flush=True)
