"""k-anonymity and its kin: measured, reached by generalisation, and what they do not protect against.

Imported when it is first used.

    measure                                                 how well a table hides people: k, l, t, and who links them
    anonymise, attempt                                      make a table coarser until classes are large and diverse
    Hierarchy, read_hierarchy, intervals, prefixes          how values become coarser
    write_report                                            what was found, as a page
    pseudonymise, new_key, write_key, read_key              names replaced by keyed pseudonyms
"""

from discreet.anonymity.generalising.anonymising import Attempt, anonymise, attempt
from discreet.anonymity.labels.hierarchy import Hierarchy, intervals, prefixes, read_hierarchy
from discreet.anonymity.measuring.exposure import Exposure
from discreet.anonymity.measuring.linkage import Linkage
from discreet.anonymity.measuring.loss import InformationLoss
from discreet.anonymity.measuring.measuring import measure
from discreet.anonymity.measuring.risk import Risk
from discreet.anonymity.measuring.uniqueness import Alone
from discreet.anonymity.pseudonyms.keys import new_key, read_key, write_key
from discreet.anonymity.pseudonyms.pseudonyms import pseudonymise
from discreet.anonymity.showing.page import write_report

__all__ = [
    "Alone",
    "Attempt",
    "Exposure",
    "Hierarchy",
    "InformationLoss",
    "Linkage",
    "Risk",
    "anonymise",
    "attempt",
    "intervals",
    "measure",
    "new_key",
    "prefixes",
    "pseudonymise",
    "read_hierarchy",
    "read_key",
    "write_key",
    "write_report",
]
