-- policy: CHECKINS

-- a heat map
SELECT FLOOR(lat * 10) / 10 AS y, FLOOR(lon * 10) / 10 AS x, COUNT(*) AS n FROM checkins GROUP BY 1, 2 ORDER BY n DESC;
/*
r0 from
  derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
    checkins of visitor
  by k0 = divide(floor(multiply(lat, 10.0)), 10.0): 40.4, 40.5, 40.6, 40.7, 40.8, 40.9, 41.0
  by k1 = divide(floor(multiply(lon, 10.0)), 10.0): -74.3, -74.2, -74.1, -74.0, -73.9, -73.8, -73.7, -73.6
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 6266440, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from lat is NULL, or the key from lon is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = divide(floor(multiply(lat, 10.0)), 10.0), k1 = divide(floor(multiply(lon, 10.0)), 10.0): f0 = rows()
      where and(one_of(divide(floor(multiply(lat, 10.0)), 10.0), 40.4, 40.5, 40.6, 40.7, 40.8, 40.9, 41.0), one_of(divide(floor(multiply(lon, 10.0)), 10.0), -73.6, -73.7, -73.8, -73.9, -74.0, -74.1, -74.2, -74.3))
        derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
          checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT r0.k0 AS "y", r0.k1 AS "x", r0.m0 AS "n" FROM r0 ORDER BY 3 DESC
*/

-- a heat map of cells
SELECT FLOOR((lat - 40.4) / 0.1) AS y, FLOOR((lon + 74.3) / 0.1) AS x, COUNT(DISTINCT visitor) AS people
FROM checkins WHERE lat IS NOT NULL AND lon IS NOT NULL GROUP BY y, x;
/*
r0 from
  where and(not(is_null(lat)), not(is_null(lon)))
    derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
      checkins of visitor
  by k0 = floor(divide(add(lon, 74.3), 0.1)): 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0
  by k1 = floor(divide(subtract(lat, 40.4), 0.1)): 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0
  clipped, groups 5, rows 1, l0 clipped, l2 norm
  t0 = count_units(*), size 313322, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT visitor)
  Rows are left out where the key from lat is NULL, or the key from lon is NULL.
  Each visitor contributes to at most 5 groups; contributions to more groups are clipped.
h0 from
  per unit: f0 = rows()
    per unit and k0 = floor(divide(add(lon, 74.3), 0.1)), k1 = floor(divide(subtract(lat, 40.4), 0.1)): 
      where and(not(is_null(lat)), not(is_null(lon)), one_of(floor(divide(subtract(lat, 40.4), 0.1)), 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), one_of(floor(divide(add(lon, 74.3), 0.1)), 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0))
        derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
          checkins of visitor
  units by the norm of their groups
  4 buckets from 2.449, 3.162, 4.472, … 6.325; 1/50 of the cost
  about r0, radius 2.236
then SELECT r0.k0 AS "y", r0.k1 AS "x", r0.m0 AS "people" FROM r0
*/

-- the busiest hours
SELECT EXTRACT(HOUR FROM at) AS hour, COUNT(*) AS n FROM checkins GROUP BY hour ORDER BY n DESC LIMIT 5;
/*
r0 from
  checkins of visitor
  by k0 = hour(at): 0, 1, 2, … 23 (24)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 9572145, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from at is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = hour(at): f0 = rows()
      where and(at_most(hour(at), 23), at_most(0, hour(at)))
        checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT r0.k0 AS "hour", r0.m0 AS "n" FROM r0 ORDER BY 2 DESC LIMIT 5
*/

-- weekdays and weekends
SELECT CASE WHEN EXTRACT(ISODOW FROM at) >= 6 THEN 'weekend' ELSE 'week' END AS part, COUNT(*), COUNT(DISTINCT visitor)
FROM checkins GROUP BY part;
/*
r0 from
  checkins of visitor
  by k0 = case(at_most(6, isodow(at)), 'weekend', 'week'): weekend, week
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  t1 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = NoisyCount(total=1): COUNT(DISTINCT visitor)
  Each visitor's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = case(at_most(6, isodow(at)), 'weekend', 'week'): f0 = rows()
      where one_of(case(at_most(6, isodow(at)), 'weekend', 'week'), 'week', 'weekend')
        checkins of visitor
  units by the norm of their rows
  37 buckets from 28.3, 40, 56.57, … 7.415e+06; 1/50 of the cost
  about r0, radius 28.28
then SELECT r0.k0 AS "part", r0.m0 AS "count", r0.m1 AS "count_1" FROM r0
*/

