"""The pictures of the documentation show what was measured, are all drawn by one command, and can be read."""

import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from readable import flaws

from discreet import plotting
from discreet.cli.tour import differencing_game
from discreet.cli.tour.chapter_kernel import counts_figure, names_figure
from discreet.cli.tour.differencing_game import tradeoff_figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.pictures import __main__ as tool  # noqa: E402
from tools.pictures import bounds, learning, publishing  # noqa: E402
from tools.pictures.tour import sampling_figure  # noqa: E402

PATIENTS = 4000
FOUND = bounds.Comparison(
    former=[bounds.Point(1, 900.0, 30.0), bounds.Point(10, 400.0, 300.0)],
    ball=[bounds.Point(1, 800.0, 30.0), bounds.Point(10, 90.0, 300.0)],
    chosen=[10.0, 10.0, 14.0],
)


def title(figure):
    return figure.get_suptitle().replace("\n", " ")


# All pictures


def test_one_command_draws_every_picture_and_the_pages_show_them_all():
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    shown = {name for page in pages for name in re.findall(r"pictures/([\w-]+)\.svg", page.read_text())}
    kept = {path.stem for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert kept == set(tool.PICTURES)
    assert shown == set(tool.PICTURES)
    assert "python -m tools.pictures\n" in (ROOT / "Makefile").read_text()


def test_the_command_writes_what_is_asked_for_and_names_what_it_does_not_know(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(tool.PICTURES, "bounds", (lambda: FOUND, bounds.bounds_figure))
    assert tool.main(["bounds"], tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["bounds.svg"]
    assert tool.main(["bound"], tmp_path) == 2
    assert "no picture 'bound'" in capsys.readouterr().err


def test_the_picture_of_the_page_is_small_and_the_readme_shows_it():
    picture = ROOT / "docs" / "pictures" / "page.png"
    assert picture.stat().st_size < 200_000
    assert "](docs/pictures/page.png)" in (ROOT / "README.md").read_text()


def test_a_picture_whose_data_are_missing_is_left_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learning, "DATA", tmp_path / "nowhere")
    assert tool.main(["checkins"], tmp_path) == 0
    assert list(tmp_path.iterdir()) == []
    assert "DISCREET_DATA" in capsys.readouterr().out


@pytest.mark.long
def test_the_same_figure_gives_the_same_file(tmp_path):
    def drawn(name):
        figure, (axes,) = plotting.panels()
        axes.fill_between([0, 1], [1, 2], label="band")  # its clipping has an id, which is random without a salt
        plotting.add_legend(figure, [axes])
        plotting.set_title(figure, "The same")
        return plotting.save_figure(figure, tmp_path / name).read_bytes()

    first, second = drawn("a.svg"), drawn("b.svg")
    assert first == second
    assert b"<dc:date>" not in first
    assert b"<text" not in first  # letters are shapes: the reader's fonts do not matter


def test_colours_differ_in_brightness_for_colour_blind_readers():
    def brightness(colour):
        red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2

    three = sorted(map(brightness, (plotting.BLUE, plotting.RED, plotting.ORANGE)))
    assert min(np.diff(three)) > 0.05


@pytest.mark.parametrize("broken", ["cut", "small", "covered", "crossed"])
def test_unreadable_plots_are_detected(broken):
    figure, (axes,) = plotting.panels()
    axes.plot([0, 1], label="line")
    assert flaws(figure) == []
    match broken:
        case "cut":
            axes.set_ylabel("of pairs of a member and a stranger were ranked right, by a score of the model" * 2)
        case "small":
            axes.set_xlabel("epsilon", fontsize=4)
        case "covered":
            axes.legend(loc="center")
        case "crossed":
            axes.text(0.5, 0.5, "one word")
            axes.text(0.5, 0.5, "another")
    assert flaws(figure) != []


# The tour's


def test_the_distributions_of_a_count_are_those_of_the_mechanisms():
    figure = counts_figure()
    left, right = figure.axes
    for axes, ends in ((left, 1), (right, 0)):
        without, with_you = (np.asarray(line.get_ydata()) for line in axes.lines)
        assert np.allclose(without[:-1], with_you[1:])  # one is the other, moved by a person
        assert ((without > 0) == (with_you > 0)).all() == bool(ends)
    assert flaws(figure) == []


def test_the_picture_of_names_counts_those_inside_the_margin():
    truth = np.array([1000, 100, 10, 1])
    figure = names_figure(truth, truth + np.array([3, -3, 13, 0]), 12)
    assert title(figure).startswith("3 of 4 released counts are within ± 12")
    assert figure.axes[1].lines[0].get_ydata().tolist() == [3, -3, 13, 0]
    assert flaws(figure) == []


def test_the_trade_off_is_stated_at_epsilon_one():
    points = [differencing_game.tradeoff_point(epsilon) for epsilon in (0.1, 1.0, 3.0)]
    figure = tradeoff_figure(points, [differencing_game.GuessingResult(Fraction(1), 60, 100)])
    left, right = figure.axes
    assert left.lines[0].get_ydata().tolist() == [point.margin for point in points]
    assert "right more than 73 %" in title(figure)
    assert right.containers[0].lines[0].get_ydata().tolist() == [60]
    assert flaws(figure) == []


def test_privacy_and_sampling_cross_where_the_title_says():
    figure = sampling_figure("0.1")
    (axes,) = figure.axes
    sampling, privacy = (line.get_ydata() for line in axes.lines[:2])
    (n,), (error,) = axes.lines[3].get_data()
    assert f"from {n:,} people on" in title(figure)
    assert np.interp(n, axes.lines[0].get_xdata(), sampling) == pytest.approx(error, rel=0.05)
    assert np.interp(n, axes.lines[1].get_xdata(), privacy) == pytest.approx(error, rel=0.05)
    assert flaws(figure) == []


# Bias against noise


@pytest.fixture(scope="module")
def visits():
    return bounds.simulated(PATIENTS)


def test_a_few_patients_come_nearly_every_day_and_most_hardly_ever():
    visits = bounds.visits_of(bounds.PATIENTS)
    assert visits.min() == np.median(visits) == 1
    assert visits.max() == bounds.MOST_VISITS
    assert 0 < (visits > 100).sum() <= bounds.PATIENTS / 1000


def test_half_of_the_visits_are_to_the_own_clinic_of_a_patient(visits):
    assert np.array_equal(visits.sum(axis=1), bounds.visits_of(PATIENTS))
    own = visits[np.arange(PATIENTS), np.arange(PATIENTS) % bounds.CLINICS].sum()
    assert own / visits.sum() == pytest.approx(0.5 + 0.5 / bounds.CLINICS, abs=0.03)


def test_a_ball_scales_a_patient_to_its_radius_and_the_former_rule_caps_rows():
    patient = np.array([[3, 4]])
    assert bounds.clipped_to_ball(patient, 2.5) == pytest.approx([1.5, 2.0])
    assert bounds.clipped_to_ball(patient, 6.0) == pytest.approx([3.0, 4.0])
    assert bounds.clipped_by_former_rule(patient, 2 * np.sqrt(2)) == pytest.approx([2.0, 2.0])


def test_bias_falls_with_the_radius_and_noise_rises_for_both_rules(visits):
    found = bounds.measured(visits, radii=bounds.RADII[::4], choices=3)
    for points in (found.former, found.ball):
        assert [point.bias for point in points] == sorted((point.bias for point in points), reverse=True)
        assert [point.noise / point.radius for point in points] == pytest.approx([points[0].noise] * len(points))
    assert all(ball.bias <= former.bias for ball, former in zip(found.ball, found.former, strict=True))
    assert set(found.chosen) <= set(bounds.RADII)


def test_the_picture_of_bounds_marks_the_smallest_errors_and_the_chosen_radii():
    figure = bounds.bounds_figure(FOUND)
    before, now = figure.axes
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["500", "313"]
    assert before.lines[2].get_ydata()[1] == 500
    assert [patch.get_label() for patch in now.patches] == ["chosen automatically (9 of 10)"]
    assert "chosen automatically, 10," in title(figure)
    assert flaws(figure) == []


# Publishing


def test_the_picture_of_a_publication_states_errors_per_cell_and_distances():
    figure = publishing.publishing_figure(
        publishing.Publication(
            {(): publishing.Errors(1, 10.0, 10.0, 9.0), ("ward",): publishing.Errors(3, 10.0, 2.0, 2.1)},
            {
                ("ward", "sex"): publishing.Distances(0.01, 0.02, 0.3),
                ("ward", "age"): publishing.Distances(0, 0.04, 0.1),
            },
        )
    )
    assert "is 5.3 instead of 10.0" in title(figure)
    assert "rows are 0.030 from the data, independent columns 0.200" in title(figure)
    assert figure.axes[0].lines[1].get_xdata().tolist() == [10.0, 2.0]
    assert flaws(figure) == []


@pytest.mark.long
def test_errors_of_a_publication_are_as_forecast():
    found = publishing.measured(publishing.simulated(2_000), releases=10)
    for each in found.errors.values():
        assert each.measured == pytest.approx(each.together, rel=0.8 if each.cells == 1 else 0.5)
    ages = found.errors["age", "month"]
    assert (ages.cells, ages.together < 0.7 * ages.alone) == (30, True)
    assert found.distances["ward", "age"].synthetic < found.distances["ward", "age"].independent / 3


# Learning


class _Fitted:
    means_ = np.array([[-73.98, 40.75], [-73.87, 40.78]])
    covariances_ = np.array([np.eye(2) * 1e-4] * 2)
    covariance_type = "full"
    weights_ = np.array([0.7, 0.3])


@pytest.mark.long
def test_the_maps_have_axes_and_correct_place_names():
    edges = np.linspace(-74.2, -73.7, 5), np.linspace(40.5, 40.9, 5)
    figure = learning.maps_figure({1: [((*edges, np.ones((4, 4))), _Fitted())]}, maps=[learning.CITY])
    (axes,) = figure.axes
    names = {text.get_text(): text.xy for text in axes.texts}
    assert set(names) == set(learning.CITY.places)
    assert names["JFK"] == (-73.779, 40.641)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude (degrees)", "latitude (degrees)")
    assert axes.get_title(loc="left") == "New York, epsilon 1"
    assert flaws(figure) == []


@pytest.mark.parametrize("each", [learning.CITY, learning.WORLD], ids=lambda each: each.name)
def test_every_named_place_is_on_its_map(each):
    (west, east), (south, north) = each.shown
    assert all(west < lon < east and south < lat < north for lon, lat in each.places.values())


def test_the_picture_of_mixtures_states_the_gaps():
    scores = {name: [-30.0, -25.0, -20.0, -18.0] for name in learning.METHODS} | {learning.NON_PRIVATE: [-17.5] * 4}
    scores["whitened"] = [-19.0, -18.5, -18.0, -17.6]
    figure = learning.mixtures_figure({"one": scores, "Life Science, 10 columns": scores})
    assert "within 0.5 of the non-private log-likelihood, DP-EM within 2.5" in title(figure)
    assert figure.axes[0].lines[0].get_ydata().tolist() == scores["whitened"]
    assert flaws(figure) == []


def test_the_picture_of_ratings_has_the_errors_of_both_levels():
    found = {"event": [0.9, 0.89, 0.88, 0.87, 0.86, 0.855, 0.85], "user": [0.95] * 7}
    figure = learning.ratings_figure(found, 1.037)
    assert [line.get_ydata().tolist() for line in figure.axes[0].lines[:2]] == [found["event"], found["user"]]
    assert "0.870" in title(figure)
    assert flaws(figure) == []
