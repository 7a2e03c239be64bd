-- policy: SHOP

-- one number
SELECT COUNT(*) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- counts of values, of units, and with a condition
SELECT COUNT(rating), COUNT(DISTINCT user), COUNT(*) FILTER (WHERE paid), COUNT(CASE WHEN paid THEN 1 END) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(rating), size 20, weight 1
  t1 = count_units(*), size 1, weight 1
  t2 = count(case(paid, 1, NULL)), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(rating)
  m1 = NoisyCount(total=1): COUNT(DISTINCT user)
  m2 = NoisyCount(total=2): COUNT(*) FILTER(WHERE paid)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count", r0.m1 AS "count_1", r0.m2 AS "count_2", r0.m2 AS "count_3" FROM r0
*/

-- units with a condition, in both ways of writing it
SELECT COUNT(DISTINCT user) FILTER (WHERE paid) AS a, COUNT(DISTINCT CASE WHEN paid THEN user END) AS b FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 1, l2 norm
  t0 = count_units(case(paid, 1, NULL)), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT user) FILTER(WHERE paid)
then SELECT r0.m0 AS "a", r0.m0 AS "b" FROM r0
*/

-- a sum of conditions costs what a count costs
SELECT SUM(CASE WHEN category = 'food' THEN 1 ELSE 0 END) AS food FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = sum(case(equal(category, 'food'), 1, 0), 0 to 1 by 1), size 20, weight 1
  m0 = NoisySum(total=0, kind=whole, count=None): SUM(CASE WHEN category = 'food' THEN 1 ELSE 0 END)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "food" FROM r0
*/

