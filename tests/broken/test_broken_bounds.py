"""Broken automatic bounds: each variant discloses more than is charged, and is caught."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import pricing
from discreet.curator.curator import Curator
from discreet.engines.column_usage import usage_of_questions
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.kernel.loss import ZERO_LOSS
from discreet.policy import Policy

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
OTHERS = (
    "SELECT ward, AVG(cost) AS a FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS n, AVG(cost) AS a FROM visits GROUP BY ward",
)
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
            "budget": {"epsilon": 100} | ({"delta": "1e-6"} if delta else {}),
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
    """Curators of two neighbouring data sets, which share the ledger."""
    policy = policy_of(request.param)
    tables = [{"visits": visits(heavy=heavy)} for heavy in (False, True)]
    with dc.open(policy, data=tables[0]) as light, dc.open(policy, data=tables[1]) as heavy:
        yield light, Curator(policy, heavy._engine, light.ledger)


def choices_differ(curators):
    """Return whether two curators with the same released histogram choose other bounds."""
    curators[0].ask(COUNT, epsilon=1)
    seen = [[curator.explain(sql, epsilon=1).bounds for sql in OTHERS] for curator in curators]
    assert all("chosen automatically" in " ".join(bounds) for each in seen for bounds in each)
    return seen[0] != seen[1]


def test_the_choice_depends_on_the_data_only_through_the_released_histogram(curators):
    assert not choices_differ(curators)


def test_bounds_from_the_exact_maximum_are_caught(curators, monkeypatch):
    def from_maximum(plan, request, look_up):
        data = visits(heavy=look_up.__self__ is curators[1])
        most_rows = int(np.bincount(data["patient"].to_numpy()).max())
        return {release.automatic.key: ChosenBounds(1, most_rows) for release in plan.pending}

    monkeypatch.setattr(pricing, "choose_bounds", from_maximum)
    assert choices_differ(curators)


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
    plan = curators[0]._plan_query(sql, "owner", None, None)
    (question,) = [release.question for release in plan.releases if release.histogram]
    light, heavy = (totals_of(curator, question) for curator in curators)
    assert question.sensitivity().l1 == 1
    assert sum(abs(heavy.get(key, 0) - light.get(key, 0)) for key in light | heavy) == 1
