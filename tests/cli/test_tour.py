"""The tour: every chapter is shown, its numbers come from the run, and its page is self-contained."""

import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from concurrent.futures import Future
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dc
from discreet.cli import demo
from discreet.cli.tour import chapter_ask, chapter_attack, chapter_budget, chapter_kernel, chapter_learn
from discreet.cli.tour.curator_copies import CuratorCopies
from discreet.cli.tour.differencing_game import (
    GuessingResult,
    noisy_counts,
    play,
    play_non_private,
    tradeoff_point,
)
from discreet.cli.tour.page import inline_svg, write_tour
from discreet.cli.tour.recorder import Recorder, warn
from discreet.worlds.town import SECRET_ILLNESS, Town, write_town

SMALL = """
import sys
from pathlib import Path
from discreet.cli.tour.recorder import Repetitions
from discreet.cli.demo import TourChapter, run_tour
run_tour(TourChapter.ALL, Path(sys.argv[1]), Repetitions(copies=16, plays=40, repeats=110))
"""
COMMAND = "from discreet.cli import app; app()"


def run(code, *words, cwd):
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=[pytest.param("tour", marks=pytest.mark.long)])
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")
    done = run(SMALL, folder, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done, folder


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("town")
    write_town(folder)
    return Town(folder)


@pytest.mark.long
def test_every_chapter_is_shown(told):
    shown = " ".join(told[0].stdout.split())
    for words in (
        "Queries on a simulated town of 60,000 residents",
        "The same queries on 16 copies of the town",
        "Groups that the policy does not list",
        "Differencing: two non-private counts",
        "The same two counts, private",
        "The trade-off",
        "Averaging: the same query 110 times",
        "Rephrasing: 110 equivalent queries",
        "A query that is refused",
        "The remaining budget",
        "Refining an answer, and asking for a margin",
        "kill -9",
        "A private count with its margin of error",
        "Exact noise: time for a million samples",
        "people who live far from everybody else",
        "What privacy costs a model",
        "Removing names is not anonymisation",
        "k-anonymity, l-diversity and the homogeneity attack",
        "Randomised response: no trusted curator",
        "What the local model costs in accuracy",
        "Publishing: a plan, charged once",
        "Publishing the same plan again is free: nothing was charged",
        "add up to the ward in all 8 wards: yes",
        "they add up as well: yes",
        "Mean total variation between rows and data over pairs of columns: 0.0",
        "compares every file with the manifest: nothing was changed",
        "tables/by_ward.csv: changed since the release",
    ):
        assert words in shown
    assert ["all", *demo.CHAPTERS] == list(demo.TourChapter)


def test_it_is_readable_at_80_columns_without_colour_and_progress_is_plain_lines_on_stderr(told):
    done, _ = told
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout + done.stderr
    assert {line.partition(":")[0] for line in done.stderr.splitlines()} == {"discreet"}
    assert "discreet: attacking the town" in done.stderr


def test_the_last_line_is_the_path_of_the_page(told):
    done, folder = told
    assert Path(done.stdout.splitlines()[-1]) == folder / "tour.html"
    assert (folder / "tour.html").stat().st_size > 10_000
    assert "start with: discreet init DATA\n" in done.stdout


def test_answers_are_shown_beside_the_truth_with_margin_and_cost(told):
    line = r"^ +(\D.*?) +([\d,.]+) +([\d,.-]+) ± ([\d,.]+) +(yes|no)(?: +0\.1)?$"
    answers = re.findall(line, told[0].stdout, re.MULTILINE)
    assert len(answers) == len(chapter_ask.QUERIES) - 1 + 8  # one of them for every ward
    for _, *numbers, inside in answers:
        truth, value, margin = (float(number.replace(",", "")) for number in numbers)
        if abs(abs(value - truth) - margin) > 0.02:  # else rounding decides
            assert (inside == "yes") == (abs(value - truth) <= margin)


@pytest.mark.long
def test_the_share_of_answers_inside_their_margins_is_as_stated(town):
    truths = {each: chapter_ask._values_by_key(town.true_answer(each.sql)) for each in chapter_ask.QUERIES}
    inside = [one for each in chapter_ask.ask_copies(town, truths, 30).values() for one in each]
    slack = 8 * math.sqrt(0.95 * 0.05 / len(inside))
    assert sum(inside) / len(inside) > 0.95 - slack - 0.01


@pytest.mark.long
def test_non_private_counts_disclose_the_governor_in_every_town(town):
    assert play_non_private(town, 200).share == 1


def test_the_tour_shows_the_governor_s_diagnosis(told):
    assert "The attacker infers: diabetes. That is correct." in told[0].stdout
    assert re.search(r"^ +non-private +± 0 +100\.0%", told[0].stdout, re.MULTILINE)


@pytest.mark.long
def test_the_governor_is_one_resident_whose_diagnosis_changes_no_other_count(town):
    condition = town.governor().condition
    assert town.true_answer(f"SELECT COUNT(*) FROM people WHERE {condition}") == [(1,)]
    for illness in ("none", SECRET_ILLNESS):
        people, count = town.people_with_diagnosis(ill=illness), "SELECT COUNT(*) FROM people"
        assert town.true_answer(f"SELECT ill FROM people WHERE {condition}", people=people) == [(illness,)]
        assert town.true_answer(count, people=people) == town.true_answer(count)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(3)])
