"""The owner's policy: a TOML file that declares the privacy unit, the budget, and the tables with their domains.

>>> from discreet.policy import Policy, hazards
>>> policy = Policy.parse('''
...     [data]
...     name = "visits"
...     [budget]
...     epsilon = 20
...     [tables.visits]
...     source = "visits.csv"
...     unit = "patient"
...     columns = { patient = { type = "integer" } }
... ''')
>>> [hazard.id for hazard in hazards(policy)]
['D005', 'D015']

toml             exact numbers and the line of each key
problems         all mistakes of a policy in one error; values still to be filled in
validators       single values;  column_domains, entries: the keys of each section;  declarations: units and tables
parser           reads each section on its own;  consistency: checks across sections
model            Policy, read from TOML and written as TOML;  guarantee: its privacy guarantee in sentences
hazard_rules     the rules of the lint;  hazards: findings in the policy (name_patterns: what column names suggest);
                 file_hazards: findings in its files and stored types
drafting         a first policy, from schemas or metadata;  dummy_data: dummy tables that fit a policy
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.policy.column_domains import Between, DeclaredColumn, Domain, Keys, NoDomain, References
from discreet.policy.declarations import (
    ColumnUnit,
    DeclaredTable,
    NoUnit,
    ParentTableUnit,
    PersonInWindow,
    PersonUnit,
    PrivacyUnit,
    RowUnit,
    UnitDeclaration,
    Window,
    WindowUnit,
)
from discreet.policy.entries import AnalystEntry, BudgetEntry, DataEntry
from discreet.policy.file_hazards import find_file_hazards
from discreet.policy.guarantee import explain
from discreet.policy.hazard_rules import RULES, Hazard
from discreet.policy.hazards import hazards
from discreet.policy.model import Policy, check_same_population, check_same_unit, read_policy, write_policy

__all__ = [
    "RULES",
    "AnalystEntry",
    "Between",
    "BudgetEntry",
    "ColumnUnit",
    "DataEntry",
    "DeclaredColumn",
    "DeclaredTable",
    "Domain",
    "DummyFiles",
    "Hazard",
    "Keys",
    "NoDomain",
    "NoUnit",
    "ParentTableUnit",
    "PersonInWindow",
    "PersonUnit",
    "Policy",
    "PrivacyUnit",
    "References",
    "RowUnit",
    "UnitDeclaration",
    "Window",
    "WindowUnit",
    "check_same_population",
    "check_same_unit",
    "draft",
    "dummy",
    "explain",
    "find_file_hazards",
    "hazards",
    "read_policy",
    "write_dummy",
    "write_policy",
]

# Drafting and dummy data are imported on first use, because answering a query does not need them.
if TYPE_CHECKING:
    from discreet.policy.drafting.draft import draft
    from discreet.policy.dummy_data.dummy_files import DummyFiles, write_dummy
    from discreet.policy.dummy_data.dummy_tables import dummy
else:
    _LAZY_MODULES = {
        "DummyFiles": "dummy_data.dummy_files",
        "draft": "drafting.draft",
        "dummy": "dummy_data.dummy_tables",
        "write_dummy": "dummy_data.dummy_files",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LAZY_MODULES:
            raise AttributeError(f"module 'discreet.policy' has no attribute {name!r}")
        return getattr(import_module(f"discreet.policy.{_LAZY_MODULES[name]}"), name)
