"""Stored answers that were built before, valid only while the ledger has not changed since.

Building an answer again from its noisy totals takes some milliseconds, and dashboards ask the same over and over.
The ledger's last row decides: its hash depends on all rows, and it is read, and compared with the checkpoint, every
time. The rows of answers that have not left do not count, or else how long a stored answer takes would show when they
were ready. Answers from public tables, whose rows may change, are not kept.
"""

from collections import OrderedDict
from threading import Lock

from discreet.answer.model import Answer
from discreet.server.release_clock import TimedLedger
from discreet.server.requests import QueryRequest

LedgerState = tuple[int, str, int]  # see TimedLedger.visible_state
_MAX_ANSWERS = 1000
_MAX_BYTES = 1 << 26  # of all tables together


class AnswerCache:
    """Keeps answers that were read from the ledger, by analyst and request, for as long as the ledger is the same.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> cache = AnswerCache(TimedLedger(memory_ledger(name="demo", budget=Budget(1))))
    >>> cache.find("ana", QueryRequest("SELECT 1 AS one"))[0] is None
    True
    """

    def __init__(self, ledger: TimedLedger) -> None:
        self._ledger = ledger
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._state: LedgerState = (0, "", 0)
        self._bytes, self._lock = 0, Lock()

    def find(self, by: str, request: QueryRequest) -> tuple[Answer | None, LedgerState]:
        """Return the answer if it is still valid, and the state of the ledger, with which a new one can be added."""
        state = self._ledger.visible_state()
        with self._lock:
            if state != self._state:
                self._answers.clear()
                self._state, self._bytes = state, 0
            name = _name_of(by, request)
            if name in self._answers:
                self._answers.move_to_end(name)
            return self._answers.get(name), state

    def add(self, by: str, request: QueryRequest, answer: Answer, state: LedgerState) -> None:
        """Keep an answer that was built after the ledger was in this state."""
        size = answer.table.nbytes
        with self._lock:
            if answer.receipt is None or state != self._state or size > _MAX_BYTES // 4:
                return
            replaced = self._answers.pop(name := _name_of(by, request), None)
            self._bytes += size - (replaced.table.nbytes if replaced else 0)
            self._answers[name] = answer
            while self._bytes > _MAX_BYTES or len(self._answers) > _MAX_ANSWERS:
                _, oldest = self._answers.popitem(last=False)
                self._bytes -= oldest.table.nbytes


def _name_of(by: str, request: QueryRequest) -> str:
    return repr((request.sql, request.key, *sorted(request.arguments(by).items())))
