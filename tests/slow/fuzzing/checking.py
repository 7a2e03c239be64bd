"""What must hold for every query: an answer or a refusal, in words that are ours, whatever the rows are."""

import json
import logging
import re
import time
import warnings
from dataclasses import dataclass, replace

import discreet as dc
from discreet.curator.curator import Curator
from discreet.kernel.question import SelectedGroups
from discreet.query.passes import plan_query
from fuzzing.databases import MARKERS, WORD, opened

SLOWEST = 5.0  # seconds of computing
_LONGEST = 600  # characters of a refusal
_SHAPE = re.compile(
    r"(?:line \d+(?:, [^:]+)?: |(?:epsilon|delta|rho|loss|budget|OPTIONS|EXPLAIN|WITHIN|not enough budget left): |"
    r"the query has )"
    r".+[.?!…;] .+[.?!]|sql must .+\."
)
_FOREIGN = (
    *("Binder Error", "Catalog Error", "Conversion Error", "Parser Error", "Out of Range", "Invalid Input", "INTERNAL"),
    *("Traceback", "sqlglot", "duckdb", "DuckDB", "exp.", "0x", "object at", ".py", "site-packages", "/usr/", "/tmp/"),
    *("<class", "Fraction(", "Decimal(", "datetime", "TokenType", "NoneType", "int()", "Exceeds the limit", "codec"),
    *(
        "Expression",
        "DType",
        "Error:",
        "__",
        "Python",
        "pyarrow",
        "base 10",
        "unpack",
        "positional argument",
        "subscript",
        "lambda",
    ),
)
_LOST = (
    "the query is not supported. Nothing",
    "this expression is not supported",
    "post-processing of this query cannot",
)
_INNER = re.compile(r"\b[afhkmrstux]\d\b|\bleaf \d|\"\.\w+")
_LISTED = re.compile(r"([\d,]+) declared groups")
_MOST_GROUPS = 5_000  # more are explained only: to show them takes seconds
_CHOOSES = re.compile(
    r"\b(WHERE|HAVING|QUALIFY|DISTINCT|GROUP|JOIN|UNION|INTERSECT|EXCEPT|CROSS|LIMIT|OFFSET)\b|FROM \w+,"
)


@dataclass(frozen=True)
class Outcome:
    """How a query ended, how long it took, and what should not have happened."""

    ending: str
    seconds: float
    problems: tuple[str, ...] = ()


