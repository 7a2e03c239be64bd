"""A person and their role."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum

from discreet.kernel.event import OWNER


class Role(Enum):
    """What a person may do.

    >>> Role("auditor")
    <Role.AUDITOR: 'auditor'>
    """

    ANALYST = "analyst"  # asks within the limits of the policy
    AUDITOR = "auditor"  # reads the ledger; neither asks nor sees answers
    OWNER = "owner"  # asks, publishes, approves, reads the ledger


@dataclass(frozen=True)
class Person:
    """Somebody with a token; `until` is the last day on which it is valid, in UTC.

    >>> Person("ana", Role.ANALYST).by, Person("Dr. Vogel", Role.OWNER).by
    ('ana', 'owner')
    """

    name: str
    role: Role
    until: date | None = None

    @property
    def by(self) -> str:
        """The name under which the ledger charges their questions."""
        return OWNER if self.role is Role.OWNER else self.name

    @property
    def is_expired(self) -> bool:
        """Whether the last day of the token is over."""
        return self.until is not None and datetime.now(UTC).date() > self.until