def test_attacks_on_private_counts_succeed_as_theory_predicts_within_the_upper_bound(town, epsilon):
    played, theory = play(town, epsilon, 400), tradeoff_point(float(epsilon))
    band = 6.2 * 0.5 / math.sqrt(played.plays)
    assert abs(played.share - theory.differencing) <= band
    assert theory.differencing <= theory.upper_bound


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_success_of_differencing_is_that_over_all_pairs_of_rounded_noise(epsilon):
    grid = 256  # noise is drawn in such parts of a count, and finer ones
    noise = dc.laplace_for(dc.Sensitivity(groups=1, size=grid), epsilon / 2)
    chances = Counter()
    for k in range(-30 * grid, 30 * grid + 1):
        chances[round(k / grid)] += float(dc.privacy.pmf(noise, k))
    right = sum(p * q * ((1 + a - b >= 1) + (a - b < 1)) / 2 for a, p in chances.items() for b, q in chances.items())
    assert tradeoff_point(epsilon).differencing == pytest.approx(right, abs=1e-3)
    assert tradeoff_point(epsilon).upper_bound == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)))


def test_asking_again_returns_the_cached_answer_and_rephrasing_exhausts_the_budget(told):
    shown = " ".join(told[0].stdout.split())
    assert "Asked 110 times at epsilon 0.01: 1 distinct answer, 1 charge, epsilon 0.01 spent." in shown
    assert "Answered: 100; refused: 10; spent: epsilon 1." in shown
    assert re.search(r"50 differences is [+-][\d.]+ ± [\d.]+: the interval is too wide to distinguish 1 from 0", shown)


def said(capsys):
    return " ".join(capsys.readouterr().out.split())


def begun(folder):
    recorder = Recorder(folder)
    recorder.add_section("Anything")
    return recorder


def test_conclusions_about_repeats_follow_from_what_was_seen(tmp_path, capsys):
    chapter_attack.show_repeated(begun(tmp_path), chapter_attack.RepeatedQuery("SELECT 1", 5, 1, 1, Fraction(1)))
    assert "1 distinct answer, 1 charge," in (shown := said(capsys))
    assert "nothing to average" in shown
    chapter_attack.show_repeated(begun(tmp_path), chapter_attack.RepeatedQuery("SELECT 1", 5, 3, 3, Fraction(3)))
    assert "3 distinct answers, 3 charges," in (shown := said(capsys))
    assert "drew fresh noise" in shown


@pytest.mark.parametrize(("differences", "verdict"), [((90, -80, 7), "too wide"), ((1, 1, 1), "narrow enough")])
def test_an_average_that_identifies_somebody_would_be_reported(tmp_path, capsys, differences, verdict):
    done = chapter_attack.RephrasedQuery("SELECT 1", 6, 6, "no", Fraction(1), differences, (1.0, 1.0))
    chapter_attack.show_rephrased(begun(tmp_path), done)
    assert f"interval is {verdict} to distinguish" in said(capsys)


@pytest.mark.parametrize(
    ("right", "better", "bound"),
    [
        (505, "no better", ""),
        (528, "no better", "a share above it"),
        (560, "more often in this run", "a share above it"),
        (700, "is better", "exceeded"),
    ],
)
def test_the_attack_is_compared_with_guessing_and_with_its_bound(tmp_path, capsys, right, better, bound):
    played = [GuessingResult(Fraction(1, 10), right, 1000), GuessingResult(Fraction(3), 700, 1000)]
    chapter_attack._show_private(begun(tmp_path), played, GuessingResult(Fraction(0), 10, 10))
    shown = said(capsys)
    assert better in shown
    assert bound in shown
    assert bool(bound) == ("a share above it" in shown or "exceeded" in shown)


@pytest.mark.parametrize(
    ("shares", "present", "absent"),
    [
        (
            [0.9, 0.9, 0.0],
            ["a single member", "does not help", "Nobody was located"],
            ["not in the data"],
        ),
        ([0.1, 0.2, 0.04], ["4.0% of them, and 1.0% of those who are"], ["a single member", "does not help"]),
    ],
)
def test_conclusions_about_models_follow_from_who_was_located(shares, present, absent):
    shown = "".join(map(str, chapter_learn._verdict(shares, 0.01, 4)))
    assert all(words in shown for words in present)
    assert not any(words in shown for words in absent)


