"""How the kernel's expressions and relations are written in SQL.

Every name is quoted and every constant is written here: no text of a query passes through. What differs between engines
is in a Dialect.
"""

from collections.abc import Callable
from itertools import chain

from discreet.kernel.dialect import Dialect, Operation, quoted
from discreet.kernel.expr import LONGEST_TEXT, LOOKS, Call, Column, Constant, Expr, Type
from discreet.kernel.fold import Fold, Folded
from discreet.kernel.grid import Grid
from discreet.kernel.relation import (
    Derive,
    Has,
    JoinOwn,
    JoinPublic,
    Keep,
    Named,
    Own,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiOwn,
    Through,
    Union,
    Where,
)

_BETWEEN = {"and": " AND ", "or": " OR "}
_PAIRWISE = ("least", "greatest")  # DuckDB may stop when it copies a plan in which they have a column twice among many


def write(expr: Expr, dialect: Dialect) -> str:  # noqa: PLR0911 - one for each kind
    """Write an expression."""
    match expr:
        case Column(name):
            return quoted(name)
        case Constant(value, kind):
            if value is None:
                return f"CAST(NULL AS {dialect.types[kind]})"
            return dialect.constant(value, kind)
    args = [write(arg, dialect) for arg in expr.args]
    if expr.op == "case":
        pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
        return f"(CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END)"
    if expr.op in _BETWEEN:
        return f"({_BETWEEN[expr.op].join(args)})"
    # Cut, so that texts joined to themselves again and again do not fill the memory.
    if expr.op == "join" and "join" not in dialect.operations:
        return f"SUBSTRING({' || '.join(args)}, 1, {LONGEST_TEXT})"
    if expr.op in LOOKS:  # at so much of a text and no more: a long one must not take a time that tells of it
        args[0] = f"SUBSTRING({args[0]}, 1, {LONGEST_TEXT})"
    typed = f"{expr.op} {expr.args[0].type.value}"
    operation = dialect.operations.get(typed) or dialect.operations[expr.op]
    while expr.op in _PAIRWISE and len(args) > 2:
        args = [f"({_filled(operation, pair, expr)})" if len(pair) == 2 else pair[0] for pair in _pairs(args)]
    if dialect.once and (named := _named_often(operation, expr)):
        columns = ", ".join(f'{args[place]} AS ".a{place}"' for place in named)  # no column of a table has such a name
        args = [f'z.".a{place}"' if place in named else arg for place, arg in enumerate(args)]
        return f"({dialect.once.format(value=_filled(operation, args, expr), columns=columns)})"
    return f"({_filled(operation, args, expr)})"


def _filled(operation: str | Operation, args: list[str], expr: Call) -> str:
    if isinstance(operation, str):
        return operation.format(*args, all=", ".join(args), rest=", ".join(args[1:]))
    return operation(args, expr.args)


def _named_often(operation: str | Operation, expr: Call) -> list[int]:
    """Return the places of computed arguments that an operation names more than once: written out, they would grow."""
    marks = [f"\0{place}\0" for place in range(len(expr.args))]
    text = _filled(operation, marks, expr)
    return [place for place, arg in enumerate(expr.args) if isinstance(arg, Call) and text.count(marks[place]) > 1]


def _pairs(args: list[str]) -> list[list[str]]:
    return [args[place : place + 2] for place in range(0, len(args), 2)]


def rows(relation: Relation, dialect: Dialect) -> str:  # noqa: C901, PLR0911 - one case for each node
    """Write a relation as a SELECT whose columns are the unit's key and the relation's own."""

    def sql(expr: Expr) -> str:
        return write(expr, dialect)

    def below(source: Relation, name: str = "s") -> str:
        return f"({rows(source, dialect)}) AS {name}"

    match relation:
        case Scan():
            return _scan(relation, dialect)
        case Where(source, condition):
            return f"SELECT * FROM {below(source)} WHERE {sql(condition)}"
        case Derive(source, columns):
            apart = dialect.apart if any(isinstance(expr, Call) for _, expr in columns) else ""
            return f"SELECT {_shown(unit_of(source), _named(columns, sql))} FROM {below(source)}{apart}"
        case JoinPublic(source, table, equal, also, keep, fanout):
            on = [f"s.{quoted(ours)} = p.{quoted(theirs)}" for ours, theirs in equal] + ([sql(also)] if also else [])
            names = _shown(unit_of(source, "s"), _columns(source, "s"), [f"p.{quoted(name)}" for name in table.schema])
            public = _public(table, [theirs for _, theirs in equal], fanout, dialect)
            return f"SELECT {names} FROM {below(source)} {_join(keep)} ({public}) AS p ON {every(on)}"
        case JoinOwn(left, right, also, keep, most):
            on = same_unit(left, "l", "r") + ([sql(also)] if also else [])
            names = listed(unit_of(left, "l"), _columns(left, "l"), _columns(right, "r"))
            sides = [f"({_first(side, most, dialect)}) AS {name}" for side, name in ((left, "l"), (right, "r"))]
            return f"SELECT {names} FROM {sides[0]} {_join(keep)} {sides[1]} ON {every(on)}"
        case SemiOwn(source, other, has):
            within = below(other, "o")
            if "s" in map(str.casefold, other.shape.schema):  # else s would be that column there, and not the table
                within = f"(SELECT {listed(unit_of(other))} FROM {within}) AS o"
            found = f"EXISTS (SELECT 1 FROM {within} WHERE {every(same_unit(source, 's', 'o'))})"
            return f"SELECT * FROM {below(source)} WHERE {'NOT ' if has is Has.NONE else ''}{found}"
        case PerUnit(source, keys, values):
            key = [key_of(expr, dialect) for _, expr in keys]
            made = [f"{text} AS {quoted(name)}" for text, (name, _) in zip(key, keys, strict=True)]
            made += [f"{_folded(folded, dialect)} AS {quoted(name)}" for name, folded in values]
            gathered = listed(unit_of(source), key)
            return f"SELECT {listed(unit_of(source), made)} FROM {below(source)} GROUP BY {gathered}"
        case Union(left, right):
            names = listed(unit_of(left), _columns(left))
            return f"SELECT {names} FROM {below(left)} UNION ALL SELECT {names} FROM {below(right)}"