-- hours by weekday
SELECT EXTRACT(DOW FROM at) AS weekday, EXTRACT(HOUR FROM at) AS hour, COUNT(*) FROM checkins GROUP BY 1, 2 ORDER BY 1, 2;
/*
r0 from
  checkins of visitor
  by k0 = dow(at): 0, 1, 2, 3, 4, 5, 6
  by k1 = hour(at): 0, 1, 2, … 23 (24)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 3617930, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from at is NULL, or the key from at is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = dow(at), k1 = hour(at): f0 = rows()
      where and(at_most(dow(at), 6), at_most(hour(at), 23), at_most(0, dow(at)), at_most(0, hour(at)))
        checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT r0.k0 AS "weekday", r0.k1 AS "hour", r0.m0 AS "count" FROM r0 ORDER BY 1, 2
*/

-- kinds of venues
SELECT kind, COUNT(*) AS visits, COUNT(DISTINCT visitor) AS people FROM checkins JOIN venues ON venue = id GROUP BY kind;
/*
r0 from
  inner join venues (id, kind) on venue = id, fanout 1
    derive venue
      checkins of visitor
  by k0 = kind: cafe, museum, park
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  t1 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = NoisyCount(total=1): COUNT(DISTINCT visitor)
  Rows are left out where kind is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = kind: f0 = rows()
      where one_of(kind, 'cafe', 'museum', 'park')
        inner join venues (id, kind) on venue = id, fanout 1
          derive venue
            checkins of visitor
  units by the norm of their rows
  37 buckets from 34.66, 48.99, 69.28, … 9.081e+06; 1/50 of the cost
  about r0, radius 34.64
then SELECT r0.k0 AS "kind", r0.m0 AS "visits", r0.m1 AS "people" FROM r0
*/

-- boroughs by month
SELECT borough, DATE_TRUNC('month', at) AS month, COUNT(*) AS n FROM checkins c JOIN venues v ON c.venue = v.id
WHERE at >= '2010-01-01' GROUP BY borough, month ORDER BY month, borough;
/*
r0 from
  where at_most(2010-01-01 00:00:00, at)
    inner join venues (id, borough) on venue = id, fanout 1
      derive at, venue
        checkins of visitor
  by k0 = borough: Bronx, Queens
  by k1 = trunc_month(at): 2010-01-01 00:00:00, 2010-02-01 00:00:00, 2010-03-01 00:00:00, … 2010-10-01 00:00:00 (10)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 10485760, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where borough is NULL, or the key from at is outside its range.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = borough, k1 = trunc_month(at): f0 = rows()
      where and(at_most(2010-01-01 00:00:00, at), one_of(borough, 'Bronx', 'Queens'), one_of(trunc_month(at), 2010-01-01 00:00:00, 2010-10-01 00:00:00, 2010-02-01 00:00:00, 2010-03-01 00:00:00, 2010-04-01 00:00:00, 2010-05-01 00:00:00, 2010-06-01 00:00:00, 2010-07-01 00:00:00, 2010-08-01 00:00:00, 2010-09-01 00:00:00))
        inner join venues (id, borough) on venue = id, fanout 1
          derive at, venue
            checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT r0.k0 AS "borough", r0.k1 AS "month", r0.m0 AS "n" FROM r0 ORDER BY 2, 1
*/

