"""The report of a policy and of a release: from policy, ledger and release record alone, never from the data.

odds                 how often an outsider can be right, from epsilon and delta or from rho
number_text          numbers, rounded so that bounds remain bounds, with their unit
content              chapters of sentences, tables and exact facts;  html_report, text_report: two ways to show them
guarantee_chapters   who is protected, from what; every parameter; epsilon at other deltas
release_chapters     what was released, how accurate it is, and the data dictionary
ledger_chapters      the budget, its history, and every charge (ledger_events: mechanism, scale, sensitivity)
trust_chapters       whom one has to trust, evidence, hashes
standard_hazards     the chapter on known hazards of differential privacy (hazard_answers: the list and its answers)
csvw_metadata        the columns of the released CSV files, as CSV on the Web
registry             a record for OpenDP's registry of deployments (yaml_text writes YAML)
report               the report as a whole
"""
