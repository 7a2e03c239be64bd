-- policy: SHOP

-- declared keys
SELECT category, COUNT(*) FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- an alias, an ordinal and ALL mean the same
SELECT category AS c, COUNT(*) AS n FROM orders GROUP BY c;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "c", r0.m0 AS "n" FROM r0
*/

-- an ordinal
SELECT category AS c, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 2 DESC;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "c", r0.m0 AS "n" FROM r0 ORDER BY 2 DESC
*/

-- all
SELECT category AS c, COUNT(*) AS n FROM orders GROUP BY ALL;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "c", r0.m0 AS "n" FROM r0
*/

-- a public table's values
SELECT region, AVG(amount) FROM orders GROUP BY region;
/*
r0 from
  orders of user
  by k0 = region: east, north, south
  clipped, groups 3, rows 20, l2 norm, rows capped
  t0 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 1
  t1 = count(amount), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(amount)
  Rows are left out where region is NULL or not declared.
  Each customer contributes at most 20 rows per group.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "region", r0.m0 AS "avg" FROM r0
*/

-- missing values are a group where the policy says so
SELECT rating, COUNT(*) FROM orders GROUP BY rating;
/*
r0 from
  orders of user
  by k0 = rating: 1, 2, 3, 4, 5, None
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 19144291, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where rating is not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "rating", r0.m0 AS "count" FROM r0
*/

-- two keys
SELECT category, paid, COUNT(*) FROM orders GROUP BY category, paid;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  by k1 = paid: False, True
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 19144291, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared, or paid is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "category", r0.k1 AS "paid", r0.m0 AS "count" FROM r0
*/

-- months of a declared range
SELECT DATE_TRUNC('month', time) AS month, SUM(amount) FROM orders GROUP BY month ORDER BY month;
/*
r0 from
  orders of user
  by k0 = trunc_month(time): 2025-01-01 00:00:00, 2025-02-01 00:00:00, 2025-03-01 00:00:00, … 2025-12-01 00:00:00 (12)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = sum(amount, 0 to 500 by 1/100), size 42303306096, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(amount)
  Rows are left out where the key from time is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
  In SUM(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "month", r0.m0 AS "sum" FROM r0 ORDER BY 1
*/

-- a condition leaves fewer months, and fewer categories
SELECT DATE_TRUNC('month', time) AS month, category, COUNT(*) FROM orders
WHERE time >= '2025-03-01' AND time < '2025-05-01' AND category <> 'toys' GROUP BY 1, 2;
/*
r0 from
  where and(at_most(2025-03-01 00:00:00, time), less(time, 2025-05-01 00:00:00), not(equal(category, 'toys')))
    orders of user
  by k0 = category: food, books
  by k1 = trunc_month(time): 2025-03-01 00:00:00, 2025-04-01 00:00:00
  clipped, groups 4, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from time is outside its range, or category is not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 40 over all groups, such as 20 rows in each of 4 groups.
then SELECT r0.k0 AS "month", r0.k1 AS "category", r0.m0 AS "count" FROM r0
*/

-- days, hours and weekdays
SELECT EXTRACT(hour FROM time) AS hour, COUNT(*) FROM orders GROUP BY hour;
/*
r0 from
  orders of user
  by k0 = hour(time): 0, 1, 2, … 23 (24)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 9572145, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from time is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "hour", r0.m0 AS "count" FROM r0
*/

-- integers of a declared range
SELECT quantity, COUNT(*) FROM orders GROUP BY quantity;
/*
r0 from
  orders of user
  by k0 = quantity: 1, 2, 3, … 10 (10)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 14829104, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where quantity is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "quantity", r0.m0 AS "count" FROM r0
*/

-- a quotient of integers
SELECT quantity / 5 AS fives, COUNT(*) FROM orders GROUP BY fives;
/*
r0 from
  orders of user
  by k0 = divide(quantity, 5): 0, 1, 2
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from quantity is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "fives", r0.m0 AS "count" FROM r0
*/

-- CASE of constants
SELECT CASE WHEN amount < 10 THEN 'small' WHEN amount < 100 THEN 'middle' ELSE 'large' END AS size, COUNT(*), AVG(amount)
FROM orders GROUP BY size;
/*
r0 from
  orders of user
  by k0 = case(less(amount, 10.0), 'small', less(amount, 100.0), 'middle', 'large'): small, middle, large
  clipped, groups 3, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  t1 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 1
  t2 = count(amount), size 20, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=500): AVG(amount)
  Each customer contributes at most 20 rows per group.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "size", r0.m0 AS "count", r0.m1 AS "avg" FROM r0
*/

