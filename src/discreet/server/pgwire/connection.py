"""One connection: bytes in and out, TLS, authentication, time limits and cancelling."""

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import Callable, Mapping
from typing import cast

from discreet.kernel.errors import Refused
from discreet.server.errors import AccessDenied
from discreet.server.event_log import log_event
from discreet.server.people.person import Person
from discreet.server.people.token_secrets import ScramVerifier
from discreet.server.pgwire import replies
from discreet.server.pgwire.encryption import Encryption
from discreet.server.pgwire.errors import WireError, error_fields
from discreet.server.pgwire.hub import Hub
from discreet.server.pgwire.messages import (
    CancelRequest,
    EncryptionRequest,
    Message,
    SaslData,
    SaslStart,
    StartupMessage,
    Terminate,
)
from discreet.server.pgwire.protocol import MAX_MESSAGE, ProtocolViolation, ServerProtocol, State
from discreet.server.pgwire.replies import Outgoing
from discreet.server.pgwire.scram import MECHANISM, ScramError, ScramExchange, final_message
from discreet.server.pgwire.session import Session
from discreet.server.pgwire.settings import DEFAULTS, SessionSettings

_SECRET_BYTES = 4  # of version 3.0 of the protocol
_SILENT_PARAMETERS = frozenset({"user", "database", "options", "replication"})
_CANCELLED = (
    "canceling statement due to user request. If it was charged, its answer is stored, and asking again is free."
)
_TIMED_OUT = _CANCELLED.replace("user request", "statement timeout")
_LOST = "the connection was lost"


