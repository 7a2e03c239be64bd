"""PipelineDP: one engine and one accountant for all questions, on its local backend.

- Laplace noise: naive composition of Gaussian noise would need more of it at these parameters.
- `max_contributions` bounds the visits of a patient for counts, sums and means; where it does not
  work (distinct patients, the median, keys that are not public), groups and visits in each are bounded.
- `output_noise_stddev` states the deviation of the noise of counts and sums. It is turned into a 95 % interval here,
  by the quantile of Laplace noise: ln(20)/sqrt(2) deviations.
- Patients are binned by their number of visits by hand, before the engine sees one row per patient.
"""

import csv
import math
from collections import Counter
from pathlib import Path

import common
import pipeline_dp
from pipeline_dp import AggregateParams, Metrics, NoiseKind

BINS = ["1", "2", "3-5", "6-12", "13+"]
DEVIATIONS = math.log(20) / math.sqrt(2)


def publish(job):
    protocol, bounds = job["protocol"], job["protocol"]["bounds"]
    wards, months = protocol["data"]["wards"], range(1, protocol["data"]["months"] + 1)
    with Path(job["data"]).open(encoding="utf-8") as file:
        rows = [(int(row["patient"]), row["ward"], int(row["month"]), row["diagnosis"], float(row["cost"]))
                for row in csv.DictReader(file)]  # fmt: skip
    patients = [(patient, _bin(visits), 0.0) for patient, visits in Counter(row[0] for row in rows).items()]
    privacy = protocol["privacy"]
    engine = Engine(privacy["epsilon"], privacy["delta"], len(protocol["questions"]))
    all_visits = {"max_contributions": bounds["visits"]}
    few = {"max_partitions_contributed": bounds["wards"], "max_contributions_per_partition": bounds["per_group"]}
    low, high = bounds["cost"]
    clamped = {"min_value": low, "max_value": high}

    def by(*places):
        return [(row[0], tuple(row[place] for place in places), row[4]) for row in rows]

    ward, names = by(1), [(name,) for name in wards]
    distinct = {**few, "max_contributions_per_partition": 1}
    engine.ask("visits", by(), [()], Metrics.COUNT, all_visits)
    engine.ask("visits_by_ward", ward, names, Metrics.COUNT, all_visits)
    engine.ask("visits_by_month", by(2), [(month,) for month in months], Metrics.COUNT, all_visits)
    both = [(name, month) for name in wards for month in months]
    engine.ask("visits_by_ward_and_month", by(1, 2), both, Metrics.COUNT, all_visits)
    engine.ask("patients_by_ward", ward, names, Metrics.PRIVACY_ID_COUNT, distinct)
    engine.ask("cost_by_ward", ward, names, Metrics.SUM, {**all_visits, **clamped})
    engine.ask("mean_cost_by_ward", ward, names, Metrics.MEAN, {**all_visits, **clamped})
    engine.ask("median_cost_by_ward", ward, names, Metrics.PERCENTILE(50), {**few, **clamped})
    codes = {**few, "max_partitions_contributed": bounds["diagnoses"]}
    engine.ask("visits_by_diagnosis", by(3), None, Metrics.COUNT, codes)
    one = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
    engine.ask("patients_by_visits", patients, [(name,) for name in BINS], Metrics.COUNT, one)
    return engine.results()


class Engine:
    """Collects questions, divides the budget, and computes; rows are (person, key, value)."""

    def __init__(self, epsilon, delta, questions):
        self.accountant = pipeline_dp.NaiveBudgetAccountant(epsilon, delta, num_aggregations=questions)
        self.engine = pipeline_dp.DPEngine(self.accountant, pipeline_dp.LocalBackend())
        self.asked = {}

    def ask(self, name, rows, keys, metric, bounds):
        stated = metric in (Metrics.COUNT, Metrics.PRIVACY_ID_COUNT, Metrics.SUM)
        params = AggregateParams(metrics=[metric], noise_kind=NoiseKind.LAPLACE, output_noise_stddev=stated, **bounds)
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        self.asked[name] = self.engine.aggregate(rows, params, extractors, public_partitions=keys)

    def results(self):
        self.accountant.compute_budgets()
        found = {}
        for name, lazy in self.asked.items():
            cells = list(lazy)
            keys = [key if isinstance(key, tuple) else (key,) for key, _ in cells]
            values = [metrics._asdict() for _, metrics in cells]
            deviations = [next((v for k, v in cell.items() if k.endswith("_stddev")), None) for cell in values]
            numbers = [next(v for k, v in cell.items() if not k.endswith("_stddev")) for cell in values]
            margins = [None if deviation is None else DEVIATIONS * deviation for deviation in deviations]
            found[name] = [
                common.rows_of([key], [number], [margin])[0]
                for key, number, margin in zip(keys, numbers, margins, strict=True)
            ]
        return found


def _bin(visits):
    return (next(name for name, most in zip(BINS, (1, 2, 5, 12, math.inf), strict=True) if visits <= most),)


def counts(job):
    return _grouped(job, Metrics.COUNT, {})


def sums(job):
    return _grouped(job, Metrics.SUM, {"min_value": 0.0, "max_value": 1.0})


def _grouped(job, metric, clamped):
    engine = Engine(job["epsilon"], 0, 1)
    bounds = {"max_partitions_contributed": job["groups"], "max_contributions_per_partition": 1, **clamped}
    engine.ask("n", _people(job), [(box,) for box in range(job["keys"])], metric, bounds)
    found = {int(box): value for box, value, *_ in engine.results()["n"]}
    return [found[box] for box in range(job["keys"])]


def _people(job):
    with Path(job["data"]).open(encoding="utf-8") as file:
        return [(int(row["person"]), (int(row["box"]),), float(row["value"])) for row in csv.DictReader(file)]


def repeats(job):
    """One pipeline per request; an accountant divides the budget of one pipeline and knows no other."""
    people, answers = [(person, (), value) for person, _, value in _people(job)], []
    for _ in range(job["requests"]):
        engine = Engine(job["each"], 0, 1)
        engine.ask("n", people, [()], Metrics.COUNT, {"max_contributions": 1})
        answers.append(engine.results()["n"][0][0])
    return {"answers": answers, "refusal": None, "spent": None}


def spend(job):
    engine = Engine(job["spend"], 0, 1)
    engine.ask("n", _people(job), [(0,)], Metrics.COUNT, {"max_contributions": 1})
    engine.results()


def remaining(job):
    """A new accountant has all of its budget."""
    return Engine(job["epsilon"], 0, 1).accountant.total_epsilon


if __name__ == "__main__":
    common.main("pipeline-dp", {task.__name__: task for task in (publish, counts, sums, repeats, spend, remaining)})
