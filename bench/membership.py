"""Membership inference on forests compared with ART: same people, members and numbers of shadow models."""

import json
import os
import time
from pathlib import Path

import numpy as np

from bench.peers import running
from discreet import attacks
from discreet.attacks.data.labelled_data import read_locations, simulate_purchases
from discreet.attacks.models.membership_inference import draw_members, split_in_halves
from discreet.attacks.scores import ScoreEvidence

PLACE = Path(".bench")
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
TARGETS, TREES, SEED = 3, 100, 100
SHADOWS = (3, 8)
PATIENCE = 600
TIMES, NEARLY_ALL = 5, 0.95  # the bar: so many times the members that ART finds at one stranger in a thousand
KINDS = {  # how far customers stray from their kind, from easy to hard to predict
    "customers, easy": lambda: simulate_purchases(SEED, people=8000, deviation=0.16),
    "customers, hard": lambda: simulate_purchases(SEED, people=8000, deviation=0.27),
    "locations": lambda: read_locations(DATA),
}
NOTES = """
1 %, 0.1 %: members found at these false-positive rates; three target forests of 100 trees
all attacks have the same targets, with shadow models of other people; "same people": shadow models of the candidates
"""


def main(kinds=tuple(KINDS)):
    PLACE.mkdir(exist_ok=True)
    print(f"{'':18}{'':30}{'shadows':>8}{'AUC':>7}{'1 %':>7}{'0.1 %':>7}{'seconds':>9}")
    for name in kinds:
        try:
            people = KINDS[name]()
        except FileNotFoundError as reason:
            print(f"{name:18}not measured: {reason}")
            continue
        for shadows in SHADOWS:
            theirs = beside(name, people, shadows)
            ours = attacked(name, people, shadows)
            if theirs is not None:
                times = ours / max(theirs, 1 / len(people))  # where ART finds nobody, as if it had found one or two
                print(f"{'':18}{times:.0f} times ART's{'' if ours >= min(TIMES * theirs, NEARLY_ALL) else '  FEW'}")
    print(NOTES.rstrip())


def attacked(name, people, shadows):
    """Print our attacks, and return the members that the calibrated one finds with what ART is given."""
    runs = {
        "discreet, shadow": (attacks.shadow, {}),
        "discreet, likelihood ratio": (attacks.likelihood_ratio, {"shadowing": "offline"}),
        "discreet, same people": (attacks.likelihood_ratio, {"shadowing": "online"}),
    }
    found = {}
    for who, (attack, settings) in runs.items():
        given = people if who != "discreet, same people" else people.subset(games(people)[0])
        began = time.perf_counter()
        result = attack(given, defence=forest, shadows=shadows, targets=TARGETS, random_state=SEED, **settings)
        found[who] = told(name, who, shadows, result.evidence, time.perf_counter() - began)
    return found["discreet, likelihood ratio"]


def beside(name, people, shadows):
    """Print ART's attack, and return the members that it finds at one stranger in a thousand."""
    candidates, known, inside = games(people)
    file, jobs = PLACE / "members.npz", PLACE / "members.json"
    np.savez(file, X=people.X, y=people.y, candidates=candidates, known=known, inside=inside)
    most = 0.0
    for attacker in ("rf", "gb"):
        jobs.write_text(json.dumps([{"people": str(file), "shadows": shadows, "attacker": attacker, "seed": SEED}]))
        try:
            (answer,) = running.run_jobs("ART", jobs, PATIENCE)
        except running.NotMeasuredError as reason:
            print(f"{name:18}ART  not measured: {reason}", flush=True)
            return None
        scores = np.array(answer["scores"])
        evidence = ScoreEvidence(scores[inside], scores[~inside])
        most = max(most, told(name, f"ART, {attacker}", shadows, evidence, answer["seconds"]))
    return most


def games(people):
    """Return whom all attack, whom the attacker knows, and who is in each model, as our attacks draw them."""
    rng = np.random.default_rng(SEED)
    candidates, known = split_in_halves(people, rng)
    return candidates, known, draw_members(len(candidates), TARGETS, rng)


def told(name, who, shadows, evidence, seconds):
    """Print one line, and return the members found at one stranger in a thousand."""
    curve = evidence.curve
    at = [curve.found_at(share) for share in (0.01, 0.001)]
    print(f"{name:18}{who:30}{shadows:8}{curve.auc:7.3f}{at[0]:7.3f}{at[1]:7.3f}{seconds:9.1f}", flush=True)
    return at[1]


def forest(members):
    from sklearn.ensemble import RandomForestClassifier

    seed = int(members.X.sum()) % 2**31  # another one for every model
    return RandomForestClassifier(TREES, random_state=seed).fit(members.X, members.y)
