"""A SELECT over one public table: some of its columns, and a condition."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.kernel.relation import PublicTable
from discreet.sql.places import refuse
from discreet.sql.rows.conditions import condition, conjuncts, every
from discreet.sql.rows.joins import Item
from discreet.sql.rows.narrow import narrowed
from discreet.sql.rows.outputs import outputs
from discreet.sql.rows.scope import PublicRows, View, find
from discreet.sql.rows.walking import first_aggregate

_PLAIN = ("expressions", "from_", "where")


def public_select(select: exp.Select, items: Sequence[Item]) -> PublicRows:
    """Return the rows of a public table that a SELECT without aggregates gives."""
    public = items[0].source
    assert isinstance(public, PublicRows)
    surplus = [name for name, given in select.args.items() if given and name not in _PLAIN]
    listed = outputs(select, (public.view,))
    if surplus or any(first_aggregate(each.node) is not None for each in listed):
        cause = (
            "only public tables are read here: there is nothing to protect, and only columns and WHERE are understood"
        )
        raise refuse(select, "SELECT", cause, "Read the public table where it lies, or join it with a private one.")
    columns = []
    for each in listed:
        bare = each.node.unnest()
        if not isinstance(bare, exp.Column):
            way_out = "Compute it outside, where the tables are joined."
            raise refuse(each.node, "SELECT", "a query on a public table can only choose columns", way_out)
        columns.append(replace(find((public.view,), bare, "SELECT"), name=each.name))
    kept = conjuncts(select.args["where"].this if select.args.get("where") else None)
    wanted = every([condition(node, (public.view,), "WHERE") for node in kept])
    before = public.table.condition
    wanted = every([each for each in (before, wanted) if each is not None])
    table = PublicTable(public.table.table, public.table.columns, wanted)
    view = View(None, tuple(columns))
    return PublicRows(table, view if wanted is None else narrowed((view,), wanted)[0])
