"""Publishing: release plans, tables that add up, synthetic rows, and a report that anybody can verify.

plan        a publication plan: a TOML file with tables and synthetic rows
publication the plan is charged as a whole, released and written
dry_run     its cost and margins, before anything is charged
record      what a release contains: its parts, their cost and their margins
report      who is protected, from what and how strongly: HTML, JSON, and YAML for a registry of deployments
manifest    SHA-256 of every file of a release, written and verified
ledger_history  what the owner did to a ledger
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "ColumnDescription",
    "ContributionBound",
    "MarginSummary",
    "PublicationForecast",
    "PublicationPlan",
    "Release",
    "ReleasePart",
    "ReleaseRecord",
    "Report",
    "SizeClass",
    "forecast",
    "publish",
    "report_of",
    "verify",
    "write_manifest",
    "write_report",
]

_EXPORTS = {
    "dry_run": ("PublicationForecast", "forecast"),
    "plan": ("PublicationPlan",),
    "publication": ("Release", "publish"),
    "manifest": ("verify", "write_manifest"),
    "record": ("ColumnDescription", "ContributionBound", "MarginSummary", "ReleasePart", "ReleaseRecord", "SizeClass"),
    "report.report": ("Report", "report_of", "write_report"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

if TYPE_CHECKING:
    from discreet.publish.dry_run import PublicationForecast, forecast
    from discreet.publish.manifest import verify, write_manifest
    from discreet.publish.plan import PublicationPlan
    from discreet.publish.publication import Release, publish
    from discreet.publish.record import (
        ColumnDescription,
        ContributionBound,
        MarginSummary,
        ReleasePart,
        ReleaseRecord,
        SizeClass,
    )
    from discreet.publish.report.report import Report, report_of, write_report
else:

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'discreet.publish' has no attribute {name!r}")
        value = getattr(import_module(f"discreet.publish.{_MODULE_OF[name]}"), name)
        globals()[name] = value  # __getattr__ is not called for this name again
        return value


def __dir__() -> list[str]:
    return __all__
