"""Random expressions on single rows, of a wanted type, and now and then of none that is understood."""

from dataclasses import dataclass

from fuzzing import dice as words


@dataclass(frozen=True)
class Field:
    """A column as a query can write it: its type, whether its values are listed, or at least have a range."""

    sql: str
    kind: str
    listed: bool = False
    ranged: bool = False
    person: bool = False


class Values:
    """Writes expressions over some columns."""

    def __init__(self, dice, fields):
        self.dice, self.fields = dice, list(fields)

    def of(self, kind, depth):
        """Return an expression of a type."""
        if self.dice.slips():
            return self.odd(depth)
        return getattr(self, kind)(depth)

    def odd(self, depth):
        """Return what is not understood here, or only sometimes."""
        one = self.dice.one
        return self.dice.pick(
            lambda: one(words.STRANGERS),
            lambda: one(words.FUNCTIONS),
            lambda: one((*words.HUGE, *words.ODD_LETTERS, *words.ODD_DAYS, "NULL")),
            lambda: f"CAST({self.of(self.kind(), depth - 1)} AS {one(words.ODD_TYPES)})",
            lambda: f"(SELECT {self.dice.pick('1', 'COUNT(*)', 'MAX(x)')} FROM {one(words.TABLES)})",
            lambda: self.of(self.kind(), depth - 1),  # of another type
        )()

    def kind(self):
        """Return a type."""
        return self.dice.pick("integer", "real", "text", "boolean", "date", "timestamp")

    def column(self, *kinds, where=lambda _: True):
        """Return a column of one of these types, or None."""
        found = [field for field in self.fields if field.kind in kinds and where(field)]
        return self.dice.one(found).sql if found else None

    def leaf(self, kinds, literals):
        """Return a column that is not the unit's own, or a constant."""
        column = self.column(*kinds, where=lambda field: not field.person)
        return column if column and self.dice.often(0.75) else self.dice.one(literals)

    def integer(self, depth):
        """Return a whole number."""
        if depth <= 0 or self.dice.often(0.3):
            return self.leaf(["integer"], words.WHOLES)
        pick, a, b = self.dice.pick, self.of("integer", depth - 1), self.of("integer", depth - 1)
        signs = lambda: f"({a} {pick('+', '-', '*', '/', '%')} {b})"  # noqa: E731 - often wanted
        return pick(
            *(signs, signs, signs),
            lambda: pick(f"ABS({a})", f"(- {a})", f"SIGN({a})"),
            lambda: f"{pick('LEAST', 'GREATEST', 'COALESCE', 'NULLIF', 'MOD')}({a}, {b})",
            lambda: pick(f"LENGTH({self.of('text', depth - 1)})", self.located(depth), self.bucket(depth)),
            lambda: f"EXTRACT({self.dice.one(words.PARTS)} FROM {self.moment(depth - 1)})",
            lambda: self.apart(depth),
            lambda: self.choice("integer", depth),
        )()

    def located(self, depth):
        """Return where a constant is in a text."""
        text, part = self.of("text", depth - 1), self.dice.one(words.LETTERS)
        return self.dice.pick(f"POSITION({part} IN {text})", f"STRPOS({text}, {part})", f"INSTR({text}, {part})")

    def bucket(self, depth):
        """Return the bucket of a number."""
        number, one = self.of(self.dice.pick("integer", "real"), depth - 1), self.dice.one
        ends = f"{one(words.WHOLES)}, {one(words.FRACTIONS)}, {one(words.WHOLES)}"
        return f"WIDTH_BUCKET({number}, {self.dice.pick(ends, ends, 'ARRAY[1, 2.5, 7]')})"

    def apart(self, depth):
        """Return how far two moments are apart, or a cast."""
        other = self.dice.pick("real", "text", "boolean")
        ends = [self.of("date", depth - 1), self.of("date", depth - 1)]
        return self.dice.pick(
            lambda: f"CAST({self.of(other, depth - 1)} AS {self.dice.pick('INTEGER', 'BIGINT')})",
            lambda: f"({ends[0]} - {ends[1]})",
            lambda: f"DATE_DIFF('{self.dice.one(words.WINDOWS)}', {self.moment(depth - 1)}, {self.moment(depth - 1)})",
            lambda: f"EXTRACT({self.dice.pick('YEAR', 'MONTH')} FROM AGE({self.moment(0)}, {self.moment(0)}))",
        )()

    def real(self, depth):
        """Return a number."""
        if depth <= 0 or self.dice.often(0.3):
            return self.leaf(["real", "integer"], words.FRACTIONS)
        pick, a, b = self.dice.pick, self.of("real", depth - 1), self.of("real", depth - 1)
        digits = "400" if self.dice.slips() else pick("0", "1", "2", "-2", "15")
        curves = ("ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "TRUNC", "SQRT", "LN", "LOG", "EXP", "LOG10")
        return pick(
            lambda: f"({a} {pick('+', '-')} {b})",
            lambda: f"({a} {pick('*', '/')} {b})",
            lambda: f"{self.dice.one(curves)}({a})",
            lambda: f"{pick('POWER', 'LEAST', 'GREATEST', 'COALESCE', 'NULLIF')}({a}, {b})",
            lambda: f"{pick('ROUND', 'TRUNC')}({a}, {digits})",
            lambda: f"CAST({self.of(pick('integer', 'text'), depth - 1)} AS DOUBLE PRECISION)",
            lambda: self.choice("real", depth),
        )()

    def text(self, depth):
        """Return a text."""
        if depth <= 0 or self.dice.often(0.4):
            return self.leaf(["text"], words.LETTERS)
        pick, a, b = self.dice.pick, self.of("text", depth - 1), self.of("text", depth - 1)
        return pick(
            lambda: f"({a} || {b})",
            lambda: f"{pick('LOWER', 'UPPER', 'TRIM', 'LTRIM', 'RTRIM')}({a})",
            lambda: f"SUBSTRING({a}, {pick('1', '0', '-2', '99999')}, {pick('0', '2', '50')})",
            lambda: f"{pick('LEFT', 'RIGHT')}({a}, {pick('1', '0', '-2', '3000')})",
            lambda: f"REPLACE({a}, {self.dice.one(words.LETTERS)}, {self.dice.one(words.LETTERS)})",
            lambda: f"SPLIT_PART({a}, {self.dice.one(words.LETTERS)}, {pick('1', '2', '-1', '0')})",
            lambda: f"{pick('CONCAT', 'COALESCE', 'NULLIF', 'LEAST')}({a}, {b})",
            lambda: f"CAST({self.of(pick('integer', 'date', 'boolean'), depth - 1)} AS TEXT)",
            lambda: self.choice("text", depth),
        )()

    def boolean(self, depth):
        """Return a condition."""
        if depth <= 0:
            column = self.column("boolean")
            return column if column and self.dice.often(0.5) else self.compared(0)
        pick, a, b = self.dice.pick, self.of("boolean", depth - 1), self.of("boolean", depth - 1)
        compared = lambda: self.compared(depth - 1)  # noqa: E731 - often wanted
        return pick(
            *(compared, compared, compared),
            lambda: f"({a} {pick('AND', 'OR')} {b})",
            lambda: f"(NOT {a})",
            lambda: f"({self.of(self.kind(), depth - 1)} IS {pick('', 'NOT ')}NULL)",
            lambda: self.matched(depth - 1),
            lambda: self.choice("boolean", depth),
        )()

    def compared(self, depth):
        """Return a comparison."""
        kind, no = self.kind(), self.dice.pick("", "NOT ")
        a, b, c = (self.of(kind, depth - 1) for _ in range(3))
        plain = f"({a} {self.dice.pick('=', '<>', '<', '<=', '>', '>=', '!=')} {b})"
        listed = (f"({a} {no}BETWEEN {b} AND {c})", f"({a} {no}IN ({b}, {c}))", f"({a} IS {no}DISTINCT FROM {b})")
        return self.dice.one(listed) if self.dice.often(0.35) else plain

    def matched(self, depth):
        """Return a comparison with a pattern."""
        text, no, pattern = self.of("text", depth), self.dice.pick("", "NOT "), self.dice.one(words.PATTERNS)
        regex = self.dice.one(words.ODD_REGEXES if self.dice.slips() else words.REGEXES)
        return self.dice.pick(
            f"({text} {self.dice.pick('~', '~*', '!~')} {regex})",
            f"STARTS_WITH({text}, {self.dice.one(words.LETTERS)})",
            f"({text} SIMILAR TO {pattern})",
            f"({text} LIKE '100!%' ESCAPE '!')",
            f"({text} {no}LIKE {pattern})",
            f"({text} {no}ILIKE {pattern})",
        )

    def moment(self, depth):
        """Return a date or a timestamp."""
        return self.of(self.dice.pick("date", "timestamp"), depth)

    def date(self, depth):
        """Return a date."""
        if depth <= 0 or self.dice.often(0.3):
            return self.leaf(["date"], words.DAYS)
        days = "9999999" if self.dice.slips() else self.dice.pick("7", "365", "2000")
        return self.dice.pick(
            lambda: f"CAST({self.of('timestamp', depth - 1)} AS DATE)",
            lambda: f"({self.of('date', depth - 1)} {self.dice.pick('+', '-')} {days})",
            lambda: self.choice("date", depth),
        )()

    def timestamp(self, depth):
        """Return a timestamp."""
        if depth <= 0 or self.dice.often(0.4):
            return self.leaf(["timestamp"], words.TIMES)
        amount = self.dice.one(words.ODD_AMOUNTS if self.dice.slips() else words.AMOUNTS)
        return self.dice.pick(
            lambda: f"DATE_TRUNC('{self.dice.one(words.WINDOWS)}', {self.moment(depth - 1)})",
            lambda: f"({self.moment(depth - 1)} {self.dice.pick('+', '-')} INTERVAL '{amount}')",
            lambda: f"CAST({self.of('date', depth - 1)} AS TIMESTAMP)",
            lambda: self.choice("timestamp", depth),
        )()

    def choice(self, kind, depth):
        """Return a CASE or a function that chooses."""
        a, b, c = (self.of(kind, depth - 1) for _ in range(3))
        test, otherwise = self.of("boolean", depth - 1), self.dice.pick("", f" ELSE {b}", f" ELSE {c}")
        when = f"CASE WHEN {test} THEN {a}{otherwise} END"
        return self.dice.pick(f"CASE {a} WHEN {b} THEN {c} END", f"COALESCE({a}, {b})", when, when)
