-- policy: SHOP

-- a CTE of private rows
WITH dear AS (SELECT category, amount FROM orders WHERE amount > 100) SELECT category, AVG(amount) FROM dear GROUP BY category;
/*
r0 from
  where less(100.0, amount)
    orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm, rows capped
  t0 = sum(amount, 100 to 500 by 1/100 around 300), size 400000, weight 1
  t1 = count(*), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=100, high=500): AVG(amount)
  Rows are left out where category is NULL or not declared.
  Each customer contributes at most 20 rows per group.
  In AVG(amount), values are clamped to the range from 100 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "category", r0.m0 AS "avg" FROM r0
*/

-- computed columns in a subquery keep their ranges and domains
SELECT size, AVG(net) FROM (SELECT amount * (1 - discount) AS net, CASE WHEN quantity > 5 THEN 'many' ELSE 'few' END AS size FROM orders) AS t GROUP BY size;
/*
r0 from
  derive c0 = multiply(amount, subtract(1.0, discount)), c1 = case(less(5, quantity), 'many', 'few')
    orders of user
  by k0 = c1: many, few
  clipped, groups 2, rows 20, l2 norm, rows capped
  t0 = sum(c0, 0 to 500 by 1/4096 around 250), size 20480000, weight 1
  t1 = count(c0), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(net)
  Each customer contributes at most 20 rows per group.
  In AVG(net), values are clamped to the range from 0 to 500 and rounded to steps of 0.000244141.
then SELECT r0.k0 AS "size", r0.m0 AS "avg" FROM r0
*/

-- a row per unit
SELECT AVG(CLIP(n, 0, 50)) FROM (SELECT user, COUNT(*) AS n FROM orders GROUP BY user) AS t;
/*
r0 from
  per unit: f0 = rows()
    orders of user
  not clipped, groups 1, rows 1
  t0 = sum(f0, 1 to 50 by 1/2 around 51/2), size 49, weight 1
  t1 = count(*), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=1, high=50): AVG(CLIP(n, 0, 50))
  In AVG(CLIP(n, 0, 50)), values are clamped to the range from 1 to 50.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- how many people have how many orders
SELECT n, COUNT(*) AS people FROM (SELECT user, COUNT(*) AS n FROM orders GROUP BY user) AS t WHERE n <= 10 GROUP BY n;
/*
r0 from
  where at_most(f0, 10)
    per unit: f0 = rows()
      orders of user
  by k0 = f0: 1, 2, 3, … 10 (10)
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where n is outside its range.
then SELECT r0.k0 AS "n", r0.m0 AS "people" FROM r0
*/

-- all folds of a unit
SELECT AVG(CLIP(s, 0, 2000)), AVG(m), AVG(a), AVG(d), COUNT(*) FILTER (WHERE f), AVG(CLIP(q, 0, 100)) FROM (
  SELECT user, SUM(amount) AS s, MAX(amount) AS m, AVG(amount) AS a, COUNT(DISTINCT category) AS d, BOOL_OR(paid) AS f, SUM(quantity) AS q
  FROM orders GROUP BY user HAVING COUNT(*) > 1 AND MIN(time) >= '2025-02-01') AS t;
/*
r0 from
  where and(at_most(2025-02-01 00:00:00, f4), less(1, f5))
    derive f1, f2, f3, f4, f5, f7, c0 = multiply(to_real(f6), 0.01), c1 = divide(multiply(to_real(f6), 0.01), to_real(f0))
      per unit: f0 = count(amount), f1 = distinct(category), f2 = greatest(clip(amount, 0.0, 500.0)), f3 = greatest(paid), f4 = least(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), f5 = rows(), f6 = steps(amount by 1/100), f7 = sum(clip(quantity, 1, 10))
        orders of user
  not clipped, groups 1, rows 1
  t0 = sum(c0, 0 to 2000 by 1/1024 around 1000), size 1024000, weight 1
  t1 = count(c0), size 1, weight 1/4
  t2 = sum(f2, 0 to 500 by 1/100 around 250), size 25000, weight 1
  t3 = count(f2), size 1, weight 1/4
  t4 = sum(c1, 0 to 500 by 1/4096 around 250), size 1024000, weight 1
  t5 = count(c1), size 1, weight 1/4
  t6 = sum(f1, 0 to 3 by 1/2 around 3/2), size 3, weight 1
  t7 = count(*), size 1, weight 1/4
  t8 = count(case(f3, 1, NULL)), size 1, weight 1
  t9 = sum(f7, 0 to 100 by 1 around 50), size 50, weight 1
  t10 = count(f7), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=2000): AVG(CLIP(s, 0, 2000))
  m1 = Mean(total=2, count=3, low=0, high=500): AVG(m)
  m2 = Mean(total=4, count=5, low=0, high=500): AVG(a)
  m3 = Mean(total=6, count=7, low=0, high=3): AVG(d)
  m4 = NoisyCount(total=8): COUNT(*) FILTER(WHERE f)
  m5 = Mean(total=9, count=10, low=0, high=100): AVG(CLIP(q, 0, 100))
  In AVG(CLIP(s, 0, 2000)), values are clamped to the range from 0 to 2000 and rounded to steps of 0.000976562.
  In AVG(m), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
  In AVG(a), values are clamped to the range from 0 to 500 and rounded to steps of 0.000244141.
  In AVG(d), values are clamped to the range from 0 to 3.
  In AVG(CLIP(q, 0, 100)), values are clamped to the range from 0 to 100.
then SELECT r0.m0 AS "avg", r0.m1 AS "avg_1", r0.m2 AS "avg_2", r0.m3 AS "avg_3", r0.m4 AS "count", r0.m5 AS "avg_4" FROM r0
*/

