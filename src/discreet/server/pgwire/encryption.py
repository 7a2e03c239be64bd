"""TLS from bytes to bytes: asyncio's own keeps a quarter of a megabyte for each connection, even an idle one."""

import ssl

_AT_ONCE = 1 << 16  # bytes


class Encryption:
    """The server's side of TLS on one connection; whoever owns the socket passes bytes in and out."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._has_begun = False

    def receive(self, data: bytes) -> bytes:
        """Return what the client said, as far as it is complete; SSLError if that is not TLS."""
        self._incoming.write(data)
        found = bytearray()
        try:
            if not self._has_begun:
                self._tls.do_handshake()
                self._has_begun = True
            while part := self._tls.read(_AT_ONCE):
                found += part
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):  # more has to come, or nothing will
            pass
        return bytes(found)

    def encrypt(self, data: bytes) -> bytes:
        """Return bytes to send; none for none, or what TLS itself has to say."""
        if data:
            self._tls.write(data)
        return self._outgoing.read()
