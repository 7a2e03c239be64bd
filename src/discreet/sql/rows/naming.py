"""Names inside the kernel's relations: unique in any case, because engines may not tell cases apart."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from discreet.kernel.expr import Call, Column, Expr
from discreet.kernel.relation import Derive, PublicTable
from discreet.sql.rows.scope import PublicRows, Rows, View

_LONGEST = 150


def fresh(name: str, taken: Iterable[str]) -> str:
    """Return the name, or the name with a number, so that it is not taken and the kernel accepts it.

    >>> fresh("User", ["user", "User_1"])
    'User_2'
    """
    used = {each.lower() for each in taken}
    plain = name.replace("\0", "").lstrip(".")[:_LONGEST] or "column"
    if plain.lower() not in used:
        return plain
    return next(made for number in range(1, len(used) + 2) if (made := f"{plain}_{number}").lower() not in used)


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression over columns with other names."""
    match expr:
        case Column(name, kind):
            return Column(names.get(name, name), kind)
        case Call(op, args):
            return Call(op, tuple(renamed(arg, names) for arg in args))
    return expr


def _apart(names: Iterable[str], taken: Iterable[str], alias: str | None) -> dict[str, str]:
    """Return new names for those that are taken, made from the source's alias."""
    used, found = {name.lower() for name in taken}, {}
    for name in names:
        new = fresh(f"{alias or 'source'}.{name}", used) if name.lower() in used else name
        found[name] = new
        used.add(new.lower())
    return found


def private_apart(rows: Rows, taken: Iterable[str]) -> Rows:
    """Return rows whose columns share no name with those taken."""
    schema, taken = rows.relation.shape.schema, list(taken)
    if not {name.lower() for name in schema} & {name.lower() for name in taken}:
        return rows
    names = _apart(schema, taken, rows.views[0].alias)
    relation = Derive(rows.relation, tuple((names[name], Column(name, kind)) for name, kind in schema.items()))
    return Rows(relation, tuple(_moved(view, names) for view in rows.views))


def public_apart(public: PublicRows, taken: Iterable[str]) -> PublicRows:
    """Return a public table whose columns share no name with those taken."""
    table = public.table
    names = _apart(table.schema, taken, public.view.alias)
    condition = None if table.condition is None else renamed(table.condition, names)
    columns = tuple((names[name], column) for name, column in table.columns)
    return PublicRows(PublicTable(table.table, columns, condition), _moved(public.view, names))


def _moved(view: View, names: Mapping[str, str]) -> View:
    return replace(view, columns=tuple(known.moved(names[known.column.name]) for known in view.columns))