-- a condition as a key
SELECT amount > 100 AS dear, COUNT(*) FROM orders GROUP BY 1;
/*
r0 from
  orders of user
  by k0 = less(100.0, amount): False, True
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from amount is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
then SELECT r0.k0 AS "dear", r0.m0 AS "count" FROM r0
*/

-- FLOOR of a real
SELECT FLOOR(amount / 100) AS hundreds, COUNT(*) FROM orders GROUP BY hundreds;
/*
r0 from
  orders of user
  by k0 = floor(divide(amount, 100.0)): 0.0, 1.0, 2.0, 3.0, 4.0, 5.0
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 19144291, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from amount is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "hundreds", r0.m0 AS "count" FROM r0
*/

-- no domain: groups are discovered
SELECT city, COUNT(*), AVG(amount) FROM orders GROUP BY city;
/*
r0 from
  where not(is_null(city))
    orders of user
  by k0 = city: partition selection
  clipped, groups 5, rows 20, l0 clipped, l2 norm, rows capped
  t0 = None, size 82897, weight 1
  t1 = count(*), size 1482, weight 1
  t2 = sum(amount, 0 to 500 by 1/100 around 250), size 4634095, weight 1
  t3 = count(amount), size 1482, weight 1/4
  m0 = NoisyCount(total=1): COUNT(*)
  m1 = Mean(total=2, count=3, low=0, high=500): AVG(amount)
  Rows are left out where city is NULL.
  Each customer contributes at most 20 rows per group.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "city", r0.m0 AS "count", r0.m1 AS "avg" FROM r0
*/

-- discovered with their number of units shown
SELECT city, COUNT(DISTINCT user) AS people FROM orders GROUP BY city ORDER BY people DESC LIMIT 10;
/*
r0 from
  where not(is_null(city))
    orders of user
  by k0 = city: partition selection
  clipped, groups 5, rows 1, l0 clipped, l2 norm
  t0 = None, size 82897, weight 1
  t1 = count_units(*), size 74, weight 1
  m0 = NoisyCount(total=1): COUNT(DISTINCT user)
  Rows are left out where city is NULL.
  Each customer contributes to at most 5 groups; contributions to more groups are clipped.
then SELECT r0.k0 AS "city", r0.m0 AS "people" FROM r0 ORDER BY 2 DESC LIMIT 10
*/

-- one open key makes all of them discovered
SELECT city, category, COUNT(*) FROM orders GROUP BY city, category;
/*
r0 from
  where and(not(is_null(category)), not(is_null(city)))
    orders of user
  by k0 = category: partition selection
  by k1 = city: partition selection
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = None, size 82897, weight 1
  t1 = count(*), size 1482, weight 1
  m0 = NoisyCount(total=1): COUNT(*)
  Rows are left out where city is NULL, or category is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "city", r0.k1 AS "category", r0.m0 AS "count" FROM r0
*/

-- keys alone
SELECT category FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "category" FROM r0
*/

-- DISTINCT is GROUP BY
SELECT DISTINCT city FROM orders;
/*
r0 from
  where not(is_null(city))
    orders of user
  by k0 = city: partition selection
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = None, size 82897, weight 1
  Rows are left out where city is NULL.
then SELECT r0.k0 AS "city" FROM r0
*/

-- the key need not be shown
SELECT COUNT(*) FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.m0 AS "count" FROM r0
*/

-- expressions over keys follow the release
SELECT UPPER(category) AS name, COUNT(*) FROM orders GROUP BY category ORDER BY UPPER(category);
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT UPPER(r0.k0) AS "name", r0.m0 AS "count" FROM r0 ORDER BY UPPER(r0.k0)
*/

-- a constant makes no group
SELECT 'all' AS label, COUNT(*) FROM orders GROUP BY label;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT 'all' AS "label", r0.m0 AS "count" FROM r0
*/

-- HAVING, ORDER BY and LIMIT work on noisy numbers
SELECT category, COUNT(*) AS n FROM orders GROUP BY category HAVING COUNT(*) > 100 AND AVG(amount) < 50 ORDER BY AVG(amount) LIMIT 2;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  t1 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 1
  t2 = count(amount), size 20, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=500): AVG(amount)
  Rows are left out where category is NULL or not declared.
  Each customer contributes at most 20 rows per group.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "category", r0.m0 AS "n" FROM r0 WHERE r0.m0 > 100 AND r0.m1 < 50 ORDER BY r0.m1 LIMIT 2
*/