-- a row per unit and key
SELECT category, AVG(CLIP(n, 0, 9)) FROM (SELECT user, category, COUNT(*) FILTER (WHERE paid) AS n FROM orders GROUP BY user, category) AS t GROUP BY category;
/*
r0 from
  per unit and k0 = category: f0 = count(case(paid, 1, NULL))
    orders of user
  by k0 = k0: food, books, toys
  clipped, groups 3, rows 1, l2 norm, rows capped
  t0 = sum(f0, 0 to 9 by 1/2 around 9/2), size 9, weight 1
  t1 = count(*), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=9): AVG(CLIP(n, 0, 9))
  Rows are left out where category is NULL or not declared.
  Each customer contributes at most 1 row per group.
  In AVG(CLIP(n, 0, 9)), values are clamped to the range from 0 to 9.
then SELECT r0.k0 AS "category", r0.m0 AS "avg" FROM r0
*/

-- DISTINCT with the unit is a row per unit and key
SELECT COUNT(*) FROM (SELECT DISTINCT user, city FROM orders) AS t;
/*
r0 from
  per unit and k0 = city: 
    orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- arithmetic over a unit's aggregates
SELECT AVG(CLIP(r, 0, 1)) FROM (SELECT user, COUNT(*) FILTER (WHERE paid) * 1.0 / COUNT(*) AS r FROM orders GROUP BY user) AS t;
/*
r0 from
  derive c0 = divide(multiply(to_real(f0), 1.0), to_real(f1))
    per unit: f0 = count(case(paid, 1, NULL)), f1 = rows()
      orders of user
  not clipped, groups 1, rows 1
  t0 = sum(c0, 0 to 1 by 9.53674e-07 around 1/2), size 524288, weight 1
  t1 = count(c0), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=1): AVG(CLIP(r, 0, 1))
  In AVG(CLIP(r, 0, 1)), values are clamped to the range from 0 to 1 and rounded to steps of 9.53674e-7.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- a unit's rows joined with other rows of the unit
WITH buyers AS (SELECT user AS who, COUNT(*) AS n FROM orders GROUP BY user)
SELECT COUNT(*), AVG(seconds) FROM visits JOIN buyers ON visitor = who WHERE n > 3;
/*
r0 from
  where less(3, f0)
    inner join on the unit, most 100
      derive seconds
        visits of visitor
      per unit: f0 = rows()
        orders of user
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  t1 = sum(seconds, 0 to 3600 by 1 around 1800), size 90000, weight 1
  t2 = count(seconds), size 50, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=3600): AVG(seconds)
  Each customer contributes at most 50 rows.
  In AVG(seconds), values are clamped to the range from 0 to 3600.
then SELECT r0.m0 AS "count", r0.m1 AS "avg" FROM r0
*/

-- UNION ALL of private rows
SELECT kind, COUNT(*), COUNT(DISTINCT who) FROM (
  SELECT user AS who, 'order' AS kind, amount AS size FROM orders UNION ALL SELECT visitor, 'visit', seconds FROM visits) AS t GROUP BY kind;
