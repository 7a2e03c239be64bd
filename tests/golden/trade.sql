-- policy: TRADE

-- a pricing summary
SELECT returned, SUM(quantity) AS sum_qty, SUM(price) AS sum_base, SUM(price * (1 - discount)) AS sum_disc,
  SUM(price * (1 - discount) * (1 + tax)) AS sum_charge, AVG(quantity) AS avg_qty, AVG(price) AS avg_price,
  AVG(discount) AS avg_disc, COUNT(*) AS count_order
FROM items WHERE shipped <= DATE '1998-12-01' - INTERVAL '90' DAY GROUP BY returned ORDER BY returned;
/*
r0 from
  where at_most(to_timestamp(shipped), 1998-09-02 00:00:00)
    items of purchase → purchases.purchase, of customer
  by k0 = returned: A, N, R
  clipped, groups 3, rows 40, l2 norm, rows capped
  t0 = sum(quantity, 1 to 50 by 1/2 around 51/2), size 1960, weight 31/25
  t1 = count(quantity), size 40, weight 51/100
  t2 = sum(price, 0 to 100000 by 1 around 50000), size 2000000, weight 5/4
  t3 = count(price), size 40, weight 1/2
  t4 = sum(multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0 to 100000 by 1/16), size 64000000, weight 1
  t5 = sum(multiply(add(clip(tax, 0.0, 0.08), 1.0), multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1)))), 0 to 108000 by 1/16), size 69120000, weight 1
  t6 = sum(discount, 0 to 1/10 by 1/100 around 1/20), size 200, weight 1
  t7 = count(discount), size 40, weight 1/4
  t8 = count(*), size 40, weight 1
  m0 = NoisySum(total=0, kind=whole, count=1): SUM(quantity)
  m1 = NoisySum(total=2, kind=real, count=3): SUM(price)
  m2 = NoisySum(total=4, kind=real, count=None): SUM(price * (1 - discount))
  m3 = NoisySum(total=5, kind=real, count=None): SUM(price * (1 - discount) * (1 + tax))
  m4 = Mean(total=0, count=1, low=1, high=50): AVG(quantity)
  m5 = Mean(total=2, count=3, low=0, high=100000): AVG(price)
  m6 = Mean(total=6, count=7, low=0, high=1/10): AVG(discount)
  m7 = NoisyCount(total=8): COUNT(*)
  Rows are left out where returned is NULL or not declared.
  Each customer contributes at most 40 rows per group.
  In SUM(quantity) and AVG(quantity), values are clamped to the range from 1 to 50.
  In SUM(price) and AVG(price), values are clamped to the range from 0 to 100000 and rounded to steps of 1.
  In SUM(price * (1 - discount)), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
  In SUM(price * (1 - discount) * (1 + tax)), values are clamped to the range from 0 to 108000 and rounded to steps of 0.0625.
  In AVG(discount), values are clamped to the range from 0 to 0.1 and rounded to steps of 0.01.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = returned: f0 = rows()
      where and(at_most(to_timestamp(shipped), 1998-09-02 00:00:00), one_of(returned, 'A', 'N', 'R'))
        items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  33 buckets from 69.29, 97.98, 138.6, … 4.54e+06; 1/50 of the cost
  about r0, radius 69.28
then SELECT r0.k0 AS "returned", r0.m0 AS "sum_qty", r0.m1 AS "sum_base", r0.m2 AS "sum_disc", r0.m3 AS "sum_charge", r0.m4 AS "avg_qty", r0.m5 AS "avg_price", r0.m6 AS "avg_disc", r0.m7 AS "count_order" FROM r0 ORDER BY 1
*/

-- shipping priority
SELECT priority, SUM(price * (1 - discount)) AS revenue FROM items i JOIN purchases p ON p.purchase = i.purchase
WHERE segment = 'BUILDING' AND day < DATE '1995-03-15' AND shipped > DATE '1995-03-15'
GROUP BY priority ORDER BY revenue DESC LIMIT 10;
/*
r0 from
  where and(equal(segment, 'BUILDING'), less(day, 1995-03-15), less(1995-03-15, shipped))
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive discount, price, purchase, shipped
        items of purchase → purchases.purchase, of customer
      derive day, priority, purchase_1 = purchase, segment
        purchases of customer
  by k0 = priority: 1-URGENT, 2-HIGH, 3-MEDIUM, 4-LOW
  clipped, groups 4, rows 40, l2 norm
  t0 = sum(multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0 to 100000 by 1/16), size 262144000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(price * (1 - discount))
  Rows are left out where priority is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 80 over all groups, such as 40 rows in each of 4 groups.
  In SUM(price * (1 - discount)), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = priority: f0 = rows()
      where and(equal(segment, 'BUILDING'), less(day, 1995-03-15), less(1995-03-15, shipped), one_of(priority, '1-URGENT', '2-HIGH', '3-MEDIUM', '4-LOW'))
        inner join on the unit and equal(purchase, purchase_1), most 100
          derive purchase, shipped
            items of purchase → purchases.purchase, of customer
          derive day, priority, purchase_1 = purchase, segment
            purchases of customer
  units by the norm of their rows
  14 buckets from 80.01, 113.1, 160, … 7241; 1/50 of the cost
  about r0, radius 80
then SELECT r0.k0 AS "priority", r0.m0 AS "revenue" FROM r0 ORDER BY 2 DESC LIMIT 10
*/

