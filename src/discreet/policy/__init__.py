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

from discreet.policy.columns import Between, Declared, Domain, Keys, Open, References
from discreet.policy.entries import Analyst, Data, Spending
from discreet.policy.explain import explain
from discreet.policy.hazards import hazards
from discreet.policy.places import place_hazards
from discreet.policy.policy import Policy, check_same_promise, read_policy
from discreet.policy.rules import RULES, Hazard
from discreet.policy.tables import Table
from discreet.policy.units import (
    Column,
    ColumnInWindow,
    Person,
    PersonInWindow,
    Protected,
    Public,
    Row,
    Through,
    Unit,
    Window,
)
from discreet.policy.write import write_policy

__all__ = [
    "RULES",
    "Analyst",
    "Between",
    "Column",
    "ColumnInWindow",
    "Data",
    "Declared",
    "Domain",
    "DummyFiles",
    "Hazard",
    "Keys",
    "Open",
    "Person",
    "PersonInWindow",
    "Policy",
    "Protected",
    "Public",
    "References",
    "Row",
    "Spending",
    "Table",
    "Through",
    "Unit",
    "Window",
    "check_same_promise",
    "draft",
    "dummy",
    "explain",
    "hazards",
    "place_hazards",
    "read_policy",
    "write_dummy",
    "write_policy",
]

# What only an owner who writes a policy needs is imported when it is first used: a question does without.
if TYPE_CHECKING:
    from discreet.policy.drafting.draft import draft
    from discreet.policy.dummies.dummy import dummy
    from discreet.policy.dummies.files import DummyFiles, write_dummy
else:
    _HOMES = {
        "DummyFiles": "dummies.files",
        "draft": "drafting.draft",
        "dummy": "dummies.dummy",
        "write_dummy": "dummies.files",
    }

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'discreet.policy' has no attribute {name!r}")
        return getattr(import_module(f"discreet.policy.{_HOMES[name]}"), name)
