-- policy: TRADE

-- the median price
SELECT MEDIAN(price) FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(price, 0 to 100000 by 2, 50001 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(price)
  Each customer contributes at most 40 rows.
  In MEDIAN(price), values are clamped to the range from 0 to 100000 and rounded to steps of 2.
then SELECT r0.m0 AS "median" FROM r0
*/

-- quartiles by mode
SELECT mode, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price) AS q1, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) AS q2,
  PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY price) AS q3 FROM items GROUP BY mode;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  by k0 = mode: AIR, MAIL, RAIL, SHIP, TRUCK
  clipped, groups 5, rows 40, l2 norm
  t0 = histogram(price, 0 to 100000 by 2, 50001 to the 1), size 41943040, weight 6
  m0 = Quantile(total=0, target=1/4, method=selection, kind=real, origin=None): PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price)
  m1 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price)
  m2 = Quantile(total=0, target=3/4, method=selection, kind=real, origin=None): PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY price)
  Rows are left out where mode is NULL or not declared.
  Each customer contributes at most 40 rows per group.
  In PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) and PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY price), values are clamped to the range from 0 to 100000 and rounded to steps of 2.
then SELECT r0.k0 AS "mode", r0.m0 AS "q1", r0.m1 AS "q2", r0.m2 AS "q3" FROM r0
*/

-- the spread between quartiles
SELECT QUANTILE_CONT(price, 0.75) - QUANTILE_CONT(price, 0.25) AS spread FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(price, 0 to 100000 by 2, 50001 to the 1), size 41943040, weight 4
  m0 = Quantile(total=0, target=3/4, method=selection, kind=real, origin=None): QUANTILE_CONT(price, 0.75)
  m1 = Quantile(total=0, target=1/4, method=selection, kind=real, origin=None): QUANTILE_CONT(price, 0.25)
  Each customer contributes at most 40 rows.
  In QUANTILE_CONT(price, 0.75) and QUANTILE_CONT(price, 0.25), values are clamped to the range from 0 to 100000 and rounded to steps of 2.
then SELECT r0.m0 - r0.m1 AS "spread" FROM r0
*/

-- the ninety-fifth percentile of days to receipt
SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY CLIP(received - shipped, 0, 60)) AS days FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(clip(days_between(clip(shipped, 1992-01-01, 1998-12-31), clip(received, 1992-01-01, 1998-12-31)), 0, 60), 0 to 60 by 1, 61 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=19/20, method=selection, kind=integer, origin=None): PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY CLIP(received - shipped, 0, 60))
  Each customer contributes at most 40 rows.
  In PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY CLIP(received - shipped, 0, 60)), values are clamped to the range from 0 to 60.
then SELECT r0.m0 AS "days" FROM r0
*/

-- a discrete percentile
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY quantity) FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(quantity, 1 to 50 by 1, 50 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=9/10, method=selection, kind=integer, origin=None): PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY quantity)
  Each customer contributes at most 40 rows.
  In PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY quantity), values are clamped to the range from 1 to 50.
then SELECT r0.m0 AS "percentile_disc" FROM r0
*/

-- a descending percentile
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY quantity DESC) FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(quantity, 1 to 50 by 1, 50 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=1/10, method=selection, kind=integer, origin=None): PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY quantity DESC)
  Each customer contributes at most 40 rows.
  In PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY quantity DESC), values are clamped to the range from 1 to 50.
then SELECT r0.m0 AS "percentile_cont" FROM r0
*/

-- the least and the greatest price
SELECT MIN(price), MAX(price), COUNT(*) FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm, rows capped
  t0 = histogram(price, 0 to 100000 by 2, 9 to the 5), size 209715200, weight 10
  t1 = count(*), size 40, weight 1
  m0 = Quantile(total=0, target=0, method=tree, kind=real, origin=None): MIN(price)
  m1 = Quantile(total=0, target=1, method=tree, kind=real, origin=None): MAX(price)
  m2 = NoisyCount(total=1): COUNT(*)
  Each customer contributes at most 40 rows.
  In MIN(price) and MAX(price), values are clamped to the range from 0 to 100000 and rounded to steps of 2.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  35 buckets from 40.01, 56.57, 80, … 5.243e+06; 1/50 of the cost
  about r0, radius 40
