"""Policies of a trading company and of check-ins at venues, for questions as people ask them."""

TRADE = """\
[data]
name     = "trade"
protects = "customer"
[budget]
epsilon  = 4
delta    = 1e-9

[tables.purchases]
source   = "purchases.parquet"
unit     = "customer"
groups   = 4
rows     = 10
rows_max = 1_500_000
[tables.purchases.columns]
purchase = { type = "integer" }
customer = { type = "integer" }
day      = { type = "date", between = [1992-01-01, 1998-12-31] }
status   = { type = "text", in = ["F", "O", "P"] }
priority = { type = "text", in = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-LOW"] }
total    = { type = "decimal", between = [0, 500_000], step = 1 }
nation   = { type = "text", references = "nations.name" }
segment  = { type = "text", in = ["AUTOMOBILE", "BUILDING", "MACHINERY"] }
remark   = { type = "text" }

[tables.items]
source   = "items.parquet"
unit     = { through = "purchases", on = "purchase" }
groups   = 8
rows     = 40
rows_max = 6_000_000
[tables.items.columns]
purchase = { type = "integer" }
part     = { type = "text", references = "parts.code" }
quantity = { type = "integer", between = [1, 50] }
price    = { type = "decimal", between = [0, 100_000], step = 1 }
discount = { type = "real", between = [0, 0.1], step = 0.01 }
tax      = { type = "real", between = [0, 0.08], step = 0.01 }
returned = { type = "text", in = ["A", "N", "R"] }
shipped  = { type = "date", between = [1992-01-01, 1998-12-31] }
promised = { type = "date", between = [1992-01-01, 1998-12-31] }
received = { type = "date", between = [1992-01-01, 1998-12-31], null = true }
mode     = { type = "text", in = ["AIR", "MAIL", "RAIL", "SHIP", "TRUCK"] }

[tables.nations]
source = "nations.csv"
public = true
[tables.nations.columns]
name   = { type = "text" }
region = { type = "text" }

[tables.parts]
source = "parts.csv"
public = true
[tables.parts.columns]
code  = { type = "text" }
brand = { type = "text" }
size  = { type = "integer" }
"""

CHECKINS = """\
[data]
name     = "checkins"
protects = "visitor"
[budget]
epsilon  = 2
delta    = 1e-8

[tables.checkins]
source   = "checkins.parquet"
unit     = "visitor"
groups   = 5
rows     = 20
rows_max = 10_000_000
[tables.checkins.columns]
visitor = { type = "integer" }
at      = { type = "timestamp", between = [2009-03-01, 2010-10-31] }
lat     = { type = "real", between = [40.4, 41.0], step = 1e-4, outside = "null" }
lon     = { type = "real", between = [-74.3, -73.6], step = 1e-4, outside = "null" }
venue   = { type = "text", references = "venues.id" }
note    = { type = "text" }

[tables.friends]
source   = "friends.parquet"
unit     = "visitor"
groups   = 1
rows     = 50
rows_max = 1_000_000
[tables.friends.columns]
visitor = { type = "integer" }
since   = { type = "date", between = [2009-01-01, 2010-12-31] }
close   = { type = "boolean" }

[tables.venues]
source = "venues.csv"
public = true
[tables.venues.columns]
id      = { type = "text" }
kind    = { type = "text" }
borough = { type = "text" }
"""
