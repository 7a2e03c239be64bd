-- policy: SHOP

-- a public table by its key
SELECT r.country, COUNT(*) FROM orders o JOIN regions r ON o.region = r.name GROUP BY r.country;
/*
r0 from
  inner join regions (name, country) on region = name, fanout 1
    derive region
      orders of user
  by k0 = country: A, B
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where country is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
then SELECT r0.k0 AS "country", r0.m0 AS "count" FROM r0
*/

-- from the other side
SELECT r.country, COUNT(*) FROM regions r JOIN orders o ON o.region = r.name GROUP BY r.country;
/*
r0 from
  inner join regions (name, country) on region = name, fanout 1
    derive region
      orders of user
  by k0 = country: A, B
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where country is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
then SELECT r0.k0 AS "country", r0.m0 AS "count" FROM r0
*/

-- a comma, and the condition in WHERE
SELECT r.country, SUM(o.amount) FROM orders o, regions r WHERE o.region = r.name AND r.people > 1000 GROUP BY r.country;
/*
r0 from
  where less(1000, people)
    inner join regions (name, country, people) on region = name, fanout 1
      derive amount, region
        orders of user
  by k0 = country: A, B
  clipped, groups 2, rows 20, l2 norm
  t0 = sum(amount, 0 to 500 by 1/100), size 65536000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(o.amount)
  Rows are left out where country is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
  In SUM(o.amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.k0 AS "country", r0.m0 AS "sum" FROM r0
*/

-- LEFT keeps the private side, and what has no partner is a group
SELECT country, COUNT(*) FROM orders LEFT JOIN regions ON region = name GROUP BY country;
/*
r0 from
  left join regions (name, country) on region = name, fanout 1
    derive region
      orders of user
  by k0 = country: A, B, None
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "country", r0.m0 AS "count" FROM r0
*/

-- RIGHT with the private side on the right
SELECT country, COUNT(*) FROM regions RIGHT JOIN orders ON region = name GROUP BY country;
/*
r0 from
  left join regions (name, country) on region = name, fanout 1
    derive region
      orders of user
  by k0 = country: A, B, None
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "country", r0.m0 AS "count" FROM r0
*/

-- USING
SELECT category, AVG(price) FROM orders JOIN prices USING (category) GROUP BY category;
/*
r0 from
  inner join prices (category_1 = category, price) on category = category_1, fanout 2
    derive category
      orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm, rows capped
  t0 = sum(price, 3/2 to 30 by 1/65536 around 63/4), size 18677760, weight 1
  t1 = count(price), size 20, weight 1/4
  m0 = Mean(total=0, count=1, low=3/2, high=30): AVG(price)
  Rows are left out where category is NULL or not declared.
  Each customer contributes at most 20 rows per group.
then SELECT r0.k0 AS "category", r0.m0 AS "avg" FROM r0
*/

-- an expression as the key
SELECT country, COUNT(*) FROM orders JOIN regions ON LOWER(region) = name GROUP BY country;
/*
r0 from
  inner join regions (name, country) on c0 = name, fanout 1
    derive c0 = lower(region)
      orders of user
  by k0 = country: A, B
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where country is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
then SELECT r0.k0 AS "country", r0.m0 AS "count" FROM r0
*/

-- other conditions beside the key
SELECT COUNT(*) FROM orders o LEFT JOIN prices p ON o.category = p.category AND p.year = 2025 AND o.amount > p.price;
/*
r0 from
  left join prices (category_1 = category, price, year) on category = category_1 and and(equal(year, 2025), less(price, amount)), fanout 2
    derive amount, category
      orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- no equality: every pair is tried
SELECT COUNT(*) FROM orders o JOIN prices p ON o.amount > p.price;
/*
r0 from
  where less(price, amount)
    inner join prices (price) on anything, fanout 4
      derive amount
        orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- CROSS JOIN with a public table
SELECT p.year, COUNT(*) FROM orders CROSS JOIN prices p GROUP BY p.year;
/*
r0 from
  inner join prices (year) on anything, fanout 4
    derive user
      orders of user
  by k0 = year: 2024, 2025
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where year is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
then SELECT r0.k0 AS "year", r0.m0 AS "count" FROM r0
*/

