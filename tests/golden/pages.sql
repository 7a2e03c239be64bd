-- policy: WEBLOG

-- hits and megabytes by day
SELECT at::date AS day, COUNT(*) AS hits, SUM(bytes) / 1000000.0 AS megabytes FROM hits GROUP BY day ORDER BY day;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = to_date(at): 2026-01-01, 2026-01-02, 2026-01-03, … 2026-01-31 (31)
  clipped, groups 1, rows 100, l0 clipped, l1 norm, rows capped
  t0 = count(*), size 104857600, weight 1
  t1 = sum(bytes, 0 to 100000000 by 64), size 5000000000, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = NoisySum(total=1, kind=whole, count=None): SUM(bytes)
  Rows are left out where the key from at is outside its range.
  Each user's day contributes at most 100 rows per group.
  Each user's day's rows per group are clipped together: at most 100 rows' worth over all groups (l1 norm).
  In SUM(bytes), values are clamped to the range from 0 to 1e+8 and rounded to steps of 64.
then SELECT r0.k0 AS "day", r0.m0 AS "hits", r0.m1 / 1000000.0 AS "megabytes" FROM r0 ORDER BY 1
*/

-- the share of errors by hour
SELECT EXTRACT(HOUR FROM at) AS hour, AVG(CASE WHEN status >= 400 THEN 1.0 ELSE 0.0 END) AS errors FROM hits GROUP BY hour ORDER BY hour;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = hour(at): 0, 1, 2, … 23 (24)
  clipped, groups 10, rows 100, l0 clipped, l1 norm, rows capped
  t0 = sum(case(at_most(400, clip(status, 200, 500)), 1.0, 0.0), 0 to 1 by 9.53674e-07 around 1/2), size 33554432000, weight 1
  t1 = count(*), size 1048576000, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=1): AVG(CASE WHEN status >= 400 THEN 1.0 ELSE 0.0 END)
  Each user's day contributes at most 100 rows per group.
  Each user's day's rows per group are clipped together: at most 1,000 rows' worth over all groups (l1 norm).
  In AVG(CASE WHEN status >= 400 THEN 1.0 ELSE 0.0 END), values are clamped to the range from 0 to 1 and rounded to steps of 9.53674e-7.
then SELECT r0.k0 AS "hour", r0.m0 AS "errors" FROM r0 ORDER BY 1
*/

-- errors by code
SELECT status, COUNT(*) AS n FROM hits WHERE status <> 200 GROUP BY status ORDER BY n DESC;
/*
r0 from
  where not(equal(status, 200))
    hits of user_id, trunc_day(at)
  by k0 = status: 404, 500
  clipped, groups 2, rows 100, l1 norm
  t0 = count(*), size 209715200, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where status is not declared.
  Each user's day's rows per group are clipped together: at most 200 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "status", r0.m0 AS "n" FROM r0 ORDER BY 2 DESC
*/

-- mobile by day
SELECT at::date AS day, 100.0 * COUNT(*) FILTER (WHERE mobile) / COUNT(*) AS percent FROM hits GROUP BY 1 ORDER BY 1;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = to_date(at): 2026-01-01, 2026-01-02, 2026-01-03, … 2026-01-31 (31)
  clipped, groups 1, rows 100, l0 clipped, l1 norm, rows capped
  t0 = count(case(mobile, 1, NULL)), size 104857600, weight 1
  t1 = count(*), size 104857600, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE mobile)
  m1 = NoisyCount(total=1): COUNT(*)
  Rows are left out where the key from at is outside its range.
  Each user's day contributes at most 100 rows per group.
  Each user's day's rows per group are clipped together: at most 100 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "day", 100.0 * r0.m0 / r0.m1 AS "percent" FROM r0 ORDER BY 1
*/

-- pages of a kind
SELECT CASE WHEN path LIKE '/api/%' THEN 'api' WHEN path LIKE '%.png' OR path LIKE '%.jpg' THEN 'picture' ELSE 'page' END AS kind,
  COUNT(*) AS n, AVG(bytes) AS size FROM hits GROUP BY kind ORDER BY n DESC;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = case(like(path, '/api/%'), 'api', or(like(path, '%.jpg'), like(path, '%.png')), 'picture', 'page'): api, picture, page
  clipped, groups 3, rows 100, l1 norm, rows capped
  t0 = count(*), size 100, weight 1
  t1 = sum(bytes, 0 to 100000000 by 64 around 50003968), size 78131200, weight 1
  t2 = count(bytes), size 100, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=100000000): AVG(bytes)
  Each user's day contributes at most 100 rows per group.
  In AVG(bytes), values are clamped to the range from 0 to 1e+8 and rounded to steps of 64.
then SELECT r0.k0 AS "kind", r0.m0 AS "n", r0.m1 AS "size" FROM r0 ORDER BY 2 DESC
*/

