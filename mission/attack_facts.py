"""The rows on attribute inference from models: facts about the population versus memorised training data."""

from discreet import attacks
from mission.data import real
from mission.rows import outside_of, rate_of, record, row, share_of

RECOGNISED = "images recognised by an independent classifier"
BEYOND = "members minus non-members"


@row("B3", "Model inversion with a generative prior: images of a class recovered from a classifier's confidences")
def b3():
    ways = {
        "exact": {},
        "labels only": {"defence": "easy"},
        "private at epsilon 4": {"defence": "curator", "epsilon": 4},
    }
    digits = {name: attacks.invert(**defence, random_state=0) for name, defence in ways.items()}
    persons = {
        name: attacks.invert(**defence, classes="people", random_state=0)
        for name, defence in ways.items()
        if name != "labels only"
    }
    shown = (
        f"{name}: {_recognised(each)} of {each.details['images recovered']} images recognised by an "
        f"independent classifier, members minus non-members {each.details[BEYOND]}"
        for name, each in digits.items()
    )
    rates = {name: rate_of(each) for name, each in persons.items()}
    outside = {name: outside_of(each) for name, each in persons.items()}
    picked = (f"{name} {each} (not enrolled: {outside[name]})" for name, each in rates.items())
    return record(
        "classes of many people (digits): {shown}. Classes of one person, identified among ten: {picked}",
        recognised={name: each.details[RECOGNISED] for name, each in digits.items()},
        holds={name: rate_of(each).holds for name, each in digits.items()},
        rates=rates,
        outside=outside,
        shown="; ".join(shown),
        picked="; ".join(picked),
    )


def _recognised(result):
    return share_of(result.details[RECOGNISED], result.details["images recovered"])


@row("D5", "Attribute inference from correlations versus memorisation of the training set: warfarin and VKORC1")
def d5():
    patients = real("correlation")
    private = {"defence": "curator", "epsilon": 1}
    ways = {
        "least squares": {},
        "private at epsilon 1": {**private, "splits": 20},
        "a full tree": {"model": "tree"},
        "a private table of averages at epsilon 1": {**private, "model": "tree"},
    }
    results = {name: attacks.correlation(patients, random_state=0, **way) for name, way in ways.items()}
    rates = {name: rate_of(each) for name, each in results.items()}
    outside = {name: outside_of(each) for name, each in results.items()}
    shown = (
        f"{name} {rates[name]} of members, {outside[name]} of non-members, difference {each.details[BEYOND]}"
        for name, each in results.items()
    )
    majority, inferred = results["least squares"].baseline, outside["private at epsilon 1"].value
    return record(
        "{patients:,} patients, most frequent genotype {majority:.1%}: {shown}. Epsilon implied by the tree: "
        "{implied}. For non-members the private model is correct {above:+.1%} more often than the majority guess: "
        "{verdict}",
        patients=len(patients),
        majority=majority,
        rates=rates,
        outside=outside,
        implied=results["a full tree"].implied,
        least=results["a full tree"].implied.low,
        above=inferred - majority,
        verdict="DP does not hide facts about the population" if inferred > majority else "nothing is inferred",
        shown="; ".join(shown),
    )
