"""discreet serve, mcp: serve analysts over HTTP and other interfaces, or an AI agent on standard input and output."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.terminal import (
    By,
    LogOption,
    OwnerOnlyFileHandler,
    PolicyFile,
    exit_on_error,
    log_for_owner,
    needing_extra,
    positive_number,
    usage_error,
)
from discreet.curator.data_stamp import path_beside_ledger
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.policy import Policy

_MAX_LOG_BYTES = 10_000_000  # nine older files of this size are kept


def serve(  # noqa: PLR0913, PLR0917 - options of a command
    policy: PolicyFile,
    http: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where HTTP listens: PORT or HOST:PORT; none for not at all.")
    ] = "127.0.0.1:8080",
    pg: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where the PostgreSQL protocol listens, such as 127.0.0.1:5433.")
    ] = "none",
    tls_cert: Annotated[Path | None, typer.Option(help="The certificate, with its chain, as a PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The private key of the certificate, as a PEM file.")] = None,
    log: LogOption = None,
) -> None:
    """Serve analysts over HTTP and the PostgreSQL protocol, within their limits.

    People and their tokens: discreet analyst. Addresses that other machines
    can reach need a certificate. SIGTERM and Ctrl-C stop the server after
    the question that is being answered.
    """
    if (tls_cert is None) != (tls_key is None):
        usage_error("--tls-cert, --tls-key: give both or neither.")
    with exit_on_error():
        with needing_extra("servers", "server"):
            from discreet.server.pages.start import start_page_in_preparation  # noqa: PLC0415 - an extra
            from discreet.server.run import ServeSettings, run  # noqa: PLC0415 - an extra
        from discreet.server.service import Service  # noqa: PLC0415 - as above
        from discreet.server.tls import ListenAddress, TlsFiles  # noqa: PLC0415 - as above

        texts = {"http": http, "pg": pg}
        addresses = {name: ListenAddress.parse(text, f"--{name}") for name, text in texts.items() if text != "none"}
        if not addresses:
            usage_error("--http, --pg: both are none, so that nothing would listen.")
        tls = TlsFiles(tls_cert, tls_key) if tls_cert and tls_key else None
        settings = ServeSettings(addresses, tls)
        settings.check()
        declared = Policy.load(policy)
        preparation = start_page_in_preparation() if "http" in addresses else nullcontext()
        with log_for_owner(declared, log), _event_log(declared), Service.open(declared) as service, preparation:
            asyncio.run(run(service, settings, lambda shown: _announce(declared, shown)))


def _announce(policy: Policy, addresses: list[str]) -> None:
    typer.echo(f"Serving {policy.data.name} at {', '.join(addresses)}. Stop with Ctrl-C.", err=True)


@contextmanager
def _event_log(policy: Policy) -> Iterator[None]:
    """Log what the server does, in JSON lines beside the ledger."""
    from discreet.server.event_log import LOGGER, JsonLine  # noqa: PLC0415 - as above

    path = path_beside_ledger(policy, ".server.log")
    handler = OwnerOnlyFileHandler(path, maxBytes=_MAX_LOG_BYTES, backupCount=9, delay=True)
    handler.setFormatter(JsonLine())
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        handler.close()


def mcp(
    policy: PolicyFile,
    by: By = OWNER,
    cap: Annotated[
        str | None, typer.Option(help="The largest epsilon that the agent may spend, besides the budget.")
    ] = None,
    log: LogOption = None,
) -> None:
    """Let an AI agent ask over the Model Context Protocol, on standard input and output."""
    if find_spec("mcp") is None:
        usage_error("mcp: the package mcp is not installed. Run: pip install 'discreet[mcp]'.")
    limit = None if cap is None else positive_number(cap, "--cap")
    with exit_on_error(), log_for_owner(declared := Policy.load(policy), log):
        if by != OWNER and by not in declared.budget_entry.analysts:
            usage_error(f"--by: {by!r} is not listed under [budget.analysts] in the policy.")
        budget = None if limit is None else Budget(limit, declared.budget.delta)
        _serve(declared, by, budget)


def _serve(policy: Policy, by: str, cap: Budget | None) -> None:
    """Serve until standard input ends."""
    agents: Any = import_module("discreet.server.agents.stdio")  # an extra
    agents.serve_on_stdio(policy, by, cap)
