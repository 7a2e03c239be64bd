"""Random questions: aggregates over private rows, what follows them, and what may stand around."""

from dataclasses import dataclass

from fuzzing import dice as words
from fuzzing.rows import Rows
from fuzzing.values import Field, Values

_SHARES = ("0", "1", "0.5", "0.25", "0.99", "1e-9")
_ODD_SHARES = ("2", "-1", "'0.5'", "NULL", "x")


@dataclass(frozen=True)
class Released:
    """A SELECT over groups, and the columns that it gives."""

    sql: str
    fields: tuple[Field, ...]


class Questions:
    """Writes questions under a policy."""

    def __init__(self, dice, policy):
        self.dice, self.rows = dice, Rows(dice, policy)

    def question(self):
        """Return a whole question."""
        how = self.dice.weighed({"plain": 10, "above": 3, "together": 2, "combined": 1, "scalar": 1, "named_rows": 2})
        text = getattr(self, how)()
        if self.dice.often(0.06):
            text = self.dice.pick("EXPLAIN ", "explain\n") + text
        if self.dice.often(0.08) and text.startswith("SELECT "):
            listed = words.ODD_OPTIONS if self.dice.often(0.3) else words.OPTIONS
            options = f"OPTIONS({self.dice.one(listed)}) " if self.dice.often(0.8) else ""
            text = text.replace("SELECT ", f"SELECT WITH DIFFERENTIAL_PRIVACY {options}", 1)
        return text + (self.dice.one(words.AFTERWARDS) if self.dice.often(0.04) else "")

    def plain(self):
        """Return one release."""
        return self.release(2).sql

    def above(self):
        """Return a query over a release."""
        inner, alias = self.release(1), self.rows.alias()
        fields = [Field(f"{alias}.{field.sql}", field.kind) for field in inner.fields]
        return self.over(f"({inner.sql}) AS {alias}", fields)

    def over(self, source, fields):
        """Return a SELECT over released columns."""
        values = Values(self.dice, fields)
        if self.dice.often(0.3):
            key = f"{self.dice.one(fields).sql}, " if self.dice.often(0.5) else ""
            call = self.dice.pick("SUM", "AVG", "MIN", "MAX", "COUNT", "MEDIAN", "STDDEV")
            group = f" GROUP BY {key[:-2]}" if key else ""
            return f"SELECT {key}{call}({values.of('real', 1)}) AS z FROM {source}{group}"
        listed = [f"{values.of(values.kind(), 2)} AS y{place}" for place in range(1 + self.dice.below(3))]
        listed += [f"{self.window(values)} AS w{self.dice.below(9)}"] if self.dice.often(0.3) else []
        where = f" WHERE {values.of('boolean', 2)}" if self.dice.often(0.3) else ""
        distinct = "DISTINCT " if self.dice.often(0.1) else ""
        return f"SELECT {distinct}{', '.join(listed)} FROM {source}{where}{self.order(len(listed))}"

    def together(self):
        """Return a join of two releases, or a query over one of them."""
        first, second = self.release(1), self.release(1)
        fields = [Field(f"one.{field.sql}", field.kind) for field in first.fields]
        fields += [Field(f"two.{field.sql}", field.kind) for field in second.fields]
        join = self.dice.pick("one, two", "one CROSS JOIN two")
        pairs = [(a.sql, b.sql) for a in first.fields for b in second.fields if a.kind == b.kind]
        if pairs and self.dice.often(0.7):
            a, b = self.dice.one(pairs)
            join = f"one {self.dice.pick('', 'LEFT ', 'FULL ')}JOIN two ON one.{a} = two.{b}"
        begin = f"WITH one AS ({first.sql}), two AS ({second.sql}) "
        return begin + self.over(join, fields)

    def combined(self):
        """Return a set operation of two releases."""
        rows = self.rows.source(1)
        sides = [f"SELECT '{name}' AS what, {self.aggregate(rows)[0]} AS n FROM {rows.sql}" for name in "ab"]
        word = self.dice.weighed({"UNION ALL": 6, "UNION": 1, "INTERSECT": 1, "EXCEPT": 1})
        return f"{sides[0]} {word} {sides[1]}{self.order(2)}"

    def scalar(self):
        """Return a question with another inside an expression."""
        rows, other = self.rows.source(1), self.rows.source(0)
        inner = f"(SELECT {self.aggregate(other)[0]} FROM {other.sql})"
        sign = self.dice.pick("+", "-", "*", "/")
        return f"SELECT {self.aggregate(rows)[0]} {sign} {inner} AS n FROM {rows.sql}"

    def named_rows(self):
        """Return a question over rows that WITH names."""
        inner = self.rows.inner(2)
        body, _, alias = inner.sql.rpartition(" AS ")
        listed = [f"{self.aggregate(inner)[0]} AS n{place}" for place in range(1 + self.dice.below(2))]
        return f"WITH {alias} AS {body} SELECT {', '.join(listed)} FROM {alias}{self.rows.where(inner)}"

    def release(self, depth):
        """Return a SELECT with aggregates, and perhaps groups."""
        rows = self.rows.source(depth)
        keys = self.keys(rows) if self.dice.often(0.6) else []
        calls = [self.aggregate(rows) for _ in range(1 + self.dice.below(3))]
        listed, fields = [], []
        for place, (text, kind) in enumerate([*keys, *calls]):
            name = self.dice.one(words.ALIASES) if self.dice.often(0.1) else f"v{place}"
            if all(name != field.sql for field in fields):
                listed.append(f"{text} AS {name}")
                fields.append(Field(name, kind))
        if self.dice.often(0.25):
            listed.append(f"{self.computed(calls, keys)} AS p")
            fields.append(Field("p", "real"))
        group = f" GROUP BY {self.grouped(keys)}" if keys else ""
        having = f" HAVING {self.tested(calls)}" if self.dice.often(0.12) else ""
        sql = f"SELECT {', '.join(listed)} FROM {rows.sql}{self.rows.where(rows)}{group}{having}"
        return Released(sql + self.order(len(listed)), tuple(fields))

    def keys(self, rows):
        """Return what groups are made by: mostly what is listed somewhere."""
        values, found = Values(self.dice, rows.fields), []
        for _ in range(self.dice.weighed({1: 6, 2: 3, 3: 1})):
            how = self.dice.below(8)
            column = self.dice.one([field for field in rows.fields if field.listed] or list(rows.fields))
            if how < 3:
                found.append((column.sql, column.kind))
            elif how == 3:
                found.append((f"CASE WHEN {values.of('boolean', 1)} THEN 'a' ELSE 'b' END", "text"))
            elif how == 4:
                found.append((values.of("boolean", 1), "boolean"))
            elif how == 5 and (time := values.column("timestamp", "date")):
                found.append((f"DATE_TRUNC('{self.dice.pick('year', 'month', 'week')}', {time})", "timestamp"))
            elif how == 6 and (time := values.column("timestamp", "date")):
                found.append((f"EXTRACT({self.dice.pick('year', 'month', 'hour', 'dow')} FROM {time})", "integer"))
            elif self.dice.often(0.5):
                kind = values.kind()
                found.append((values.of(kind, 1), kind))
        return found

    def grouped(self, keys):
        """Return what stands after GROUP BY."""
        if self.dice.often(0.3):
            return ", ".join(str(place + 1) for place in range(len(keys)))
        if self.dice.slips():
            return self.dice.pick("ROLLUP (1)", "CUBE (1, 2)", "GROUPING SETS ((1), ())", "0", "99", "()", "NULL", "-1")
        return "ALL" if self.dice.often(0.2) else ", ".join(text for text, _ in keys)

    def aggregate(self, rows):
        """Return an aggregate over private rows, and its type."""
        values = Values(self.dice, rows.fields)
        when = f" FILTER (WHERE {values.of('boolean', 1)})" if self.dice.often(0.15) else ""
        how = self.dice.weighed({"count": 5, "units": 2, "moment": 7, "chosen": 2})
        if how == "count":
            inside = "*" if self.dice.often(0.6) else values.of(values.kind(), 2)
            return f"COUNT({inside}){when}", "integer"
        if how == "units" and rows.units:
            unit = rows.units[0] if len(rows.units) == 1 else f"({', '.join(rows.units)})"
            return f"COUNT(DISTINCT {unit}){when}", "integer"
        if how == "chosen":
            return self.chosen(values) + when, "real"
        name = self.dice.pick("SUM", "AVG", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV", "STDDEV_POP", "VARIANCE")
        return f"{name}({self.bounded(values)}){when}", "real"

    def bounded(self, values):
        """Return a number of a known range, mostly."""
        column = values.column("integer", "real", where=lambda field: field.ranged)
        if column and self.dice.often(0.5):
            return column
        if self.dice.often(0.85):
            ends = ((0, 0), (3, 1), (0, 1e400), (-1e18, 1e18)) if self.dice.slips() else ((0, 1), (0, 1e6), (-5, 5))
            low, high = self.dice.one(ends)
            return f"CLIP({values.of('real', 2)}, {low}, {high})"
        return values.of("real", 2)

    def chosen(self, values):
        """Return an aggregate that chooses values instead of adding them."""
        x, share = self.bounded(values), self.dice.one(_ODD_SHARES if self.dice.slips() else _SHARES)
        column = values.column("integer", "text", "date", where=lambda field: field.listed) or x
        size = self.dice.pick("0", "-1", "1e9", "NULL", "x") if self.dice.slips() else "3"
        if self.dice.slips():
            return f"{self.dice.pick('STRING_AGG', 'ARRAY_AGG', 'ANY_VALUE', 'CORR', 'SUM(DISTINCT')}({x})"
        return self.dice.pick(
            f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {x}{self.dice.pick('', ' DESC')})",
            f"QUANTILE_CONT({x}, {share})",
            f"COUNT(DISTINCT {values.of(values.kind(), 1)})",
            f"MODE({column})",
            f"MODE() WITHIN GROUP (ORDER BY {column})",
            f"APPROX_TOP_K({column}, {size})",
            self.dice.pick(f"HISTOGRAM({x})", f"HISTOGRAM({x}, 5)", f"HISTOGRAM({x}, [0, 5, 10])"),
            *(f"MEDIAN({x})", f"MIN({x})", f"MAX({x})"),
        )

    def computed(self, calls, keys):
        """Return an expression over aggregates and keys."""
        fields = [Field(text, kind) for text, kind in (*calls, *keys)]
        values = Values(self.dice, fields)
        return self.window(values) if self.dice.often(0.3) else values.of(self.dice.pick("real", "integer"), 2)

    def tested(self, calls):
        """Return a condition on aggregates."""
        return Values(self.dice, [Field(text, kind) for text, kind in calls]).of("boolean", 2)

    def window(self, values):
        """Return a window function over released numbers."""
        x, y = values.of("real", 1), values.of(values.kind(), 1)
        call = self.dice.pick(
            "RANK()", "ROW_NUMBER()", f"SUM({x})", f"LAG({x}, 1)", "NTILE(4)", f"AVG({x})", "COUNT(*)"
        )
        frame = self.dice.pick("", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS UNBOUNDED PRECEDING")
        inside = f"{self.dice.pick('', f'PARTITION BY {y} ')}ORDER BY {x}{self.dice.pick('', ' DESC')}{frame}"
        return f"{call} OVER ({self.dice.pick('', inside)})"

    def order(self, columns):
        """Return ORDER BY and LIMIT, or nothing."""
        place = self.dice.pick("0", "99", "-1", "nothing") if self.dice.slips() else str(1 + self.dice.below(columns))
        order = f" ORDER BY {place}{self.dice.pick('', ' DESC', ' NULLS FIRST')}" if self.dice.often(0.25) else ""
        size = "99999999999" if self.dice.slips() else self.dice.pick("0", "1", "3", "10")
        limit = f" LIMIT {size}" if self.dice.often(0.15) else ""
        return order + limit