-- order priority checking, by EXISTS on the parent's key
SELECT priority, COUNT(*) AS order_count FROM purchases p
WHERE day >= DATE '1993-07-01' AND day < DATE '1993-07-01' + INTERVAL '3' MONTH
  AND EXISTS (SELECT * FROM items i WHERE i.purchase = p.purchase AND promised < received) GROUP BY priority;
/*
refused: line 3, WHERE: private rows can be compared with other private rows only on the whole privacy unit. Compare p.customer with the same columns of the inner query, or write a JOIN.
*/

-- order priority checking, by a join
SELECT priority, COUNT(DISTINCT customer) AS customers FROM items JOIN purchases USING (purchase)
WHERE day >= DATE '1993-07-01' AND day < DATE '1993-07-01' + INTERVAL '3' MONTH AND promised < received GROUP BY priority;
/*
r0 from
  where and(at_most(1993-07-01, day), less(promised, received), less(to_timestamp(day), 1993-10-01 00:00:00))
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive promised, purchase, received
        items of purchase → purchases.purchase, of customer
      derive day, priority, purchase_1 = purchase
        purchases of customer
  by k0 = priority: 1-URGENT, 2-HIGH, 3-MEDIUM, 4-LOW
  clipped, groups 4, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT customer)
  Rows are left out where priority is NULL or not declared.
then SELECT r0.k0 AS "priority", r0.m0 AS "customers" FROM r0
*/

-- local supplier volume
SELECT n.name, SUM(i.price * (1 - i.discount)) AS revenue
FROM items i JOIN purchases p USING (purchase) JOIN nations n ON p.nation = n.name
WHERE n.region = 'ASIA' AND p.day BETWEEN '1994-01-01' AND '1994-12-31' GROUP BY n.name ORDER BY revenue DESC;
/*
r0 from
  where and(at_most(day, 1994-12-31), at_most(1994-01-01, day), equal(region, 'ASIA'))
    inner join nations (name, region) on nation = name, fanout 1
      inner join on the unit and equal(purchase, purchase_1), most 100
        derive discount, price, purchase
          items of purchase → purchases.purchase, of customer
        derive day, nation, purchase_1 = purchase
          purchases of customer
  by k0 = name: FRANCE, GERMANY, JAPAN, PERU
  clipped, groups 4, rows 40, l2 norm
  t0 = sum(multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0 to 100000 by 1/16), size 262144000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(i.price * (1 - i.discount))
  Rows are left out where name is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 80 over all groups, such as 40 rows in each of 4 groups.
  In SUM(i.price * (1 - i.discount)), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = name: f0 = rows()
      where and(at_most(day, 1994-12-31), at_most(1994-01-01, day), equal(region, 'ASIA'), one_of(name, 'FRANCE', 'GERMANY', 'JAPAN', 'PERU'))
        inner join nations (name, region) on nation = name, fanout 1
          inner join on the unit and equal(purchase, purchase_1), most 100
            derive purchase
              items of purchase → purchases.purchase, of customer
            derive day, nation, purchase_1 = purchase
              purchases of customer
  units by the norm of their rows
  14 buckets from 80.01, 113.1, 160, … 7241; 1/50 of the cost
  about r0, radius 80
then SELECT r0.k0 AS "name", r0.m0 AS "revenue" FROM r0 ORDER BY 2 DESC
*/

-- forecasting a change of revenue
SELECT SUM(price * discount) AS revenue FROM items
WHERE shipped >= DATE '1994-01-01' AND shipped < DATE '1995-01-01' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24;
/*
r0 from
  where and(at_most(discount, 0.07), at_most(0.05, discount), at_most(1994-01-01, shipped), less(quantity, 24), less(shipped, 1995-01-01))
    items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = sum(multiply(clip(discount, 0.05, 0.07), clip(price, 0.0, 100000.0)), 0 to 7000 by 1/256), size 71680000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(price * discount)
  Each customer contributes at most 40 rows.
  In SUM(price * discount), values are clamped to the range from 0 to 7000 and rounded to steps of 0.00390625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where and(at_most(discount, 0.07), at_most(0.05, discount), at_most(1994-01-01, shipped), less(quantity, 24), less(shipped, 1995-01-01))
        items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  35 buckets from 40.01, 56.57, 80, … 5.243e+06; 1/50 of the cost
  about r0, radius 40
then SELECT r0.m0 AS "revenue" FROM r0
*/

