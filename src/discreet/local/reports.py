"""What people send: reports in memory, and the same as bytes that say who can read them.

    one byte    the version of this format
    five bytes  the first of the SHA-256 of the configuration: which randomizer, which domain, which epsilon
    then        the reports, each of the same few bytes, little-endian

A person's message is such a header with one report, and in a list of messages none can hold two; a file of many reports
has one header.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

ReceivedMessages = bytes | Iterable[bytes]
FORMAT_VERSION = 1
_HEADER_BYTES = 6


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Randomized answers, and the configuration that made them; nothing else in them depends on anybody.

    >>> import discreet as dc
    >>> reports = dc.local.GRR(["yes", "no"], epsilon=1).perturb(["yes", "no", "no"])
    >>> len(reports), len(bytes(reports)), [len(message) for message in reports.messages()]
    (3, 9, [7, 7, 7])
    """

    configuration: str
    array: np.ndarray

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        return f"<{len(self):,} reports of {self.array.dtype.itemsize} bytes, made by {self.configuration}>"

    def __getitem__(self, selection: slice) -> "Reports":
        if not isinstance(selection, slice):
            raise TypeError("take a slice of the reports, such as reports[:10]; np.asarray(reports) has each by itself")
        return Reports(self.configuration, self.array[selection])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype, copy=copy)

    def __bytes__(self) -> bytes:
        return header(self.configuration) + self.array.tobytes()

    def messages(self) -> Iterator[bytes]:
        """Yield what each person sends."""
        prefix, size, payload = header(self.configuration), self.array.dtype.itemsize, self.array.tobytes()
        for start in range(0, len(payload), size):
            yield prefix + payload[start : start + size]


def header(configuration: str) -> bytes:
    """Return the bytes that stand before the reports of a configuration."""
    return bytes([FORMAT_VERSION]) + hashlib.sha256(configuration.encode()).digest()[: _HEADER_BYTES - 1]


def read_reports(received: Any, configuration: str, dtype: np.dtype) -> Reports:
    """Read one message or many; ValueError if they are of another version or configuration, or torn."""
    is_single = isinstance(received, bytes | bytearray | memoryview)
    if not is_single and (isinstance(received, str) or not isinstance(received, Iterable)):
        raise TypeError(f"reports must be bytes, or a list of bytes, not {type(received).__name__}")
    messages = [bytes(received)] if is_single else list(received)
    if not all(isinstance(message, bytes) for message in messages):
        raise TypeError("reports must be bytes, or a list of bytes; perturb returns such that need not be read")
    for number, prefix in enumerate({message[:_HEADER_BYTES]: None for message in messages}, 1):
        check_header(prefix, configuration, "reports" if number == 1 else "reports, of several kinds")
    payloads = [message[_HEADER_BYTES:] for message in messages]
    size = dtype.itemsize
    if any(len(payload) % size if is_single else len(payload) != size for payload in payloads):
        what = "a file" if is_single else "a message"
        raise ValueError(f"reports: {what} is torn, or too long; after {_HEADER_BYTES} bytes, a report has {size}")
    return Reports(configuration, np.frombuffer(b"".join(payloads), dtype))


def check_configuration(reports: Reports, configuration: str, dtype: np.dtype) -> None:
    """Stop at what is no reports, or reports of another configuration."""
    if not isinstance(reports, Reports):
        raise TypeError(f"reports must be what perturb or read returns, not {type(reports).__name__}")
    if reports.configuration != configuration:
        raise ValueError(f"reports: made by {reports.configuration}, not by this configuration, {configuration}")
    if not isinstance(reports.array, np.ndarray) or reports.array.dtype != dtype or reports.array.ndim != 1:
        raise TypeError("reports must be what perturb or read returns, not put together by hand")


def check_header(prefix: bytes, configuration: str, name: str) -> None:
    """Stop at bytes that this configuration of this version did not write."""
    if len(prefix) < _HEADER_BYTES:
        raise ValueError(f"{name}: a message has {len(prefix)} bytes; even an empty one has {_HEADER_BYTES}")
    if prefix[0] != FORMAT_VERSION:
        raise ValueError(
            f"{name}: written in format {prefix[0]}; this version of Discreet reads format {FORMAT_VERSION}"
        )
    if prefix != header(configuration):
        hint = "both sides need the same values in the same order, and the same epsilon and settings"
        raise ValueError(f"{name}: made with another configuration than this one, {configuration}; {hint}")