def rows_in_turn(relation: Relation, columns: tuple[str, ...], dialect: Dialect) -> str:
    """Write the rows that lack none of these columns, unit by unit, each with the number of its unit."""
    units, names = unit_of(relation), [quoted(name) for name in columns]
    number = f"DENSE_RANK() OVER (ORDER BY {_ordered(units)})" if units else "ROW_NUMBER() OVER ()"
    values = [
        f"{dialect.finite.format(value=name)} AS {name}" if relation.shape.schema[column] is Type.REAL else name
        for column, name in zip(columns, names, strict=True)
    ]
    held = f"SELECT * FROM (SELECT {listed(units, values)} FROM ({rows(relation, dialect)}) AS s) AS s"
    present = every([f"{name} IS NOT NULL" for name in names])
    return dialect.finish(f'SELECT {number} AS ".n", {listed(names)} FROM ({held} WHERE {present}) AS s ORDER BY ".n"')


def _scan(scan: Scan, dialect: Dialect) -> str:
    columns = [f"c.{quoted(column.name)}" for column in scan.columns]
    source = f"{dialect.source(scan.table)} AS c"
    match scan.owner:
        case Own(unit):
            named, held = _owner(unit, dialect)
            return f"SELECT {listed(named, columns)} FROM {source} WHERE {held}"
        case Through(on, parent, key):
            units = unit_of(scan)
            first, last = ([dialect.extreme(end, *unit) for unit in _typed(scan)] for end in ("MIN", "MAX"))
            alone = [f"{least} = {most}" for least, most in zip(first, last, strict=True)]
            one = [f"{least} AS {unit}" for least, unit in zip(first, units, strict=True)]
            owners = f'SELECT ".key", {listed(one)} FROM ({_owners(parent, key, dialect)}) AS w GROUP BY ".key"'
            names = listed([f"o.{unit}" for unit in units], columns)
            return (
                f'SELECT {names} FROM {source} JOIN ({owners} HAVING {every(alone)}) AS o ON c.{quoted(on)} = o.".key"'
            )
    return f"SELECT {_shown(columns)} FROM {source}"


def _owner(unit: tuple[Expr, ...], dialect: Dialect) -> tuple[list[str], str]:
    """Write the columns of a row's own unit, and that it has one."""
    parts = [write(part, dialect) for part in unit]
    named = [f'{part} AS ".u{place}"' for place, part in enumerate(parts)]
    return named, every([f"{part} IS NOT NULL" for part in parts])


def _owners(scan: Scan, key: str, dialect: Dialect) -> str:
    """Write who owns each key of a parent table: every owner, also where there are several."""
    source = f"{dialect.source(scan.table)} AS c"
    match scan.owner:
        case Through(on, parent, above):
            units = [f"w.{unit}" for unit in unit_of(scan)]
            return (
                f'SELECT c.{quoted(key)} AS ".key", {listed(units)} FROM {source} '
                f'JOIN ({_owners(parent, above, dialect)}) AS w ON c.{quoted(on)} = w.".key"'
            )
        case Own(unit):
            named, held = _owner(unit, dialect)
            return f'SELECT {quoted(key)} AS ".key", {listed(named)} FROM {source} WHERE {held}'
    raise ValueError("a parent table must have an owner")


