"""HTTP as clients see it: a real server on the loopback, asked by a real client."""

import asyncio
import json
import socket
import threading
import time
from io import BytesIO

import httpx
import pyarrow as pa
import pytest
from served import COUNT, break_engine

from discreet.server import rehearsal
from discreet.server.http import answer_bodies, gate, listener, question_routes
from discreet.server.people import Role

ASK = {"sql": COUNT, "epsilon": "1/10"}
PLAN = f'[release]\nname = "Wards"\nepsilon = 1\n[tables.by_ward]\nsql = "{COUNT}"\n'


def problem(response, status, kind):
    """Check that a response is a problem of this kind, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["type"] == f"urn:discreet:{kind}"
    assert body["status"] == status
    return body


def test_a_question_is_answered_with_margins_cost_and_what_remains(serving):
    client = serving().client()
    response = client.post("/api/v1/ask", json=ASK)
    assert response.status_code == 200
    body = response.json()
    assert [column["name"] for column in body["columns"][:3]] == ["ward", "n", "n_margin"]
    assert [row["ward"] for row in body["rows"]] == ["A", "B"]
    assert body["exact"]["paid"]["epsilon"] == "1/10"
    assert body["exact"]["remaining"] == "19/10"
    assert response.headers["cache-control"] == "no-store"
    assert "set-cookie" not in response.headers
    again = client.post("/api/v1/ask", json=ASK).json()
    assert again["rows"] == body["rows"]
    assert again["exact"]["paid"]["epsilon"] == "0"


def test_an_arrow_stream_has_the_same_numbers_and_the_metadata(serving):
    client = serving().client()
    body = client.post("/api/v1/ask", json=ASK).json()
    response = client.post("/api/v1/ask", json=ASK, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert response.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(BytesIO(response.content)).read_all()
    assert table.to_pylist() == body["rows"]
    assert b"receipt" in table.schema.metadata[b"discreet"]


def test_csv_has_the_numbers_and_their_margins(serving):
    client = serving().client()
    body = client.post("/api/v1/ask", json=ASK).json()
    response = client.post("/api/v1/ask", json=ASK, headers={"Accept": "text/csv"})
    assert response.headers["content-type"].startswith("text/csv")
    header, *rows = response.text.splitlines()
    assert header.startswith('"ward","n","n_margin"')
    assert [row.split(",")[1] for row in rows] == [str(row["n"]) for row in body["rows"]]


def test_explaining_and_rehearsing_charge_nothing_and_the_budget_shows_what_is_spent(serving):
    server = serving()
    client = server.client()
    assert client.post("/api/v1/explain", json=ASK).json()["exact"]["paid"]["epsilon"] == "1/10"
    assert len(client.post("/api/v1/rehearse", json=ASK).json()["rows"]) == 2
    assert client.get("/api/v1/budget").json()["exact"]["spent"]["epsilon"] == "0"
    assert client.post("/api/v1/ask", json=ASK).json()["data"] == "private"
    budget = client.get("/api/v1/budget").json()
    assert budget["spent"]["epsilon"] == 0.1
    assert budget["exact"]["total"]["epsilon"] == "2"


def test_the_body_of_a_response_does_not_wait_for_the_client_to_confirm_the_head(serving):
    server = serving()
    assert server.client().get("/health").status_code == 200
    (connection,) = server.listener._server.server_state.connections
    server_side = connection.transport.get_extra_info("socket")
    assert server_side.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_a_rehearsal_says_in_every_form_that_its_numbers_mean_nothing(serving):
    client = serving().client()
    body = client.post("/api/v1/rehearse", json=ASK).json()
    assert body["data"] == "dummy"
    assert body["notes"][0] == rehearsal.DUMMY_NOTE
    assert (body["exact"]["paid"]["epsilon"], body["remaining"], body["receipt"]) == ("0", None, None)
    assert body["cost"]["share"] is None
    arrow = client.post("/api/v1/rehearse", json=ASK, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert rehearsal.DUMMY_NOTE.encode() in pa.ipc.open_stream(BytesIO(arrow.content)).schema.metadata[b"discreet"]
    lines = client.post("/api/v1/rehearse", json=ASK, headers={"Accept": "text/csv"}).text.splitlines()
    assert all(line.endswith(f',"{data}"') for line, data in zip(lines, ["data", "dummy", "dummy"], strict=True))


@pytest.mark.parametrize(("most", "is_apart"), [(1, True), (2, False)])
def test_a_long_answer_is_encoded_beside_the_event_loop(serving, monkeypatch, most, is_apart):
    server, encode, threads = serving(), answer_bodies._encoded, []
    monkeypatch.setattr(question_routes, "_MANY_ROWS", most)
    monkeypatch.setattr(
        answer_bodies, "_encoded", lambda *given: threads.append(threading.current_thread()) or encode(*given)
    )
    assert len(server.client().post("/api/v1/ask", json=ASK).json()["rows"]) == 2
    assert [thread is not server._thread for thread in threads] == [is_apart]


def test_tables_show_declarations_and_no_location(serving):
    server = serving()
    tables = server.client().get("/api/v1/tables").json()["tables"]
    assert [table["name"] for table in tables] == ["visits", "wards"]
    ward = next(column for column in tables[0]["columns"] if column["name"] == "ward")
    assert ward == {"name": "ward", "type": "text", "null": False, "in": ["A", "B"], "in_count": 2}
    assert tables[0]["protects"] == "patient"
    assert not any("source" in table for table in tables)
    assert [table["name"] for table in server.client("eve").get("/api/v1/tables").json()["tables"]] == ["wards"]


def test_every_way_to_have_no_valid_token_is_the_same_401(serving):
    server = serving(failures_per_minute=1000)
    seen = set()
    for headers in (
        {},
        {"Authorization": "Bearer dsc_guess"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YW5hOng="},
        {"Authorization": "Bearer " + "x" * 10_000},
        [("Authorization", "Bearer a"), ("Authorization", "Bearer b")],
    ):
        for method, path in (
            ("GET", "/api/v1/budget"),
            ("POST", "/api/v1/ask"),
            ("GET", "/metrics"),
            ("GET", "/api/x"),
        ):
            response = server.anonymous().request(method, path, headers=headers, content=b"{")
            problem(response, 401, "access-denied")
            assert response.headers["www-authenticate"].startswith("Bearer")
            seen.add(response.text)
    assert len(seen) == 1


def test_health_is_for_everybody_and_metrics_are_the_owners(serving):
    server = serving()
    assert server.anonymous().get("/health").json() == {"status": "ok"}
    analyst, owner = server.client(), server.client("boss", Role.OWNER)
    analyst.post("/api/v1/ask", json=ASK)
    problem(analyst.get("/metrics"), 403, "not-allowed")
    problem(server.client("audit office", Role.AUDITOR).get("/metrics"), 403, "not-allowed")
    assert 'discreet_questions_total{outcome="answered"} 1' in owner.get("/metrics").text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"sql": "SELECT patient FROM visits", "epsilon": 1}, "individual rows"),
        ({"sql": "SELEC 1", "epsilon": 1}, "SELEC"),
        ({"sql": COUNT}, "epsilon"),
        ({"sql": COUNT, "epsilon": -1}, "epsilon"),
        ({"sql": COUNT, "epsilon": "much"}, "epsilon"),
        ({"sql": COUNT, "epsilon": "1/10", "rho": "1/10"}, "rho"),
        ({"sql": COUNT, "epsilon": 9}, "budget"),
        ({"sql": COUNT, "epsilon": 1, "groups": 0}, "groups"),
        ({"sql": COUNT, "margin": {"m": 1}}, "m"),
        ({"sql": "SELECT COUNT(*) AS n FROM nothing", "epsilon": 1}, "nothing"),
        ({"sql": COUNT, "epsilon": 1, "key": "k" * 201}, ""),
        ({"sql": "\x00", "epsilon": 1}, ""),
        ({"sql": "\ud800", "epsilon": 1}, ""),
    ],
)
def test_a_refusal_is_a_422_with_a_hint_and_charges_nothing(serving, body, words):
    server = serving()
    response = server.client().post("/api/v1/ask", content=json.dumps(body))
    found = response.json()
    assert response.status_code == 422
    assert found["type"] in {"urn:discreet:refused", "urn:discreet:invalid-request"}
    assert found["charged"] is False
    assert words in found["detail"]
    assert server.service.ledger.events() == []


def test_a_refusal_has_its_position_and_its_hint_apart(serving):
    body = {"sql": "SELECT COUNT(*) AS n\nFROM visits\nWHERE ward > 5", "epsilon": 1}
    found = problem(serving().client().post("/api/v1/ask", json=body), 422, "refused")
    assert found["line"] == 3
    assert found["clause"] == "WHERE"
    assert found["detail"].endswith(found.get("hint", ""))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"sql": 1}',
        b'{"sql": "SELECT 1", "more": 1}',
        b'{"sql": "SELECT 1", "epsilon": true}',
        b'{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": NaN}',
        b'{"sql": "SELECT 1", "groups": 1.5}',
        b"\xff",
        b"[" * 50_000,
    ],
)
def test_what_is_not_as_documented_is_a_422(serving, content):
    response = serving().client().post("/api/v1/ask", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


def test_json_is_understood_whatever_the_content_type_says(serving):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d sends
    response = serving().client().post("/api/v1/ask", content=b'{"sql":"SELECT beds FROM wards"}', headers=headers)
    assert [row["beds"] for row in response.json()["rows"]] == [10, 20]


def test_idempotency_keys_are_bound_to_the_person_and_the_question(serving):
    server = serving()
    ana, ben = server.client(), server.client("ben")
    key = {"Idempotency-Key": "k1"}
    first = ana.post("/api/v1/ask", json=ASK, headers=key).json()
    assert ana.post("/api/v1/ask", json=ASK, headers=key).json()["rows"] == first["rows"]
    assert ana.post("/api/v1/ask", json={**ASK, "key": "k1"}).json()["rows"] == first["rows"]
    problem(ana.post("/api/v1/ask", json={**ASK, "epsilon": "1/5"}, headers=key), 422, "refused")
    assert len(server.service.ledger.events()) == 1
    other = ben.post("/api/v1/ask", json={"sql": "SELECT SUM(cost) AS s FROM visits", "epsilon": "1/10"}, headers=key)
    assert other.status_code == 200
    assert len(server.service.ledger.events()) == 2


def test_a_failure_is_a_500_that_says_it_was_charged_and_nothing_else(serving):
    server = serving()
    client = server.client()
    break_engine(server.service)
    found = problem(client.post("/api/v1/ask", json=ASK), 500, "failed")
    assert found["charged"] is True
    assert "4711" not in str(found)
    assert client.get("/api/v1/budget").json()["spent"]["epsilon"] == 0.1


def test_a_surprise_inside_the_server_has_no_text(serving, monkeypatch):
    server = serving()
    client = server.client()

    def surprise(*_):
        raise KeyError("patient 4711")

    monkeypatch.setattr(server.service, "budget", surprise)
    response = client.get("/api/v1/budget")
    problem(response, 503, "unavailable")
    assert "4711" not in response.text


def test_rate_limits_are_a_429_that_says_when_to_try_again(serving):
    server = serving(requests_per_minute=2, failures_per_minute=2)
    client = server.client()
    for _ in range(2):
        assert client.post("/api/v1/explain", json=ASK).status_code == 200
    response = client.post("/api/v1/explain", json=ASK)
    problem(response, 429, "rate-limited")
    assert 1 <= int(response.headers["retry-after"]) <= 60
    stranger = server.anonymous({"Authorization": "Bearer dsc_guess"})
    for _ in range(2):
        problem(stranger.get("/api/v1/budget"), 401, "access-denied")
    problem(stranger.get("/api/v1/budget"), 429, "rate-limited")


def test_the_ledger_is_for_auditors_and_owners_page_by_page_and_has_no_answers(serving):
    server = serving()
    analyst, auditor = server.client(), server.client("audit office", Role.AUDITOR)
    problem(analyst.get("/api/v1/ledger"), 403, "not-allowed")
    for number in range(3):
        body = {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", "epsilon": "1/100"}
        answer = analyst.post("/api/v1/ask", json=body).json()
    first = auditor.get("/api/v1/ledger", params={"limit": 2}).json()
    assert [charge["by"] for charge in first["charges"]] == ["ana", "ana"]
    rest = auditor.get("/api/v1/ledger", params={"after": first["next"]}).json()
    assert rest["next"] is None
    assert rest["charges"][0]["receipt"] == answer["receipt"]
    assert rest["charges"][0]["question"]["sql"].startswith("SELECT COUNT")
    assert [act["act"] for act in rest["acts"]] == ["token issued", "token issued"]
    assert rest["spent"]["epsilon"] == "3/100"
    problem(auditor.post("/api/v1/ask", json=ASK), 403, "not-allowed")
    for wrong in ({"after": -1}, {"limit": 0}, {"limit": "x"}):
        problem(auditor.get("/api/v1/ledger", params=wrong), 422, "invalid-request")


def test_approvals_over_http(serving):
    server = serving(approval_above=0.5)
    analyst, other, owner = server.client(), server.client("ben"), server.client("boss", Role.OWNER)
    waiting = problem(analyst.post("/api/v1/ask", json={**ASK, "epsilon": 1}), 422, "approval-needed")["approval"]
    assert [each["id"] for each in owner.get("/api/v1/approvals").json()["approvals"]] == [waiting]
    assert [each["id"] for each in analyst.get("/api/v1/approvals").json()["approvals"]] == [waiting]
    assert other.get("/api/v1/approvals").json()["approvals"] == []
    problem(analyst.post(f"/api/v1/approvals/{waiting}/approve"), 403, "not-allowed")
    assert owner.post(f"/api/v1/approvals/{waiting}/approve").status_code == 200
    assert analyst.post("/api/v1/ask", json={**ASK, "epsilon": 1}).status_code == 200
    problem(owner.post("/api/v1/approvals/none/reject"), 422, "refused")


def test_a_release_is_published_listed_and_downloaded_and_nothing_else_is(serving, tmp_path):
    server = serving(base=tmp_path, ledger="ledger.sqlite")
    owner, analyst = server.client("boss", Role.OWNER), server.client()
    published = owner.post("/api/v1/publish", json={"plan": PLAN}).json()
    assert published["tables"] == ["by_ward"]
    name = published["release"]
    assert analyst.get("/api/v1/releases").json() == {"releases": [name]}
    files = analyst.get(f"/api/v1/releases/{name}").json()["files"]
    assert {"manifest.json", "report.html", "tables/by_ward.csv"} <= set(files)
    for file in files:
        response = analyst.get(f"/api/v1/releases/{name}/{file}")
        assert response.status_code == 200
        assert response.content == (tmp_path / "ledger.sqlite.releases" / name / file).read_bytes()
        assert "sandbox" in response.headers["content-security-policy"]
    secret = tmp_path / "ledger.sqlite.releases" / name / "secret"
    secret.write_text("x")
    for path in (
        f"{name}/../../ledger.sqlite",
        f"{name}/..%2f..%2fledger.sqlite",
        f"{name}/%2e%2e/%2e%2e/ledger.sqlite.people",
        "..%2fledger.sqlite/manifest.json",
        f"{name}//etc/passwd",
        f"{name}/secret",
        f"{name}/tables",
        f"{name}/tables/by_ward.csv%00",
        "other/manifest.json",
        "%2e%2e/manifest.json",
    ):
        response = analyst.get(f"/api/v1/releases/{path}")
        assert response.status_code == 404, path
    secret.unlink()
    problem(analyst.post("/api/v1/publish", json={"plan": PLAN}), 422, "approval-needed")
    problem(owner.post("/api/v1/publish", json={"plan": "no toml"}), 422, "refused")
    assert owner.post("/api/v1/publish", json={"plan": PLAN}).json()["paid"]["epsilon"] == "0"


def test_a_body_that_is_too_large_is_a_413_before_it_is_read(serving):
    server = serving()
    client = server.client()
    problem(client.post("/api/v1/ask", content=b"x" * (gate.MAX_BODY + 1)), 413, "too-large")

    def parts():
        for _ in range(20):
            yield b" " * 100_000

    problem(client.post("/api/v1/ask", content=parts()), 413, "too-large")
    head = b"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: "
    head += client.headers["Authorization"].encode() + b"\r\nContent-Length: 1000001\r\n\r\n"
    assert talk(server, head).startswith(b"HTTP/1.1 413")


def talk(server, data, wait=True):
    """Send raw bytes and return what comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), timeout=30) as connection:
        connection.sendall(data)
        received = b""
        while wait and (part := connection.recv(65536)):
            received += part
        return received