-- the centre of each borough
SELECT borough, AVG(lat) AS lat, AVG(lon) AS lon, STDDEV(lat) AS north_south FROM checkins JOIN venues ON id = venue GROUP BY borough;
/*
r0 from
  inner join venues (id, borough) on venue = id, fanout 1
    derive venue, lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
      checkins of visitor
  by k0 = borough: Bronx, Queens
  clipped, groups 2, rows 20, l2 norm, rows capped
  t0 = sum(lat, 202/5 to 41 by 1/10000 around 407/10), size 60000, weight 2
  t1 = count(lat), size 20, weight 1/2
  t2 = sum(lon, -743/10 to -368/5 by 1/10000 around -1479/20), size 70000, weight 1
  t3 = count(lon), size 20, weight 1/4
  t4 = sum(lat squared less 4500000, 202/5 to 41 by 1/10000 around 407/10), size 90000000, weight 1
  m0 = Mean(total=0, count=1, low=202/5, high=41): AVG(lat)
  m1 = Mean(total=2, count=3, low=-743/10, high=-368/5): AVG(lon)
  m2 = Variance(squares=4, total=0, count=1, low=202/5, high=41, statistic=stddev_samp): STDDEV(lat)
  Rows are left out where borough is NULL.
  Each visitor contributes at most 20 rows per group.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = borough: f0 = rows()
      where one_of(borough, 'Bronx', 'Queens')
        inner join venues (id, borough) on venue = id, fanout 1
          derive venue
            checkins of visitor
  units by the norm of their rows
  37 buckets from 28.3, 40, 56.57, … 7.415e+06; 1/50 of the cost
  about r0, radius 28.28
then SELECT r0.k0 AS "borough", r0.m0 AS "lat", r0.m1 AS "lon", r0.m2 AS "north_south" FROM r0
*/

-- visits of a person
SELECT AVG(CLIP(n, 0, 200)) AS mean, COUNT(*) FILTER (WHERE n = 1) AS once, COUNT(*) AS people FROM (
  SELECT visitor, COUNT(*) AS n FROM checkins GROUP BY visitor) AS t;
/*
r0 from
  per unit: f0 = rows()
    checkins of visitor
  not clipped, groups 1, rows 1
  t0 = sum(f0, 1 to 200 by 1/2 around 201/2), size 199, weight 1
  t1 = count(*), size 1, weight 5/4
  t2 = count(case(equal(f0, 1), 1, NULL)), size 1, weight 1
  m0 = Mean(total=0, count=1, low=1, high=200): AVG(CLIP(n, 0, 200))
  m1 = NoisyCount(total=2): COUNT(*) FILTER(WHERE n = 1)
  m2 = NoisyCount(total=1): COUNT(*)
  In AVG(CLIP(n, 0, 200)), values are clamped to the range from 1 to 200.
then SELECT r0.m0 AS "mean", r0.m1 AS "once", r0.m2 AS "people" FROM r0
*/

-- people by the number of their venues
SELECT LEAST(places, 20) AS places, COUNT(*) AS people FROM (
  SELECT visitor, COUNT(DISTINCT venue) AS places FROM checkins GROUP BY visitor) AS t GROUP BY 1 ORDER BY 1;
/*
r0 from
  per unit: f0 = distinct(venue)
    checkins of visitor
  by k0 = least(f0, 20): 0, 1, 2, 3, 4, 20
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from places is NULL or outside its range.
then SELECT r0.k0 AS "places", r0.m0 AS "people" FROM r0 ORDER BY 1
*/

