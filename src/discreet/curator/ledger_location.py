"""Open, create and move the ledger of a data set, in a file or in a PostgreSQL database.

A location is a Path, or a postgresql:// URL without a password. The checkpoint of a ledger in a file is next to it;
that of a ledger in a database is next to the policy, on each machine that uses it.
"""

import json
import re
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from discreet.curator.ledger_terms import policy_terms
from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.table import NOT_A_LEDGER
from discreet.ledger_admin.move import (
    ProgressCallback,
    move_ledger,
    open_target_ledger,
    open_target_postgres_ledger,
)
from discreet.ledger_sqlite import create_ledger, open_ledger
from discreet.policy import Policy
from discreet.policy.validators import URL_PREFIX
from discreet.policy.validators import parse_location as checked

LedgerLocation = Path | str
_POSTGRES_SCHEMES = ("postgresql", "postgres")
_LOCATION_PARAMETERS = ("host", "hostaddr", "port", "dbname", "service")  # not the user or connection options
_CREATION_SECONDS, _CREATION_PAUSE = 1.0, 0.02  # another process may be creating the ledger
_SAFE_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def parse_location_option(text: str, option: str) -> LedgerLocation:
    """Parse a ledger location from the command line; `option` names it in errors.

    >>> parse_location_option("postgresql://ana:secret@db.example/clinic", "--to")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.PolicyError: --to: a password on the command line is visible to other users. ...
    """
    if not URL_PREFIX.match(text):
        return Path(text)
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        raise PolicyError(f"{option}: invalid URL. Write postgresql://user@host/database.") from None
    if scheme not in _POSTGRES_SCHEMES:
        raise PolicyError(
            f"{option}: a ledger is a file or a PostgreSQL database. Write a path, or postgresql://host/database."
        )
    try:
        return checked(text, option)
    except ValueError:
        raise PolicyError(
            f"{option}: a password on the command line is visible to other users. Put it in PGPASSWORD or in ~/.pgpass "
            "instead."
        ) from None


def address_without_user(location: LedgerLocation) -> str:
    """Return a location as an absolute path or a URL, without user and connection options.

    >>> address_without_user("postgresql://ana@db.example:5433/clinic?sslmode=verify-full")
    'postgresql://db.example:5433/clinic'
    """
    if isinstance(location, Path):
        return str(location.absolute())
    parts = urlsplit(location)
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name in _LOCATION_PARAMETERS])
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}{f'?{query}' if query else ''}"


