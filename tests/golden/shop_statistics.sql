-- policy: SHOP

-- a correlation needs six totals, over the rows where both values are known
SELECT category, CORR(amount, quantity) AS r FROM orders GROUP BY category;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  clipped, groups 3, rows 20, l2 norm, rows capped
  t0 = sum(multiply(subtract(clip(case(not(is_null(quantity)), amount, NULL), 0.0, 500.0), 250.0), subtract(clip(to_real(case(not(is_null(amount)), quantity, NULL)), 1.0, 10.0), 5.5)), -1125 to 1125 by 1/512), size 11520000, weight 1
  t1 = sum(case(not(is_null(amount)), quantity, NULL), 1 to 10 by 1/2 around 11/2), size 180, weight 1
  t2 = sum(case(not(is_null(quantity)), amount, NULL), 0 to 500 by 1/100 around 250), size 500000, weight 1
  t3 = count(case(not(is_null(amount)), quantity, NULL)), size 20, weight 1/4
  t4 = sum(case(not(is_null(amount)), quantity, NULL) squared less 2654208, 1 to 10 by 1/512 around 11/2), size 53084160, weight 1
  t5 = sum(case(not(is_null(quantity)), amount, NULL) squared less 4882812, 0 to 500 by 2/25 around 250), size 97656260, weight 1
  m0 = PairMeasure(products=0, x=1, y=2, count=3, x_squares=4, y_squares=5, x_ends=(Fraction(1, 1), Fraction(10, 1)), y_ends=(Fraction(0, 1), Fraction(500, 1)), statistic=corr): CORR(amount, quantity)
  Rows are left out where category is NULL or not declared.
  Each customer contributes at most 20 rows per group.
  In CORR(amount, quantity), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
  In CORR(amount, quantity), values are clamped to the range from 1 to 10.
then SELECT r0.k0 AS "category", r0.m0 AS "r" FROM r0
*/

-- covariance, slope and correlation share their totals, also with a mean and a variance
SELECT COVAR_SAMP(amount, discount), REGR_SLOPE(amount, discount), CORR(discount, amount), AVG(amount), VAR_POP(discount) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(multiply(subtract(clip(case(not(is_null(amount)), discount, NULL), 0.0, 1.0), 0.5), subtract(clip(case(not(is_null(discount)), amount, NULL), 0.0, 500.0), 250.0)), -125 to 125 by 1/8192), size 20480000, weight 3
  t1 = sum(case(not(is_null(amount)), discount, NULL), 0 to 1 by 9.53674e-07 around 1/2), size 10485760, weight 3
  t2 = sum(case(not(is_null(discount)), amount, NULL), 0 to 500 by 1/100 around 250), size 500000, weight 3
  t3 = count(case(not(is_null(amount)), discount, NULL)), size 20, weight 3/4
  t4 = sum(case(not(is_null(amount)), discount, NULL) squared less 8388608, 0 to 1 by 1/8192 around 1/2), size 167772160, weight 2
  t5 = sum(case(not(is_null(discount)), amount, NULL) squared less 4882812, 0 to 500 by 2/25 around 250), size 97656260, weight 1
  t6 = sum(amount, 0 to 500 by 1/100 around 250), size 500000, weight 1
  t7 = count(amount), size 20, weight 1/4
  t8 = sum(discount, 0 to 1 by 9.53674e-07 around 1/2), size 10485760, weight 1
  t9 = count(discount), size 20, weight 1/4
  t10 = sum(discount squared less 8388608, 0 to 1 by 1/8192 around 1/2), size 167772160, weight 1
  m0 = PairMeasure(products=0, x=1, y=2, count=3, x_squares=None, y_squares=None, x_ends=(Fraction(0, 1), Fraction(1, 1)), y_ends=(Fraction(0, 1), Fraction(500, 1)), statistic=covar_samp): COVAR_SAMP(amount, discount)
  m1 = PairMeasure(products=0, x=1, y=2, count=3, x_squares=4, y_squares=None, x_ends=(Fraction(0, 1), Fraction(1, 1)), y_ends=(Fraction(0, 1), Fraction(500, 1)), statistic=regr_slope): REGR_SLOPE(amount, discount)
  m2 = PairMeasure(products=0, x=2, y=1, count=3, x_squares=5, y_squares=4, x_ends=(Fraction(0, 1), Fraction(500, 1)), y_ends=(Fraction(0, 1), Fraction(1, 1)), statistic=corr): CORR(discount, amount)
  m3 = Mean(total=6, count=7, low=0, high=500): AVG(amount)
  m4 = Variance(squares=10, total=8, count=9, low=0, high=1, statistic=var_pop): VAR_POP(discount)
  Each customer contributes at most 20 rows.
  In COVAR_SAMP(amount, discount), REGR_SLOPE(amount, discount), CORR(discount, amount) and AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
  In COVAR_SAMP(amount, discount), REGR_SLOPE(amount, discount), CORR(discount, amount) and VAR_POP(discount), values are clamped to the range from 0 to 1 and rounded to steps of 9.53674e-7.