-- active days of a person
SELECT AVG(CLIP(days, 0, 100)) FROM (SELECT visitor, COUNT(DISTINCT at::date) AS days FROM checkins GROUP BY visitor) AS t;
/*
r0 from
  per unit: f0 = distinct(to_date(at))
    checkins of visitor
  not clipped, groups 1, rows 1
  t0 = sum(clip(clip(f0, 0, 610), 0, 100), 0 to 100 by 1 around 50), size 50, weight 1
  t1 = count(*), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=100): AVG(CLIP(days, 0, 100))
  In AVG(CLIP(days, 0, 100)), values are clamped to the range from 0 to 100.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- monthly active people
SELECT DATE_TRUNC('month', at) AS month, COUNT(DISTINCT visitor) AS active FROM checkins GROUP BY month ORDER BY month;
/*
r0 from
  checkins of visitor
  by k0 = trunc_month(at): 2009-03-01 00:00:00, 2009-04-01 00:00:00, 2009-05-01 00:00:00, … 2010-10-01 00:00:00 (20)
  clipped, groups 5, rows 1, l0 clipped, l2 norm
  t0 = count_units(*), size 524288, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT visitor)
  Rows are left out where the key from at is NULL or outside its range.
  Each visitor contributes to at most 5 groups; contributions to more groups are clipped.
h0 from
  per unit: f0 = rows()
    per unit and k0 = trunc_month(at): 
      where one_of(trunc_month(at), 2009-10-01 00:00:00, 2009-11-01 00:00:00, 2009-12-01 00:00:00, 2009-03-01 00:00:00, 2009-04-01 00:00:00, 2009-05-01 00:00:00, 2009-06-01 00:00:00, 2009-07-01 00:00:00, 2009-08-01 00:00:00, 2009-09-01 00:00:00, 2010-01-01 00:00:00, 2010-10-01 00:00:00, 2010-02-01 00:00:00, 2010-03-01 00:00:00, 2010-04-01 00:00:00, 2010-05-01 00:00:00, 2010-06-01 00:00:00, 2010-07-01 00:00:00, 2010-08-01 00:00:00, 2010-09-01 00:00:00)
        checkins of visitor
  units by the norm of their groups
  3 buckets from 2.449, 3.162, 4.472, … 4.472; 1/50 of the cost
  about r0, radius 2.236
then SELECT r0.k0 AS "month", r0.m0 AS "active" FROM r0 ORDER BY 1
*/

-- newcomers by month
SELECT DATE_TRUNC('month', first) AS month, COUNT(*) AS newcomers FROM (
  SELECT visitor, MIN(at) AS first FROM checkins GROUP BY visitor) AS t GROUP BY month ORDER BY month;
/*
r0 from
  per unit: f0 = least(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999))
    checkins of visitor
  by k0 = trunc_month(f0): 2009-03-01 00:00:00, 2009-04-01 00:00:00, 2009-05-01 00:00:00, … 2010-10-01 00:00:00 (20)
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from first is NULL or outside its range.
then SELECT r0.k0 AS "month", r0.m0 AS "newcomers" FROM r0 ORDER BY 1
*/

-- retention: who came back after thirty days
SELECT COUNT(*) FILTER (WHERE last - first >= 30) * 1.0 / COUNT(*) AS returned FROM (
  SELECT visitor, MIN(at::date) AS first, MAX(at::date) AS last FROM checkins GROUP BY visitor) AS t;
/*
r0 from
  per unit: f0 = greatest(to_date(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999))), f1 = least(to_date(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999)))
    checkins of visitor
  not clipped, groups 1, rows 1
  t0 = count(case(at_most(30, days_between(f1, f0)), 1, NULL)), size 1, weight 1
  t1 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE last - first >= 30)
  m1 = NoisyCount(total=1): COUNT(*)
then SELECT r0.m0 * 1.0 / r0.m1 AS "returned" FROM r0
*/

-- visitors of one place who also went to another
SELECT COUNT(DISTINCT visitor) FROM checkins WHERE venue = 'v1' AND visitor IN (SELECT visitor FROM checkins WHERE venue = 'v4');
/*
r0 from
  where equal(venue, 'v1')
    units with a row in the second
      checkins of visitor
      where equal(venue, 'v4')
        checkins of visitor
  clipped, groups 1, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT visitor)
then SELECT r0.m0 AS "count" FROM r0
*/

-- pairs of venues visited by the same person
SELECT a.venue AS one, b.venue AS other, COUNT(DISTINCT a.visitor) AS people
FROM checkins a JOIN checkins b ON a.visitor = b.visitor WHERE a.venue < b.venue GROUP BY 1, 2 ORDER BY people DESC;
/*
r0 from
  where less(venue, venue_1)
    inner join on the unit, most 100
      derive venue
        checkins of visitor
      derive venue_1 = venue
        checkins of visitor
  by k0 = venue: v1, v2, v3, v4
  by k1 = venue_1: v1, v2, v3, v4
  clipped, groups 5, rows 1, l0 clipped, l2 norm
  t0 = count_units(*), size 586171, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT a.visitor)
  Rows are left out where venue is NULL or not declared, or venue is NULL or not declared.
  Each visitor contributes to at most 5 groups; contributions to more groups are clipped.
h0 from
  per unit: f0 = rows()
    per unit and k0 = venue, k1 = venue_1: 
      where and(less(venue, venue_1), one_of(venue, 'v1', 'v2', 'v3', 'v4'), one_of(venue_1, 'v1', 'v2', 'v3', 'v4'))
        inner join on the unit, most 100
          derive venue
            checkins of visitor
          derive venue_1 = venue
            checkins of visitor
  units by the norm of their groups
  2 buckets from 2.449, 3.162, … 3.162; 1/50 of the cost
  about r0, radius 2.236
then SELECT r0.k0 AS "one", r0.k1 AS "other", r0.m0 AS "people" FROM r0 ORDER BY 3 DESC
*/

