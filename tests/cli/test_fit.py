"""discreet fit, as a user runs it."""

import json

import numpy as np
import pytest
from commands import run

import discreet as dc
from discreet.cli.fit import MODELS

POLICY = """
[data]
name = "places"
protects = "visitor"
[budget]
epsilon = 4.0
delta = 1e-6
[budget.analysts]
ana = { epsilon = 1.0 }
[tables.visits]
source = "visits.csv"
unit = "visitor"
groups = 1
rows = 2
[tables.visits.columns]
visitor = { type = "integer" }
lat = { type = "real", between = [47, 49] }
lon = { type = "real", between = [15, 18] }
late = { type = "integer", between = [0, 1] }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("fit")
    rng = np.random.default_rng(0)
    lat, lon = rng.normal(48.2, 0.2, 3000), rng.normal(16.4, 0.3, 3000)
    rows = [f"{i // 2},{a:.4f},{b:.4f},{int(b > 16.4)}" for i, (a, b) in enumerate(zip(lat, lon, strict=True))]
    (place / "visits.csv").write_text("\n".join(["visitor,lat,lon,late", *rows]))
    (place / "policy.toml").write_text(POLICY)
    return place


MIXTURE = ("fit", "policy.toml", "gaussian-mixture", "SELECT lat, lon FROM visits")


@pytest.mark.long
def test_a_mixture_is_fitted_charged_saved_and_plotted(folder):
    more = ("--epsilon", "1/2", "--by", "ana", "--set", "n_components=2", "--out", "model.json", "--plot", "map.svg")
    done = run(*MIXTURE, *more, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told == json.loads((folder / "model.json").read_text())
    assert (told["model"], told["protects"]) == ("GaussianMixture", "removal of one visitor")
    assert np.shape(told["means"]) == (2, 2)
    assert told["feature_names_in"] == ["lat", "lon"]
    assert "<svg" in (folder / "map.svg").read_text()
    with dc.open(folder / "policy.toml") as curator:
        event = curator.ledger.events()[-1]
        assert (event.id, event.by, event.state) == (told["receipt"], "ana", "released")


def test_a_classifier_predicts_the_last_column(folder):
    words = ("fit", "policy.toml", "logistic-regression", "SELECT lat, lon, late FROM visits", "--epsilon", "1/2")
    done = run(*words, "--set", "classes=[0, 1]", "--delta", "0", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["loss"]["epsilon"] == "1/2"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((*MIXTURE, "--epsilon", "9"), 3, "budget"),
        ((*MIXTURE, "--epsilon", "0"), 2, "epsilon must be"),
        ((*MIXTURE, "--epsilon", "1", "--by", "eve"), 3, "'eve'"),
        ((*MIXTURE, "--epsilon", "1", "--set", "components=2"), 2, "unexpected keyword argument 'components'"),
        ((*MIXTURE, "--epsilon", "1", "--set", "five"), 2, "expected name=value"),
        (("fit", "policy.toml", "forest", "SELECT lat FROM visits", "--epsilon", "1"), 2, "'forest' does not exist"),
        (("fit", "policy.toml", "pca", "SELECT COUNT(*) FROM visits", "--epsilon", "1"), 3, "model"),
        (("fit", "policy.toml", "pca", "SELECT visitor FROM visits", "--epsilon", "1"), 3, "visitor"),
    ],
)
def test_errors_are_reported_and_cost_nothing(folder, words, code, said):
    with dc.open(folder / "policy.toml") as curator:
        before = curator.ledger.spent()
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    with dc.open(folder / "policy.toml") as curator:
        assert curator.ledger.spent() == before


def test_every_model_of_the_command_exists():
    assert set(MODELS.values()) < set(dc.learn.__all__)
