"""SCRAM-SHA-256: the example of RFC 7677, and every message that breaks the rules."""

import base64
import hashlib
import hmac
from dataclasses import dataclass

import pytest

from discreet.server.pgwire.scram import ScramError, ScramExchange

CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={PROOF}".encode()


@dataclass(frozen=True)
class Keys:
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def keys_of(password, salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), iterations=4096):
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Keys(salt, iterations, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def exchange(password="pencil"):
    return ScramExchange(keys_of(password), SERVER_NONCE)


def test_the_example_of_rfc_7677_is_reproduced():
    server = exchange()
    assert server.challenge(FIRST) == f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    assert server.verify(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_wrong_password_gives_no_signature():
    server = exchange("pencil2")
    server.challenge(FIRST)
    assert server.verify(FINAL) is None


def test_a_proof_fits_one_exchange_only():
    server = ScramExchange(keys_of("pencil"))
    server.challenge(FIRST)
    with pytest.raises(ScramError, match="nonce"):
        server.verify(FINAL)


def test_the_server_nonce_is_new_each_time():
    nonces = {ScramExchange(keys_of("pencil", iterations=1)).nonce for _ in range(20)}
    assert len(nonces) == 20
    assert min(map(len, nonces)) >= 24


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (b"", "user name"),
        (b"n,,n=user", "user name"),
        (b"n,,r=abc,n=user", "user name"),
        (b"n,,m=ext,n=user,r=abc", "user name"),
        (b"p=tls-server-end-point,,n=user,r=abc", "channel binding"),
        (b"x,,n=user,r=abc", "header"),
        (b"n,a=other,n=user,r=abc", "authorization identity"),
        (b"n,,n=user,r=", "nonce"),
        (b"n,,n=user,x=abc", "nonce"),
        (b"n,,n=user,r=" + b"a" * 300, "nonce"),
        (b"n,,n=user,r=a b", "printable"),
        (b"n,,n=user,r=\xff", "UTF-8"),
    ],
)
def test_a_malformed_first_message_is_refused(message, word):
    with pytest.raises(ScramError, match=word):
        exchange().challenge(message)


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (b"", "proof"),
        (FINAL.replace(b"c=biws", b"c=eSws"), "channel binding"),
        (FINAL.replace(b",r=", b",r=x"), "nonce"),
        (FINAL.replace(SERVER_NONCE.encode(), "é".encode()), "nonce"),
        (FINAL.rpartition(b",p=")[0], "proof"),
        (FINAL[:-3], "base64"),
        (FINAL.rpartition(b"p=")[0] + b"p=YWJj", "length"),
    ],
)
def test_a_malformed_last_message_is_refused(message, word):
    server = exchange()
    server.challenge(FIRST)
    with pytest.raises(ScramError, match=word):
        server.verify(message)


def test_a_client_that_could_bind_channels_but_was_not_offered_it_is_accepted():
    keys, server = keys_of("pencil"), exchange()
    server_first = server.challenge(FIRST.replace(b"n,,", b"y,,", 1)).decode()
    unproved = f"c=eSws,r={CLIENT_NONCE}{SERVER_NONCE}"
    signed = f"n=user,r={CLIENT_NONCE},{server_first},{unproved}".encode()
    client_key = hmac.digest(
        hashlib.pbkdf2_hmac("sha256", b"pencil", keys.salt, keys.iterations), b"Client Key", "sha256"
    )
    signature = hmac.digest(keys.stored_key, signed, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    assert server.verify(f"{unproved},p={proof}".encode())
