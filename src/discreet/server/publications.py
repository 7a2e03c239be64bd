"""Publications through a service: plans of the owner, or of analysts once the owner has approved them."""

import re
from pathlib import Path

from discreet.curator.curator import Curator
from discreet.curator.data_stamp import path_beside_ledger
from discreet.kernel.errors import Refused
from discreet.policy import Policy
from discreet.publish.manifest import MANIFEST, read_manifest, text_digest
from discreet.publish.plan import PublicationPlan
from discreet.publish.publication import Release
from discreet.server.release_clock import ReleaseTimes

_UNSAFE = re.compile(r"[^a-z0-9]+")


class Publications:
    """The publications of a policy, in a folder next to the ledger; one that is made now is not there before it leaves.

    >>> from discreet.server.release_clock import ReleaseClock
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": "no-such-ledger.sqlite"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "row", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> publications = Publications(policy, ReleaseTimes(ReleaseClock(tick=0.25, limit=None)))
    >>> publications.names(), publications.files("../visits")
    ((), ())
    """

    def __init__(self, policy: Policy, times: ReleaseTimes) -> None:
        self._times = times
        self._folder = None if policy.data.ledger == ":memory:" else path_beside_ledger(policy, ".releases")

    def publish(self, curator: Curator, plan: PublicationPlan) -> Release:
        """Publish a plan in a folder named after its title and text; publishing the same plan again is free."""
        if self._folder is None:
            raise Refused("publish: a ledger in memory has no place for releases. The owner must use a ledger file.")
        self._folder.mkdir(mode=0o700, exist_ok=True)
        folder = self._folder / folder_name(plan)
        if not _files_of(folder):
            self._times.hide(folder.name)
        return curator.publish(plan, folder)

    def names(self) -> tuple[str, ...]:
        """Return the names of all complete publications, sorted."""
        return tuple(sorted(name for name, folder in self._folders().items() if _files_of(folder)))

    def files(self, name: str) -> tuple[str, ...]:
        """Return the files of a publication, as its manifest lists them; none if there is no such publication."""
        folder = self._folders().get(name)
        return () if folder is None else _files_of(folder)

    def path(self, name: str, file: str) -> Path | None:
        """Return the path of a file that a publication lists; None for every other name, whatever it contains."""
        folder = self._folders().get(name)
        return folder / file if folder and file in _files_of(folder) else None

    def _folders(self) -> dict[str, Path]:
        if self._folder is None or not self._folder.is_dir():
            return {}
        return {path.name: path for path in self._folder.iterdir() if not self._times.is_hidden(path.name)}


def folder_name(plan: PublicationPlan) -> str:
    """Return the name of a plan's folder, which no other plan has.

    >>> folder_name(PublicationPlan.parse('''
    ...     [release]
    ...     name = "../Visits, 2026"
    ...     epsilon = 1
    ...     [tables.all]
    ...     sql = "SELECT COUNT(*) AS n FROM visits"
    ... '''))
    'visits-2026-23e8f3cced8d42ca3e07a145c6a5c1d7'
    """
    name = _UNSAFE.sub("-", plan.release.name.lower()).strip("-")[:100]
    return f"{name}-{text_digest(plan.text)[:32]}".lstrip("-")  # 128 bits, so that nobody can arrange a collision


def _files_of(folder: Path) -> tuple[str, ...]:
    try:
        return (MANIFEST, *sorted(read_manifest(folder)["files"]))
    except (ValueError, OSError):
        return ()
