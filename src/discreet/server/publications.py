"""Publications through a service: plans of the owner, or of analysts once the owner has approved them."""

import re
from pathlib import Path

from discreet.curator.curator import Curator
from discreet.curator.data_stamp import path_beside_ledger
from discreet.kernel.errors import Refused
from discreet.policy import Policy
from discreet.publish.manifest import read_manifest, text_digest
from discreet.publish.plan import PublicationPlan
from discreet.publish.publication import Release

_UNSAFE = re.compile(r"[^a-z0-9]+")


def releases_folder(policy: Policy) -> Path:
    """Return the folder of a service's publications, next to the ledger."""
    return path_beside_ledger(policy, ".releases")


def publish_plan(curator: Curator, plan: PublicationPlan) -> Release:
    """Publish a plan in a folder of its own, named after its title and text; publishing the same plan again is free."""
    if curator.policy.data.ledger == ":memory:":
        raise Refused("publish: a ledger in memory has no place for releases. The owner must use a ledger file.")
    folder = releases_folder(curator.policy)
    folder.mkdir(mode=0o700, exist_ok=True)
    return curator.publish(plan, folder / folder_name(plan))


def folder_name(plan: PublicationPlan) -> str:
    """Return the name of a plan's folder.

    >>> folder_name(PublicationPlan.parse('''
    ...     [release]
    ...     name = "../Visits, 2026"
    ...     epsilon = 1
    ...     [tables.all]
    ...     sql = "SELECT COUNT(*) AS n FROM visits"
    ... '''))
    'visits-2026-23e8f3cc'
    """
    name = _UNSAFE.sub("-", plan.release.name.lower()).strip("-")[:100]
    return f"{name}-{text_digest(plan.text)[:8]}".lstrip("-")


def published_folders(policy: Policy) -> tuple[str, ...]:
    """Return the names of all complete publications, sorted."""
    folder = releases_folder(policy)
    return tuple(sorted(path.name for path in folder.iterdir() if _is_complete(path))) if folder.is_dir() else ()


def published_files(policy: Policy, name: str) -> tuple[str, ...]:
    """Return the files of a publication, as its manifest lists them; none if there is no such publication."""
    if name not in published_folders(policy):
        return ()
    return ("manifest.json", *sorted(read_manifest(releases_folder(policy) / name)["files"]))


def published_file(policy: Policy, name: str, file: str) -> Path | None:
    """Return the path of a file that a publication lists; None for every other name, whatever it contains."""
    return releases_folder(policy) / name / file if file in published_files(policy, name) else None


def _is_complete(folder: Path) -> bool:
    try:
        return bool(read_manifest(folder))
    except (ValueError, OSError):
        return False
