-- policy: SHOP

-- the last order of each customer
SELECT AVG(amount) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user ORDER BY time DESC) AS n FROM orders) AS t WHERE n = 1;
/*
r0 from
  where equal(n0, 1)
    n0 = number of a row by unit, up to 1: is_null(time) desc, time desc, user, amount, quantity, discount, rating, category, region, city, paid, lat, weight
      derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
        orders of user
  not clipped, groups 1, rows 1
  t0 = sum(amount, 0 to 500 by 1/100 around 250), size 25000, weight 1
  t1 = count(amount), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(amount)
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- the first order of each customer, by QUALIFY
SELECT category, COUNT(*) FROM (SELECT * FROM orders WHERE paid QUALIFY ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) = 1) AS t GROUP BY category;
/*
r0 from
  where equal(n0, 1)
    n0 = number of a row by unit, up to 1: time, user, amount, quantity, discount, rating, category, region, city, paid, lat, weight
      where paid
        derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
          orders of user
  by k0 = category: food, books, toys
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- QUALIFY knows the names of the SELECT list
SELECT SUM(quantity) FROM (SELECT quantity, ROW_NUMBER() OVER (PARTITION BY user ORDER BY amount DESC NULLS LAST) AS place FROM orders QUALIFY place <= 3) AS t;
/*
r0 from
  where at_most(n0, 3)
    n0 = number of a row by unit, up to 3: amount desc, user, time, quantity, discount, rating, category, region, city, paid, lat, weight
      derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
        orders of user
  clipped, groups 1, rows 3, l2 norm
  t0 = sum(quantity, 1 to 10 by 1), size 30, weight 1
  m0 = NoisySum(total=0, kind=whole, count=None): SUM(quantity)
  Each customer contributes at most 3 rows.
  In SUM(quantity), values are clamped to the range from 1 to 10.
then SELECT r0.m0 AS "sum" FROM r0
*/

-- the first three orders, by their number
SELECT n, AVG(amount) FROM (SELECT amount, ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) AS n FROM orders) AS t WHERE n <= 3 GROUP BY n;
/*
r0 from
  where at_most(n0, 3)
    n0 = number of a row by unit, up to 3: time, user, amount, quantity, discount, rating, category, region, city, paid, lat, weight
      derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
        orders of user
  by k0 = n0: 1, 2, 3
  clipped, groups 3, rows 1, l2 norm, rows capped
  t0 = sum(amount, 0 to 500 by 1/100 around 250), size 25000, weight 1
  t1 = count(amount), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(amount)
  Rows are left out where n is outside its range.
  Each customer contributes at most 1 row per group.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "n", r0.m0 AS "avg" FROM r0
*/

-- one order of each customer and category
SELECT category, AVG(quantity) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user, category ORDER BY time DESC) AS n FROM orders) AS t WHERE n = 1 GROUP BY category;
/*
r0 from
  where equal(n0, 1)
    n0 = number of a row by unit, category, up to 1: is_null(time) desc, time desc, user, amount, quantity, discount, rating, category, region, city, paid, lat, weight
      derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
        orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 1, l2 norm, rows capped
  t0 = sum(quantity, 1 to 10 by 1/2 around 11/2), size 9, weight 1
  t1 = count(quantity), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=1, high=10): AVG(quantity)
  Rows are left out where category is NULL or not declared.
  Each customer contributes at most 1 row per group.
  In AVG(quantity), values are clamped to the range from 1 to 10.
then SELECT r0.k0 AS "category", r0.m0 AS "avg" FROM r0
*/

