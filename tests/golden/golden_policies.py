"""The policies that golden queries are read under, and what their public tables hold."""

from datetime import date

from golden_everyday import CHECKINS, TRADE  # noqa: F401 - gathered below, with those that are written here

from discreet.kernel.expr import Type
from discreet.policy import Policy

SHOP = """\
[data]
name     = "shop"
protects = "customer"
[budget]
epsilon = 4
delta   = 1e-9
bounds_report = 0  # of which the other policies have one
[budget.analysts]
ana = { epsilon = 1, each = 0.05, tables = ["orders"] }

[tables.orders]
source   = "orders.parquet"
unit     = "user"
groups   = 5
rows     = 20
rows_max = 1_000_000_000
[tables.orders.columns]
user     = { type = "integer" }
time     = { type = "timestamp", between = [2025-01-01, 2025-12-31] }
amount   = { type = "decimal", between = [0, 500], step = 0.01 }
quantity = { type = "integer", between = [1, 10] }
discount = { type = "real", between = [0, 1] }
rating   = { type = "integer", in = [1, 2, 3, 4, 5], null = true }
category = { type = "text", in = ["food", "books", "toys"] }
region   = { type = "text", references = "regions.name" }
city     = { type = "text" }
paid     = { type = "boolean" }
lat      = { type = "real", between = [-90, 90], step = 1e-4, outside = "null" }
weight   = { type = "real" }

[tables.visits]
source = "visits.parquet"
unit   = "visitor"
groups = 3
rows   = 50
[tables.visits.columns]
visitor  = { type = "integer" }
time     = { type = "timestamp", between = [2025-01-01, 2025-12-31] }
page     = { type = "text" }
seconds  = { type = "integer", between = [0, 3600] }
category = { type = "text", in = ["food", "books", "toys"] }

[tables.regions]
source = "regions.csv"
public = true
[tables.regions.columns]
name    = { type = "text" }
country = { type = "text" }
people  = { type = "integer" }

[tables.prices]
source = "prices.csv"
public = true
"""

HOSPITAL = """\
[data]
name     = "hospital"
protects = "patient"
timezone = "Europe/Berlin"
[budget]
epsilon  = 3
delta    = 1e-9
bounds_report = 0  # of which the other policies have one

[tables.encounters]
source   = "encounters.parquet"
unit     = "patient_id"
groups   = 4
rows     = 12
rows_max = 50_000_000
[tables.encounters.columns]
id         = { type = "integer" }
patient_id = { type = "text" }
admitted   = { type = "timestamp", between = [2015-01-01, 2026-06-30] }
discharged = { type = "timestamp", between = [2015-01-01, 2026-06-30], null = true }
icd        = { type = "text", references = "icd10.code" }
urgent     = { type = "boolean" }
days       = { type = "integer", between = [0, 365] }
age        = { type = "integer", between = [0, 119] }

[tables.labs]
source   = "labs.parquet"
unit     = { through = "encounters", on = "encounter", key = "id" }
groups   = 20
rows     = 50
rows_max = 2_000_000_000
[tables.labs.columns]
lab_id    = { type = "integer" }
encounter = { type = "integer" }
loinc     = { type = "text", in = ["2345-7", "718-7"] }
value     = { type = "real", between = [0, 10_000], step = 0.01, outside = "null" }
taken     = { type = "date", between = [2015-01-01, 2026-06-30] }

[tables.lab_flags]
source   = "lab_flags.parquet"
unit     = { through = "labs", on = "lab_id" }
rows_max = 2_000_000_000
[tables.lab_flags.columns]
lab_id = { type = "integer" }
flag   = { type = "text", in = ["low", "high", "critical"] }

[tables.icd10]
source = "icd10.csv"
public = true
[tables.icd10.columns]
code    = { type = "text" }
chapter = { type = "integer", between = [1, 22] }
"""

WEBLOG = """\
[data]
name     = "weblog"
protects = "user"
[budget]
epsilon  = 1.5
bounds_report = 0  # of which the other policies have one

[tables.hits]
source = "hits.parquet"
unit   = "user_id"
window = "1 day"
time   = "at"
groups = 10
rows   = 100
[tables.hits.columns]
user_id = { type = "text" }
at      = { type = "timestamp", between = [2026-01-01, 2026-01-31] }
status  = { type = "integer", in = [200, 404, 500] }
bytes   = { type = "integer", between = [0, 100_000_000] }
mobile  = { type = "boolean" }
path    = { type = "text" }

[tables.logins]
source = "logins.parquet"
unit   = "account"
window = "1 day"
time   = "day"
rows   = 5
[tables.logins.columns]
account = { type = "text" }
day     = { type = "date", between = [2026-01-01, 2026-01-31] }
"""

METER = """\
[data]
name     = "meter"
[budget]
epsilon  = 1
bounds_report = 0  # of which the other policies have one

[tables.readings]
source   = "readings.parquet"
unit     = "row"
rows_max = 10_000_000
[tables.readings.columns]
station = { type = "text", references = "stations.code" }
at      = { type = "timestamp", between = [2026-01-01, 2026-12-31] }
kwh     = { type = "real", between = [0, 64] }
phase   = { type = "integer", between = [1, 3] }

[tables.stations]
source = "stations.csv"
public = true
[tables.stations.columns]
code = { type = "text" }
area = { type = "text" }
"""

POLICIES = {name: Policy.parse(text) for name, text in globals().items() if isinstance(text, str) and name.isupper()}


class Tables:
    """Public tables that fit in a dictionary: columns of values, all of one length."""

    def __init__(self, tables):
        self._tables = tables

    def columns(self, table):
        kinds = {int: Type.INTEGER, float: Type.REAL, str: Type.TEXT, bool: Type.BOOLEAN, date: Type.DATE}
        return {name: kinds[type(values[0])] for name, values in self._tables[table].items()}

    def values(self, table, column):
        return sorted(set(self._tables[table][column]))

    def fanout(self, table, columns):
        rows = list(zip(*(self._tables[table][column] for column in columns), strict=True)) if columns else []
        size = len(next(iter(self._tables[table].values())))
        return max(map(rows.count, rows)) if columns else size


PUBLIC = Tables(
    {
        "regions": {
            "name": ["north", "south", "east"],
            "country": ["A", "A", "B"],
            "people": [1200, 3400, 560],
        },
        "prices": {
            "category": ["food", "food", "books", "toys"],
            "price": [1.5, 2.5, 12.0, 30.0],
            "year": [2024, 2025] * 2,
        },
        "icd10": {"code": ["A00", "B01", "C02"], "chapter": [1, 1, 2]},
        "stations": {"code": ["s1", "s2"], "area": ["hill", "coast"]},
        "nations": {"name": ["FRANCE", "GERMANY", "JAPAN", "PERU"], "region": ["EUROPE", "EUROPE", "ASIA", "AMERICA"]},
        "parts": {"code": ["p1", "p2", "p3"], "brand": ["Brand#12", "Brand#23", "Brand#12"], "size": [1, 15, 40]},
        "venues": {
            "id": ["v1", "v2", "v3", "v4"],
            "kind": ["cafe", "museum", "cafe", "park"],
            "borough": ["Queens", "Queens", "Bronx", "Bronx"],
        },
    }
)
