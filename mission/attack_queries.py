"""The rows on attacks by questions: why easy fixes fail, and two fits whose difference is a row."""

from discreet import attacks
from discreet.attacks.queries.fits import diabetes
from discreet.attacks.queries.people import load
from mission.anonymity import DATA
from mission.rows import row

FIXES = {
    "differencing": "only large sets",
    "averaging": "fresh noise per repeat",
    "rephrasing": "same answer for the same text",
}


@row("A8", "Two fits, with and without one row: the row is exact, or within the noise if private")
def a8():
    patients = diabetes()
    exact = attacks.differencing(patients, random_state=0)
    private = attacks.differencing(patients, defence="curator", epsilon=1, random_state=0)
    off = "found number is off by, "
    one = "told from one fit whether the row is in it"
    return (
        f"least squares on {len(patients.y)} and {len(patients.y) - 1} patients: each one's number (25 to 346) is off "
        f"by {exact.details[off + 'at most']:.0e} at most, and {exact.details[one]:.0%} are told to be in one fit or "
        f"not; private at epsilon 1 together: off by {private.details[off + 'median']:,.0f} (median), "
        f"{private.success:.1%} of secrets found (coin 50 %, allowed {private.ceiling:.1%}), "
        f"{private.details[one]:.1%} told to be in or not"
    )


@row("E2", "Why easy fixes fail: each attack against the easy fix, and against the curator")
def e2():
    people = load(DATA) if (DATA / "pums_ca_1000.parquet").exists() else None
    said = [f"{fix}: {_tell(name, people)}" for name, fix in FIXES.items()]
    who = "a made-up town" if people is None else "1,000 people of a census"
    return f"secrets found of unique people in {who}, easy fix → curator at epsilon 1/10 and 1: {'; '.join(said)}"


def _tell(name, people):
    attack = getattr(attacks, name)
    easy = attack(people, defence="easy", random_state=0)
    private = [attack(people, defence="curator", epsilon=epsilon, random_state=0) for epsilon in ("1/10", 1)]
    shares = " and ".join(f"{each.success:.1%} ({each.ends}, allowed {each.ceiling:.1%})" for each in private)
    return f"{name} {easy.success:.1%} → {shares}"
