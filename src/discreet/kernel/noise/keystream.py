"""Random bytes: an AES-256-CTR keystream per thread and process, keyed by the operating system."""

import os
import threading
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

REKEY_AFTER = 1 << 26  # bytes; far below the limit for one key


class RandomSource(Protocol):
    """A source of random bytes; only tests replace it."""

    def bytes(self, count: int) -> bytearray:
        """Return `count` fresh bytes, which the caller may wipe."""


class Keystream:
    """The keystream of one thread.

    Only the state of the cipher is kept: no byte is drawn in advance, so none can be returned twice.
    """

    def __init__(self) -> None:
        self._cipher: CipherContext | None = None
        self._bytes_left = 0

    def bytes(self, count: int) -> bytearray:
        """Return `count` fresh bytes.

        Claim: without the key they are indistinguishable from independent uniform bits, and no two calls, threads or
            processes share any.
        Proof: AES-256 in counter mode under a key from the operating system, replaced before a call that would use more
            than 64 MiB of it; each call advances the counter past the bytes that it returned. `thread_keystream` gives
            every thread, and every child of a fork, its own object, which starts without a key.
        Needs: AES-256 is a pseudo-random permutation; os.urandom.
        Checked by: test_threads_and_forks_never_share_a_stream, test_the_stream_is_aes_in_counter_mode
        """
        if self._cipher is None or self._bytes_left < count:
            self._cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
            self._bytes_left = REKEY_AFTER
        self._bytes_left -= count
        return bytearray(self._cipher.update(bytes(count)))


class _ThreadStreams(threading.local):
    """One keystream per thread; replaced as a whole in a forked child."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.stream = Keystream()


_thread_streams = _ThreadStreams()


def process_token() -> "_ThreadStreams":
    """Return a token that is a new object in every forked child, where noise drawn in advance must not be used."""
    if _thread_streams.pid != os.getpid():  # a fork that bypassed Python's fork handlers
        _reset_streams()
    return _thread_streams


def _reset_streams() -> None:
    global _thread_streams  # noqa: PLW0603 - called in a forked child only
    _thread_streams = _ThreadStreams()


os.register_at_fork(after_in_child=_reset_streams)


def thread_keystream() -> Keystream:
    """Return the calling thread's keystream."""
    return process_token().stream


def random_words(source: RandomSource, count: int, dtype: type[np.unsignedinteger]) -> "np.ndarray":
    """Return an array of `count` uniform unsigned integers."""
    return np.frombuffer(source.bytes(count * np.dtype(dtype).itemsize), dtype)


def random_integer(source: RandomSource, bits: int) -> int:
    """Return a uniform integer of `bits` bits (a multiple of 8)."""
    return int.from_bytes(source.bytes(bits // 8))


def wipe(*arrays: "np.ndarray") -> None:
    """Overwrite used random words."""
    for array in arrays:
        array.fill(0)
