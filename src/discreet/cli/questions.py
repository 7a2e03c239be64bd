"""The chapter on asking: real questions to a town that is made up, each beside the truth that only the owner knows."""

import tempfile
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

import discreet as dc
from discreet.cli.town import PEOPLE, build

_console = Console(highlight=False)
_PRICE = "1/10"

_QUESTIONS: tuple[tuple[str, str, int | None], ...] = (
    ("How many have diabetes?", "SELECT COUNT(*) FROM people WHERE ill = 'diabetes'", None),
    ("Mean income in the Docks", "SELECT AVG(income) FROM people WHERE ward = 'Docks'", None),
    ("Spread of ages (STDDEV)", "SELECT STDDEV(age) FROM people", None),
    (
        "Visits to hospitals (a join)",
        "SELECT COUNT(*) FROM visits JOIN clinics USING (clinic) WHERE kind = 'hospital'",
        20,
    ),
    (
        "Five visits or more (per person)",
        "SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person HAVING COUNT(*) >= 5) AS often",
        None,
    ),
    (
        "Mean cost of a visit if ill",
        "SELECT AVG(CLIP(cost, 0, 400)) FROM visits WHERE person IN (SELECT person FROM people WHERE ill <> 'none')",
        None,
    ),
)
_BAD = "SELECT ward, AVG(income / age) FROM people GROUP BY ward"
_GOOD = "SELECT ward, AVG(CLIP(income / age, 0, 5000)) FROM people GROUP BY ward"


def ask_the_town() -> None:
    """Ask questions of the town, and show what an answer is, what it costs and what is refused."""
    with tempfile.TemporaryDirectory() as folder, dc.open(build(Path(folder))) as curator:
        _say(f"\n[bold cyan]A town of {PEOPLE:,} people, and questions at epsilon {_PRICE} each[/bold cyan]")
        _compare(curator, Path(folder))
        _by_ward(curator)
        _streets(curator)
        _refusal(curator)
        _account(curator)


def _say(text: str) -> None:
    _console.print(text)


def _truth(folder: Path, sql: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("people", "visits", "clinics"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")  # noqa: S608 - our own names
    return connection.execute(sql)


def _compare(curator: dc.Curator, folder: Path) -> None:
    table = Table("question", "truth", "answer", "± 95 %", "inside?")
    for words, sql, rows in _QUESTIONS:
        (truth,) = _truth(folder, sql.replace("CLIP(cost, 0, 400)", "cost")).fetchone() or (0,)
        answer = curator.ask(sql, epsilon=_PRICE, rows=rows)
        margin = answer.margin or 0.0
        inside = "[green]yes[/green]" if abs(answer.value - truth) <= margin else "[yellow]no[/yellow]"
        table.add_row(words, _short(truth), _short(answer.value), _short(margin), inside)
    _console.print(table)
    _say("   ± is about the noise. What a bound cuts off (here: beyond 20 visits a")
    _say("   resident, and costs above 400) is not in it.")


def _by_ward(curator: dc.Curator) -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(age) FROM people GROUP BY ward ORDER BY n LIMIT 3"
    _say(f"\n[bold cyan]An answer as it prints[/bold cyan]\n   {sql}\n")
    _console.print(repr(curator.ask(sql, epsilon=_PRICE)), markup=False)


def _streets(curator: dc.Curator) -> None:
    sql = "SELECT street, COUNT(DISTINCT person) AS people FROM visits GROUP BY street"
    answer = curator.ask(sql, epsilon=_PRICE)
    _say("\n[bold cyan]Streets are not declared, so they are discovered[/bold cyan]")
    _say(f"   {len(answer)} streets have enough visitors to be shown; one with a single visitor is not.")
    _console.print(f"   {answer.bounded[-1]}", markup=False)


def _refusal(curator: dc.Curator) -> None:
    _say(f"\n[bold cyan]A question that is refused, and costs nothing[/bold cyan]\n   {_BAD}")
    try:
        curator.ask(_BAD, epsilon=_PRICE)
    except dc.Refused as refusal:
        _console.print(f"   {refusal}", style="yellow", markup=False)
    _say(f"   {_GOOD}")
    ratios = curator.ask(_GOOD, epsilon=_PRICE)
    _say(f"   [green]answered[/green]: {len(ratios)} wards")


def _account(curator: dc.Curator) -> None:
    total, spent, _ = curator.budget()
    curator.ledger.verify()
    assert total.rho
    _say("\n[bold cyan]The account[/bold cyan]")
    asked, share = len(curator.ledger.events()), float(spent.rho / total.rho)
    _say(f"   {asked} questions, each charged before anything was read: {share:.2%} of the budget.")
    _say("   Every hash, total and answer in the ledger is as recorded.")


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:,.2f}"
