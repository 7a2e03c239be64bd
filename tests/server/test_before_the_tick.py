"""Until an answer or a publication leaves, every interface shows what it showed before its data were read."""

import asyncio

import pytest
from served import COUNT, Serving, open_service, person

from discreet.kernel.event import EventState
from discreet.server.agents.agent_tools import AgentTools
from discreet.server.people import Role
from discreet.server.pgwire.queries import Asker, QueryRunner
from discreet.server.pgwire.settings import SessionSettings
from discreet.server.requests import QueryRequest

pytestmark = pytest.mark.long
ASKED = QueryRequest(COUNT, epsilon="1/10")
PLAN = (  # of two parts, each with its own charge
    f'[release]\nname = "Wards"\nepsilon = 1\n[tables.by_ward]\nsql = "{COUNT}"\n'
    '[tables.median]\nsql = "SELECT MEDIAN(cost) AS m FROM visits"\n'
)
PATHS = {
    "audit office": ["/api/v1/ledger", "/api/v1/budget", "/api/v1/releases", "/budget", "/releases"],
    "ana": ["/api/v1/budget", "/api/v1/releases", "/api/v1/approvals", "/budget", "/releases", "/ask"],
}
RELEASES = {(name, path) for name, paths in PATHS.items() for path in paths if path.endswith("/releases")}


class Watched:
    """A server whose interfaces are read while it reads data, while an answer waits for its time, and afterwards."""

    def __init__(self, folder, fake_time, **settings):
        self.service = open_service(folder, fake_time, ledger="ledger.sqlite", **settings)
        self.server, self.time, self.seen = Serving(self.service), fake_time, []
        self.boss, self._ana = person(self.service, "boss", Role.OWNER), person(self.service)
        self._clients = {
            "ana": self.server.client("ana"),
            "audit office": self.server.client("audit office", Role.AUDITOR),
        }
        self._forms = {name: self._sign_in(client) for name, client in self._clients.items()}
        self._agent, self._runner = AgentTools(self.service), QueryRunner(self.service)

    def _sign_in(self, client):
        def form_token(page):
            return page.text.split('name="form_token" value="')[1].split('"')[0]

        token = client.headers["Authorization"].split()[1]
        fields = {"form_token": form_token(client.get("/login")), "token": token, "next": "/budget"}
        assert client.post("/login", data=fields).status_code == 303
        return form_token(client.get("/budget"))

    def look(self):
        """Read everything that shows the ledger or the publications, from another thread than that of executions."""
        clients, form = self._clients, {"form_token": self._forms["audit office"]}
        seen = {(name, path): clients[name].get(path) for name, paths in PATHS.items() for path in paths}
        seen["verified"] = clients["audit office"].post("/budget/verify", data=form)
        folder = self.service.publications._folder
        for path in folder.iterdir() if folder.exists() else ():
            for url in (f"/api/v1/releases/{path.name}", f"/releases/{path.name}"):
                seen[url] = clients["ana"].get(url)
        seen = {name: response.text for name, response in seen.items()}
        explained = clients["ana"].post("/api/v1/explain", json={"sql": COUNT, "epsilon": "1/10"})
        asker = Asker(self._ana, SessionSettings(self.service.policy.budget), 1)
        catalog = self._runner.run(asker, "SELECT * FROM information_schema.tables")
        return seen | {
            "charge": explained.json()["exact"]["paid"],
            "PostgreSQL": self.server.run(catalog).table.to_pylist(),
            "MCP": self.server.run(self._agent.budget(self._ana)),
        }

    def _note(self):
        self.seen.append(self.server.run(asyncio.to_thread(self.look)))

    def watch(self, coroutine):
        """Run a coroutine, look whenever data are read or something waits, and look once more."""
        wait, sleep = self.time.wait, self.time.sleep

        def look_and_read():
            self._note()
            self.time.moment += 0.1

        async def look_and_wait(seconds):
            self.time.moment += 0.9 * seconds
            await asyncio.to_thread(self._note)
            await wait(0.1 * seconds)

        def look_and_sleep(seconds):
            self.time.moment += 0.9 * seconds
            self._note()
            sleep(0.1 * seconds)

        before_reading(self.service, look_and_read)
        self.time.wait, self.time.sleep = look_and_wait, look_and_sleep
        result = self.server.run(coroutine)
        self.time.wait, self.time.sleep = wait, sleep
        return result, self.look()

    def close(self):
        self._runner.close()
        self.server.close()


