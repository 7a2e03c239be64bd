"""docs/versus.md, written from the stored results and the protocol alone; its text is in page.md."""

import math
from pathlib import Path

from versus import hospital, running, scoring
from versus.summary import (
    KNOWN,
    NO_PRINT,
    adding_up,
    beyond_budget,
    claim,
    coverage,
    expressed,
    gaps,
    interval,
    label,
    lowest,
    number,
    proven,
    remaining,
    values,
    written,
)

TEXT = Path(__file__).with_suffix(".md")
NOT_CLAIMED = "not claimed"
SCORES = ("coverage", "width", "interval_score")


def page(found):
    """Return the page."""
    protocol = hospital.protocol()
    tools = {name: found["tools"][name] for name in KNOWN if name in found["tools"]}
    ran = {name: tool for name, tool in tools.items() if tool.get("publications")}
    own = {name: tool for name, tool in ran.items() if "task" not in KNOWN[name]}  # each tool once
    return TEXT.read_text(encoding="utf-8").format(
        **settings(protocol),
        **{key: scores(ran, protocol, key) for key in SCORES},
        tools={4: "Four", 5: "Five", 6: "Six"}.get(len(own), len(own)),
        versions=versions(tools),
        in_short=in_short(own, protocol),
        errors=errors(ran, protocol),
        by_hand="".join(f"- {line}\n" for line in by_hand(own, protocol["questions"])),
        margin_claims="".join(f"- {label(n)}: {claim(n, 'margins') or 'none printed, none claimed'}\n" for n in own),
        additivity=additivity(ran),
        attacks=attacks(own, protocol["attacks"]),
        crash=crash(own),
        audit=audit(own, found["tampering"]["half_noise"]),
        **found["tampering"]["one_byte"],
        losses=losses(ran, own, protocol),
        fixed=table(["file", "SHA-256"], [[f"[`{f}`](../versus/{f})", f"`{v}`"] for f, v in found["fixed"].items()]),
    )


def settings(protocol):
    """Return what the text of the page says of the protocol."""
    data, attacking, audited = protocol["data"], protocol["attacks"], protocol["audit"]
    odds = math.exp(attacking["epsilon"])
    return {
        **{name: data[name] for name in ("patients", "months", "codes")},
        **protocol["privacy"],
        "wards": len(data["wards"]),
        "questions": len(protocol["questions"]),
        "bound": protocol["bounds"]["visits"],
        "cost": protocol["bounds"]["cost"][1],
        "tolerance": scoring.TOLERANCE,
        "attack_epsilon": attacking["epsilon"],
        "ceiling": 100 * odds / (1 + odds),
        "towns": attacking["differencing"]["towns"],
        **attacking["reconstruction"],
        "requests": attacking["repeats"]["requests"],
        "each": attacking["repeats"]["epsilon"],
        "crash_epsilon": protocol["crash"]["epsilon"],
        "spend": protocol["crash"]["spend"],
        "left": protocol["crash"]["epsilon"] - protocol["crash"]["spend"],
        **{name: audited[name] for name in ("claim", "outputs")},
        "confidence": 100 * audited["confidence"],
    }


