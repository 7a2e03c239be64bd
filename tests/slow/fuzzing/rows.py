"""Random sources of private rows: tables, joins, subqueries, rows per person, and what people have elsewhere."""

from dataclasses import dataclass

from golden_policies import POLICIES, PUBLIC

from discreet.policy.column_domains import Between, Keys, References
from fuzzing import dice as words
from fuzzing.values import Field, Values

_UNITS = {
    "orders": ("{0}.user",),
    "visits": ("{0}.visitor",),
    "encounters": ("{0}.patient_id",),
    "hits": ("{0}.user_id", "{0}.at::date"),
    "logins": ("{0}.account", "{0}.day"),
}
_JOINS = {
    "orders": (
        *(("regions", "{0}.region = {1}.name"), ("prices", "{0}.category = {1}.category AND {1}.year = 2025")),
        *(("visits", "{0}.user = {1}.visitor"), ("orders", "{0}.user = {1}.user AND {0}.time < {1}.time")),
        ("regions", "{0}.region <> {1}.name"),
    ),
    "visits": (("prices", "{0}.category = {1}.category"), ("orders", "{0}.visitor = {1}.user")),
    "encounters": (("icd10", "{0}.icd = {1}.code"), ("encounters", "{0}.patient_id = {1}.patient_id")),
    "labs": (("encounters", "{0}.encounter = {1}.id"),),
    "lab_flags": (("labs", "{0}.lab_id = {1}.lab_id"),),
    "hits": (("logins", "{0}.user_id = {1}.account AND {0}.at::date = {1}.day"),),
    "logins": (("hits", "{0}.account = {1}.user_id AND {0}.day = {1}.at::date"),),
    "readings": (("stations", "{0}.station = {1}.code"), ("stations", "{0}.station <> {1}.code")),
}
_ELSEWHERE = {"orders": "visits", "visits": "orders", "encounters": "encounters", "hits": "logins", "logins": "hits"}
_KINDS = {int: "integer", float: "real", str: "text"}


@dataclass(frozen=True)
class Source:
    """What stands after FROM, the columns that it has, and the unit's own."""

    sql: str
    fields: tuple[Field, ...]
    units: tuple[str, ...] = ()


def fields_of(policy, table, alias):
    """Return the columns of a table under an alias."""
    declared = POLICIES[policy].tables[table]
    if declared.public:
        return [
            Field(f"{alias}.{name}", _KINDS[type(values[0])], listed=True)
            for name, values in PUBLIC._tables[table].items()
        ]
    person = {text.format(table).split(".")[1] for text in _UNITS.get(table, ())[:1]}
    return [_field(column, alias, column.name in person) for column in declared.columns.values()]


def _field(column, alias, person):
    ranged = isinstance(column.domain, Between)
    listed = isinstance(column.domain, Keys | References) or (ranged and column.type in ("integer", "date"))
    kind = "real" if column.type == "decimal" else column.type
    return Field(f"{alias}.{column.name}", kind, listed or column.type == "boolean", ranged, person)