def _public(table: PublicTable, equal: list[str], fanout: int, dialect: Dialect) -> str:
    """Write a public table with at most `fanout` rows for the same values of `equal`."""
    named = [f"{quoted(column.name)} AS {quoted(name)}" for name, column in table.columns]
    source = f"SELECT {_shown(named)} FROM {dialect.source(table.table)} AS p"
    if table.condition is not None:
        source = f"SELECT * FROM ({source}) AS p WHERE {write(table.condition, dialect)}"
    names = [quoted(name) for name in table.schema]
    apart = f"PARTITION BY {listed([quoted(name) for name in equal])} " if equal else ""
    number = f'ROW_NUMBER() OVER ({apart}ORDER BY {_ordered(names)}) AS ".n"'
    return f'SELECT {_shown(names)} FROM (SELECT *, {number} FROM ({source}) AS p) AS p WHERE ".n" <= {fanout}'


def _first(side: Relation, most: int, dialect: Dialect) -> str:
    """Write a relation with at most `most` rows of a unit; only units with more of them have to be sorted."""
    if side.shape.copies is not None and side.shape.copies <= most:
        return rows(side, dialect)
    units, names = unit_of(side), _columns(side)
    kept = listed(units, names)
    same = every(same_unit(side, "a", "m"))
    number = f'ROW_NUMBER() OVER (PARTITION BY {listed(units)} ORDER BY {_ordered(names)}) AS ".n"'
    return (
        f'WITH ".a" AS {dialect.computed_once}({rows(side, dialect)}), '
        f'".m" AS {dialect.computed_once}(SELECT {listed(units)} FROM ".a"{grouped(units)} HAVING COUNT(*) > {most}) '
        f'SELECT {kept} FROM ".a" AS a WHERE NOT EXISTS (SELECT 1 FROM ".m" AS m WHERE {same}) UNION ALL '
        f'SELECT {kept} FROM (SELECT *, {number} FROM ".a" AS a '
        f'WHERE EXISTS (SELECT 1 FROM ".m" AS m WHERE {same})) AS n '
        f'WHERE ".n" <= {most}'
    )


def _folded(folded: Folded, dialect: Dialect) -> str:
    if folded.expr is None:
        return "COUNT(*)"
    value = key_of(folded.expr, dialect)  # gathered values are finite, as those of a total are
    match folded.fold:
        case Fold.COUNT:
            return f"COUNT({value})"
        case Fold.DISTINCT:
            return f"COUNT(DISTINCT {value})"
        case Fold.SUM:
            return dialect.fitted.format(value)
        case Fold.STEPS:
            assert folded.grid is not None
            return dialect.summed.format(steps(value, folded.grid, dialect))
    return dialect.extreme("MIN" if folded.fold is Fold.LEAST else "MAX", value, folded.type)


def steps(value: str, grid: Grid, dialect: Dialect) -> str:
    """Write the number of a value's step on its grid, from the grid's offset."""
    low, high, step = (dialect.constant(end, Type.REAL) for end in grid.ends)
    if isinstance(dialect.steps, str):
        index = dialect.steps.format(value=value, low=low, high=high, step=step)
    else:
        index = dialect.steps(value, grid.ends)
    return f"({index} - {grid.offset})" if grid.offset else index


def key_of(expr: Expr, dialect: Dialect) -> str:
    """Write a key: a real that is not finite is NULL, and zero has one sign."""
    text = write(expr, dialect)
    return dialect.finite.format(value=text) if expr.type is Type.REAL else text


def _named(columns: Named, sql: Callable[[Expr], str]) -> list[str]:
    return [f"{sql(expr)} AS {quoted(name)}" for name, expr in columns]


def unit_of(relation: Relation, alias: str = "") -> list[str]:
    """Write the columns of a relation's unit."""
    parts = range(len(relation.shape.unit or ()))
    return [f'{alias and alias + "."}".u{place}"' for place in parts]


def _typed(relation: Relation) -> list[tuple[str, Type]]:
    """Write the columns of a relation's unit, each with its type."""
    return list(zip(unit_of(relation), relation.shape.unit or (), strict=True))


def _columns(relation: Relation, alias: str = "") -> list[str]:
    return [f"{alias and alias + '.'}{quoted(name)}" for name in relation.shape.schema]


def same_unit(relation: Relation, left: str, right: str) -> list[str]:
    """Write that two sides belong to the same unit."""
    return [f"{left}.{unit} = {right}.{unit}" for unit in unit_of(relation)]


def _ordered(names: list[str]) -> str:
    return ", ".join(f"{name} ASC NULLS LAST" for name in names) or "1"


def _join(keep: Keep) -> str:
    return "JOIN" if keep is Keep.MATCHED else "LEFT JOIN"


def every(conditions: list[str]) -> str:
    """Write that all conditions hold."""
    return " AND ".join(conditions) or "TRUE"


def listed(*parts: list[str]) -> str:
    """Write columns one after the other."""
    return ", ".join(chain.from_iterable(parts))


def _shown(*parts: list[str]) -> str:
    """Write the columns of a SELECT, which must have one: rows without columns can still be counted."""
    return listed(*parts) or '1 AS ".one"'


def grouped(names: list[str]) -> str:
    """Write GROUP BY, if there is anything to group by."""
    return f" GROUP BY {listed(names)}" if names else ""
