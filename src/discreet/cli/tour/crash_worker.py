"""Charge, settle and print until killed; a separate script, so that it starts quickly."""

import sys

import discreet as dc

NAME = "crash"
EPSILON = "1/100000"


def charge_until_killed(path: str) -> None:
    """Charge, draw noise, settle and print in an endless loop."""
    mechanism = dc.Laplace(10)
    with dc.open_ledger(path, name=NAME) as ledger:
        number = 0
        while True:
            number += 1
            event = dc.Event(mechanism=str(mechanism), sensitivity="{}", question=f"count {number}")
            receipt = ledger.charge(dc.Loss(EPSILON), event)
            answer = mechanism.perturb(731)
            ledger.settle(receipt, str(answer).encode())
            sys.stdout.write(f"{receipt.id} {answer}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    charge_until_killed(sys.argv[1])