-- volume by year and nation
SELECT nation, EXTRACT(YEAR FROM shipped) AS year, SUM(price * (1 - discount)) AS volume
FROM items JOIN purchases USING (purchase) WHERE nation IN ('FRANCE', 'GERMANY') GROUP BY nation, year ORDER BY nation, year;
/*
r0 from
  where one_of(nation, 'FRANCE', 'GERMANY')
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive discount, price, purchase, shipped
        items of purchase → purchases.purchase, of customer
      derive nation, purchase_1 = purchase
        purchases of customer
  by k0 = nation: FRANCE, GERMANY
  by k1 = year(to_timestamp(shipped)): 1992, 1993, 1994, 1995, 1996, 1997, 1998
  clipped, groups 8, rows 40, l0 clipped, l2 norm
  t0 = sum(multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0 to 100000 by 1/16), size 198162237625, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(price * (1 - discount))
  Rows are left out where nation is not declared, or the key from shipped is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 113.1 over all groups, such as 40 rows in each of 8 groups.
  In SUM(price * (1 - discount)), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = nation, k1 = year(to_timestamp(shipped)): f0 = rows()
      where and(one_of(nation, 'FRANCE', 'GERMANY'), at_most(year(to_timestamp(shipped)), 1998), at_most(1992, year(to_timestamp(shipped))))
        inner join on the unit and equal(purchase, purchase_1), most 100
          derive purchase, shipped
            items of purchase → purchases.purchase, of customer
          derive nation, purchase_1 = purchase
            purchases of customer
  units by the norm of their rows
  13 buckets from 113.1, 160, 226.3, … 7241; 1/50 of the cost
  about r0, radius 113.1
then SELECT r0.k0 AS "nation", r0.k1 AS "year", r0.m0 AS "volume" FROM r0 ORDER BY 1, 2
*/

-- market share of a nation
SELECT year, SUM(CASE WHEN nation = 'JAPAN' THEN volume ELSE 0 END) / SUM(volume) AS share FROM (
  SELECT EXTRACT(YEAR FROM p.day) AS year, i.price * (1 - i.discount) AS volume, p.nation
  FROM items i JOIN purchases p ON i.purchase = p.purchase) AS all_of_them
GROUP BY year ORDER BY year;
/*
r0 from
  derive nation, c0 = year(to_timestamp(day)), c1 = multiply(price, subtract(1.0, discount))
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive discount, price, purchase
        items of purchase → purchases.purchase, of customer
      derive day, nation, purchase_1 = purchase
        purchases of customer
  by k0 = c0: 1992, 1993, 1994, 1995, 1996, 1997, 1998
  clipped, groups 7, rows 40, l2 norm
  t0 = sum(case(equal(nation, 'JAPAN'), clip(c1, 0.0, 100000.0), 0.0), 0 to 100000 by 1/16), size 262144000000, weight 1
  t1 = sum(c1, 0 to 100000 by 1/16), size 262144000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(CASE WHEN nation = 'JAPAN' THEN volume ELSE 0 END)
  m1 = NoisySum(total=1, kind=real, count=None): SUM(volume)
  Rows are left out where year is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 105.8 over all groups, such as 40 rows in each of 7 groups.
  In SUM(CASE WHEN nation = 'JAPAN' THEN volume ELSE 0 END) and SUM(volume), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = c0: f0 = rows()
      where and(at_most(c0, 1998), at_most(1992, c0))
        derive c0 = year(to_timestamp(day))
          inner join on the unit and equal(purchase, purchase_1), most 100
            derive purchase
              items of purchase → purchases.purchase, of customer
            derive day, purchase_1 = purchase
              purchases of customer
  units by the norm of their rows
  14 buckets from 105.8, 149.7, 211.7, … 9579; 1/50 of the cost
  about r0, radius 105.8
then SELECT r0.k0 AS "year", r0.m0 / r0.m1 AS "share" FROM r0 ORDER BY 1
*/

-- returned goods by region
SELECT region, COUNT(*) FILTER (WHERE returned = 'R') AS returned, 100.0 * COUNT(*) FILTER (WHERE returned = 'R') / COUNT(*) AS percent
FROM items JOIN purchases USING (purchase) JOIN nations ON nation = name GROUP BY region;
/*
r0 from
  inner join nations (name, region) on nation = name, fanout 1
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive purchase, returned
        items of purchase → purchases.purchase, of customer
      derive nation, purchase_1 = purchase
        purchases of customer
  by k0 = region: AMERICA, ASIA, EUROPE
  clipped, groups 3, rows 40, l2 norm
  t0 = count(case(equal(returned, 'R'), 1, NULL)), size 41943040, weight 1
  t1 = count(*), size 41943040, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE returned = 'R')
  m1 = NoisyCount(total=1): COUNT(*)
  Rows are left out where region is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 69.28 over all groups, such as 40 rows in each of 3 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = region: f0 = rows()
      where one_of(region, 'AMERICA', 'ASIA', 'EUROPE')
        inner join nations (name, region) on nation = name, fanout 1
          inner join on the unit and equal(purchase, purchase_1), most 100
            derive purchase
              items of purchase → purchases.purchase, of customer
            derive nation, purchase_1 = purchase
              purchases of customer
  units by the norm of their rows
  15 buckets from 69.29, 97.98, 138.6, … 8868; 1/50 of the cost
  about r0, radius 69.28
then SELECT r0.k0 AS "region", r0.m0 AS "returned", 100.0 * r0.m0 / r0.m1 AS "percent" FROM r0
*/

