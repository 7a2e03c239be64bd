-- policy: CHECKINS

-- the median place
SELECT MEDIAN(lat) AS lat, MEDIAN(lon) AS lon FROM checkins;
/*
r0 from
  derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
    checkins of visitor
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(lat, 202/5 to 41 by 1/10000, 6001 to the 1), size 20971520, weight 2
  t1 = histogram(lon, -743/10 to -368/5 by 1/10000, 7001 to the 1), size 20971520, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(lat)
  m1 = Quantile(total=1, target=1/2, method=selection, kind=real, origin=None): MEDIAN(lon)
  Each visitor contributes at most 20 rows.
then SELECT r0.m0 AS "lat", r0.m1 AS "lon" FROM r0
*/

-- the median visits of a person
SELECT MEDIAN(n) FROM (SELECT visitor, LEAST(COUNT(*), 100) AS n FROM checkins GROUP BY visitor) AS t;
/*
r0 from
  derive c0 = least(f0, 100)
    per unit: f0 = rows()
      checkins of visitor
  not clipped, groups 1, rows 1
  t0 = histogram(c0, 1 to 100 by 1, 100 to the 1), size 1, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=integer, origin=None): MEDIAN(n)
  In MEDIAN(n), values are clamped to the range from 1 to 100.
then SELECT r0.m0 AS "median" FROM r0
*/

-- the usual hour of each kind of venue
SELECT kind, MODE(EXTRACT(HOUR FROM at)) AS hour FROM checkins JOIN venues ON venue = id GROUP BY kind;
/*
r0 from
  inner join venues (id, kind) on venue = id, fanout 1
    derive at, venue
      checkins of visitor
  by k0 = kind: cafe, museum, park
  clipped, groups 3, rows 20, l2 norm
  t0 = histogram(hour(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999)), 0, 1, 2, … 23 (24), 24 to the 1), size 20971520, weight 1
  m0 = Frequencies(total=0, function=mode 1): MODE(EXTRACT(HOUR FROM at))
  Rows are left out where kind is NULL.
  Each visitor contributes at most 20 rows per group.
then SELECT r0.k0 AS "kind", r0.m0 AS "hour" FROM r0
*/

-- the top venues
SELECT APPROX_TOP_K(venue, 3) FROM checkins;
/*
r0 from
  checkins of visitor
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(venue, v1, v2, v3, v4, 4 to the 1), size 20971520, weight 1
  m0 = Frequencies(total=0, function=top 3): APPROX_TOP_K(venue, 3)
  Each visitor contributes at most 20 rows.
then SELECT r0.m0 AS "approx_top_k" FROM r0
*/

-- how many venues were visited
SELECT COUNT(DISTINCT venue) AS visited FROM checkins;
/*
r0 from
  checkins of visitor
  clipped, groups 1, rows 20, l2 norm
  t0 = count_distinct(venue), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT venue)
  Each visitor contributes at most 20 distinct values per group, chosen by a hash.
then SELECT r0.m0 AS "visited" FROM r0
*/

-- how many venues in each borough
SELECT borough, COUNT(DISTINCT venue) AS visited FROM checkins JOIN venues ON venue = id GROUP BY borough;
/*
r0 from
  inner join venues (id, borough) on venue = id, fanout 1
    derive venue
      checkins of visitor
  by k0 = borough: Bronx, Queens
  clipped, groups 2, rows 20, l2 norm
  t0 = count_distinct(venue), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT venue)
  Rows are left out where borough is NULL.
  Each visitor contributes at most 20 distinct values per group, chosen by a hash.
then SELECT r0.k0 AS "borough", r0.m0 AS "visited" FROM r0
*/

-- the first and the last check-in
SELECT MIN(at), MAX(at) FROM checkins;
/*
r0 from
  checkins of visitor
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(days_between(2009-03-01, to_date(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999))), 0 to 609 by 1, 5 to the 4), size 83886080, weight 8
  m0 = Quantile(total=0, target=0, method=tree, kind=timestamp, origin=2009-03-01): MIN(at)
  m1 = Quantile(total=0, target=1, method=tree, kind=timestamp, origin=2009-03-01): MAX(at)
  Each visitor contributes at most 20 rows.
  In MIN(at) and MAX(at), values are clamped to the range from 2009-03-01 to 2010-10-31.
then SELECT r0.m0 AS "min", r0.m1 AS "max" FROM r0
*/

-- the middle half of the city
SELECT QUANTILE_CONT(lat, 0.25) AS south, QUANTILE_CONT(lat, 0.75) AS north FROM checkins WHERE lat IS NOT NULL;
/*
r0 from
  where not(is_null(lat))
    derive lat = inside(lat, 40.4, 41.0)
      checkins of visitor
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(lat, 202/5 to 41 by 1/10000, 6001 to the 1), size 20971520, weight 4
  m0 = Quantile(total=0, target=1/4, method=selection, kind=real, origin=None): QUANTILE_CONT(lat, 0.25)
  m1 = Quantile(total=0, target=3/4, method=selection, kind=real, origin=None): QUANTILE_CONT(lat, 0.75)
  Each visitor contributes at most 20 rows.
then SELECT r0.m0 AS "south", r0.m1 AS "north" FROM r0
*/

-- the median visits of a person, within ends
SELECT MEDIAN(CLIP(n, 1, 100)) FROM (SELECT visitor, COUNT(*) AS n FROM checkins GROUP BY visitor) AS t;
/*
r0 from
  per unit: f0 = rows()
    checkins of visitor
  not clipped, groups 1, rows 1
  t0 = histogram(f0, 1 to 100 by 1, 100 to the 1), size 1, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=integer, origin=None): MEDIAN(CLIP(n, 1, 100))
  In MEDIAN(CLIP(n, 1, 100)), values are clamped to the range from 1 to 100.
then SELECT r0.m0 AS "median" FROM r0
*/
