"""Q2 with OpenDP on polars: COUNT and SUM by city; its mean needs lengths that are public, so AVG is their quotient.

Its noise is Gaussian, of the rho that is (epsilon, delta/2)-DP; the other half of delta is for discovering cities.
"""

import math
import warnings

import measure
import opendp.prelude as dp
import polars as pl

PRIME, FACTOR = 2003, 1237


def main():
    folder, rows, times = measure.arguments()
    warnings.simplefilter("ignore")  # counts will be signed one day
    dp.enable_features("contrib")
    # truncate_num_groups(keep="sample") does not run in 0.16: it names two fields alike. It would choose by a hash of
    # the city, the same for everybody; so does "first" once the cities are renumbered.
    renumbered = pl.scan_parquet(folder / "sales.parquet").with_columns(city=pl.col("city") * FACTOR % PRIME)
    back = pow(FACTOR, -1, PRIME)

    def ask():
        context = dp.Context.compositor(
            data=renumbered,
            privacy_unit=dp.unit_of(contributions=1, identifier="user"),
            privacy_loss=dp.loss_of(rho=rho_for(measure.EPSILON, measure.DELTA / 2), delta=measure.DELTA / 2),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=["city"], max_length=rows, max_groups=PRIME)],
        )
        amount = pl.col("amount").fill_nan(0.0).fill_null(0.0)
        bounded = context.query().truncate_per_group(measure.ROWS, by=["city"])
        few = bounded.truncate_num_groups(measure.GROUPS, by=["city"], keep="first")
        totals = few.group_by("city").agg(dp.len().alias("n"), amount.dp.sum((measure.LOW, measure.HIGH)).alias("s"))
        found = totals.release().collect().with_columns(m=pl.col("s") / pl.col("n"))
        return [(city * back % PRIME, count) for city, count in zip(found["city"], found["n"], strict=True)]

    measure.tell("opendp", ask, times)


def rho_for(epsilon, delta):
    """Return the largest rho whose conversion (Canonne, Kamath and Steinke 2020) is at most epsilon, by bisection."""

    def converted(rho):
        orders = (1 + math.exp(k / 100) for k in range(-400, 1200))
        return min(a * rho + (math.log(1 / delta) - math.log(a)) / (a - 1) + math.log1p(-1 / a) for a in orders)

    low, high = 0.0, epsilon
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if converted(middle) <= epsilon else (low, middle)
    return low


main()
