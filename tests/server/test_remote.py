"""dc.remote: the curator's methods over HTTP return the same objects as a curator in the process."""

import subprocess
import sys
import threading
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from served import COUNT, break_engine

import discreet as dc
from discreet.remote_curator import _safe_path
from discreet.server.errors import AccessDenied, ApprovalNeeded, NotAllowed, RateLimited
from discreet.server.people import Role

PLAN = f'[release]\nname = "Wards"\nepsilon = 1\n[tables.by_ward]\nsql = "{COUNT}"\n'
DELTA = {"delta": "1e-6", "analysts": {"ana": {"epsilon": 2}, "ben": {"epsilon": 2}}}


def connect(server, name="ana", role=Role.ANALYST):
    return dc.remote(server.url, server.service.people.add(server.service.ledger, name, role).token)


@pytest.mark.parametrize("budget", [{}, DELTA])
@pytest.mark.parametrize(
    ("sql", "cost"),
    [
        (COUNT, {"epsilon": "1/3"}),
        ("SELECT ward, AVG(cost) AS a, SUM(cost) AS s FROM visits GROUP BY ward", {"epsilon": 0.7}),
        ("SELECT COUNT(*) AS n, COUNT(*) AS n_margin FROM visits", {"margin": {"n": 40}}),
        ("SELECT AVG(cost) AS a FROM visits WHERE cost > 1", {"epsilon": 1, "groups": "auto", "rows": "auto"}),
        ("SELECT ward, beds FROM wards", {}),
        ("SELECT COUNT(*) + 1 AS m FROM visits", {"epsilon": Fraction(1, 7)}),
        ("SELECT COUNT(*) AS n FROM visits", {"margin": 60}),
    ],
)
def test_a_remote_answer_is_the_answer(serving, budget, sql, cost):
    server = serving(budget=budget)
    far, near = connect(server), server.service.curator
    assert far.explain(sql, **cost) == near.explain(sql, by="ana", **cost)
    first = far.ask(sql, **cost)
    answer, same = far.ask(sql, **cost), near.ask(sql, by="ana", **cost)
    assert answer.table.equals(first.table)
    assert answer.table.schema.equals(same.table.schema)
    for name in ("table", "margins", "noise", "cost", "receipt", "bounds", "bias", "left_out", "clipping", "notes"):
        assert getattr(answer, name) == getattr(same, name), name
    for name in ("paid", "remaining", "noise_margins", "sampling_margins", "correlated_noise", "uncorrelated_sampling"):
        assert getattr(answer, name) == getattr(same, name), name
    assert repr(answer) == repr(same)
    assert answer.details() == same.details()
    assert far.budget() == near.budget("ana")
    assert far.by == "ana"


def test_errors_are_the_same_as_in_the_process(serving):
    server = serving(approval_above=1, requests_per_minute=8, failures_per_minute=1)
    far = connect(server)
    with pytest.raises(dc.Refused, match="individual rows"):
        far.ask("SELECT patient FROM visits", epsilon=1)
    with pytest.raises(ApprovalNeeded) as needed:
        far.ask(COUNT, epsilon=2)
    assert needed.value.approval == server.service.approvals.waiting()[0].id
    with pytest.raises(NotAllowed):
        far.budget("ben")
    break_engine(server.service)
    with pytest.raises(dc.Failed, match="charged"):
        far.ask(COUNT, epsilon="1/10")
    with pytest.raises(RateLimited) as limited:
        [far.explain(COUNT, epsilon=1) for _ in range(9)]
    assert limited.value.seconds > 1
    with pytest.raises(AccessDenied):
        dc.remote(server.url, "dsc_guess").tables()


def test_a_key_makes_a_remote_question_repeatable(serving):
    server = serving()
    far = connect(server)
    first, again = (far.ask(COUNT, epsilon="1/10", key="k") for _ in range(2))
    assert again.table.equals(first.table)
    assert len(server.service.ledger.events()) == 1


def test_a_release_is_published_and_downloaded_with_its_manifest(serving, tmp_path):
    server = serving(base=tmp_path, ledger="ledger.sqlite")
    far = connect(server, "boss", Role.OWNER)
    (tmp_path / "plan.toml").write_text(PLAN)
    folder = far.publish(tmp_path / "plan.toml", tmp_path / "out")
    assert dc.publish.verify(folder) == []
    (name,) = far.releases()
    assert connect(server).download(name, tmp_path / "again").joinpath("report.html").is_file()
    with pytest.raises(ValueError, match="not empty"):
        far.download(name, folder)


@pytest.mark.parametrize("file", ["../x", "/etc/passwd", "a/../../x", "a\\..\\x", "a\0"])
def test_a_server_cannot_write_outside_of_the_folder(file):
    with pytest.raises(ValueError, match="outside"):
        _safe_path(file)


def test_a_token_is_not_sent_unencrypted_nor_shown():
    for url in ("http://data.example.org", "ftp://127.0.0.1", "data.example.org", "https://"):
        with pytest.raises(ValueError, match="url"):
            dc.remote(url, "dsc_x")
    assert "dsc_secret" not in repr(dc.remote("https://data.example.org", "dsc_secret"))


def test_no_redirect_is_followed_because_the_token_would_be_sent_along(serving):
    server, asked = serving(), []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"{server.url}/api/v1/me")
            self.end_headers()

        def log_message(self, *_):
            pass

    token = server.service.people.add(server.service.ledger, "ana", Role.ANALYST).token
    with HTTPServer(("127.0.0.1", 0), Redirecting) as elsewhere:
        thread = threading.Thread(target=elsewhere.handle_request)
        thread.start()
        with pytest.raises(dc.LedgerError, match="not one of Discreet"):
            dc.remote(f"http://127.0.0.1:{elsewhere.server_port}", token).tables()
        thread.join(30)
    assert asked == ["/api/v1/tables"]


@pytest.mark.long
def test_a_client_needs_nothing_of_the_server():
    code = "import sys, discreet as dc; dc.remote('http://127.0.0.1:9', 'dsc_x'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"fastapi", "uvicorn", "starlette", "jinja2", "mcp"} & set(done.stdout.split())


def test_a_server_that_is_gone_is_an_error_that_says_what_may_have_happened(serving):
    server = serving()
    far = connect(server)
    server.run(server.listener.stop())
    with pytest.raises(dc.LedgerError, match="may have been charged"):
        far.ask(COUNT, epsilon=1)


def test_the_database_api_accepts_a_remote_curator(serving):
    server = serving()
    with dc.connect(connect(server), epsilon="1/10") as connection:
        cursor = connection.cursor().execute("SELECT COUNT(*) AS n FROM visits WHERE ward = ?", ["A"])
        assert cursor.description[0][0] == "n"
        assert cursor.answer.paid.epsilon == Fraction(1, 10)
        cursor.execute("SET epsilon = 0.2")
        cursor.execute("EXPLAIN SELECT SUM(cost) AS s FROM visits")
        assert any("0.2" in line for (line,) in cursor)
    assert [event.by for event in server.service.ledger.events()] == ["ana"]
