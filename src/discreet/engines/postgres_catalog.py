"""What a database says about tables: where they are, and which columns the role may read. No row is read."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.engines import postgres_columns
from discreet.engines.postgres_session import Snapshot
from discreet.engines.sources import EngineError, Found, Part, Source, Types, matched, problem, types_of
from discreet.kernel.dialect import quoted
from discreet.kernel.errors import PolicyError
from discreet.postgres.columns import COLUMNS

_NAME = r'("(?:[^"]|"")+"|[^\W\d][\w$]*)'
_PLACE = re.compile(rf"\s*{_NAME}\s*(?:\.\s*{_NAME}\s*)?")
_TABLES = "c.relkind IN ('r', 'p', 'v', 'm', 'f')"  # tables, those of partitions, views, stored views, foreign ones

_FIND = f"""
SELECT c.oid::bigint, n.nspname::text, has_schema_privilege(n.oid, 'USAGE'), row_security_active(c.oid),
    c.relkind IN ('r', 'p', 'v')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {_TABLES} AND c.relname = %s AND n.nspname = ANY(%s)
ORDER BY array_position(%s::text[], n.nspname::text) LIMIT 1
"""  # noqa: S608 - of constants
_NEAR = f"""
SELECT n.nspname::text, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {_TABLES} AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1, 2 LIMIT 10000
"""  # noqa: S608 - of constants
# What this connection has locked by now is compared: functions tell the newest name and file of a table, while the
# server's own tables tell those of the state that the question sees.
_REPLACED = """
SELECT 1 FROM pg_locks AS l
LEFT JOIN pg_class AS c ON c.oid = l.relation LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE l.locktype = 'relation' AND l.pid = pg_backend_pid() AND (c.oid IS NULL OR n.nspname <> 'pg_catalog' AND (
    c.relkind = 'r' AND c.relfilenode <> pg_relation_filenode(c.oid)
    OR l.relation::regclass::text <> quote_ident(n.nspname) || '.' || quote_ident(c.relname)
)) LIMIT 1
"""


@dataclass(frozen=True)
class Stored:
    """A table that was found: what stands after FROM, its columns in the kernel's types, and what was seen of it.

    `native` is PostgreSQL's type of each declared column; `kinds` are those of the columns that are read, as the server
    numbers them; `filtered` is a table of which the role sees some rows only. `lockable` is one that can be locked
    before a state is taken; `watched` is one that should be, and cannot. `misfits` are the declared columns that are
    not there, or not as declared, each with its error: they read as NULL, and no question that uses them is answered.
    """

    number: int
    schema: str
    name: str
    types: Types
    native: Mapping[str, str]
    rows: str
    columns: tuple[str, ...]
    kinds: tuple[int, ...]
    filtered: bool
    lockable: bool
    watched: bool
    misfits: Mapping[str, PolicyError] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The table's name with its schema, in quotes."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def exists(self) -> bool:
        """Whether there is such a table at all."""
        return bool(self.number)

    def fits(self, snapshot: Snapshot) -> bool:
        """Whether the columns still have the types that were found; until the end they cannot change now.

        To name the columns in a SELECT locks the table against changes of its columns, and tells their newest types,
        which the server's own tables do not in an older state. No row is fetched.
        """
        if not self.columns:
            return True
        names = ", ".join(map(quoted, self.columns))
        return snapshot.kinds(f"SELECT {names} FROM {self.place} LIMIT 0") == self.kinds  # noqa: S608 - quoted names

    def check(self, snapshot: Snapshot, table: str, columns: Iterable[str]) -> None:
        """Stop if one of these columns is not as declared, or the rows were replaced while the question began."""
        used = self.misfits.keys() & set(columns) if self.columns else self.misfits.keys()
        for column in sorted(used):
            raise self.misfits[column]
        if self.watched and snapshot.rows(_REPLACED):
            raise EngineError(
                f"table {table}: somebody replaced its rows while the question began, and the role cannot wait for "
                f"that: it may not read all columns. Let it: GRANT SELECT ON {self.place} TO …, or make a view of some."
            )


def missing_table(table: str, source: Source, error: PolicyError) -> Stored:
    """Return what stands for a table that was not found: no question about it is answered."""
    nothing = {column: ("NULL", postgres_columns.NOTHING, kind) for column, kind in source.columns.items()}
    rows = f"({postgres_columns.select(quoted(table), nothing)})"
    misfits = dict.fromkeys(source.columns, error)
    return Stored(
        0, "", table, source.columns, {}, rows, (), (), filtered=False, lockable=False, watched=False, misfits=misfits
    )


def find_table(snapshot: Snapshot, table: str, source: Source, schemas: Sequence[str]) -> Stored:
    """Find a table and its declared columns; PolicyError with the table, the cause and the fix if they do not fit."""
    found = find_columns(snapshot, table, source, schemas)
    for error in found.misfits.values():
        raise error
    return found


def find_columns(snapshot: Snapshot, table: str, source: Source, schemas: Sequence[str]) -> Stored:
    """Find a table, PolicyError if it is not there, and which of its declared columns fit."""
    place, schema, name = parse_place(table, source.place)
    within = schemas if schema is None else [schema]
    found = snapshot.rows(_FIND, [name, within, within])
    if not found:
        raise problem(table, f"the database has no table {place}. {_nearest(snapshot, schema, name)}")
    ((number, schema, usable, filtered, kept_here),) = found
    if not usable:
        words = f"the role may not use the schema {schema}. Let it: GRANT USAGE ON SCHEMA {quoted(schema)} TO …"
        raise problem(table, words)
    listed = snapshot.rows(COLUMNS.format(tables="attrelid = %s"), [number])
    columns = [Found(column, quoted(column), native, readable) for _, column, _, readable, native in listed]
    part = Part("", tuple(each for each in columns if source.columns or each.scanned))
    types = types_of(table, source.columns, [part], postgres_columns)
    rows = f"{quoted(schema)}.{quoted(name)}"
    fitting, misfits = _fitting(table, types, part, rows)
    kinds = {column: kind for _, column, kind, _, _ in listed}
    read = tuple(dict.fromkeys(stored.name for stored in fitting.values()))
    # A stored view may not be locked, and need not be: whoever fills it anew leaves rows that every state sees.
    lockable = kept_here and snapshot.can_lock(rows)
    nothing = Found("", "NULL", postgres_columns.NOTHING)
    shown = {column: (fitting.get(column, nothing), kind) for column, kind in types.items()}
    text = postgres_columns.select(rows, {each: (one.text, one.native, kind) for each, (one, kind) in shown.items()})
    return Stored(
        number,
        schema,
        name,
        types,
        native={column: one.native for column, one in fitting.items()},
        rows=f"({text})",
        columns=read,
        kinds=tuple(kinds[column] for column in read),
        filtered=bool(filtered),
        lockable=lockable,
        watched=kept_here and not lockable,
        misfits=misfits,
    )


def _fitting(table: str, types: Types, part: Part, rows: str) -> tuple[dict[str, Found], dict[str, PolicyError]]:
    """Divide columns into those that can be read as declared, and those that cannot, with the reason."""
    fitting, misfits = dict[str, Found](), dict[str, PolicyError]()
    for column, kind in types.items():
        try:
            found, _ = matched(table, {column: kind}, part, postgres_columns)[column]
            if not found.scanned:
                raise problem(table, f"the role may not read it. Let it: GRANT SELECT ON {rows} TO …", column)
            fitting[column] = found
        except PolicyError as error:
            misfits[column] = error
    return fitting, misfits


def parse_place(table: str, place: object) -> tuple[str, str | None, str]:
    """Read a table's name as SQL has it: without quotes, capital letters are small ones."""
    found = _PLACE.fullmatch(place) if isinstance(place, str) else None
    if found is None or not isinstance(place, str):
        raise problem(
            table,
            "source must be the name of a table or view in the database, such as visits or clinic.visits. Write a name "
            'with other signs in quotes: clinic."visits 2026".',
        )
    names = [_unquoted(name) for name in found.groups() if name is not None]
    return place.strip(), names[0] if len(names) > 1 else None, names[-1]


def _unquoted(name: str) -> str:
    if name.startswith('"'):
        return name[1:-1].replace('""', '"')
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _nearest(snapshot: Snapshot, schema: str | None, name: str) -> str:
    """Offer a table that the role may read: its name is near, or the same in another schema or case."""
    known = snapshot.rows(_NEAR)
    wanted = f"{schema}.{name}" if schema else name
    spelled = {(f"{one[0]}.{one[1]}" if schema else one[1]).lower(): one for one in reversed(known)}
    near = difflib.get_close_matches(wanted.lower(), list(spelled), n=1)
    if not near:
        near = [each for each, one in spelled.items() if one[1].lower() == name.lower()][:1]
    if not near:
        return "Correct its name, or let the role read it: GRANT SELECT ON … TO …"
    return f"It has {'.'.join(map(_as_needed, spelled[near[0]]))}."


def _as_needed(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quoted(name)
