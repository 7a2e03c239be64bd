"""The rows on released tables: the intersection of two tables, and linkage with background knowledge."""

import numpy as np
import pyarrow as pa

from discreet import attacks
from mission import lecture
from mission.data import arrays
from mission.rows import outside_of, rate, rate_of, record, row

PATIENTS = 135_000
PRIVATE = {"defence": "curator", "epsilon": "1/10"}
UNIQUE = "unique and predicted"
CERTAIN = "values inferred with certainty"


@row("A14", "Intersection of two k-anonymous tables")
def a14():
    first, second = (attacks.Patients(each, lecture.QUASI, "condition") for each in (lecture.first(), lecture.second()))
    left = attacks.intersection(attacks.TwoTables(first, second, [(0, 0)]), k=4)
    possible = [lecture.possible(each, 0) for each in (lecture.first(), lecture.second())]
    large = attacks.intersection(random_state=0)
    easy = attacks.intersection(defence="easy", random_state=0)
    private = attacks.intersection(defence="curator", epsilon="1/10", random_state=0)
    return record(
        "the lecture's tables leave {counts[0]:.0f} and {counts[1]:.0f} values possible, together {counts[2]:.0f}: "
        "{value}; of {people:,} simulated patients in two 5-anonymous tables, {one} values are certain from one table "
        "and {both} from both (with classes of 10 and at least three values: {diverse}); two curators at epsilon 0.05 "
        "each: guessed {private} (non-members: {outside})",
        counts=left.details["values left by the first table, the second, both"],
        value=", ".join(sorted(possible[0] & possible[1])),
        possible=possible,
        people=large.details["people in both"],
        one=large.details[f"{CERTAIN} from one table"],
        both=large.details[CERTAIN],
        diverse=easy.details[CERTAIN],
        private=rate_of(private),
        outside=outside_of(private),
    )


@row("B1", "Linkage: a governor's record by zip code, birth date and sex; viewers by a few ratings")
def b1():
    found = attacks.linkage(register()).details
    few = attacks.linkage(ratings(known=3), random_state=0).details
    hard = ratings(known=8, wrong=2, days=14)
    rough = attacks.linkage(hard, random_state=0)
    private = attacks.linkage(hard, defence="curator", epsilon="1/10", random_state=0)
    return record(
        "{named:,} of {patients:,} simulated patients identified correctly, {wrong} wrongly; three known ratings "
        "single out {alone} of {viewers} viewers: {few}; eight ratings, two of them wrong and dated within two weeks, "
        "identify {rough} correctly and {rough_wrong} wrongly; the curator's counts at epsilon 0.1: {private} "
        "(non-members: {outside})",
        named=found["correctly named"],
        wrong=found["wrongly named"],
        patients=found["patients"],
        alone=few["unique matches"],
        viewers=few["people"],
        few=rate(few["unique matches"], few["people"]),
        rough=rough.details["correctly named"],
        rough_wrong=rough.details["wrongly named"],
        private=rate_of(private),
        outside=outside_of(private),
    )


@row("A16", "Profiles without names: what a consistent pseudonym in a log of visits discloses about habits")
def a16():
    ways = {"one pseudonym": {}, "a new one every day": {"defence": "easy"}, "curator, epsilon 0.1": PRIVATE}
    results = {way: attacks.profiles(random_state=0, **settings) for way, settings in ways.items()}
    plain = results["one pseudonym"].details
    shown = (
        f"{way}: {rate_of(each)}, unique and predicted {each.details[UNIQUE]:.1%}, hidden visits "
        f"{each.details['hidden visits predicted, in three guesses']:.1%}"
        for way, each in results.items()
    )
    return record(
        "simulated visits of {people} people to sites, of whom {unique:.0%} have unique habits; secret habits "
        "predicted by {shown}; hidden visits from popularity alone {popular:.1%}",
        people=plain["people targeted"],
        unique=plain["people whose habits are unique"],
        popular=plain["hidden visits predicted from popularity alone"],
        rates={way: rate_of(each) for way, each in results.items()},
        predicted={way: each.details[UNIQUE] for way, each in results.items()},
        shown="; ".join(shown),
    )


def register():
    """Simulate patients with zip code, birth date and sex, and a voter roll with 90 % of them and other people."""
    rng = np.random.default_rng(0)
    count, absent = PATIENTS * 3 // 2, PATIENTS // 10
    born = np.datetime64("1950-01-01") - rng.integers(0, 73 * 365, count).astype("timedelta64[D]")
    columns = {"zip": rng.integers(400, size=count), "born": born, "sex": rng.choice(["F", "M"], count)}
    everybody = pa.table(columns)
    ill = rng.choice(["asthma", "diabetes", "fracture", "influenza"], PATIENTS)
    table = everybody.slice(0, PATIENTS).append_column("condition", pa.array(ill))
    voters = rng.permutation(np.arange(absent, count))
    who = np.full(count, -1)
    who[voters] = np.arange(len(voters))
    return attacks.Register(attacks.Patients(table, list(columns), "condition"), everybody.take(voters), who[:PATIENTS])


def ratings(**known):
    """Return the MovieLens ratings with the attacker's knowledge."""
    user, movie, stars, when = arrays("movielens_latest_small_ratings", "userId", "movieId", "rating", "timestamp")
    return attacks.Ratings(user, movie, stars, when.astype("datetime64[D]").astype(np.int64), **known)
