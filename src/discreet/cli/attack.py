"""discreet attack: run an attack against nothing, the easy fix and the curator."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial, update_wrapper
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.attacks.comparing import Comparison, compare
from discreet.attacks.laboratory import MODULES, attack_named
from discreet.attacks.listing import Attack
from discreet.attacks.page import Chapter, write_page
from discreet.cli.files import check_place
from discreet.cli.stops import stopping, wrong
from discreet.kernel.exact import fraction

_LIST, _ALL = "list", "all"
_FOLDER = "DISCREET_DATA"
_NEEDED = "discreet: attacks need more than the core. Install it with: pip install 'discreet[attacks]'"


def attack(  # noqa: PLR0913, PLR0917 - options of a command
    name: Annotated[str, typer.Argument(help="An attack, or `list` to see them, or `all`.")],
    data: Annotated[
        Path | None,
        typer.Option(help=f"Folder of the attack's real data (default: ${_FOLDER}); without it, simulated data."),
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(help="Epsilon of the curator (default: 0.1 and 1); repeatable.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the attack, such as model=tree; repeatable.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the attack's own randomness; noise has no seed.", min=0)
    ] = None,
    details: Annotated[bool, typer.Option("--details", metavar="", help="Show the details of every defence.")] = False,
    html: Annotated[Path | None, typer.Option(help="Where to write the report as a page.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite what is there.")] = False,
) -> None:
    """Run an attack on personal data with no defence, with a simple fix, and with the curator."""
    if name == _LIST:
        _show_list()
        return
    if name != _ALL and name not in MODULES:
        wrong(f"there is no attack {name!r}. {_nearest(name)}See them with: discreet attack list")
    if settings and name == _ALL:
        wrong("--set is for one attack. Name it instead of `all`.")
    prices = [_price(text) for text in epsilon or ("0.1", "1")]
    check_place(html, "--html", force, endings=(".html", ".htm"))
    chapters = []
    with stopping(), _extras():
        for each in MODULES if name == _ALL else [name]:
            found = attack_named(each)
            chapters.append(_run(_with(found, settings or ()), data, prices, seed))
            _show(chapters[-1], every=details)
        if html is not None:
            _write(chapters, html)


def _write(chapters: Sequence[Chapter], html: Path) -> None:
    try:
        made = write_page(chapters, html)
    except OSError as error:
        wrong(f"--html: {html} cannot be written ({error.strerror}). Name another place.")
    _console().print(f"Report: {made}", soft_wrap=True)


def _run(found: Attack, folder: Path | None, prices: list[Any], seed: int | None) -> Chapter:
    loaded, said = _data(found, folder)
    try:
        return Chapter(found, said, compare(found.run, epsilons=prices, data=loaded, random_state=seed))
    except (TypeError, ValueError) as error:
        wrong(f"{found.name}: {error}")


def _with(found: Attack, settings: Sequence[str]) -> Attack:
    """Return the attack with settings of its own, which are read as their defaults are written."""
    own = {
        name: parameter.default
        for name, parameter in signature(found.run).parameters.items()
        if name not in {"data", "defence", "epsilon", "random_state"}
    }
    chosen = {}
    for text in settings:
        name, _, value = text.partition("=")
        if name not in own or not value:
            known = ", ".join(f"{each}={default}" for each, default in own.items()) or "none"
            wrong(f"--set: {found.name} has no setting {text!r}. Its settings, as they are unless you say: {known}")
        chosen[name] = _read(value, own[name])
    if not chosen:
        return found
    said = f"{found.says} With {', '.join(settings)}."
    return replace(found, run=update_wrapper(partial(found.run, **chosen), found.run), says=said)


def _read(text: str, default: Any) -> Any:
    """Read a setting as what its default is: a whole number, a number or a text; without one, as what it can be."""
    if isinstance(default, str):
        return text
    if default is None:
        return next(value for value in (_whole(text), _number(text), text) if value is not None)
    try:
        return int(text) if isinstance(default, int) else float(text)
    except ValueError:
        wrong(f"--set: {text!r} is no number such as {default}")


def _whole(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _nearest(name: str) -> str:
    close = get_close_matches(name.replace("-", "_"), MODULES, 1)
    return f"Did you mean {close[0]}? " if close else ""


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
        try:
            return found.load(there), f"real: {', '.join(found.files)}"
        except (OSError, pa.ArrowException, ValueError) as error:
            wrong(f"--data: {', '.join(found.files)} in {there} cannot be read ({error})")
    if folder is not None:
        wrong(
            f"--data: {there} has no {missing[0]}. Name the folder that has it, or leave --data out. "
            "Tables of your own are attacked from Python: docs/attacks.md, Data of your own."
        )
    return None, found.built_in


def _show_list() -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("attack", "what it does", "real data"):
        table.add_column(header, overflow="fold", no_wrap=header == "attack")
    with _extras():
        for name in MODULES:
            found = attack_named(name)
            table.add_row(*map(Text, (name, found.says, "yes" if found.files else "")))
    _console().print(table)
    _console().print("Run one with: discreet attack NAME [--epsilon 1] [--data FOLDER] [--html report.html]")


def _show(chapter: Chapter, *, every: bool) -> None:
    console, results = _console(), chapter.comparison.results
    console.print(Text(f"\n{results[0].attack}", style="bold"))
    console.print(Text(f"{chapter.attack.says} Data: {chapter.data}."))
    told = (("nothing", chapter.attack.nothing), ("easy", chapter.attack.easy), ("curator", chapter.attack.curator))
    for title, released in told:
        console.print(Text(f"  {title}: {released}"))
    console.print(Text(f"Success: what share {results[0].metric}."))
    console.print(_table(chapter.comparison))
    if chapter.comparison.note:
        console.print(Text(chapter.comparison.note))
    for result in results if every else results[:1]:
        console.print(Text(f"Against {result.shield}:"))
        for name, value in result.further():
            console.print(Text(f"  {name}: {value}"))


def _table(comparison: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, header in enumerate(comparison.headers()):
        table.add_column(header, no_wrap=place < 4)
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
