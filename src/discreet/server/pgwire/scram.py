"""SCRAM-SHA-256 for servers (RFC 5802, RFC 7677), without channel binding.

Nothing here depends on whether the user exists: for an unknown one, the verifier is a decoy that no password fits.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Protocol

MECHANISM = "SCRAM-SHA-256"
_MAX_NONCE = 256  # characters of the client's nonce
_PRINTABLE = frozenset(map(chr, range(0x21, 0x7F))) - {","}


class ScramError(Exception):
    """A message that does not follow RFC 5802; the text names the rule."""


class StoredKeys(Protocol):
    """What a server keeps of a password."""

    @property
    def salt(self) -> bytes:
        """The salt."""

    @property
    def iterations(self) -> int:
        """The number of iterations of PBKDF2."""

    @property
    def stored_key(self) -> bytes:
        """SHA-256 of the client key."""

    @property
    def server_key(self) -> bytes:
        """The key of the server's signature."""


def _nonce() -> str:
    return base64.b64encode(secrets.token_bytes(18)).decode()


@dataclass
class ScramExchange:
    """One authentication: `challenge` answers the client's first message, `verify` its last."""

    keys: StoredKeys
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
        salt = base64.b64encode(self.keys.salt).decode()
        self.nonce = client_nonce + self.nonce
        server_first = f"r={self.nonce},s={salt},i={self.keys.iterations}"
        self._gs2_header, self._signed = header, f"{','.join(bare)},{server_first}"
        return server_first.encode()

    def verify(self, client_final: bytes) -> bytes | None:
        """Return the server's signature; None if the proof is wrong."""
        unproved, comma, proof = _text(client_final).rpartition(",p=")
        channel, _, nonce = unproved.partition(",")
        if not comma or channel != "c=" + base64.b64encode(self._gs2_header.encode()).decode():
            raise ScramError("the proof is missing, or its channel binding is not that of the first message")
        if not hmac.compare_digest(nonce.partition(",")[0].encode(), f"r={self.nonce}".encode()):
            raise ScramError("the nonce is not the one that was sent")
        signed = f"{self._signed},{unproved}".encode()
        client_signature = _hmac(self.keys.stored_key, signed)
        client_proof = _decoded(proof, len(client_signature))
        client_key = bytes(left ^ right for left, right in zip(client_proof, client_signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self.keys.stored_key):
            return None
        return b"v=" + base64.b64encode(_hmac(self.keys.server_key, signed))


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


def _decoded(text: str, size: int) -> bytes:
    try:
        proof = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("the proof is not base64") from None
    if len(proof) != size:
        raise ScramError("the proof has the wrong length")
    return proof


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
