-- policy: HOSPITAL

-- through a parent: the child is counted by the parent's owner
SELECT loinc, COUNT(*), AVG(value) FROM labs GROUP BY loinc;
/*
r0 from
  derive loinc, value = inside(value, 0.0, 10000.0)
    labs of encounter → encounters.id, of patient_id
  by k0 = loinc: 2345-7, 718-7
  clipped, groups 2, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  t1 = sum(value, 0 to 10000 by 1/100 around 124992/25), size 25001600, weight 1
  t2 = count(value), size 50, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=10000): AVG(value)
  Rows are left out where loinc is NULL or not declared.
  Each patient contributes at most 50 rows per group.
then SELECT r0.k0 AS "loinc", r0.m0 AS "count", r0.m1 AS "avg" FROM r0
*/

-- a child with its parent, by the key that leads to it
SELECT e.urgent, AVG(l.value), COUNT(DISTINCT e.patient_id) FROM labs l JOIN encounters e ON e.id = l.encounter GROUP BY e.urgent;
/*
r0 from
  inner join on the unit and equal(encounter, id), most 100
    derive encounter, value = inside(value, 0.0, 10000.0)
      labs of encounter → encounters.id, of patient_id
    derive id, urgent
      encounters of patient_id
  by k0 = urgent: False, True
  clipped, groups 2, rows 50, l2 norm, rows capped
  t0 = sum(value, 0 to 10000 by 1/100 around 124992/25), size 25001600, weight 1
  t1 = count(value), size 50, weight 1/4
  t2 = count_units(*), size 1, weight 1
  m0 = Mean(total=0, count=1, low=0, high=10000): AVG(l.value)
  m1 = NoisyCount(total=2): COUNT(DISTINCT e.patient_id)
  Rows are left out where urgent is NULL.
  Each patient contributes at most 50 rows per group.
then SELECT r0.k0 AS "urgent", r0.m0 AS "avg", r0.m1 AS "count" FROM r0
*/

-- a grandchild with its parent
SELECT f.flag, l.loinc, COUNT(*) FROM lab_flags f JOIN labs l USING (lab_id) GROUP BY 1, 2;
/*
r0 from
  inner join on the unit and equal(lab_id, lab_id_1), most 100
    lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
    derive lab_id_1 = lab_id, loinc
      labs of encounter → encounters.id, of patient_id
  by k0 = flag: low, high, critical
  by k1 = loinc: 2345-7, 718-7
  clipped, groups 6, rows 50, l2 norm
  t0 = count(*), size 52428800, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where flag is NULL or not declared, or loinc is NULL or not declared.
  Each patient's rows per group are clipped together: an l2 norm of at most 122.5 over all groups, such as 50 rows in each of 6 groups.
then SELECT r0.k0 AS "flag", r0.k1 AS "loinc", r0.m0 AS "count" FROM r0
*/

-- three generations
SELECT e.age / 20 AS twenties, COUNT(*) FILTER (WHERE f.flag = 'critical') AS critical FROM lab_flags f
JOIN labs l ON f.lab_id = l.lab_id JOIN encounters e ON l.encounter = e.id GROUP BY twenties;
/*
r0 from
  inner join on the unit and equal(encounter, id), most 100
    derive encounter, flag
      inner join on the unit and equal(lab_id, lab_id_1), most 100
        lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
        derive encounter, lab_id_1 = lab_id
          labs of encounter → encounters.id, of patient_id
    derive age, id
      encounters of patient_id
  by k0 = divide(age, 20): 0, 1, 2, 3, 4, 5
  clipped, groups 6, rows 50, l2 norm
  t0 = count(case(equal(flag, 'critical'), 1, NULL)), size 6553600, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE f.flag = 'critical')
  Rows are left out where the key from age is NULL or outside its range.
  Each patient's rows per group are clipped together: an l2 norm of at most 122.5 over all groups, such as 50 rows in each of 6 groups.
then SELECT r0.k0 AS "twenties", r0.m0 AS "critical" FROM r0
*/

-- two children of one parent row
SELECT COUNT(*) FROM labs a JOIN labs b ON a.encounter = b.encounter AND a.taken < b.taken;
/*
r0 from
  where less(taken, taken_1)
    inner join on the unit and equal(encounter, encounter_1), most 100
      derive encounter, taken
        labs of encounter → encounters.id, of patient_id
      derive encounter_1 = encounter, taken_1 = taken
        labs of encounter → encounters.id, of patient_id
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = count(*), size 50, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Each patient contributes at most 50 rows.
then SELECT r0.m0 AS "count" FROM r0
*/

-- a row per parent row
SELECT AVG(CLIP(n, 0, 30)) FROM (SELECT encounter, COUNT(*) AS n FROM labs GROUP BY encounter) AS t;
/*
r0 from
  per unit and k0 = encounter: f0 = rows()
    labs of encounter → encounters.id, of patient_id
  clipped, groups 1, rows 50, l2 norm, rows capped
  t0 = sum(f0, 1 to 30 by 1/2 around 31/2), size 1450, weight 1
  t1 = count(*), size 50, weight 1/4
  m0 = Mean(total=0, count=1, low=1, high=30): AVG(CLIP(n, 0, 30))
  Each patient contributes at most 50 rows.
  In AVG(CLIP(n, 0, 30)), values are clamped to the range from 1 to 30.
then SELECT r0.m0 AS "avg" FROM r0
*/

