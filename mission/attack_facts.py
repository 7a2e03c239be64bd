"""The rows on what models say about people: a fact about everybody, told apart from memory of those in the data."""

import os
from pathlib import Path

from discreet import attacks
from discreet.attacks import attack_named
from mission.rows import NeedsDataError, row

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
RECOGNISED = "pictures that an independent classifier recognises"
BEYOND = "members beyond strangers"


@row("B3", "Model inversion with a generative prior: images of a class, recovered from a classifier's confidences")
def b3():
    said = []
    for name, defence in (
        ("exact", {}),
        ("labels only", {"defence": "easy"}),
        ("private at epsilon 4", {"defence": "curator", "epsilon": 4}),
    ):
        many = attacks.invert(**defence, random_state=0)
        one = attacks.invert(**defence, classes="people", random_state=0)
        said.append(
            f"{name}: {many.details[RECOGNISED]:.0%} of {many.details['pictures']} pictures of digits recognised by an "
            f"independent classifier, members lose {many.details[BEYOND]} beyond strangers; a class of one person "
            f"picks the person out of ten in {one.success:.0%} (who did not enrol: {one.evidence.baseline:.0%})"
        )
    return f"{'; '.join(said)}. The look of a class is not hidden, that of a person is"


@row("D5", "Attribute inference from correlations, told apart from memory of the training set: warfarin and VKORC1")
def d5():
    attack = attack_named("correlation")
    if not all((DATA / name).exists() for name in attack.files):
        raise NeedsDataError("warfarin_iwpc in DISCREET_DATA")
    patients = attack.load(DATA)
    exact = attacks.correlation(patients, random_state=0)
    private = attacks.correlation(patients, defence="curator", epsilon=1, random_state=0, splits=20)
    tree = attacks.correlation(patients, model="tree", random_state=0)
    table = attacks.correlation(patients, model="tree", defence="curator", epsilon=1, random_state=0)
    told = [
        f"{name} {result.success:.3f} of members, {result.evidence.baseline:.3f} of strangers, {BEYOND} "
        f"{result.details[BEYOND]}"
        for name, result in (
            ("least squares", exact),
            ("private at epsilon 1", private),
            ("a full tree", tree),
            ("a private table of averages at epsilon 1", table),
        )
    ]
    return (
        f"{len(patients):,} patients, most frequent genotype {exact.baseline:.3f}: {'; '.join(told)}. Epsilon "
        f"implied by the tree: {tree.implied}; DP hides people, not facts about people"
    )
