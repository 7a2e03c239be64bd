"""discreet advise: private, charged help with contribution bounds, ranges and bins."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.advise.unfinished_policy import load_unfinished
from discreet.cli.terminal import (
    PLOT_SUFFIXES,
    LogOption,
    PolicyFile,
    check_output_path,
    exit_on_error,
    log_for_owner,
    positive_number,
    step_progress,
    usage_error,
    with_option_name,
)
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.kernel.errors import Refused

_OPTIONS = {name: f"--{name}" for name in ("epsilon", "table", "columns")}


def advise(  # noqa: PLR0913, PLR0917 - options of a command
    policy: PolicyFile,
    epsilon: Annotated[str, typer.Option(help="The privacy cost of all advice together, such as 0.2.")],
    table: Annotated[str | None, typer.Option(help="The private table (default: all).")] = None,
    by_columns: Annotated[
        list[str] | None,
        typer.Option(help='A typical GROUP BY, such as "ward,month"; "" for none; repeatable.', metavar="COLUMNS"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help='Columns to find ranges for, such as cost,age; "" for none (default: those without a range).',
        ),
    ] = None,
    query_epsilon: Annotated[
        str | None, typer.Option(help="The cost of the queries that bounds are chosen for (default: --epsilon).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file for the lines of the policy (.toml).")] = None,
    plot: Annotated[Path | None, typer.Option(help="The file for the pictures (.svg, .png or .pdf).")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Only show what would be released, and its cost.")
    ] = False,
    log: LogOption = None,
) -> None:
    """Choose contribution bounds and ranges of columns privately, and print them as lines for the policy."""
    check_output_path(out, "--out")
    check_output_path(plot, "--plot", endings=PLOT_SUFFIXES)
    if plot is not None:
        _check_matplotlib()
    arguments: dict[str, Any] = {
        "epsilon": positive_number(epsilon, "--epsilon"),
        "by_columns": tuple(by_columns or ()),
        "columns": None if columns is None else [name.strip() for name in columns.split(",") if name.strip()],
        "query_epsilon": None if query_epsilon is None else positive_number(query_epsilon, "--query-epsilon"),
    }
    with _open_policy(policy, log) as curator:
        if dry_run:
            typer.echo(str(curator.plan_advice(table, **arguments)))
            return
        with step_progress() as progress:
            advice = curator.advise(table, **arguments, progress=progress)
        typer.echo(str(advice))
        if out is None:
            typer.echo(f"\nLines for {policy}:\n\n{advice.toml()}", nl=False)
        else:
            out.write_text(advice.toml(), encoding="utf-8")
            typer.echo(f"wrote {out}", err=True)
        if plot is not None:
            _save_plot(advice.plot(), plot)


def _check_matplotlib() -> None:
    from discreet.plotting import style  # noqa: PLC0415 - numpy and matplotlib, for pictures only

    try:
        style()
    except ImportError as error:
        usage_error(f"--plot: {error}.")


def _save_plot(figure: Any, path: Path) -> None:
    from discreet.plotting import save_figure  # noqa: PLC0415

    typer.echo(f"wrote {save_figure(figure, path)}", err=True)


@contextmanager
def _open_policy(file: Path, log: Path | None) -> Iterator[Curator]:
    with exit_on_error(), log_for_owner(policy := load_unfinished(file), log), open_curator(policy) as curator:
        try:
            yield curator
        except Refused as refusal:
            raise Refused(with_option_name(str(refusal), _OPTIONS)) from None
