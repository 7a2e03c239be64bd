"""`make versus`: every tool publishes the same hospital, is attacked and audited, and docs/versus.md is written.

python -m versus                everything: installs the tools into .peers, measures, writes the page
python -m versus opendp tumult  these tools only; the stored results of the others stay
python -m versus page           the page from the stored results
"""

import datetime as dt
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.csv

from bench.peers.running import NotMeasuredError
from versus import attacking, hospital, page, results, running, scoring, tampering


def main(words):
    if words != ["page"]:
        measure(words)
    results.PAGE.write_text(page.page(results.load()), encoding="utf-8")
    print(f"wrote docs/{results.PAGE.name}")


def measure(wanted):
    """Measure these tools, or all, and store the results after each."""
    protocol = hospital.protocol()
    if not wanted:
        results.FILE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        visits = hospital.visits(protocol["data"])
        if hospital.digest(visits) != protocol["data"]["sha256"]:
            raise SystemExit("the generated hospital is not that of the protocol")
        pyarrow.csv.write_csv(visits, folder / "visits.csv")
        truth = hospital.truth(visits, protocol["data"]["months"])
        for name, tool in running.tools().items():
            if not wanted or name in wanted:
                began = time.monotonic()
                results.put(["tools", name], of_tool(name, tool, protocol, truth, folder))
                say(name, f"done in {time.monotonic() - began:.0f} s")
        if not wanted or "discreet" in wanted:
            results.put(["tampering"], of_tampering(protocol, folder))


def of_tool(name, tool, protocol, truth, folder):
    """Return everything that is measured of one tool; where it fails, the reason."""
    found = {"date": dt.datetime.now(dt.UTC).date().isoformat(), "releases": releases(tool)}
    say(name, "environment")
    try:
        python = running.python_of(name, tool)
        job = {"task": tool.get("task", "publish"), "data": str(folder / "visits.csv"), "protocol": protocol}
        say(name, f"{protocol['runs'][name]} publications")
        told = running.run(python, tool, {**job, "runs": protocol["runs"][name]})
    except (NotMeasuredError, OSError) as reason:
        say(name, f"not measured: {reason}")
        return {**found, "not_measured": str(reason)}
    found["version"] = told["version"]
    found["publications"] = [scores(publication, truth) for publication in told["result"]]
    if "task" in tool:
        return found
    parts = {"attacks": of_attacks, "audit": of_audit, "crash": of_crash}
    for part, measured in parts.items():
        say(name, part)
        try:
            found[part] = measured(python, tool, protocol, folder / "people.csv")
        except (NotMeasuredError, OSError) as reason:
            found[part] = {"not_measured": str(reason)}
    return found


def scores(publication, truth):
    """Return the scores of one publication, by question; a text where the tool cannot answer."""
    found, tables = {}, {}
    for question, cells in truth.items():
        told = publication.get(question, "no: not answered")
        if isinstance(told, str):
            found[question] = told
            continue
        true = {tuple(map(str, key)): value for key, value in cells.items()}
        tables[question] = {tuple(row[:-3]): tuple(row[-3:]) for row in told}
        stated = scoring.intervals(tables[question], true)
        found[question] = {
            "error": _round(scoring.error(tables[question], true)),
            "shown": sum(key in tables[question] for key in true),
            "intervals": stated and {key: _round(value) for key, value in stated.items()},
        }
    gap = scoring.largest_gap(tables)
    return {"questions": found, "gap": gap if gap is None else _round(gap)}


def of_attacks(python, tool, protocol, people):
    """Return how the attacks of the protocol succeeded on what the tool answers."""
    settings, found = protocol["attacks"], {}
    boxes, groups, secrets = attacking.differencing(people, settings["differencing"])
    job = {"task": "counts", "data": str(people), "keys": boxes, "groups": groups, "epsilon": settings["epsilon"]}
    found["differencing"] = attacking.subtract(running.run(python, tool, job)["result"], secrets)
    boxes, groups, secrets, subsets = attacking.reconstruction(people, settings["reconstruction"])
    told = running.run(python, tool, {**job, "keys": boxes, "groups": groups})["result"]
    found["reconstruction"] = attacking.solve(told, secrets, subsets)
    attacking.boxes_of(people, [1.0], 1000)
    again = settings["repeats"]
    asked = {"task": "repeats", "epsilon": settings["epsilon"], "each": again["epsilon"], "requests": again["requests"]}
    told = running.run(python, tool, {**job, **asked, "keys": 1000, "groups": 1})["result"]
    found["repeats"] = {
        "answered": len(told["answers"]),
        "different": len(set(told["answers"])),
        "refusal": told["refusal"],
        "error": _round(abs(sum(told["answers"]) / len(told["answers"]) - 1000)),
    }
    return found


def of_audit(python, tool, protocol, people, **flags):
    """Return what outputs on neighbouring data sets prove about epsilon, for a count and a sum."""
    settings, found = protocol["audit"], {}
    count = [[1.0] * people_in_a_box for people_in_a_box in settings["count"]]
    for task, pair in (("counts", count), ("sums", settings["sum"])):
        outputs = []
        for values in pair:
            boxes = attacking.boxes_of(people, values, settings["outputs"])
            job = {"task": task, "data": str(people), "keys": boxes, "groups": 1, "epsilon": settings["claim"], **flags}
            outputs.append(running.run(python, tool, job)["result"])
        found[task] = attacking.proven(outputs, settings)
        if flags:
            return found
    return found


def of_crash(python, tool, protocol, people):
    """Return what a tool believes is left after it was killed and started again."""
    attacking.boxes_of(people, [1.0], 1000)
    job = {"data": str(people), "keys": 1000, "groups": 1, **protocol["crash"]}
    return {"remaining": running.kill_and_restart(python, tool, job)}


def of_tampering(protocol, folder):
    """Return whether half of our noise, and one flipped bit, are caught."""
    say("discreet", "tampering")
    tool = running.tools()["discreet"]
    half = of_audit(Path(sys.executable), tool, protocol, folder / "people.csv", half_noise=True)
    return {"half_noise": half["counts"], "one_byte": tampering.flip_every_file()}


def releases(tool):
    """Return how many releases of a tool the package registry lists, or None."""
    if not tool["packages"]:
        return 0
    package = re.split(r"[\[=]", tool["packages"][0])[0]
    words = [sys.executable, "-m", "pip", "index", "versions", package]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    listed = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    return len(listed[1].split(",")) if listed else None


def say(name, what):
    print(f"{dt.datetime.now():%H:%M:%S}  {name}: {what}", flush=True)  # noqa: DTZ005 - local time, for whoever waits


def _round(value):
    """Return four significant digits: what is stored beside the page."""
    return float(f"{value:.4g}")


if __name__ == "__main__":
    main(sys.argv[1:])
