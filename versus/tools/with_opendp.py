"""OpenDP: the Context API on polars, with contingency tables (mbi) for the counts that should agree.

- The four tables of visits are one contingency table with a fixed workload, so that they add up; its `std` gives the
  interval, by the normal quantile as its documentation proposes. A table has a row for null, which is part of it.
- Pure epsilon: at these parameters Laplace noise is smaller than Gaussian noise of the same total (24/0.2 a question
  against 24/sqrt(2 rho)). Diagnoses are a composition of their own, because only they need delta.
- The mean is a sum over a length, each with half of the share: the documentation's advice for tuning the division; the
  built-in mean has more noise in its sum here. Costs are whole numbers, for which the sensitivity of a sum is exact.
- The median is bounded by wards and visits in each: a bound on all visits counts once for every ward.
- Distinct patients: one row per ward, of which four are kept at random. `truncate_num_groups` would keep wards in
  alphabetical order (`keep="sample"` does not run in 0.16.0: it names two fields alike), and one fewer than it says.
  The median needs it all the same: it is accounted for per ward.
- Finding a noise scale takes seconds and reads no data: it is done once and used for all publications.
"""

import common
import opendp.prelude as dp
import polars as pl
from opendp.accuracy import summarize_polars_measurement
from opendp.extras.mbi import Count, Fixed

dp.enable_features("contrib")
Z = 1.959964
BINS = ["1", "2", "3-5", "6-12", "13+"]
FOUND = {}  # measurements, and their accuracy, by question


def publish(job):
    protocol = job["protocol"]
    table = pl.scan_csv(job["data"]).with_columns(cost=pl.col("cost").round().cast(pl.Int64))
    table = table.collect().lazy()
    part = common.share(protocol)
    found = _visits(table, protocol, 4 * part)
    simple = _context(table, protocol, 5 * part, None, [part, part, part / 2, part / 2, part, part])
    bounds = protocol["bounds"]
    wards = pl.LazyFrame({"ward": protocol["data"]["wards"]})
    low, high = bounds["cost"]
    cost, number = pl.col("cost").fill_null(0), dp.len(signed=True).alias("n")

    def by_ward(name, expression):
        rows = simple.query().truncate_per_group(bounds["visits"])
        return _release(simple, name, rows.group_by("ward").agg(expression).with_keys(wards))

    one = simple.query().truncate_per_group(1, by=["ward"]).truncate_per_group(bounds["wards"])
    one = one.group_by("ward").agg(number).with_keys(wards)
    found["patients_by_ward"] = _release(simple, "patients_by_ward", one)
    found["cost_by_ward"] = by_ward("cost_by_ward", cost.dp.sum((low, high)).alias("n"))
    sums = by_ward("mean: sum", cost.dp.sum((low, high)).alias("n"))
    lengths = {ward: n for ward, n, *_ in by_ward("mean: length", number)}
    found["mean_cost_by_ward"] = [
        [ward, min(max(low, total / max(1, lengths[ward])), high), None, None] for ward, total, *_ in sums
    ]
    few = simple.query().truncate_num_groups(bounds["wards"], by=["ward"], keep="first")
    few = few.truncate_per_group(bounds["per_group"], by=["ward"]).group_by("ward")
    median = few.agg(cost.dp.median(list(range(low, high + 1, 10))).alias("n")).with_keys(wards)
    found["median_cost_by_ward"] = _release(simple, "median_cost_by_ward", median)
    found["patients_by_visits"] = _release(simple, "patients_by_visits", _by_visits(simple.query()))
    apart = _context(table, protocol, part, protocol["privacy"]["delta"], [1])
    diagnoses = apart.query().truncate_per_group(bounds["visits"]).group_by("diagnosis").agg(number)
    found["visits_by_diagnosis"] = _release(apart, "visits_by_diagnosis", diagnoses)
    return found