-- HAVING may use an alias
SELECT category, COUNT(*) AS n FROM orders GROUP BY category HAVING n > 100;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "n" FROM r0 WHERE (r0.m0) > 100
*/

-- a column that is also an alias is the column in GROUP BY
SELECT LOWER(category) AS category, COUNT(*) FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT LOWER(r0.k0) AS "category", r0.m0 AS "count" FROM r0
*/

-- the limits of the call come first
-- @groups 2
-- @rows 3
SELECT category, paid, COUNT(*) FROM orders GROUP BY 1, 2;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  by k1 = paid: False, True
  clipped, groups 2, rows 3, l0 clipped, l2 norm
  t0 = count(*), size 1816186, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared, or paid is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 4.243 over all groups, such as 3 rows in each of 2 groups.
then SELECT r0.k0 AS "category", r0.k1 AS "paid", r0.m0 AS "count" FROM r0
*/

-- then those in the text
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=2, max_rows_contributed=7) city, COUNT(*) FROM orders GROUP BY city;
/*
r0 from
  where not(is_null(city))
    orders of user
  by k0 = city: partition selection
  clipped, groups 2, rows 7, l0 clipped, l2 norm
  t0 = None, size 131072, weight 1
  t1 = count(*), size 328, weight 1
  m0 = NoisyCount(total=1): COUNT(*)
  Rows are left out where city is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 9.899 over all groups, such as 7 rows in each of 2 groups.
then SELECT r0.k0 AS "city", r0.m0 AS "count" FROM r0
*/

-- EXPLAIN and WITHIN are taken off
EXPLAIN SELECT category, COUNT(*) AS n FROM orders GROUP BY category WITHIN 50;
/*
explain: True
within: 50
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "n" FROM r0
*/

-- the unit is never shown
SELECT user, COUNT(*) FROM orders GROUP BY user;
/*
refused: line 1, GROUP BY: each group would be a single privacy unit, and such groups are never released. Group by a column whose values many units share, or count units with COUNT(DISTINCT …).
*/

-- nor in the middle of other keys
SELECT DISTINCT user FROM orders;
/*
refused: line 1, SELECT DISTINCT: each group would be a single privacy unit, and such groups are never released. Group by a column whose values many units share, or count units with COUNT(DISTINCT …).
*/

-- reals make no groups
SELECT discount, COUNT(*) FROM orders GROUP BY discount;
/*
refused: line 1, GROUP BY: cannot group by double precision values. Use FLOOR(…), ROUND(…) or CASE to form groups.
*/

-- a column that is not grouped by
SELECT city, category, COUNT(*) FROM orders GROUP BY category;
/*
refused: line 1, SELECT: column "city" must appear in GROUP BY or be used in an aggregate function. Add it to GROUP BY, or aggregate it.
*/

-- * beside aggregates
SELECT *, COUNT(*) FROM orders GROUP BY category;
/*
refused: line 1, SELECT: column "user" must appear in GROUP BY or be used in an aggregate function. Add it to GROUP BY, or aggregate it.
*/

-- ROLLUP
SELECT category, COUNT(*) FROM orders GROUP BY ROLLUP (category);
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
  Subtotals are over the groups that are shown.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- GROUPING SETS
SELECT category, COUNT(*) FROM orders GROUP BY GROUPING SETS ((category), ());
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
  Subtotals are over the groups that are shown.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- an ordinal beyond the list
SELECT category, COUNT(*) FROM orders GROUP BY 3;
/*
refused: line 1, GROUP BY: GROUP BY position 3 is not in the SELECT list. The SELECT list has 2 columns.
*/

-- an aggregate as a key
SELECT COUNT(*) FROM orders GROUP BY SUM(amount);
/*
refused: line 1, GROUP BY: aggregate functions are not allowed in GROUP BY. Aggregate per unit in a subquery first.
*/

-- DISTINCT ON
SELECT DISTINCT ON (city) city, amount FROM orders;
/*
refused: line 1, SELECT: DISTINCT ON is not supported. Use GROUP BY, or QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1.
*/

-- FLOOR of a real without a range is discovered
SELECT FLOOR(weight) AS kilos, COUNT(*) FROM orders GROUP BY kilos;
/*
r0 from
  where not(is_null(floor(weight)))
    orders of user
  by k0 = floor(weight): partition selection
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = None, size 82897, weight 1
  t1 = count(*), size 1482, weight 1
  m0 = NoisyCount(total=1): COUNT(*)
  Rows are left out where the key from weight is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "kilos", r0.m0 AS "count" FROM r0
*/