-- notes with a word
SELECT COUNT(*) FROM checkins WHERE LOWER(note) LIKE '%coffee%';
/*
r0 from
  where like(lower(note), '%coffee%')
    checkins of visitor
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each visitor contributes at most 20 rows.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where like(lower(note), '%coffee%')
        checkins of visitor
  units by the norm of their rows
  38 buckets from 20.02, 28.28, 40, … 7.415e+06; 1/50 of the cost
  about r0, radius 20
then SELECT r0.m0 AS "count" FROM r0
*/

-- the most frequent first words are discovered
SELECT LEFT(note, 5) AS beginning, COUNT(*) AS n FROM checkins GROUP BY beginning ORDER BY n DESC LIMIT 20;
/*
r0 from
  where not(is_null(part(note, 1, 5)))
    checkins of visitor
  by k0 = part(note, 1, 5): partition selection
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = None, size 82897, weight 1
  t1 = count(*), size 14829, weight 1
  m0 = NoisyCount(total=1): COUNT(*)
  Rows are left out where the key from note is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = part(note, 1, 5): f0 = rows()
      where not(is_null(part(note, 1, 5)))
        checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT r0.k0 AS "beginning", r0.m0 AS "n" FROM r0 ORDER BY 2 DESC LIMIT 20
*/

-- friends and visits
SELECT CASE WHEN f.visitor IS NULL THEN 'alone' ELSE 'with friends' END AS kind, COUNT(*)
FROM checkins c LEFT JOIN (SELECT visitor FROM friends GROUP BY visitor) AS f ON c.visitor = f.visitor GROUP BY kind;
/*
r0 from
  left join on the unit, most 100
    derive visitor
      checkins of visitor
    per unit: f0 = least(visitor)
      friends of visitor
  by k0 = case(is_null(f0), 'alone', 'with friends'): alone, with friends
  clipped, groups 2, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each visitor's rows per group are clipped together: an l2 norm of at most 70.71 over all groups, such as 50 rows in each of 2 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = case(is_null(f0), 'alone', 'with friends'): f0 = rows()
      where one_of(case(is_null(f0), 'alone', 'with friends'), 'alone', 'with friends')
        left join on the unit, most 100
          derive visitor
            checkins of visitor
          per unit: f0 = least(visitor)
            friends of visitor
  units by the norm of their rows
  2 buckets from 70.72, 100, … 100; 1/50 of the cost
  about r0, radius 70.71
then SELECT r0.k0 AS "kind", r0.m0 AS "count" FROM r0
*/

-- people without friends
SELECT COUNT(DISTINCT visitor) FROM checkins c WHERE NOT EXISTS (SELECT 1 FROM friends f WHERE f.visitor = c.visitor);
/*
r0 from
  units with no row in the second
    checkins of visitor
    friends of visitor
  clipped, groups 1, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT visitor)
then SELECT r0.m0 AS "count" FROM r0
*/

-- number of friends
SELECT friends, COUNT(*) AS people FROM (SELECT visitor, LEAST(COUNT(*), 10) AS friends FROM friends GROUP BY visitor) AS t
GROUP BY friends ORDER BY friends;
/*
r0 from
  derive c0 = least(f0, 10)
    per unit: f0 = rows()
      friends of visitor
  by k0 = c0: 1, 2, 3, … 10 (10)
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where friends is NULL or outside its range.
then SELECT r0.k0 AS "friends", r0.m0 AS "people" FROM r0 ORDER BY 1
*/