-- important stock by brand
SELECT brand, SUM(price * quantity) AS value FROM items JOIN parts ON part = code GROUP BY brand
HAVING SUM(price * quantity) > 1000000 ORDER BY value DESC;
/*
r0 from
  inner join parts (code, brand) on part = code, fanout 1
    items of purchase → purchases.purchase, of customer
  by k0 = brand: Brand#12, Brand#23
  clipped, groups 2, rows 40, l2 norm
  t0 = sum(multiply(clip(price, 0.0, 100000.0), to_real(clip(quantity, 1, 50))), 0 to 5000000 by 4), size 1638400000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(price * quantity)
  Rows are left out where brand is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 56.57 over all groups, such as 40 rows in each of 2 groups.
  In SUM(price * quantity), values are clamped to the range from 0 to 5e+6 and rounded to steps of 4.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = brand: f0 = rows()
      where one_of(brand, 'Brand#12', 'Brand#23')
        inner join parts (code, brand) on part = code, fanout 1
          items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  34 buckets from 56.58, 80, 113.1, … 5.243e+06; 1/50 of the cost
  about r0, radius 56.57
then SELECT r0.k0 AS "brand", r0.m0 AS "value" FROM r0 WHERE r0.m0 > 1000000 ORDER BY 2 DESC
*/

-- shipping modes and priority
SELECT mode, SUM(CASE WHEN priority = '1-URGENT' OR priority = '2-HIGH' THEN 1 ELSE 0 END) AS high,
  SUM(CASE WHEN priority <> '1-URGENT' AND priority <> '2-HIGH' THEN 1 ELSE 0 END) AS low
FROM purchases p, items i WHERE p.purchase = i.purchase AND mode IN ('MAIL', 'SHIP') AND promised < received
  AND shipped < promised GROUP BY mode ORDER BY mode;
/*
r0 from
  where and(less(promised, received), less(shipped, promised), one_of(mode, 'MAIL', 'SHIP'))
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive priority, purchase
        purchases of customer
      derive mode, promised, purchase_1 = purchase, received, shipped
        items of purchase → purchases.purchase, of customer
  by k0 = mode: MAIL, SHIP
  clipped, groups 2, rows 40, l2 norm
  t0 = sum(case(or(equal(priority, '1-URGENT'), equal(priority, '2-HIGH')), 1, 0), 0 to 1 by 1), size 41943040, weight 1
  t1 = sum(case(and(not(equal(priority, '1-URGENT')), not(equal(priority, '2-HIGH'))), 1, 0), 0 to 1 by 1), size 41943040, weight 1
  m0 = NoisySum(total=0, kind=whole, count=None): SUM(CASE WHEN priority = '1-URGENT' OR priority = '2-HIGH' THEN 1 ELSE 0 END)
  m1 = NoisySum(total=1, kind=whole, count=None): SUM(CASE WHEN priority <> '1-URGENT' AND priority <> '2-HIGH' THEN 1 ELSE 0 END)
  Rows are left out where mode is not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 56.57 over all groups, such as 40 rows in each of 2 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = mode: f0 = rows()
      where and(less(promised, received), less(shipped, promised), one_of(mode, 'MAIL', 'SHIP'))
        inner join on the unit and equal(purchase, purchase_1), most 100
          derive purchase
            purchases of customer
          derive mode, promised, purchase_1 = purchase, received, shipped
            items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  15 buckets from 56.58, 80, 113.1, … 7241; 1/50 of the cost
  about r0, radius 56.57
then SELECT r0.k0 AS "mode", r0.m0 AS "high", r0.m1 AS "low" FROM r0 ORDER BY 1
*/

-- the distribution of customers by their purchases
SELECT n, COUNT(*) AS customers FROM (
  SELECT customer, COUNT(*) AS n FROM purchases WHERE remark NOT LIKE '%special%requests%' GROUP BY customer) AS t
WHERE n BETWEEN 1 AND 40 GROUP BY n ORDER BY customers DESC, n DESC;
/*
r0 from
  where and(at_most(f0, 40), at_most(1, f0))
    per unit: f0 = rows()
      where not(like(remark, '%special%requests%'))
        purchases of customer
  by k0 = f0: 1, 2, 3, … 40 (40)
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where n is outside its range.
then SELECT r0.k0 AS "n", r0.m0 AS "customers" FROM r0 ORDER BY 2 DESC, 1 DESC
*/

-- promotion effect
SELECT 100.00 * SUM(CASE WHEN brand LIKE 'Brand#1%' THEN price * (1 - discount) ELSE 0 END) / SUM(price * (1 - discount)) AS promo
FROM items, parts WHERE part = code AND shipped >= '1995-09-01' AND shipped < '1995-10-01';
/*
r0 from
  where and(at_most(1995-09-01, shipped), less(shipped, 1995-10-01))
    inner join parts (code, brand) on part = code, fanout 1
      items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = sum(case(like(brand, 'Brand#1%'), multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0.0), 0 to 100000 by 1/16), size 64000000, weight 1
  t1 = sum(multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0 to 100000 by 1/16), size 64000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(CASE WHEN brand LIKE 'Brand#1%' THEN price * (1 - discount) ELSE 0 END)
  m1 = NoisySum(total=1, kind=real, count=None): SUM(price * (1 - discount))
  Each customer contributes at most 40 rows.
  In SUM(CASE WHEN brand LIKE 'Brand#1%' THEN price * (1 - discount) ELSE 0 END) and SUM(price * (1 - discount)), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where and(at_most(1995-09-01, shipped), less(shipped, 1995-10-01))
        inner join parts (code) on part = code, fanout 1
          items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  35 buckets from 40.01, 56.57, 80, … 5.243e+06; 1/50 of the cost
  about r0, radius 40
then SELECT 100.00 * r0.m0 / r0.m1 AS "promo" FROM r0
*/

