"""The owner's policy: a TOML file that says who is protected, how much may be learned, and what the tables are.

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

toml        the text: numbers as they were written, and the line of every key
problems    everything that is wrong, in one error
values      single values;  columns, entries: the keys of each section;  units: who owns a row
read        the parts of a file, each read apart;  check: what must hold between them
policy      Policy;  write: its text;  explain: the promise in sentences
rules       what a lint can find;  hazards: in the policy (names: what those of columns suggest);  places: around it;
            stored: between it and the schemas of its sources
marks       values that are still to be filled in
drafting    a first policy, from schemas or metadata;  dummies: fake data that fit a policy
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.policy.column_domains import Between, DeclaredColumn, Domain, Keys, NoDomain, References
from discreet.policy.declarations import (
    ColumnUnit,
    DeclaredTable,
    NoUnit,
    ParentTableUnit,
    Person,
    PersonInWindow,
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
from discreet.policy.model import Policy, check_same_unit, read_policy, write_policy

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
    "Person",
    "PersonInWindow",
    "Policy",
    "PrivacyUnit",
    "References",
    "RowUnit",
    "UnitDeclaration",
    "Window",
    "WindowUnit",
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

# What only an owner who writes a policy needs is imported when it is first used: a question does without.
if TYPE_CHECKING:
    from discreet.policy.drafting.draft import draft
    from discreet.policy.dummy_data.dummy_files import DummyFiles, write_dummy
    from discreet.policy.dummy_data.dummy_tables import dummy
else:
    _HOMES = {
        "DummyFiles": "dummy_data.dummy_files",
        "draft": "drafting.draft",
        "dummy": "dummy_data.dummy_tables",
        "write_dummy": "dummy_data.dummy_files",
    }

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'discreet.policy' has no attribute {name!r}")
        return getattr(import_module(f"discreet.policy.{_HOMES[name]}"), name)