-- distance from a point
SELECT AVG(CLIP(SQRT(POWER((lat - 40.75) * 111.2, 2) + POWER((lon + 73.98) * 84.2, 2)), 0, 60)) AS km FROM checkins;
/*
r0 from
  derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
    checkins of visitor
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(clip(sqrt(add(power(multiply(add(lon, 73.98), 84.2), 2.0), power(multiply(subtract(lat, 40.75), 111.2), 2.0))), 0.0, 60.0), 0 to 50.3836 by 1/32768 around 3225/128), size 16512000, weight 1
  t1 = count(clip(sqrt(add(power(multiply(add(lon, 73.98), 84.2), 2.0), power(multiply(subtract(lat, 40.75), 111.2), 2.0))), 0.0, 60.0)), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=50.3836): AVG(CLIP(SQRT(POWER((lat - 40.75) * 111.2, 2) + POWER((lon + 73.98) * 84.2, 2)), 0, 60))
  Each visitor contributes at most 20 rows.
  In AVG(CLIP(SQRT(POWER((lat - 40.75) * 111.2, 2) + POWER((lon + 73.98) * 84.2, 2)), 0, 60)), values are clamped to the range from 0 to 50.3836 and rounded to steps of 3.05176e-5.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      derive lat = inside(lat, 40.4, 41.0)
        checkins of visitor
  units by the norm of their rows
  38 buckets from 20.02, 28.28, 40, … 7.415e+06; 1/50 of the cost
  about r0, radius 20
then SELECT r0.m0 AS "km" FROM r0
*/

-- a box on the map
SELECT COUNT(*) FROM checkins WHERE lat BETWEEN 40.70 AND 40.80 AND lon BETWEEN -74.02 AND -73.93;
/*
r0 from
  where and(at_most(lat, 40.8), at_most(lon, -73.93), at_most(-74.02, lon), at_most(40.7, lat))
    derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
      checkins of visitor
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each visitor contributes at most 20 rows.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where and(at_most(lat, 40.8), at_most(lon, -73.93), at_most(-74.02, lon), at_most(40.7, lat))
        derive lat = inside(lat, 40.4, 41.0), lon = inside(lon, -74.3, -73.6)
          checkins of visitor
  units by the norm of their rows
  38 buckets from 20.02, 28.28, 40, … 7.415e+06; 1/50 of the cost
  about r0, radius 20
then SELECT r0.m0 AS "count" FROM r0
*/

-- night and day by borough
SELECT borough, SUM(CASE WHEN EXTRACT(HOUR FROM at) BETWEEN 6 AND 21 THEN 1 ELSE 0 END) AS day,
  SUM(CASE WHEN EXTRACT(HOUR FROM at) BETWEEN 6 AND 21 THEN 0 ELSE 1 END) AS night
FROM checkins JOIN venues ON venue = id GROUP BY borough;
/*
r0 from
  inner join venues (id, borough) on venue = id, fanout 1
    derive at, venue
      checkins of visitor
  by k0 = borough: Bronx, Queens
  clipped, groups 2, rows 20, l2 norm
  t0 = sum(case(and(at_most(hour(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999)), 21), at_most(6, hour(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999)))), 1, 0), 0 to 1 by 1), size 20971520, weight 1
  t1 = sum(case(and(at_most(hour(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999)), 21), at_most(6, hour(clip(at, 2009-03-01 00:00:00, 2010-10-31 23:59:59.999999)))), 0, 1), 0 to 1 by 1), size 20971520, weight 1
  m0 = NoisySum(total=0, kind=whole, count=None): SUM(CASE WHEN EXTRACT(HOUR FROM at) BETWEEN 6 AND 21 THEN 1 ELSE 0 END)
  m1 = NoisySum(total=1, kind=whole, count=None): SUM(CASE WHEN EXTRACT(HOUR FROM at) BETWEEN 6 AND 21 THEN 0 ELSE 1 END)
  Rows are left out where borough is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
  In SUM(CASE WHEN EXTRACT(HOUR FROM at) BETWEEN 6 AND 21 THEN 1 ELSE 0 END) and SUM(CASE WHEN EXTRACT(HOUR FROM at) BETWEEN 6 AND 21 THEN 0 ELSE 1 END), values are clamped to the range from 0 to 1.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = borough: f0 = rows()
      where one_of(borough, 'Bronx', 'Queens')
        inner join venues (id, borough) on venue = id, fanout 1
          derive venue
            checkins of visitor
  units by the norm of their rows
  37 buckets from 28.3, 40, 56.57, … 7.415e+06; 1/50 of the cost
  about r0, radius 28.28
then SELECT r0.k0 AS "borough", r0.m0 AS "day", r0.m1 AS "night" FROM r0
*/

