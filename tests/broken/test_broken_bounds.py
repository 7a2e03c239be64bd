"""Broken automatic bounds: each variant discloses more than is charged, and is caught."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from seeded_noise import seeded

import discreet as dc
from discreet import pricing
from discreet.engines.column_usage import usage_of_questions
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.kernel.loss import ZERO_LOSS
from discreet.policy import Policy

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MEAN = "SELECT ward, AVG(cost) AS a FROM visits GROUP BY ward"
REQUESTS = [
    (COUNT, {"margin": 50}),
    (COUNT, {"epsilon": 1, "by": "ann"}),
    (COUNT, {"epsilon": 1, "by": "bob"}),
    (MEAN, {"epsilon": 1}),
    (COUNT, {"margin": 50, "by": "bob"}),
    (COUNT, {"epsilon": 4}),
    ("SELECT COUNT(*) AS n FROM visits WHERE ward = 1", {"epsilon": 2}),
    ("SELECT SUM(cost) AS s FROM visits", {"epsilon": 2, "rows": "auto"}),
    ("SELECT ward, COUNT(DISTINCT patient) AS u FROM visits GROUP BY ward", {"epsilon": 1}),
    (COUNT, {"epsilon": 1, "groups": 1, "rows": 2}),
    (COUNT, {"epsilon": 90, "by": "ann"}),
]
HEAVY = 99


def policy_of(delta):
    columns = {
        "patient": {"type": "integer"},
        "ward": {"type": "integer", "between": [0, 2]},
        "cost": {"type": "integer", "between": [-9, 9]},
    }
    return Policy.from_dict(
        {
            "data": {"name": "visits", "ledger": ":memory:", "version": "1"},
            "budget": {"epsilon": 100, "analysts": {"ann": {"epsilon": 20}, "bob": {"epsilon": 20}}}
            | ({"delta": "1e-6"} if delta else {}),
            "tables": {"visits": {"source": "v", "unit": "patient", "rows_max": 10**6, "columns": columns}},
        }
    )


def visits(*, heavy):
    """90 patients with a visit or two; and one with 900 visits, or none."""
    patient = [*range(60), *range(90), *([HEAVY] * 900 if heavy else [])]
    place = np.arange(len(patient))
    return pa.table({"patient": patient, "ward": place % 3, "cost": place % 19 - 9})


@pytest.fixture(params=[False, True], ids=["pure", "delta"])
def curators(request):
    """Curators of two neighbouring data sets."""
    policy = policy_of(request.param)
    tables = [{"visits": visits(heavy=heavy)} for heavy in (False, True)]
    with dc.open(policy, data=tables[0]) as light, dc.open(policy, data=tables[1]) as heavy:
        yield light, heavy


def everything_seen(curator):
    """Yield all that analysts see of some queries: answers, explanations, refusals, and the ledger."""
    for sql, more in REQUESTS:
        for act in (curator.explain, curator.ask, curator.explain):
            try:
                shown = act(sql, **more)
            except dc.Refused as refusal:
                yield str(refusal)
                continue
            yield shown.bounds, shown.paid, shown.cost.loss, repr(shown)
            if act == curator.ask:
                yield shown.to_arrow().to_pylist(), shown.margins, shown.bias, shown.clipping, shown.reliable
    yield [(event.question, event.loss, event.by) for event in curator.ledger.events()]


def transcripts(curators, monkeypatch):
    """Return what is seen of two data sets, with the same noise and the same totals: those of the first."""
    sound, totals = type(curators[0]._engine).totals, {}

    def recorded(engine, question):
        if engine is curators[0]._engine:
            totals[question] = sound(engine, question)
        return totals[question]

    monkeypatch.setattr(type(curators[0]._engine), "totals", recorded)
    for curator in curators:
        with seeded():
            yield list(everything_seen(curator))


@pytest.mark.long
def test_all_that_is_seen_depends_on_the_data_only_through_the_totals(curators, monkeypatch):
    """They get noise in the kernel, and are charged; a peek at anything else would show."""
    light, heavy = transcripts(curators, monkeypatch)
    assert light == heavy
    assert "chosen automatically" in repr(light)


@pytest.mark.long
def test_bounds_from_the_exact_maximum_are_caught(curators, monkeypatch):
    def from_maximum(plan, request, look_up):
        data = visits(heavy=look_up.__self__ is curators[1].releases)
        most_rows = int(np.bincount(data["patient"].to_numpy()).max())
        return {release.automatic.key: ChosenBounds(1, most_rows) for release in plan.pending}

    monkeypatch.setattr(pricing, "choose_bounds", from_maximum)
    with pytest.raises((KeyError, dc.Failed)):  # the second asks the engine for other totals than the first
        list(transcripts(curators, monkeypatch))


def totals_of(curator, question):
    with curator._engine.prepare(usage_of_questions([question])) as reader:
        totals = reader.totals(question)
    return dict(zip(totals.keys, totals.values[:, 0].tolist(), strict=True))


def test_a_histogram_that_is_not_charged_is_caught(curators, monkeypatch):
    """The kernel computes the loss itself, and refuses before it reads."""
    curator, sound = curators[0], pricing.plan_release

    def free(histories, *rest):
        planned = sound(histories, *rest)
        histogram = all(history.release.histogram for history in histories)
        return replace(planned, marginal_cost=ZERO_LOSS) if histogram else planned

    monkeypatch.setattr(pricing, "plan_release", free)
    monkeypatch.setattr(type(curator._engine), "totals", lambda *_: pytest.fail("read"), raising=False)
    with pytest.raises(ValueError, match="cost"):
        curator.ask(COUNT, epsilon=1)
    assert curator.ledger.events() == []


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward",
        "SELECT SUM(cost) AS s FROM visits",
        "SELECT ward, COUNT(DISTINCT patient) AS u FROM visits GROUP BY ward",
    ],
)
def test_a_unit_of_any_size_moves_its_histogram_by_one(curators, sql):
    plan = curators[0].releases.plan_query(sql, "owner", None, None)
    (question,) = [release.question for release in plan.releases if release.histogram]
    light, heavy = (totals_of(curator, question) for curator in curators)
    assert question.sensitivity().l1 == 1
    assert sum(abs(heavy.get(key, 0) - light.get(key, 0)) for key in light | heavy) == 1
