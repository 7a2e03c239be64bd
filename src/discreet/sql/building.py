"""Nodes of the kernel check themselves; what they do not take is refused where the query says it."""

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from discreet.sql.places import refuse

Node = TypeVar("Node")


def built(make: Callable[[], Node], node: exp.Expr | None, clause: str) -> Node:
    """Return what is made, or refuse it with the kernel's own words, which tell of the query alone."""
    try:
        return make()
    except ValueError as error:
        raise refuse(node, clause, str(error), "Write it in fewer or simpler steps.") from None
