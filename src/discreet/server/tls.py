"""Addresses to listen on, and TLS, without which a server is reachable from its own machine only."""

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from discreet.kernel.errors import PolicyError


@dataclass(frozen=True)
class TlsFiles:
    """A certificate (with its chain) and its private key, as PEM files."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """Return a context for TLS 1.2 or later."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise PolicyError(
                f"--tls-cert, --tls-key: cannot be loaded ({error}). Give two matching PEM files."
            ) from None
        return context


@dataclass(frozen=True)
class ListenAddress:
    """A host and a port to listen on; port 0 lets the system choose one.

    >>> str(ListenAddress.parse("[::1]:5433", "--pg")), str(ListenAddress.parse("8080", "--http"))
    ('[::1]:5433', '127.0.0.1:8080')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, option: str) -> "ListenAddress":
        """Parse PORT, HOST:PORT or [HOST]:PORT; without a host it is the loopback."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise PolicyError(f"{option}: {text[:100]!r} is not an address. Write it as 127.0.0.1:8080.")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def check(self, tls: TlsFiles | None, option: str) -> None:
        """Refuse an address that other machines can reach without TLS."""
        if tls is None and not self.is_loopback:
            raise PolicyError(
                f"{option}: other machines can reach {self}, where tokens and answers must be encrypted. Add "
                "--tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that does."
            )

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
