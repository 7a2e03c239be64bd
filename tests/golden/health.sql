-- policy: HOSPITAL

-- admissions by month and urgency
SELECT DATE_TRUNC('month', admitted) AS month, urgent, COUNT(*) FROM encounters WHERE admitted >= '2025-01-01' GROUP BY month, urgent ORDER BY 1, 2;
/*
r0 from
  where at_most(2025-01-01 00:00:00, admitted)
    encounters of patient_id
  by k0 = urgent: False, True
  by k1 = trunc_month(admitted): 2025-01-01 00:00:00, 2025-02-01 00:00:00, 2025-03-01 00:00:00, … 2026-06-01 00:00:00 (18)
  clipped, groups 4, rows 12, l0 clipped, l2 norm
  t0 = count(*), size 4194304, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from admitted is outside its range, or urgent is NULL.
  Each patient's rows per group are clipped together: an l2 norm of at most 24 over all groups, such as 12 rows in each of 4 groups.
then SELECT r0.k0 AS "month", r0.k1 AS "urgent", r0.m0 AS "count" FROM r0 ORDER BY 1, 2
*/

-- length of stay by age
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS who, AVG(days) AS stay, STDDEV(days) AS spread,
  COUNT(DISTINCT patient_id) AS patients FROM encounters GROUP BY who;
/*
r0 from
  encounters of patient_id
  by k0 = case(less(age, 18), 'child', less(age, 65), 'adult', 'senior'): child, adult, senior
  clipped, groups 3, rows 12, l2 norm, rows capped
  t0 = sum(days, 0 to 365 by 1/2 around 365/2), size 4380, weight 2
  t1 = count(days), size 12, weight 1/2
  t2 = sum(days squared less 4263200, 0 to 365 by 1/16 around 365/2), size 51158400, weight 1
  t3 = count_units(*), size 1, weight 1
  m0 = Mean(total=0, count=1, low=0, high=365): AVG(days)
  m1 = Variance(squares=2, total=0, count=1, low=0, high=365, statistic=stddev_samp): STDDEV(days)
  m2 = NoisyCount(total=3): COUNT(DISTINCT patient_id)
  Each patient contributes at most 12 rows per group.
  In AVG(days) and STDDEV(days), values are clamped to the range from 0 to 365.
then SELECT r0.k0 AS "who", r0.m0 AS "stay", r0.m1 AS "spread", r0.m2 AS "patients" FROM r0
*/

-- long stays by chapter
SELECT chapter, 100.0 * SUM(CASE WHEN days > 30 THEN 1 ELSE 0 END) / COUNT(*) AS percent
FROM encounters e JOIN icd10 i ON e.icd = i.code GROUP BY chapter HAVING COUNT(*) > 100 ORDER BY percent DESC;
/*
r0 from
  inner join icd10 (code, chapter) on icd = code, fanout 1
    encounters of patient_id
  by k0 = chapter: 1, 2
  clipped, groups 2, rows 12, l2 norm, rows capped
  t0 = sum(case(less(30, clip(days, 0, 365)), 1, 0), 0 to 1 by 1/2 around 1/2), size 12, weight 1/4
  t1 = count(*), size 12, weight 5/4
  m0 = NoisySum(total=0, kind=whole, count=1): SUM(CASE WHEN days > 30 THEN 1 ELSE 0 END)
  m1 = NoisyCount(total=1): COUNT(*)
  Rows are left out where chapter is NULL or outside its range.
  Each patient contributes at most 12 rows per group.
  In SUM(CASE WHEN days > 30 THEN 1 ELSE 0 END), values are clamped to the range from 0 to 1.
then SELECT r0.k0 AS "chapter", 100.0 * r0.m0 / r0.m1 AS "percent" FROM r0 WHERE r0.m1 > 100 ORDER BY 2 DESC
*/

-- readmissions
SELECT COUNT(*) FILTER (WHERE n > 1) * 1.0 / COUNT(*) AS readmitted FROM (
  SELECT patient_id, COUNT(*) AS n FROM encounters GROUP BY patient_id) AS t;
/*
r0 from
  per unit: f0 = rows()
    encounters of patient_id
  not clipped, groups 1, rows 1
  t0 = count(case(less(1, f0), 1, NULL)), size 1, weight 1
  t1 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE n > 1)
  m1 = NoisyCount(total=1): COUNT(*)
then SELECT r0.m0 * 1.0 / r0.m1 AS "readmitted" FROM r0
*/

