"""Answers and explanations as plain text, 80 columns wide: value ± margin of error."""

import json
import math
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.answer.bias import Bias
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.privacy.conversion import to_epsilon

if TYPE_CHECKING:
    from discreet.answer.model import Answer, Cost, Explanation

WIDTH = 80
MAX_ROWS = 40
_MAX_CELL_LENGTH = 40  # characters of a text in one cell
_MAX_DIGITS = 12  # after the point; and before it, of a float
_COLUMN_GAP = "  "
_MIDNIGHT = time()
MARGIN_LEGEND = "± is the 95 % margin of error from privacy noise"
UNRELIABLE_LEGEND = "~ unreliable: the margin exceeds 25 % of the value"
UNRELIABLE_WITH_BIAS_LEGEND = "~ unreliable: margin and bias exceed 25 % of the value"
INTEGER_DIVISION_NOTE = "A margin of 0: integer division truncates. Write 1.0 * a / b for a ratio."
UNKNOWN_MARGIN_LEGEND = "± ?: margin unknown"


@dataclass(frozen=True)
class Cell:
    """One entry of the table: a text, or a noisy number with its margin, its bias and whether these are too large."""

    value: str
    margin: str = ""
    unreliable: bool = False
    bias: Bias | None = None

    def __str__(self) -> str:
        return f"{'~' if self.unreliable else ''}{self.value}" + (f" ± {self.margin}" if self.margin else "")


@dataclass(frozen=True)
class DisplayColumn:
    """One column as it is shown."""

    name: str
    cells: list[Cell]
    right_aligned: bool


def short_number(number: Fraction | float, digits: int = 4) -> str:
    """Format a number for display, with few digits.

    >>> short_number(Fraction(1, 40)), short_number(Fraction(1, 10**9)), short_number(1234567)
    ('0.025', '1e-9', '1.235e6')
    """
    mantissa, exponent_sign, power = f"{float(number):.{digits}g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent_sign else mantissa


def plain_number(number: float, digits: int) -> str:
    """Format a number with few significant digits and without an exponent, unless it is very large.

    >>> plain_number(40_215.0, 3), plain_number(0.00001234, 2), plain_number(7, 3), plain_number(1e40, 3)
    ('40,200', '0.000012', '7', '1e+40')
    """
    text = f"{number:.{digits}g}"
    return f"{Decimal(text):,f}" if abs(number) < 1e15 else text


def _short_number_below(number: Fraction) -> str:
    """Write a number to four digits, rounded down: a budget must not look larger than it is."""
    with localcontext(prec=4, rounding=ROUND_FLOOR):
        return short_number(float(Decimal(number.numerator) / Decimal(number.denominator)))


def round_to_margin(value: float, margin: float | None) -> tuple[str, str]:
    """Write a value and its margin to the margin's two leading digits; the margin is rounded up.

    >>> round_to_margin(123_456, 1234), round_to_margin(12.3456, 0.123), round_to_margin(731, 30)
    (('123,500', '1,300'), ('12.35', '0.13'), ('731', '30'))
    """
    if not math.isfinite(value) or margin is None:
        return _value_text(value), "?"
    if margin == 0:
        return _value_text(value), "0"
    exponent = math.floor(math.log10(margin)) - 1
    if isinstance(value, int) and float(margin).is_integer():
        exponent = max(exponent, 0)
    if exponent < -_MAX_DIGITS or margin >= 10**15 or (abs(value) >= 10**15 and not isinstance(value, int)):
        return _value_text(value), short_number(margin, digits=2)
    # A margin such as 0.13 is a little more than 13 hundredths only because it is a float.
    margin_units = math.ceil(round(margin / 10.0**exponent, 6))
    if exponent >= 0:
        return f"{int(round(value, -exponent)):,}", f"{margin_units * 10**exponent:,}"
    value_text = f"{value:,}" if isinstance(value, int) else f"{round(value, -exponent) + 0.0:,.{-exponent}f}"
    return value_text, f"{margin_units * 10.0**exponent:,.{-exponent}f}"