-- a sum alone is summed from zero
SELECT SUM(amount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = sum(amount, 0 to 500 by 1/100), size 1000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(amount)
  Each customer contributes at most 20 rows.
  In SUM(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "sum" FROM r0
*/

-- a mean is centred, and counts what is not NULL
SELECT AVG(amount) AS mean FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 1
  t1 = count(amount), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(amount)
  Each customer contributes at most 20 rows.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "mean" FROM r0
*/

-- a sum and a mean share a centred sum and a count
SELECT SUM(amount), AVG(amount), COUNT(amount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 5/4
  t1 = count(amount), size 20, weight 3/2
  m0 = NoisySum(total=0, kind=real, count=1): SUM(amount)
  m1 = Mean(total=0, count=1, low=0, high=500): AVG(amount)
  m2 = NoisyCount(total=1): COUNT(amount)
  Each customer contributes at most 20 rows.
  In SUM(amount) and AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "sum", r0.m1 AS "avg", r0.m2 AS "count" FROM r0
*/

-- a sum beside a count of the same values uses it
SELECT SUM(quantity), COUNT(quantity) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(quantity, 1 to 10 by 1/2 around 11/2), size 180, weight 16/79
  t1 = count(quantity), size 20, weight 99/76
  m0 = NoisySum(total=0, kind=whole, count=1): SUM(quantity)
  m1 = NoisyCount(total=1): COUNT(quantity)
  Each customer contributes at most 20 rows.
  In SUM(quantity), values are clamped to the range from 1 to 10.
then SELECT r0.m0 AS "sum", r0.m1 AS "count" FROM r0
*/

-- all four spreads share their totals
SELECT VAR_POP(amount), VAR_SAMP(amount), STDDEV_POP(amount), STDDEV(amount), VARIANCE(amount), STDDEV_SAMP(amount), AVG(amount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 5
  t1 = count(amount), size 20, weight 5/4
  t2 = sum(amount squared less 4882812, 0 to 500 by 2/25 around 250), size 97656260, weight 4
  m0 = Variance(squares=2, total=0, count=1, low=0, high=500, statistic=var_pop): VAR_POP(amount)
  m1 = Variance(squares=2, total=0, count=1, low=0, high=500, statistic=var_samp): VAR_SAMP(amount)
  m2 = Variance(squares=2, total=0, count=1, low=0, high=500, statistic=stddev_pop): STDDEV_POP(amount)
  m3 = Variance(squares=2, total=0, count=1, low=0, high=500, statistic=stddev_samp): STDDEV(amount)
  m4 = Mean(total=0, count=1, low=0, high=500): AVG(amount)
  Each customer contributes at most 20 rows.
  In VAR_POP(amount), VAR_SAMP(amount), STDDEV_POP(amount), STDDEV(amount) and AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "var_pop", r0.m1 AS "var_samp", r0.m2 AS "stddev_pop", r0.m3 AS "stddev", r0.m1 AS "variance", r0.m3 AS "stddev_samp", r0.m4 AS "avg" FROM r0
*/

-- ranges flow through arithmetic
SELECT SUM(amount * quantity * (1 - discount)) AS revenue FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = sum(multiply(subtract(1.0, clip(discount, 0.0, 1.0)), multiply(clip(amount, 0.0, 500.0), to_real(clip(quantity, 1, 10)))), 0 to 5000 by 1/256), size 25600000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(amount * quantity * (1 - discount))
  Each customer contributes at most 20 rows.
  In SUM(amount * quantity * (1 - discount)), values are clamped to the range from 0 to 5000 and rounded to steps of 0.00390625.
then SELECT r0.m0 AS "revenue" FROM r0
*/

-- a mean of a condition
SELECT AVG(CASE WHEN paid THEN 1.0 ELSE 0 END) AS share FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(case(paid, 1.0, 0.0), 0 to 1 by 9.53674e-07 around 1/2), size 10485760, weight 1
  t1 = count(*), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=1): AVG(CASE WHEN paid THEN 1.0 ELSE 0 END)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "share" FROM r0
*/

-- CLIP gives a range where none is declared
SELECT AVG(CLIP(weight, 0, 30)) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(weight, 0 to 30 by 1/65536 around 15), size 19660800, weight 1
  t1 = count(weight), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=30): AVG(CLIP(weight, 0, 30))
  Each customer contributes at most 20 rows.
  In AVG(CLIP(weight, 0, 30)), values are clamped to the range from 0 to 30 and rounded to steps of 1.52588e-5.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- so does a condition
SELECT SUM(weight) FROM orders WHERE weight BETWEEN 0 AND 30;
/*
r0 from
  where and(at_most(weight, 30.0), at_most(0.0, weight))
    orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = sum(weight, 0 to 30 by 1/65536), size 39321600, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(weight)
  Each customer contributes at most 20 rows.
  In SUM(weight), values are clamped to the range from 0 to 30 and rounded to steps of 1.52588e-5.
then SELECT r0.m0 AS "sum" FROM r0
*/

-- a logarithm of a range above zero
SELECT AVG(LN(quantity)) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(ln(to_real(clip(quantity, 1, 10))), 0 to 2.30259 by 1/524288 around 1179/1024), size 12072960, weight 1
  t1 = count(ln(to_real(clip(quantity, 1, 10)))), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=2.30259): AVG(LN(quantity))
  Each customer contributes at most 20 rows.
  In AVG(LN(quantity)), values are clamped to the range from 0 to 2.30259 and rounded to steps of 1.90735e-6.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- numbers outside a range that says null are missing from here on
SELECT AVG(lat), COUNT(lat), COUNT(*) FROM orders WHERE lat > 10;
/*
r0 from
  where less(10.0, lat)
    derive lat = inside(lat, -90.0, 90.0)
      orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(lat, 10 to 90 by 1/10000 around 31248/625), size 8000640, weight 1
  t1 = count(*), size 20, weight 5/4
  m0 = Mean(total=0, count=1, low=10, high=90): AVG(lat)
  m1 = NoisyCount(total=1): COUNT(lat)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "avg", r0.m1 AS "count", r0.m1 AS "count_1" FROM r0
*/

-- a mean with FILTER counts what it adds
SELECT AVG(amount) FILTER (WHERE category = 'toys') AS toys FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(case(equal(category, 'toys'), amount, NULL), 0 to 500 by 1/100 around 250), size 500000, weight 1
  t1 = count(case(equal(category, 'toys'), amount, NULL)), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(amount) FILTER(WHERE category = 'toys')
  Each customer contributes at most 20 rows.
  In AVG(amount) FILTER(WHERE category = 'toys'), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "toys" FROM r0
*/

-- arithmetic of aggregates follows the release
SELECT SUM(amount) / COUNT(*) AS mean, 100.0 * COUNT(*) FILTER (WHERE paid) / NULLIF(COUNT(*), 0) AS percent FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(amount, 0 to 500 by 1/100), size 1000000, weight 1
  t1 = count(*), size 20, weight 1
  t2 = count(case(paid, 1, NULL)), size 20, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(amount)
  m1 = NoisyCount(total=1): COUNT(*)
  m2 = NoisyCount(total=2): COUNT(*) FILTER(WHERE paid)
  Each customer contributes at most 20 rows.
  In SUM(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 / r0.m1 AS "mean", 100.0 * r0.m2 / NULLIF(r0.m1, 0) AS "percent" FROM r0
*/

-- COALESCE cannot be NULL, so its count is the count of rows
SELECT AVG(COALESCE(rating, 0)), COUNT(*) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(coalesce(clip(rating, 1, 5), 0), 0 to 5 by 1/2 around 5/2), size 100, weight 1
  t1 = count(*), size 20, weight 5/4
  m0 = Mean(total=0, count=1, low=0, high=5): AVG(COALESCE(rating, 0))
  m1 = NoisyCount(total=1): COUNT(*)
  Each customer contributes at most 20 rows.
  In AVG(COALESCE(rating, 0)), values are clamped to the range from 0 to 5.
then SELECT r0.m0 AS "avg", r0.m1 AS "count" FROM r0
*/

-- unnamed columns are called as PostgreSQL calls them
SELECT COUNT(*), COUNT(*) + 1, COUNT(rating), SUM(quantity)::real, CASE WHEN COUNT(*) > 5 THEN 'many' END FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  t1 = count(rating), size 20, weight 1
  t2 = sum(quantity, 1 to 10 by 1), size 200, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = NoisyCount(total=1): COUNT(rating)
  m2 = NoisySum(total=2, kind=whole, count=None): SUM(quantity)
  Each customer contributes at most 20 rows.
  In SUM(quantity), values are clamped to the range from 1 to 10.
then SELECT r0.m0 AS "count", r0.m0 + 1 AS "?column?", r0.m1 AS "count_1", CAST(r0.m2 AS REAL) AS "sum", CASE WHEN r0.m0 > 5 THEN 'many' END AS "case" FROM r0
*/

-- an integer of a large range gets a step
SELECT SUM(people) FROM orders JOIN regions ON region = name;
/*
r0 from
  inner join regions (name, people) on region = name, fanout 1
    derive region
      orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = sum(people, 560 to 3400 by 1), size 68000, weight 1
  m0 = NoisySum(total=0, kind=whole, count=None): SUM(people)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "sum" FROM r0
*/

-- booleans are not numbers
SELECT SUM(paid) FROM orders;
/*
refused: line 1, SUM: SUM needs a number, not boolean: SUM(paid). Count rows with COUNT(*) FILTER (WHERE …), or write SUM(CASE WHEN … THEN 1 ELSE 0 END).
*/

-- a sum needs a range
SELECT SUM(weight) FROM orders;
/*
refused: line 1, SUM: SUM(weight) needs bounds. Write SUM(CLIP(weight, low, high)) with bounds of your choice, or ask the owner to declare between.
*/

-- the owner declares columns, and no counts that have the name of one
SELECT AVG(weight) FROM (SELECT user, COUNT(weight) AS weight FROM orders GROUP BY user) AS t;
/*
refused: line 1, AVG: AVG(weight) needs bounds. Write AVG(CLIP(weight, low, high)) with bounds of your choice.
*/

-- the median of a column without a range
SELECT MEDIAN(weight) FROM (SELECT user, weight, city FROM orders) AS t;
/*
refused: line 1, MEDIAN: MEDIAN(weight) needs bounds. Replace weight by CLIP(weight, low, high), or ask the owner to declare between.
*/

-- text has no sum
SELECT AVG(city) FROM orders;
/*
refused: line 1, AVG: AVG needs a number, not text: AVG(city). Count rows with COUNT(*) FILTER (WHERE …), or write AVG(CASE WHEN … THEN 1 ELSE 0 END).
*/

-- the unit's own column is not added up
SELECT SUM(user) FROM orders;
/*
refused: line 1, SUM: SUM of the privacy unit's own column would disclose individuals. Count units with COUNT(DISTINCT …).
*/

-- other distinct values are not counted yet
SELECT COUNT(DISTINCT city) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = count_distinct(city), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT city)
  Each customer contributes at most 20 distinct values per group, chosen by a hash.
then SELECT r0.m0 AS "count" FROM r0
*/

-- the median is not there yet
SELECT MEDIAN(amount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(amount, 0 to 500 by 1/100, 50001 to the 1), size 20971520, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(amount)
  Each customer contributes at most 20 rows.
  In MEDIAN(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "median" FROM r0
*/

-- nor are percentiles
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY amount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(amount, 0 to 500 by 1/100, 50001 to the 1), size 20971520, weight 2
  m0 = Quantile(total=0, target=9/10, method=selection, kind=real, origin=None): PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY amount)
  Each customer contributes at most 20 rows.
  In PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "percentile_cont" FROM r0
*/

-- nor QUANTILE_CONT
SELECT QUANTILE_CONT(amount, 0.5) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(amount, 0 to 500 by 1/100, 50001 to the 1), size 20971520, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): QUANTILE_CONT(amount, 0.5)
  Each customer contributes at most 20 rows.
  In QUANTILE_CONT(amount, 0.5), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "quantile_cont" FROM r0
*/

-- nor ends
SELECT MIN(amount), MAX(amount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(amount, 0 to 500 by 1/100, 9 to the 5), size 104857600, weight 10
  m0 = Quantile(total=0, target=0, method=tree, kind=real, origin=None): MIN(amount)
  m1 = Quantile(total=0, target=1, method=tree, kind=real, origin=None): MAX(amount)
  Each customer contributes at most 20 rows.
  In MIN(amount) and MAX(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "min", r0.m1 AS "max" FROM r0
*/

-- nor the most frequent
SELECT MODE() WITHIN GROUP (ORDER BY category) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = histogram(category, food, books, toys, 3 to the 1), size 20971520, weight 1
  m0 = Frequencies(total=0, function=mode 1): MODE() WITHIN GROUP (ORDER BY category)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "mode" FROM r0
*/

-- nor histograms
SELECT HISTOGRAM(amount) FROM orders;
/*
refused: line 1, HISTOGRAM: HISTOGRAM(amount) needs a list of declared values, and none are declared. Use GROUP BY with ORDER BY COUNT(*) DESC LIMIT …, or map it to fewer values with CASE or FLOOR.
*/

-- values of single rows are never gathered
SELECT STRING_AGG(city, ',') FROM orders;
/*
refused: line 1, SELECT: STRING_AGG would disclose values of individual rows. Supported: COUNT, COUNT(DISTINCT x), SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, CORR, COVAR_POP, COVAR_SAMP, REGR_SLOPE, REGR_INTERCEPT, REGR_R2, MEDIAN, PERCENTILE_CONT, QUANTILE_CONT, MIN, MAX, MODE, TOP_K and HISTOGRAM.
*/

-- SUM(DISTINCT x) would need to see who shares a value
SELECT SUM(DISTINCT amount) FROM orders;
/*
refused: line 1, SELECT: SUM(DISTINCT …) is not supported. Leave out DISTINCT, or aggregate per unit in a subquery first.
*/

-- an aggregate in an aggregate
SELECT AVG(COUNT(*)) FROM orders;
/*
refused: line 1, SELECT: aggregate functions cannot be nested. Aggregate per unit in a subquery first.
*/

-- a window in an aggregate
SELECT SUM(ROW_NUMBER() OVER ()) FROM orders;
/*
refused: line 1, SELECT: window functions are not allowed on private rows. Aggregate first, then use window functions on the result. For the first rows of each unit, write SELECT *, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …) AS n in a subquery, and WHERE n = 1 around it.
*/

-- an unknown function
SELECT SUM(random()) FROM orders;
/*
refused: line 1, SUM: RANDOM is not supported: its result changes from call to call. Write the date, time or number as a constant.
*/
