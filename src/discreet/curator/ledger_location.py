"""Where a data set's ledger is, a file or a PostgreSQL database; open, create and move it.

A place is a Path, or a postgresql:// URL without a password. The head of a ledger in a file lies beside it; that of
a ledger in a database lies beside the policy, on each machine that uses it.
"""

import json
import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.ledger import create_ledger, open_ledger
from discreet.kernel.ledger.account import Account
from discreet.kernel.ledger.chain import moved_message
from discreet.kernel.ledger.migration import ProgressCallback, move_ledger
from discreet.kernel.ledger.sqlite import open_target_ledger
from discreet.policy import Policy
from discreet.policy.validators import URL_PREFIX
from discreet.policy.validators import parse_location as checked

LedgerLocation = Path | str
_POSTGRES_SCHEMES = ("postgresql", "postgres")
_LOCATION_PARAMETERS = ("host", "hostaddr", "port", "dbname", "service")  # what says where, and not who or how
_SAFE_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def parse_location_option(text: str, option: str) -> LedgerLocation:
    """Read a place from the command line, where `option` is how it is called there.

    >>> parse_location_option("postgresql://ana:secret@db.example/clinic", "--moved_to")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.PolicyError: --to: others can read a password on the command line. Leave it out, ...
    """
    if not URL_PREFIX.match(text):
        return Path(text)
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        raise PolicyError(f"{option}: the URL cannot be read. Write it as postgresql://user@host/database.") from None
    if scheme not in _POSTGRES_SCHEMES:
        raise PolicyError(
            f"{option}: a ledger is a file or in PostgreSQL. Write a path, or postgresql://host/database."
        )
    try:
        return checked(text, option)
    except ValueError:
        raise PolicyError(
            f"{option}: others can read a password on the command line. Leave it out, and give it in PGPASSWORD or the "
            "file ~/.pgpass."
        ) from None


def address_without_user(location: LedgerLocation) -> str:
    """Write where a place is, without who asks: an absolute path, or a URL.

    >>> address_without_user("postgresql://ana@db.example:5433/clinic?sslmode=verify-full")
    'postgresql://db.example:5433/clinic'
    """
    if isinstance(location, Path):
        return str(location.absolute())
    parts = urlsplit(location)
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name in _LOCATION_PARAMETERS])
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}{f'?{query}' if query else ''}"


def policy_line(location: LedgerLocation, base: Path | None) -> str:
    """Write the line that a policy in the folder `base` needs to find its ledger in a place.

    >>> policy_line(Path("/srv/clinic/visits.sqlite"), Path("/srv/clinic"))
    'ledger = "visits.sqlite"'
    """
    if isinstance(location, Path):
        location = location.absolute()
        location = (
            location.relative_to(base.absolute()) if base and location.is_relative_to(base.absolute()) else location
        )
    return f"ledger = {json.dumps(str(location), ensure_ascii=False)}"


def checkpoint_path(policy: Policy) -> Path:
    """Return where the head of a policy's ledger in a database lies: beside the policy, under the data set's name.

    >>> policy = Policy.of({
    ...     "data": {"name": "Zoë's visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> checkpoint_path(policy).name
    'zo-s-visits-e213a327bbea.ledger-head'
    """
    name = policy.data.name
    if not _SAFE_FILE_NAME.fullmatch(name):
        readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        name = f"{readable[:40]}-{sha256(name.encode()).hexdigest()[:12]}"
    return policy.base / f"{name}.ledger-head"


def open_ledger_at(location: LedgerLocation, *, name: str, checkpoint: Path | None = None) -> Account:
    """Open the ledger of a data set, to look at it, to check it or to move it.

    >>> open_ledger_at(Path("nowhere.sqlite"), name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: there is no ledger here. Correct the path, ...
    """
    if isinstance(location, Path):
        return open_ledger(location, name=name)
    from discreet.ledger_postgres.ledger import open_postgres_ledger  # noqa: PLC0415 - an extra

    return open_postgres_ledger(location, name=name, checkpoint=checkpoint)


