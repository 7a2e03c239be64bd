"""The rows on attacks by queries: why easy fixes fail, and two model fits whose difference reveals a row."""

from sklearn.datasets import load_diabetes

from discreet import attacks
from mission.data import DATA, real
from mission.rows import Runs, rate_of, record, row, share_of

FIXES = {
    "differencing": "only large sets",
    "averaging": "fresh noise per repeat",
    "rephrasing": "same answer for the same text",
}
DRAWS = 3
OFF = "error of the recovered value, "
ONE = "row detected from a single fit"
# Declared bounds of the ten measurements; the target is the progression of the illness in a year.
LOW, HIGH = [15, 1, 15, 50, 80, 20, 10, 1, 3, 40], [90, 2, 50, 150, 320, 260, 110, 10, 7, 140]


@row("A8", "Two fits with and without one row: the row is recovered exactly, or hidden by noise if private")
def a8():
    measured, y = load_diabetes(return_X_y=True, scaled=False)
    patients = attacks.RegressionData(measured, y, bounds=(LOW, HIGH), target_bounds=(0, 400))
    exact = attacks.differencing(patients, random_state=0)
    fits = [attacks.differencing(patients, defence="curator", epsilon=1, random_state=0) for _ in range(DRAWS)]
    return record(
        "least squares on {rows} and {fewer} patients: every target value ({lowest:.0f} to {highest:.0f}) is recovered "
        "within {off:.0e}, and membership in one fit is inferred for {told:.0%}; private at a total epsilon of 1, in "
        "{draws} runs: median error {private_off}, secrets inferred: {private}, membership inferred: {private_told}",
        rows=len(y),
        fewer=len(y) - 1,
        lowest=y.min(),
        highest=y.max(),
        off=exact.details[f"{OFF}maximum"],
        told=exact.details[ONE],
        draws=DRAWS,
        private_off=Runs(tuple(each.details[f"{OFF}median"] for each in fits), ",.0f"),
        private=rate_of(fits[0]),
        private_told=share_of(fits[0].details[ONE], 2 * fits[0].evidence.plays),
    )


@row("D8", "Micro-targeted advertising: a secret inferred from the report of an advertisement for one person")
def d8():
    ways = {
        "exact": {},
        "audiences of at least 20": {"defence": "easy"},
        "curator, epsilon 0.1": {"defence": "curator", "epsilon": "1/10"},
    }
    results = {
        report: {way: attacks.advertising(report=report, random_state=0, **each) for way, each in ways.items()}
        for report in ("impressions", "clicks")
    }
    private = results["impressions"]["curator, epsilon 0.1"].details
    shown = (
        f"{report}: " + ", ".join(f"{way} {rate_of(each)}" for way, each in found.items())
        for report, found in results.items()
    )
    return record(
        "secrets of people in a simulated social network inferred from reports of {shown}. Not prevented by any "
        "report, private ones included: {seen:.0%} of unique people with the secret are shown the advertisement that "
        "was aimed at it, and {clicked:.0%} click, which discloses it to the advertiser's page",
        seen=private["people with the secret who were shown the advertisement"],
        clicked=private["people with the secret who clicked, and so disclosed it"],
        rates={report: {way: rate_of(each) for way, each in found.items()} for report, found in results.items()},
        shown="; ".join(shown),
    )


@row("E2", "Why easy fixes fail: each attack against the easy fix, and against the curator")
def e2():
    is_real = (DATA / "pums_ca_1000.parquet").exists()
    people = real("differencing") if is_real else None
    found = {name: _against(name, people) for name in FIXES}
    shown = (
        f"{FIXES[name]}: {name} {easy} → "
        + ", ".join(f"{each} at epsilon {epsilon}" for epsilon, each in private.items())
        for name, (easy, private) in found.items()
    )
    return record(
        "secrets of unique people inferred in {who}, easy fix → curator: {shown}",
        who="1,000 people of a census" if is_real else "a simulated town",
        found=found,
        shown="; ".join(shown),
    )


def _against(name, people):
    attack = getattr(attacks, name)
    private = {
        epsilon: rate_of(attack(people, defence="curator", epsilon=epsilon, random_state=0)) for epsilon in ("0.1", "1")
    }
    return rate_of(attack(people, defence="easy", random_state=0)), private
