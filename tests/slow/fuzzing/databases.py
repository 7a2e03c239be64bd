"""Small databases of odd values under the policies of the golden queries; no value of theirs may reach a message.

Each policy has three: `odd`, `other` (the same schema, other rows) and `empty`. Public tables are the same in all.
"""

import random
import re
from datetime import date, datetime, timedelta
from decimal import Decimal

import golden_policies
import pyarrow as pa
from golden_policies import PUBLIC

import discreet as dc
from discreet.engines.duckdb.engine import Tuning
from discreet.policy import Policy
from discreet.policy.column_domains import Between, Keys, References

STATES = ("odd", "other", "empty")

# Values of one person each, in all private tables: an unmistakable word, and numbers that no query contains.
WORD = "zqMARKERqz"
NUMBERS = (7316254983, 4483920.6171)
MARKERS = re.compile(f"{WORD}|7316254983|4483920|617100|1607-11-23", re.IGNORECASE)

_INTEGERS = (0, -1, 1, 7, 2**63 - 1, -(2**63), 2**62, 2**53 + 1, NUMBERS[0], None)
_REALS = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 0.1, NUMBERS[1], None)
_DECIMALS = (Decimal(0), Decimal("-0.01"), Decimal("99999999999999.99"), Decimal("4483920.61"), None)
_TEXTS = ("", " ", "'", '"', "NULL", "nan", "1e999", "2024-02-30", "é🤦\u0001\u202e", "%_\\", "x" * 5_000, WORD, None)
_DAYS = (date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(1607, 11, 23), None)
_MOMENTS = (
    *(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024, 3, 31, 2, 30)),
    *(datetime(1607, 11, 23, 1, 2, 3, 4), None),
)
_TYPES = {  # how a type is stored, and its odd values
    "integer": (pa.int64(), _INTEGERS),
    "real": (pa.float64(), _REALS),
    "decimal": (pa.decimal128(20, 2), _DECIMALS),
    "text": (pa.string(), _TEXTS),
    "date": (pa.date32(), _DAYS),
    "timestamp": (pa.timestamp("us"), _MOMENTS),
    "boolean": (pa.bool_(), (None, True, False)),
}
_ROWS = 240
_PEOPLE = 80
_KEYS = frozenset({"id", "encounter", "lab_id"})  # they lead from a row to its parent

# Money is never the reason: what is set apart for discovering groups lasts for a hundred questions, then begin anew.
_BUDGET = re.compile(r"(\[budget\]\nepsilon\s*= )[\d.]+")
_DATA = re.compile(r"\[data\]\n")
TEXTS = {
    name: _DATA.sub('[data]\nledger = ":memory:"\n', _BUDGET.sub(r"\g<1>1_000_000", getattr(golden_policies, name)))
    for name in golden_policies.POLICIES
}
POLICIES = {name: Policy.parse(text) for name, text in TEXTS.items()}


def opened(name, state):
    """Open one of the databases, with a ledger of its own."""
    policy = POLICIES[name]
    data = {table.name: _public(table) if table.public else _private(table, state) for table in policy.tables.values()}
    return dc.open(policy, data=data, tuning=Tuning(threads=1))


def _public(table):
    return pa.table(PUBLIC._tables[table.name])


def _private(table, state):
    chance = random.Random(f"{table.name}, {state}")
    rows = 0 if state == "empty" else _ROWS if state == "odd" else _ROWS // 2
    columns = {column.name: [_value(chance, table, column, row) for row in range(rows)] for column in _columns(table)}
    return pa.table({name: pa.array(values, _TYPES[table.columns[name].type][0]) for name, values in columns.items()})


def _columns(table):
    return table.columns.values()


def _value(chance, table, column, row):
    if column.name in _KEYS:
        return row % 150 if chance.random() < 0.95 else None
    if column.name == getattr(table.unit, "name", None):
        return _person(chance, column.type, row)
    odd = row % _PEOPLE < 4 if column.type == "text" else chance.random() < 0.3
    return chance.choice(_TYPES[column.type][1]) if odd else _usual(chance, column)


def _person(chance, kind, row):
    """Most rows belong to ordinary people; a few to nobody, and to people with odd names."""
    number = row % _PEOPLE
    if number < 4:
        return chance.choice(_TYPES[kind][1])
    return number if kind == "integer" else f"person {number}"


def _usual(chance, column):
    """Return a value of the declared domain."""
    domain, kind = column.domain, column.type
    if isinstance(domain, Keys):
        return chance.choice(domain.values)
    if isinstance(domain, References):
        return chance.choice(PUBLIC._tables[domain.table][domain.column])
    if isinstance(domain, Between):
        return _between(chance, kind, domain.low, domain.high)
    usual = {"integer": chance.randrange(5), "real": chance.random() * 50, "boolean": chance.random() < 0.5}
    return usual.get(kind, "usual")


def _between(chance, kind, low, high):
    if kind in ("date", "timestamp"):
        return low + timedelta(days=chance.randrange((high - low).days + 1))
    if kind == "decimal":
        return Decimal(chance.randrange(int(low) * 100, int(high) * 100)) / 100
    return chance.randint(low, high) if kind == "integer" else chance.uniform(float(low), float(high))