def open_or_create_ledger(policy: Policy) -> Account:
    """Open the ledger of a policy to charge it, or make it with the policy's terms if there is none.

    A ledger that was moved is not opened: the error says what to write into the policy.

    >>> from tempfile import mkdtemp
    >>> policy = Policy.of({
    ...     "data": {"name": "visits", "ledger_location": mkdtemp() + "/visits.sqlite"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with open_or_create_ledger(policy) as ledger_location:
    ...     ledger_location.name, ledger_location.budget
    ('visits', Budget(epsilon=1))
    """
    ledger = (
        _open_policy_ledger(policy)
        if _ledger_exists(policy.ledger_location, policy.data.name)
        else _create_or_open(policy)
    )
    try:
        moved_to = ledger.moved_to
    except BaseException:
        ledger.close()
        raise
    if moved_to is not None:
        ledger.close()
        raise PolicyError(f"ledger: {address_without_user(policy.ledger_location)}: {moved_message(moved_to)}")
    return ledger


def move_ledger_to(
    source: Account,
    location: LedgerLocation,
    *,
    name: str,
    checkpoint: Path | None = None,
    progress: ProgressCallback | None = None,
) -> bool:
    """Move an open ledger to a place where there is none; False if it had arrived there before.

    `progress` hears how many rows were copied, of how many. The same call finishes a move that was interrupted.

    >>> from tempfile import mkdtemp
    >>> from discreet.kernel.loss import Budget
    >>> folder = Path(mkdtemp())
    >>> with create_ledger(folder / "old.sqlite", name="demo", budget=Budget(1)) as ledger_location:
    ...     move_ledger_to(ledger_location, folder / "new.sqlite", name="demo"), ledger_location.moved_to == str(folder / "new.sqlite")
    (True, True)
    """
    with _open_move_target(location, name, checkpoint) as target:
        try:
            return move_ledger(source, target, to=address_without_user(location), progress=progress)
        except LedgerError as error:
            raise LedgerError(_move_error_text(str(error), source, target)) from error.__cause__


def _move_error_text(text: str, source: Account, target: Account) -> str:
    """Say what went wrong while both places were in use: each of them has put its name in front."""
    old, new = (account._session.location for account in (source, target))  # noqa: SLF001 - a place has no other name
    both = f"{new}: {old}: "
    return f"from {old} to {new}: {text.removeprefix(both)}" if text.startswith(both) else text


def _open_policy_ledger(policy: Policy) -> Account:
    return open_ledger_at(policy.ledger_location, name=policy.data.name, checkpoint=checkpoint_path(policy))


def _ledger_exists(location: LedgerLocation, name: str) -> bool:
    if isinstance(location, Path):
        return location.exists()
    from discreet.ledger_postgres.ledger import has_postgres_ledger  # noqa: PLC0415 - an extra

    return has_postgres_ledger(location, name=name)


def _create_or_open(policy: Policy) -> Account:
    try:
        return _create_policy_ledger(policy)
    except LedgerError:
        if not _ledger_exists(policy.ledger_location, policy.data.name):
            raise
        return _open_policy_ledger(policy)  # somebody else made it at this moment


def _create_policy_ledger(policy: Policy) -> Account:
    name, budget, analysts = policy.data.name, policy.budget, policy.analyst_budgets()
    promise, location, checkpoint = policy.unit_fingerprint(), policy.ledger_location, checkpoint_path(policy)
    if isinstance(location, Path):
        if checkpoint.exists():
            raise LedgerError(
                f"{address_without_user(location)}: there is no ledger here, and {checkpoint} remembers one in a database, which this server "
                "used: a new one would be a second account. Write that database into the policy. If the ledger was "
                "moved to a file, serve on the machine that has it, or move it from there to a database."
            )
        return create_ledger(location, name=name, budget=budget, analysts=analysts, unit_declaration=promise)
    from discreet.ledger_postgres.ledger import create_postgres_ledger  # noqa: PLC0415 - an extra

    return create_postgres_ledger(
        location, name=name, budget=budget, analysts=analysts, unit_declaration=promise, checkpoint=checkpoint
    )


def _open_move_target(location: LedgerLocation, name: str, checkpoint: Path | None) -> Account:
    if isinstance(location, Path):
        return open_target_ledger(location)
    from discreet.ledger_postgres.ledger import open_target_postgres_ledger  # noqa: PLC0415 - an extra

    return open_target_postgres_ledger(location, name=name, checkpoint=checkpoint)
