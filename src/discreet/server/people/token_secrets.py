"""Tokens of 256 random bits, and what is stored of them: a hash, and a verifier for SCRAM-SHA-256 (RFC 5802, 7677).

A token cannot be guessed, so a fast hash protects it as well as a slow one would.
"""

import hmac
import secrets
from dataclasses import dataclass
from hashlib import pbkdf2_hmac, sha256

_PREFIX = "dsc_"  # lets scanners for leaked secrets recognise a token
_ITERATIONS = 4096  # RFC 7677's minimum; the secret is random
_SALT_BYTES = 16


def new_token() -> str:
    """Return a token of 256 random bits.

    >>> new_token().startswith("dsc_"), new_token() == new_token()
    (True, False)
    """
    return _PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return the hash that is stored of a token.

    >>> len(token_hash("dsc_x"))
    64
    """
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class ScramVerifier:
    """What a server knows of a secret for SCRAM-SHA-256: enough to check a proof, not enough to make one.

    >>> verifier = ScramVerifier.of_secret("pencil", salt=bytes(16))
    >>> verifier.accepts(b"message", bytes(32))
    False
    """

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_secret(cls, secret: str, salt: bytes) -> "ScramVerifier":
        """Derive the verifier of an ASCII secret, which SASLprep leaves as it is."""
        salted = pbkdf2_hmac("sha256", secret.encode(), salt, _ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return cls(salt, _ITERATIONS, sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))

    @classmethod
    def decoy(cls, seed: bytes, name: str) -> "ScramVerifier":
        """Return a verifier that looks like that of a known name, and accepts no proof that anybody can make."""
        stored, server = (
            hmac.digest(seed, f"{part} {name}".encode("utf-8", "surrogatepass"), "sha256")
            for part in ("stored", "server")
        )
        return cls(salt_of(seed, name), _ITERATIONS, stored, server)

    def accepts(self, message: bytes, proof: bytes) -> bool:
        """Whether a client proof of this authentication message comes from the secret."""
        signature = hmac.digest(self.stored_key, message, "sha256")
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return hmac.compare_digest(sha256(client_key).digest(), self.stored_key)

    def server_signature(self, message: bytes) -> bytes:
        """Return the server's own proof for an authentication message."""
        return hmac.digest(self.server_key, message, "sha256")


def salt_of(seed: bytes, name: str) -> bytes:
    """Return the salt of a name, known or not: it stays the same when a token is issued, revoked or replaced.

    >>> salt_of(bytes(32), "ana") == salt_of(bytes(32), "ana"), salt_of(bytes(32), "ana") == salt_of(bytes(32), "ben")
    (True, False)
    """
    return hmac.digest(seed, f"salt {name}".encode("utf-8", "surrogatepass"), "sha256")[:_SALT_BYTES]
