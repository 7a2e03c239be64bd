"""Chance that can be repeated, and the odd words that it may choose."""

import random

WHOLES = ("0", "1", "2", "3", "5", "7", "10", "24", "100", "1000", "-1", "-3")
HUGE = (
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "4611686018427387904", "1" + "0" * 40),
    *("1e308", "-1e308", "1e-320", "1e400", "1e999999999", "0e0", ".5", "5.", "0.1", "1e15", "123456789012345678"),
)
FRACTIONS = ("0.5", "0.25", "1.5", "2.0", "0.1", "100.0", "1e3", "0.001")
LETTERS = ("'food'", "'books'", "'A00'", "'s1'", "'north'", "'usual'", "''", "' '", "'a%b'", "'%'", "'_'", "'é🤦'")
ODD_LETTERS = (
    *("''''", "'\\'", "E'\\n'", "E'\\x41'", "$$dollar$$", "'" + "x" * 3_000 + "'", "'NaN'", "'Infinity'", "'NULL'"),
    *("U&'\\0041'", "B'101'", "X'1F'", "N'n'", "'2025-13-45'", "'1e999'", "'a' 'b'", "'(?=x)'", "'[z-a]'"),
)
DAYS = ("DATE '2025-03-01'", "DATE '2026-01-15'", "DATE '2020-02-29'")
TIMES = ("TIMESTAMP '2025-03-01 12:30:00'", "TIMESTAMP '2026-01-10 00:00:01'")
ODD_DAYS = (
    *("DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '9999-12-31 23:59:59.999999'", "DATE '2025-02-30'"),
    *("DATE 'infinity'", "'epoch'::timestamp", "TIMESTAMP '2025-03-01 12:00:00+05'", "DATE '10000-01-01'"),
)
PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "isodow", "doy", "epoch")
WINDOWS = ("year", "quarter", "month", "week", "day", "hour")
AMOUNTS = ("1 day", "3 hours", "90 days", "2 weeks 1 hour")
ODD_AMOUNTS = (
    "1 month",
    "99999999 days",
    "1e3 hours",
    "1.5 seconds",
    "",
    "P1D",
    "1 century",
    "9" * 400 + " days",
    "1:2:3",
)
PATTERNS = ("'%a%'", "'f__d'", "'b%'", "'\\%x'", "''", "'%'")
REGEXES = ("'^f.*d$'", "'[a-f]+'", "'(a|b)*c'", "'a{2,3}'", "'.'", "'x?'")
ODD_REGEXES = ("'('", "'a{99999}'", "'(?<=a)b'", "'\\1'", "'[[:alpha:]]'", "'(a*)*$'", "'\\p{L}'", "'a{1000}{1000}'")
TYPES = ("INTEGER", "BIGINT", "DOUBLE PRECISION", "NUMERIC", "TEXT", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR(5)")
ODD_TYPES = ("JSON", "INT[]", "UUID", "BYTEA", "NUMERIC(99, 98)", "INTERVAL", "STRUCT(a INT)", "TIMESTAMPTZ", "MONEY")
ALIASES = ("n", "x", "total", "r0", "k0", "m0", "c0", "h0", "s1", "t0", '"a b"', '"Δ"', '"x""y"', "value", "draw", "w")
STRANGERS = ("nothing", "amuont", "rowid", "ctid", '"User"', "user.*", '"x\ny"', "o.amount", "excluded", "oid", "λ")
TABLES = ("nowhere", "information_schema.tables", "pg_catalog.pg_class", "duckdb_settings", '"t"', "public.orders")
FUNCTIONS = (
    *("RANDOM()", "NOW()", "CURRENT_DATE", "CURRENT_USER", "VERSION()", "PG_SLEEP(1)", "GETENV('HOME')", "TXID()"),
    *("READ_CSV('/etc/passwd')", "QUERY('SELECT 1')", "ROW_NUMBER() OVER ()", "HASH(1)", "MD5('x')", "ARRAY[1, 2]"),
    *("LIST_VALUE(1)", "UNNEST(ARRAY[1])", "JSON_EXTRACT('{}', '$')", "ERROR('boom')", "NEXTVAL('s')", "TRY(1)"),
    *("POSITION('a' IN 'b')", "TO_CHAR(1, '9')", "AGE(DATE '2020-01-01')", "GREATEST()", "COALESCE()", "ABS()"),
)
AFTERWARDS = (
    " WITHIN 50",
    " WITHIN '1/10'",
    " FOR UPDATE",
    " FETCH FIRST 3 ROWS ONLY",
    " LIMIT ALL",
    " ;",
    " OFFSET 1",
)
OPTIONS = ("epsilon=1", "epsilon='1/10', delta=1e-12", "max_groups_contributed=2", "epsilon=5, max_rows_contributed=3")
ODD_OPTIONS = (
    *(
        "delta=1e-13",
        "epsilon=1e-30",
        "epsilon=1e30",
        "epsilon=-1",
        "delta=0.9",
        "noise=laplace",
        "epsilon",
        "epsilon=0",
    ),
    *(
        "epsilon=1e999999999",
        "max_rows_contributed=" + "9" * 30,
        "epsilon='1/0'",
        "privacy_unit_column=user",
        "epsilon=٣",
    ),
)


class Dice:
    """Random choices from a seed; `slip` is how often a step leaves the language that is understood."""

    def __init__(self, seed, slip):
        self._random = random.Random(seed)
        self.slip = slip

    def pick(self, *choices):
        """Return one of several things."""
        return self._random.choice(choices)

    def one(self, listed):
        """Return one of a list."""
        return self._random.choice(listed)

    def weighed(self, weights):
        """Return a key, as often as its weight says."""
        return self._random.choices(list(weights), list(weights.values()))[0]

    def some(self, listed, most):
        """Return at least one, and at most so many, of a list."""
        return self._random.sample(list(listed), min(len(listed), self._random.randint(1, most)))

    def often(self, chance):
        """Tell whether something that has this chance happens."""
        return self._random.random() < chance

    def slips(self):
        """Tell whether this step leaves the language."""
        return self.often(self.slip)

    def below(self, most):
        """Return a whole number from 0."""
        return self._random.randrange(most)

    def shuffled(self, listed):
        """Return a list in another order."""
        return self._random.sample(list(listed), len(listed))