then SELECT r0.m0 AS "covar_samp", r0.m1 AS "regr_slope", r0.m2 AS "corr", r0.m3 AS "avg", r0.m4 AS "var_pop" FROM r0
*/

-- a value that may be NULL leaves out its partner
SELECT REGR_INTERCEPT(amount, rating), REGR_COUNT(amount, rating), REGR_AVGX(amount, rating), REGR_AVGY(amount, rating) FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(multiply(subtract(clip(case(not(is_null(rating)), amount, NULL), 0.0, 500.0), 250.0), subtract(clip(to_real(case(not(is_null(amount)), rating, NULL)), 1.0, 5.0), 3.0)), -500 to 500 by 1/2048), size 20480000, weight 1
  t1 = sum(case(not(is_null(amount)), rating, NULL), 1 to 5 by 1 around 3), size 40, weight 2
  t2 = sum(case(not(is_null(rating)), amount, NULL), 0 to 500 by 1/100 around 250), size 500000, weight 2
  t3 = count(case(not(is_null(amount)), rating, NULL)), size 20, weight 3/2
  t4 = sum(case(not(is_null(amount)), rating, NULL) squared less 8388608, 1 to 5 by 1/2048 around 3), size 167772160, weight 1
  t5 = count(case(not(is_null(rating)), amount, NULL)), size 20, weight 1/4
  m0 = PairMeasure(products=0, x=1, y=2, count=3, x_squares=4, y_squares=None, x_ends=(Fraction(1, 1), Fraction(5, 1)), y_ends=(Fraction(0, 1), Fraction(500, 1)), statistic=regr_intercept): REGR_INTERCEPT(amount, rating)
  m1 = NoisyCount(total=3): REGR_COUNT(amount, rating)
  m2 = Mean(total=1, count=3, low=1, high=5): REGR_AVGX(amount, rating)
  m3 = Mean(total=2, count=5, low=0, high=500): REGR_AVGY(amount, rating)
  Each customer contributes at most 20 rows.
  In REGR_INTERCEPT(amount, rating) and REGR_AVGY(amount, rating), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
  In REGR_INTERCEPT(amount, rating) and REGR_AVGX(amount, rating), values are clamped to the range from 1 to 5.
then SELECT r0.m0 AS "regr_intercept", r0.m1 AS "regr_count", r0.m2 AS "regr_avgx", r0.m3 AS "regr_avgy" FROM r0
*/