/*
r0 from
  union
    derive c0 = 'order'
      orders of user
    derive c0 = 'visit'
      visits of visitor
  by k0 = c0: order, visit
  clipped, groups 2, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  t1 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = NoisyCount(total=1): COUNT(DISTINCT who)
  Each customer's rows per group are clipped together: an l2 norm of at most 70.71 over all groups, such as 50 rows in each of 2 groups.
then SELECT r0.k0 AS "kind", r0.m0 AS "count", r0.m1 AS "count_1" FROM r0
*/

-- two releases joined
WITH a AS (SELECT category, COUNT(*) AS n FROM orders GROUP BY category), b AS (SELECT category, COUNT(*) AS n FROM visits GROUP BY category)
SELECT a.category, a.n * 1.0 / b.n AS ratio FROM a JOIN b ON a.category = b.category ORDER BY ratio;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
r1 from
  visits of visitor
  by k0 = category: food, books, toys
  clipped, groups 3, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 86.6 over all groups, such as 50 rows in each of 3 groups.
then WITH a AS (SELECT r0.k0 AS "category", r0.m0 AS "n" FROM r0), b AS (SELECT r1.k0 AS "category", r1.m0 AS "n" FROM r1) SELECT a.category AS "category", a.n * 1.0 / b.n AS "ratio" FROM a JOIN b ON a.category = b.category ORDER BY 2
*/

-- equal releases are asked once
SELECT (SELECT COUNT(*) FROM orders WHERE paid) * 1.0 / (SELECT COUNT(*) FROM orders) AS share, (SELECT COUNT(*) FROM orders) AS n;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
r1 from
  where paid
    orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT (SELECT r1.m0 AS "count" FROM r1) * 1.0 / (SELECT r0.m0 AS "count" FROM r0) AS "share", (SELECT r0.m0 AS "count" FROM r0) AS "n"
*/

-- a share of the whole
SELECT category, COUNT(*) AS n, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM orders) AS share FROM orders GROUP BY category;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
r1 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r1.k0 AS "category", r1.m0 AS "n", r1.m0 * 1.0 / (SELECT r0.m0 AS "count" FROM r0) AS "share" FROM r1
*/

-- windows over released numbers
SELECT category, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "n", SUM(r0.m0) OVER () AS "total", RANK() OVER (ORDER BY r0.m0 DESC) AS "place" FROM r0
*/

-- a query over a release
SELECT MAX(n), AVG(n) FROM (SELECT category, COUNT(*) AS n FROM orders GROUP BY category) AS t;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT MAX(n) AS "max", AVG(n) AS "avg" FROM (SELECT r0.k0 AS "category", r0.m0 AS "n" FROM r0) AS t
*/

-- UNION ALL of releases
SELECT 'all' AS what, COUNT(*) AS n FROM orders UNION ALL SELECT 'paid', COUNT(*) FROM orders WHERE paid ORDER BY n;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
r1 from
  where paid
    orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT 'all' AS "what", r0.m0 AS "n" FROM r0 UNION ALL SELECT 'paid' AS "?column?", r1.m0 AS "count" FROM r1 ORDER BY 2
*/

-- names of a CTE that look like a release
WITH r0 AS (SELECT COUNT(*) AS n FROM orders), r1 AS (SELECT COUNT(*) AS n FROM visits) SELECT r0.n + r1.n AS n FROM r0, r1;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
r1 from
  visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 50 rows.
then WITH r0 AS (SELECT r0.m0 AS "n" FROM r0), r1 AS (SELECT r1.m0 AS "n" FROM r1) SELECT r0.n + r1.n AS "n" FROM r0, r1
*/

-- a CTE that nobody uses is no release
WITH unused AS (SELECT user FROM orders) SELECT COUNT(*) FROM visits;
/*
r0 from
  visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 50 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- rows are not shown
SELECT * FROM orders LIMIT 10;
/*
refused: line 1, SELECT: this query would return individual rows. Aggregate them with COUNT(*), SUM(…) or AVG(…), and GROUP BY if needed.
*/

-- nor single columns
SELECT amount FROM orders WHERE user = 3;
/*
refused: line 1, SELECT: this query would return individual rows. Aggregate them with COUNT(*), SUM(…) or AVG(…), and GROUP BY if needed.
*/

-- only public tables
SELECT name FROM regions;
/*
then SELECT name AS "name" FROM regions
*/

-- an aggregate of public tables
SELECT COUNT(*) FROM regions;
/*
then SELECT COUNT(*) AS "count" FROM regions
*/

-- no table at all
SELECT 1 + 1 AS two;
/*
then SELECT 1 + 1 AS "two"
*/

