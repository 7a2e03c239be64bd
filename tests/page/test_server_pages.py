"""Journeys through the pages of a server in a real browser: newcomer, analyst, owner and auditor."""

import re
from contextlib import contextmanager

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from browser import DESKTOP, PHONE, accessibility_problems, watched_page
from page_server import EVIL_ANALYST, HOSTILE, served_pages

from discreet.kernel.event import Event, canonical_json
from discreet.kernel.loss import Loss
from discreet.server.pages.guards import COOKIE

pytestmark = pytest.mark.long
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward"
DISCOVERED = "SELECT note, COUNT(*) AS n FROM visits GROUP BY note"
SHOWN = HOSTILE[:30]  # of a long key, in a table
CHARGE = re.compile("Costs ")
PLAN = """[release]
name = "Wards"
epsilon = 0.5
[tables.by_ward]
sql = "SELECT ward, COUNT(*) AS people FROM visits GROUP BY ward"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served_pages(tmp_path_factory.mktemp("served")) as running:
        yield running


@contextmanager
def visit(browser, server, name, path="/ask", **settings):
    """Sign in as somebody and open a page; at the end no rule of any page was broken."""
    with watched_page(browser, **settings) as watched:
        page = watched.page
        page.goto(f"{server.address}/login?next={path}")
        page.get_by_label("Your token").fill(server.tokens[name])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(re.compile(f"{server.address}/(?!login)"))
        yield watched
        assert {url.split("/")[2] for url in watched.requests if url.startswith("http")} == {
            server.address.split("/")[2]
        }
        assert page.title() != "broken"


def ask(page, sql, amount="0.1", spend="spend epsilon"):
    page.get_by_label("Question in SQL").fill(sql)
    page.get_by_label(spend).check()
    page.get_by_label("Amount").fill(amount)
    page.get_by_role("button", name="Ask, and charge").click()


def answered(page):
    page.wait_for_url(re.compile("/ask/[0-9a-f]+"))
    page.get_by_role("heading", name="Answer").wait_for()


# The newcomer


def test_a_newcomer_sees_both_worlds_without_a_token_in_150_kilobytes(browser, server):
    with watched_page(browser) as watched:
        page, sizes = watched.page, []
        page.on("response", lambda response: sizes.append(len(response.body())))
        page.goto(server.address, timeout=120_000)  # the first visitor waits until the page is made
        assert page.locator("[data-word=most]").first.inner_text() == "53 of 100"
        page.get_by_label("Epsilon").focus()
        page.keyboard.press("End")
        assert page.locator("[data-word=most]").first.inner_text() == "100 of 100"
        assert sum(sizes) < 150_000
        assert {url.split("/")[2] for url in watched.requests if url.startswith("http")} == {
            server.address.split("/")[2]
        }
        page.get_by_role("link", name="Sign in").click()
        assert page.get_by_label("Your token").is_visible()


def test_a_wrong_token_is_refused_on_the_page(browser, server):
    with watched_page(browser) as watched:
        page = watched.page
        page.goto(f"{server.address}/login")
        page.get_by_label("Your token").fill("dsc_wrong")
        page.get_by_role("button", name="Sign in").click()
        assert "access denied" in page.get_by_role("alert").inner_text()
        watched.errors.clear()  # the browser's own line about the status 403


# The analyst


def test_an_analyst_sees_the_cost_asks_and_downloads(browser, server, tmp_path):
    with visit(browser, server, "ana") as watched:
        page = watched.page
        page.get_by_label("Question in SQL").press_sequentially("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
        forecast = page.locator("[data-forecast]")
        forecast.get_by_text("of your budget").wait_for()
        assert "more like this" in forecast.inner_text()
        assert "of 100 cases" in forecast.inner_text()
        assert server.service.curator.ledger.spent("ana").rho == 0  # nothing was charged by looking
        ask(page, BY_WARD, "0.5")
        answered(page)
        rows = page.locator("table.answer tbody tr")
        assert rows.count() == 3
        assert re.search(r"\d ± \d", rows.first.inner_text())
        assert SHOWN in page.locator("table.answer").inner_text()
        assert page.locator("table.answer svg.interval").count() == 6
        with page.expect_download() as started:
            page.get_by_role("link", name="CSV").click()
        started.value.save_as(tmp_path / "answer.csv")
        assert pcsv.read_csv(tmp_path / "answer.csv").column_names[:3] == ["ward", "n", "n_margin"]
        with page.expect_download() as started:
            page.get_by_role("link", name="Parquet").click()
        started.value.save_as(tmp_path / "answer.parquet")
        assert pq.read_table(tmp_path / "answer.parquet").num_rows == 3
        before = server.service.curator.ledger.spent("ana")
        page.goto(f"{server.address}/ask")
        ask(page, BY_WARD, "0.5")
        answered(page)
        assert "No charge: cached answer" in page.locator(".answer-card").inner_text()
        assert server.service.curator.ledger.spent("ana") == before
        assert page.locator(".history li").count() == 2
        page.get_by_text("The same question in Python").click()
        assert "dc.remote(" in page.locator("#snippet-text-1").inner_text()


def test_a_newcomer_who_knows_no_sql_begins_with_an_example(browser, server):
    with visit(browser, server, "ana") as watched:
        page = watched.page
        page.get_by_role("button", name="average cost by ward").click()
        page.locator("[data-forecast]").get_by_text(CHARGE).first.wait_for()
        assert (
            page.get_by_label("Question in SQL").input_value()
            == "SELECT ward, AVG(cost) AS mean FROM visits GROUP BY ward"
        )


def test_group_keys_from_the_data_are_text(browser, server):
    with visit(browser, server, "ana") as watched:
        ask(watched.page, DISCOVERED, "1")
        answered(watched.page)
        assert SHOWN in watched.page.locator("table.answer").inner_text()
        assert watched.page.locator("table.answer img").count() == 0


def test_formulas_are_texts_in_the_csv(browser, server, tmp_path):
    with visit(browser, server, "ana") as watched:
        ask(watched.page, DISCOVERED, "1")
        answered(watched.page)
        with watched.page.expect_download() as started:
            watched.page.get_by_role("link", name="CSV").click()
        started.value.save_as(tmp_path / "answer.csv")
        assert "'=1+1" in (tmp_path / "answer.csv").read_text()


def test_a_refused_query_is_marked_and_repaired_with_one_click(browser, server):
    with visit(browser, server, "ana") as watched:
        page = watched.page
        page.get_by_label("Question in SQL").fill("SELECT wrd, AVG(cost) AS m FROM visits GROUP BY wrd")
        page.locator("[data-forecast]").get_by_text("Did you mean ward?").wait_for()
        assert page.locator(".editor-pane mark").inner_text() == "wrd"
        page.get_by_role("button", name="Use this query").click()
        page.locator("[data-forecast]").get_by_text(CHARGE).first.wait_for()
        assert (
            page.get_by_label("Question in SQL").input_value()
            == "SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward"
        )


def test_suggestions_come_from_the_policy_and_are_taken_with_the_keyboard(browser, server):
    with visit(browser, server, "ana") as watched:
        page = watched.page
        area = page.get_by_label("Question in SQL")
        area.press_sequentially("SELECT wa")
        option = page.get_by_role("option", selected=True)
        assert option.inner_text().startswith("ward")
        page.keyboard.press("Enter")
        assert area.input_value() == "SELECT ward "
        area.press_sequentially("FROM vis")
        page.keyboard.press("Escape")
        assert not page.get_by_role("listbox").is_visible()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == "spend"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '</textarea><script>document.title=\"broken\"</script>' AS x, COUNT(*) AS n FROM visits",
        'SELECT "<img src=x onerror=alert(1)>" FROM visits',
        'SELECT COUNT(*) FROM "</pre><svg onload=alert(1)>"',
        "{{ 7 * 7777 }} {% include 'owner.html' %}",
    ],
)
def test_markup_in_a_query_stays_text_wherever_it_is_shown(browser, server, sql):
    with visit(browser, server, "ana") as watched:
        page = watched.page
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        page.get_by_label("Question in SQL").fill(sql)
        page.locator("[data-forecast] > :not(.soft)").first.wait_for()
        page.get_by_role("button", name="Ask, and charge").click()
        page.wait_for_load_state()
        assert page.get_by_label("Question in SQL").input_value() == sql
        assert "54439" not in page.locator("main").inner_text()
        watched.errors[:] = [text for text in watched.errors if "422" not in text]


def test_a_margin_can_be_asked_for_and_an_amount_that_is_none_is_refused(browser, server):
    with visit(browser, server, "ana") as watched:
        page = watched.page
        ask(page, "SELECT COUNT(*) AS n FROM visits WHERE cost < 90", "300", "reach a margin")
        answered(page)
        assert re.search(r"± (2\d\d|300)", page.locator("table.answer").inner_text())
        ask(page, "SELECT COUNT(*) AS n FROM visits", "much")
        page.get_by_text("Refused, nothing was charged.").wait_for()
        watched.errors.clear()  # the browser's own line about the status 422


def test_everything_works_without_scripts(browser, server):
    with visit(browser, server, "ben", scripts=False) as watched:
        page = watched.page
        page.get_by_label("Question in SQL").fill("SELECT wrd, COUNT(*) AS n FROM visits GROUP BY wrd")
        page.get_by_role("button", name="Show the cost first").click()
        assert page.locator("pre.pointed mark").inner_text() == "wrd"
        page.get_by_role("button", name="Use this query").click()
        assert CHARGE.search(page.locator("[data-forecast]").inner_text())
        page.get_by_role("button", name="Ask, and charge").click()
        assert page.locator("table.answer tbody tr").count() == 3
        page.get_by_role("link", name="Budget", exact=True).click()
        assert "more like this" in page.locator("main").inner_text()
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{server.address}/ask")
        assert "/login" in page.url


# The owner


def test_an_owner_issues_a_token_once_and_revokes_it_at_once(browser, server):
    with visit(browser, server, "Vogel", "/owner") as owner:
        page = owner.page
        page.get_by_label("Name").fill("Nadia")
        page.get_by_label("Role").select_option("auditor")
        page.get_by_role("button", name="Issue").click()
        token = page.locator("#new-token").inner_text()
        assert token.startswith("dsc_")
        server.tokens["Nadia"] = token
        page.get_by_role("link", name="Done").click()
        assert token not in page.content()
        with visit(browser, server, "Nadia", "/budget") as auditor:
            row = page.get_by_role("row", name="Nadia")
            row.get_by_text("Revoke …").click()
            row.get_by_role("button", name="Revoke the token").click()
            assert page.get_by_role("row", name="Nadia").count() == 0
            auditor.page.goto(f"{server.address}/budget")
            assert "/login" in auditor.page.url


def test_an_analyst_who_is_not_in_the_policy_gets_no_token(browser, server):
    with visit(browser, server, "Vogel", "/owner") as watched:
        page = watched.page
        page.get_by_label("Name").fill("stranger")
        page.get_by_role("button", name="Issue").click()
        assert "not listed in the policy" in page.get_by_role("alert").inner_text()
        watched.errors.clear()  # the browser's own line about the status 422


def test_an_expensive_question_waits_for_the_owner(browser, server):
    sql = "SELECT COUNT(*) AS n FROM visits WHERE cost > 50"
    with visit(browser, server, "ana") as analyst, visit(browser, server, "Vogel", "/owner") as owner:
        ask(analyst.page, sql, "2.5")
        assert "the owner must approve it first" in analyst.page.locator("[data-forecast]").inner_text()
        analyst.errors.clear()  # the browser's own line about the status 422
        owner.page.reload()
        owner.page.locator("article", has_text=sql).get_by_role("button", name="Approve once").click()
        ask(analyst.page, sql, "2.5")
        answered(analyst.page)


def test_an_owner_publishes_a_plan_and_everybody_downloads_it(browser, server, tmp_path):
    with visit(browser, server, "Vogel", "/releases") as owner:
        page = owner.page
        page.get_by_label("Plan", exact=True).fill(PLAN)
        page.get_by_role("button", name="Show cost and margins first").click()
        assert "by_ward: 3 cells" in page.get_by_role("status").inner_text()
        page.get_by_role("button", name="Publish, and charge").click()
        page.wait_for_url(re.compile("/releases/wards"))
    with visit(browser, server, "Audrey", "/releases") as auditor:
        page = auditor.page
        page.get_by_role("link", name="Wards").click()
        assert "as it was published" in page.locator("main").inner_text()
        assert SHOWN in page.locator("table.answer").first.inner_text()
        with page.expect_download() as started:
            page.get_by_role("link", name="CSV").first.click()
        started.value.save_as(tmp_path / "by_ward.csv")
        assert pcsv.read_csv(tmp_path / "by_ward.csv").num_rows == 3
        page.get_by_role("link", name="Report: who is protected").click()
        page.wait_for_load_state()
        assert "Wards" in page.title()
        page.go_back()


def test_a_charge_without_an_answer_is_an_incident_until_it_is_acknowledged(browser, server):
    event = Event(mechanism=canonical_json({"name": "laplace", "scale": "10"}), sensitivity="{}", question=HOSTILE)
    server.service.ledger.charge(Loss("1/1000"), event)
    with visit(browser, server, "Vogel", "/owner") as watched:
        page = watched.page
        assert HOSTILE in page.get_by_role("region", name="Charges without an answer").inner_text()
        page.get_by_role("button", name="Acknowledge").click()
        assert "Every charge has its answer" in page.locator("main").inner_text()


def test_an_audit_shows_its_progress_and_its_result(browser, server):
    with visit(browser, server, "Vogel", "/owner") as watched:
        page = watched.page
        page.get_by_role("button", name="Audit the policy").click()
        page.wait_for_url(re.compile("/owner/audit"))
        page.get_by_text(re.compile("No claim|not refuted|was refuted", re.IGNORECASE)).first.wait_for(timeout=240_000)
        assert page.get_by_role("table").is_visible()


# The auditor


def test_an_auditor_reads_the_ledger_and_no_answers(browser, server):
    with visit(browser, server, "ben") as analyst:
        ask(analyst.page, "SELECT AVG(cost) AS m FROM visits", "0.1")
        answered(analyst.page)
    with visit(browser, server, "Audrey") as watched:
        page = watched.page
        assert page.url.endswith("/budget")
        assert "SELECT AVG(cost) AS m FROM visits" in page.get_by_role("region", name="Table of charges").inner_text()
        assert page.get_by_role("link", name="Ask").count() == 0
        page.get_by_role("button", name="Verify the ledger").click()
        assert "Every entry follows from the one before" in page.get_by_role("status").inner_text()
        page.goto(f"{server.address}/ask")
        assert "not for auditors" in page.get_by_role("alert").inner_text()
        watched.errors.clear()  # the browser's own line about the status 403


def test_charges_outlive_the_session_and_are_asked_again_for_nothing(browser, server):
    sql = "SELECT COUNT(*) AS n FROM visits WHERE cost > 71"
    for name in ("ana", "ben"):
        with visit(browser, server, name) as watched:
            ask(watched.page, sql.replace("71", "71" if name == "ana" else "72"), "0.13")
            answered(watched.page)
    with visit(browser, server, "ana", "/budget") as watched:
        page = watched.page
        charges = page.get_by_role("region", name="Table of charges")
        assert "cost > 72" not in charges.inner_text()  # of somebody else
        charges.get_by_role("link", name=sql).click()
        assert page.get_by_label("Question in SQL").input_value() == sql
        assert "Costs nothing." in page.locator("[data-forecast]").inner_text()
        page.get_by_role("button", name="Ask, and charge").click()
        answered(page)
        assert "No charge" in page.locator("#answer").inner_text()
        other = next(event.id for event in server.service.ledger.events() if "72" in event.question)
        page.goto(f"{server.address}/ask?again={other}")
        assert "72" not in page.get_by_label("Question in SQL").input_value()


# Everybody

CASES = [
    ("ana", "/ask"),
    ("ana", "/budget"),
    ("ana", "/attacks"),
    ("ana", "answer"),
    ("ana", "refused"),
    ("Vogel", "/owner"),
    ("Vogel", "/owner/audit"),
    ("Vogel", "/budget"),
    ("Vogel", "/releases"),
    (EVIL_ANALYST, "/budget"),
]


@pytest.mark.parametrize(
    "looks",
    [{"viewport": viewport, "scheme": scheme} for viewport in (PHONE, DESKTOP) for scheme in ("light", "dark")],
    ids=["phone-light", "phone-dark", "desktop-light", "desktop-dark"],
)
@pytest.mark.parametrize(("name", "path"), CASES, ids=lambda value: value if value.startswith("/") else value[:3])
def test_everybody_can_use_every_page(browser, server, name, path, looks):
    with visit(browser, server, name, path if path.startswith("/") else "/ask", **looks) as watched:
        page = watched.page
        if path == "answer":
            ask(page, BY_WARD, "0.5")
            answered(page)
        if path == "refused":
            page.get_by_label("Question in SQL").fill("SELECT wrd FROM visits")
            page.locator("[data-refused]").wait_for()
        for summary in page.locator("summary").all():
            summary.click()
        assert accessibility_problems(page) == []
        assert watched.overflow() <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/login"])
def test_everybody_can_use_the_pages_for_strangers(browser, server, path, scheme):
    with watched_page(browser, viewport=PHONE, scheme=scheme) as watched:
        watched.page.goto(server.address + path)
        assert accessibility_problems(watched.page) == []
        assert watched.overflow() <= 0


def test_a_stolen_cookie_is_of_no_use_to_scripts(browser, server):
    with visit(browser, server, "ana") as watched:
        assert COOKIE not in watched.page.evaluate("document.cookie")