-- a row per patient, through a join
SELECT COUNT(*) FILTER (WHERE worst > 100) AS bad, COUNT(*) AS all_of_them FROM (
  SELECT e.patient_id, MAX(l.value) AS worst FROM labs l JOIN encounters e ON l.encounter = e.id GROUP BY e.patient_id) AS t;
/*
r0 from
  per unit: f0 = greatest(value)
    inner join on the unit and equal(encounter, id), most 100
      derive encounter, value = inside(value, 0.0, 10000.0)
        labs of encounter → encounters.id, of patient_id
      derive id
        encounters of patient_id
  not clipped, groups 1, rows 1
  t0 = count(case(less(100.0, f0), 1, NULL)), size 1, weight 1
  t1 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*) FILTER(WHERE worst > 100)
  m1 = NoisyCount(total=1): COUNT(*)
then SELECT r0.m0 AS "bad", r0.m1 AS "all_of_them" FROM r0
*/

-- a public table through a reference
SELECT chapter, COUNT(*), AVG(days) FROM encounters JOIN icd10 ON icd = code GROUP BY chapter;
/*
r0 from
  inner join icd10 (code, chapter) on icd = code, fanout 1
    encounters of patient_id
  by k0 = chapter: 1, 2
  clipped, groups 2, rows 12, l2 norm, rows capped
  t0 = count(*), size 12, weight 1
  t1 = sum(days, 0 to 365 by 1/2 around 365/2), size 4380, weight 1
  t2 = count(days), size 12, weight 1/4
  m0 = NoisyCount(total=0): COUNT(*)
  m1 = Mean(total=1, count=2, low=0, high=365): AVG(days)
  Rows are left out where chapter is NULL or outside its range.
  Each patient contributes at most 12 rows per group.
  In AVG(days), values are clamped to the range from 0 to 365.
then SELECT r0.k0 AS "chapter", r0.m0 AS "count", r0.m1 AS "avg" FROM r0
*/

-- ages in tens
SELECT age / 10 * 10 AS decade, AVG(days), STDDEV(days) FROM encounters WHERE urgent GROUP BY decade;
/*
r0 from
  where urgent
    encounters of patient_id
  by k0 = multiply(divide(age, 10), 10): 0, 10, 20, … 110 (12)
  clipped, groups 4, rows 12, l0 clipped, l2 norm, rows capped
  t0 = sum(days, 0 to 365 by 1/2 around 365/2), size 2651632885, weight 2
  t1 = count(days), size 7264747, weight 1/2
  t2 = sum(days squared less 4263200, 0 to 365 by 1/16 around 365/2), size 483923001529, weight 1
  m0 = Mean(total=0, count=1, low=0, high=365): AVG(days)
  m1 = Variance(squares=2, total=0, count=1, low=0, high=365, statistic=stddev_samp): STDDEV(days)
  Rows are left out where the key from age is NULL or outside its range.
  Each patient contributes at most 12 rows per group.
  Each patient's rows per group are clipped together: an l2 norm of at most 24 over all groups, such as 12 rows in each of 4 groups.
  In AVG(days) and STDDEV(days), values are clamped to the range from 0 to 365.
then SELECT r0.k0 AS "decade", r0.m0 AS "avg", r0.m1 AS "stddev" FROM r0
*/

-- missing times are a group
SELECT DATE_TRUNC('year', discharged) AS year, COUNT(*) FROM encounters GROUP BY year;
/*
r0 from
  encounters of patient_id
  by k0 = trunc_year(discharged): 2015-01-01 00:00:00, 2016-01-01 00:00:00, 2017-01-01 00:00:00, … None (13)
  clipped, groups 4, rows 12, l0 clipped, l2 norm
  t0 = count(*), size 6979743, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where the key from discharged is outside its range.
  Each patient's rows per group are clipped together: an l2 norm of at most 24 over all groups, such as 12 rows in each of 4 groups.
then SELECT r0.k0 AS "year", r0.m0 AS "count" FROM r0
*/

-- length of stay from two times
SELECT AVG(CLIP(discharged::date - admitted::date, 0, 60)) AS stay FROM encounters WHERE discharged IS NOT NULL;
/*
r0 from
  where not(is_null(discharged))
    encounters of patient_id
  clipped, groups 1, rows 12, l2 norm, rows capped
  t0 = sum(clip(days_between(to_date(clip(admitted, 2015-01-01 00:00:00, 2026-06-30 23:59:59.999999)), to_date(clip(discharged, 2015-01-01 00:00:00, 2026-06-30 23:59:59.999999))), 0, 60), 0 to 60 by 1 around 30), size 360, weight 1
  t1 = count(clip(days_between(to_date(clip(admitted, 2015-01-01 00:00:00, 2026-06-30 23:59:59.999999)), to_date(clip(discharged, 2015-01-01 00:00:00, 2026-06-30 23:59:59.999999))), 0, 60)), size 12, weight 1/4
  m0 = Mean(total=0, count=1, low=0, high=60): AVG(CLIP(CAST(discharged AS DATE) - CAST(admitted AS DATE), 0, 60))
  Each patient contributes at most 12 rows.
  In AVG(CLIP(CAST(discharged AS DATE) - CAST(admitted AS DATE), 0, 60)), values are clamped to the range from 0 to 60.
then SELECT r0.m0 AS "stay" FROM r0
*/