-- a query on a public table
SELECT big.name, COUNT(*) FROM orders JOIN (SELECT name, people FROM regions WHERE people > 1000) AS big ON region = big.name GROUP BY 1;
/*
r0 from
  inner join regions (name, people) where less(1000, people) on region = name, fanout 1
    derive region
      orders of user
  by k0 = name: east, north, south
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where name is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "name", r0.m0 AS "count" FROM r0
*/

-- the same in WITH, with other names
WITH big (place) AS (SELECT name FROM regions WHERE people > 1000) SELECT place, COUNT(*) FROM orders JOIN big ON region = place GROUP BY 1;
/*
r0 from
  inner join regions (name, people) where less(1000, people) on region = name, fanout 1
    derive region
      orders of user
  by k0 = name: east, north, south
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where place is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "place", r0.m0 AS "count" FROM r0
*/

-- two public tables
SELECT r.country, p.year, COUNT(*) FROM orders o JOIN regions r ON o.region = r.name JOIN prices p ON p.category = o.category GROUP BY 1, 2;
/*
r0 from
  inner join prices (category_1 = category, year) on category = category_1, fanout 2
    inner join regions (name, country) on region = name, fanout 1
      derive category, region
        orders of user
  by k0 = country: A, B
  by k1 = year: 2024, 2025
  clipped, groups 4, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where country is NULL, or year is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 40 over all groups, such as 20 rows in each of 4 groups.
then SELECT r0.k0 AS "country", r0.k1 AS "year", r0.m0 AS "count" FROM r0
*/

-- two private tables on the unit
SELECT o.category, COUNT(*) FROM orders o JOIN visits v ON o.user = v.visitor AND v.time < o.time GROUP BY o.category;
/*
r0 from
  where less(time_1, time)
    inner join on the unit, most 100
      derive category, time
        orders of user
      derive time_1 = time
        visits of visitor
  by k0 = category: food, books, toys
  clipped, groups 3, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 86.6 over all groups, such as 50 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- a LEFT JOIN of private tables keeps rows without a partner
SELECT v.category, COUNT(*) FROM orders o LEFT JOIN visits v ON v.visitor = o.user AND v.seconds > 60 GROUP BY v.category;
/*
r0 from
  left join on the unit and less(60, seconds), most 100
    derive user
      orders of user
    derive category, seconds
      visits of visitor
  by k0 = category: food, books, toys, None
  clipped, groups 4, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 100 over all groups, such as 50 rows in each of 4 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- a RIGHT JOIN of private tables
SELECT o.category, COUNT(*) FROM visits v RIGHT JOIN orders o ON v.visitor = o.user GROUP BY o.category;
/*
r0 from
  left join on the unit, most 100
    derive category
      orders of user
    derive visitor
      visits of visitor
  by k0 = category: food, books, toys
  clipped, groups 3, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 86.6 over all groups, such as 50 rows in each of 3 groups.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- the unit in WHERE
SELECT COUNT(*) FROM orders o, visits v WHERE o.user = v.visitor;
/*
r0 from
  inner join on the unit, most 100
    derive user
      orders of user
    derive visitor
      visits of visitor
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 50 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- a table with itself
SELECT COUNT(*) FROM orders a JOIN orders b ON a.user = b.user AND a.time < b.time AND a.category = b.category;
/*
r0 from
  where less(time, time_1)
    inner join on the unit and equal(category, category_1), most 100
      derive category, time
        orders of user
      derive category_1 = category, time_1 = time
        orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- IN on the unit
SELECT COUNT(*) FROM orders WHERE user IN (SELECT visitor FROM visits WHERE page = '/home');
/*
r0 from
  units with a row in the second
    orders of user
    where equal(page, '/home')
      visits of visitor
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- NOT IN on the unit
SELECT category, COUNT(DISTINCT user) FROM orders WHERE user NOT IN (SELECT visitor FROM visits) GROUP BY category;
/*
r0 from
  units with no row in the second
    orders of user
    visits of visitor
  by k0 = category: food, books, toys
  clipped, groups 3, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT user)
  Rows are left out where category is NULL or not declared.
then SELECT r0.k0 AS "category", r0.m0 AS "count" FROM r0
*/

