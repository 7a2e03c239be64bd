"""The sources of FROM: tables of the policy, names of WITH, and queries in parentheses."""

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from discreet.policy import Table
from discreet.sql.places import quoted, refuse
from discreet.sql.rows.leaves import private_rows, public_rows
from discreet.sql.rows.scope import Known, PublicRows, Released, Rows, Source, View, nearest, same_name
from discreet.sql.world import World

Names = dict[str, Source]  # of WITH, inner ones last
_PLAIN = {"this", "alias"}
_FUNCTION = "a function or a list cannot be a source"


def source(node: exp.Expr, names: Names, world: World, read: Callable[[exp.Query], Source]) -> Source:
    """Return what a source of FROM gives."""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        return _table(node, names, world)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        _check_plain(node, _PLAIN)
        return called(read(node.this), node.args.get("alias"), node)
    if isinstance(node, exp.Lateral):
        raise refuse(node, "FROM", "LATERAL is not supported", "Write a JOIN.")
    if isinstance(node, exp.Subquery):
        raise refuse(node, "FROM", "a join in parentheses is not supported", "Write the joins one after the other.")
    raise refuse(node, "FROM", _FUNCTION, "Name tables of the policy.")


def _table(node: exp.Table, names: Names, world: World) -> Source:
    identifier = node.this
    found = next((names[name] for name in reversed(names) if same_name(identifier, name)), None)
    _check_plain(node, _PLAIN)
    if found is not None:
        alias = node.args.get("alias") or exp.TableAlias(this=identifier.copy())
        return called(found, alias, node)
    table = _named(node, world)
    alias = node.args.get("alias")
    name = alias.this.name if alias is not None and alias.this is not None else table.name
    make = public_rows if table.public else private_rows
    made = make(world.policy, world.publics, table, name)
    return called(made, alias, node) if alias is not None and alias.args.get("columns") else made


def _named(node: exp.Table, world: World) -> Table:
    tables = {table.name: table for table in world.tables}
    found = next((table for name, table in tables.items() if same_name(node.this, name)), None)
    if found is None:
        raise refuse(node, "FROM", f"there is no table {quoted(node.this.name)}", nearest(node.this.name, list(tables)))
    return found


def _check_plain(node: exp.Expr, plain: set[str]) -> None:
    surplus = [name for name, given in node.args.items() if given and name not in plain]
    if "sample" in surplus:
        raise refuse(
            node, "FROM", "TABLESAMPLE would choose rows of some people", "Leave it out: noise is cheap on all rows."
        )
    if {"db", "catalog"} & set(surplus):
        raise refuse(node, "FROM", "tables have no schema here", "Write the table's name alone.")
    if surplus:
        words = surplus[0].strip("_").upper()
        raise refuse(node, "FROM", f"{words} is not supported on a source", "Leave it out.")


def called(found: Source, alias: exp.TableAlias | None, node: exp.Expr) -> Source:
    """Return a source under the name, and with the columns' names, that a query gives it."""
    if isinstance(found, Released):
        return found
    name = alias.this.name if alias is not None and alias.this is not None else None
    columns = found.known if isinstance(found, Rows) else found.view.columns
    given = [each.name for each in (alias.args.get("columns") or ())] if alias is not None else []
    if len(given) > len(columns):
        raise refuse(node, "FROM", f"the source has only {len(columns)} columns", "Name as many, or fewer.")
    view = View(name, _renamed(columns, given))
    return Rows(found.relation, (view,)) if isinstance(found, Rows) else PublicRows(found.table, view)


def _renamed(columns: tuple[Known, ...], given: list[str]) -> tuple[Known, ...]:
    names = [*given, *(known.name for known in columns[len(given) :])]
    return tuple(replace(known, name=name) for known, name in zip(columns, names, strict=True))