-- sizes of parts
SELECT size, COUNT(*) FROM items JOIN parts ON part = code WHERE size IN (1, 15) GROUP BY size;
/*
r0 from
  where one_of(size, 1, 15)
    inner join parts (code, size) on part = code, fanout 1
      items of purchase → purchases.purchase, of customer
  by k0 = size: 1, 15
  clipped, groups 2, rows 40, l2 norm
  t0 = count(*), size 41943040, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer's rows per group are clipped together: an l2 norm of at most 56.57 over all groups, such as 40 rows in each of 2 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = size: f0 = rows()
      where one_of(size, 1, 15)
        inner join parts (code, size) on part = code, fanout 1
          items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  34 buckets from 56.58, 80, 113.1, … 5.243e+06; 1/50 of the cost
  about r0, radius 56.57
then SELECT r0.k0 AS "size", r0.m0 AS "count" FROM r0
*/

-- small quantities, averaged per year
SELECT SUM(price) / 7.0 AS yearly FROM items WHERE quantity < 5;
/*
r0 from
  where less(quantity, 5)
    items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = sum(price, 0 to 100000 by 1), size 4000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(price)
  Each customer contributes at most 40 rows.
  In SUM(price), values are clamped to the range from 0 to 100000 and rounded to steps of 1.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where less(quantity, 5)
        items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  35 buckets from 40.01, 56.57, 80, … 5.243e+06; 1/50 of the cost
  about r0, radius 40
then SELECT r0.m0 / 7.0 AS "yearly" FROM r0
*/

-- large-volume customers
SELECT COUNT(*) AS large FROM (SELECT customer, SUM(total) AS spent FROM purchases GROUP BY customer HAVING SUM(total) > 300000) AS t;
/*
r0 from
  where less(300000.0, c0)
    derive c0 = multiply(to_real(f0), 1.0)
      per unit: f0 = steps(total by 1)
        purchases of customer
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
then SELECT r0.m0 AS "large" FROM r0
*/

-- discounted revenue under several conditions
SELECT SUM(price * (1 - discount)) AS revenue FROM items JOIN parts ON code = part
WHERE (brand = 'Brand#12' AND quantity BETWEEN 1 AND 11 AND size BETWEEN 1 AND 5)
   OR (brand = 'Brand#23' AND quantity BETWEEN 10 AND 20 AND size BETWEEN 1 AND 10);
/*
r0 from
  where or(and(at_most(quantity, 11), at_most(size, 5), at_most(1, quantity), at_most(1, size), equal(brand, 'Brand#12')), and(at_most(quantity, 20), at_most(size, 10), at_most(1, size), at_most(10, quantity), equal(brand, 'Brand#23')))
    inner join parts (code, brand, size) on part = code, fanout 1
      items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm
  t0 = sum(multiply(clip(price, 0.0, 100000.0), subtract(1.0, clip(discount, 0.0, 0.1))), 0 to 100000 by 1/16), size 64000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(price * (1 - discount))
  Each customer contributes at most 40 rows.
  In SUM(price * (1 - discount)), values are clamped to the range from 0 to 100000 and rounded to steps of 0.0625.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where or(and(at_most(quantity, 11), at_most(size, 5), at_most(1, quantity), at_most(1, size), equal(brand, 'Brand#12')), and(at_most(quantity, 20), at_most(size, 10), at_most(1, size), at_most(10, quantity), equal(brand, 'Brand#23')))
        inner join parts (code, brand, size) on part = code, fanout 1
          items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  35 buckets from 40.01, 56.57, 80, … 5.243e+06; 1/50 of the cost
  about r0, radius 40
then SELECT r0.m0 AS "revenue" FROM r0
*/

-- customers who never bought on sea
SELECT COUNT(DISTINCT customer) FROM purchases WHERE customer NOT IN (
  SELECT p.customer FROM items i JOIN purchases p USING (purchase) WHERE i.mode = 'SHIP');
/*
r0 from
  units with no row in the second
    purchases of customer
    where equal(mode, 'SHIP')
      inner join on the unit and equal(purchase, purchase_1), most 100
        derive mode, purchase
          items of purchase → purchases.purchase, of customer
        derive purchase_1 = purchase
          purchases of customer
  clipped, groups 1, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT customer)
then SELECT r0.m0 AS "count" FROM r0
*/

-- customers with purchases in two years
WITH a AS (SELECT customer FROM purchases WHERE EXTRACT(YEAR FROM day) = 1997 GROUP BY customer),
  b AS (SELECT customer FROM purchases WHERE EXTRACT(YEAR FROM day) = 1998 GROUP BY customer)
