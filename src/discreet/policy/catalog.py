"""The policy's tables as the kernel sees them: which privacy unit owns each row, and which columns exist.

This is the only place that turns a policy into scans. The kernel compares every question with this catalog before the
charge, so that no other code can choose another unit.
"""

from collections.abc import Callable, Mapping

from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.fingerprint import digest
from discreet.kernel.relation import EachRow, ParentUnit, Scan, UnitKey
from discreet.kernel.release import Catalog
from discreet.policy.declarations import ColumnUnit, DeclaredTable, ParentTableUnit, RowUnit, WindowUnit
from discreet.policy.model import Policy

_KERNEL_TYPES = {
    "integer": Type.INTEGER,
    "real": Type.REAL,
    "decimal": Type.REAL,
    "boolean": Type.BOOLEAN,
    "text": Type.TEXT,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
}


def kernel_type(name: str) -> Type:
    """Return the kernel's type for a type of the policy; decimals become reals.

    >>> kernel_type("decimal")
    <Type.REAL: 'r'>
    """
    return _KERNEL_TYPES[name]


def catalog_of(
    policy: Policy, public_columns: Callable[[str], Mapping[str, Type]], location_of: Callable[[str], str]
) -> Catalog:
    """Return the declared tables; the callables look up the columns of a public table and the location of any table.

    Claim: a question that this catalog accepts reads private tables only as `scan_of` declares them, and reads as
        public only tables that the policy declares public. Its `source` is "" unless the policy declares a version,
        and differs if any table is at another location.
    Proof: a table is in one of the two mappings, by its declaration alone, and Catalog.check accepts nothing else.
        The source is a digest of all names and locations (SHA-256 has no known collisions).
    Needs: scan_of, Catalog.check, digest; an owner who declares a version changes it whenever the data changes.
    Checked by: test_the_catalog_has_each_table_once_as_it_is_declared, test_a_front_end_cannot_choose_another_unit,
        test_only_a_declared_version_has_a_source_and_it_differs_with_every_location
    """
    locations = tuple((name, location_of(name)) for name in sorted(policy.tables))
    return Catalog(
        {name: scan_of(policy, name) for name, table in policy.tables.items() if not table.public},
        {name: public_columns(name) for name, table in policy.tables.items() if table.public},
        "" if policy.data.version is None else digest(locations),
    )


def scan_of(policy: Policy, name: str) -> Scan:
    """Return a private table with all of its columns and its owner.

    Claim: in the scan, a row belongs to the unit that the policy declares for it, or to nobody: the value of the unit
        column, with the calendar window of the time column if there is a window; through a parent table, the one owner
        of the parent's rows with the same key; or the row itself.
    Proof: `_owner` has one case for each declaration, and refuses any other. A UnitKey is the values of its columns in
        the row; a date becomes its midnight, so that its window is that of the day; a ParentUnit follows the parent's
        own scan, over any number of parents.
    Needs: UnitKey, ParentUnit, EachRow, Scan; policy.model.Policy has the units that the owner's file declares; an
        engine reads timestamps as local ones in the policy's time zone.
    Checked by: test_every_row_has_the_owner_that_the_policy_file_declares,
        test_owners_follow_the_time_zone_of_the_policy_file

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> scan_of(policy, "visits").owner
    UnitKey(unit=(Column(name='who', type=<Type.INTEGER: 'i'>),))
    """
    table = policy.tables[name]
    columns = {each.name: Column(each.name, kernel_type(each.type)) for each in table.columns.values()}
    try:
        return Scan(table.name, tuple(columns.values()), _owner(policy, table, columns), table.rows_max)
    except ValueError as error:
        raise PolicyError(f"table {table.name}: {error}") from None


def _owner(policy: Policy, table: DeclaredTable, columns: Mapping[str, Column]) -> UnitKey | EachRow | ParentUnit:
    match table.unit:
        case ColumnUnit(name):
            return UnitKey((columns[name],))
        case WindowUnit(name, time, window):
            clock: Expr = columns[time]
            moment = Call("to_timestamp", (clock,)) if clock.type is Type.DATE else clock
            return UnitKey((columns[name], Call(f"trunc_{window.value}", (moment,))))
        case ParentTableUnit(parent, on, key):
            return ParentUnit(on, scan_of(policy, parent), key)
        case RowUnit():
            return EachRow()
    raise ValueError("a public table has no privacy unit")
