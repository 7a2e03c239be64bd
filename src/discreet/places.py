"""Where the ledger of a data set is, a file or a PostgreSQL database, and how it is opened, made and moved there.

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
from discreet.kernel.ledger.chain import gone
from discreet.kernel.ledger.moving import Tell, move_ledger
from discreet.kernel.ledger.sqlite import target_ledger
from discreet.policy import Policy
from discreet.policy.values import URL
from discreet.policy.values import place as checked

Place = Path | str
_SCHEMES = ("postgresql", "postgres")
_NAMING = ("host", "hostaddr", "port", "dbname", "service")  # what says where, and not who or how
_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def read_place(text: str, said: str) -> Place:
    """Read a place from the command line, where `said` is how it is called there.

    >>> read_place("postgresql://ana:secret@db.example/clinic", "--to")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.PolicyError: --to: others can read a password on the command line. Leave it out, ...
    """
    if not URL.match(text):
        return Path(text)
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        raise PolicyError(f"{said}: the URL cannot be read. Write it as postgresql://user@host/database.") from None
    if scheme not in _SCHEMES:
        raise PolicyError(f"{said}: a ledger is a file or in PostgreSQL. Write a path, or postgresql://host/database.")
    try:
        return checked(text, said)
    except ValueError:
        raise PolicyError(
            f"{said}: others can read a password on the command line. Leave it out, and give it in PGPASSWORD or the "
            "file ~/.pgpass."
        ) from None


def address(place: Place) -> str:
    """Write where a place is, without who asks: an absolute path, or a URL.

    >>> address("postgresql://ana@db.example:5433/clinic?sslmode=verify-full")
    'postgresql://db.example:5433/clinic'
    """
    if isinstance(place, Path):
        return str(place.absolute())
    parts = urlsplit(place)
    naming = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name in _NAMING])
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}{f'?{naming}' if naming else ''}"


def line_for(place: Place, base: Path | None) -> str:
    """Write the line that a policy in the folder `base` needs to find its ledger in a place.

    >>> line_for(Path("/srv/clinic/visits.sqlite"), Path("/srv/clinic"))
    'ledger = "visits.sqlite"'
    """
    if isinstance(place, Path):
        place = place.absolute()
        place = place.relative_to(base.absolute()) if base and place.is_relative_to(base.absolute()) else place
    return f"ledger = {json.dumps(str(place), ensure_ascii=False)}"


def head_beside(policy: Policy) -> Path:
    """Return where the head of a policy's ledger in a database lies: beside the policy, under the data set's name.

    >>> policy = Policy.of({
    ...     "data": {"name": "Zoë's visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> head_beside(policy).name
    'zo-s-visits-e213a327bbea.ledger-head'
    """
    name = policy.data.name
    if not _SAFE.fullmatch(name):
        readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        name = f"{readable[:40]}-{sha256(name.encode()).hexdigest()[:12]}"
    return policy.base / f"{name}.ledger-head"


def ledger_at(place: Place, *, name: str, head: Path | None = None) -> Account:
    """Open the ledger of a data set, to look at it, to check it or to move it.

    >>> ledger_at(Path("nowhere.sqlite"), name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: there is no ledger here. Correct the path, ...
    """
    if isinstance(place, Path):
        return open_ledger(place, name=name)
    from discreet.postgres.ledger import open_postgres_ledger  # noqa: PLC0415 - an extra

    return open_postgres_ledger(place, name=name, head=head)


def ledger_of(policy: Policy) -> Account:
    """Open the ledger of a policy to charge it, or make it with the policy's terms if there is none.

    A ledger that was moved is not opened: the error says what to write into the policy.

    >>> from tempfile import mkdtemp
    >>> policy = Policy.of({
    ...     "data": {"name": "visits", "ledger": mkdtemp() + "/visits.sqlite"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with ledger_of(policy) as ledger:
    ...     ledger.name, ledger.budget
    ('visits', Budget(epsilon=1))
    """
    ledger = _open(policy) if _exists(policy.ledger, policy.data.name) else _make(policy)
    try:
        to = ledger.moved
    except BaseException:
        ledger.close()
        raise
    if to is not None:
        ledger.close()
        raise PolicyError(f"ledger: {address(policy.ledger)}: {gone(to)}")
    return ledger


def move_to(source: Account, place: Place, *, name: str, head: Path | None = None, tell: Tell | None = None) -> bool:
    """Move an open ledger to a place where there is none; False if it had arrived there before.

    `tell` hears how many rows were copied, of how many. The same call finishes a move that was interrupted.

    >>> from tempfile import mkdtemp
    >>> from discreet.kernel.loss import Budget
    >>> folder = Path(mkdtemp())
    >>> with create_ledger(folder / "old.sqlite", name="demo", budget=Budget(1)) as ledger:
    ...     move_to(ledger, folder / "new.sqlite", name="demo"), ledger.moved == str(folder / "new.sqlite")
    (True, True)
    """
    with _target(place, name, head) as target:
        try:
            return move_ledger(source, target, to=address(place), tell=tell)
        except LedgerError as error:
            raise LedgerError(_said_once(str(error), source, target)) from error.__cause__


def _said_once(text: str, source: Account, target: Account) -> str:
    """Say what went wrong while both places were in use: each of them has put its name in front."""
    old, new = (account._session.place for account in (source, target))  # noqa: SLF001 - a place has no other name
    both = f"{new}: {old}: "
    return f"from {old} to {new}: {text.removeprefix(both)}" if text.startswith(both) else text


def _open(policy: Policy) -> Account:
    return ledger_at(policy.ledger, name=policy.data.name, head=head_beside(policy))


def _exists(place: Place, name: str) -> bool:
    if isinstance(place, Path):
        return place.exists()
    from discreet.postgres.ledger import has_postgres_ledger  # noqa: PLC0415 - an extra

    return has_postgres_ledger(place, name=name)


def _make(policy: Policy) -> Account:
    try:
        return _create(policy)
    except LedgerError:
        if not _exists(policy.ledger, policy.data.name):
            raise
        return _open(policy)  # somebody else made it at this moment


def _create(policy: Policy) -> Account:
    name, budget, analysts = policy.data.name, policy.budget, policy.analyst_budgets()
    promise, place, head = policy.fingerprint(), policy.ledger, head_beside(policy)
    if isinstance(place, Path):
        if head.exists():
            raise LedgerError(
                f"{address(place)}: there is no ledger here, and {head} remembers one in a database, which this server "
                "used: a new one would be a second account. Write that database into the policy. If the ledger was "
                "moved to a file, serve on the machine that has it, or move it from there to a database."
            )
        return create_ledger(place, name=name, budget=budget, analysts=analysts, promise=promise)
    from discreet.postgres.ledger import create_postgres_ledger  # noqa: PLC0415 - an extra

    return create_postgres_ledger(place, name=name, budget=budget, analysts=analysts, promise=promise, head=head)


def _target(place: Place, name: str, head: Path | None) -> Account:
    if isinstance(place, Path):
        return target_ledger(place)
    from discreet.postgres.ledger import target_postgres_ledger  # noqa: PLC0415 - an extra

    return target_postgres_ledger(place, name=name, head=head)
