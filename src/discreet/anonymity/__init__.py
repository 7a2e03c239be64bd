"""k-anonymity, l-diversity, t-closeness and pseudonyms, and the attacks that they leave open.

measure                                                 disclosure risk and information loss of a table
anonymise, anonymise_and_measure                        generalise a table until it meets k, l and t
Hierarchy, read_hierarchy, intervals, prefixes          generalisation hierarchies
write_report                                            the measurements as an HTML page
pseudonymise, new_key, write_key, read_key              replace identifiers by keyed pseudonyms
"""

from discreet.anonymity.generalisation.anonymisation import AnonymisationResult, anonymise, anonymise_and_measure
from discreet.anonymity.hierarchies.hierarchy import Hierarchy, intervals, prefixes, read_hierarchy
from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.linkage_risk import LinkageRisk, UniqueCombination
from discreet.anonymity.metrics.measurement import measure
from discreet.anonymity.metrics.risk import InformationLoss, Risk
from discreet.anonymity.pseudonyms.keys import new_key, read_key, write_key
from discreet.anonymity.pseudonyms.pseudonymisation import pseudonymise
from discreet.anonymity.report.contents import write_report

__all__ = [
    "AnonymisationResult",
    "AttributeRisk",
    "Hierarchy",
    "InformationLoss",
    "LinkageRisk",
    "Risk",
    "UniqueCombination",
    "anonymise",
    "anonymise_and_measure",
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