class PgConnection(asyncio.Protocol):
    """A connection of a client; the hub says who may connect, and knows the others, which may be cancelled."""

    def __init__(self, hub: Hub, process: int) -> None:
        self._hub, self.process = hub, process
        self.secret = secrets.token_bytes(_SECRET_BYTES)
        self._protocol = ServerProtocol()
        self._transport: asyncio.Transport | None = None
        self._arrived, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self._is_lost = False
        self._encryption: Encryption | None = None
        self._scope: asyncio.Timeout | None = None  # around the message that is being handled
        self._cause = _TIMED_OUT
        self._task: asyncio.Task[None] | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._is_stopping = False
        self._verifier: ScramVerifier | None = None  # of the token that the client has

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve a new connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=1 << 16)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        """Take bytes; a client that sends faster than it is answered has to wait."""
        assert self._transport is not None
        if self._encryption is not None:
            try:
                data = self._encryption.receive(data)
            except ssl.SSLError:
                self._transport.abort()
                return
            self._transport.write(self._encryption.encrypt(b""))
        self._protocol.receive(data)
        if self._protocol.buffered > 2 * MAX_MESSAGE:
            self._transport.pause_reading()
        self._arrived.set()

    def eof_received(self) -> bool:
        """Note that nothing more will come."""
        self._lose()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the client is gone; a question that waits for its turn is not asked."""
        del exc
        self._lose()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._writable.set()

    def _lose(self) -> None:
        self._is_lost = True
        self._arrived.set()
        self._writable.set()
        self._interrupt(_LOST)

    # What others call.

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call this when the connection has ended."""
        self._callbacks.append(callback)

    def shut_down(self) -> "asyncio.Task[None] | None":
        """End the connection, and tell the client why; return the task that serves it until then."""
        if self._task is not None and not self._task.done():
            self._is_stopping = True
            self._task.cancel()
        return self._task

    def cancel(self, secret: bytes) -> None:
        """Cancel what is being done, if the secret is right."""
        if secrets.compare_digest(secret, self.secret):
            self._interrupt(_CANCELLED)

    def _interrupt(self, cause: str) -> None:
        if self._scope is not None and not self._scope.expired():
            self._cause = cause
            self._scope.reschedule(asyncio.get_running_loop().time())

    # The connection from its beginning to its end.

    async def _run(self) -> None:
        try:
            self._hub.enter(self)
            session = await self._start()
            if session is not None:
                await self._serve(session)
        except ProtocolViolation as violation:
            await self._end(WireError("08P01", f"protocol violation: {violation}."))
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            await self._end(WireError("57P01", "terminating connection because the server is shutting down."))
        except (TimeoutError, ConnectionError):
            pass  # the client is gone, or too slow
        except Exception as error:  # noqa: BLE001 - one connection must not end the others; the owner's log has it
            await self._end(error)
        finally:
            self._hub.forget(self)
            if self._transport:
                self._transport.close()
            for callback in self._callbacks:
                callback()

    async def _end(self, error: Exception) -> None:
        """Send the error that ends the connection, if the client can still be told."""
        with contextlib.suppress(ProtocolViolation, TimeoutError, ConnectionError):
            fields = error_fields(error) if not isinstance(error, ScramError) else {"C": "08P01", "M": f"{error}."}
            await self._send(replies.error(fields, is_fatal=True))

    async def _start(self) -> Session | None:
        """Return a session after authentication; None if there is nothing to do."""
        async with asyncio.timeout(self._hub.limits.startup):
            while True:
                match await self._next():
                    case EncryptionRequest(is_tls):
                        await self._encrypt(is_tls=is_tls)
                    case CancelRequest(process, secret):
                        self._hub.cancel(process, secret)
                        return None
                    case StartupMessage() as startup:
                        return await self._greet(startup)
                    case _:
                        return None

    async def _encrypt(self, *, is_tls: bool) -> None:
        context = self._hub.tls
        if not is_tls or context is None or self._encryption is not None:
            await self._send(replies.TLS_REFUSED)
            return
        if self._protocol.buffered:
            raise ProtocolViolation("data came before encryption began")  # somebody may have put it there
        await self._send(replies.TLS_ACCEPTED)
        if self._protocol.buffered:
            raise ProtocolViolation("data came before encryption began")
        self._encryption = Encryption(context)

    async def _greet(self, startup: StartupMessage) -> Session:
        """Authenticate, and tell the client about the session."""
        if self._hub.tls is not None and self._encryption is None and not self._hub.is_local:
            raise WireError("28000", "connections without encryption are not accepted here. Use sslmode=require.")
        unknown = [name for name in startup.parameters if name.startswith("_pq_.")]
        if startup.minor or unknown:
            await self._send(replies.negotiate(0, unknown))
        if "replication" in startup.parameters and startup.parameters["replication"].lower() not in (
            "false",
            "off",
            "0",
        ):
            raise WireError("0A000", "replication is not supported.")
        person = await self._authenticate(startup.parameters.get("user", ""))
        self._hub.admit(self, person)
        settings = self._settings(startup.parameters, person)
        session = Session(self._hub.runner, person, self.process, settings)
        await self._send(replies.AUTHENTICATED)
        for name, value in settings.reported().items():
            await self._send(replies.parameter(name, value))
        await self._send(replies.key(self.process, self.secret))
        await self._send(replies.ready("I"))
        return session

    async def _authenticate(self, name: str) -> Person:
        service = self._hub.runner.service
        await self._send(replies.sasl(MECHANISM))
        start = await self._next()
        if not isinstance(start, SaslStart):
            raise ConnectionResetError  # the client is gone
        if start.mechanism != MECHANISM:
            raise WireError("28000", f"the only mechanism of authentication is {MECHANISM}.")
        self._verifier = verifier = service.scram_verifier(name)
        exchange = ScramExchange(verifier.salt, verifier.iterations)
        await self._send(replies.sasl_continue(exchange.challenge(start.data)))
        last = await self._next()
        if not isinstance(last, SaslData):
            raise ConnectionResetError
        proof = exchange.read_proof(last.data)
        person = service.people.person_for_proof(name, proof.message, proof.proof, self._address())
        log_event("login", interface="pg", name=name, address=self._address())
        await self._send(replies.sasl_final(final_message(verifier.server_signature(proof.message))))
        return person

    def _settings(self, parameters: Mapping[str, str], person: Person) -> SessionSettings:
        """Return the settings that the first message asks for; those that are not known are ignored."""
        policy = self._hub.runner.service.policy
        analyst = policy.budget_entry.analysts.get(person.by)
        settings = SessionSettings(policy.budget, default_epsilon=analyst.each if analyst else None)
        settings = settings.with_user(person.name)
        database = parameters.get("database") or person.name
        if database.lower() not in {policy.data.name.lower(), person.name.lower(), "postgres", "discreet"}:
            raise WireError("3D000", f'database "{database[:60]}" does not exist. Its name is "{policy.data.name}".')
        asked = {name: value for name, value in parameters.items() if name not in _SILENT_PARAMETERS}
        asked |= _options(parameters.get("options", ""))
        for name, value in asked.items():
            is_ours = name.lower() not in DEFAULTS
            try:
                settings = settings.with_value(name, value)
            except Refused:
                if is_ours and not name.startswith("_pq_."):
                    raise
        return settings.as_initial()

    async def _serve(self, session: Session) -> None:
        while True:
            message = await self._next()
            if message is None or isinstance(message, Terminate):
                return
            if self._hub.runner.service.scram_verifier(session.person.name) != self._verifier:
                raise AccessDenied  # the token was revoked, replaced, or has expired
            await self._handle(session, message)
            if self._protocol.state in (State.SIMPLE, State.SYNCING):
                await self._send(replies.ready(session.status))

    async def _handle(self, session: Session, message: Message) -> None:
        """Send the replies to one message; what goes wrong is one of them."""
        error: Exception | None = None
        self._cause = _TIMED_OUT
        try:
            async with (
                asyncio.timeout(session.settings.timeout_seconds) as self._scope,
                contextlib.aclosing(session.replies(message)) as handled,
            ):
                async for reply in handled:
                    await self._send(reply)
        except TimeoutError:
            if self._cause is _LOST:
                raise
            error = WireError("57014", self._cause)
        except (ProtocolViolation, ConnectionError):
            raise
        except Exception as problem:  # noqa: BLE001 - every one is answered, and what must not be said is only logged
            error = problem
        finally:
            self._scope = None
        if error is not None:
            await self._send(session.failure(error))

    async def _next(self) -> Message | None:
        """Return the next message; None if the client is gone."""
        while (message := self._protocol.next_message()) is None:
            if self._is_lost:
                return None
            self._arrived.clear()
            if self._transport and not self._transport.is_reading():
                self._transport.resume_reading()
            await self._arrived.wait()
        return message

    async def _send(self, reply: Outgoing) -> None:
        """Write a reply, and wait while the client does not read."""
        if self._is_lost or self._transport is None or self._transport.is_closing():
            raise ConnectionResetError
        data = self._protocol.send(reply)
        self._transport.write(data if self._encryption is None else self._encryption.encrypt(data))
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(self._hub.limits.reading):
                    await self._writable.wait()
            except TimeoutError:
                self._transport.abort()
                raise ConnectionResetError from None

    def _address(self) -> str:
        peer = self._transport.get_extra_info("peername") if self._transport else None
        return str(peer[0]) if isinstance(peer, tuple) else "local"


def _options(text: str) -> dict[str, str]:
    """Return the settings in `-c name=value` and `--name=value`.

    >>> _options("-c epsilon=0.1 --work_mem=4MB -cgeqo=off")
    {'epsilon': '0.1', 'work_mem': '4MB', 'geqo': 'off'}
    """
    words, found = iter(text.replace("\\ ", "\0").split()), {}
    for word in words:
        setting = next(words, "") if word == "-c" else word.removeprefix("--").removeprefix("-c")
        name, equals, value = setting.partition("=")
        if equals:
            found[name.replace("-", "_")] = value.replace("\0", " ")
    return found
