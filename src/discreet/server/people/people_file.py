"""What is stored of people, beside the ledger: names, roles, hashes of tokens and verifiers."""

import secrets
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError
from discreet.server.owner_file import OwnerFile
from discreet.server.people.person import Person, Role
from discreet.server.people.token_secrets import ScramVerifier, salt_of, token_hash


@dataclass(frozen=True)
class TokenEntry:
    """A person, and what is stored of their token."""

    person: Person
    token_hash: str
    verifier: ScramVerifier


@dataclass(frozen=True)
class PeopleRecord:
    """Everybody with a token, and the seed of salts and decoys."""

    seed: bytes
    entries: tuple[TokenEntry, ...]

    def find(self, name: str) -> TokenEntry | None:
        """Return the entry of a name."""
        return next((entry for entry in self.entries if entry.person.name == name), None)


class PeopleFile:
    """The people of a policy; without a path they are kept in memory, like the ledger.

    >>> PeopleFile(None).read().entries
    ()
    """

    def __init__(self, path: Path | None) -> None:
        self._file = OwnerFile(path, "people", lambda: {"seed": secrets.token_hex(32), "people": []})
        self._parsed: tuple[Any, PeopleRecord] | None = None

    def read(self) -> PeopleRecord:
        """Return everybody."""
        values = self._file.read()
        if self._parsed is None or self._parsed[0] is not values:
            self._parsed = values, self._parse(values)
        return self._parsed[1]

    def add(self, person: Person, token: str) -> None:
        """Store a person and what is needed to check their token, in place of an earlier one."""
        seed = self.read().seed
        entry = TokenEntry(person, token_hash(token), ScramVerifier.of_secret(token, salt_of(seed, person.name)))
        self._file.change(lambda values: _without(values, person.name, [_entry_values(entry)]))

    def remove(self, name: str) -> None:
        """Forget a person."""
        self._file.change(lambda values: _without(values, name, []))

    def _parse(self, values: Any) -> PeopleRecord:
        try:
            return PeopleRecord(bytes.fromhex(values["seed"]), tuple(map(_parse_entry, values["people"])))
        except (ValueError, KeyError, TypeError):
            raise PolicyError(f"{self._file.path}: not a file of people. Restore it or remove it.") from None


def _without(values: dict[str, Any], name: str, added: list[dict[str, Any]]) -> dict[str, Any]:
    return {**values, "people": [*(each for each in values["people"] if each["name"] != name), *added]}


def _entry_values(entry: TokenEntry) -> dict[str, Any]:
    person, verifier = entry.person, entry.verifier
    return {
        "name": person.name,
        "role": person.role.value,
        "until": person.until and person.until.isoformat(),
        "token_sha256": entry.token_hash,
        "scram": {
            "salt": verifier.salt.hex(),
            "iterations": verifier.iterations,
            "stored_key": verifier.stored_key.hex(),
            "server_key": verifier.server_key.hex(),
        },
    }


def _parse_entry(values: dict[str, Any]) -> TokenEntry:
    until, scram = values["until"], values["scram"]
    person = Person(values["name"], Role(values["role"]), date.fromisoformat(until) if until else None)
    salt, *keys = (bytes.fromhex(scram[name]) for name in ("salt", "stored_key", "server_key"))
    return TokenEntry(person, values["token_sha256"], ScramVerifier(salt, scram["iterations"], *keys))
