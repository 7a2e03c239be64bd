"""Who is signed in: sessions in memory, each for one token, ended when the token is revoked."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from discreet.server.people.person import Person
from discreet.server.people.registry import People
from discreet.server.people.token_secrets import token_hash

MAX_SECONDS = 12 * 3600
IDLE_SECONDS = 2 * 3600
_MAX_SESSIONS = 1000
_MAX_OF_ONE = 10  # the oldest of a person's sessions ends when they sign in once more
_MAX_KEPT = 30  # answers that a session shows again


@dataclass
class PageSession:
    """One person's visit: what protects its forms, and the answers that it can show again."""

    person: Person
    digest: str = field(repr=False)  # of the token
    form_token: str = field(repr=False)
    began: float
    seen: float
    kept: OrderedDict[str, Any] = field(default_factory=OrderedDict, repr=False)

    def keep(self, thing: Any) -> str:
        """Keep something to show it again, and return its name."""
        name = secrets.token_hex(6)
        self.kept[name] = thing
        if len(self.kept) > _MAX_KEPT:
            self.kept.popitem(last=False)
        return name


class Sessions:
    """The sessions of a server; they do not survive its restart.

    >>> from discreet.policy import Policy
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": ":memory:"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> sessions = Sessions(People(policy))
    >>> sessions.find("a guess") is None
    True
    """

    def __init__(self, people: People, now: Callable[[], float] = time.monotonic) -> None:
        self._people, self._now = people, now
        self._sessions: OrderedDict[str, PageSession] = OrderedDict()  # by the hash of the cookie, oldest first
        self._login_key = secrets.token_bytes(32)

    def begin(self, person: Person, token: str) -> str:
        """Begin a session of somebody whose token was accepted, and return its cookie."""
        cookie, now = secrets.token_urlsafe(32), self._now()
        self._remove_ended(now)
        own = [name for name, session in self._sessions.items() if session.person.name == person.name]
        for name in own[: max(0, len(own) + 1 - _MAX_OF_ONE)]:
            del self._sessions[name]
        while len(self._sessions) >= _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        self._sessions[_name(cookie)] = PageSession(person, token_hash(token), secrets.token_urlsafe(32), now, now)
        return cookie

    def find(self, cookie: str) -> PageSession | None:
        """Return the session of a cookie, unless it has ended or its token is not valid any more."""
        session = self._sessions.get(_name(cookie))
        if session is None:
            return None
        now = self._now()
        if _has_ended(session, now) or self._people.holder(session.digest) != session.person:
            self.end(cookie)
            return None
        session.seen = now
        return session

    def end(self, cookie: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(_name(cookie), None)

    def login_form_token(self, visit: str) -> str:
        """Return what protects the login form of a visit that has no session yet."""
        return hmac.digest(self._login_key, visit.encode(), "sha256").hex()

    def _remove_ended(self, now: float) -> None:
        for name in [name for name, session in self._sessions.items() if _has_ended(session, now)]:
            del self._sessions[name]


def _has_ended(session: PageSession, now: float) -> bool:
    return now - session.began > MAX_SECONDS or now - session.seen > IDLE_SECONDS


def _name(cookie: str) -> str:
    return sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