-- the tables of the policy
SHOW TABLES;
/*
then SELECT table_name AS "table_name", is_private AS "is_private" FROM "information_schema.tables" AS tables
*/

-- the columns of a table
DESCRIBE Orders;
/*
then SELECT column_name AS "column_name", data_type AS "data_type", is_nullable AS "is_nullable", minimum AS "minimum", maximum AS "maximum", declared_values AS "declared_values", is_unit AS "is_unit" FROM "information_schema.columns" AS columns WHERE table_name = 'orders'
*/

-- the columns of a table that the analyst may not query
-- @by ana
SHOW COLUMNS FROM visits;
/*
refused: line 1, FROM: table "visits" does not exist. Available: orders, regions, prices.
*/

-- the policy and a public table together
SELECT r.name, t.table_name FROM regions AS r JOIN information_schema.tables AS t ON t.is_private = 'NO';
/*
then SELECT r.name AS "name", t.table_name AS "table_name" FROM regions AS r JOIN "information_schema.tables" AS t ON t.is_private = 'NO'
*/

-- a WITH query has the name of a private table
WITH orders AS (SELECT country, SUM(people) AS People FROM regions GROUP BY country) SELECT * FROM orders;
/*
then WITH orders AS (SELECT country AS "country", SUM(people) AS "People" FROM regions GROUP BY country) SELECT "orders"."country" AS "country", "orders"."People" AS "People" FROM orders
*/

-- a private table that is not used
WITH unused AS (SELECT * FROM orders) SELECT name FROM regions;
/*
then SELECT name AS "name" FROM regions
*/

-- a table of information_schema that does not exist
SELECT * FROM information_schema.table_constraints;
/*
refused: line 1, FROM: table "information_schema.table_constraints" does not exist. Available: tables, columns.
*/

-- names as they are written
SELECT Category AS Kind, COUNT(*) AS N FROM Orders GROUP BY CATEGORY ORDER BY n DESC;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "Kind", r0.m0 AS "N" FROM r0 ORDER BY 2 DESC
*/

-- a private row compared with a released number
SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders);
/*
refused: line 1, WHERE: private rows cannot be combined with the result of a subquery. Run the inner query first, then write its result as a constant. IN and EXISTS on the unit must be separate conditions, combined with AND.
*/

-- private rows joined with a released table
WITH means AS (SELECT category, AVG(amount) AS m FROM orders GROUP BY category) SELECT COUNT(*) FROM orders JOIN means USING (category) WHERE amount > m;
/*
refused: line 1, FROM: private rows cannot be joined with aggregated results. Run the aggregate first, then write its results as constants; or aggregate both, then join.
*/

-- LIMIT below the aggregate
SELECT AVG(amount) FROM (SELECT amount FROM orders ORDER BY amount LIMIT 10) AS t;
/*
refused: line 1, ORDER BY: private rows cannot be ordered. Put ORDER BY after the aggregate.
*/

-- ORDER BY below the aggregate
SELECT AVG(amount) FROM (SELECT amount FROM orders ORDER BY time) AS t;
/*
refused: line 1, ORDER BY: private rows cannot be ordered. Put ORDER BY after the aggregate.
*/

-- a window below the aggregate
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) AS n FROM orders) AS t WHERE n = 1;
/*
r0 from
  where equal(n0, 1)
    n0 = number of a row by unit, up to 1: time, user, amount, quantity, discount, rating, category, region, city, paid, lat, weight
      derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
        orders of user
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
then SELECT r0.m0 AS "count" FROM r0
*/

-- QUALIFY below the aggregate
SELECT COUNT(*) FROM (SELECT user FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY user) = 1) AS t;
/*
r0 from
  where equal(n0, 1)
    n0 = number of a row by unit, up to 1: user, time, amount, quantity, discount, rating, category, region, city, paid, lat, weight
      derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
        orders of user
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
then SELECT r0.m0 AS "count" FROM r0
*/

-- UNION of private rows
SELECT COUNT(*) FROM (SELECT user FROM orders UNION SELECT visitor FROM visits) AS t;
/*
refused: line 1, UNION: UNION would compare rows of different privacy units. Use UNION ALL, or GROUP BY the unit.
*/

-- INTERSECT of private rows
SELECT COUNT(*) FROM (SELECT user FROM orders INTERSECT SELECT visitor FROM visits) AS t;
/*
refused: line 1, INTERSECT: INTERSECT would compare rows of different privacy units. Use UNION ALL, or GROUP BY the unit.
*/

