"""The same question in other words, as often as one likes."""

import itertools
from collections.abc import Iterator

from discreet.attacks.queries.asking import Question, column

_COUNTS = ("COUNT(*)", "COUNT({secret})", "SUM({secret})", "SUM(1)")
_SECRETS = (
    "{secret} = 1",
    "{secret} >= 1",
    "{secret} > 0",
    "{secret} <> 0",
    "NOT {secret} = 0",
    "NOT {secret} < 1",
    "{secret} + 0 = 1",
    "{secret} * 2 = 2",
    "1 - {secret} = 0",
    "{secret} IN (1)",
    "{secret} BETWEEN 1 AND 2",
)
_TARGETS = ("{target}", "NOT NOT ({target})", "({target}) AND 1 = 1", "({target} OR 1 = 0)")


def paraphrases(secret: str) -> Iterator[Question]:
    """Write the question how many have the secret and fit the target, in ever other words; there is no end to them.

    >>> some = [question.where for question in itertools.islice(paraphrases("ill"), 3)]
    >>> some[:2]
    ['"ill" = 1 AND {target}', '{target} AND "ill" = 1']
    """
    name = column(secret)
    for number in itertools.count():
        # From the second round on, with a condition that is true of everybody.
        always = f" AND {name} < {1000 + number}" if number else ""
        for target, has, what in itertools.product(_TARGETS, _SECRETS, _COUNTS):
            said, counted = has.format(secret=name), what.format(secret=name)
            yield Question(counted, f"{said} AND {target}{always}")
            yield Question(counted, f"{target} AND {said}{always}")
