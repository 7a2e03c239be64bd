-- policy: WEBLOG

-- one day of a person is in one day's group
SELECT at::date AS day, COUNT(*) FROM hits GROUP BY day;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = to_date(at): 2026-01-01, 2026-01-02, 2026-01-03, … 2026-01-31 (31)
  clipped, groups 1, rows 100, l0 clipped, l1 norm, rows capped
  t0 = count(*), size 104857600, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from at is outside its range.
  Each user's day contributes at most 100 rows per group.
  Each user's day's rows per group are clipped together: at most 100 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "day", r0.m0 AS "count" FROM r0
*/

-- and in one month's
SELECT EXTRACT(month FROM at) AS month, status, COUNT(*) FROM hits GROUP BY month, status;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = status: 200, 404, 500
  by k1 = month(at): 1, 2, 3, … 12 (12)
  clipped, groups 3, rows 100, l0 clipped, l1 norm
  t0 = count(*), size 314572800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where status is NULL or not declared.
  Each user's day's rows per group are clipped together: at most 300 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "month", r0.k1 AS "status", r0.m0 AS "count" FROM r0
*/

-- but in many hours'
SELECT EXTRACT(hour FROM at) AS hour, COUNT(*) FROM hits GROUP BY hour;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = hour(at): 0, 1, 2, … 23 (24)
  clipped, groups 10, rows 100, l0 clipped, l1 norm
  t0 = count(*), size 1048576000, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each user's day's rows per group are clipped together: at most 1,000 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "hour", r0.m0 AS "count" FROM r0
*/

-- days of persons are counted
SELECT COUNT(DISTINCT (user_id, at::date)) FROM hits;
/*
r0 from
  hits of user_id, trunc_day(at)
  clipped, groups 1, rows 1, l1 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT (user_id, CAST(at AS DATE)))
then SELECT r0.m0 AS "count" FROM r0
*/

-- with FILTER
SELECT COUNT(DISTINCT (user_id, DATE_TRUNC('day', at))) FILTER (WHERE mobile) AS mobile FROM hits;
/*
r0 from
  hits of user_id, trunc_day(at)
  clipped, groups 1, rows 1, l1 norm
  t0 = count_units(case(mobile, 1, NULL)), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT (user_id, DATE_TRUNC('DAY', at))) FILTER(WHERE mobile)
then SELECT r0.m0 AS "mobile" FROM r0
*/

-- a row per person and day
SELECT AVG(CLIP(n, 0, 100)), STDDEV(CLIP(n, 0, 100)) FROM (SELECT user_id, DATE_TRUNC('day', at) AS day, COUNT(*) AS n FROM hits GROUP BY user_id, day) AS t;
/*
r0 from
  per unit: f0 = rows()
    hits of user_id, trunc_day(at)
  not clipped, groups 1, rows 1
  t0 = sum(f0, 1 to 100 by 1/2 around 101/2), size 99, weight 2
  t1 = count(*), size 1, weight 1/2
  t2 = sum(f0 squared less 5018112, 1 to 100 by 1/64 around 101/2), size 5018112, weight 1
  m0 = Mean(total=0, count=1, low=1, high=100): AVG(CLIP(n, 0, 100))
  m1 = Variance(squares=2, total=0, count=1, low=1, high=100, statistic=stddev_samp): STDDEV(CLIP(n, 0, 100))
  In AVG(CLIP(n, 0, 100)) and STDDEV(CLIP(n, 0, 100)), values are clamped to the range from 1 to 100.
then SELECT r0.m0 AS "avg", r0.m1 AS "stddev" FROM r0
*/

-- a row per person and day, with the day kept
SELECT day, AVG(CLIP(n, 0, 100)) FROM (SELECT user_id, at::date AS day, COUNT(*) AS n FROM hits GROUP BY user_id, at::date) AS t GROUP BY day;
/*
r0 from
  per unit: f0 = least(to_date(at)), f1 = rows()
    hits of user_id, trunc_day(at)
  by k0 = f0: 2026-01-01, 2026-01-02, 2026-01-03, … 2026-01-31 (31)
  not clipped, groups 1, rows 1
  t0 = sum(f1, 1 to 100 by 1/2 around 101/2), size 99, weight 1
  t1 = count(*), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=1, high=100): AVG(CLIP(n, 0, 100))
  Rows are left out where day is outside its range.
  In AVG(CLIP(n, 0, 100)), values are clamped to the range from 1 to 100.
then SELECT r0.k0 AS "day", r0.m0 AS "avg" FROM r0
*/

-- a time that is a date is the window itself
SELECT COUNT(*) FROM (SELECT account, day FROM logins GROUP BY account, day) AS t;
/*
r0 from
  per unit: 
    logins of account, trunc_day(to_timestamp(day))
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
then SELECT r0.m0 AS "count" FROM r0
*/

-- joined on the person and the day
SELECT status, COUNT(*) FROM hits h JOIN logins l ON h.user_id = l.account AND h.at::date = l.day GROUP BY status;
/*
r0 from
  inner join on the unit, most 100
    derive status
      hits of user_id, trunc_day(at)
    derive account
      logins of account, trunc_day(to_timestamp(day))
  by k0 = status: 200, 404, 500
  clipped, groups 3, rows 100, l1 norm
  t0 = count(*), size 157286400, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where status is NULL or not declared.
  Each user's day's rows per group are clipped together: at most 300 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "status", r0.m0 AS "count" FROM r0
*/