def table(head, rows, align="---"):
    """Return a table; numbers are aligned with `--:`."""
    lines = [head, ["---", *[align] * (len(head) - 1)], *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def versions(tools):
    """Return which tools ran, in which version, on which day; and which did not, and why."""
    rows = []
    for name, tool in tools.items():
        shown = tool.get("version", f"not measured: {tool.get('not_measured')}")
        rows.append([label(name), shown, tool["date"], len(tool.get("publications", []))])
    return table(["tool", "version", "date of the run", "publications"], rows)


def in_short(own, protocol):
    best = [lowest(own, question) for question in protocol["questions"]]
    left = protocol["crash"]["epsilon"] - protocol["crash"]["spend"]
    lines = {
        "questions answered by the tool itself": lambda name, tool: expressed(name, tool)[0],
        "answered with work by hand": lambda name, tool: expressed(name, tool)[1],
        "not answered": lambda name, tool: expressed(name, tool)[2],
        "among the lowest errors, in questions": lambda name, _: sum(name in names for names in best),
        "cells whose interval contains the truth": lambda _, tool: coverage(tool),
        "publications that add up": lambda name, tool: adding_up(tool) if claim(name, "adds_up") else NOT_CLAIMED,
        "answers beyond the budget": lambda name, tool: beyond_budget(name, tool, protocol["attacks"]),
        f"believed left after `kill -9` (truth: {left:g})": remaining,
        "epsilon proven, count / sum (claim: 1)": lambda _, tool: proven(tool),
    }
    rows = [[what, *(of(*item) for item in own.items())] for what, of in lines.items()]
    return table(["", *map(label, own)], rows, "--:")


def errors(ran, protocol):
    rows = []
    for question, asked in protocol["questions"].items():
        best = lowest(ran, question)
        cells = [(name, interval(found) if (found := values(tool, question)) else "no") for name, tool in ran.items()]
        rows.append([asked["text"], *(f"**{text}**" if name in best else text for name, text in cells)])
    return table(["", *map(label, ran)], rows, "--:")


def by_hand(own, questions):
    """Yield what a tool cannot answer, and what its caller does."""
    for name, tool in own.items():
        hand = KNOWN[name].get("by_hand", {})
        for question, told in tool["publications"][0]["questions"].items():
            if isinstance(told, str):
                yield f"{label(name)}, {questions[question]['text']}: {told}"
            elif question in hand:
                yield f"{label(name)}, {questions[question]['text']}: by hand ({hand[question]})"


def scores(ran, protocol, key):
    """Return a table of one score of the intervals, for the tools that print some."""
    stating = {name: tool for name, tool in ran.items() if coverage(tool) != NO_PRINT}
    rows = []
    for question, asked in protocol["questions"].items():
        each = [values(tool, question, key) for tool in stating.values()]
        highest = 100 if key == "coverage" else math.inf
        rows.append([asked["text"], *(interval(found, highest) if found else "" for found in each)])
    return table(["", *map(label, stating)], rows, "--:")


def additivity(ran):
    rows = [
        [label(name), adding_up(tool), interval(gaps(tool)), claim(name, "adds_up") or NOT_CLAIMED]
        for name, tool in ran.items()
    ]
    return table(["tool", "publications that add up", "largest gap, in visits", "claimed"], rows)


def attacks(own, asked):
    rows = [["*without protection*", 100, 100, "", "", ""]]
    for name, tool in own.items():
        found = tool["attacks"]
        if "not_measured" in found:
            rows.append([label(name), f"not measured: {found['not_measured']}", "", "", "", ""])
            continue
        kinds = (scoring.share_interval(*found[kind]) for kind in ("differencing", "reconstruction"))
        shares = [written([100 * share for share in bounds]) for bounds in kinds]
        repeats, refusal = found["repeats"], (found["repeats"]["refusal"] or "none").split(":")[0]
        told = f"{repeats['answered']} of {asked['repeats']['requests']}"
        if repeats["different"] == 1:
            told, refusal = f"{told}: the same stored answer", "not needed"
        rows.append([label(name), *shares, told, refusal, claim(name, "budget") or NOT_CLAIMED])
    return table(
        ["tool", "differencing", "reconstruction", "requests answered", "refusal", "claimed of a budget"], rows
    )


def crash(own):
    rows = [
        [label(name), f"{tool['crash'].get('remaining', 'not measured')}", claim(name, "durable") or NOT_CLAIMED]
        for name, tool in own.items()
    ]
    return table(["tool", "believes that is left", "claimed"], rows)


def audit(own, half_noise):
    rows = []
    for name, tool in own.items():
        found = tool["audit"]
        if "not_measured" in found:
            rows.append([label(name), f"not measured: {found['not_measured']}", "", ""])
            continue
        worst = max(found.values(), key=lambda bound: bound["proven"])
        rows.append([label(name), _verdict(found["counts"]), _verdict(found["sums"]), worst["event"]])
    rows.append(["*Discreet with half of its noise*", _verdict(half_noise), "", half_noise["event"]])
    return table(["tool", "count", "sum", "the event that proves most"], rows)


def _verdict(bound):
    return f"{bound['proven']:.2f}" + (", **refuted**" if bound["refuted"] else "")


def losses(ran, own, protocol):
    rows = [[loss["what"], loss["ours"], loss["theirs"]] for loss in running.losses()]
    listed = [f"{label(name)} {tool['releases']}" for name, tool in own.items() if name != "discreet"]
    rows.append(["releases on the package registry", own["discreet"]["releases"], ", ".join(listed)])
    ours = [name for name in ran if name.startswith("discreet")]
    for name in ours:
        for question, asked in protocol["questions"].items():
            rows += lost_accuracy(ran, ours, name, question, asked["text"])
    return table(["what", "Discreet", "others"], rows)


def lost_accuracy(ran, ours, name, question, text):
    """Yield the rows in which another tool has a lower error, beyond chance, or our intervals often miss."""
    mean, low, _ = scoring.mean_interval(values(ran[name], question))
    others = {
        other: scoring.mean_interval(found)
        for other, tool in ran.items()
        if other not in ours and (found := values(tool, question))
    }
    better = [f"{label(other)} {number(bounds[0])}" for other, bounds in others.items() if bounds[2] < low]
    if better:
        yield [f"{label(name)}, error: {text}", f"{number(mean)} %", ", ".join(better)]
    covered = values(ran[name], question, "coverage")
    if covered and scoring.mean_interval(covered)[0] < 90:
        yield [
            f"{label(name)}, intervals: {text}",
            f"{interval(covered)} % contain the truth",
            "see [margins](#margins)",
        ]
