"""Asks one new question after another until somebody kills it; prints what it has seen."""

import sys

import discreet as dc


def question(life, number):
    """Return a question that nobody else asks: whoever asked it before would be given the stored answer."""
    return f"SELECT COUNT(*) AS n FROM t WHERE number < 1000 + {life} * 100000 + {number}"


if __name__ == "__main__":
    with dc.open(sys.argv[1]) as curator:
        for number in range(100_000):
            asked = question(sys.argv[2], number)
            answer = curator.ask(asked, epsilon="1/1000", key=f"{sys.argv[2]}-{number}")
            print(answer.receipt.id, answer.value, flush=True)
