"""What the stored results of a tool amount to: numbers for the page, and short texts where there is none."""

import math

from versus import running, scoring

KNOWN = running.tools()
NO_PRINT = "none printed"


def label(name):
    """Return a tool's name as it is written."""
    return KNOWN[name]["label"]


def claim(name, what):
    """Return what a tool's documentation claims; an adapter of the same tool claims the same."""
    first = next(other for other in KNOWN.values() if other["script"] == KNOWN[name]["script"])
    return first["claims"].get(what)


def values(tool, question, key="error"):
    """Return one score of a question in all publications of a tool; nothing where there is none."""
    told = [publication["questions"][question] for publication in tool["publications"]]
    told = [scored for scored in told if not isinstance(scored, str)]
    if key == "error":
        return [scored["error"] for scored in told]
    factor = 100 if key == "coverage" else 1
    return [factor * scored["intervals"][key] for scored in told if scored["intervals"]]


def gaps(tool):
    """Return the largest gap of every publication whose tables could add up."""
    return [publication["gap"] for publication in tool["publications"] if publication["gap"] is not None]


def lowest(tools, question):
    """Return the tools with the lowest mean error, and those whose interval overlaps its."""
    means = {name: scoring.mean_interval(found) for name, tool in tools.items() if (found := values(tool, question))}
    high = min(means.values(), key=lambda interval: interval[0])[2]
    return {name for name, (_, low, _) in means.items() if low <= high}


def expressed(name, tool):
    """Return how many questions the tool answers itself, how many with work by hand, and how many not."""
    told = tool["publications"][0]["questions"]
    hand = KNOWN[name].get("by_hand", {})
    missing = sum(isinstance(scored, str) for scored in told.values())
    by_hand = sum(question in hand for question, scored in told.items() if not isinstance(scored, str))
    return len(told) - missing - by_hand, by_hand, missing


def coverage(tool):
    """Return the share of all cells with a printed interval that contain the truth."""
    shares = []
    for publication in tool["publications"]:
        scored = [
            s["intervals"] for s in publication["questions"].values() if not isinstance(s, str) and s["intervals"]
        ]
        cells = sum(intervals["cells"] for intervals in scored)
        if cells:
            shares.append(100 * sum(intervals["coverage"] * intervals["cells"] for intervals in scored) / cells)
    return f"{interval(shares, 100)} %" if shares else NO_PRINT


def adding_up(tool):
    """Return how many publications add up, of how many."""
    found = gaps(tool)
    return f"{sum(gap <= scoring.TOLERANCE for gap in found)} of {len(found)}"


def beyond_budget(name, tool, settings):
    """Return how many requests were answered beyond the budget."""
    repeats = tool["attacks"].get("repeats")
    if repeats is None:
        return "not measured"
    if repeats["different"] == 1 or repeats["refusal"]:
        return "0"
    extra = repeats["answered"] - round(settings["epsilon"] / settings["repeats"]["epsilon"])
    return f"{extra}" if claim(name, "budget") else f"{extra} (not claimed)"


def remaining(name, tool):
    """Return what the tool believes is left after it was killed."""
    crash = tool["crash"]
    if "not_measured" in crash:
        return f"not measured: {crash['not_measured']}"
    return f"{crash['remaining']:g}" if claim(name, "durable") else f"{crash['remaining']:g} (not claimed)"


def proven(tool):
    """Return the proven epsilon of a count and of a sum."""
    audit = tool["audit"]
    if "not_measured" in audit:
        return "not measured"
    return " / ".join(f"{audit[task]['proven']:.2f}" for task in ("counts", "sums"))


def interval(found, highest=math.inf):
    """Write the mean of scores with its 95 % interval; no score is below 0, and shares are at most 100."""
    mean, low, high = scoring.mean_interval(found)
    return written((mean, max(0, low), min(highest, high)))


def written(bounds):
    """Write a mean, or a share, and its interval."""
    mean, low, high = bounds
    return number(mean) if number(low) == number(high) else f"{number(mean)} ({number(low)} to {number(high)})"


def number(value):
    """Write a number with three digits; what rounding leaves is 0."""
    if abs(value) < 1e-6:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
