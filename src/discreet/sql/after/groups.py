"""The rows that a SELECT list is computed from: those of FROM, or groups of them."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.sql.after.aggregates import aggregate, is_aggregate
from discreet.sql.after.env import Env
from discreet.sql.after.scope import Scope
from discreet.sql.after.values import Mixed, Value, reads
from discreet.sql.places import quoted


@dataclass(frozen=True)
class Plain:
    """The rows of a FROM that meet WHERE; each keeps its numbers."""

    env: Env
    begin: str
    scope: Scope
    tests: tuple[str, ...] = ()

    @property
    def hidden(self) -> list[str]:
        """The SQL of the row numbers."""
        return self.scope.hidden

    @property
    def slots(self) -> tuple[str, ...]:
        """The tables whose rows are numbered."""
        return self.scope.slots

    @property
    def single(self) -> bool:
        """Whether there is at most one row."""
        return not self.scope.sources

    @property
    def order(self) -> list[str]:
        """The order that the rows are in already."""
        ordered = len(self.scope.sources) == 1 and self.scope.sources[0].relation.ordered
        return [f"{self.scope.sources[0].ref}.w"] if ordered else []

    def starred(self, column: Value, _: exp.Expr) -> Value:
        """Return a column that * stands for."""
        return column

    @property
    def sql(self) -> str:
        """The clauses FROM and WHERE."""
        return self.begin + (f" WHERE {' AND '.join(self.tests)}" if self.tests else "")


@dataclass(frozen=True)
class Groups:
    """Groups of rows: an inner query computes keys and aggregates, and everything else is computed from these.

    `columns` grows while the clauses around are read, by the aggregates that they mention.
    """

    ref: str
    keys: tuple[Value, ...]
    rows: Plain
    columns: list[Value] = field(default_factory=list)
    tests: tuple[str, ...] = ()

    hidden = ()
    slots = ()
    order = ()

    @property
    def single(self) -> bool:
        """Whether there is one group only."""
        return not self.keys

    @property
    def env(self) -> Env:
        """What names and aggregates mean in a SELECT list over groups."""
        return replace(self.rows.env, known=self._known, column=self._stranger)

    def starred(self, column: Value, node: exp.Expr) -> Value:
        """Return a column that * stands for, which must be grouped by."""
        found = self._key(column)
        if found is None:
            cause = "* has a column that is neither grouped by nor inside an aggregate"
            raise self.env.refuse(node, cause, "List the columns that are grouped by")
        return found

    @property
    def sql(self) -> str:
        """The clauses FROM and WHERE, with the inner query in them."""
        columns = [f"{value.sql} AS c{place}" for place, value in enumerate((*self.keys, *self.columns))]
        by = f" GROUP BY {', '.join(str(place + 1) for place in range(len(self.keys)))}" if self.keys else ""
        inner = f"SELECT {', '.join(columns or ['count(*) AS c0'])}{self.rows.sql}{by}"
        return f" FROM ({inner}) AS {self.ref}" + (f" WHERE {' AND '.join(self.tests)}" if self.tests else "")

    def _known(self, node: exp.Expr, env: Env) -> Value | None:
        """Return the column of an aggregate or a key; None for what is computed from them."""
        inside = replace(self.rows.env, clause=env.clause)
        if is_aggregate(node):
            found = aggregate(node, inside)
            texts = [value.sql for value in self.columns]
            if found.sql not in texts:
                self.columns.append(found)
            place = len(self.keys) + (texts.index(found.sql) if found.sql in texts else len(texts))
            return replace(found, sql=f"{self.ref}.c{place}")
        if not self.keys or not _may_be_key(node):
            return None
        try:
            given = inside.value(node)
        except Refused:
            return None
        return self._key(given)

    def _key(self, given: Value) -> Value | None:
        for place, key in enumerate(self.keys):
            if key.sql == given.sql:
                return Value(f"{self.ref}.c{place}", key.kind, Mixed(reads([key.origin])), key.width)
        return None

    def _stranger(self, node: exp.Column, env: Env) -> Value:
        outside = self.rows.env.column(node, env)  # an unknown name is told as such
        if not self.rows.scope.find(node):
            return outside
        cause = f"{quoted(node.name)} is neither grouped by nor inside an aggregate"
        raise env.refuse(node, cause, "Add it to GROUP BY, or aggregate it")


def _may_be_key(node: exp.Expr) -> bool:
    inside = list(node.walk())
    if any(isinstance(each, exp.Query | exp.Window) or is_aggregate(each) for each in inside):
        return False
    return any(isinstance(each, exp.Column) for each in inside)