-- IN on the person and the day
SELECT COUNT(*) FROM hits WHERE (user_id, at::date) IN (SELECT account, day FROM logins);
/*
r0 from
  units with a row in the second
    hits of user_id, trunc_day(at)
    logins of account, trunc_day(to_timestamp(day))
  clipped, groups 1, rows 100, l1 norm, rows capped
  t0 = count(*), size 100, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each user's day contributes at most 100 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- NOT EXISTS on the person and the day
SELECT COUNT(*) FROM hits h WHERE NOT EXISTS (SELECT 1 FROM logins l WHERE l.account = h.user_id AND l.day = h.at::date);
/*
r0 from
  units with no row in the second
    hits of user_id, trunc_day(at)
    logins of account, trunc_day(to_timestamp(day))
  clipped, groups 1, rows 100, l1 norm, rows capped
  t0 = count(*), size 100, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each user's day contributes at most 100 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- large integers have a step of their own
SELECT AVG(bytes), SUM(bytes) FROM hits WHERE status = 200;
/*
r0 from
  where equal(status, 200)
    hits of user_id, trunc_day(at)
  clipped, groups 1, rows 100, l1 norm, rows capped
  t0 = sum(bytes, 0 to 100000000 by 64 around 50003968), size 78131200, weight 5/4
  t1 = count(bytes), size 100, weight 1/2
  m0 = Mean(total=0, count=1, low=0, high=100000000): AVG(bytes)
  m1 = NoisySum(total=0, kind=whole, count=1): SUM(bytes)
  Each user's day contributes at most 100 rows.
  In AVG(bytes) and SUM(bytes), values are clamped to the range from 0 to 1e+8 and rounded to steps of 64.
then SELECT r0.m0 AS "avg", r0.m1 AS "sum" FROM r0
*/

-- a person as a whole cannot be counted
SELECT COUNT(DISTINCT user_id) FROM hits;
/*
refused: line 1, COUNT: the privacy unit is a person within a time window, so distinct persons cannot be counted. Use COUNT(DISTINCT (hits.user_id, date_trunc('day', hits.at))).
*/

-- nor gathered
SELECT AVG(CLIP(n, 0, 100)) FROM (SELECT user_id, COUNT(*) AS n FROM hits GROUP BY user_id) AS t;
/*
refused: line 1, GROUP BY: the privacy unit is a person within a time window, so rows of several windows cannot be grouped together. Group by hits.user_id, date_trunc('day', hits.at).
*/

-- nor joined
SELECT COUNT(*) FROM hits h JOIN logins l ON h.user_id = l.account;
/*
refused: line 1, JOIN: two private tables can be joined only by equality on the whole privacy unit. Add h.user_id = l.account AND date_trunc('day', h.at) = date_trunc('day', l.day).
*/

-- nor found elsewhere
SELECT COUNT(*) FROM hits WHERE user_id IN (SELECT account FROM logins);
/*
refused: line 1, WHERE: private rows can be compared with other private rows only on the whole privacy unit. Compare hits.user_id, date_trunc('day', hits.at) with the same columns of the inner query, or write a JOIN.
*/

-- a pure budget discovers no groups
SELECT path, COUNT(*) FROM hits GROUP BY path;
/*
refused: line 1, GROUP BY: the groups of path are not declared, and partition selection needs a budget with a delta. Declare the column's values in the policy (in, between or references), or give the budget a delta before anything is charged to it.
*/

-- another window is not the unit's
SELECT COUNT(*) FROM (SELECT user_id, DATE_TRUNC('month', at) AS m FROM hits GROUP BY 1, 2) AS t;
/*
refused: line 1, GROUP BY: the privacy unit is a person within a time window, so rows of several windows cannot be grouped together. Group by hits.user_id, date_trunc('day', hits.at).
*/

-- no limit is declared for groups
SELECT EXTRACT(dow FROM day) AS weekday, account > 'm' AS late, COUNT(*) FROM logins GROUP BY 1, 2;
/*
r0 from
  logins of account, trunc_day(to_timestamp(day))
  by k0 = dow(to_timestamp(day)): 0, 1, 2, 3, 4, 5, 6
  by k1 = less('m', account): False, True
  clipped, groups 1, rows 5, l0 clipped, l1 norm, rows capped
  t0 = count(*), size 5242880, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from account is NULL.
  Each user's day contributes at most 5 rows per group.
  Each user's day's rows per group are clipped together: at most 5 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "weekday", r0.k1 AS "late", r0.m0 AS "count" FROM r0
*/

-- the first hit of each user and day
SELECT status, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id, date_trunc('day', at) ORDER BY at) AS n FROM hits) AS t WHERE n = 1 GROUP BY status;
/*
r0 from
  where equal(n0, 1)
    n0 = number of a row by unit, up to 1: at, user_id, status, bytes, mobile, path
      hits of user_id, trunc_day(at)
  by k0 = status: 200, 404, 500
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where status is NULL or not declared.
then SELECT r0.k0 AS "status", r0.m0 AS "count" FROM r0
*/

-- rows are numbered within the whole unit, which is a user and a day
SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY at) AS n FROM hits) AS t WHERE n = 1;
/*
refused: line 1, SELECT: rows can only be numbered within a privacy unit, so PARTITION BY must name it. Add PARTITION BY hits.user_id, date_trunc('day', hits.at).
*/

-- the last status of each user and day
SELECT last, COUNT(*) FROM (SELECT user_id, date_trunc('day', at) AS day, ARG_MAX(status, at) AS last FROM hits GROUP BY user_id, day) AS t GROUP BY last;
/*
r0 from
  left join on the unit, most 1
    per unit: 
      hits of user_id, trunc_day(at)
    derive status
      n0 = number of a row by unit, up to 1: at desc, status
        derive at, status
          where and(not(is_null(at)), not(is_null(status)))
            hits of user_id, trunc_day(at)
  by k0 = status: 200, 404, 500
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where last is NULL or outside its range.
then SELECT r0.k0 AS "last", r0.m0 AS "count" FROM r0
*/