class Rows:
    """Writes sources of private rows under a policy."""

    def __init__(self, dice, policy):
        self.dice, self.policy, self._aliases = dice, policy, 0
        self.tables = [table.name for table in POLICIES[policy].tables.values() if not table.public]

    def alias(self):
        """Return a name that was not used yet."""
        self._aliases += 1
        return f"{self.dice.pick('t', 'a', 'o', 'q')}{self._aliases}"

    def source(self, depth):
        """Return private rows."""
        if depth <= 0 or self.dice.often(0.4):
            return self.table()
        how = {"joined": 4, "inner": 3, "per_person": 3, "union": 1}
        return getattr(self, self.dice.weighed(how))(depth)

    def table(self):
        """Return a table."""
        name, alias = self.dice.one(self.tables), self.alias()
        if self.dice.slips():
            return Source(f"{self.dice.one(words.TABLES)} AS {alias}", fields_of(self.policy, name, alias))
        units = tuple(text.format(alias) for text in _UNITS.get(name, ()))
        return Source(f"{name} AS {alias}", tuple(fields_of(self.policy, name, alias)), units)

    def joined(self, _):
        """Return a join of two tables, of which at least one is private."""
        first = self.dice.one(self.tables)
        second, on = self.dice.one(_JOINS[first])
        one, other = self.alias(), self.alias()
        public = POLICIES[self.policy].tables[second].public
        word = self.dice.weighed({"JOIN": 6, "LEFT JOIN": 3, "INNER JOIN": 1})
        if self.dice.slips():
            word = self.dice.pick("RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL JOIN", "SEMI JOIN", "ASOF JOIN")
        fields = [*fields_of(self.policy, first, one), *fields_of(self.policy, second, other)]
        condition = on.format(one, other)
        if self.dice.often(0.2):
            condition += f" AND {Values(self.dice, fields).of('boolean', 1)}"
        if self.dice.slips():
            condition = Values(self.dice, fields).of("boolean", 2)
        after = "" if word in ("CROSS JOIN", "NATURAL JOIN") else f" ON {condition}"
        sides = (f"{first} AS {one}", f"{second} AS {other}")
        if public and word == "JOIN" and self.dice.often(0.2):
            sides = sides[::-1]
        units = tuple(text.format(one) for text in _UNITS.get(first, ()))
        return Source(f"{sides[0]} {word} {sides[1]}{after}", tuple(fields), units)

    def inner(self, depth):
        """Return a subquery of rows, some of them computed."""
        rows, alias = self.source(depth - 1), self.alias()
        values, listed, fields = Values(self.dice, rows.fields), [], []
        for place, field in enumerate(self.dice.some(rows.fields, 5)):
            listed.append(f"{field.sql} AS f{place}")
            fields.append(Field(f"{alias}.f{place}", field.kind, field.listed, field.ranged, field.person))
        for place in range(self.dice.below(3)):
            kind = values.kind()
            listed.append(f"{values.of(kind, 2)} AS e{place}")
            fields.append(Field(f"{alias}.e{place}", kind))
        for place, unit in enumerate(rows.units):
            listed.append(f"{unit} AS u{place}")
        where = self.where(rows)
        number = self.numbered(rows, values)
        if number and self.dice.often(0.2):
            listed.append(f"{number} AS n")
            fields.append(Field(f"{alias}.n", "integer"))
        elif number and self.dice.often(0.1):
            where += f" QUALIFY {number} {self.dice.pick('= 1', '<= 3', '> 1')}"
        end = self.dice.pick(" LIMIT 5", " ORDER BY 1", " OFFSET 2") if self.dice.slips() else ""
        units = tuple(f"{alias}.u{place}" for place in range(len(rows.units)))
        return Source(f"(SELECT {', '.join(listed)} FROM {rows.sql}{where}{end}) AS {alias}", tuple(fields), units)

    def numbered(self, rows, values):
        """Return the number of a row among those of its person, or now and then of everybody; None if there is none."""
        if not rows.units:
            return None
        by = [*rows.units, *([self.dice.one(rows.fields).sql] if self.dice.often(0.2) else [])]
        by = by[1:] if self.dice.slips() else by
        order = f"{values.of(values.kind(), 1)}{self.dice.pick('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST')}"
        return f"ROW_NUMBER() OVER ({'PARTITION BY ' * bool(by)}{', '.join(by)} ORDER BY {order})"

    def per_person(self, depth):
        """Return a row for each person, or for each person and key."""
        rows, alias = self.source(depth - 1), self.alias()
        if not rows.units:
            return rows
        values, keys = Values(self.dice, rows.fields), [f"{unit} AS u{place}" for place, unit in enumerate(rows.units)]
        listed, fields, by = list(keys), [], list(rows.units)
        for place in range(1 + self.dice.below(3)):
            text, kind = self.fold(values)
            listed.append(f"{text} AS e{place}")
            fields.append(Field(f"{alias}.e{place}", kind))
        if self.dice.often(0.3):
            field = self.dice.one(rows.fields)
            listed.append(f"{field.sql} AS k")
            by.append(field.sql)
            fields.append(Field(f"{alias}.k", field.kind, field.listed, field.ranged, field.person))
        having = f" HAVING {self.fold(values)[0]} > {self.dice.one(words.WHOLES)}" if self.dice.often(0.15) else ""
        units = tuple(f"{alias}.u{place}" for place in range(len(rows.units)))
        text = f"SELECT {', '.join(listed)} FROM {rows.sql}{self.where(rows)} GROUP BY {', '.join(by)}{having}"
        return Source(f"({text}) AS {alias}", tuple(fields), units)

    def fold(self, values):
        """Return an aggregate of one person's rows, and its type."""
        how = self.dice.below(6)
        when = f" FILTER (WHERE {values.of('boolean', 1)})" if self.dice.often(0.2) else ""
        if how < 2:
            return f"COUNT(*){when}", "integer"
        if how == 2:
            kind = self.dice.pick("integer", "real", "date")
            return f"{self.dice.pick('MIN', 'MAX')}({values.of(kind, 1)}){when}", kind
        if how == 3:
            return f"COUNT(DISTINCT {values.of(values.kind(), 0)})", "integer"
        if how == 4:
            kind = values.kind()
            by = values.of(self.dice.pick("integer", "real", "date", "text"), 1)
            return f"{self.dice.pick('ARG_MIN', 'MAX_BY')}({values.of(kind, 1)}, {by}){when}", kind
        return f"{self.dice.pick('SUM', 'AVG')}({values.of('real', 1)}){when}", "real"

    def union(self, depth):
        """Return the rows of two tables, one after the other."""
        sides = [self.source(depth - 1) for _ in range(2)]
        alias, kind = self.alias(), Values(self.dice, ()).kind()
        texts = []
        for side in sides:
            units = [f"{unit} AS u{place}" for place, unit in enumerate(side.units)]
            listed = ", ".join([*units, f"{Values(self.dice, side.fields).of(kind, 1)} AS x"])
            texts.append(f"SELECT {listed} FROM {side.sql}{self.where(side)}")
        word = self.dice.pick("UNION", "INTERSECT", "EXCEPT ALL") if self.dice.slips() else "UNION ALL"
        units = tuple(f"{alias}.u{place}" for place in range(len(sides[0].units)))
        return Source(f"({f' {word} '.join(texts)}) AS {alias}", (Field(f"{alias}.x", kind),), units)

    def where(self, rows):
        """Return a condition on rows, or none."""
        tests = []
        if self.dice.often(0.35):
            tests.append(Values(self.dice, rows.fields).of("boolean", 2))
        if rows.units and self.dice.often(0.15):
            tests.append(self.elsewhere(rows))
        return f" WHERE {' AND '.join(tests)}" if tests else ""

    def elsewhere(self, rows):
        """Return a condition on what a person has in another table."""
        table = _ELSEWHERE[next(name for name in self.tables if len(_UNITS.get(name, ())) == len(rows.units))]
        alias, no = self.alias(), self.dice.pick("", "NOT ")
        units = [text.format(alias) for text in _UNITS[table]]
        fields = fields_of(self.policy, table, alias)
        test = f" WHERE {Values(self.dice, fields).of('boolean', 1)}" if self.dice.often(0.5) else ""
        if self.dice.often(0.6):
            ours = rows.units[0] if len(units) == 1 else f"({', '.join(rows.units)})"
            return f"{ours} {no}IN (SELECT {', '.join(units)} FROM {table} AS {alias}{test})"
        same = " AND ".join(f"{one} = {other}" for one, other in zip(units, rows.units, strict=True))
        also = f" AND {test.removeprefix(' WHERE ')}" if test else ""
        return f"{no}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {same}{also})"