-- a condition, and bounds of the query
SELECT REGR_R2(CLIP(weight, 0, 50), quantity) FILTER (WHERE paid) AS r2 FROM orders;
/*
r0 from
  orders of user
  clipped, groups 1, rows 20, l2 norm, rows capped
  t0 = sum(multiply(subtract(clip(case(and(paid, not(is_null(quantity))), weight, NULL), 0.0, 50.0), 25.0), subtract(clip(to_real(case(and(paid, not(is_null(weight))), quantity, NULL)), 1.0, 10.0), 5.5)), -225/2 to 225/2 by 1/8192), size 18432000, weight 1
  t1 = sum(case(and(paid, not(is_null(weight))), quantity, NULL), 1 to 10 by 1/2 around 11/2), size 180, weight 1
  t2 = sum(case(and(paid, not(is_null(quantity))), weight, NULL), 0 to 50 by 1/32768 around 25), size 16384000, weight 1
  t3 = count(case(and(paid, not(is_null(quantity))), weight, NULL)), size 20, weight 1/4
  t4 = sum(case(and(paid, not(is_null(weight))), quantity, NULL) squared less 2654208, 1 to 10 by 1/512 around 11/2), size 53084160, weight 1
  t5 = sum(case(and(paid, not(is_null(quantity))), weight, NULL) squared less 5120000, 0 to 50 by 1/128 around 25), size 102400000, weight 1
  m0 = PairMeasure(products=0, x=1, y=2, count=3, x_squares=4, y_squares=5, x_ends=(Fraction(1, 1), Fraction(10, 1)), y_ends=(Fraction(0, 1), Fraction(50, 1)), statistic=regr_r2): REGR_R2(CLIP(weight, 0, 50), quantity) FILTER(WHERE paid)
  Each customer contributes at most 20 rows.
  In REGR_R2(CLIP(weight, 0, 50), quantity) FILTER(WHERE paid), values are clamped to the range from 0 to 50 and rounded to steps of 3.05176e-5.
  In REGR_R2(CLIP(weight, 0, 50), quantity) FILTER(WHERE paid), values are clamped to the range from 1 to 10.
then SELECT r0.m0 AS "r2" FROM r0
*/

-- both values of a pair need bounds
SELECT CORR(amount, weight) FROM orders;
/*
refused: line 1, CORR: weight in CORR needs bounds. Write CLIP(weight, low, high) with bounds of your choice, or ask the owner to declare between.
*/

-- a pair has two values
SELECT REGR_SLOPE(amount) FROM orders;
/*
refused: line 1, REGR_SLOPE: REGR_SLOPE takes two expressions. Write REGR_SLOPE(y, x).
*/

-- subtotals are computed from the finest groups
SELECT category, paid, GROUPING(category, paid) AS level, COUNT(*) AS n, AVG(amount) FROM orders GROUP BY ROLLUP (category, paid);
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  by k1 = paid: False, True
  clipped, groups 5, rows 20, l0 clipped, l2 norm, rows capped
  t0 = count(*), size 19144291, weight 1
  t1 = sum(amount, 0 to 500 by 1/100 around 250), size 59825909214, weight 1
  t2 = count(amount), size 19144291, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=500): AVG(amount)
  Rows are left out where category is NULL or not declared, or paid is NULL.
  Each customer contributes at most 20 rows per group.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
  In AVG(amount), values are clamped to the range from 0 to 500 and rounded to steps of 0.01.
  Subtotals are over the groups that are shown.
then SELECT r0.k0 AS "category", r0.k1 AS "paid", (1 * r0.g1 + 2 * r0.g0) AS "level", r0.m0 AS "n", r0.m1 AS "avg" FROM r0
*/

-- grouping sets are crossed with each other and with plain keys
SELECT category, paid, rating, COUNT(*) FROM orders GROUP BY category, CUBE (paid, rating) HAVING GROUPING(rating) = 1;
/*
r0 from
  orders of user
  by k0 = category: food, books, toys
  by k1 = paid: False, True
  by k2 = rating: 1, 2, 3, 4, 5, None
  clipped, groups 5, rows 20, l0 clipped, l2 norm
  t0 = count(*), size 7815624, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where category is NULL or not declared, or paid is NULL, or rating is not declared.
  Each customer's rows per group are clipped together: an l2 norm of at most 44.72 over all groups, such as 20 rows in each of 5 groups.
  Subtotals are over the groups that are shown.
then SELECT r0.k0 AS "category", r0.k1 AS "paid", r0.k2 AS "rating", r0.m0 AS "count" FROM r0 WHERE (1 * r0.g2) = 1
*/

-- a quantile of several groups does not follow from theirs
SELECT category, MEDIAN(amount) FROM orders GROUP BY ROLLUP (category);
/*
refused: line 1, GROUP BY: subtotals of MEDIAN(amount) do not follow from its groups. Leave it out, or write one SELECT per grouping set and combine them with UNION ALL.
*/
