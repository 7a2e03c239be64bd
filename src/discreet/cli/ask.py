"""discreet ask, explain, budget: questions from the command line."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console
from rich.table import Table

from discreet.answer import Answer
from discreet.cli.stops import stopping
from discreet.curator import Curator
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget, Loss
from discreet.opening import open_curator
from discreet.sql import largest_epsilon


class Format(StrEnum):
    """How an answer is written; all but the table have a column n_margin after each noisy column n."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Policy = Annotated[Path, typer.Argument(help="The policy file.")]
Sql = Annotated[str, typer.Argument(help="The question, in SQL; - reads it from standard input.")]
By = Annotated[str, typer.Option(help="Who asks: a label, not a login.")]
Epsilon = Annotated[str | None, typer.Option(help="What the answer may cost, such as 1/10.")]
Rho = Annotated[str | None, typer.Option(help="The same in rho, for a budget with a delta.")]
Groups = Annotated[int | None, typer.Option(help="How many groups a unit may weigh.")]
Rows = Annotated[int | None, typer.Option(help="How many rows a unit may weigh in each.")]


def ask(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Policy,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    by: By = OWNER,
    key: Annotated[str | None, typer.Option(help="The same key gives the same answer and is charged once.")] = None,
    groups: Groups = None,
    rows: Rows = None,
    format: Annotated[Format, typer.Option(help="How to write the answer.")] = Format.TABLE,  # noqa: A002
) -> None:
    """Ask a question, pay for it, and print the private answer with its margins."""
    with _opened(policy) as curator:
        answer = curator.ask(_text(sql), by=by, epsilon=epsilon, rho=rho, key=key, groups=groups, rows=rows)
        _write(answer, format)


def explain(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Policy,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    by: By = OWNER,
    groups: Groups = None,
    rows: Rows = None,
) -> None:
    """Say what a question would cost and how exact its answer would be: free, and without a look at private data."""
    with _opened(policy) as curator:
        said = curator.explain(_text(sql), by=by, epsilon=epsilon, rho=rho, groups=groups, rows=rows)
        typer.echo(repr(said))


def budget(policy: Policy) -> None:
    """Show what may be learned in all, what was, and what is left: for the data set and each analyst."""
    with _opened(policy) as curator:
        table = Table("who", "total", "spent", "left", "one more question")
        for who in (None, *curator.policy.spending.analysts):
            total, spent, left = curator.budget(who)
            fits = f"epsilon {float(largest_epsilon(curator.policy.budget, left)):g}"
            table.add_row(who or "in all", _total(total), _loss(spent, total), _loss(left, total), fits)
        Console().print(table)


@contextmanager
def _opened(policy: Path) -> Iterator[Curator]:
    with stopping(), open_curator(policy) as curator:
        yield curator


def _text(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql


def _write(answer: Answer, form: Format) -> None:
    table = answer.with_margins()
    match form:
        case Format.TABLE:
            typer.echo(repr(answer))
        case Format.CSV:
            pa.csv.write_csv(table, sys.stdout.buffer)
        case Format.JSON:
            typer.echo(json.dumps(table.to_pylist(), default=str, ensure_ascii=False))
        case Format.PARQUET:
            pa.parquet.write_table(table, sys.stdout.buffer)


def _total(budget: Budget) -> str:
    return f"epsilon {float(budget.epsilon):g}" + (f", delta {float(budget.delta):g}" if budget.delta else "")


def _loss(loss: Loss, budget: Budget) -> str:
    if budget.rho is None:
        return "-" if loss.epsilon is None else f"epsilon {loss.epsilon}"
    share = loss.rho / budget.rho
    return f"{float(share):.2%} of rho" + (f", delta {float(loss.delta):.3g}" if loss.delta else "")