-- numbers without a limit are an ordinary column
SELECT AVG(CLIP(n, 1, 20)) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) AS n FROM orders) AS t;
/*
r0 from
  n0 = number of a row by unit: time, user, amount, quantity, discount, rating, category, region, city, paid, lat, weight
    derive amount, category, city, discount, paid, quantity, rating, region, time, user, weight, lat = inside(lat, -90.0, 90.0)
      orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(n0, 1 to 20 by 1/2 around 21/2), size 380, weight 1
  t1 = count(*), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=1, high=20): AVG(CLIP(n, 1, 20))
  Each customer contributes at most 20 rows.
  In AVG(CLIP(n, 1, 20)), values are clamped to the range from 1 to 20.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- the first visit, joined with the orders
SELECT COUNT(*) FROM orders JOIN (SELECT visitor, page, ROW_NUMBER() OVER (PARTITION BY visitor ORDER BY time) AS n FROM visits) AS v ON user = visitor WHERE n = 1 AND page = 'start';
/*
r0 from
  where and(equal(n0, 1), equal(page, 'start'))
    inner join on the unit, most 100
      derive user
        orders of user
      derive n0, page
        n0 = number of a row by unit, up to 1: time, visitor, page, seconds, category
          visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 50 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- values of the first and the last row
SELECT AVG(last - first) FROM (SELECT user, ARG_MAX(amount, time) AS last, MIN_BY(amount, time) AS first, COUNT(*) AS n FROM orders GROUP BY user HAVING COUNT(*) > 1) AS t;
/*
r0 from
  where less(1, f0)
    left join on the unit, most 1
      left join on the unit, most 1
        per unit: f0 = rows()
          orders of user
        derive amount
          n0 = number of a row by unit, up to 1: time desc, amount
            derive amount, time
              where and(not(is_null(amount)), not(is_null(time)))
                orders of user
      derive amount_1 = amount
        n0 = number of a row by unit, up to 1: time, amount
          derive amount, time
            where and(not(is_null(amount)), not(is_null(time)))
              orders of user
  not clipped, groups 1, rows 1
  t0 = sum(subtract(clip(amount, 0.0, 500.0), clip(amount_1, 0.0, 500.0)), -500 to 500 by 1/100), size 50000, weight 1
  t1 = count(subtract(clip(amount, 0.0, 500.0), clip(amount_1, 0.0, 500.0))), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=-500, high=500): AVG(last - first)
  In AVG(last - first), values are clamped to the range from -500 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- the values of the last row have the declared groups
SELECT favourite, COUNT(*) FROM (SELECT user, MAX_BY(category, amount) FILTER (WHERE paid) AS favourite FROM orders GROUP BY user) AS t GROUP BY favourite;
/*
r0 from
  left join on the unit, most 1
    per unit: 
      orders of user
    derive category
      n0 = number of a row by unit, up to 1: amount desc, category
        derive amount, category
          where and(paid, not(is_null(amount)), not(is_null(category)))
            orders of user
  by k0 = category: food, books, toys
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where favourite is NULL or not declared.
then SELECT r0.k0 AS "favourite", r0.m0 AS "count" FROM r0
*/

-- every and any row of a unit
SELECT COUNT(*) FILTER (WHERE loyal), COUNT(*) FILTER (WHERE big) FROM (SELECT user, EVERY(paid) AS loyal, BOOL_OR(amount > 400) AS big FROM orders GROUP BY user) AS t;
/*
r0 from
  per unit: f0 = greatest(less(400.0, clip(amount, 0.0, 500.0))), f1 = least(paid)
    orders of user
  not clipped, groups 1, rows 1
  t0 = count(case(f1, 1, NULL)), size 1, weight 1
  t1 = count(case(f0, 1, NULL)), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE loyal)
  m1 = NoisyCount(total=1): COUNT(*) FILTER(WHERE big)
then SELECT r0.m0 AS "count", r0.m1 AS "count_1" FROM r0
*/

-- rows are numbered within a unit only
SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY time) AS n FROM orders) AS t WHERE n = 1;
/*
refused: line 1, SELECT: rows can only be numbered within a privacy unit, so PARTITION BY must name it. Add PARTITION BY orders.user.
*/

-- another column is not the unit
SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY time) AS n FROM orders) AS t WHERE n = 1;
/*
refused: line 1, SELECT: rows can only be numbered within a privacy unit, so PARTITION BY must name it. Add PARTITION BY orders.user.
*/

-- other window functions are refused
SELECT AVG(gap) FROM (SELECT amount - LAG(amount) OVER (PARTITION BY user ORDER BY time) AS gap FROM orders) AS t;
/*
refused: line 1, SELECT: window functions are not allowed on private rows. Aggregate first, then use window functions on the result. For the first rows of each unit, write SELECT *, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …) AS n in a subquery, and WHERE n = 1 around it.
*/

-- a frame does not number rows
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user ORDER BY time ROWS UNBOUNDED PRECEDING) AS n FROM orders) AS t;
/*
refused: line 1, SELECT: ROW_NUMBER() takes PARTITION BY and ORDER BY only. Leave out everything else.
*/

-- QUALIFY without a window function
SELECT COUNT(*) FROM (SELECT * FROM orders QUALIFY paid) AS t;
/*
refused: line 1, QUALIFY: QUALIFY needs a window function. Use WHERE.
*/

-- the value of the last row of a unit and a key
SELECT AVG(last) FROM (SELECT user, category, ARG_MAX(amount, time) AS last FROM orders GROUP BY user, category) AS t;
/*
refused: line 1, SELECT: ARG_MAX is supported only if the unit is the only key. Write ROW_NUMBER() OVER (PARTITION BY unit, key ORDER BY …) AS n in a subquery, and WHERE n = 1.
*/

