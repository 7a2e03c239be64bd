"""discreet attack: run an attack against nothing, the easy fix and the curator."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.attacks.comparing import HEADERS, Comparison, compare
from discreet.attacks.laboratory import MODULES, attack_named
from discreet.attacks.listing import Attack
from discreet.attacks.page import Chapter, write_page
from discreet.cli.stops import stopping, wrong
from discreet.kernel.exact import fraction

_LIST, _ALL = "list", "all"
_FOLDER = "DISCREET_DATA"
_NEEDED = "discreet: attacks need more than the core. Install it with: pip install 'discreet[attacks]'"


def attack(
    name: Annotated[str, typer.Argument(help="An attack, or `list` to see them, or `all`.")],
    data: Annotated[
        Path | None,
        typer.Option(help=f"The folder of the attack's real data; ${_FOLDER} unless you say. Else made-up data."),
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(help="What the curator may spend; repeatable. 0.1 and 1 unless you say.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat the attack's own chances; noise is never repeated.")] = None,
    html: Annotated[Path | None, typer.Option(help="Where to write the report as a page.")] = None,
) -> None:
    """Attack people's data as an outsider would: without a defence, with the easy fix, and with the curator."""
    if name == _LIST:
        _show_list()
        return
    if name != _ALL and name not in MODULES:
        wrong(f"there is no attack {name!r}. See them with: discreet attack list")
    prices = [_price(text) for text in epsilon or ("0.1", "1")]
    _check_place(html)
    chapters = []
    with stopping(), _extras():
        for each in MODULES if name == _ALL else [name]:
            chapters.append(_run(attack_named(each), data, prices, seed))
            _show(chapters[-1])
        if html is not None:
            _console().print(f"Report: {write_page(chapters, html)}", soft_wrap=True)


def _run(found: Attack, folder: Path | None, prices: list[Any], seed: int | None) -> Chapter:
    loaded, said = _data(found, folder)
    return Chapter(found, said, compare(found.run, epsilons=prices, data=loaded, random_state=seed))


def _data(found: Attack, folder: Path | None) -> tuple[Any, str]:
    """Load the real data that were named; else those that happen to be there; else the attack's own."""
    if found.load is None:
        if folder is not None:
            typer.echo(f"discreet: {found.name} has no other data than its own; --data is not used.", err=True)
        return None, found.built_in
    there = folder or (Path(os.environ[_FOLDER]) if os.environ.get(_FOLDER) else None)
    if there is None:
        return None, found.built_in
    missing = [file for file in found.files if not (there / file).exists()]
    if not missing:
        return found.load(there), f"real: {', '.join(found.files)}"
    if folder is not None:
        wrong(f"--data: {there} has no {missing[0]}. Name the folder that has it, or leave --data out.")
    return None, found.built_in


def _show_list() -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("attack", "what it does", "real data"):
        table.add_column(header, overflow="fold", no_wrap=header == "attack")
    with _extras():
        for name in MODULES:
            found = attack_named(name)
            table.add_row(*map(Text, (name, found.says, ", ".join(found.files))))
    _console().print(table)
    _console().print("Run one with: discreet attack NAME [--epsilon 1] [--data FOLDER] [--html report.html]")


def _show(chapter: Chapter) -> None:
    console, first = _console(), chapter.comparison.results[0]
    console.print(Text(f"\n{first.attack}", style="bold"))
    console.print(Text(f"{chapter.attack.says} Data: {chapter.data}."))
    for title, released in (("nothing", chapter.attack.nothing), ("easy", chapter.attack.easy)):
        console.print(Text(f"  {title}: {released}"))
    console.print(Text(f"  curator: {chapter.attack.curator}"))
    console.print(Text(f"Success: what share {first.metric}."))
    console.print(_table(chapter.comparison))
    console.print(Text("Without a defence:"))
    for name, value in first.lines()[3:]:
        console.print(Text(f"  {name}: {value}"))


def _table(comparison: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in HEADERS:
        table.add_column(header, no_wrap=header == HEADERS[0])
    for row in comparison.rows():
        table.add_row(*map(Text, row))
    return table


def _price(text: str) -> Any:
    try:
        price = fraction(text, "--epsilon")
    except (TypeError, ValueError) as error:
        wrong(str(error))
    if price <= 0:
        wrong(f"--epsilon must be above 0, not {text}")
    return price


def _check_place(html: Path | None) -> None:
    """See before the work whether the report has a place."""
    if html is not None and not html.resolve().parent.is_dir():
        wrong(f"--html: there is no folder {html.resolve().parent}. Make it, or name another.")


def _console() -> Console:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows ASCII only gets question marks, not an end
    return Console(highlight=False)


@contextmanager
def _extras() -> Iterator[None]:
    """Say which extra is missing, instead of a traceback."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"scipy", "sklearn", "matplotlib", "pandas"}:
            raise
        typer.echo(_NEEDED, err=True)
        raise typer.Exit(2) from None