SELECT COUNT(*) AS kept FROM a JOIN b USING (customer);
/*
r0 from
  inner join on the unit, most 100
    per unit: 
      where equal(year(to_timestamp(day)), 1997)
        purchases of customer
    derive f0
      per unit: f0 = least(customer)
        where equal(year(to_timestamp(day)), 1998)
          purchases of customer
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
then SELECT r0.m0 AS "kept" FROM r0
*/

-- growth from month to month
WITH months AS (SELECT DATE_TRUNC('month', day) AS month, SUM(total) AS turnover FROM purchases
  WHERE day >= '1998-01-01' GROUP BY 1)
SELECT month, turnover, turnover - LAG(turnover) OVER (ORDER BY month) AS growth FROM months ORDER BY month;
/*
r0 from
  where at_most(1998-01-01, day)
    purchases of customer
  by k0 = trunc_month(to_timestamp(day)): 1998-01-01 00:00:00, 1998-02-01 00:00:00, 1998-03-01 00:00:00, … 1998-12-01 00:00:00 (12)
  clipped, groups 4, rows 10, l0 clipped, l2 norm
  t0 = sum(total, 0 to 500000 by 1), size 378372272416, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(total)
  Rows are left out where the key from day is outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 20 over all groups, such as 10 rows in each of 4 groups.
  In SUM(total), values are clamped to the range from 0 to 500000 and rounded to steps of 1.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = trunc_month(to_timestamp(day)): f0 = rows()
      where and(at_most(1998-01-01, day), one_of(trunc_month(to_timestamp(day)), 1998-01-01 00:00:00, 1998-10-01 00:00:00, 1998-11-01 00:00:00, 1998-12-01 00:00:00, 1998-02-01 00:00:00, 1998-03-01 00:00:00, 1998-04-01 00:00:00, 1998-05-01 00:00:00, 1998-06-01 00:00:00, 1998-07-01 00:00:00, 1998-08-01 00:00:00, 1998-09-01 00:00:00))
        purchases of customer
  units by the norm of their rows
  33 buckets from 20.02, 28.28, 40, … 1.311e+06; 1/50 of the cost
  about r0, radius 20
then WITH months AS (SELECT r0.k0 AS "month", r0.m0 AS "turnover" FROM r0) SELECT month AS "month", turnover AS "turnover", turnover - LAG(turnover) OVER (ORDER BY month) AS "growth" FROM months ORDER BY 1
*/

-- a running total
SELECT EXTRACT(YEAR FROM day) AS year, SUM(SUM(total)) OVER (ORDER BY EXTRACT(YEAR FROM day)) AS so_far FROM purchases GROUP BY year;
/*
r0 from
  purchases of customer
  by k0 = year(to_timestamp(day)): 1992, 1993, 1994, 1995, 1996, 1997, 1998
  clipped, groups 4, rows 10, l0 clipped, l2 norm
  t0 = sum(total, 0 to 500000 by 1), size 495405594062, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(total)
  Rows are left out where the key from day is NULL or outside its range.
  Each customer's rows per group are clipped together: an l2 norm of at most 20 over all groups, such as 10 rows in each of 4 groups.
  In SUM(total), values are clamped to the range from 0 to 500000 and rounded to steps of 1.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = year(to_timestamp(day)): f0 = rows()
      where and(at_most(year(to_timestamp(day)), 1998), at_most(1992, year(to_timestamp(day))))
        purchases of customer
  units by the norm of their rows
  33 buckets from 20.02, 28.28, 40, … 1.311e+06; 1/50 of the cost
  about r0, radius 20
then SELECT r0.k0 AS "year", SUM(r0.m0) OVER (ORDER BY r0.k0) AS "so_far" FROM r0
*/

-- each segment's share of the whole
SELECT segment, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent FROM purchases GROUP BY segment;
/*
r0 from
  purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = count(*), size 10485760, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where segment is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 17.32 over all groups, such as 10 rows in each of 3 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = segment: f0 = rows()
      where one_of(segment, 'AUTOMOBILE', 'BUILDING', 'MACHINERY')
        purchases of customer
  units by the norm of their rows
  33 buckets from 17.35, 24.49, 34.64, … 1.135e+06; 1/50 of the cost
  about r0, radius 17.32
then SELECT r0.k0 AS "segment", r0.m0 * 100.0 / SUM(r0.m0) OVER () AS "percent" FROM r0
*/

-- the three best nations of each region
SELECT region, name, revenue FROM (
  SELECT region, name, revenue, ROW_NUMBER() OVER (PARTITION BY region ORDER BY revenue DESC) AS place FROM (
    SELECT region, name, SUM(total) AS revenue FROM purchases JOIN nations ON nation = name GROUP BY region, name) AS sums) AS placed
