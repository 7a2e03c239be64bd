"""What the sources of a FROM give, and how names are found there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.policy.problems import nearest
from discreet.sql.after.names import spelled
from discreet.sql.after.values import Kind, Origin, Value, moved
from discreet.sql.places import quoted, refuse


@dataclass(frozen=True)
class Field:
    """A column of a planned query."""

    name: str
    kind: Kind
    origin: Origin
    width: int = 0


@dataclass(frozen=True)
class Relation:
    """A planned query, or a table.

    Its columns are c0, c1 …; hidden columns h0, h1 … hold the row numbers of the tables in `slots`; if it is
    `ordered`, hidden column w counts its rows. `single` says that there is at most one row.
    """

    sql: str
    fields: tuple[Field, ...]
    slots: tuple[str, ...] = ()
    ordered: bool = False
    single: bool = False


@dataclass(frozen=True)
class Source:
    """One source of a FROM: its name in the query, its name in the SQL, and the hidden columns before its own."""

    alias: str | None
    ref: str
    relation: Relation
    before: int

    def value(self, place: int) -> Value:
        """Return a column as a value of the FROM."""
        field = self.relation.fields[place]
        return Value(f"{self.ref}.c{place}", field.kind, moved(field.origin, self.before), field.width)


@dataclass(frozen=True)
class Named:
    """A column as the query can name it; `joined` ones of USING are found without the name of a source."""

    name: str
    value: Value
    source: str | None
    joined: bool = False


@dataclass(frozen=True)
class Scope:
    """Everything that a FROM gives: `columns` in the order of *, `covered` ones stand behind those of USING."""

    sources: tuple[Source, ...] = ()
    columns: tuple[Named, ...] = ()
    covered: tuple[Named, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """The tables whose rows are numbered."""
        return tuple(table for source in self.sources for table in source.relation.slots)

    @property
    def hidden(self) -> list[str]:
        """The SQL of the row numbers."""
        return [f"{source.ref}.h{place}" for source in self.sources for place in range(len(source.relation.slots))]

    def find(self, node: exp.Column) -> list[Named]:
        """Return the columns that a name may mean."""
        table, name = node.args.get("table"), node.this.name.lower()
        if table is None:
            return [named for named in self._columns.get(name, ()) if same(node.this, named.name)]
        known = [*self._columns.get(name, ()), *self.covered]
        return [
            named
            for named in known
            if named.source is not None and same(table, named.source) and same(node.this, named.name)
        ]

    @cached_property
    def _columns(self) -> dict[str, list[Named]]:
        found: dict[str, list[Named]] = {}
        for named in self.columns:
            found.setdefault(named.name.lower(), []).append(named)
        return found

    def star(self, node: exp.Expr, clause: str) -> list[Named]:
        """Return what * or source.* stands for."""
        table = node.args.get("table")
        if table is None:
            return list(self.columns)
        aliases = [source.alias for source in self.sources if source.alias is not None and same(table, source.alias)]
        if not aliases:
            raise refuse(
                node, clause, f"there is no source {quoted(table.name)} here", "Use the names or aliases of FROM"
            )
        inside = [named for named in (*self.columns, *self.covered) if named.source == aliases[0]]
        places = {named.value.sql: named for named in inside}
        source = next(each for each in self.sources if each.alias == aliases[0])
        return [places[source.value(place).sql] for place in range(len(source.relation.fields))]

    def missing(self, node: exp.Column, clause: str) -> Refused:
        """Return the refusal of a name that nothing has."""
        table = node.args.get("table")
        if table is not None and not any(same(table, source.alias or "") for source in self.sources):
            return refuse(
                node, clause, f"there is no source {quoted(table.name)} here", "Use the names or aliases of FROM"
            )
        close = nearest(node.name, [named.name for named in self.columns])
        way_out = "Use the columns of FROM" if close == "." else close.removeprefix("; ").capitalize()
        return refuse(node, clause, f"there is no column {quoted(node.name)} here", way_out)


def same(identifier: exp.Expr, name: str) -> bool:
    """Tell whether an identifier means a name: in any case, unless it is quoted."""
    if identifier.args.get("quoted"):
        return identifier.name == name
    return identifier.name.lower() == name.lower()


def with_source(scope: Scope, alias: str | None, ref: str, relation: Relation) -> Scope:
    """Return a scope with one more source."""
    source = Source(alias, ref, relation, len(scope.slots))
    columns = tuple(Named(field.name, source.value(place), alias) for place, field in enumerate(relation.fields))
    return Scope((*scope.sources, source), (*scope.columns, *columns), scope.covered)


def merged(scope: Scope, joined: Sequence[tuple[Named, Named, Value]]) -> Scope:
    """Return a scope in which pairs of columns stand for one each, as USING says."""
    gone = [named for left, right, _ in joined for named in (left, right)]
    fronts = tuple(Named(left.name, value, None, joined=True) for left, _, value in joined)
    kept = tuple(named for named in scope.columns if named not in gone)
    behind = tuple(named for named in gone if not named.joined)
    return Scope(scope.sources, (*fronts, *kept), (*scope.covered, *behind))


def renamed(relation: Relation, columns: Sequence[exp.Expr], node: exp.Expr) -> Relation:
    """Return a relation whose first columns have the names that AS t(a, b) gives."""
    if len(columns) > len(relation.fields):
        raise refuse(node, "FROM", f"there are only {len(relation.fields)} columns", "Give as many names, or fewer")
    names = [spelled(each) for each in columns]
    fields = [
        Field(names[place] if place < len(names) else field.name, field.kind, field.origin, field.width)
        for place, field in enumerate(relation.fields)
    ]
    return Relation(relation.sql, tuple(fields), relation.slots, relation.ordered, relation.single)
