"""Why a request is denied. Refusals, failures and errors of the ledger are those of the kernel.

DiscreetError
├── AccessDenied      unknown name, wrong token, revoked or expired: always the same message
├── NotAllowed        the role of this person does not include the request
├── RateLimited       too many requests or failed logins; says when to try again
└── Refused
    └── ApprovalNeeded    the owner must approve the question first; nothing is charged
"""

from discreet.kernel.errors import DiscreetError, Refused

_DENIED = "access denied: unknown name or token, or it was revoked or has expired. Ask the owner for a token."


class AccessDenied(DiscreetError):  # noqa: N818 - like Refused
    """Unknown name, wrong token, revoked or expired; the message does not say which.

    >>> str(AccessDenied()).split(":")[0]
    'access denied'
    """

    def __init__(self) -> None:
        super().__init__(_DENIED)


class NotAllowed(DiscreetError):  # noqa: N818 - like Refused
    """A request that the person's role does not include."""


class RateLimited(DiscreetError):  # noqa: N818 - like Refused
    """Too many requests, or too many failed logins; `seconds` is how long to wait.

    >>> RateLimited("requests: too many.", seconds=2.5).seconds
    2.5
    """

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class ApprovalNeeded(Refused):
    """A question that the owner must approve first; `approval` identifies it. Nothing is charged.

    >>> ApprovalNeeded("epsilon: wait for approval.", approval="5e1f").approval
    '5e1f'
    """

    def __init__(self, message: str, approval: str) -> None:
        super().__init__(message)
        self.approval = approval