-- a moving mean over seven days
SELECT day, AVG(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM (
  SELECT at::date AS day, COUNT(*) AS n FROM checkins WHERE at >= '2010-09-01' GROUP BY day) AS t ORDER BY day;
/*
r0 from
  where at_most(2010-09-01 00:00:00, at)
    checkins of visitor
  by k0 = to_date(at): 2010-09-01, 2010-09-02, 2010-09-03, … 2010-10-31 (61)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 6004128, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from at is outside its range.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = to_date(at): f0 = rows()
      where and(at_most(2010-09-01 00:00:00, at), at_most(to_date(at), 2010-10-31), at_most(2010-09-01, to_date(at)))
        checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT day AS "day", AVG(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS "week" FROM (SELECT r0.k0 AS "day", r0.m0 AS "n" FROM r0) AS t ORDER BY 1
*/

-- the best month of each borough
SELECT borough, month, n FROM (
  SELECT borough, EXTRACT(MONTH FROM at) AS month, COUNT(*) AS n, RANK() OVER (PARTITION BY borough ORDER BY COUNT(*) DESC) AS place
  FROM checkins JOIN venues ON venue = id GROUP BY borough, EXTRACT(MONTH FROM at)) AS t WHERE place = 1;
/*
r0 from
  inner join venues (id, borough) on venue = id, fanout 1
    derive at, venue
      checkins of visitor
  by k0 = borough: Bronx, Queens
  by k1 = month(at): 1, 2, 3, … 12 (12)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 9572145, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where borough is NULL, or the key from at is NULL.
  Each visitor's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = borough, k1 = month(at): f0 = rows()
      where and(at_most(month(at), 12), at_most(1, month(at)), one_of(borough, 'Bronx', 'Queens'))
        inner join venues (id, borough) on venue = id, fanout 1
          derive at, venue
            checkins of visitor
  units by the norm of their rows
  36 buckets from 44.73, 63.25, 89.44, … 8.29e+06; 1/50 of the cost
  about r0, radius 44.72
then SELECT borough AS "borough", month AS "month", n AS "n" FROM (SELECT r0.k0 AS "borough", r0.k1 AS "month", r0.m0 AS "n", RANK() OVER (PARTITION BY r0.k0 ORDER BY r0.m0 DESC) AS "place" FROM r0) AS t WHERE place = 1
*/

-- who visited which venue
SELECT visitor, venue FROM checkins ORDER BY at DESC LIMIT 10;
/*
refused: line 1, SELECT: this query would return individual rows. Aggregate them with COUNT(*), SUM(…) or AVG(…), and GROUP BY if needed.
*/

-- the last visit of each person
SELECT DISTINCT ON (visitor) visitor, at FROM checkins ORDER BY visitor, at DESC;
/*
refused: line 1, SELECT: DISTINCT ON is not supported. Use GROUP BY, or QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1.
*/

-- friends of friends
SELECT COUNT(*) FROM friends a JOIN friends b ON a.since = b.since;
/*
refused: line 1, JOIN: two private tables can be joined only by equality on the whole privacy unit. Add a.visitor = b.visitor.
*/

-- co-located people
SELECT COUNT(*) FROM checkins a JOIN checkins b ON a.venue = b.venue AND a.at::date = b.at::date WHERE a.visitor < b.visitor;
/*
refused: line 1, JOIN: two private tables can be joined only by equality on the whole privacy unit. Add a.visitor = b.visitor.
*/
