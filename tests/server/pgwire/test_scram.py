"""SCRAM-SHA-256: the example of RFC 7677, and every message that breaks the rules."""

import base64

import pytest

from discreet.server.people.token_secrets import ScramVerifier
from discreet.server.pgwire.scram import ScramError, ScramExchange, final_message

CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={PROOF}".encode()


SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def exchange():
    return ScramExchange(SALT, 4096, SERVER_NONCE)


def test_the_example_of_rfc_7677_is_reproduced():
    server, keys = exchange(), ScramVerifier.of_secret("pencil", SALT)
    assert server.challenge(FIRST) == f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    found = server.read_proof(FINAL)
    assert keys.accepts(found.message, found.proof)
    signature = keys.server_signature(found.message)
    assert final_message(signature) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_proof_of_another_secret_is_wrong():
    server = exchange()
    server.challenge(FIRST)
    found = server.read_proof(FINAL)
    assert not ScramVerifier.of_secret("pencil2", SALT).accepts(found.message, found.proof)


def test_a_proof_fits_one_exchange_only():
    server = ScramExchange(SALT, 4096)
    server.challenge(FIRST)
    with pytest.raises(ScramError, match="nonce"):
        server.read_proof(FINAL)


def test_the_server_nonce_is_new_each_time():
    nonces = {ScramExchange(SALT, 4096).nonce for _ in range(20)}
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
    ],
)
def test_a_malformed_last_message_is_refused(message, word):
    server = exchange()
    server.challenge(FIRST)
    with pytest.raises(ScramError, match=word):
        server.read_proof(message)


def test_a_client_that_could_bind_channels_but_was_not_offered_it_is_accepted():
    server = exchange()
    server.challenge(FIRST.replace(b"n,,", b"y,,", 1))
    message = FINAL.replace(b"c=biws", b"c=eSws")
    assert server.read_proof(message).message.endswith(f"c=eSws,r={CLIENT_NONCE}{SERVER_NONCE}".encode())
