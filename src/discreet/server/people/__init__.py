"""People who may ask, read the ledger or act for the owner: names, roles, tokens and their verifiers.

person         Role, Person;  token_secrets: tokens of 256 random bits, their hashes and SCRAM verifiers
people_file    the file of people beside the ledger;  failure_limit: limits on failed logins
registry       People: who a token or a SCRAM proof belongs to; adding and revoking
"""

from discreet.server.people.person import Person, Role
from discreet.server.people.registry import NewToken, People
from discreet.server.people.token_secrets import ScramVerifier

__all__ = ["NewToken", "People", "Person", "Role", "ScramVerifier"]