def is_reliable(value: Any, margin: float | None, bias: Bias | None = None) -> bool | None:
    """Return whether margin and bias are at most 25 % of the value; None without a number or a margin.

    >>> is_reliable(100, 25), is_reliable(-3, 25), is_reliable(None, 25), is_reliable(100, 25, Bias(1))
    (True, False, None, False)
    """
    if not is_number(value) or margin is None:
        return None
    return margin + (bias.magnitude if bias else 0.0) <= abs(float(value)) / 4


def bias_text(bias: Bias) -> str:
    """Write how much too low a number is.

    >>> bias_text(Bias(3900, estimate=4021.5, high=9800)), bias_text(Bias(0, estimate=40)), bias_text(Bias(0))
    ('at least 3,900, estimate 4,100, at most 9,800', 'estimate 40', 'possible, not measured')
    """
    parts = [f"at least {round_down(bias.low)}"] if bias.low > 0 else []
    parts += [] if bias.estimate is None else [f"estimate {round_up(bias.estimate)}"]
    parts += [] if bias.high is None else [f"at most {round_up(bias.high)}"]
    return ", ".join(parts) or "possible, not measured"


def round_down(number: float) -> str:
    """Write a positive number to its two leading digits, rounded down.

    >>> round_down(3961), round_down(0.123), round_down(0)
    ('3,900', '0.12', '0')
    """
    return _two_digits(number, math.floor)