-- private UNION ALL public
SELECT COUNT(*) FROM (SELECT region FROM orders UNION ALL SELECT name FROM regions) AS t;
/*
refused: line 1, UNION: UNION cannot combine private rows with other rows. Aggregate each side first, or use private tables on both sides.
*/

-- UNION ALL of other types
SELECT COUNT(*) FROM (SELECT user FROM orders UNION ALL SELECT page FROM visits) AS t;
/*
refused: line 1, UNION: column user has different types on the two sides. Convert one of them with CAST.
*/

-- a recursive CTE
WITH RECURSIVE t AS (SELECT user FROM orders UNION ALL SELECT user FROM t) SELECT COUNT(*) FROM t;
/*
refused: line 1, WITH: recursive queries are not supported. Write each step as a query of its own.
*/

-- an aggregate in WHERE
SELECT COUNT(*) FROM orders WHERE SUM(amount) > 10;
/*
refused: line 1, WHERE: aggregate functions are not allowed in WHERE. Use HAVING, or aggregate per unit in a subquery.
*/

-- an alias in WHERE
SELECT amount * 2 AS twice FROM orders WHERE twice > 3 GROUP BY 1;
/*
refused: line 1, WHERE: column "twice" does not exist: names of the SELECT list cannot be used in WHERE. Repeat the expression, or put the SELECT into a subquery.
*/

-- HAVING without an aggregate
SELECT AVG(x) FROM (SELECT amount AS x FROM orders HAVING amount > 3) AS t;
/*
refused: line 1, HAVING: HAVING needs an aggregate. Use WHERE.
*/

-- a public table beside released numbers
SELECT n FROM (SELECT region, COUNT(*) AS n FROM orders GROUP BY region) AS t JOIN regions ON name = region;
/*
refused: line 1, FROM: joining a public table with aggregated results is not supported yet. Join it before aggregating, and group by the columns that you need from it.
*/

-- not a question
DELETE FROM orders;
/*
refused: line 1, column 1: syntax error at or near "DELETE": expected SELECT or WITH. Write a SELECT query.
*/

-- two statements
SELECT COUNT(*) FROM orders; SELECT 1;
/*
refused: line 1, column 28: only one statement is allowed. Send one query at a time.
*/

-- a syntax error
SELECT COUNT(* FROM orders;
/*
refused: line 1, column 13: unclosed "(". Close it.
*/

-- a release that nobody reads is not paid for
WITH unused AS (SELECT COUNT(*) AS n FROM orders), also AS (SELECT n FROM unused) SELECT COUNT(*) FROM visits;
/*
r0 from
  visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 50 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- nested WITH, and an inner name that hides an outer one
WITH t AS (SELECT amount AS x FROM orders) SELECT AVG(x) FROM (WITH t AS (SELECT seconds AS x FROM visits) SELECT x FROM t) AS u;
/*
r0 from
  visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = sum(seconds, 0 to 3600 by 1 around 1800), size 90000, weight 1
  t1 = count(seconds), size 50, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=3600): AVG(x)
  Each customer contributes at most 50 rows.
  In AVG(x), values are clamped to the range from 0 to 3600.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- the unit in OPTIONS must be the policy's
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column=city) COUNT(*) FROM orders;
/*
refused: line 1, OPTIONS: privacy_unit_column must be the policy's privacy unit: user, visitor. Name it, or leave the option out.
*/

-- a union with the same kind of rows counts units once
SELECT COUNT(DISTINCT who), COUNT(*) FROM (SELECT user AS who FROM orders UNION ALL SELECT visitor FROM visits) AS t;
/*
r0 from
  union
    derive c0 = user
      orders of user
    derive c0 = visitor
      visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count_units(*), size 1, weight 1
  t1 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT who)
  m1 = NoisyCount(total=1): COUNT(*)
  Each customer contributes at most 50 rows.
then SELECT r0.m0 AS "count", r0.m1 AS "count_1" FROM r0
*/

-- COUNT(*) FILTER … OVER () works on released rows
SELECT category, COUNT(*) AS n, COUNT(*) FILTER (WHERE COUNT(*) > 10) OVER () AS large FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "n", COUNT(*) FILTER(WHERE r0.m0 > 10) OVER () AS "large" FROM r0
*/

-- constants alone
SELECT DISTINCT 1 AS one FROM orders;
/*
refused: line 1, SELECT: the SELECT list has only constants. Add an aggregate such as COUNT(*), or group by a column.
*/