-- paths by a regular expression
SELECT COUNT(*) FROM hits WHERE path ~ '^/products/[0-9]+$';
/*
r0 from
  where matches(path, '^/products/[0-9]+$')
    hits of user_id, trunc_day(at)
  clipped, groups 1, rows 100, l1 norm, rows capped
  t0 = count(*), size 100, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each user's day contributes at most 100 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- active people by day
SELECT at::date AS day, COUNT(DISTINCT (user_id, at::date)) AS people FROM hits GROUP BY day ORDER BY day;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = to_date(at): 2026-01-01, 2026-01-02, 2026-01-03, … 2026-01-31 (31)
  clipped, groups 1, rows 1, l0 clipped, l1 norm
  t0 = count_units(*), size 1048576, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT (user_id, CAST(at AS DATE)))
  Rows are left out where the key from at is outside its range.
  Each user's day contributes to at most 1 group; contributions to more groups are clipped.
then SELECT r0.k0 AS "day", r0.m0 AS "people" FROM r0 ORDER BY 1
*/

-- hits of a person in a day
SELECT LEAST(n, 20) AS hits, COUNT(*) AS days FROM (
  SELECT user_id, at::date AS day, COUNT(*) AS n FROM hits GROUP BY user_id, at::date) AS t GROUP BY 1 ORDER BY 1;
/*
r0 from
  per unit: f0 = rows()
    hits of user_id, trunc_day(at)
  by k0 = least(f0, 20): 1, 2, 3, … 20 (20)
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from n is NULL or outside its range.
then SELECT r0.k0 AS "hits", r0.m0 AS "days" FROM r0 ORDER BY 1
*/

-- bounces: days with one page
SELECT COUNT(*) FILTER (WHERE n = 1) * 1.0 / COUNT(*) AS bounced FROM (
  SELECT user_id, at::date AS day, COUNT(*) AS n FROM hits WHERE status = 200 GROUP BY user_id, at::date) AS t;
/*
r0 from
  per unit: f0 = rows()
    where equal(status, 200)
      hits of user_id, trunc_day(at)
  not clipped, groups 1, rows 1
  t0 = count(case(equal(f0, 1), 1, NULL)), size 1, weight 1
  t1 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE n = 1)
  m1 = NoisyCount(total=1): COUNT(*)
then SELECT r0.m0 * 1.0 / r0.m1 AS "bounced" FROM r0
*/

-- a funnel within a day
SELECT COUNT(*) FILTER (WHERE saw) AS saw, COUNT(*) FILTER (WHERE saw AND bought) AS bought FROM (
  SELECT user_id, at::date AS day, MAX(CASE WHEN path LIKE '/products/%' THEN 1 ELSE 0 END) = 1 AS saw,
    MAX(CASE WHEN path = '/thanks' THEN 1 ELSE 0 END) = 1 AS bought FROM hits GROUP BY user_id, at::date) AS t;
/*
r0 from
  derive c0 = equal(f0, 1), c1 = equal(f1, 1)
    per unit: f0 = greatest(case(equal(path, '/thanks'), 1, 0)), f1 = greatest(case(like(path, '/products/%'), 1, 0))
      hits of user_id, trunc_day(at)
  not clipped, groups 1, rows 1
  t0 = count(case(c1, 1, NULL)), size 1, weight 1
  t1 = count(case(and(c0, c1), 1, NULL)), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE saw)
  m1 = NoisyCount(total=1): COUNT(*) FILTER(WHERE saw AND bought)
then SELECT r0.m0 AS "saw", r0.m1 AS "bought" FROM r0
*/

-- hits of people who logged in that day
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

-- the peak minute of the day is fine too
SELECT EXTRACT(HOUR FROM at) * 60 + EXTRACT(MINUTE FROM at) AS minute, COUNT(*) AS n FROM hits GROUP BY minute ORDER BY n DESC LIMIT 3;
/*
r0 from
  hits of user_id, trunc_day(at)
  by k0 = add(minute(at), multiply(hour(at), 60)): 0, 1, 2, … 1439 (1440)
  clipped, groups 10, rows 100, l0 clipped, l1 norm
  t0 = count(*), size 1048576000, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from at is NULL.
  Each user's day's rows per group are clipped together: at most 1,000 rows' worth over all groups (l1 norm).
then SELECT r0.k0 AS "minute", r0.m0 AS "n" FROM r0 ORDER BY 2 DESC LIMIT 3
*/

-- top pages cannot be discovered with a pure budget
SELECT path, COUNT(*) AS n FROM hits GROUP BY path ORDER BY n DESC LIMIT 10;
/*
refused: line 1, GROUP BY: the groups of path are not declared, and partition selection needs a budget with a delta. Declare the column's values in the policy (in, between or references), or give the budget a delta before anything is charged to it.
*/

-- sessions need windows
SELECT COUNT(*) FROM (SELECT at - LAG(at) OVER (PARTITION BY user_id ORDER BY at) AS gap FROM hits) AS t WHERE gap > INTERVAL '30 minutes';
/*
refused: line 1, SELECT: window functions are not allowed on private rows. Aggregate first, then use window functions on the result.
*/

-- the last hit of each user
SELECT user_id, MAX(at) FROM hits GROUP BY user_id;
/*
refused: line 1, GROUP BY: the privacy unit is a person within a time window, so rows of several windows cannot be grouped together. Group by hits.user_id, date_trunc('day', hits.at).
*/