def count_phrase(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count_phrase(1, "row"), count_phrase(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def enumerate_words(words: Sequence[str]) -> str:
    """Join words, with "and" before the last.

    >>> enumerate_words(["counts", "sums", "means"])
    'counts, sums and means'
    """
    return " and ".join([*([", ".join(words[:-1])] if words[1:] else []), *words[-1:]])


def round_up(number: float) -> str:
    """Write a positive number to its two leading digits, rounded up.

    >>> round_up(3961), round_up(0.123), round_up(7)
    ('4,000', '0.13', '7')
    """
    return _two_digits(number, math.ceil)


def _two_digits(number: float, rounding: Callable[[float], int]) -> str:
    if number <= 0:
        return "0"
    exponent = math.floor(math.log10(number)) - 1
    units = rounding(round(number / 10.0**exponent, 6))
    return (
        f"{units * 10**exponent:,}" if exponent >= 0 else f"{units * 10.0**exponent:,.{-exponent}f}".removesuffix(".0")
    )


def escape_unprintable(text: str) -> str:
    r"""Write a text on one line, with what cannot be seen spelt out: keys are data, and may hold anything.

    >>> print(escape_unprintable("a\nb"))
    a\nb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def display_columns(answer: "Answer") -> list[DisplayColumn]:
    """Return the columns of the first rows as texts."""
    first_rows = answer.table.slice(0, MAX_ROWS)
    columns = []
    for name in first_rows.column_names:
        values = first_rows.column(name).to_pylist()
        margins = answer.margins.get(name)
        if margins is None:
            cells = [Cell(text) for text in key_texts(values)]
        else:
            biases = answer.bias.get(name, [None] * len(answer))[:MAX_ROWS]
            cells = [
                _noisy_cell(value, margin, bias)
                for value, margin, bias in zip(values, margins[:MAX_ROWS], biases, strict=True)
            ]
        right_aligned = margins is not None or any(is_number(value) for value in values)
        columns.append(DisplayColumn(truncate(name), cells, right_aligned))
    return columns


def legend(answer: "Answer", columns: Sequence[DisplayColumn]) -> str:
    """Return the sentence that explains the signs that occur, if any does."""
    cells = [cell for column in columns for cell in column.cells if cell.margin]
    parts = [margin_legend(answer)] if any(cell.margin != "?" for cell in cells) else []
    unreliable = [cell for cell in cells if cell.unreliable]
    with_bias = any(cell.bias and cell.bias.magnitude for cell in unreliable)
    parts += [UNRELIABLE_WITH_BIAS_LEGEND if with_bias else UNRELIABLE_LEGEND] if unreliable else []
    parts += [UNKNOWN_MARGIN_LEGEND] if any(cell.margin == "?" for cell in cells) else []
    return f"{'; '.join(parts)}." if parts else ""


def margin_legend(answer: "Answer") -> str:
    """Say what the margins cover: privacy noise, and sampling where it is known."""
    known = {name for name, margins in answer.sampling_margins.items() if any(each is not None for each in margins)}
    if not known:
        return MARGIN_LEGEND
    noise_only = [truncate(name) for name in answer.margins if name not in known]
    return f"{MARGIN_LEGEND} and sampling" + (f" (privacy noise only: {', '.join(noise_only)})" if noise_only else "")


def hidden_rows_note(answer: "Answer") -> str:
    """Say how many rows are not shown, if any."""
    hidden = len(answer) - MAX_ROWS
    return f"… {hidden:,} more row{'s' if hidden > 1 else ''}" if hidden > 0 else ""


def cost_sentence(answer: "Answer") -> str:
    """State what was charged now, the whole cost of the answer if that is more, and the remaining budget."""
    parts = [_charge_phrase(answer)]
    if answer.remaining is not None:
        # With a delta, epsilons do not add up: what remains is for one query, and less is left for two.
        purpose = "" if answer.cost.epsilon is None else " for one more query"
        parts.append(f"epsilon {_short_number_below(answer.remaining)} remains{purpose}")
    return f"{'; '.join(parts)}."


def _charge_phrase(answer: "Answer") -> str:
    cost = answer.cost.loss
    if answer.origin:
        return f"No charge: answered from {answer.origin}, which cost {answer.cost}"
    if answer.paid is None or answer.paid == cost:
        return f"Cost: {answer.cost}"
    if cost.epsilon is not None and (answer.paid.epsilon, answer.paid.delta) == (cost.epsilon, cost.delta):
        return f"Cost: {answer.cost}"  # in several charges, whose rhos add up to less
    if answer.paid == ZERO_LOSS:
        return f"No charge: cached answer, which cost {answer.cost}"
    charge = _charge_text(answer.cost, answer.paid)
    return f"Charged {charge}: partly reused from earlier answers, full cost {answer.cost}"


def _charge_text(cost: "Cost", charge: Loss) -> str:
    """Write a part of a cost in the same terms: as an epsilon at the cost's delta, unless only rho is known."""
    epsilon = None if cost.epsilon is None else to_epsilon(Loss(None, charge.rho), cost.delta)
    return str(replace(cost, loss=charge, epsilon=epsilon, share=None))


def answer_text(answer: "Answer") -> str:
    """Return the table and at most three lines below it: margin of error, clipping bias, cost."""
    columns = display_columns(answer)
    lines = _table_lines(columns)
    lines += [line for line in (hidden_rows_note(answer), "" if len(answer) else "(no rows)") if line]
    return "\n".join([*lines, "", *_wrap_sentences([*long_cell_texts(answer), *summary_sentences(answer, columns)])])


def summary_sentences(answer: "Answer", columns: Sequence[DisplayColumn]) -> list[str]:
    """Return the lines below a table: the margin of error, what the numbers miss, the cost and the remaining budget.

    Rows that are in no group and contributions that are clipped are the two ways in which counts are too low.
    """
    return [
        line for line in (legend(answer, columns), " ".join(missing_sentences(answer)), cost_sentence(answer)) if line
    ]


def missing_sentences(answer: "Answer") -> list[str]:
    """Say what the numbers miss: digits, rows without a group, values that are not shown, clipped contributions."""
    truncated = [note for note in answer.notes if note == INTEGER_DIVISION_NOTE]
    return [*truncated, *answer.left_out, *answer.clipping]


def details_text(answer: "Answer") -> str:
    """Return the noise, the clipping bias, the contribution bounds, the notes, the exact cost and the ledger entry."""
    return "\n".join(_wrap_sentences(detail_sentences(answer)))


def detail_sentences(answer: "Answer") -> list[str]:
    """Return what an answer's text leaves out, sentence by sentence."""
    loss = answer.cost.loss
    epsilon = answer.cost.epsilon if loss.epsilon is None else loss.epsilon
    amounts = {"epsilon": epsilon, "rho": loss.rho, "delta": loss.delta or None}
    cost = ", ".join(f"{name} {short_number(number)}" for name, number in amounts.items() if number is not None)
    noise = [f"Noise of {truncate(name)}: {description}." for name, description in answer.noise.items()]
    receipt = (
        f"Privacy cost: {cost}. Ledger entry: {escape_unprintable(answer.receipt.id) if answer.receipt else 'none'}."
    )
    parts = [*margin_part_sentences(answer), *bias_sentences(answer)]
    return [*parts, *answer.notes, *answer.bounds, *noise, receipt]


def bias_sentences(answer: "Answer") -> list[str]:
    """Return the clipping bias of each column, over all rows."""
    return [
        f"Clipping bias of {truncate(name)}: {text}."
        for name, column in answer.bias.items()
        if (text := _bias_range([bias for bias in column if bias is not None]))
    ]


def _bias_range(biases: Sequence[Bias]) -> str:
    if len(set(biases)) <= 1:
        return bias_text(biases[0]) if biases else ""
    sizes = sorted(bias.estimate for bias in biases if bias.estimate is not None)
    if not sizes:
        return bias_text(biases[0])
    return f"estimate {' to '.join(dict.fromkeys(map(round_up, (sizes[0], sizes[-1]))))} per row"


def margin_part_sentences(answer: "Answer") -> list[str]:
    """Return the parts of the margins of each column, over all rows, if the policy declares a sample."""
    return [
        f"95 % margin of {truncate(name)}: privacy noise {_margin_range(answer.noise_margins[name])}, "
        f"sampling {_margin_range(sampling)}."
        for name, sampling in answer.sampling_margins.items()
    ]


def _margin_range(margins: Sequence[float | None]) -> str:
    known = [margin for margin in margins if margin is not None]
    if not known:
        return "unknown"
    return "± " + " to ".join(dict.fromkeys(round_to_margin(0.0, margin)[1] for margin in (min(known), max(known))))


def long_cell_texts(answer: "Answer") -> list[str]:
    """Return lists and frequency tables that are too long for a cell."""
    texts = []
    for name, margins in answer.margins.items():
        values = answer.table.column(name).to_pylist()[:MAX_ROWS]
        for index, (value, margin) in enumerate(zip(values, margins[:MAX_ROWS], strict=True)):
            if isinstance(value, str) and len(value) > _MAX_CELL_LENGTH:
                row = f" in row {index + 1}" if len(answer) > 1 else ""
                texts.append(
                    f"{truncate(name)}{row}: {_json_items_text(value)}"
                    + (f", each ± {margin:,.0f}." if margin else ".")
                )
    return texts


def _json_items_text(text: str) -> str:
    """Format a JSON list, or a JSON object of counts, for reading."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return escape_unprintable(text)
    if isinstance(parsed, dict):
        return ", ".join(f"{escape_unprintable(key)} {number:,}" for key, number in parsed.items())
    return (
        ", ".join(escape_unprintable(str(item)) for item in parsed)
        if isinstance(parsed, list)
        else escape_unprintable(text)
    )


def explanation_text(explanation: "Explanation", *, details: bool = False) -> str:
    """Return an explanation as text, with the engine's SQL if details are wanted."""
    parts = [
        cost_forecast_sentences(explanation),
        error_forecast_sentences(explanation),
        [explanation.groups, *explanation.bounds],
    ]
    lines = [_wrap_sentences(part) for part in [*parts, explanation.notes]]
    if explanation.sql and details:
        lines.append(
            ["The engine runs:", *(_COLUMN_GAP + escape_unprintable(line) for line in explanation.sql.splitlines())]
        )
    return "\n\n".join("\n".join(part) for part in lines if part)


def explanation_sentences(explanation: "Explanation") -> list[str]:
    """Return an explanation as a list of facts, without the engine's SQL."""
    forecasts = cost_forecast_sentences(explanation) + error_forecast_sentences(explanation)
    return [*forecasts, *filter(None, (explanation.groups, *explanation.bounds, *explanation.notes))]


def cost_forecast_sentences(explanation: "Explanation") -> list[str]:
    """State what a query would cost."""
    charge, cost = explanation.paid, explanation.cost
    if cost.loss == ZERO_LOSS:
        return ["No charge: this query reads no private data."]
    if charge is None or charge == cost.loss:
        return [f"Would cost {cost}. No data was read."]
    if charge == ZERO_LOSS:
        return [f"No charge: the answer is cached (its cost was {cost}). No data was read."]
    part = _charge_text(cost, charge)
    return [f"Would charge {part}: partly reused from earlier answers (full cost {cost}). No data was read."]


def error_forecast_sentences(explanation: "Explanation") -> list[str]:
    """State the margin of error of each noisy column."""
    sentences = []
    for column in explanation.columns:
        margin_text = (
            "margin unknown" if column.margin is None else f"± {round_to_margin(0.0, column.margin)[1]} (95 %)"
        )
        sentences.append(f"{truncate(column.name)}: {column.margin_depends_on or margin_text}; {column.noise}.")
    return sentences


def _value_text(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}"


def is_number(value: Any) -> bool:
    """Return whether a value of a table is a number; a boolean is not."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _noisy_cell(value: Any, margin: float | None, bias: Bias | None) -> Cell:
    if isinstance(value, date) and margin is not None:
        return Cell(key_texts([value])[0], f"{math.ceil(margin):,} days")
    if not is_number(value):
        return Cell(key_texts([value])[0], "" if value is None or margin is None else f"{math.ceil(margin):,} each")
    number = value if isinstance(value, int) else float(value)
    unreliable = is_reliable(number, margin, bias) is False
    return Cell(*round_to_margin(number, margin), unreliable=unreliable, bias=bias)


def key_texts(values: list[Any]) -> list[str]:
    """Write values that carry no noise, each on one line and not too long; times that are all midnight as days.

    >>> key_texts([datetime(2009, 2, 1), None]), key_texts([True, 0.5, "a"])
    (['2009-02-01', 'NULL'], ['true', '0.5', 'a'])
    """
    times = [value for value in values if isinstance(value, datetime)]
    if all(moment.time() == _MIDNIGHT for moment in times):
        values = [value.date() if isinstance(value, datetime) else value for value in values]
    return [_key_text(value) for value in values]


def _key_text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
    return truncate(str(value))


def truncate(text: str) -> str:
    """Write a name on one line and not too long."""
    text = escape_unprintable(text)
    return text if len(text) <= _MAX_CELL_LENGTH else f"{text[: _MAX_CELL_LENGTH - 1]}…"


def _display_width(text: str) -> int:
    """Count the places that a text takes: wide letters two, marks above others none."""
    combining = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) - combining + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def _pad_column(column: DisplayColumn) -> list[str]:
    """Return header and cells of one column, padded to one width, the margins below each other."""
    margin_width = max((_display_width(cell.margin) for cell in column.cells), default=0)
    texts = [
        str(cell)
        + " "
        * ((margin_width - _display_width(cell.margin)) if cell.margin else (margin_width + 3 if margin_width else 0))
        for cell in column.cells
    ]
    width = max(_display_width(text) for text in [column.name, *texts])
    spaces = [" " * (width - _display_width(text)) for text in [column.name, *texts]]
    return [
        space + text if column.right_aligned else text + space
        for text, space in zip([column.name, *texts], spaces, strict=True)
    ]


def _table_lines(columns: Sequence[DisplayColumn]) -> list[str]:
    """Return the lines of a table; columns that do not fit follow below, beside the first one again."""
    padded = [_pad_column(column) for column in columns]
    blocks: list[list[list[str]]] = []
    for texts in padded:
        if (
            blocks
            and sum(_display_width(cells[0]) + len(_COLUMN_GAP) for cells in [*blocks[-1], texts]) - len(_COLUMN_GAP)
            <= WIDTH
        ):
            blocks[-1].append(texts)
        else:
            blocks.append([padded[0], texts] if blocks else [texts])
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        lines += [_COLUMN_GAP.join(row).rstrip() for row in zip(*block, strict=True)]
    return lines


def _wrap_sentences(sentences: Iterable[str]) -> list[str]:
    return [line for sentence in sentences for line in textwrap.wrap(escape_unprintable(sentence), WIDTH)]