-- buckets of equal width have declared groups
SELECT WIDTH_BUCKET(amount, 0, 500, 5) AS bucket, COUNT(*) FROM orders GROUP BY bucket;
/*
r0 from
  orders of user
  by k0 = case(less(amount, 0.0), 0, at_most(500.0, amount), 6, add(clip(to_integer(floor(multiply(divide(subtract(clip(amount, 0.0, 500.0), 0.0), 500.0), 5.0))), 0, 4), 1)): 0, 1, 2, 3, 4, 5, 6
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 17724169, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from amount is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "bucket", r0.m0 AS "count" FROM r0
*/

-- buckets by thresholds, of integers
SELECT WIDTH_BUCKET(quantity, ARRAY[2, 5, 8]) AS bucket, COUNT(*) FROM orders GROUP BY bucket;
/*
r0 from
  orders of user
  by k0 = case(less(quantity, 2), 0, less(quantity, 5), 1, less(quantity, 8), 2, add(as_integer(at_most(8, quantity)), 2)): 0, 1, 2, 3
  clipped, groups 4, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from quantity is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 40 over all groups, such as 20 rows in each of 4 groups.
then SELECT r0.k0 AS "bucket", r0.m0 AS "count" FROM r0
*/

-- the mean bucket needs no further bounds
SELECT AVG(WIDTH_BUCKET(weight, 10, 0, 4)), AVG(WIDTH_BUCKET(quantity, 0, 12, 4)) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(case(less(10.0, weight), 0, at_most(weight, 0.0), 5, add(clip(to_integer(floor(multiply(divide(subtract(10.0, clip(weight, 0.0, 10.0)), 10.0), 4.0))), 0, 3), 1)), 0 to 5 by 1/2 around 5/2), size 100, weight 1
  t1 = count(case(less(10.0, weight), 0, at_most(weight, 0.0), 5, add(clip(to_integer(floor(multiply(divide(subtract(10.0, clip(weight, 0.0, 10.0)), 10.0), 4.0))), 0, 3), 1))), size 20, weight 1/4
  t2 = sum(case(less(clip(quantity, 1, 10), 0), 0, at_most(12, clip(quantity, 1, 10)), 5, add(clip(divide(multiply(subtract(clip(clip(quantity, 1, 10), 0, 12), 0), 4), 12), 0, 3), 1)), 0 to 5 by 1/2 around 5/2), size 100, weight 1
  t3 = count(case(less(clip(quantity, 1, 10), 0), 0, at_most(12, clip(quantity, 1, 10)), 5, add(clip(divide(multiply(subtract(clip(clip(quantity, 1, 10), 0, 12), 0), 4), 12), 0, 3), 1))), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=5): AVG(WIDTH_BUCKET(weight, 10, 0, 4))
  m1 = Mean(total=2, count=3, low=0, high=5): AVG(WIDTH_BUCKET(quantity, 0, 12, 4))
  Each customer contributes at most 20 rows.
  In AVG(WIDTH_BUCKET(weight, 10, 0, 4)) and AVG(WIDTH_BUCKET(quantity, 0, 12, 4)), values are clamped to the range from 0 to 5.
then SELECT r0.m0 AS "avg", r0.m1 AS "avg_1" FROM r0
*/

-- functions of declared texts keep declared groups
SELECT LEFT(category, 1) AS a, RIGHT(category, 2) AS b, REPLACE(category, 'oo', 'u') AS c, SPLIT_PART(category, 'o', -1) AS d, COUNT(*) FROM orders GROUP BY ALL;
/*
r0 from
  orders of user
  by k0 = keep_last(category, 2): od, ks, ys
  by k1 = part(category, 1, 1): f, b, t
  by k2 = replace(category, 'oo', 'u'): fud, buks, toys
  by k3 = split_part(category, -1, 'o'): d, ks, ys
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 5210416, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from category is NULL or not declared, or the key from category is NULL or not declared, or the key from category is NULL or not declared, or the key from category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "a", r0.k1 AS "b", r0.k2 AS "c", r0.k3 AS "d", r0.m0 AS "count" FROM r0
*/

-- parts of undeclared texts
SELECT AVG(POSITION('@' IN city)), COUNT(*) FILTER (WHERE STRPOS(city, 'x') = 0 AND LEFT(city, -1) <> RIGHT(city, -2)) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(position(city, '@'), 0 to 2000 by 1 around 1000), size 20000, weight 1
  t1 = count(position(city, '@')), size 20, weight 1/4
  t2 = count(case(and(not(equal(drop_last(city, 1), part(city, 3, 99998))), equal(position(city, 'x'), 0)), 1, NULL)), size 20, weight 1
  m0 = Mean(total=0, count=1, low=0, high=2000): AVG(POSITION('@' IN city))
  m1 = NoisyCount(total=2): COUNT(*) FILTER(WHERE POSITION('x' IN city) = 0 AND LEFT(city, -1) <> RIGHT(city, -2))
  Each customer contributes at most 20 rows.
  In AVG(POSITION('@' IN city)), values are clamped to the range from 0 to 2000.