then SELECT r0.m0 AS "min", r0.m1 AS "max", r0.m2 AS "count" FROM r0
*/

-- the greatest total of each segment
SELECT segment, MAX(total) AS largest FROM purchases GROUP BY segment ORDER BY largest DESC;
/*
r0 from
  purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = histogram(total, 0 to 500000 by 8, 5 to the 7), size 220200960, weight 7
  m0 = Quantile(total=0, target=1, method=tree, kind=real, origin=None): MAX(total)
  Rows are left out where segment is NULL or not declared.
  Each customer contributes at most 10 rows per group.
  In MAX(total), values are clamped to the range from 0 to 500000 and rounded to steps of 8.
then SELECT r0.k0 AS "segment", r0.m0 AS "largest" FROM r0 ORDER BY 2 DESC
*/

-- the last day of a purchase
SELECT MAX(day) FROM purchases;
/*
r0 from
  purchases of customer
  clipped, groups 1, rows 10, l2 norm
  t0 = histogram(days_between(1992-01-01, clip(day, 1992-01-01, 1998-12-31)), 0 to 2556 by 1, 5 to the 5), size 52428800, weight 5
  m0 = Quantile(total=0, target=1, method=tree, kind=date, origin=1992-01-01): MAX(day)
  Each customer contributes at most 10 rows.
  In MAX(day), values are clamped to the range from 1992-01-01 to 1998-12-31.
then SELECT r0.m0 AS "max" FROM r0
*/

-- the most frequent mode
SELECT MODE() WITHIN GROUP (ORDER BY mode) AS usual FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(mode, AIR, MAIL, RAIL, SHIP, TRUCK, 5 to the 1), size 41943040, weight 1
  m0 = Frequencies(total=0, function=mode 1): MODE() WITHIN GROUP (ORDER BY mode)
  Each customer contributes at most 40 rows.
then SELECT r0.m0 AS "usual" FROM r0
*/

-- the most frequent mode of each status
SELECT returned, MODE(mode) AS usual FROM items GROUP BY returned;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  by k0 = returned: A, N, R
  clipped, groups 3, rows 40, l2 norm
  t0 = histogram(mode, AIR, MAIL, RAIL, SHIP, TRUCK, 5 to the 1), size 41943040, weight 1
  m0 = Frequencies(total=0, function=mode 1): MODE(mode)
  Rows are left out where returned is NULL or not declared.
  Each customer contributes at most 40 rows per group.
then SELECT r0.k0 AS "returned", r0.m0 AS "usual" FROM r0
*/

-- the two most frequent nations
SELECT APPROX_TOP_K(nation, 2) FROM purchases;
/*
r0 from
  purchases of customer
  clipped, groups 1, rows 10, l2 norm
  t0 = histogram(nation, FRANCE, GERMANY, JAPAN, PERU, 4 to the 1), size 10485760, weight 1
  m0 = Frequencies(total=0, function=top 2): APPROX_TOP_K(nation, 2)
  Each customer contributes at most 10 rows.
then SELECT r0.m0 AS "approx_top_k" FROM r0
*/

-- how many nations were bought from
SELECT COUNT(DISTINCT nation) AS nations FROM purchases;
/*
r0 from
  purchases of customer
  clipped, groups 1, rows 10, l2 norm
  t0 = count_distinct(nation), size 10, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT nation)
  Each customer contributes at most 10 distinct values per group, chosen by a hash.
then SELECT r0.m0 AS "nations" FROM r0
*/