-- EXISTS on the unit
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM visits v WHERE v.visitor = o.user AND v.seconds > 100);
/*
r0 from
  units with a row in the second
    orders of user
    where less(100, seconds)
      visits of visitor
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- NOT EXISTS on the unit
SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT * FROM visits WHERE visitor = o.user) AND paid;
/*
r0 from
  where paid
    units with no row in the second
      orders of user
      visits of visitor
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- IN with a query per unit
SELECT SUM(amount) FROM orders WHERE user IN (SELECT user FROM orders GROUP BY user HAVING COUNT(*) > 5);
/*
r0 from
  units with a row in the second
    orders of user
    where less(5, f0)
      per unit: f0 = rows()
        orders of user
  clipped, groups 1, rows 20, l2 norm
  t0 = sum(amount, 0 to 500 by 1/100), size 1000000, weight 1
  m0 = NoisySum(total=0, kind=real, count=None): SUM(amount)
  Each customer contributes at most 20 rows.
  In SUM(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
then SELECT r0.m0 AS "sum" FROM r0
*/

-- the unit may be compared with a constant
SELECT COUNT(*) FROM orders WHERE user = 17;
/*
r0 from
  where equal(user, 17)
    orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- IN a public table's column
SELECT COUNT(*) FROM orders WHERE city IN (SELECT name FROM regions);
/*
r0 from
  where one_of(city, 'east', 'north', 'south')
    orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = count(*), size 20, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each customer contributes at most 20 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- FULL JOIN keeps rows that nobody owns
SELECT COUNT(*) FROM orders FULL JOIN regions ON region = name;
/*
refused: line 1, JOIN: FULL JOIN would keep rows that belong to no privacy unit. Use LEFT JOIN with the private table on the left, or JOIN.
*/

-- LEFT JOIN with the public side kept
SELECT name, COUNT(*) FROM regions LEFT JOIN orders ON region = name GROUP BY name;
/*
refused: line 1, JOIN: this outer join would keep rows of the public table on the left, which belong to no privacy unit. Write private LEFT JOIN public, or JOIN.
*/

-- RIGHT JOIN with the public side kept
SELECT name, COUNT(*) FROM orders RIGHT JOIN regions ON region = name GROUP BY name;
/*
refused: line 1, JOIN: this outer join would keep rows of the public table on the right, which belong to no privacy unit. Write private LEFT JOIN public, or JOIN.
*/

-- two private tables on something else
SELECT COUNT(*) FROM orders o JOIN visits v ON o.category = v.category;
/*
refused: line 1, JOIN: two private tables can be joined only by equality on the whole privacy unit. Add o.user = v.visitor.
*/

-- NATURAL JOIN
SELECT COUNT(*) FROM orders NATURAL JOIN prices;
/*
refused: line 1, JOIN: NATURAL JOIN is not supported. Write JOIN … ON or USING with the conditions.
*/

-- IN on something else than the unit
SELECT COUNT(*) FROM orders WHERE category IN (SELECT category FROM visits);
/*
refused: line 1, WHERE: private rows can be compared with other private rows only on the whole privacy unit. Compare orders.user with the same columns of the inner query, or write a JOIN.
*/

-- EXISTS on more than the unit
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM visits v WHERE v.visitor = o.user AND v.time < o.time);
/*
refused: line 1, EXISTS: EXISTS can refer to the outer query only by equality on the privacy unit. JOIN on the unit with this condition, and GROUP BY the unit.
*/

-- EXISTS on nothing
SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM visits WHERE page = 'x');
/*
refused: line 1, WHERE: private rows can be compared with other private rows only on the whole privacy unit. Compare orders.user with the same columns of the inner query, or write a JOIN.
*/

