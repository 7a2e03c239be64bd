"""discreet attack: run an attack with no defence, with a simple fix, and with the curator."""

import os
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from discreet.attacks.attack import Attack
from discreet.attacks.comparison import Comparison, compare
from discreet.attacks.html_report import ReportSection, write_report
from discreet.attacks.registry import ATTACKS
from discreet.cli.terminal import (
    HTML_SUFFIXES,
    check_output_path,
    exit_on_error,
    needing_extra,
    parse_assignment,
    positive_number,
    replace_unprintable,
    text_table,
    usage_error,
    writing,
)

_LIST, _ALL = "list", "all"
_DATA_VARIABLE = "DISCREET_DATA"


def attack(  # noqa: PLR0913, PLR0917 - options of a command
    name: Annotated[str, typer.Argument(help="The name of an attack, `all`, or `list` to list them.")] = "",
    data: Annotated[
        Path | None,
        typer.Option(
            help=f"The folder of the attack's real data (default: ${_DATA_VARIABLE}, or else simulated data)."
        ),
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(help="The epsilon of the curator (default: 0.1 and 1); repeatable.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the attack, such as model=tree; repeatable.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the attack; privacy noise has no seed.", min=0)
    ] = None,
    details: Annotated[bool, typer.Option("--details", metavar="", help="Show details for every defence.")] = False,
    html: Annotated[Path | None, typer.Option(help="The HTML file to write the report to.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite existing files.")] = False,
) -> None:
    """Run an attack on personal data with no defence, with a simple fix, and with the curator."""
    if not name:
        usage_error("name an attack, or `all`. List all attacks with: discreet attack list")
    if name == _LIST:
        _print_list()
        return
    if name != _ALL and name not in ATTACKS:
        usage_error(f"attack {name!r} does not exist. {_suggestion(name)}List all attacks with: discreet attack list")
    if settings and name == _ALL:
        usage_error("--set cannot be combined with `all`. Name one attack.")
    epsilons = [positive_number(text, "--epsilon") for text in epsilon or ("0.1", "1")]
    check_output_path(html, "--html", endings=HTML_SUFFIXES, force=force)
    sections = []
    with exit_on_error(), needing_extra("attacks", "attacks"):
        for attack_name in ATTACKS if name == _ALL else [name]:
            entry = _apply_settings(ATTACKS[attack_name], settings or ())
            sections.append(_run_attack(entry, data, epsilons, seed))
            _print_section(sections[-1], all_details=details)
        if html is not None:
            with writing("--html", html):
                path = write_report(sections, html)
            _console().print(f"Report: {path}", soft_wrap=True)


def _run_attack(entry: Attack, folder: Path | None, epsilons: list[Any], seed: int | None) -> ReportSection:
    data, data_description = _load_data(entry, folder)
    try:
        return ReportSection(
            entry, data_description, compare(entry.with_settings(), epsilons=epsilons, data=data, random_state=seed)
        )
    except (TypeError, ValueError) as error:
        usage_error(f"{entry.name}: {error}")


def _apply_settings(entry: Attack, settings: Sequence[str]) -> Attack:
    """Return the attack with the given settings, which are parsed by the types of their defaults."""
    defaults = {
        name: parameter.default
        for name, parameter in signature(entry.function).parameters.items()
        if name not in {"data", "defence", "epsilon", "random_state"}
    }
    values = {}
    for text in settings:
        name, value = parse_assignment(text, "--set")
        default = defaults.get(name)
        if name not in defaults:
            available = ", ".join(f"{setting}={default}" for setting, default in defaults.items()) or "none"
            usage_error(f"--set: {entry.name} has no setting {text!r}. Its settings and defaults: {available}")
        if isinstance(default, str):
            value = text.partition("=")[2]
        elif isinstance(default, int | float) and not isinstance(value, int | type(default)):
            usage_error(f"--set: expected a number such as {default}, not {value!r}")
        values[name] = value
    if not values:
        return entry
    summary = f"{entry.summary} With {', '.join(settings)}."
    return replace(entry, comparison={**entry.comparison, **values}, summary=summary)


def _suggestion(name: str) -> str:
    close = get_close_matches(name.replace("-", "_"), ATTACKS, 1)
    return f"Did you mean {close[0]}? " if close else ""


def _load_data(entry: Attack, folder: Path | None) -> tuple[Any, str]:
    """Load the real data from the given or the default folder; without a folder, use the built-in data."""
    if entry.data.read is None:
        if folder is not None:
            typer.echo(f"discreet: {entry.name} only has built-in data; --data is ignored.", err=True)
        return None, entry.data.built_in
    data_folder = folder or (Path(os.environ[_DATA_VARIABLE]) if os.environ.get(_DATA_VARIABLE) else None)
    if data_folder is None:
        return None, entry.data.built_in
    missing = [file for file in entry.data.files if not (data_folder / file).exists()]
    if not missing:
        try:
            return entry.data.read(data_folder), f"real: {', '.join(entry.data.files)}"
        except (OSError, pa.ArrowException, ValueError) as error:
            usage_error(f"--data: cannot read {', '.join(entry.data.files)} in {data_folder} ({error})")
    if folder is not None:
        usage_error(
            f"--data: {missing[0]} does not exist in {data_folder}. Give the folder that contains it, or omit --data. "
            "To attack your own tables, use Python: see docs/attacks.md."
        )
    return None, entry.data.built_in


def _print_list() -> None:
    columns = (
        Column("attack", no_wrap=True),
        Column("description", overflow="fold"),
        Column("real data", overflow="fold"),
    )
    with needing_extra("attacks", "attacks"):
        rows = [(name, entry.summary, "yes" if entry.data.files else "") for name, entry in ATTACKS.items()]
    _console().print(text_table(columns, rows, box=box.SIMPLE_HEAD, padding=(0, 1)))
    _console().print("Run one with: discreet attack NAME [--epsilon 1] [--data FOLDER] [--html report.html]")


def _print_section(section: ReportSection, *, all_details: bool) -> None:
    console, results = _console(), section.comparison.results
    console.print(Text(f"\n{results[0].attack}", style="bold"))
    console.print(Text(f"{section.attack.summary} Data: {section.data_description}."))
    for kind, release in section.attack.releases.items():
        console.print(Text(f"  {kind}: {release.description}"))
    console.print(Text(f"Success: the share {results[0].metric}."))
    console.print(_comparison_table(section.comparison))
    if section.comparison.note:
        console.print(Text(section.comparison.note))
    for result in results if all_details else results[:1]:
        console.print(Text(f"Against {result.against}:"))
        for name, value in result.detail_rows():
            console.print(Text(f"  {name}: {value}"))


def _comparison_table(comparison: Comparison) -> Table:
    columns = (Column(header, no_wrap=index < 4) for index, header in enumerate(comparison.headers()))
    return text_table(columns, comparison.rows(), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _console() -> Console:
    replace_unprintable()
    return Console(highlight=False)
