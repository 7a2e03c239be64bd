"""Answers and explanations as text of 80 columns: value ± margin, with the digits that matter."""

import json
import math
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.kernel.loss import NOTHING, Loss

if TYPE_CHECKING:
    from discreet.answer import Answer, Explanation

WIDTH = 80
ROWS = 40
_LONGEST = 40  # characters of a text in one cell
_DIGITS = 12  # after the point; and before it, of a float
_GAP = "  "
_MIDNIGHT = time()
LEGEND = "± is what the noise can have changed, at 95 %"
ROUGH = "~ marks margins above a quarter"
NO_MARGIN = "± ? is unknown"


@dataclass(frozen=True)
class Cell:
    """One entry of the table: a text, or a noisy number with its margin and whether that is too wide."""

    value: str
    margin: str = ""
    rough: bool = False

    def __str__(self) -> str:
        return f"{'~' if self.rough else ''}{self.value}" + (f" ± {self.margin}" if self.margin else "")


@dataclass(frozen=True)
class Shown:
    """One column as it is shown."""

    name: str
    cells: list[Cell]
    right: bool


def short(number: Fraction | float, digits: int = 4) -> str:
    """Write a number for reading, not for reckoning.

    >>> short(Fraction(1, 40)), short(Fraction(1, 10**9)), short(1234567)
    ('0.025', '1e-9', '1.235e6')
    """
    mantissa, mark, power = f"{float(number):.{digits}g}".partition("e")
    return f"{mantissa}e{int(power)}" if mark else mantissa


def rounded(value: float, margin: float | None) -> tuple[str, str]:
    """Write a value and its margin to the margin's two leading digits; the margin is rounded up.

    >>> rounded(123_456, 1234), rounded(12.3456, 0.123), rounded(731, 30)
    (('123,500', '1,300'), ('12.35', '0.13'), ('731', '30'))
    """
    if not math.isfinite(value) or margin is None:
        return _number(value), "?"
    if margin == 0:
        return _number(value), "0"
    place = math.floor(math.log10(margin)) - 1
    if isinstance(value, int) and float(margin).is_integer():
        place = max(place, 0)
    if place < -_DIGITS or margin >= 10**15 or (abs(value) >= 10**15 and not isinstance(value, int)):
        return _number(value), short(margin, digits=2)
    # A margin such as 0.13 is a little more than 13 hundredths only because it is a float.
    up = math.ceil(round(margin / 10.0**place, 6))
    if place >= 0:
        return f"{int(round(value, -place)):,}", f"{up * 10**place:,}"
    exact = f"{value:,}" if isinstance(value, int) else f"{round(value, -place) + 0.0:,.{-place}f}"
    return exact, f"{up * 10.0**place:,.{-place}f}"


def is_reliable(value: Any, margin: float | None) -> bool | None:
    """Tell whether a margin is at most a quarter of its value; None without a number or a margin.

    >>> is_reliable(100, 25), is_reliable(-3, 25), is_reliable(None, 25)
    (True, False, None)
    """
    return margin <= abs(float(value)) / 4 if is_number(value) and margin is not None else None


def printable(text: str) -> str:
    r"""Write a text on one line, with what cannot be seen spelt out: keys are data, and may hold anything.

    >>> print(printable("a\nb"))
    a\nb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns_shown(answer: "Answer") -> list[Shown]:
    """Return the columns of the first rows as texts."""
    top = answer.table.slice(0, ROWS)
    shown = []
    for name in top.column_names:
        values = top.column(name).to_pylist()
        margins = answer.margins.get(name)
        if margins is None:
            cells = [Cell(text) for text in key_texts(values)]
        else:
            cells = [_noisy(value, margin) for value, margin in zip(values, margins[:ROWS], strict=True)]
        right = margins is not None or any(is_number(value) for value in values)
        shown.append(Shown(clipped(name), cells, right))
    return shown


def legend(columns: Sequence[Shown]) -> str:
    """Return the sentence that explains the signs that occur, if any does."""
    cells = [cell for column in columns for cell in column.cells if cell.margin]
    parts = [LEGEND] if any(cell.margin != "?" for cell in cells) else []
    parts += [ROUGH] if any(cell.rough for cell in cells) else []
    parts += [NO_MARGIN] if any(cell.margin == "?" for cell in cells) else []
    return f"{'; '.join(parts)}." if parts else ""


def more_rows(answer: "Answer") -> str:
    """Say how many rows are not shown, if any."""
    hidden = len(answer) - ROWS
    return f"… {hidden:,} more row{'s' if hidden > 1 else ''}" if hidden > 0 else ""


def paid(answer: "Answer") -> list[str]:
    """Say what the answer cost, and what an earlier one has saved of it."""
    return [f"Price: {answer.price}; ledger {printable(answer.receipt.id)}.", *_saved(answer)]


def _saved(answer: "Answer") -> list[str]:
    if answer.paid is None or answer.paid == answer.price.loss:
        return []
    if answer.paid == NOTHING:
        return ["Asked before: nothing was charged."]
    return [f"Asked before, in part or less exactly: {_charged(answer.paid)} was charged."]


def _charged(loss: Loss) -> str:
    amount = f"rho {short(loss.rho)}" if loss.epsilon is None else f"epsilon {short(loss.epsilon)}"
    return amount + (f" and delta {short(loss.delta)}" if loss.delta else "")


def answer_text(answer: "Answer") -> str:
    """Return an answer as text."""
    columns = columns_shown(answer)
    lines = _table(columns)
    lines += [line for line in (more_rows(answer), "" if len(answer) else "(no rows)") if line]
    below = [*spelled(answer), legend(columns), *answer.touched, *paid(answer), *answer.bounded, *answer.notes]
    return "\n".join([*lines, "", *_wrapped(below)])


def spelled(answer: "Answer") -> list[str]:
    """Write out lists and counts that are too long for a cell."""
    told = []
    for name, margins in answer.margins.items():
        values = answer.table.column(name).to_pylist()[:ROWS]
        for place, (value, margin) in enumerate(zip(values, margins[:ROWS], strict=True)):
            if isinstance(value, str) and len(value) > _LONGEST:
                row = f" in row {place + 1}" if len(answer) > 1 else ""
                told.append(f"{clipped(name)}{row}: {_items(value)}" + (f", each ± {margin:,.0f}." if margin else "."))
    return told


def _items(text: str) -> str:
    """Write a list, or values with their counts, without the signs of JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return printable(text)
    if isinstance(found, dict):
        return ", ".join(f"{printable(key)} {number:,}" for key, number in found.items())
    return ", ".join(printable(str(item)) for item in found) if isinstance(found, list) else printable(text)