WHERE place <= 3 ORDER BY region, place;
/*
r0 from
  inner join nations (name, region) on nation = name, fanout 1
    purchases of customer
  by k0 = name: FRANCE, GERMANY, JAPAN, PERU
  by k1 = region: AMERICA, ASIA, EUROPE
  clipped, groups 4, rows 10, l0 clipped, l2 norm
  t0 = sum(total, 0 to 500000 by 1), size 378372272416, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(total)
  Rows are left out where region is NULL, or name is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 20 over all groups, such as 10 rows in each of 4 groups.
  In SUM(total), values are clamped to the range from 0 to 500000 and rounded to steps of 1.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = name, k1 = region: f0 = rows()
      where and(one_of(region, 'AMERICA', 'ASIA', 'EUROPE'), one_of(name, 'FRANCE', 'GERMANY', 'JAPAN', 'PERU'))
        inner join nations (name, region) on nation = name, fanout 1
          purchases of customer
  units by the norm of their rows
  33 buckets from 20.02, 28.28, 40, … 1.311e+06; 1/50 of the cost
  about r0, radius 20
then SELECT region AS "region", name AS "name", revenue AS "revenue" FROM (SELECT region AS "region", name AS "name", revenue AS "revenue", ROW_NUMBER() OVER (PARTITION BY region ORDER BY revenue DESC) AS "place" FROM (SELECT r0.k0 AS "region", r0.k1 AS "name", r0.m0 AS "revenue" FROM r0) AS sums) AS placed WHERE place <= 3 ORDER BY 1, place
*/

-- time from shipping to receipt
SELECT mode, AVG(CLIP(received - shipped, 0, 60)) AS days, STDDEV(CLIP(received - shipped, 0, 60)) AS spread
FROM items WHERE received IS NOT NULL GROUP BY mode;
/*
r0 from
  where not(is_null(received))
    items of purchase → purchases.purchase, of customer
  by k0 = mode: AIR, MAIL, RAIL, SHIP, TRUCK
  clipped, groups 5, rows 40, l2 norm, rows capped
  t0 = sum(clip(days_between(clip(shipped, 1992-01-01, 1998-12-31), clip(received, 1992-01-01, 1998-12-31)), 0, 60), 0 to 60 by 1 around 30), size 1200, weight 2
  t1 = count(clip(days_between(clip(shipped, 1992-01-01, 1998-12-31), clip(received, 1992-01-01, 1998-12-31)), 0, 60)), size 40, weight 1/2
  t2 = sum(clip(days_between(clip(shipped, 1992-01-01, 1998-12-31), clip(received, 1992-01-01, 1998-12-31)), 0, 60) squared less 7372800, 0 to 60 by 1/128 around 30), size 294912000, weight 1
  m0 = Mean(total=0, count=1, low=0, high=60): AVG(CLIP(received - shipped, 0, 60))
  m1 = Variance(squares=2, total=0, count=1, low=0, high=60, statistic=stddev_samp): STDDEV(CLIP(received - shipped, 0, 60))
  Rows are left out where mode is NULL or not declared.
  Each customer contributes at most 40 rows per group.
  In AVG(CLIP(received - shipped, 0, 60)) and STDDEV(CLIP(received - shipped, 0, 60)), values are clamped to the range from 0 to 60.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = mode: f0 = rows()
      where and(not(is_null(received)), one_of(mode, 'AIR', 'MAIL', 'RAIL', 'SHIP', 'TRUCK'))
        items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  33 buckets from 89.45, 126.5, 178.9, … 5.862e+06; 1/50 of the cost
  about r0, radius 89.44
then SELECT r0.k0 AS "mode", r0.m0 AS "days", r0.m1 AS "spread" FROM r0
*/

-- baskets: purchases with two parts
SELECT COUNT(*) FROM items a JOIN items b USING (purchase) WHERE a.part = 'p1' AND b.part = 'p2';
/*
r0 from
  where and(equal(part, 'p1'), equal(part_1, 'p2'))
    inner join on the unit and equal(purchase, purchase_1), most 100
      derive part, purchase
        items of purchase → purchases.purchase, of customer
      derive part_1 = part, purchase_1 = purchase
        items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm, rows capped
  t0 = count(*), size 40, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 40 rows.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      where and(equal(part, 'p1'), equal(part_1, 'p2'))
        inner join on the unit and equal(purchase, purchase_1), most 100
          derive part, purchase
            items of purchase → purchases.purchase, of customer
          derive part_1 = part, purchase_1 = purchase
            items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  16 buckets from 40.01, 56.57, 80, … 7241; 1/50 of the cost
  about r0, radius 40
then SELECT r0.m0 AS "count" FROM r0
*/

-- a pivot by FILTER
SELECT segment, COUNT(*) FILTER (WHERE status = 'F') AS finished, COUNT(*) FILTER (WHERE status = 'O') AS open,
  COUNT(*) FILTER (WHERE status NOT IN ('F', 'O')) AS others FROM purchases GROUP BY segment;