-- urgent admissions by hour
SELECT EXTRACT(HOUR FROM admitted) AS hour, COUNT(*) FROM encounters WHERE urgent GROUP BY hour ORDER BY hour;
/*
r0 from
  where urgent
    encounters of patient_id
  by k0 = hour(admitted): 0, 1, 2, … 23 (24)
  clipped, groups 4, rows 12, l0 clipped, l2 norm
  t0 = count(*), size 5136952, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from admitted is NULL.
  Each patient's rows per group are clipped together: an l2 norm of at most 24 over all groups, such as 12 rows in each of 4 groups.
then SELECT r0.k0 AS "hour", r0.m0 AS "count" FROM r0 ORDER BY 1
*/

-- the mean value of a test by ten years of age
SELECT e.age / 10 * 10 AS decade, AVG(CLIP(l.value, 0, 500)) AS glucose
FROM labs l JOIN encounters e ON l.encounter = e.id WHERE l.loinc = '2345-7' GROUP BY decade ORDER BY decade;
/*
r0 from
  where equal(loinc, '2345-7')
    inner join on the unit and equal(encounter, id), most 100
      derive encounter, loinc, value = inside(value, 0.0, 10000.0)
        labs of encounter → encounters.id, of patient_id
      derive age, id
        encounters of patient_id
  by k0 = multiply(divide(age, 10), 10): 0, 10, 20, … 110 (12)
  clipped, groups 12, rows 50, l2 norm, rows capped
  t0 = sum(value, 0 to 500 by 1/100 around 250), size 1250000, weight 1
  t1 = count(value), size 50, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=500): AVG(CLIP(l.value, 0, 500))
  Rows are left out where the key from age is NULL or outside its range.
  Each patient contributes at most 50 rows per group.
then SELECT r0.k0 AS "decade", r0.m0 AS "glucose" FROM r0 ORDER BY 1
*/

-- abnormal tests of each kind
SELECT loinc, COUNT(*) FILTER (WHERE value > 200) AS high, COUNT(*) FILTER (WHERE value < 60) AS low, COUNT(*) AS n FROM labs GROUP BY loinc;
/*
r0 from
  derive loinc, value = inside(value, 0.0, 10000.0)
    labs of encounter → encounters.id, of patient_id
  by k0 = loinc: 2345-7, 718-7
  clipped, groups 2, rows 50, l2 norm
  t0 = count(case(less(200.0, value), 1, NULL)), size 52428800, weight 1
  t1 = count(case(less(value, 60.0), 1, NULL)), size 52428800, weight 1
  t2 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE value > 200)
  m1 = NoisyCount(total=1): COUNT(*) FILTER(WHERE value < 60)
  m2 = NoisyCount(total=2): COUNT(*)
  Rows are left out where loinc is NULL or not declared.
  Each patient's rows per group are clipped together: an l2 norm of at most 70.71 over all groups, such as 50 rows in each of 2 groups.
then SELECT r0.k0 AS "loinc", r0.m0 AS "high", r0.m1 AS "low", r0.m2 AS "n" FROM r0
*/

-- patients with a high value who were admitted urgently
SELECT COUNT(DISTINCT e.patient_id) FROM encounters e JOIN labs l ON l.encounter = e.id WHERE e.urgent AND l.value > 300;
/*
r0 from
  where and(urgent, less(300.0, value))
    inner join on the unit and equal(encounter, id), most 100
      derive id, urgent
        encounters of patient_id
      derive encounter, value = inside(value, 0.0, 10000.0)
        labs of encounter → encounters.id, of patient_id
  clipped, groups 1, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT e.patient_id)
then SELECT r0.m0 AS "count" FROM r0
*/

-- patients with both tests
SELECT COUNT(*) FROM (
  SELECT e.patient_id, COUNT(DISTINCT l.loinc) AS kinds FROM labs l JOIN encounters e ON l.encounter = e.id GROUP BY e.patient_id) AS t
WHERE kinds = 2;
/*
r0 from
  where equal(f0, 2)
    per unit: f0 = distinct(loinc)
      inner join on the unit and equal(encounter, id), most 100
        derive encounter, loinc
          labs of encounter → encounters.id, of patient_id
        derive id
          encounters of patient_id
  not clipped, groups 1, rows 1
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
then SELECT r0.m0 AS "count" FROM r0
*/

