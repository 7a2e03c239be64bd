"""SCRAM-SHA-256 for servers (RFC 5802, RFC 7677), without channel binding: the messages of one authentication.

Whether a proof is right is decided by whoever keeps the verifiers. Nothing here depends on whether the user exists.
"""

import base64
import binascii
import secrets
from dataclasses import dataclass, field

MECHANISM = "SCRAM-SHA-256"
_MAX_NONCE = 256  # characters of the client's nonce
_PRINTABLE = frozenset(map(chr, range(0x21, 0x7F))) - {","}


class ScramError(Exception):
    """A message that does not follow RFC 5802; the text names the rule."""


@dataclass(frozen=True)
class ScramProof:
    """A client's proof, and the message that it signs."""

    message: bytes
    proof: bytes


def _nonce() -> str:
    return base64.b64encode(secrets.token_bytes(18)).decode()


@dataclass
class ScramExchange:
    """One authentication: `challenge` answers the client's first message, `read_proof` takes its last.

    >>> exchange = ScramExchange(bytes(16), 4096, nonce="server")
    >>> exchange.challenge(b"n,,n=ana,r=client")
    b'r=clientserver,s=AAAAAAAAAAAAAAAAAAAAAA==,i=4096'
    """

    salt: bytes
    iterations: int
    nonce: str = field(default_factory=_nonce)
    _gs2_header: str = ""
    _signed: str = ""

    def challenge(self, client_first: bytes) -> bytes:
        """Return the server's first message: the nonces, the salt and the number of iterations."""
        header, bare = _split_first_message(_text(client_first))
        client_nonce = bare[1].removeprefix("r=")
        if client_nonce == bare[1] or not client_nonce or len(client_nonce) > _MAX_NONCE:
            raise ScramError("the client's nonce is missing or too long")
        if not set(client_nonce) <= _PRINTABLE:
            raise ScramError("the client's nonce has characters that are not printable")
        self.nonce = client_nonce + self.nonce
        server_first = f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={self.iterations}"
        self._gs2_header, self._signed = header, f"{','.join(bare)},{server_first}"
        return server_first.encode()

    def read_proof(self, client_final: bytes) -> ScramProof:
        """Return the proof of the client's last message, and what it signs."""
        unproved, comma, proof = _text(client_final).rpartition(",p=")
        channel, _, nonce = unproved.partition(",")
        if not comma or channel != "c=" + base64.b64encode(self._gs2_header.encode()).decode():
            raise ScramError("the proof is missing, or its channel binding is not that of the first message")
        if nonce.partition(",")[0] != f"r={self.nonce}":
            raise ScramError("the nonce is not the one that was sent")
        return ScramProof(f"{self._signed},{unproved}".encode(), _decoded(proof))


def final_message(signature: bytes) -> bytes:
    """Return the server's last message.

    >>> final_message(b"signature")
    b'v=c2lnbmF0dXJl'
    """
    return b"v=" + base64.b64encode(signature)


def _split_first_message(message: str) -> tuple[str, list[str]]:
    """Return the GS2 header, and the attributes after it."""
    parts = message.split(",")
    if len(parts) < 4 or not parts[2].startswith("n="):
        raise ScramError("the first message has no user name or nonce")
    if parts[0].startswith("p="):
        raise ScramError("channel binding was not offered")
    if parts[0] not in ("n", "y") or parts[1]:
        raise ScramError("the header of the first message is malformed, or it has an authorization identity")
    return f"{parts[0]},{parts[1]},", parts[2:]


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("the proof is not base64") from None
