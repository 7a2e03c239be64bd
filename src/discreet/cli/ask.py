"""discreet ask, explain, budget: run queries, explain them, and show the budget."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.answer.model import Answer, Explanation
from discreet.answer.text import cost_sentence, missing_sentences
from discreet.cli.terminal import (
    By,
    LogOption,
    PolicyFile,
    exit_on_error,
    format_budget,
    format_fraction,
    format_rounded_down,
    log_for_owner,
    usage_error,
    with_option_name,
)
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.kernel.errors import Refused
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import as_positive
from discreet.policy import Policy as DeclaredPolicy
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing.allocation import CostMissing
from discreet.pricing.remaining_budget import RemainingBudget, remaining_budget
from discreet.query.syntax.parse import parse_query

_OPTIONS = {name: f"--{name}" for name in ("epsilon", "rho", "margin", "by", "key", "groups", "rows")}


class Format(StrEnum):
    """The output format of an answer; all but the table add a column n_margin after each noisy column n."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Sql = Annotated[str, typer.Argument(help="The SQL query; - reads it from standard input.")]
Epsilon = Annotated[str | None, typer.Option(help="The privacy cost of the answer, such as 0.1.")]
Rho = Annotated[str | None, typer.Option(help="The cost in rho, for a budget with a delta.")]
Margin = Annotated[
    list[str] | None,
    typer.Option(help="Maximum margin of error instead of a cost: 50, or n=50 for one column; repeatable."),
]
FormatOption = Annotated[
    str,
    typer.Option(help="Output format.", metavar="|".join(Format), autocompletion=lambda: list(Format)),
]
Groups = Annotated[str | None, typer.Option(help="Maximum number of groups per unit, or auto.", metavar="NUMBER|auto")]
Rows = Annotated[
    str | None, typer.Option(help="Maximum number of rows per unit and group, or auto.", metavar="NUMBER|auto")
]


def ask(  # noqa: PLR0913, PLR0917 - options of a command
    policy: PolicyFile,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    margin: Margin = None,
    by: By = OWNER,
    key: Annotated[
        str | None, typer.Option(help="A name for this release: repeating it returns the same answer at no charge.")
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="What the answer is for; it is recorded with the charge.")] = None,
    groups: Groups = None,
    rows: Rows = None,
    format: FormatOption = Format.TABLE,  # noqa: A002
    details: Annotated[
        bool, typer.Option("--details", metavar="", help="Also print the noise, the bounds and the notes.")
    ] = False,
    log: LogOption = None,
) -> None:
    """Run a query at a privacy cost, and print the private answer with its margins of error."""
    output_format, query, cost_arguments = _parse_format(format), _read_sql(sql), _cost_arguments(epsilon, rho, margin)
    bounds = _bound_arguments(groups, rows)
    with _open_policy(policy, log) as curator:
        if _is_explain_statement(query):
            _print_explanation(curator.explain(query, by=by, **bounds, **cost_arguments), details=details)
        else:
            answer = curator.ask(query, by=by, key=key, purpose=purpose, **bounds, **cost_arguments)
            _print_answer(answer, output_format)
            if details:
                typer.echo(answer.details(), err=output_format is not Format.TABLE)


def explain(  # noqa: PLR0913, PLR0917 - options of a command
    policy: PolicyFile,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    margin: Margin = None,
    by: By = OWNER,
    groups: Groups = None,
    rows: Rows = None,
    details: Annotated[
        bool, typer.Option("--details", metavar="", help="Also print the SQL that the engine would run.")
    ] = False,
    log: LogOption = None,
) -> None:
    """Show what a query would cost and how accurate its answer would be; free, and no private data is read."""
    cost_arguments, bounds = _cost_arguments(epsilon, rho, margin), _bound_arguments(groups, rows)
    with _open_policy(policy, log) as curator:
        _print_explanation(curator.explain(_read_sql(sql), by=by, **bounds, **cost_arguments), details=details)


def _print_explanation(explanation: Explanation, *, details: bool) -> None:
    typer.echo(explanation.details() if details else repr(explanation))


def _bound_arguments(groups: str | None, rows: str | None) -> dict[str, Bound | None]:
    """Parse --groups and --rows."""
    return {name: _parse_bound(name, text) for name, text in (("groups", groups), ("rows", rows))}


def _parse_bound(name: str, text: str | None) -> Bound | None:
    if text is None or text == AUTO:
        return text
    if not text.isdecimal() or not int(text):
        usage_error(f"--{name}: {text!r} is not a positive integer. Write --{name} 5, or --{name} auto.")
    return int(text)


def _parse_format(word: str) -> Format:
    if word not in set(Format):
        usage_error(f"--format: {word!r} is not supported. Use one of {', '.join(Format)}.")
    return Format(word)


