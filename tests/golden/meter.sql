-- policy: METER

-- rows are units: nothing has to be bounded
SELECT station, COUNT(*), AVG(kwh), VAR_SAMP(kwh) FROM readings GROUP BY station;
/*
r0 from
  readings of each row
  by k0 = station: s1, s2
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  t1 = sum(kwh, 0 to 64 by 1/16384 around 32), size 524288, weight 2
  t2 = count(kwh), size 1, weight 1/2
  t3 = sum(kwh squared less 8388608, 0 to 64 by 1/128 around 32), size 8388608, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=64): AVG(kwh)
  m2 = Variance(squares=3, total=1, count=2, low=0, high=64, statistic=var_samp): VAR_SAMP(kwh)
  Rows are left out where station is NULL or not declared.
  In AVG(kwh) and VAR_SAMP(kwh), values are clamped to the range from 0 to 64 and rounded to steps of 6.10352e-5.
then SELECT r0.k0 AS "station", r0.m0 AS "count", r0.m1 AS "avg", r0.m2 AS "var_samp" FROM r0
*/

-- a public table
SELECT area, SUM(kwh) FROM readings JOIN stations ON station = code GROUP BY area;
/*
r0 from
  inner join stations (code, area) on station = code, fanout 1
    readings of each row
  by k0 = area: coast, hill
  not clipped, groups 1, rows 1
  t0 = sum(kwh, 0 to 64 by 1/16384), size 1048576, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(kwh)
  Rows are left out where area is NULL.
  In SUM(kwh), values are clamped to the range from 0 to 64 and rounded to steps of 6.10352e-5.
then SELECT r0.k0 AS "area", r0.m0 AS "sum" FROM r0
*/

-- hours and phases
SELECT EXTRACT(hour FROM at) AS hour, phase, AVG(kwh) FROM readings GROUP BY hour, phase;
/*
r0 from
  readings of each row
  by k0 = phase: 1, 2, 3
  by k1 = hour(at): 0, 1, 2, … 23 (24)
  not clipped, groups 1, rows 1
  t0 = sum(kwh, 0 to 64 by 1/16384 around 32), size 524288, weight 1
  t1 = count(kwh), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=64): AVG(kwh)
  Rows are left out where the key from at is NULL, or phase is NULL or outside its range.
  In AVG(kwh), values are clamped to the range from 0 to 64 and rounded to steps of 6.10352e-5.
then SELECT r0.k0 AS "hour", r0.k1 AS "phase", r0.m0 AS "avg" FROM r0
*/

-- a fan-out multiplies what a row weighs
SELECT s.area, COUNT(*) FROM readings r JOIN stations s ON r.station <> s.code GROUP BY s.area;
/*
r0 from
  where not(equal(code, station))
    inner join stations (code, area) on anything, fanout 2
      readings of each row
  by k0 = area: coast, hill
  not clipped, groups 1, rows 1
  t0 = count(*), size 2, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where area is NULL.
then SELECT r0.k0 AS "area", r0.m0 AS "count" FROM r0
*/

-- rows never meet other rows
SELECT COUNT(*) FROM readings a JOIN readings b ON a.station = b.station;
/*
refused: line 1, JOIN: each row is its own privacy unit, so private tables cannot be joined. Query one private table at a time.
*/

-- nor by IN
SELECT COUNT(*) FROM readings WHERE station IN (SELECT station FROM readings WHERE kwh > 10);
/*
refused: line 1, WHERE: each row is its own privacy unit, so rows cannot be compared with other private rows. Query one private table at a time.
*/

-- nor by UNION ALL
SELECT COUNT(*) FROM (SELECT kwh FROM readings UNION ALL SELECT kwh FROM readings) AS t;
/*
refused: line 1, UNION: each row is its own privacy unit, so private tables cannot be combined. Query one private table at a time.
*/

-- there are no units to count
SELECT COUNT(DISTINCT station) FROM readings;
/*
r0 from
  readings of each row
  not clipped, groups 1, rows 1
  t0 = count_distinct(station), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT station)
then SELECT r0.m0 AS "count" FROM r0
*/

-- a per-station subquery is a release
SELECT AVG(m) FROM (SELECT station, AVG(kwh) AS m FROM readings GROUP BY station) AS t;
/*
r0 from
  readings of each row
  by k0 = station: s1, s2
  not clipped, groups 1, rows 1
  t0 = sum(kwh, 0 to 64 by 1/16384 around 32), size 524288, weight 1
  t1 = count(kwh), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=64): AVG(kwh)
  Rows are left out where station is NULL or not declared.
  In AVG(kwh), values are clamped to the range from 0 to 64 and rounded to steps of 6.10352e-5.
then SELECT AVG(m) AS "avg" FROM (SELECT r0.k0 AS "station", r0.m0 AS "m" FROM r0) AS t
*/