-- the worst value of each patient, averaged
WITH worst AS (SELECT e.patient_id, MAX(CLIP(l.value, 0, 1000)) AS v FROM labs l JOIN encounters e ON e.id = l.encounter GROUP BY e.patient_id)
SELECT AVG(v) AS mean, COUNT(*) FILTER (WHERE v >= 500) AS alarming FROM worst;
/*
r0 from
  per unit: f0 = greatest(clip(value, 0.0, 1000.0))
    inner join on the unit and equal(encounter, id), most 100
      derive encounter, value = inside(value, 0.0, 10000.0)
        labs of encounter → encounters.id, of patient_id
      derive id
        encounters of patient_id
  not clipped, groups 1, rows 1
  t0 = sum(f0, 0 to 1000 by 1/100 around 500), size 50000, weight 1
  t1 = count(f0), size 1, weight 1/4
  t2 = count(case(at_most(500.0, f0), 1, NULL)), size 1, weight 1
  m0 = Mean(total=0, count=1, low=0, high=1000): AVG(v)
  m1 = NoisyCount(total=2): COUNT(*) FILTER(WHERE v >= 500)
  In AVG(v), values are clamped to the range from 0 to 1000 and rounded to steps of 0.01.
then SELECT r0.m0 AS "mean", r0.m1 AS "alarming" FROM r0
*/

-- deaths are not declared
SELECT COUNT(*) FROM encounters WHERE died;
/*
refused: line 1, WHERE: column "died" does not exist. Did you mean id or admitted?
*/

-- still in hospital
SELECT COUNT(*) FROM encounters WHERE discharged IS NULL;
/*
r0 from
  where is_null(discharged)
    encounters of patient_id
  clipped, groups 1, rows 12, l2 norm, rows capped
  t0 = count(*), size 12, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each patient contributes at most 12 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- admissions in the last winter by week
SELECT DATE_TRUNC('week', admitted) AS week, COUNT(*) AS n FROM encounters
WHERE admitted BETWEEN '2025-12-01' AND '2026-02-28' GROUP BY week ORDER BY week;
/*
r0 from
  where and(at_most(admitted, 2026-02-28 00:00:00), at_most(2025-12-01 00:00:00, admitted))
    encounters of patient_id
  by k0 = trunc_week(admitted): 2025-12-01 00:00:00, 2025-12-08 00:00:00, 2025-12-15 00:00:00, … 2026-02-23 00:00:00 (13)
  clipped, groups 4, rows 12, l0 clipped, l2 norm
  t0 = count(*), size 6979743, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from admitted is outside its range.
  Each patient's rows per group are clipped together: an l2 norm of at most 24 over all groups, such as 12 rows in each of 4 groups.
then SELECT r0.k0 AS "week", r0.m0 AS "n" FROM r0 ORDER BY 1
*/

-- a ratio of two groups
SELECT AVG(days) FILTER (WHERE urgent) / AVG(days) FILTER (WHERE NOT urgent) AS ratio FROM encounters;
/*
r0 from
  encounters of patient_id
  clipped, groups 1, rows 12, l2 norm, rows capped
  t0 = sum(case(urgent, days, NULL), 0 to 365 by 1/2 around 365/2), size 4380, weight 1
  t1 = count(case(urgent, days, NULL)), size 12, weight 1/4
  t2 = sum(case(not(urgent), days, NULL), 0 to 365 by 1/2 around 365/2), size 4380, weight 1
  t3 = count(case(not(urgent), days, NULL)), size 12, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=365): AVG(days) FILTER(WHERE urgent)
  m1 = Mean(total=2, count=3, low=0, high=365): AVG(days) FILTER(WHERE NOT urgent)
  Each patient contributes at most 12 rows.
  In AVG(days) FILTER(WHERE urgent) and AVG(days) FILTER(WHERE NOT urgent), values are clamped to the range from 0 to 365.
then SELECT r0.m0 / r0.m1 AS "ratio" FROM r0
*/

-- mean age of the patients, not of their stays
SELECT AVG(age) FROM (SELECT patient_id, MAX(age) AS age FROM encounters GROUP BY patient_id) AS t;
/*
r0 from
  per unit: f0 = greatest(clip(age, 0, 119))
    encounters of patient_id
  not clipped, groups 1, rows 1
  t0 = sum(f0, 0 to 119 by 1/2 around 119/2), size 119, weight 1
  t1 = count(f0), size 1, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=119): AVG(age)
  In AVG(age), values are clamped to the range from 0 to 119.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- beds in use on a day
SELECT COUNT(*) FROM encounters WHERE admitted < '2026-01-15' AND (discharged >= '2026-01-15' OR discharged IS NULL);
/*
r0 from
  where and(less(admitted, 2026-01-15 00:00:00), or(is_null(discharged), at_most(2026-01-15 00:00:00, discharged)))
    encounters of patient_id
  clipped, groups 1, rows 12, l2 norm, rows capped
  t0 = count(*), size 12, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each patient contributes at most 12 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- days between two stays need windows
SELECT AVG(gap) FROM (SELECT admitted - LAG(discharged) OVER (PARTITION BY patient_id ORDER BY admitted) AS gap FROM encounters) AS t;
/*
refused: line 1, SELECT: window functions are not allowed on private rows. Aggregate first, then use window functions on the result.
*/