@pytest.mark.parametrize(("inside", "verdict"), [(950, "agrees with 95%"), (800, "below 95%")])
def test_margins_that_hold_too_rarely_would_be_reported(tmp_path, capsys, inside, verdict):
    chapter_ask._show_coverage(begun(tmp_path), [{chapter_ask.QUERIES[0]: [True] * inside + [False] * (1000 - inside)}])
    assert verdict in said(capsys)


def test_a_model_locates_people_unless_it_is_private(told):
    line = r"^ +(non-private|no small components|private, epsilon 1) +([\d.]+)% +([\d.]+)"
    plain, fixed, private = (float(share) for _, share, _ in re.findall(line, told[0].stdout, re.MULTILINE))
    assert plain > 30
    assert fixed > 30
    assert private < 30


def test_no_street_with_a_single_visitor_is_listed(told):
    assert re.search(r"lists \d+ streets, 0 of them with a single visitor", " ".join(told[0].stdout.split()))


def test_a_refusal_names_its_cause_costs_nothing_and_can_be_fixed(told):
    shown = " ".join(told[0].stdout.split())
    assert re.search(r"Refused: line 1.*income / age", shown)
    assert "Charged: rho 0." in shown
    assert "Answered: 8 wards." in shown
    assert told[0].stdout.count("valid") == 4


def test_repeats_are_free_refining_costs_the_difference_and_a_margin_determines_its_cost(told):
    first_cells = "(?:epsilon 0.1|the same query again|refined: epsilon 0.25|a margin of 5)"
    line = rf"^ +{first_cells} +([\d,]+) ± (\d+) +([\d.]+) +([\d.]+)$"
    first, again, finer, within = re.findall(line, told[0].stdout, re.MULTILINE)
    assert first[1:] == ("30", "0.1", "0.1")
    assert again == (*first[:2], "0", "0.1")
    assert finer[1:] == ("12", "0.15", "0.25")
    assert within[1] == "5"
    assert float(within[2]) == pytest.approx(float(within[3]) - 0.25, abs=1e-3)


def test_no_query_is_shown_with_two_margins():
    assert chapter_budget.COUNT_SQL not in [query.sql for query in chapter_ask.QUERIES]
    (average,) = re.findall(r"AVG\(\w+\)", chapter_ask.PRINTED_SQL)
    assert not any(average in query.sql for query in chapter_ask.QUERIES)


def test_the_printed_answer_has_no_clipping_because_each_resident_has_one_row(told):
    _, _, printed = told[0].stdout.partition("An answer as Discreet prints it")
    printed, _, _ = printed.partition("Groups that the policy does not list")
    assert "± is the 95 % margin of error" in printed
    assert not re.search("[Cc]lipping|exceed the bounds", printed)


def test_every_sentence_of_the_tour_ends_once(told):
    assert not re.search(r"[^.]\.\.(?!\.)", told[0].stdout)


def test_the_kernel_keeps_its_guarantees(told):
    shown = " ".join(told[0].stdout.split())
    assert "largest log-ratio is 0.1, exactly epsilon" in shown
    assert "largest log-ratio is infinite" in shown
    assert "Simultaneous 95 % margin: ± 12" in shown
    assert "0.311" in shown
    assert "Answered: 100; spent: epsilon 1, without rounding error." in shown


def test_the_page_is_well_formed_and_repeats_the_terminal_output(told):
    done, folder = told
    page = (folder / "tour.html").read_text(encoding="utf-8")
    root = ET.fromstring(page[page.index("<html") :])
    titles = [heading.text for heading in root.iter("h2")]
    assert titles == re.findall(r"^(\d+\. .*)$", done.stdout, re.MULTILINE)
    said = "".join(root.itertext())
    for share in re.findall(r"\d+\.\d+%", done.stdout):
        assert share in said
    assert len(list(root.iter("{http://www.w3.org/2000/svg}svg"))) == 6


def test_the_page_fetches_nothing(told):
    page = (told[1] / "tour.html").read_text(encoding="utf-8")
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names of vocabularies, not places
    assert set(re.findall(r"https?://[^\"' <)]+", page)) == names
    assert all(link.startswith(("#", "data:image/png")) for link in re.findall(r'(?:href|src)="([^"]*)"', page))
    assert not re.search(r"<script|<link|@import|url\((?!#)", page)
    assert max(Counter(re.findall(r'\bid="([^"]+)"', page)).values()) == 1
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


@pytest.mark.long
def test_the_command_shows_a_single_chapter(tmp_path):
    done = run(COMMAND, "demo", "budget", "--out", tmp_path / "a" / "b", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "discreet: killing a process\n")
    assert "1. A query that is refused" in done.stdout
    assert done.stdout.endswith("tour-budget.html\n")
    assert not (tmp_path / "a" / "b" / "tour.html").exists()  # that of the whole tour stays as it is
    assert "Differencing" not in done.stdout
    assert "discreet init" not in done.stdout


