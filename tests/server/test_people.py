"""People: tokens are shown once and stored as hashes; unknown names and wrong tokens behave alike."""

import base64
import hmac
import json
import os
import stat
import threading
from datetime import UTC, date, datetime, timedelta
from hashlib import pbkdf2_hmac, sha256

import pytest
from served import open_service, policy_values

import discreet as dc
from discreet.policy import Policy
from discreet.publish.ledger_history import read_history
from discreet.server.errors import AccessDenied, RateLimited
from discreet.server.people import People, Role
from discreet.server.people import person as people_module
from discreet.server.people.failure_limit import MinuteLimit

HERE = "127.0.0.1"


@pytest.fixture
def policy(tmp_path):
    return Policy.from_dict(policy_values(ledger="ledger.sqlite"), tmp_path)


@pytest.fixture
def ledger():
    return dc.memory_ledger(name="clinic", budget=dc.Budget(1))


@pytest.fixture
def people(policy):
    return People(policy)


def client_proof(token, verifier, message):
    """Return what a client of SCRAM-SHA-256 sends that knows the token (RFC 5802, section 3)."""
    salted = pbkdf2_hmac("sha256", token.encode(), verifier.salt, verifier.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(sha256(client_key).digest(), message, "sha256")
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))


def test_a_token_has_256_random_bits_and_names_its_person(people, ledger):
    issued = people.add(ledger, "ana", Role.ANALYST)
    secret = base64.urlsafe_b64decode(issued.token.removeprefix("dsc_") + "=")
    assert len(secret) == 32
    assert people.person_for_token(issued.token, HERE) == issued.person
    assert issued.person.by == "ana"