def before_reading(service, act):
    """Call a function before private data are read."""
    engine = service.curator._engine._private

    def acting(read):
        def act_and_read(*given):
            act()
            return read(*given)

        return act_and_read

    engine.totals, engine.batches = acting(engine.totals), acting(engine.batches)


@pytest.fixture
def watched(tmp_path, fake_time):
    opened = []

    def open_watched(**settings):
        opened.append(Watched(tmp_path, fake_time, **settings))
        return opened[-1]

    yield open_watched
    for each in opened:
        each.close()


def changed(before, after):
    return {name for name in after if before.get(name) != after[name]}


def test_nothing_shows_that_an_answer_is_ready_before_it_leaves(watched):
    found = watched(tick="1/4")
    _, left = found.watch(found.service.ask(person(found.service, "ben"), ASKED))
    reading, *_, waiting = found.seen
    assert changed(reading, waiting) == set()
    shown = {("audit office", "/api/v1/ledger"), ("audit office", "/budget"), "verified", "charge"}
    assert changed(waiting, left) >= shown


def test_nothing_shows_a_publication_or_its_parts_before_it_leaves(watched):
    found = watched(tick="1/4")
    release, left = found.watch(found.service.publish(found.boss, PLAN))
    reading, *others, waiting = found.seen
    urls = {f"{path}/{release.folder.name}" for path in ("/api/v1/releases", "/releases")}
    assert others
    assert all(not changed(reading, seen) for seen in others)
    assert changed(reading, waiting) == urls  # which are read only once the folder is there
    assert all("there is no such release" in waiting[url] for url in urls)
    assert changed(waiting, left) >= {("audit office", "/api/v1/ledger"), "verified", *RELEASES, *urls}


def test_in_strict_mode_a_publication_takes_a_limit_for_each_part_and_one_for_its_files(watched):
    found = watched(strict=True, seconds=8)
    start = found.time.moment
    release, left = found.watch(found.service.publish(found.boss, PLAN))
    assert not release.missing
    assert found.time.moment == pytest.approx(start + 24)
    assert all(not changed(found.seen[0], seen) & RELEASES for seen in found.seen)
    assert changed(found.seen[-1], left) >= RELEASES


@pytest.mark.parametrize("took", [0.1, 5])
def test_in_strict_mode_a_part_that_fails_after_another_was_stored_is_waited_for(watched, took):
    found = watched(strict=True, seconds=8)
    start = found.time.moment

    def fail_later():
        if any(event.state is EventState.RELEASED for event in found.service.ledger.events()):
            found.time.moment += took
            raise RuntimeError("patient 4711 has a value of 1e400")

    before_reading(found.service, fail_later)
    release = found.server.run(found.service.publish(found.boss, PLAN))
    assert release.missing == ("median",)
    assert found.time.moment == start + 16


def test_a_copy_of_a_publication_does_not_leave_before_the_first(watched):
    found = watched(tick="1/4")
    start, left = found.time.moment, []

    async def publish():
        await found.service.publish(found.boss, PLAN)
        left.append(found.time.moment)

    async def publish_again(seconds):
        del found.time.wait
        found.time.moment += seconds / 2
        await publish()

    found.time.wait = publish_again
    before_reading(found.service, lambda: setattr(found.time, "moment", start + 0.1))
    found.server.run(publish())
    assert left == [start + 0.25] * 2