-- patients with a test
SELECT COUNT(DISTINCT patient_id) FROM encounters WHERE patient_id IN (SELECT e.patient_id FROM labs l JOIN encounters e ON l.encounter = e.id WHERE l.loinc = '718-7');
/*
r0 from
  units with a row in the second
    encounters of patient_id
    where equal(loinc, '718-7')
      inner join on the unit and equal(encounter, id), most 100
        derive encounter, loinc
          labs of encounter → encounters.id, of patient_id
        derive id
          encounters of patient_id
  clipped, groups 1, rows 1, l2 norm
  t0 = count_units(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT patient_id)
then SELECT r0.m0 AS "count" FROM r0
*/

-- the child cannot name its owner
SELECT COUNT(*) FROM encounters WHERE id IN (SELECT encounter FROM labs);
/*
refused: line 1, WHERE: private rows can be compared with other private rows only on the whole privacy unit. Compare encounters.patient_id with the same columns of the inner query, or write a JOIN.
*/

-- a child with a parent on something else
SELECT COUNT(*) FROM labs l JOIN encounters e ON l.taken = e.admitted::date;
/*
refused: line 1, JOIN: two private tables can be joined only by equality on the whole privacy unit. Join on the column that references the parent table.
*/

-- a patient is never shown
SELECT patient_id, COUNT(*) FROM encounters WHERE icd = 'A00' GROUP BY patient_id;
/*
refused: line 1, GROUP BY: each group would be a single privacy unit, and such groups are never released. Group by a column whose values many units share, or count units with COUNT(DISTINCT …).
*/

-- a key of single rows
SELECT id, COUNT(*) FROM encounters GROUP BY id;
/*
refused: line 1, GROUP BY: each group would be a single privacy unit, and such groups are never released. Group by a column whose values many units share, or count units with COUNT(DISTINCT …).
*/

-- no limits are declared: they are chosen automatically
SELECT flag, COUNT(*) FROM lab_flags GROUP BY flag;
/*
r0 from
  lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
  by k0 = flag: low, high, critical
  clipped, groups 1, rows 1, l0 clipped, l2 norm, chosen automatically
  t0 = count(*), size 605395, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  Rows are left out where flag is NULL or not declared.
  The contribution bounds will be chosen privately, from a histogram of contributions that is released first for a part of the cost.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit and k0 = flag: f0 = rows()
      where one_of(flag, 'critical', 'high', 'low')
        lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
  units by the norm of their rows
  31 buckets from 1, 2, 4, … 1.074e+09; 1/20 of the cost
  about r0, radius to be chosen
then SELECT r0.k0 AS "flag", r0.m0 AS "count" FROM r0
*/

-- no limit of rows is declared: it is chosen automatically
SELECT COUNT(*) FROM lab_flags;
/*
r0 from
  lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
  clipped, groups 1, rows 1, l2 norm, chosen automatically
  t0 = count(*), size 1, weight 1
  m0 = NoisyCount(total=0): COUNT(*)
  The contribution bounds will be chosen privately, from a histogram of contributions that is released first for a part of the cost.
h0 from
  per unit: f0 = sum(multiply(least(f0, 2147483647), least(f0, 2147483647)))
    per unit: f0 = rows()
      lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
  units by the norm of their rows
  31 buckets from 1, 2, 4, … 1.074e+09; 1/20 of the cost
  about r0, radius to be chosen
then SELECT r0.m0 AS "count" FROM r0
*/

-- units need no limit of rows
-- @groups 2
SELECT flag, COUNT(DISTINCT e.patient_id) FROM lab_flags f JOIN labs l USING (lab_id) JOIN encounters e ON e.id = l.encounter GROUP BY flag;
/*
r0 from
  inner join on the unit and equal(encounter, id), most 100
    derive encounter, flag
      inner join on the unit and equal(lab_id, lab_id_1), most 100
        lab_flags of lab_id → labs.lab_id, of encounter → encounters.id, of patient_id
        derive encounter, lab_id_1 = lab_id
          labs of encounter → encounters.id, of patient_id
    derive id
      encounters of patient_id
  by k0 = flag: low, high, critical
  clipped, groups 2, rows 1, l0 clipped, l2 norm
  t0 = count_units(*), size 107020, weight 1
  m0 = NoisyCount(total=0): COUNT(DISTINCT e.patient_id)
  Rows are left out where flag is NULL or not declared.
  Each patient contributes to at most 2 groups; contributions to more groups are clipped.
then SELECT r0.k0 AS "flag", r0.m0 AS "count" FROM r0
*/