-- EXISTS that is not a condition of its own
SELECT COUNT(*) FROM orders o WHERE paid OR EXISTS (SELECT 1 FROM visits v WHERE v.visitor = o.user);
/*
refused: line 1, WHERE: private rows cannot be combined with the result of a subquery. Run the inner query first, then write its result as a constant. IN and EXISTS on the unit must be separate conditions, combined with AND.
*/

-- LATERAL
SELECT COUNT(*) FROM orders o, LATERAL (SELECT 1) AS x;
/*
refused: line 1, FROM: LATERAL is not supported. Write a JOIN.
*/

-- a function as a source
SELECT COUNT(*) FROM orders, generate_series(1, 10) AS g;
/*
refused: line 1, FROM: functions and lists are not supported in FROM. Name a table of the policy.
*/

-- a list as a source
SELECT COUNT(*) FROM orders JOIN (VALUES (1), (2)) AS v (x) ON quantity = x;
/*
refused: line 1, FROM: functions and lists are not supported in FROM. Name a table of the policy.
*/

-- TABLESAMPLE
SELECT COUNT(*) FROM orders TABLESAMPLE SYSTEM (10);
/*
refused: line 1, FROM: TABLESAMPLE is not supported. Leave it out: sampling would only reduce accuracy.
*/

-- FOR UPDATE
SELECT COUNT(*) FROM orders FOR UPDATE;
/*
refused: line 1: LOCK is not supported, because queries are read-only. Leave it out.
*/

-- a schema before the table
SELECT COUNT(*) FROM public.orders;
/*
refused: line 1, FROM: schema names are not supported. Write the table's name alone.
*/

-- an ambiguous name
SELECT category, COUNT(*) FROM orders JOIN prices ON orders.category = prices.category GROUP BY category;
/*
refused: line 1, SELECT: column reference "category" is ambiguous. Write orders.category or prices.category.
*/

-- an unknown column, nearly right
SELECT AVG(amuont) FROM orders;
/*
refused: line 1, SELECT: column "amuont" does not exist. Did you mean amount?
*/

-- an unknown table, nearly right
SELECT COUNT(*) FROM order;
/*
refused: line 1, FROM: table "order" does not exist. Did you mean orders?
*/

-- an unknown source
SELECT x.amount FROM orders o GROUP BY x.amount;
/*
refused: line 1, SELECT: missing FROM-clause entry for table "x". Use the names or aliases of FROM.
*/

-- a quoted name must be spelled as it is
SELECT COUNT(*) FROM "Orders";
/*
refused: line 1, FROM: table "Orders" does not exist. Did you mean orders?
*/

-- an unquoted name need not
SELECT CATEGORY, Count(*) FROM ORDERS GROUP BY Category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 34.64 over all groups, such as 20 rows in each of 3 groups.
then SELECT r0.k0 AS "CATEGORY", r0.m0 AS "count" FROM r0
*/

-- a table that was not granted does not exist
-- @by ana
SELECT COUNT(*) FROM visits;
/*
refused: line 1, FROM: table "visits" does not exist. Available: orders, regions, prices.
*/

-- public tables exist for everybody
-- @by ana
SELECT country, COUNT(*) FROM orders JOIN regions ON region = name GROUP BY country;
/*
r0 from
  inner join regions (name, country) on region = name, fanout 1
    derive region
      orders of user
  by k0 = country: A, B
  clipped, groups 2, rows 20, l2 norm
  t0 = count(*), size 20971520, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where country is NULL.
  Each customer's rows per group are clipped together: an l2 norm of at most 28.28 over all groups, such as 20 rows in each of 2 groups.
then SELECT r0.k0 AS "country", r0.m0 AS "count" FROM r0
*/

-- nobody else may ask
-- @by mallory
SELECT COUNT(*) FROM orders;
/*
refused: line 1, FROM: table "orders" does not exist. None are available.
*/

-- a comma beside a RIGHT JOIN
SELECT COUNT(*) FROM prices, regions RIGHT JOIN orders ON region = name;
/*
refused: line 1, FROM: mixing a comma and a RIGHT JOIN in one FROM is ambiguous. Write CROSS JOIN or JOIN … ON instead of the comma.
*/