def test_a_client_that_never_finishes_its_head_or_body_is_disconnected(serving, monkeypatch):
    server = serving()
    token = server.client().headers["Authorization"].encode()
    with monkeypatch.context() as patched:
        patched.setattr(listener, "_HEAD_SECONDS", 0.2)
        assert talk(server, b"") == b""
        assert talk(server, b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow:") == b""
    with monkeypatch.context() as patched:
        patched.setattr(gate, "_BODY_SECONDS", 0.2)
        head = b"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: " + token
        assert talk(server, head + b"\r\nContent-Length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408")
    assert server.anonymous().get("/health").status_code == 200


def test_a_client_that_leaves_does_not_stop_its_question(serving):
    server = serving()
    token = server.client().headers["Authorization"].encode()
    engine, reading, go_on = server.service.curator._engine._private, threading.Event(), threading.Event()
    totals = engine.totals

    def held_up(question):
        reading.set()
        go_on.wait()
        return totals(question)

    engine.totals = held_up
    body = b'{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/10"}'
    head = b"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nAuthorization: " + token
    talk(server, head + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body), wait=False)
    assert reading.wait(30)
    go_on.set()
    server.run(server.service.finish())
    (event,) = server.service.ledger.events()
    assert str(event.state) == "released"


def test_openapi_describes_every_path_with_examples_and_loads_nothing_from_elsewhere(serving):
    server = serving()
    document = server.anonymous().get("/api/v1/openapi.json").json()
    assert {"/api/v1/ask", "/api/v1/ledger", "/api/v1/releases/{name}/{file}", "/health"} <= set(document["paths"])
    assert document["components"]["schemas"]["QuestionBody"]["examples"]
    for path in ("/docs", "/redoc"):
        assert server.anonymous().get(path).status_code == 404


def test_stopping_answers_what_has_begun_and_accepts_nothing_new(serving):
    server = serving()
    client = server.client()
    engine, reading, go_on = server.service.curator._engine._private, threading.Event(), threading.Event()
    totals = engine.totals

    def held_up(question):
        reading.set()
        go_on.wait()
        return totals(question)

    engine.totals, answers = held_up, []
    asking = threading.Thread(target=lambda: answers.append(client.post("/api/v1/ask", json=ASK)))
    asking.start()
    assert reading.wait(30)
    stopping = asyncio.run_coroutine_threadsafe(server.listener.stop(), server.loop)
    while server.listener._server.servers:
        time.sleep(0.01)
        if not any(each.is_serving() for each in server.listener._server.servers):
            break
    with pytest.raises(httpx.ConnectError):
        server.anonymous().get("/health")
    go_on.set()
    stopping.result(60)
    asking.join(30)
    assert answers[0].status_code == 200