def explanation_text(explanation: "Explanation") -> str:
    """Return an explanation as text."""
    parts = [would_cost(explanation), expected(explanation), [explanation.groups, *explanation.bounded]]
    lines = [_wrapped(part) for part in [*parts, explanation.notes]]
    if explanation.sql:
        lines.append(["The engine runs:", *(_GAP + printable(line) for line in explanation.sql.splitlines())])
    return "\n\n".join("\n".join(part) for part in lines if part)


def would_cost(explanation: "Explanation") -> list[str]:
    """Say what a question would cost."""
    charged, price = explanation.paid, explanation.price
    if charged is None or charged == price.loss:
        return [f"Would cost {price}. No data was read."]
    if charged == NOTHING:
        return [f"This question was answered before: free. It has cost {price}. No data was read."]
    return [f"Would cost {_charged(charged)}, and with what was paid before {price}. No data was read."]


def expected(explanation: "Explanation") -> list[str]:
    """Say of each noisy column how exact it would be."""
    told = []
    for column in explanation.columns:
        known = "no margin is known" if column.margin is None else f"± {rounded(0.0, column.margin)[1]} at 95 %"
        told.append(f"{clipped(column.name)}: {column.depends or known}; {column.noise}.")
    return told


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}"


def is_number(value: Any) -> bool:
    """Tell whether a value of a table is a number; a boolean is none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _noisy(value: Any, margin: float | None) -> Cell:
    if isinstance(value, date) and margin is not None:
        return Cell(key_texts([value])[0], f"{math.ceil(margin):,} days")
    if not is_number(value):
        return Cell(key_texts([value])[0], "" if value is None or margin is None else f"{math.ceil(margin):,} each")
    number = value if isinstance(value, int) else float(value)
    return Cell(*rounded(number, margin), rough=is_reliable(number, margin) is False)


def key_texts(values: list[Any]) -> list[str]:
    """Write values that carry no noise, each on one line and not too long; times that are all midnight as days.

    >>> key_texts([datetime(2009, 2, 1), None]), key_texts([True, 0.5, "a"])
    (['2009-02-01', 'NULL'], ['true', '0.5', 'a'])
    """
    times = [value for value in values if isinstance(value, datetime)]
    if all(moment.time() == _MIDNIGHT for moment in times):
        values = [value.date() if isinstance(value, datetime) else value for value in values]
    return [_key(value) for value in values]


def _key(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
    return clipped(str(value))


def clipped(text: str) -> str:
    """Write a name on one line and not too long."""
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _width(text: str) -> int:
    """Count the places that a text takes: wide letters two, marks above others none."""
    marks = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def _fitted(column: Shown) -> list[str]:
    """Return header and cells of one column, padded to one width, the margins below each other."""
    widest = max((_width(cell.margin) for cell in column.cells), default=0)
    texts = [
        str(cell) + " " * ((widest - _width(cell.margin)) if cell.margin else (widest + 3 if widest else 0))
        for cell in column.cells
    ]
    width = max(_width(text) for text in [column.name, *texts])
    spaces = [" " * (width - _width(text)) for text in [column.name, *texts]]
    return [
        space + text if column.right else text + space
        for text, space in zip([column.name, *texts], spaces, strict=True)
    ]


def _table(columns: Sequence[Shown]) -> list[str]:
    """Return the lines of a table; columns that do not fit follow below, beside the first one again."""
    fitted = [_fitted(column) for column in columns]
    blocks: list[list[list[str]]] = []
    for texts in fitted:
        if blocks and sum(_width(one[0]) + len(_GAP) for one in [*blocks[-1], texts]) - len(_GAP) <= WIDTH:
            blocks[-1].append(texts)
        else:
            blocks.append([fitted[0], texts] if blocks else [texts])
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        lines += [_GAP.join(row).rstrip() for row in zip(*block, strict=True)]
    return lines


def _wrapped(sentences: Iterable[str]) -> list[str]:
    return [line for sentence in sentences for line in textwrap.wrap(printable(sentence), WIDTH)]
