"""Policies that tests start from: the three of the realistic kind, and a small one to break."""

SMALL = """\
[data]
name = "visits"

[budget]
epsilon = 2.0
delta = 1e-9

[budget.analysts]
ana = { epsilon = 1.0, each = 0.05 }

[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = 3
rows = 10

[tables.visits.columns]
patient = { type = "integer" }
time = { type = "timestamp", between = [2024-01-01, 2024-12-31] }
cost = { type = "decimal", between = [0, 5000], step = 0.01 }
ward = { type = "text", in = ["A", "B"] }
region = { type = "text", references = "regions.name" }

[tables.regions]
source = "regions.csv"
public = true

[tables.regions.columns]
name = { type = "text" }
people = { type = "integer", between = [0, 10_000_000] }
"""

HOSPITAL = """\
[data]
name = "hospital"
protects = "patient"
version = "2026-06"
timezone = "Europe/Berlin"
engine = "postgresql"
ledger = "postgresql://ledger@db.internal/ledgers"

[budget]
epsilon = 3
delta = "1/1000000000"
discover = 0.25

[budget.analysts]
epidemiology = { epsilon = 2, each = 0.1, tables = ["Encounters", "labs"] }
billing = { epsilon = "1/2", delta = 1e-10, tables = ["encounters"] }

[tables.encounters]
source = "clinic.encounters"
unit = "patient_id"
groups = 4
rows = 12
rows_max = 50_000_000
[tables.encounters.columns]
id = { type = "integer" }
patient_id = { type = "text" }
admitted = { type = "timestamp", between = [2015-01-01, 2026-06-30] }
discharged = { type = "timestamp", between = [2015-01-01, 2026-06-30], null = true }
icd = { type = "text", references = "icd10.code" }
urgent = { type = "boolean" }
days = { type = "integer", between = [0, 365] }

[tables.labs]
source = "clinic.labs"
unit = { through = "encounters", on = "encounter", key = "id" }
groups = 20
rows = 50
rows_max = 2_000_000_000
[tables.labs.columns]
lab_id = { type = "integer" }
encounter = { type = "integer" }
loinc = { type = "text" }
value = { type = "real", between = [0, 10_000], step = 0.01, outside = "null" }
taken = { type = "date", between = [2015-01-01, 2026-06-30] }

[tables.lab_flags]
source = "clinic.lab_flags"
unit = { through = "labs", on = "lab_id" }
[tables.lab_flags.columns]
lab_id = { type = "integer" }
flag = { type = "text", in = ["low", "high", "critical"] }

[tables.icd10]
source = "reference.icd10"
public = true
[tables.icd10.columns]
code = { type = "text" }
chapter = { type = "integer", between = [1, 22] }
"""

CHECKINS = """\
[data]
name     = "checkins"
protects = "visitor"
version  = "2026-11"

[budget]
epsilon = 4.0
delta   = 1e-9
[budget.analysts]
ana = { epsilon = 1.0, each = 0.05, tables = ["checkins"] }

[tables.checkins]
source   = "checkins/*.parquet"
unit     = "user"
groups   = 5
rows     = 20
rows_max = 1_000_000_000
[tables.checkins.columns]
user  = { type = "integer" }
time  = { type = "timestamp", between = [2009-01-01, 2010-12-31] }
lat   = { type = "real", between = [-90, 90], step = 1e-4, outside = "null" }
lon   = { type = "real", between = [-180, 180], step = 1e-4, outside = "null" }
venue = { type = "integer", references = "venues.venue" }

[tables.venues]
source = "venues.csv"
public = true
[tables.venues.columns]
venue    = { type = "integer" }
category = { type = "text", in = ["food", "shop", "travel"] }
"""

WEBLOGS = """\
[data]
name = "weblogs"
protects = "user"
timezone = "America/New_York"
engine = "spark"

[budget]
epsilon = 1.5

[tables.hits]
source = "s3://logs/hits/*.parquet"
unit = "user_id"
window = "1 day"
time = "at"
groups = 10
rows = 100
[tables.hits.columns]
user_id = { type = "text" }
at = { type = "timestamp", between = [2026-01-01, 2026-12-31] }
status = { type = "integer", in = [200, 301, 302, 304, 400, 403, 404, 500, 503] }
bytes = { type = "integer", between = [0, 100_000_000] }
mobile = { type = "boolean" }

[tables.logins]
source = "s3://logs/logins/*.parquet"
unit = "account"
window = "1 day"
time = "day"
[tables.logins.columns]
account = { type = "text" }
day = { type = "date" }
"""

REALISTIC = {"hospital": HOSPITAL, "checkins": CHECKINS, "weblogs": WEBLOGS}
