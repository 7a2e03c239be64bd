"""discreet ask, explain, budget: questions from the command line."""

import json
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

from discreet.answer import Answer
from discreet.answer_text import paid
from discreet.cli.numbers import number, number_below
from discreet.cli.owner_log import Log, logging_for
from discreet.cli.stops import stopping, wrong
from discreet.curator import Curator, Remaining
from discreet.kernel.errors import Refused
from discreet.kernel.event import OWNER
from discreet.kernel.exact import positive
from discreet.kernel.loss import Budget, Loss
from discreet.opening import open_curator
from discreet.policy import Policy as Declared
from discreet.sql.text import parse

_OPTIONS = ("epsilon", "rho", "margin", "by", "key", "groups", "rows")


class Format(StrEnum):
    """How an answer is written; all but the table have a column n_margin after each noisy column n."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Policy = Annotated[Path, typer.Argument(help="The policy file.")]
Sql = Annotated[str, typer.Argument(help="The SQL query; - reads it from standard input.")]
By = Annotated[str, typer.Option(help="Who asks: a label, not a login.")]
Epsilon = Annotated[str | None, typer.Option(help="The privacy cost of the answer, such as 1/10.")]
Rho = Annotated[str | None, typer.Option(help="The cost in rho, for a budget with a delta.")]
Margin = Annotated[
    list[str] | None,
    typer.Option(help="Largest margin of error, instead of a cost: 50, or n=50 for a column; repeatable."),
]
Form = Annotated[
    str,
    typer.Option(help="Output format.", metavar="|".join(Format), autocompletion=lambda: list(Format)),
]
Groups = Annotated[int | None, typer.Option(help="Most groups that one unit contributes to.", min=1)]
Rows = Annotated[int | None, typer.Option(help="Most rows that one unit contributes to a group.", min=1)]


def ask(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Policy,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    margin: Margin = None,
    by: By = OWNER,
    key: Annotated[str | None, typer.Option(help="The same key gives the same answer and is charged once.")] = None,
    groups: Groups = None,
    rows: Rows = None,
    format: Form = Format.TABLE,  # noqa: A002
    log: Log = None,
) -> None:
    """Run a query at a privacy cost, and print the private answer with its margins of error."""
    form, text, offer = _form(format), _text(sql), _offer(epsilon, rho, margin)
    with _opened(policy, offer, log) as curator:
        if _is_to_be_explained(text):
            typer.echo(repr(curator.explain(text, by=by, groups=groups, rows=rows, **offer)))
        else:
            _write(curator.ask(text, by=by, key=key, groups=groups, rows=rows, **offer), form)


def explain(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Policy,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    margin: Margin = None,
    by: By = OWNER,
    groups: Groups = None,
    rows: Rows = None,
    log: Log = None,
) -> None:
    """Show what a query would cost and how accurate its answer would be; free, and no private data is read."""
    offer = _offer(epsilon, rho, margin)
    with _opened(policy, offer, log) as curator:
        typer.echo(repr(curator.explain(_text(sql), by=by, groups=groups, rows=rows, **offer)))


def _form(word: str) -> Format:
    if word not in set(Format):
        wrong(f"--format: {word!r} is none of them. Write {', '.join(Format)}.")
    return Format(word)


def _is_to_be_explained(text: str) -> bool:
    try:
        return parse(text).explain
    except Refused:
        return False  # asking tells why


def _offer(epsilon: str | None, rho: str | None, margin: list[str] | None) -> dict[str, Any]:
    """Read what the answer may cost or how exact it must be; whatever is wrong with that is wrong usage."""
    given = {"epsilon": epsilon, "rho": rho, "margin": margin or None}
    offer: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if len(offer) > 1:
        wrong(f"--{', --'.join(offer)}: give one of them.")
    try:
        for name in set(offer) - {"margin"}:
            positive(offer[name], f"--{name}")
        if margin:
            offer["margin"] = _margins(margin)
    except ValueError as error:
        wrong(f"{error}.")
    return offer


def _margins(texts: list[str]) -> Fraction | dict[str, Fraction]:
    pairs = [text.rpartition("=") for text in texts]
    found = {name: positive(number, "--margin") for name, _, number in pairs}
    if len(found) != len(pairs) or ("" in found and len(found) > 1):
        raise ValueError("--margin: give one number, or one for each of some columns, such as n=50")
    return found.get("", found)


def budget(policy: Policy, log: Log = None) -> None:
    """Show the total, spent and remaining budget of the data set and of each analyst."""
    from rich.console import Console  # noqa: PLC0415 - no other command here needs it
    from rich.table import Table  # noqa: PLC0415

    with _opened(policy, {}, log) as curator:
        table = Table("who", "total", "spent", "left", "one more question")
        for who in (None, *curator.policy.spending.analysts):
            total, spent, left = curator.budget(who)
            rest = _loss(left, total, number_below)
            fits = f"epsilon {number_below(left.epsilon)}"
            table.add_row(who or "in all", _total(total), _loss(spent, total, number), rest, fits)
        Console().print(table)


@contextmanager
def _opened(file: Path, offer: dict[str, Any], log: Path | None) -> Iterator[Curator]:
    with stopping(), logging_for(policy := Declared.load(file), log), open_curator(policy) as curator:
        try:
            yield curator
        except Refused as refusal:
            text = _spelled(str(refusal))
            if not offer and text.startswith("--epsilon:"):  # nobody named a price: that is wrong usage
                wrong(text)
            raise Refused(text) from None


def _spelled(refusal: str) -> str:
    """Write a refusal that names an argument as the command line does."""
    return re.sub(rf"^({'|'.join(_OPTIONS)}):", r"--\1:", refusal).replace('epsilon="1/10"', "--epsilon 1/10")


def _text(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql


def _write(answer: Answer, form: Format) -> None:
    table = answer.with_margins()
    if form is not Format.TABLE:
        typer.echo("\n".join(paid(answer)), err=True)
    match form:
        case Format.TABLE:
            typer.echo(repr(answer))
        case Format.CSV:
            import_module("pyarrow.csv").write_csv(table, sys.stdout.buffer)
        case Format.JSON:
            typer.echo(json.dumps(table.to_pylist(), default=str, ensure_ascii=False))
        case Format.PARQUET:
            import_module("pyarrow.parquet").write_table(table, sys.stdout.buffer)


def _total(budget: Budget) -> str:
    return f"epsilon {number(budget.epsilon)}" + (f", delta {float(budget.delta):g}" if budget.delta else "")


def _loss(loss: Loss | Remaining, budget: Budget, written: Callable[[Fraction], str]) -> str:
    if budget.rho is None:
        return "-" if loss.epsilon is None else f"epsilon {written(loss.epsilon)}"
    share = loss.rho / budget.rho
    return f"{float(share):.2%} of rho" + (f", delta {float(loss.delta):.3g}" if loss.delta else "")
