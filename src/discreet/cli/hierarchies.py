"""Finding the hierarchies of a table's columns in files."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from discreet.anonymity import Hierarchy, read_hierarchy
from discreet.cli.stops import wrong

_OPTION = "--hierarchies"


def find_hierarchies(places: Iterable[str], columns: Sequence[str]) -> dict[str, Hierarchy]:
    """Read the hierarchies of some columns: from a folder by the names of its files, or one by one as COLUMN=FILE."""
    found: dict[str, Hierarchy] = {}
    for place in places:
        for column, file in _files(place, columns):
            found[column] = _read(file)
    return found


def _files(place: str, columns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    if Path(place).is_dir():
        yield from _in_folder(Path(place), columns)
        return
    column, equals, file = place.partition("=")
    if not equals:
        wrong(f"{_OPTION}: {place} is no folder. Name one, or write COLUMN=FILE, such as age=age.csv.")
    if column not in columns:
        wrong(f"{_OPTION}: {column!r} is neither in --quasi nor in --sensitive. These are {', '.join(columns)}.")
    yield column, Path(file)


def _in_folder(folder: Path, columns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Match files to columns; ARX's own examples are named like adult_hierarchy_native-country.csv."""
    by_name = {_plain(file.stem).rpartition("hierarchy-")[2]: file for file in sorted(folder.glob("*.csv"))}
    matched = [(column, by_name[_plain(column)]) for column in columns if _plain(column) in by_name]
    if not matched:
        names = ", ".join(f"{column}.csv" for column in columns)
        wrong(f"{_OPTION}: {folder} has none of {names}. Name the files like the columns, or write COLUMN=FILE.")
    yield from matched


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def _read(file: Path) -> Hierarchy:
    try:
        return read_hierarchy(file)
    except FileNotFoundError:
        wrong(f"{_OPTION}: there is no file {file}. Correct the path.")
    except OSError as error:
        wrong(f"{_OPTION}: {file} cannot be read ({error.strerror}).")
    except ValueError as error:
        wrong(f"{_OPTION}: {str(error).removeprefix('source: ')}")