def test_no_token_is_stored_and_the_file_is_the_owners_alone(people, ledger, tmp_path):
    token = people.add(ledger, "ana", Role.ANALYST).token
    text = (tmp_path / "ledger.sqlite.people").read_text()
    assert token not in text
    assert token.removeprefix("dsc_") not in text
    for name in ("ledger.sqlite.people", "ledger.sqlite.people.lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_token_is_not_in_the_text_of_any_object(people, ledger):
    issued = people.add(ledger, "ana", Role.ANALYST)
    assert issued.token not in repr(issued)


def test_another_process_sees_new_and_revoked_tokens_at_once(people, policy, ledger):
    other = People(policy)
    token = people.add(ledger, "ana", Role.ANALYST).token
    assert other.person_for_token(token, HERE).name == "ana"
    people.revoke(ledger, "ana")
    with pytest.raises(AccessDenied):
        other.person_for_token(token, HERE)


def test_a_new_token_replaces_the_one_before(people, ledger):
    before, after = (people.add(ledger, "ana", Role.ANALYST).token for _ in range(2))
    assert people.person_for_token(after, HERE).name == "ana"
    with pytest.raises(AccessDenied):
        people.person_for_token(before, HERE)
    assert len(people.everybody()) == 1


def test_analysts_must_have_a_budget_and_others_must_not(people, ledger):
    with pytest.raises(dc.PolicyError, match=r"'zoe' is not listed .*\[budget.analysts\]"):
        people.add(ledger, "zoe", Role.ANALYST)
    with pytest.raises(dc.PolicyError, match="'ana' is an analyst"):
        people.add(ledger, "ana", Role.AUDITOR)
    for name in ("", " ", "a\nb", "x" * 201):
        with pytest.raises(dc.PolicyError, match="one line"):
            people.add(ledger, name, Role.OWNER)
    assert people.everybody() == ()


@pytest.fixture
def pass_days(monkeypatch):
    """Give a function that lets days pass."""

    def let_pass(days):
        class Later(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + timedelta(days=days)

        monkeypatch.setattr(people_module, "datetime", Later)

    return let_pass


def test_a_last_day_that_is_over_is_refused_and_the_token_before_stays(people, ledger):
    token = people.add(ledger, "ana", Role.ANALYST).token
    with pytest.raises(dc.PolicyError, match=r"until: 2020-01-01 is over"):
        people.add(ledger, "ana", Role.ANALYST, until=date(2020, 1, 1))
    assert people.person_for_token(token, HERE).name == "ana"


def test_a_token_is_valid_through_its_last_day(people, ledger, pass_days):
    last_day = datetime.now(UTC).date() + timedelta(days=1)
    over = people.add(ledger, "ana", Role.ANALYST, until=last_day)
    assert people.person_for_token(over.token, HERE).until == last_day
    pass_days(2)
    with pytest.raises(AccessDenied):
        people.person_for_token(over.token, HERE)
    assert not people.scram_verifier("ana").accepts(b"m", client_proof(over.token, people.scram_verifier("ana"), b"m"))


def test_every_denial_has_the_same_message(people, ledger, pass_days):
    expired = people.add(ledger, "ana", Role.ANALYST, until=datetime.now(UTC).date()).token
    pass_days(1)
    revoked = people.add(ledger, "ben", Role.ANALYST).token
    people.revoke(ledger, "ben")
    denials = set()
    for token in (expired, revoked, "", "dsc_x", "ä" * 10_000, "\udcff"):
        with pytest.raises(AccessDenied) as denied:
            people.person_for_token(token, token[:3])
        denials.add(str(denied.value))
    for name in ("ana", "ben", "nobody"):
        with pytest.raises(AccessDenied) as denied:
            people.person_for_proof(name, b"message", bytes(32), name)
        denials.add(str(denied.value))
    assert len(denials) == 1


def test_scram_accepts_the_token_and_nothing_else(people, ledger):
    token, message = people.add(ledger, "ana", Role.ANALYST).token, b"n=ana,r=1,r=12,s=x,i=4096,c=biws,r=12"
    verifier = people.scram_verifier("ana")
    proof = client_proof(token, verifier, message)
    assert people.person_for_proof("ana", message, proof, HERE).name == "ana"
    salted = pbkdf2_hmac("sha256", token.encode(), verifier.salt, verifier.iterations)
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    assert verifier.server_signature(message) == hmac.digest(server_key, message, "sha256")
    for name, text, wrong in (
        ("ana", b"another", proof),
        ("ana", message, client_proof("dsc_guess", verifier, message)),
        ("ana", message, b""),
        ("ben", message, proof),
    ):
        with pytest.raises(AccessDenied):
            people.person_for_proof(name, text, wrong, HERE)


def test_an_unknown_name_has_a_stable_decoy_that_looks_like_a_known_one(people, policy, ledger):
    people.add(ledger, "ana", Role.ANALYST)
    known, unknown = people.scram_verifier("ana"), people.scram_verifier("zoe")
    assert unknown == People(policy).scram_verifier("zoe")
    assert (known.iterations, len(known.salt)) == (unknown.iterations, len(unknown.salt))
    assert unknown.salt != known.salt
    before = people.scram_verifier("ben").salt
    people.add(ledger, "ben", Role.ANALYST)
    assert people.scram_verifier("ben").salt == before  # a salt does not tell whether the name has a token
    people.revoke(ledger, "ben")
    assert people.scram_verifier("ben").salt == before


def test_too_many_failures_from_an_address_or_with_a_name_are_refused_for_a_minute(people, ledger):
    token = people.add(ledger, "ana", Role.ANALYST).token
    for _ in range(10):
        with pytest.raises(AccessDenied):
            people.person_for_token("dsc_guess", "10.0.0.9")
    with pytest.raises(RateLimited, match="address"):
        people.person_for_token("dsc_guess", "10.0.0.9")
    assert people.person_for_token(token, "10.0.0.9").name == "ana"  # failures of others do not lock her out
    for number in range(10):
        with pytest.raises(AccessDenied):
            people.person_for_proof("ana", b"m", bytes(32), f"192.0.2.{number}")
    with pytest.raises(RateLimited, match="name") as limited:
        people.person_for_proof("ana", b"m", bytes(32), "192.0.2.99")
    assert 50 < limited.value.seconds <= 60


def test_a_limit_ends_after_a_minute_and_forgets_the_quietest_names():
    now = [0.0]
    limit = MinuteLimit("requests", 2, lambda: now[0])
    limit.add("ana")
    limit.check("ana")
    now[0] = 30
    limit.add("ana")
    with pytest.raises(RateLimited):
        limit.check("ana")
    now[0] = 60.5
    limit.check("ana")
    for number in range(20_000):
        limit.add(str(number))
    assert len(limit._times) == 10_000


def test_the_acts_are_in_the_ledgers_chain(people, ledger):
    people.add(ledger, "ana", Role.ANALYST, until=date(2030, 1, 1))
    people.add(ledger, "audit office", Role.AUDITOR)
    people.revoke(ledger, "ana")
    acts = [str(act) for act in read_history(ledger).recorded_acts]
    assert acts == [
        "token issued: name ana, role analyst, until 2030-01-01",
        "token issued: name audit office, role auditor",
        "token revoked: name ana",
    ]
    ledger.verify()


def test_revoking_a_name_without_a_token_is_an_error_that_lists_the_names(people, ledger):
    people.add(ledger, "ana", Role.ANALYST)
    with pytest.raises(dc.PolicyError, match="Names with one: ana"):
        people.revoke(ledger, "anna")


def test_tokens_issued_at_the_same_time_are_all_kept(policy, ledger):
    values = policy_values(ledger="ledger.sqlite")
    names = [f"a{number}" for number in range(16)]
    values["budget"]["analysts"] = {name: {"epsilon": 1} for name in names}
    policy = Policy.from_dict(values, policy.base)
    threads = [threading.Thread(target=People(policy).add, args=(ledger, name, Role.ANALYST)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {person.name for person in People(policy).everybody()} == set(names)


def test_a_crash_while_the_file_is_replaced_leaves_the_old_one(people, ledger, tmp_path, monkeypatch):
    token = people.add(ledger, "ana", Role.ANALYST).token

    def crash(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="no space"):
        people._file.remove("ana")
    monkeypatch.undo()
    assert people.person_for_token(token, HERE).name == "ana"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("ledger.sqlite.people.")] == [
        "ledger.sqlite.people.lock"
    ]


def test_a_damaged_file_denies_everybody_and_says_why_to_the_owner(people, tmp_path, ledger):
    people.add(ledger, "ana", Role.ANALYST)
    path = tmp_path / "ledger.sqlite.people"
    for text in ("{", "[]", json.dumps({"seed": "zz", "people": []})):
        path.write_text(text)
        with pytest.raises(dc.PolicyError, match="not a file of people"):
            people.everybody()


def test_a_ledger_in_memory_keeps_its_people_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_service() as service:
        service.people.add(service.ledger, "ana", Role.ANALYST)
    assert list(tmp_path.iterdir()) == []