@pytest.mark.long
def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(COMMAND, "demo", "budget", "--out", tmp_path / "file" / "b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("discreet: --out: cannot write")


@pytest.mark.long
def test_another_run_differs_wherever_noise_decides(told, tmp_path):
    done = run(COMMAND, "demo", "kernel", "--out", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    def decided(shown):
        found = re.findall(r"^ +[01.]+ +737 +([-\d,]+) ± [\d,]+ +\w+ +([\d.]+)%$", shown, re.MULTILINE)
        return found + re.findall(r"^ +\d\.0\d +\d\.\d\d +0\.\d+ +(0\.\d+)$", shown, re.MULTILINE)

    assert len(decided(done.stdout)) == len(decided(told[0].stdout)) == 7
    assert decided(done.stdout) != decided(told[0].stdout)


def test_no_displayed_share_is_hard_coded(told):
    source = "".join(path.read_text(encoding="utf-8") for path in Path(demo.__file__).parent.glob("*.py"))
    share = re.compile(r"\d\.\d+ ?%")
    assert len(share.findall(told[0].stdout)) > 10
    assert share.findall(source) == []


def test_a_copy_answers_like_the_curator_but_charges_its_own_ledger(town):
    sql = town.governor().differencing_queries()[0]
    with town.open_with_budget("1") as curator:
        copies = CuratorCopies(curator)
        answers = []
        for _ in range(12):
            with copies.open_copy() as copy:
                answers.append(copy.ask(sql, epsilon="1/100"))
                assert copy.budget().spent.epsilon == Fraction(1, 100)
        own = curator.ask(sql, epsilon="1/100")
        assert {(each.margin, each.cost) for each in answers} == {(own.margin, own.cost)}
        assert len({each.value for each in answers}) > 1
        assert curator.budget().spent.epsilon == Fraction(1, 100)


def test_repeated_counts_are_near_the_truth_and_differ(town):
    sql = town.governor().differencing_queries()[0]
    with town.open_with_budget("1") as curator:
        counts = list(noisy_counts(curator, sql, Fraction(1), 60))
    truth = town.true_answer(sql)[0][0]
    assert all(abs(count - truth) <= 40 for count in counts)
    assert len(set(counts)) > 1


def test_without_matplotlib_the_tour_names_the_missing_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    recorder = Recorder(tmp_path)
    recorder.add_section("A picture")
    recorder.draw_picture(chapter_kernel.counts_figure, "count.svg", "A count.")
    assert "discreet[pictures]" in " ".join(capsys.readouterr().out.split())
    assert list(tmp_path.iterdir()) == []


def test_text_is_escaped_on_the_page_and_is_not_markup_in_the_terminal(tmp_path, capsys):
    recorder = Recorder(tmp_path)
    recorder.add_section("a < b [red]")
    recorder.add_paragraph("x & y ", warn("<b>"))
    recorder.add_table(("h<",), [("[bold]c>",)])
    page = write_tour(tmp_path / "page.html", recorder.sections, 1.0).read_text(encoding="utf-8")
    assert "a &lt; b [red]" in page
    assert 'x &amp; y <span class="warn">&lt;b&gt;</span>' in page
    assert "<td>[bold]c&gt;</td>" in page
    assert "[bold]c>" in capsys.readouterr().out


def test_a_plot_on_the_page_has_unique_ids_and_the_colour_of_the_text():
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="9pt" height="8pt" viewBox="0 0 9 8">\n<metadata>m</metadata>'
        '<path id="p" style="fill: #ffffff; stroke: #333333"/><g clip-path="url(#p)"><use xlink:href="#p"/></g></svg>'
    )
    assert inline_svg(svg, "i1") == (
        '<svg viewBox="0 0 9 8"><path id="i1-p" style="fill: none; stroke: currentColor"/>'
        '<g clip-path="url(#i1-p)"><use xlink:href="#i1-p"/></g></svg>'
    )


def test_results_of_worker_processes_are_in_the_order_of_the_jobs(tmp_path):
    jobs = [Future() for _ in range(3)]
    for place in (2, 0, 1):
        jobs[place].set_result(place)
    assert Recorder(tmp_path).wait(jobs, "waiting") == [0, 1, 2]


@pytest.mark.slow
def test_the_whole_tour_takes_less_than_a_minute_of_the_processor(tmp_path):
    """So that it takes less than a minute where nothing else runs."""
    before = sum(os.times()[:4])
    done = run(COMMAND, "demo", "--out", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^[\d.]+ seconds\.", done.stdout, re.MULTILINE)
    assert sum(os.times()[:4]) - before < 60
