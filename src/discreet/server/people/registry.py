"""Who a token or a SCRAM proof belongs to, and how tokens are issued and revoked."""

import hmac
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NoReturn

from discreet.curator.data_stamp import path_beside_ledger
from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger import Ledger
from discreet.policy import Policy
from discreet.server.errors import AccessDenied
from discreet.server.event_log import log_event
from discreet.server.people.failure_limit import MinuteLimit
from discreet.server.people.people_file import PeopleFile
from discreet.server.people.person import Person, Role
from discreet.server.people.token_secrets import ScramVerifier, new_token, token_hash

_MAX_TOKEN = 200  # characters that are looked at


@dataclass(frozen=True)
class NewToken:
    """A person and their new token, which is shown once and stored nowhere."""

    person: Person
    token: str = field(repr=False)


class People:
    """The people of a policy. Unknown names and wrong tokens behave alike, and too many failures are refused.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": ":memory:"},
    ...     "budget": {"epsilon": 1, "analysts": {"ana": {"epsilon": 1}}},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> people, ledger = People(policy), memory_ledger(name="visits", budget=Budget(1))
    >>> issued = people.add(ledger, "ana", Role.ANALYST)
    >>> people.person_for_token(issued.token, "127.0.0.1").name
    'ana'
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self._file = policy, PeopleFile(people_path(policy))
        limit = policy.server.failures_per_minute
        self._failures_by_name = MinuteLimit("failed logins with this name", limit)
        self._failures_by_address = MinuteLimit("failed logins from this address", limit)

    def person_for_token(self, token: str, address: str) -> Person:
        """Return whose token this is; AccessDenied for every other one, RateLimited after too many of them.

        Nobody guesses 256 bits, so failures of others at the same address do not keep out who has a token.
        """
        return self.holder(token_hash(token[:_MAX_TOKEN])) or self._deny("", address)

    def holder(self, digest: str) -> Person | None:
        """Return whose valid token has this hash, None if nobody: for sessions, which keep no token."""
        entries = (each for each in self._file.read().entries if hmac.compare_digest(each.token_hash, digest))
        entry = next(entries, None)
        return entry.person if entry and not entry.person.is_expired else None

    def scram_verifier(self, name: str) -> ScramVerifier:
        """Return the verifier of a name; for an unknown one a decoy, which stays the same and accepts nobody."""
        record = self._file.read()
        entry = record.find(name)
        return entry.verifier if entry and not entry.person.is_expired else ScramVerifier.decoy(record.seed, name)

    def person_for_proof(self, name: str, message: bytes, proof: bytes, address: str) -> Person:
        """Return the person of this name if the proof comes from their token; AccessDenied otherwise."""
        accepted = self.scram_verifier(name).accepts(message, proof)
        entry = self._file.read().find(name) if accepted else None
        return entry.person if entry and not entry.person.is_expired else self._deny(name, address)

    def _deny(self, name: str, address: str) -> NoReturn:
        """Refuse a wrong token or proof, and count it."""
        self._failures_by_address.check(address)
        if name:
            self._failures_by_name.check(name)
        self._failures_by_address.add(address)
        if name:
            self._failures_by_name.add(name)
        log_event("login", outcome="denied", name=name or None, address=address)
        raise AccessDenied

    def everybody(self) -> tuple[Person, ...]:
        """Return everybody with a token, expired or not, in the order in which they were added."""
        return tuple(entry.person for entry in self._file.read().entries)

    def add(self, ledger: Ledger, name: str, role: Role, until: date | None = None) -> NewToken:
        """Issue a token, which replaces an earlier one of the same name, and record the act in the ledger."""
        self._check_name(name, role)
        token, person = new_token(), Person(name, role, until)
        if person.is_expired:
            raise PolicyError(f"until: {until} is over, so the token would be of no use. Give a day to come.")
        act = {"act": "token issued", "name": name, "role": role.value, "until": until and until.isoformat()}
        ledger.record_act({key: value for key, value in act.items() if value})  # first: no token without its record
        self._file.add(person, token)
        return NewToken(person, token)

    def revoke(self, ledger: Ledger, name: str) -> None:
        """Make a person's token invalid at once, and record the act in the ledger."""
        if self._file.read().find(name) is None:
            raise PolicyError(f"name: {name!r} has no token. Names with one: {', '.join(self._names()) or 'none'}.")
        self._file.remove(name)
        ledger.record_act({"act": "token revoked", "name": name})

    def _names(self) -> tuple[str, ...]:
        return tuple(person.name for person in self.everybody())

    def _check_name(self, name: str, role: Role) -> None:
        analysts = self.policy.budget_entry.analysts
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise PolicyError("name: must be one line of 1 to 200 characters. Choose another name.")
        if role is Role.ANALYST and name not in analysts:
            raise PolicyError(
                f"name: {name!r} is not listed in the policy, so nothing limits what they spend. Add "
                f'"{name}" = {{ epsilon = … }} under [budget.analysts] first.'
            )
        if role is not Role.ANALYST and name in analysts:
            raise PolicyError(f"name: {name!r} is an analyst of the policy. Choose another name for this {role.value}.")


def people_path(policy: Policy) -> Path | None:
    """Return the file of people, next to the ledger or the policy; None for a ledger in memory."""
    return None if policy.data.ledger == ":memory:" else path_beside_ledger(policy, ".people")
