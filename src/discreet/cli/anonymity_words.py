"""What went wrong with a table's anonymity, as the command line spells it: options instead of Python's arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.anonymity.showing.report import clean
from discreet.cli.stops import wrong

_SAME = (
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
_OPTIONS |= {name: f"--{name}" for name in _SAME}
_ANY = "'...'"
_WAYS_OUT = {
    "Give new_key(), and keep it": "Name a file for one with --key-file, and keep it",
    "Make a key with write_key(path).": "Name another file.",
    "Name a file that write_key wrote.": "Name a file that --key-file made.",
}


@contextmanager
def spelled() -> Iterator[None]:
    """Say what is wrong with the options, and end."""
    try:
        yield
    except (TypeError, ValueError) as error:
        wrong(clean(in_options(str(error))))


def in_options(text: str) -> str:
    """Write the arguments in a message as options.

    >>> in_options("l: it is about sensitive columns, and none is named. Give sensitive='...'.")
    '--l: it is about sensitive columns, and none is named. Give --sensitive COLUMN.'
    >>> in_options("c: recursive diversity needs it, such as c=3, and nothing else does.")
    '--c: recursive diversity needs it, such as --c 3, and nothing else does.'
    """
    for way, option in _WAYS_OUT.items():
        text = text.replace(way, option)
    text = re.sub(r"^(\w+):", lambda match: f"{_OPTIONS.get(match[1], match[1])}:", text)
    return re.sub(r"\b(\w+)=('\.\.\.'|[0-9]+)", _option, text)


def _option(match: re.Match[str]) -> str:
    name, value = match.groups()
    return f"{_OPTIONS[name]} {value.replace(_ANY, 'COLUMN')}" if name in _OPTIONS else match[0]
