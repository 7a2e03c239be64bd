"""Options of discreet anonymise: error messages with option names, hierarchy files, the key file."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from discreet.anonymity import Hierarchy, new_key, read_hierarchy, read_key
from discreet.anonymity.pseudonyms.keys import check_key_folder, store_key
from discreet.arguments import ArgumentError
from discreet.cli.terminal import usage_error
from discreet.html_page import make_printable

_SAME_NAMES = (
    "quasi",
    "sensitive",
    "drop",
    "k",
    "l",
    "t",
    "c",
    "diversity",
    "method",
    "suppress",
    "hierarchies",
    "population",
)
_OPTIONS = {"column": "--pseudonym", "key": "--key-file", "path": "--key-file", "table": "TABLE"}
_OPTIONS |= {name: f"--{name}" for name in _SAME_NAMES}


@contextmanager
def exit_on_option_error() -> Iterator[None]:
    """Print an error with option names instead of argument names, and exit."""
    try:
        yield
    except ArgumentError as error:
        usage_error(make_printable(f"{_OPTIONS.get(error.parameter, error.parameter)}: {error.problem}"))
    except (TypeError, ValueError) as error:
        usage_error(make_printable(str(error)))


_HIERARCHIES_OPTION = "--hierarchies"


def find_hierarchies(options: Iterable[str], columns: Sequence[str]) -> dict[str, Hierarchy]:
    """Read the hierarchies of columns from folders, by file name, or from COLUMN=FILE options."""
    hierarchies: dict[str, Hierarchy] = {}
    for option in options:
        for column, file in _hierarchy_files(option, columns):
            hierarchies[column] = _read_hierarchy_file(file)
    return hierarchies


def _hierarchy_files(option: str, columns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    if Path(option).is_dir():
        yield from _match_folder(Path(option), columns)
        return
    column, equals, file = option.partition("=")
    if not equals:
        usage_error(
            f"{_HIERARCHIES_OPTION}: {option} is not a folder. Give a folder, or COLUMN=FILE, such as age=age.csv."
        )
    if column not in columns:
        usage_error(
            f"{_HIERARCHIES_OPTION}: {column!r} is neither in --quasi nor in --sensitive, which are "
            f"{', '.join(columns)}."
        )
    yield column, Path(file)


def _match_folder(folder: Path, columns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Match files to columns; the examples of ARX have names like adult_hierarchy_native-country.csv."""
    by_name = {_normalise_name(file.stem).rpartition("hierarchy-")[2]: file for file in sorted(folder.glob("*.csv"))}
    matched = [(column, by_name[_normalise_name(column)]) for column in columns if _normalise_name(column) in by_name]
    if not matched:
        names = ", ".join(f"{column}.csv" for column in columns)
        usage_error(
            f"{_HIERARCHIES_OPTION}: {folder} contains none of {names}. Name the files after the columns, or use "
            "COLUMN=FILE."
        )
    yield from matched


def _normalise_name(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def _read_hierarchy_file(file: Path) -> Hierarchy:
    try:
        return read_hierarchy(file)
    except FileNotFoundError:
        usage_error(f"{_HIERARCHIES_OPTION}: the file {file} does not exist. Correct the path.")
    except OSError as error:
        usage_error(f"{_HIERARCHIES_OPTION}: cannot read {file} ({error.strerror}).")
    except ArgumentError as error:
        usage_error(f"{_HIERARCHIES_OPTION}: {error.problem}")


def read_or_create_key(file: Path | None, beside: Iterable[Path | None]) -> bytes | None:
    """Read the key, or create a new one; refuse a key file in the folder of the data."""
    if file is None:
        return None
    for path in beside:
        if path is not None and path.resolve().parent == file.resolve().parent:
            usage_error(
                f"--key-file: {file} is in the folder of {path}. Keep the key apart from the data, in another folder."
            )
    if file.exists():
        return read_key(file)
    check_key_folder(file)
    return new_key()


def store_new_key(key: bytes, file: Path) -> None:
    """Write the key to the file, unless it was read from there."""
    if file.exists() and read_key(file) == key:
        return
    store_key(key, file)  # refuses a file that was created in the meantime
    typer.echo(f"{file}: new key. Keep it apart from the data; anyone who has it can reverse the pseudonyms.", err=True)
