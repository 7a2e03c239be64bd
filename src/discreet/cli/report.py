"""discreet report: who is protected, from what and how strongly; and whether a release is as it was published."""

from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.policy.result import COVERAGE
from discreet.audit.result import confidence_text
from discreet.cli.terminal import count_of, exit_on_error, run_policy_audit, usage_error, writing
from discreet.curator.ledger_location import open_existing_ledger
from discreet.html_page import make_printable
from discreet.policy import Policy, write_policy
from discreet.policy.toml import read_policy_text
from discreet.publish.ledger_history import has_row
from discreet.publish.manifest import MANIFEST, read_manifest, text_digest, verify, write_manifest
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.report import HTML, JSON, REGISTRY, Report, record_of, report_of, write_report
from discreet.publish.report.trust_chapters import AuditEvidence

_EXIT_REFUTED, _EXIT_DIFFERS = 1, 2


def report(  # noqa: PLR0913, PLR0917 - options of a command
    policy: Annotated[
        Path | None, typer.Argument(help="The policy file. Its ledger is read; its data are not.", show_default=False)
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="Where to write the report: a folder, or that of a release.", show_default=False
        ),
    ] = None,
    verify_folder: Annotated[
        Path | None, typer.Option("--verify", metavar="DIR", help="Verify the release in a folder instead.")
    ] = None,
    with_audit: Annotated[
        bool, typer.Option("--audit", metavar="", help="Audit the policy on dummy data, and include the result.")
    ] = False,
    runs: Annotated[int, typer.Option(help="With --audit: runs of each query.", min=100)] = 2000,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Overwrite an existing report.")] = False,
) -> None:
    """Report who is protected, from what and how strongly, from policy and ledger; or verify a release.

    Without DIR the report is printed. With DIR it is written as report.html,
    report.json and registry.yaml; in the folder of a release it is about that
    release. Nothing is charged, and neither data nor anything about its files
    is read.

    The report lists every query that the ledger was charged for, with its
    constants (WHERE name = 'Bob') and who asked: read it before you publish it.

    --verify DIR recomputes the hashes of a release: a file that was changed,
    added or removed is named. Compare the hash of the manifest, which is shown,
    with the one that the publisher states. With POLICY, its hash and the ledger
    are compared as well.

    Exit codes: 0 done, 1 the audit refuted a claim, 2 wrong usage or policy,
    or a release that differs.
    """
    if verify_folder is not None:
        if folder is not None or with_audit:
            usage_error("--verify: give its DIR only, and at most the policy. Remove the other arguments.")
        _verify(verify_folder, policy)
        return
    if policy is None:
        usage_error("POLICY is missing. Give the policy file, or --verify DIR.")
    if policy.is_dir():
        usage_error(
            f"POLICY: {policy} is a folder. Give the policy file; to verify a release, write --verify {policy}."
        )
    with exit_on_error():
        declared, text = Policy.load(policy), read_policy_text(policy)
        record = _existing_record(folder, policy, force) if folder is not None else None
        evidence = _run_audit(declared, runs) if with_audit else None
        ledger = open_existing_ledger(declared)
        try:
            made = report_of(declared, ledger, record, policy_text=text, audit=evidence)
        finally:
            if ledger is not None:
                ledger.close()
        if folder is None:
            typer.echo(made.to_text(), nl=False)
        else:
            _write(made, folder, text)
    if evidence is not None and not evidence.holds:
        typer.echo(f"discreet: {make_printable(evidence.verdict)}", err=True)
        raise typer.Exit(_EXIT_REFUTED)


def _existing_record(folder: Path, policy: Path, force: bool) -> ReleaseRecord | None:
    """Return the record of the release in a folder, or None; exit if the folder must not be written to."""
    if not folder.is_dir():
        if folder.exists() or not folder.absolute().parent.is_dir():
            usage_error(f"DIR: {folder} is no folder, and cannot be created. Give another one.")
        return None
    present = [name for name in (HTML, JSON, REGISTRY) if (folder / name).exists()]
    if (folder / MANIFEST).exists() and (problems := verify(folder) or _policy_problems(folder, policy)):
        _exit_with(problems)
    if present and not force:
        usage_error(f"DIR: {folder / present[0]} already exists. Choose another folder, or overwrite it with --force.")
    if JSON not in present:
        return None
    try:
        return record_of(folder)
    except ValueError as error:
        usage_error(f"DIR: {folder}: {error}. Choose another folder.")


def _write(made: Report, folder: Path, policy_text: str) -> None:
    """Write the report; in the folder of a release, renew the manifest."""
    with writing("DIR", folder):
        folder.mkdir(exist_ok=True)
        paths = write_report(made, folder)
        if (folder / MANIFEST).exists() and made.record is not None:
            write_manifest(folder, policy_text=policy_text, plan_text=made.record.plan_text, ledger=made.ledger_point)
    typer.echo(f"Report written to {', '.join(map(str, paths))}")


def _verify(folder: Path, policy: Path | None) -> None:
    if not folder.is_dir():
        usage_error(f"--verify: there is no folder {folder}.")
    with exit_on_error():
        problems = verify(folder)
        if policy is not None and not problems:
            problems = _policy_problems(folder, policy)
    if problems:
        _exit_with(problems)
    count = count_of(len(read_manifest(folder)["files"]), "file")
    typer.echo(f"{folder}: {count} verified; nothing was changed, added or removed")
    typer.echo(f"SHA-256 of {MANIFEST}: {sha256((folder / MANIFEST).read_bytes()).hexdigest()}")
    typer.echo("Compare it with the one that the publisher states: a manifest does not show who wrote it.")


def _policy_problems(folder: Path, policy: Path) -> list[str]:
    """Return whether the policy and the ledger are those of the release."""
    recorded, text = read_manifest(folder), read_policy_text(policy)
    declared = Policy.load(policy)
    texts = text, write_policy(declared)  # the second is that of a release in Python
    problems = [f"{policy}: changed since the release"]
    if recorded["policy"] in map(text_digest, texts):
        problems = []
    if recorded["ledger"] is None:
        return problems
    ledger = open_existing_ledger(declared)
    if ledger is None:
        return [*problems, "ledger: missing"]
    with ledger:
        if not has_row(ledger, recorded["ledger"]["row"], recorded["ledger"]["hash"]):
            problems.append("ledger: it does not contain the row that the release was charged in")
    return problems


def _exit_with(problems: list[str]) -> None:
    for problem in problems:
        typer.echo(f"discreet: {make_printable(problem)}", err=True)
    raise typer.Exit(_EXIT_DIFFERS)


def _run_audit(policy: Policy, runs: int) -> AuditEvidence:
    result = run_policy_audit(policy, runs=runs)
    checks = tuple((check.name, "passed" if check.holds else "FAILED") for check in result.checks)
    return AuditEvidence(
        verdict=result.verdict,
        holds=result.holds,
        runs=result.runs,
        confidence=confidence_text(result.confidence),
        rows=tuple(result.summary_rows()),
        checks=checks,
        coverage=COVERAGE,
    )