class Checker:
    """Asks queries of the databases, and notes what does not hold."""

    def __init__(self):
        self._open, self._log, self._problems, self._turn = {}, _Log(), [], 0
        logging.getLogger().addHandler(self._log)

    def close(self):
        """Let go of the databases, and of the log."""
        logging.getLogger().removeHandler(self._log)
        self._close(list(self._open))

    def check(self, query, state):
        """Ask a query of the odd database and, if that explains it, of another one."""
        self._problems, self._log.told = [], []
        self._turn += 1
        self._renew(query.policy)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            ending, seconds = self._check(query, state)
        self._problems += [f"accident: {text}" for text in (*self._log.told, *(str(each.message) for each in warned))]
        return Outcome(ending, seconds, tuple(self._problems))

    def _check(self, query, state):
        begin = time.process_time()
        said, explained = self._outcome(query, "odd", "explain")
        seconds = [time.process_time() - begin]
        ending = type(said).__name__
        if explained:
            self._check_words(repr(said), query, shape=False)
            json.dumps(said.to_dict(), allow_nan=False)
        if explained and _groups(said) <= _MOST_GROUPS:
            ending, took = self._check_answers(query, state, said)
            seconds += took
        elif not explained and len(query.sql) % 8 == 0 and not query.sql.lstrip().upper().startswith("EXPLAIN"):
            self._same("ask", str(said), str(self._outcome(query, "odd", "ask")[0]))
        if max(seconds) > SLOWEST:
            self._problems.append(f"slow: {max(seconds):.1f} s")
        return ending, max(seconds)

    def _outcome(self, query, state, verb):
        """Return what a query ends with, and whether that is an answer; a refusal must cost nothing."""
        curator = self._anew(self._curator(query.policy, state))
        before = curator.ledger.spent()
        try:
            found = getattr(curator, verb)(query.sql, **query.given)
        except dc.Refused as refusal:
            self._check_words(str(refusal), query)
            found = refusal
        except Exception as error:  # noqa: BLE001 - nothing else may happen, whatever it is
            self._problems.append(f"{type(error).__name__} from {verb} ({state}): {error}")
            self._close([(query.policy, state)])  # one that failed three times would answer no more
            return error, False
        answered = not isinstance(found, dc.Refused)
        most = before + found.loss if answered and verb == "ask" else before  # less for what was answered before
        now = curator.ledger.spent()
        if not (before.rho <= now.rho <= most.rho and before.delta <= now.delta <= most.delta):
            self._problems.append("charged otherwise than was said")
        return found, answered

    def _anew(self, curator):
        """Return a curator that remembers nothing of earlier queries, which the other databases were not asked."""
        data = curator.policy.data.model_copy(update={"version": f"query {self._turn}"})
        return Curator(replace(curator.policy, data=data), curator._engine, curator.ledger)

    def _check_answers(self, query, state, said):
        begin = time.process_time()
        (one, answered), took = self._outcome(query, "odd", "ask"), time.process_time() - begin
        (other, also), both = self._outcome(query, state, "ask"), time.process_time() - begin
        self._same("ending", type(one), type(other))
        if answered and also:
            self._check_answer(query, one, said)
            self._same("columns", one.table.schema, other.table.schema)
            self._same("names of noise", one.noise.keys(), other.noise.keys())
            if not any("chosen privately" in sentence for sentence in said.bounds):  # by noisy numbers
                self._same("bounds", one.bounds, other.bounds)
            self._check_rows(query, one, other)
            return "answered", [took, both - took]
        self._same("words", _said(one), _said(other))
        return type(one).__name__, [took, both - took]

    def _check_answer(self, query, answer, said):
        if answer.loss != said.cost.loss:
            self._problems.append("another price than was explained")
        if WORD.lower() in repr(answer).lower():
            self._problems.append("shows a value that one person owns")
        self._check_words(" ".join((*answer.notes, *answer.bounds, *answer.noise.values())), query, shape=False)

    def _check_rows(self, query, one, other):
        """Compare what noise took no part in, where noisy numbers and discovered groups do not choose the rows."""
        free = [name for name in one.table.column_names if name not in one.margins]
        shown = [sorted(map(repr, answer.table.select(free).to_pylist())) for answer in (one, other)]
        if shown[0] == shown[1]:
            return
        curator = self._curator(query.policy, "odd")
        limits = {name: query.given.get(name) for name in ("groups", "rows")}
        plan = plan_query(query.sql, curator.policy, curator._engine, **limits)
        discovers = any(isinstance(part.question.groups, SelectedGroups) for part in plan.releases)
        if not discovers and not _CHOOSES.search(plan.postprocess.sql):
            self._problems.append("rows that depend on the data")

    def _check_words(self, text, query, *, shape=True):
        if MARKERS.search(text) and not MARKERS.search(query.sql):
            self._problems.append(f"tells a value of the data: {text}")
        foreign = [word for word in _FOREIGN if word in text and word not in query.sql]
        if foreign:
            self._problems.append(f"words of the machinery ({foreign[0]}): {text[:400]}")
        if shape and (not _SHAPE.fullmatch(text) or len(text) > _LONGEST or not text.isprintable()):
            self._problems.append(f"not in the shape of a refusal: {text[:800]!r}")
        inner = [word for word in _INNER.findall(text) if word not in query.sql]
        if shape and inner:
            self._problems.append(f"names that the query does not have ({inner[0]}): {text}")
        if shape and any(words in text for words in _LOST):
            self._problems.append(f"lost: {text}")

    def _same(self, what, one, other):
        if one != other:
            self._problems.append(f"depends on the rows, {what}: {one} / {other}")

    def _curator(self, policy, state):
        if (policy, state) not in self._open:
            self._open[policy, state] = opened(policy, state)
        return self._open[policy, state]

    def _renew(self, policy):
        """Close the databases of a policy if half of a delta is spent: the next questions open them anew."""
        known = [key for key in self._open if key[0] == policy]
        if any(2 * self._open[key].ledger.spent().delta > self._open[key].policy.budget.discover for key in known):
            self._close(known)

    def _close(self, keys):
        for key in keys:
            self._open.pop(key).close()


def _groups(explanation):
    """Return how many groups would be listed."""
    return max((int(number.replace(",", "")) for number in _LISTED.findall(explanation.groups)), default=1)


def _said(refusal):
    """Return the words of a refusal, without the remaining budget: the ledgers differ."""
    return str(refusal).partition(" Remaining")[0]


class _Log(logging.Handler):
    """What the owner's log was told."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.told = []

    def emit(self, record):
        self.told.append(logging.Formatter().format(record))
