"""Charges and settles for ever, and prints each answer when it is stored. Run by itself, it starts in no time."""

import sys

import discreet as dc

NAME = "crash"
PRICE = "1/100000"


def work(path: str) -> None:
    """Charge, draw, settle and print, until killed."""
    mechanism = dc.Laplace(10)
    with dc.open_ledger(path, name=NAME) as ledger:
        number = 0
        while True:
            number += 1
            event = dc.Event(mechanism=str(mechanism), sensitivity="{}", question=f"count {number}")
            receipt = ledger.charge(dc.Loss(PRICE), event)
            answer = mechanism.perturb(731)
            ledger.settle(receipt, str(answer).encode())
            sys.stdout.write(f"{receipt.id} {answer}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    work(sys.argv[1])