def _is_explain_statement(text: str) -> bool:
    try:
        return parse_query(text).explain
    except Refused:
        return False  # `ask` refuses it with the reason


def _cost_arguments(epsilon: str | None, rho: str | None, margin: list[str] | None) -> dict[str, Any]:
    """Parse the cost or the margin; an invalid one is a usage error."""
    arguments = {"epsilon": epsilon, "rho": rho, "margin": margin or None}
    cost_arguments: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    if len(cost_arguments) > 1:
        usage_error(f"--{', --'.join(cost_arguments)}: give only one of them.")
    try:
        for name in set(cost_arguments) - {"margin"}:
            as_positive(cost_arguments[name], f"--{name}")
        if margin:
            cost_arguments["margin"] = _parse_margins(margin)
    except ValueError as error:
        usage_error(f"{error}.")
    return cost_arguments


def _parse_margins(texts: list[str]) -> Fraction | dict[str, Fraction]:
    pairs = [text.rpartition("=") for text in texts]
    margins = {name: as_positive(number, "--margin") for name, _, number in pairs}
    if len(margins) != len(pairs) or ("" in margins and len(margins) > 1):
        raise ValueError("--margin: give one number, or one per column, such as n=50")
    return margins.get("", margins)


def budget(policy: PolicyFile, log: LogOption = None) -> None:
    """Show the total, spent and remaining budget, of each data set of a population and of each analyst."""
    from rich.console import Console  # noqa: PLC0415 - no other command here needs it
    from rich.table import Table  # noqa: PLC0415

    with _open_policy(policy, log) as curator:
        rows = {"everyone": curator.budget()}
        rows |= {f"in {name}": curator.budget(dataset=name) for name in curator.datasets}
        rows |= {who: curator.budget(who) for who in curator.policy.budget_entry.analysts}
        members = curator.ledger.terms.datasets or {}
        unlimited = {f"in {name}" for name, member in members.items() if member.limit is None}
        table = Table("whose" if members else "analyst", "total", "spent", "remaining", "largest query")
        for name, (total, spent, remaining) in rows.items():
            of_population = members and name == "everyone"  # for other data sets, too
            rest = remaining_budget(total, spent) if of_population else remaining
            table.add_row(
                name,
                "no limit of its own" if name in unlimited else format_budget(total),
                _format_loss(spent, total, format_fraction),
                _format_loss(rest, total, format_rounded_down),
                f"epsilon {format_rounded_down(remaining.epsilon)}",
            )
        if members:
            Console().print(f"Population {curator.policy.account}: one budget for all of its data sets.")
        Console().print(table)


@contextmanager
def _open_policy(file: Path, log: Path | None) -> Iterator[Curator]:
    with exit_on_error(), log_for_owner(policy := DeclaredPolicy.load(file), log), open_curator(policy) as curator:
        try:
            yield curator
        except CostMissing as refusal:
            usage_error(with_option_name(str(refusal), _OPTIONS).replace("margin=", "--margin "))
        except Refused as refusal:
            raise Refused(with_option_name(str(refusal), _OPTIONS)) from None


def _read_sql(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql


def _print_answer(answer: Answer, output_format: Format) -> None:
    table = answer.with_margins()
    if output_format is not Format.TABLE:
        typer.echo("\n".join([*missing_sentences(answer), cost_sentence(answer)]), err=True)
    match output_format:
        case Format.TABLE:
            text = repr(answer)
            typer.echo(_colour(text) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text)
        case Format.CSV:
            import_module("pyarrow.csv").write_csv(table, sys.stdout.buffer)
        case Format.JSON:
            rows_and_metadata = {"rows": table.to_pylist(), **answer.to_dict()}
            typer.echo(json.dumps(rows_and_metadata, default=str, ensure_ascii=False))
        case Format.PARQUET:
            import_module("pyarrow.parquet").write_table(table, sys.stdout.buffer)


def _colour(text: str) -> str:
    """Make column names bold, unreliable numbers yellow, margins and the lines below the table dim."""
    header, *lines = text.split("\n")
    end = lines.index("")
    table = [re.sub(r"(~\S+ ± \S+)|( ± \S+)", _colour_margin, line) for line in lines[:end]]
    return "\n".join([typer.style(header, bold=True), *table, *(typer.style(line, dim=True) for line in lines[end:])])


def _colour_margin(margin: re.Match[str]) -> str:
    return typer.style(margin[0], fg="yellow") if margin[1] else typer.style(margin[0], dim=True)


def _format_loss(loss: Loss | RemainingBudget, budget: Budget, format_number: Callable[[Fraction], str]) -> str:
    if budget.rho is None:
        return "-" if loss.epsilon is None else f"epsilon {format_number(loss.epsilon)}"
    share = loss.rho / budget.rho
    return f"{float(share):.2%} of rho" + (f", delta {float(loss.delta):.3g}" if loss.delta else "")