/*
r0 from
  purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = count(case(equal(status, 'F'), 1, NULL)), size 10485760, weight 1
  t1 = count(case(equal(status, 'O'), 1, NULL)), size 10485760, weight 1
  t2 = count(case(not(one_of(status, 'F', 'O')), 1, NULL)), size 10485760, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE status = 'F')
  m1 = NoisyCount(total=1): COUNT(*) FILTER(WHERE status = 'O')
  m2 = NoisyCount(total=2): COUNT(*) FILTER(WHERE NOT status IN ('F', 'O'))
  Rows are left out where segment is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 17.32 over all groups, such as 10 rows in each of 3 groups.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = segment: f0 = rows()
      where one_of(segment, 'AUTOMOBILE', 'BUILDING', 'MACHINERY')
        purchases of customer
  units by the norm of their rows
  33 buckets from 17.35, 24.49, 34.64, … 1.135e+06; 1/50 of the cost
  about r0, radius 17.32
then SELECT r0.k0 AS "segment", r0.m0 AS "finished", r0.m1 AS "open", r0.m2 AS "others" FROM r0
*/

-- totals below the groups, by UNION ALL
SELECT segment, COUNT(*) AS n FROM purchases GROUP BY segment UNION ALL SELECT 'all', COUNT(*) FROM purchases;
/*
r0 from
  purchases of customer
  by k0 = segment: AUTOMOBILE, BUILDING, MACHINERY
  clipped, groups 3, rows 10, l2 norm
  t0 = count(*), size 10485760, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where segment is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 17.32 over all groups, such as 10 rows in each of 3 groups.
r1 from
  purchases of customer
  clipped, groups 1, rows 10, l2 norm, rows capped
  t0 = count(*), size 10, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 10 rows.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = segment: f0 = rows()
      where one_of(segment, 'AUTOMOBILE', 'BUILDING', 'MACHINERY')
        purchases of customer
  units by the norm of their rows
  33 buckets from 17.35, 24.49, 34.64, … 1.135e+06; 1/50 of the cost
  about r0, radius 17.32
h1 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      purchases of customer
  units by the norm of their rows
  35 buckets from 10.05, 14.14, 20, … 1.311e+06; 1/50 of the cost
  about r1, radius 10
then SELECT r0.k0 AS "segment", r0.m0 AS "n" FROM r0 UNION ALL SELECT 'all' AS "?column?", r1.m0 AS "count" FROM r1
*/

-- a mean of people instead of rows
SELECT segment, AVG(spent) FROM (
  SELECT customer, segment, SUM(CLIP(total, 0, 100000)) AS spent FROM purchases GROUP BY customer, segment) AS t GROUP BY segment;
/*
refused: line 1, AVG: AVG(spent) needs bounds. Write AVG(CLIP(spent, low, high)) with bounds of your choice.
*/

-- first purchases by year
SELECT EXTRACT(YEAR FROM first) AS year, COUNT(*) AS newcomers FROM (
  SELECT customer, MIN(day) AS first FROM purchases GROUP BY customer) AS t GROUP BY year ORDER BY year;
/*
r0 from
  per unit: f0 = least(clip(day, 1992-01-01, 1998-12-31))
    purchases of customer
  by k0 = year(to_timestamp(f0)): 1992, 1993, 1994, 1995, 1996, 1997, 1998
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from first is NULL or outside its range.
then SELECT r0.k0 AS "year", r0.m0 AS "newcomers" FROM r0 ORDER BY 1
*/

-- the log of a price
SELECT AVG(LN(price + 1)) AS log_price, EXP(AVG(LN(price + 1))) - 1 AS geometric FROM items;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  clipped, groups 1, rows 40, l2 norm, rows capped
  t0 = sum(ln(add(clip(price, 0.0, 100000.0), 1.0)), 0 to 11.5129 by 1/131072 around 2947/512), size 30183640, weight 1
  t1 = count(ln(add(clip(price, 0.0, 100000.0), 1.0))), size 40, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=11.5129): AVG(LN(price + 1))
  Each customer contributes at most 40 rows.
  In AVG(LN(price + 1)), values are clamped to the range from 0 to 11.5129 and rounded to steps of 7.62939e-6.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      items of purchase → purchases.purchase, of customer
  units by the norm of their rows
  35 buckets from 40.01, 56.57, 80, … 5.243e+06; 1/50 of the cost
  about r0, radius 40
then SELECT r0.m0 AS "log_price", EXP(r0.m0) - 1 AS "geometric" FROM r0
*/

-- a correlated aggregate
SELECT COUNT(*) FROM items i WHERE quantity < (SELECT 0.2 * AVG(quantity) FROM items j WHERE j.part = i.part);
/*
refused: line 1, WHERE: private rows cannot be combined with the result of a subquery. Run the inner query first, then write its result as a constant. IN and EXISTS on the unit must be separate conditions, combined with AND.
*/

-- the supplier of the cheapest part
SELECT part, MIN(price) FROM items GROUP BY part;
/*
r0 from
  items of purchase → purchases.purchase, of customer
  by k0 = part: p1, p2, p3
  clipped, groups 3, rows 40, l2 norm
  t0 = histogram(price, 0 to 100000 by 2, 9 to the 5), size 629145600, weight 5
  m0 = Quantile(total=0, target=0, method=tree, kind=real, origin=None): MIN(price)
  Rows are left out where part is NULL or not declared.
  Each customer contributes at most 40 rows per group.
  In MIN(price), values are clamped to the range from 0 to 100000 and rounded to steps of 2.
then SELECT r0.k0 AS "part", r0.m0 AS "min" FROM r0
*/
