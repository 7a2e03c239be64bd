"""discreet mcp: the tools of an AI agent on standard input and output."""

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from discreet.cli.options import By, PolicyFile, positive_number
from discreet.cli.owner_log import LogOption, log_for_owner
from discreet.cli.terminal import exit_on_error, usage_error
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.policy import Policy


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