def policy_line(location: LedgerLocation, base: Path | None) -> str:
    """Return the `ledger = ...` line for a policy in the folder `base`.

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
    """Return the path of the checkpoint of a ledger in a database: next to the policy, with the name of its account.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "Zoë's visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> checkpoint_path(policy).name
    'zo-s-visits-e213a327bbea.ledger-checkpoint'
    """
    name = policy.account
    if not _SAFE_FILE_NAME.fullmatch(name):
        readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        name = f"{readable[:40]}-{sha256(name.encode()).hexdigest()[:12]}"
    return policy.base / f"{name}.ledger-checkpoint"


def open_ledger_at(location: LedgerLocation, *, name: str, dataset: str = "", checkpoint: Path | None = None) -> Ledger:
    """Open the existing ledger of a data set, or that of a population for one of its data sets.

    >>> open_ledger_at(Path("nowhere.sqlite"), name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: the ledger does not exist. Correct the path, ...
    """
    if isinstance(location, Path):
        return open_ledger(location, name=name, dataset=dataset)
    from discreet.ledger_postgres.ledger import open_postgres_ledger  # noqa: PLC0415 - an extra

    return open_postgres_ledger(location, name=name, dataset=dataset, checkpoint=checkpoint)


def open_or_create_ledger(policy: Policy) -> Ledger:
    """Open the ledger of a policy, or create it with the policy's budget if there is none.

    If the ledger was moved, the error states what to write into the policy.

    >>> from tempfile import mkdtemp
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": mkdtemp() + "/visits.sqlite"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with open_or_create_ledger(policy) as ledger:
    ...     ledger.terms.name, ledger.terms.budget
    ('visits', Budget(epsilon=1))
    """
    return _checked_not_moved(_open_or_wait(policy, time.monotonic() + _CREATION_SECONDS), policy)


def _open_or_wait(policy: Policy, deadline: float) -> Ledger:
    """Open or create a ledger; wait for one that another process is creating just now."""
    while True:
        try:
            if not _ledger_exists(policy.ledger_location, policy.account):
                return _create_or_open(policy)
            return open_policy_ledger(policy)
        except LedgerError as error:
            if NOT_A_LEDGER not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(_CREATION_PAUSE)


def open_existing_ledger(policy: Policy) -> Ledger | None:
    """Open the ledger of a policy for reading, or return None if nothing was ever charged; nothing is created.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": "/nowhere/visits.sqlite"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> open_existing_ledger(policy) is None
    True
    """
    location, checkpoint = policy.ledger_location, checkpoint_path(policy)
    if policy.data.ledger == ":memory:" or not _ledger_exists(location, policy.account):
        left = Path(f"{location}.checkpoint") if isinstance(location, Path) else checkpoint
        if left.exists():
            raise LedgerError(
                f"{address_without_user(location)}: the ledger is missing, but its checkpoint {left} exists. Restore "
                "the ledger from a backup."
            )
        return None
    return _checked_not_moved(open_policy_ledger(policy), policy)


def _checked_not_moved(ledger: Ledger, policy: Policy) -> Ledger:
    try:
        moved_to = ledger.moved_to
    except BaseException:
        ledger.close()
        raise
    if moved_to is not None:
        ledger.close()
        raise PolicyError(f"ledger: {address_without_user(policy.ledger_location)}: {moved_message(moved_to)}")
    return ledger


def moved_message(to: str) -> str:
    """Return the message that tells what to write into a policy whose ledger was moved.

    >>> moved_message("/srv/visits.sqlite")  # doctest: +ELLIPSIS
    'the ledger was moved. Set ledger = "/srv/visits.sqlite" in the policy. The file is on the machine where ...'
    """
    file_hint = "The file is on the machine where the move was made, and only that machine can use it."
    hint = file_hint if to.startswith("/") else "Add the user name and connection options of this server."
    setting = f"ledger = {json.dumps(to, ensure_ascii=False)}"
    return f"the ledger was moved. Set {setting} in the policy. {hint} If the move was interrupted, run it again."


def move_ledger_to(
    source: Ledger,
    location: LedgerLocation,
    *,
    name: str,
    checkpoint: Path | None = None,
    progress: ProgressCallback | None = None,
) -> bool:
    """Move an open ledger to a location without one; False if it had been moved there before.

    `progress` receives the numbers of rows copied and in all. The same call completes a move that was interrupted.

    >>> from tempfile import mkdtemp
    >>> from discreet.kernel.loss import Budget
    >>> folder = Path(mkdtemp())
    >>> with create_ledger(folder / "old.sqlite", name="demo", budget=Budget(1)) as ledger:
    ...     move_ledger_to(ledger, folder / "new.sqlite", name="demo")
    ...     ledger.moved_to == str(folder / "new.sqlite")
    True
    True
    """
    with _open_move_target(location, name, checkpoint) as target:
        try:
            return move_ledger(source, target, to=address_without_user(location), progress=progress)
        except LedgerError as error:
            raise LedgerError(_move_error_text(str(error), source, target)) from error.__cause__


def _move_error_text(text: str, source: Ledger, target: Ledger) -> str:
    """Replace the two locations that were prepended to the message of an error by "from … to …"."""
    old, new = source.session.location, target.session.location
    both = f"{new}: {old}: "
    return f"from {old} to {new}: {text.removeprefix(both)}" if text.startswith(both) else text


def open_policy_ledger(policy: Policy) -> Ledger:
    """Open the existing ledger of a policy, moved or not."""
    checkpoint = checkpoint_path(policy)
    return open_ledger_at(policy.ledger_location, name=policy.account, dataset=policy.dataset, checkpoint=checkpoint)


def _ledger_exists(location: LedgerLocation, name: str) -> bool:
    if isinstance(location, Path):
        return location.exists()
    from discreet.ledger_postgres.ledger import has_postgres_ledger  # noqa: PLC0415 - an extra

    return has_postgres_ledger(location, name=name)


def _create_or_open(policy: Policy) -> Ledger:
    try:
        return _create_policy_ledger(policy)
    except LedgerError:
        if not _ledger_exists(policy.ledger_location, policy.account):
            raise
        return open_policy_ledger(policy)  # another process created it at the same moment


def _create_policy_ledger(policy: Policy) -> Ledger:
    location, checkpoint = policy.ledger_location, checkpoint_path(policy)
    if isinstance(location, Path):
        if checkpoint.exists():
            raise LedgerError(
                f"{address_without_user(location)}: there is no ledger here, but {checkpoint} belongs to a ledger in a "
                "database that this server used before; a second ledger would double the budget. Write that database "
                "into the policy. If the ledger was moved to a file, serve from the machine that has the file, or move "
                "the ledger to a database."
            )
        return create_ledger(location, **policy_terms(policy))
    from discreet.ledger_postgres.ledger import create_postgres_ledger  # noqa: PLC0415 - an extra

    return create_postgres_ledger(location, **policy_terms(policy), checkpoint=checkpoint)


def _open_move_target(location: LedgerLocation, name: str, checkpoint: Path | None) -> Ledger:
    if isinstance(location, Path):
        return open_target_ledger(location)
    return open_target_postgres_ledger(location, name=name, checkpoint=checkpoint)