-- different days of purchase by segment
SELECT segment, COUNT(DISTINCT day) AS days FROM purchases GROUP BY segment;
/*
r0 from
  purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = count_distinct(day), size 10, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT day)
  Rows are left out where segment is NULL or not declared.
  Each customer contributes at most 10 distinct values per group, chosen by a hash.
then SELECT r0.k0 AS "segment", r0.m0 AS "days" FROM r0
*/

-- an approximate count of different parts
SELECT APPROX_COUNT_DISTINCT(part) FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = count_distinct(part), size 40, weight 1
  m0 = NoisyCount(total=0): APPROX_DISTINCT(part)
  Each customer contributes at most 40 distinct values per group, chosen by a hash.
then SELECT r0.m0 AS "approx_count_distinct" FROM r0
*/

-- a histogram of prices
SELECT HISTOGRAM(price) FROM items;
/*
refused: line 1, HISTOGRAM: HISTOGRAM(price) needs a list of declared values, and none are declared. Use GROUP BY with ORDER BY COUNT(*) DESC LIMIT …, or map it to fewer values with CASE or FLOOR.
*/

-- a median beside a mean
SELECT segment, AVG(total) AS mean, MEDIAN(total) AS middle, AVG(total) - MEDIAN(total) AS skew FROM purchases GROUP BY segment;
/*
r0 from
  purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm, rows capped
  t0 = histogram(total, 0 to 500000 by 8, 62501 to the 1), size 10485760, weight 2
  t1 = count(total), size 10, weight 1/4
  t2 = sum(total, 0 to 500000 by 1 around 249984), size 2500160, weight 1
  m0 = Mean(total=2, count=1, low=0, high=500000): AVG(total)
  m1 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(total)
  Rows are left out where segment is NULL or not declared.
  Each customer contributes at most 10 rows per group.
  In AVG(total), values are clamped to the range from 0 to 500000 and rounded to steps of 1.
  In MEDIAN(total), values are clamped to the range from 0 to 500000 and rounded to steps of 8.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = segment: f0 = rows()
      where one_of(segment, 'AUTOMOBILE', 'BUILDING', 'MACHINERY')
        purchases of customer
  units by the norm of their rows
  33 buckets from 17.35, 24.49, 34.64, … 1.135e+06; 1/50 of the cost
  about r0, radius 17.32
then SELECT r0.k0 AS "segment", r0.m0 AS "mean", r0.m1 AS "middle", r0.m0 - r0.m1 AS "skew" FROM r0
*/

-- a median with FILTER
SELECT MEDIAN(price) FILTER (WHERE returned = 'R') AS returned, MEDIAN(price) FILTER (WHERE returned <> 'R') AS kept FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(case(equal(returned, 'R'), price, NULL), 0 to 100000 by 2, 50001 to the 1), size 41943040, weight 2
  t1 = histogram(case(not(equal(returned, 'R')), price, NULL), 0 to 100000 by 2, 50001 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) FILTER(WHERE returned = 'R')
  m1 = Quantile(total=1, target=1/2, method=selection, kind=real, origin=None): PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) FILTER(WHERE returned <> 'R')
  Each customer contributes at most 40 rows.
  In PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) FILTER(WHERE returned = 'R') and PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) FILTER(WHERE returned <> 'R'), values are clamped to the range from 0 to 100000 and rounded to steps of 2.
then SELECT r0.m0 AS "returned", r0.m1 AS "kept" FROM r0
*/

-- the median of people's totals
SELECT MEDIAN(spent) FROM (SELECT customer, SUM(CLIP(total, 0, 100000)) AS spent FROM purchases GROUP BY customer) AS t;
/*
refused: line 1, MEDIAN: MEDIAN(spent) needs bounds. Replace spent by CLIP(spent, low, high).
*/

