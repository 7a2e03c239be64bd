"""A server for analysts: one curator behind several interfaces, with people, limits and release times.

requests       what is asked, whatever the interface;  errors: why a request is denied, besides refusals and failures
people         names, roles and tokens, kept beside the ledger;  release_clock: when answers leave
service        Service: every interface calls it, and nothing else
executions     one question at a time, in fair turns;  fair_threads: what is free, one thread of each person
two_engines    private data and public tables apart
approvals      questions that wait for the owner;  rehearsal: the columns of an answer, and practice, on dummy data
"""