then SELECT r0.m0 AS "avg", r0.m1 AS "count" FROM r0
*/

-- whole years and months
SELECT AVG(EXTRACT(YEAR FROM AGE(DATE '2026-03-01', time))), AVG(EXTRACT(MONTH FROM AGE(time, TIMESTAMP '2024-02-29 12:00'))) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(divide(add(subtract(24315, add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12))), case(and(less(0, subtract(24315, add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)))), less(86400, add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))))), -1, and(less(0, negate(subtract(24315, add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12))))), less(add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))), 86400)), 1, 0)), 12), 0 to 1 by 1/2 around 1/2), size 20, weight 1
  t1 = count(divide(add(subtract(24315, add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12))), case(and(less(0, subtract(24315, add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)))), less(86400, add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))))), -1, and(less(0, negate(subtract(24315, add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12))))), less(add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))), 86400)), 1, 0)), 12)), size 20, weight 1/4
  t2 = sum(modulo(add(subtract(add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)), 24290), case(and(less(0, subtract(add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)), 24290)), less(add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))), 2548800)), -1, and(less(0, negate(subtract(add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)), 24290))), less(2548800, add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))))), 1, 0)), 12), 0 to 11 by 1/2 around 11/2), size 220, weight 1
  t3 = count(modulo(add(subtract(add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)), 24290), case(and(less(0, subtract(add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)), 24290)), less(add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))), 2548800)), -1, and(less(0, negate(subtract(add(month(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(year(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 12)), 24290))), less(2548800, add(multiply(day(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 86400), add(second(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(add(minute(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), multiply(hour(clip(time, 2025-01-01 00:00:00, 2025-12-31 23:59:59.999999)), 60)), 60))))), 1, 0)), 12)), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=1): AVG(EXTRACT(YEAR FROM AGE(CAST('2026-03-01' AS DATE), time)))
  m1 = Mean(total=2, count=3, low=0, high=11): AVG(EXTRACT(MONTH FROM AGE(time, CAST('2024-02-29 12:00' AS TIMESTAMP))))
  Each customer contributes at most 20 rows.
  In AVG(EXTRACT(YEAR FROM AGE(CAST('2026-03-01' AS DATE), time))), values are clamped to the range from 0 to 1.
  In AVG(EXTRACT(MONTH FROM AGE(time, CAST('2024-02-29 12:00' AS TIMESTAMP)))), values are clamped to the range from 0 to 11.
then SELECT r0.m0 AS "avg", r0.m1 AS "avg_1" FROM r0
*/

-- differences in calendar months
SELECT DATEDIFF('month', time, DATE '2025-12-31') AS months, COUNT(*) FROM orders GROUP BY months;
/*
r0 from
  orders of user
  by k0 = subtract(24312, add(month(time), multiply(year(time), 12))): 0, 1, 2, … 11 (12)
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 13537057, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from time is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
then SELECT r0.k0 AS "months", r0.m0 AS "count" FROM r0
*/

-- the age of a single date
SELECT AVG(EXTRACT(YEAR FROM AGE(time))) FROM orders;
/*
refused: line 1, AVG: AGE takes two dates here, because today's date changes from day to day. Write AGE(end, start), with a constant date if necessary.
*/

-- days are not whole units of an age
SELECT AVG(EXTRACT(DAY FROM AGE(time, DATE '2025-01-01'))) FROM orders;
/*
refused: line 1, AVG: only YEAR and MONTH can be extracted from AGE. Subtract dates for a number of days, or write DATE_DIFF('hour', start, end).
*/

-- a replacement that makes texts too long
SELECT COUNT(*) FROM orders WHERE REPLACE(city, 'a', 'aaaaaaaaa') = 'b';
/*
refused: line 1, WHERE: the replacement must not be more than 8 times as long as the text that it replaces. Write a shorter one.
*/

-- a search needs a constant
SELECT COUNT(*) FROM orders WHERE STRPOS(city, category) > 0;
/*
refused: line 1, WHERE: expected a constant of type text. Write the value itself.
*/

-- buckets need constant bounds
SELECT AVG(WIDTH_BUCKET(amount, 0, quantity, 4)) FROM orders;
/*
refused: line 1, AVG: WIDTH_BUCKET takes a number and constant bounds. Write WIDTH_BUCKET(x, 0, 100, 10), or WIDTH_BUCKET(x, ARRAY[10, 20, 50]).
*/
