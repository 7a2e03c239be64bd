"""Attacks models with the Adversarial Robustness Toolbox as a file of jobs says, and tells everybody's score as JSON.

A job is {"people", "shadows", "attacker", "seed"}: a file with X, y, the candidates' places, who of them is in each
attacked model, and the places of those whom the attacker knows; how many shadow models; and the kind of oracle.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox, ShadowModels
from art.estimators.classification.scikitlearn import ScikitlearnRandomForestClassifier
from sklearn.ensemble import RandomForestClassifier


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("adversarial-robustness-toolbox"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return the score of every candidate for every attacked model, and the seconds."""
    people = np.load(job["people"])
    X, y, known = people["X"], people["y"], people["known"]
    candidates, labels = X[people["candidates"]], np.eye(y.max() + 1)[y]
    began, scores = time.perf_counter(), []
    for number, inside in enumerate(people["inside"]):
        seed = job["seed"] + number
        target = forest(seed).fit(candidates[inside], labels[people["candidates"]][inside].argmax(axis=1))
        shadows = ShadowModels(template(X[known], y[known], seed), num_shadow_models=job["shadows"], random_state=seed)
        (x, own, told), (other, theirs, heard) = shadows.generate_shadow_dataset(X[known], labels[known])
        attack = MembershipInferenceBlackBox(
            ScikitlearnRandomForestClassifier(target), attack_model_type=job["attacker"]
        )
        attack.fit(x, own, other, theirs, told, heard)
        scores.append(attack.infer(candidates, labels[people["candidates"]], probabilities=True).ravel().tolist())
    return {"scores": scores, "seconds": time.perf_counter() - began}


def template(X, y, seed):
    """Return a forest for ART to copy and fit anew; it wants one that was fitted before."""
    return ScikitlearnRandomForestClassifier(forest(seed).fit(X, y))


def forest(seed):
    return RandomForestClassifier(100, random_state=seed)


main()
