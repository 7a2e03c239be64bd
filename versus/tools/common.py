"""What every adapter shares: it reads a job, does one task of its tool and writes the outcome as JSON.

Adapters run in the environment of their tool: this file needs the standard library only. A job is a JSON file with
`task`, `data` (a CSV file), `out` and what the task needs:

    publish     all questions, `runs` times: for each {question: [[key ..., value, low, high], ...]}; low and high are
                the ends of the 95 % interval that the tool states, or None
    counts      the number of people in each of `keys` groups, of which a person is in at most `groups`, at `epsilon`
    sums        the sum of a value between 0 and 1 in each of `keys` groups; a person is in one group
    repeats     a budget of `epsilon`, and one count requested `requests` times at `each`: the answers, and the refusal
    spend       a budget of `epsilon` in `folder`, of which `spend` is spent on a count; then wait to be killed
    remaining   open the same data again: the epsilon that the tool believes is left
"""

import json
import resource
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path


def main(package, tasks):
    """Do the task of a job."""
    warnings.simplefilter("ignore")
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    task = tasks[job["task"]]
    if job["task"].startswith("publish"):
        result = []
        for number in range(job["runs"]):
            result.append(task(job))
            print(f"publication {number + 1} of {job['runs']}", file=sys.stderr, flush=True)
    else:
        result = task(job)
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {"version": version(package), "cpu": used.ru_utime + used.ru_stime, "result": result}
    Path(job["out"]).write_text(json.dumps(told), encoding="utf-8")
    if job["task"] == "spend":
        print("answered", flush=True)
        time.sleep(600)  # until it is killed


def rows_of(keys, values, margins=None):
    """Return the cells of a table: keys, a value, and the ends of its interval where there is a margin."""
    margins = [None] * len(values) if margins is None else margins
    found = []
    for key, value, margin in zip(keys, values, margins):  # noqa: B905 - one tool needs an older Python's syntax
        ends = [None, None] if margin is None else [float(value) - float(margin), float(value) + float(margin)]
        found.append([*map(str, key), float(value), *ends])
    return found


def share(protocol):
    """Return the epsilon of one question: an equal share of the whole."""
    return protocol["privacy"]["epsilon"] / len(protocol["questions"])


def refused(error):
    """Return how a tool refuses, in a few words."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}" if str(error) else type(error).__name__