def _visits(table, protocol, epsilon):
    """Return the four tables of visits as projections of one contingency table."""
    context = _context(table, protocol, epsilon, None, [1])
    tables = {
        "visits": (),
        "visits_by_ward": ("ward",),
        "visits_by_month": ("month",),
        "visits_by_ward_and_month": ("ward", "month"),
    }
    if "visits" not in FOUND:
        rows = context.query().truncate_per_group(protocol["bounds"]["visits"]).select("ward", "month")
        keys = {"ward": protocol["data"]["wards"], "month": list(range(1, protocol["data"]["months"] + 1))}
        workload = Fixed(queries=[Count(by=by) for by in tables.values() if by])  # the total follows from them
        FOUND["visits"] = rows.contingency_table(keys=keys, algorithm=workload).resolve()
    released = context(FOUND["visits"])
    found = {}
    for name, by in tables.items():
        values = released.project(by).ravel().tolist() if by else [float(released.project(()))]
        keys = released.project_melted(list(by)).drop("len").rows() if by else [()]
        found[name] = common.rows_of(keys, values, [Z * released.std(list(by))] * len(values))
    return found


def _by_visits(query):
    """Count patients by bins of their number of visits."""
    each = query.group_by("patient").agg(pl.len().alias("k"))
    binned = each.with_columns(visits=pl.col("k").cut([1, 2, 5, 12], labels=BINS).cast(pl.String))
    keys = pl.LazyFrame({"visits": BINS})
    return binned.group_by("visits").agg(dp.len(signed=True).alias("n")).with_keys(keys)


def _context(table, protocol, epsilon, delta, weights):
    most = protocol["bounds"]["most_visits"]
    by = [[], ["ward"], ["diagnosis"]]
    return dp.Context.compositor(
        data=table,
        privacy_unit=dp.unit_of(contributions=1, identifier="patient"),
        privacy_loss=dp.loss_of(epsilon=epsilon, delta=delta),
        split_by_weights=weights,
        margins=[dp.polars.Margin(by=keys, max_length=most) for keys in by],
    )


def _release(context, name, query):
    """Release a query; the keys come first and the number is `n`."""
    if name not in FOUND:
        measurement = query.resolve()
        FOUND[name] = measurement, summarize_polars_measurement(measurement, alpha=0.05)["accuracy"][0]
    measurement, accuracy = FOUND[name]
    table = context(measurement).collect()
    margins = None if accuracy is None else [accuracy] * len(table)
    return common.rows_of(table.drop("n").rows(), table["n"].to_list(), margins)


def counts(job):
    return _grouped(job, dp.len(signed=True).alias("n"))


def sums(job):
    return _grouped(job, pl.col("value").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, 1.0)).alias("n"))


def _grouped(job, expression):
    context = _people(job, job["epsilon"])
    rows = context.query(epsilon=job["epsilon"]).truncate_per_group(job["groups"])
    keys = pl.LazyFrame({"box": list(range(job["keys"]))})
    table = rows.group_by("box").agg(expression).with_keys(keys).release().collect()
    return table.sort("box")["n"].to_list()


def _people(job, epsilon):
    most = dp.polars.Margin(by=[], max_length=1_000_000), dp.polars.Margin(by=["box"], max_length=1_000)
    return dp.Context.compositor(
        data=pl.scan_csv(job["data"], schema_overrides={"value": pl.Float64}),
        privacy_unit=dp.unit_of(contributions=1, identifier="person"),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        margins=list(most),
    )


def _count(context, epsilon):
    rows = context.query(epsilon=epsilon).truncate_per_group(1).select(dp.len(signed=True).alias("n"))
    return rows.release().collect()["n"][0]


def repeats(job):
    context, answers = _people(job, job["epsilon"]), []
    for _ in range(job["requests"]):
        try:
            answers.append(_count(context, job["each"]))
        except Exception as error:  # noqa: BLE001 - whatever it refuses with
            return {"answers": answers, "refusal": common.refused(error), "spent": job["epsilon"]}
    return {"answers": answers, "refusal": None, "spent": context.current_privacy_loss()}


def spend(job):
    global CONTEXT  # noqa: PLW0603 - as long as the process lives
    CONTEXT = _people(job, job["epsilon"])
    _count(CONTEXT, job["spend"])


def remaining(job):
    return _people(job, job["epsilon"]).remaining_privacy_loss()


if __name__ == "__main__":
    common.main("opendp", {task.__name__: task for task in (publish, counts, sums, repeats, spend, remaining)})
