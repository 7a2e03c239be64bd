"""Sessions end when they must, and forms of other sites are refused."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from page_server import EVIL_ANALYST, HOSTILE, ROLES, opened_service

from discreet.server.pages import sessions
from discreet.server.pages.app import add_pages
from discreet.server.pages.forms import MAX_BYTES
from discreet.server.pages.guards import COOKIE, safe_path
from discreet.server.pages.rendering import CONTENT_POLICY
from discreet.server.pages.sessions import Sessions
from discreet.server.people import Role

LOOPBACK = "http://127.0.0.1"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with opened_service(tmp_path_factory.mktemp("pages")) as found:
        yield found


@pytest.fixture(scope="module")
def app(opened):
    made = FastAPI()
    add_pages(made, opened[0])
    return made


@pytest.fixture
def client(app):
    return TestClient(app, base_url=LOOPBACK, follow_redirects=False)


def form_token(page):
    return page.text.split('name="form_token" value="')[1].split('"')[0]


def signed_in(client, token):
    page = client.get("/login")
    done = client.post("/login", data={"form_token": form_token(page), "token": token, "next": "/ask"})
    assert done.status_code == 303, done.text
    return done


# Sessions


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def own_sessions(opened, clock):
    return Sessions(opened[0].people, now=clock)


def begun(own_sessions, opened, name="ana"):
    service, tokens = opened
    return own_sessions.begin(service.person_for_token(tokens[name], "127.0.0.1"), tokens[name])


@pytest.mark.parametrize(("seconds", "times"), [(sessions.IDLE_SECONDS + 1, 1), (sessions.IDLE_SECONDS - 1, 7)])
def test_a_session_ends_when_it_is_idle_or_old(own_sessions, opened, clock, seconds, times):
    cookie = begun(own_sessions, opened)
    assert own_sessions.find(cookie).person.name == "ana"
    for _ in range(times):
        clock.now += seconds
        found = own_sessions.find(cookie)
    assert found is None


def test_a_session_ends_with_its_token_even_if_a_new_one_is_issued(own_sessions, opened):
    service, _ = opened
    issued = service.people.add(service.ledger, "Dora", Role.AUDITOR)
    cookie = own_sessions.begin(issued.person, issued.token)
    assert own_sessions.find(cookie) is not None
    service.people.add(service.ledger, "Dora", Role.AUDITOR)
    assert own_sessions.find(cookie) is None


def test_the_oldest_session_of_somebody_with_many_ends(own_sessions, opened):
    cookies = [begun(own_sessions, opened) for _ in range(11)]
    other = begun(own_sessions, opened, "ben")
    assert own_sessions.find(cookies[0]) is None
    assert all(own_sessions.find(cookie) for cookie in [*cookies[1:], other])


def test_a_session_keeps_thirty_things(own_sessions, opened):
    session = own_sessions.find(begun(own_sessions, opened))
    names = [session.keep(number) for number in range(31)]
    assert names[0] not in session.kept
    assert session.kept[names[30]] == 30


# The login


def test_a_wrong_token_is_told_nothing(client):
    page = client.get("/login")
    done = client.post("/login", data={"form_token": form_token(page), "token": "dsc_wrong", "next": "/ask"})
    assert done.status_code == 403
    assert "unknown name or token, or it was revoked or has expired" in done.text
    assert COOKIE not in done.cookies


def test_guessing_tokens_is_stopped_for_a_minute(tmp_path):
    with opened_service(tmp_path) as (service, tokens):
        made = FastAPI()
        add_pages(made, service)
        client = TestClient(made, base_url=LOOPBACK, follow_redirects=False)
        codes = []
        for _ in range(service.policy.server.failures_per_minute + 1):
            page = client.get("/login")
            done = client.post("/login", data={"form_token": form_token(page), "token": "dsc_guess"})
            codes.append(done.status_code)
        assert codes == [403] * 10 + [429]
        assert 0 < int(done.headers["retry-after"]) <= 60
        right = client.post("/login", data={"form_token": form_token(page), "token": tokens["ana"]})
        assert right.status_code == 303  # whoever has a token is let in


def test_the_session_cookie_is_not_for_scripts_and_not_for_other_sites(client, opened):
    done = signed_in(client, opened[1]["ana"])
    (cookie,) = [value for value in done.headers.get_list("set-cookie") if value.startswith(COOKIE)]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie  # on loopback


def test_the_cookie_is_secure_on_every_other_host(app, opened):
    client = TestClient(app, base_url="https://data.example.org", follow_redirects=False)
    done = signed_in(client, opened[1]["ana"])
    assert all("Secure" in value for value in done.headers.get_list("set-cookie") if "Max-Age=0" not in value)


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
def test_the_login_never_leads_to_another_site(wanted):
    assert safe_path(wanted) == "/ask"


def test_logout_ends_the_session(client, opened):
    signed_in(client, opened[1]["ana"])
    page = client.get("/ask")
    cookie = client.cookies[COOKIE]
    assert client.post("/logout", data={"form_token": form_token(page)}).status_code == 303
    client.cookies.set(COOKIE, cookie)
    assert client.get("/ask").headers["location"] == "/login?next=/ask"


# Roles

PAGES = {
    "/ask": {"ana": 200, "Vogel": 200, "Audrey": 403},
    "/budget": {"ana": 200, "Vogel": 200, "Audrey": 200},
    "/releases": {"ana": 200, "Vogel": 200, "Audrey": 200},
    "/releases/nothing": {"ana": 404, "Vogel": 404, "Audrey": 404},
    "/releases/nothing/files/..%2F..%2Fledger.sqlite": {"ana": 404, "Vogel": 404, "Audrey": 404},
    "/attacks": {"ana": 200, "Vogel": 200, "Audrey": 200},
    "/owner": {"ana": 403, "Vogel": 200, "Audrey": 403},
    "/owner/audit": {"ana": 403, "Vogel": 200, "Audrey": 403},
}
ACTS = {
    "/ask": {"ana", "Vogel"},
    "/ask/forecast": {"ana", "Vogel"},
    "/budget/verify": {"Vogel", "Audrey"},
    "/releases": {"ana", "Vogel"},
    "/releases/forecast": {"ana", "Vogel"},
    "/owner/add": {"Vogel"},
    "/owner/revoke": {"Vogel"},
    "/owner/approve": {"Vogel"},
    "/owner/reject": {"Vogel"},
    "/owner/acknowledge": {"Vogel"},
    "/owner/audit": {"Vogel"},
}


@pytest.mark.parametrize("name", ["ana", "Vogel", "Audrey"])
def test_every_page_is_for_its_roles_only(client, opened, name):
    signed_in(client, opened[1][name])
    assert {path: client.get(path).status_code for path in PAGES} == {
        path: codes[name] for path, codes in PAGES.items()
    }


@pytest.mark.parametrize("name", ["ana", "Vogel", "Audrey"])
def test_every_act_is_for_its_roles_only_and_needs_the_form_of_our_page(client, opened, name):
    signed_in(client, opened[1][name])
    token = form_token(client.get("/budget"))
    for path, names in ACTS.items():
        for data in ({"sql": "SELECT 1"}, {"form_token": "guess"}):
            assert client.post(path, data=data).status_code == 403, path
        assert client.post(path, json={"form_token": token}).status_code == (415 if name in names else 403), path
        foreign = client.post(path, data={"form_token": token}, headers={"Sec-Fetch-Site": "cross-site"})
        assert foreign.status_code == 403, path
        if name not in names:
            assert client.post(path, data={"form_token": token}).status_code == 403, path


@pytest.mark.parametrize("path", [*PAGES, *ACTS])
def test_strangers_are_sent_to_the_login(client, path):
    for answer in (client.get(path), client.post(path, data={"form_token": "guess"})):
        assert answer.status_code in {303, 405}
        if answer.status_code == 303:
            assert answer.headers["location"].startswith("/login?next=/")


def test_a_form_of_another_session_is_refused(app, opened):
    ana, ben = (TestClient(app, base_url=LOOPBACK, follow_redirects=False) for _ in range(2))
    signed_in(ana, opened[1]["ana"])
    signed_in(ben, opened[1]["ben"])
    token = form_token(ben.get("/ask"))
    assert ana.post("/ask/forecast", data={"form_token": token, "sql": "SELECT 1"}).status_code == 403


def test_a_login_form_of_another_browser_is_refused(app, opened):
    own, other = (TestClient(app, base_url=LOOPBACK, follow_redirects=False) for _ in range(2))
    token = form_token(own.get("/login"))
    other.get("/login")
    assert other.post("/login", data={"form_token": token, "token": opened[1]["ana"]}).status_code == 403


def test_a_long_form_is_refused_while_it_is_read(client, opened):
    signed_in(client, opened[1]["ana"])
    token = form_token(client.get("/ask"))
    done = client.post("/ask", data={"form_token": token, "sql": "x" * MAX_BYTES})
    assert done.status_code == 413


# Headers, assets and hostile texts


@pytest.mark.parametrize("path", ["/login", "/ask", "/budget", "/attacks", "/owner", "/nowhere/else"])
def test_every_page_has_the_strict_headers(client, opened, path):
    signed_in(client, opened[1]["Vogel"])
    answer = client.get(path)
    if answer.status_code != 404:
        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_assets_are_a_fixed_list_and_change_their_address_with_their_content(client):
    page = client.get("/login").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = client.get(address)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    for name in ("..%2Fapp.py", "app.py", "ask.html", "%2Fetc%2Fpasswd"):
        assert client.get(f"/assets/{name}").status_code == 404


@pytest.mark.parametrize("name", [EVIL_ANALYST, "Vogel"])
def test_names_and_values_are_text_on_every_page(client, opened, name):
    signed_in(client, opened[1][name])
    for path, codes in PAGES.items():
        page = client.get(path)
        assert HOSTILE not in page.text, path
        assert EVIL_ANALYST not in page.text, path
        assert page.status_code in {200, 403, 404}, codes


def test_everybody_of_the_service_is_tested():
    assert set(ROLES.values()) == set(Role)
