"""Reports in memory, and their byte format.

    one byte    the version of this format
    five bytes  the beginning of the SHA-256 of the configuration: protocol, domain and epsilon
    then        the reports, all of the same size, little-endian

A person's message is a header with one report; in a list of messages, each must have exactly one. A file of many
reports has one header.
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
    """Randomised reports, and the configuration that produced them, which does not depend on anybody's value.

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
        size = self.array.dtype.itemsize
        return f"<{len(self):,} reports of {size} {'byte' if size == 1 else 'bytes'}: {self.configuration}>"

    def __getitem__(self, selection: slice) -> "Reports":
        if not isinstance(selection, slice):
            raise TypeError("reports: index with a slice, such as reports[:10], or use np.asarray(reports)")
        return Reports(self.configuration, self.array[selection])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype, copy=copy)

    def __bytes__(self) -> bytes:
        return header(self.configuration) + self.array.tobytes()

    def messages(self) -> Iterator[bytes]:
        """Yield the message of each person."""
        prefix, size, payload = header(self.configuration), self.array.dtype.itemsize, self.array.tobytes()
        for start in range(0, len(payload), size):
            yield prefix + payload[start : start + size]


def header(configuration: str) -> bytes:
    """Return the header of the reports of a configuration."""
    return bytes([FORMAT_VERSION]) + hashlib.sha256(configuration.encode()).digest()[: _HEADER_BYTES - 1]


def read_reports(received: Any, configuration: str, dtype: np.dtype) -> Reports:
    """Parse one message or many; ValueError if version, configuration or length do not match."""
    is_single = isinstance(received, bytes | bytearray | memoryview)
    if not is_single and (isinstance(received, str) or not isinstance(received, Iterable)):
        raise TypeError(f"reports must be bytes, or a list of bytes, not {type(received).__name__}")
    messages = [bytes(received)] if is_single else list(received)
    if not all(isinstance(message, bytes) for message in messages):
        raise TypeError("reports must be bytes, or a list of bytes. What perturb returns need not be read.")
    for number, prefix in enumerate({message[:_HEADER_BYTES]: None for message in messages}, 1):
        check_header(prefix, configuration, "reports" if number == 1 else "reports of several configurations")
    payloads = [message[_HEADER_BYTES:] for message in messages]
    size = dtype.itemsize
    if any(len(payload) % size if is_single else len(payload) != size for payload in payloads):
        where = "the file" if is_single else "a message"
        layout = f"a header of {_HEADER_BYTES} bytes is followed by {size} bytes per report"
        raise ValueError(f"reports: {where} has the wrong length: {layout}")
    return Reports(configuration, np.frombuffer(b"".join(payloads), dtype))


def check_configuration(reports: Reports, configuration: str, dtype: np.dtype) -> None:
    """Raise TypeError or ValueError if the argument is not reports of this configuration."""
    if not isinstance(reports, Reports):
        raise TypeError(f"reports must be the Reports that perturb or read returns, not {type(reports).__name__}")
    if reports.configuration != configuration:
        raise ValueError(f"reports: their configuration is {reports.configuration}, not {configuration}")
    if not isinstance(reports.array, np.ndarray) or reports.array.dtype != dtype or reports.array.ndim != 1:
        raise TypeError(f"reports must be those that perturb or read returns: a one-dimensional array of {dtype}")


def check_header(prefix: bytes, configuration: str, name: str) -> None:
    """Raise ValueError unless the header is of this format version and this configuration."""
    if len(prefix) < _HEADER_BYTES:
        raise ValueError(
            f"{name}: a message of {len(prefix)} bytes is shorter than the header of {_HEADER_BYTES} bytes"
        )
    if prefix[0] != FORMAT_VERSION:
        raise ValueError(
            f"{name}: format version {prefix[0]} is not supported. This version of Discreet reads {FORMAT_VERSION}."
        )
    if prefix != header(configuration):
        hint = "Both sides need the same values in the same order, the same epsilon and the same parameters."
        raise ValueError(f"{name}: the configuration does not match this one, {configuration}. {hint}")
