"""A client that sends any messages, valid or not, and reads the replies as they are."""

import base64
import hashlib
import hmac
import socket
import struct

from discreet.server.pgwire.replies import message

SSL_REQUEST = struct.pack("!II", 8, 80877103)


def text(value):
    return value.encode() + b"\0"


def startup(minor=0, **parameters):
    body = struct.pack("!I", (3 << 16) + minor) + b"".join(
        text(name) + text(value) for name, value in parameters.items()
    )
    return struct.pack("!I", len(body) + 5) + body + b"\0"


def parse(sql, name="", types=()):
    return message(b"P", text(name) + text(sql) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(values=(), name="", portal="", formats=(), result_formats=()):
    encoded = b"".join(
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in values
    )
    return message(
        b"B",
        text(portal)
        + text(name)
        + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
        + struct.pack("!H", len(values))
        + encoded
        + struct.pack(f"!H{len(result_formats)}h", len(result_formats), *result_formats),
    )


def describe_statement(name=""):
    return message(b"D", b"S" + text(name))


def describe_portal(name=""):
    return message(b"D", b"P" + text(name))


def execute(portal="", limit=0):
    return message(b"E", text(portal) + struct.pack("!i", limit))


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def query(sql):
    return message(b"Q", text(sql))


class WireClient:
    """One connection; replies are pairs of a type byte and a body."""

    def __init__(self, port, seconds=30):
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)

    def send(self, *data):
        self.socket.sendall(b"".join(data))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def reply(self):
        """Return the next reply."""
        kind = self._exactly(1)
        return kind, self._exactly(int.from_bytes(self._exactly(4)) - 4)

    def replies(self, until=b"Z"):
        """Return the replies up to ReadyForQuery; fewer if the connection ends."""
        found = []
        try:
            while not found or found[-1][0] != until:
                found.append(self.reply())
        except (EOFError, ConnectionError):
            pass
        return found

    def ask(self, *data):
        """Send messages and return the replies up to ReadyForQuery."""
        self.send(*data)
        return self.replies()

    def log_in(self, user, token, **parameters):
        """Authenticate; return the replies up to ReadyForQuery, or to an error."""
        self.send(startup(**{"user": user, "database": "clinic", **parameters}))
        found = [self.reply()]
        if found[0][0] != b"R":
            return found
        first = f"n={user},r=clientnonce"
        data = f"n,,{first}".encode()
        self.send(message(b"p", text("SCRAM-SHA-256") + struct.pack("!i", len(data)) + data))
        kind, body = self.reply()
        if kind != b"R":
            return [(kind, body)]
        server_first = body[4:].decode()
        values = dict(part.split("=", 1) for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), base64.b64decode(values["s"]), int(values["i"]))
        unproved = f"c=biws,r={values['r']}"
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), f"{first},{server_first},{unproved}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        self.send(message(b"p", f"{unproved},p={proof}".encode()))
        return self.replies()

    def close(self):
        self.socket.close()


def error_of(replies):
    """Return the fields of the first error."""
    body = next(body for kind, body in replies if kind == b"E")
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def kinds(replies):
    return b"".join(kind for kind, _ in replies).decode()
