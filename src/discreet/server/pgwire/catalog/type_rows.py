"""The rows of pg_type: the types that columns of answers have, and those that clients ask for."""

from collections.abc import Iterator
from typing import Any

from discreet.server.pgwire.catalog.relations import CATALOG_OID, OWNER_OID
from discreet.server.pgwire.pg_types import TYPES

_OTHER_TYPES = (  # number, name, size, number of the array type: types that no column of an answer has
    (17, "bytea", -1, 1001),
    (18, "char", 1, 1002),
    (19, "name", 64, 1003),
    (22, "int2vector", -1, 1006),
    (24, "regproc", 4, 1008),
    (30, "oidvector", -1, 1013),
    (114, "json", -1, 199),
    (705, "unknown", -2, 0),
    (1042, "bpchar", -1, 1014),
    (1043, "varchar", -1, 1015),
    (2205, "regclass", 4, 2210),
    (2206, "regtype", 4, 2211),
    (2278, "void", 4, 0),
    (2950, "uuid", 16, 2951),
    (3802, "jsonb", -1, 3807),
)
_LONG_NAMES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bpchar": "character",
    "varchar": "character varying",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
    "char": '"char"',
}
_CATEGORIES = {
    "N": ("int2", "int4", "int8", "float4", "float8", "numeric", "oid", "regproc", "regclass", "regtype"),
    "S": ("text", "name", "bpchar", "varchar"),
    "D": ("date", "time", "timestamp", "timestamptz"),
    "B": ("bool",),
    "T": ("interval",),
    "X": ("unknown",),
    "A": ("int2vector", "oidvector"),
}
_UNDERSCORED = ("date", "time", "timestamp", "timestamptz", "interval", "numeric", "json", "jsonb", "uuid", "void")
_ABSENT = ("typsubscript", "typmodin", "typmodout", "typanalyze")
FUNCTION_COLUMNS = frozenset({"typinput", "typoutput", "typreceive", "typsend", *_ABSENT})
TEXT_TYPES = ("text", "name", "bpchar", "varchar")
Row = dict[str, Any]


def long_type_names() -> dict[int, str]:
    """Return the names of types as `format_type` writes them, by number.

    >>> long_type_names()[20], long_type_names()[1016]
    ('bigint', 'bigint[]')
    """
    named = {oid: _LONG_NAMES.get(name, name) for oid, name, _, _ in base_types()}
    arrays = {array: f"{named[oid]}[]" for oid, _, _, array in base_types() if array}
    return named | arrays


def base_types() -> list[tuple[int, str, int, int]]:
    """Return the number, name and size of every type, and the number of its array type."""
    return sorted([*((kind.oid, kind.name, kind.size, kind.array_oid) for kind in TYPES), *_OTHER_TYPES])


def type_numbers() -> dict[str, int]:
    """Return the numbers of types by their short and their long names.

    >>> type_numbers()["int8"], type_numbers()["bigint"], type_numbers()["_int8"]
    (20, 20, 1016)
    """
    short = {name: oid for oid, name, _, _ in base_types()}
    arrays = {f"_{name}": array for _, name, _, array in base_types() if array}
    return {name: oid for oid, name in long_type_names().items()} | short | arrays


def type_rows() -> Iterator[Row]:
    """Yield the rows of pg_type, arrays included."""
    categories = {name: category for category, names in _CATEGORIES.items() for name in names}
    for oid, name, size, array in base_types():
        functions = f"{name}_" if name in _UNDERSCORED else name
        category = categories.get(name, "U")
        yield _type_row(oid, name, size, category, functions) | {"typarray": array}
        if array:
            yield _type_row(array, f"_{name}", -1, "A", "array_") | {"typelem": oid, "typarray": 0}


def _type_row(oid: int, name: str, size: int, category: str, functions: str) -> Row:
    names = {f"typ{verb}put": f"{functions}{verb}" for verb in ("in", "out")}
    ends = {"typreceive": f"{functions}recv", "typsend": f"{functions}send"}
    return {
        "oid": oid,
        "typname": name,
        "typnamespace": CATALOG_OID,
        "typowner": OWNER_OID,
        "typlen": size,
        "typbyval": 0 < size <= 8,
        "typtype": "p" if name in ("void", "unknown") else "b",
        "typcategory": category,
        "typispreferred": name in ("bool", "text", "float8", "oid", "timestamptz", "interval"),
        "typisdefined": True,
        "typdelim": ",",
        "typrelid": 0,
        "typelem": 0,
        "typalign": "i",
        "typstorage": "p" if size > 0 else "x",
        "typnotnull": False,
        "typbasetype": 0,
        "typtypmod": -1,
        "typndims": 0,
        "typcollation": 100 if category == "S" else 0,
        **dict.fromkeys(_ABSENT, "-"),
        **names,
        **ends,
    }