-- a median of a logarithm
SELECT EXP(MEDIAN(LN(price + 1))) - 1 AS middle FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = histogram(ln(add(clip(price, 0.0, 100000.0), 1.0)), 0 to 11.5129 by 1/4096, 47158 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(LN(price + 1))
  Each customer contributes at most 40 rows.
  In MEDIAN(LN(price + 1)), values are clamped to the range from 0 to 11.5129 and rounded to steps of 0.000244141.
then SELECT EXP(r0.m0) - 1 AS "middle" FROM r0
*/

-- groups chosen by their median
SELECT mode, MEDIAN(quantity) AS m FROM items GROUP BY mode HAVING MEDIAN(quantity) > 20 ORDER BY m DESC LIMIT 2;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  by k0 = mode: AIR, MAIL, RAIL, SHIP, TRUCK
  clipped, groups 5, rows 40, l2 norm
  t0 = histogram(quantity, 1 to 50 by 1, 50 to the 1), size 41943040, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=integer, origin=None): MEDIAN(quantity)
  Rows are left out where mode is NULL or not declared.
  Each customer contributes at most 40 rows per group.
  In MEDIAN(quantity), values are clamped to the range from 1 to 50.
then SELECT r0.k0 AS "mode", r0.m0 AS "m" FROM r0 WHERE r0.m0 > 20 ORDER BY 2 DESC LIMIT 2
*/

-- a median without a range
SELECT MEDIAN(LENGTH(remark)) FROM purchases;
/*
refused: line 1, MEDIAN: MEDIAN(LENGTH(remark)) needs bounds. Replace LENGTH(remark) by CLIP(LENGTH(remark), low, high).
*/

-- a median of text
SELECT MEDIAN(remark) FROM purchases;
/*
refused: line 1, MEDIAN: MEDIAN needs a number or a date, not text. Use GROUP BY with COUNT(*), or MODE for the most frequent value.
*/

-- a percentile above 1
SELECT PERCENTILE_CONT(95) WITHIN GROUP (ORDER BY price) FROM items;
/*
refused: line 1, PERCENTILE_CONT: the fraction must be a constant between 0 and 1. Write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), for example.
*/

-- a percentile of the unit's own column
SELECT MEDIAN(customer) FROM purchases;
/*
refused: line 1, MEDIAN: MEDIAN of the privacy unit's own column would disclose individuals. Count units with COUNT(DISTINCT …).
*/

-- the most frequent text must be listed
SELECT MODE(remark) FROM purchases;
/*
refused: line 1, MODE: MODE(remark) needs a list of declared values, and none are declared. Use GROUP BY with ORDER BY COUNT(*) DESC LIMIT …, or map it to fewer values with CASE or FLOOR.
*/

-- the first of two medians joined
WITH a AS (SELECT segment, MEDIAN(total) AS m FROM purchases WHERE status = 'F' GROUP BY segment),
  b AS (SELECT segment, MEDIAN(total) AS m FROM purchases WHERE status = 'O' GROUP BY segment)
SELECT a.segment, a.m - b.m AS difference FROM a JOIN b USING (segment);
/*
r0 from
  where equal(status, 'F')
    purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = histogram(total, 0 to 500000 by 8, 62501 to the 1), size 10485760, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(total)
  Rows are left out where segment is NULL or not declared.
  Each customer contributes at most 10 rows per group.
  In MEDIAN(total), values are clamped to the range from 0 to 500000 and rounded to steps of 8.
r1 from
  where equal(status, 'O')
    purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = histogram(total, 0 to 500000 by 8, 62501 to the 1), size 10485760, weight 2
  m0 = Quantile(total=0, target=1/2, method=selection, kind=real, origin=None): MEDIAN(total)
  Rows are left out where segment is NULL or not declared.
  Each customer contributes at most 10 rows per group.
  In MEDIAN(total), values are clamped to the range from 0 to 500000 and rounded to steps of 8.
then WITH a AS (SELECT r0.k0 AS "segment", r0.m0 AS "m" FROM r0), b AS (SELECT r1.k0 AS "segment", r1.m0 AS "m" FROM r1) SELECT a.segment AS "segment", a.m - b.m AS "difference" FROM a JOIN b ON "a"."segment" = "b"."segment"
*/
