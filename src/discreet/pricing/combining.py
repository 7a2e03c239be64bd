"""Several noisy draws of the same totals as one table: each weighed by its exactness, in whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np

from discreet.kernel.exact import sqrt_up
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.release import Key, Noisy
from discreet.pricing.draws import Draw, Known
from discreet.sql.intervals import Noise
from discreet.sql.price import Kind

_ONE = 1 << 32  # weights are whole numbers of this part
_ROUNDED = Fraction(1, 4)  # the most that rounding to a whole step can add to a variance


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a released table that have the same noise."""

    noisy: Noisy
    noises: tuple[Noise, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """All that is known of one part: its rows, the thresholds of its groups, what each total cost, its newest draw.

    How many units the limits touched may be `untold`.
    """

    pieces: tuple[Piece, ...]
    cuts: tuple[int, ...]
    paid: dict[str, Fraction]
    delta: Fraction
    newest: Draw
    untold: bool = False


def table_of(known: Known) -> Table:
    """Return the most exact table that the draws of a part give; each total must have one, but for the report."""
    places = range(len(known.topics))
    untold = known.mixes and known.report is not None and not known.having(known.report)
    if not known.mixes:
        draw = max(known.draws, key=lambda each: (sum(each.paid.values()), each.order))
        used, pieces = [draw], [Piece(draw.noisy, tuple(draw.noises[place] for place in places))]
    elif known.discovers:
        used, pieces = list(known.draws), _by_key(known)
    else:
        used = [draw for place in places for draw in known.used(place)]
        columns = [columns_of(known, place)[0] for place in places if known.having(place)]
        if untold:  # it is the last
            columns.append((np.zeros_like(columns[0][0]), columns[0][1]))
        values = np.stack([numbers for numbers, _ in columns], axis=1)
        pieces = [Piece(Noisy(used[0].noisy.keys, values), tuple(noise for _, noise in columns))]
    paid = {
        topic: used[0].paid[place] if not known.mixes else known.paid(place) for place, topic in enumerate(known.topics)
    }
    if not known.shares:  # what another part draws under the same topic is paid for apart
        paid = {f"{topic} {known.part.name}": amount for topic, amount in paid.items()}
    cuts = tuple(dict.fromkeys(draw.cut for draw in used if draw.cut is not None))
    delta = sum((draw.delta for draw in used), Fraction(0))
    return Table(tuple(pieces), cuts, paid, delta, max(used, key=lambda draw: draw.order), untold)


def columns_of(known: Known, place: int) -> list[tuple[np.ndarray, Noise]]:
    """Return the numbers of one total, which must have a draw, with their noise; apart where that differs."""
    if known.discovers:
        return [(piece.noisy.values[:, place], piece.noises[place]) for piece in _by_key(known)]
    draws = known.used(place)
    noises = [draw.noises[place] for draw in draws]
    noise = noises[0] if len(noises) == 1 else combined_noise(noises)
    return [(combined([draw.noisy.values[:, place] for draw in draws], noises), noise)]


def price_of_all(tables: Sequence[Table], kind: Kind) -> Loss:
    """Return what all draws behind some tables cost together."""
    paid = {topic: amount for table in tables for topic, amount in table.paid.items()}
    whole = sum(paid.values(), Fraction(0))
    delta = min(Fraction(1), sum((table.delta for table in tables), Fraction(0)))
    return Loss(whole, None, delta) if kind is Laplace else Loss(None, whole, delta)


def combined_noise(noises: Sequence[Noise]) -> Gaussian:
    """Return noise that reaches at least as far as that of draws taken together.

    >>> combined_noise([Gaussian(10), Gaussian(10)]).margin("0.95"), Gaussian(10).margin("0.95")
    (14, 20)
    """
    if len(noises) == 1 and isinstance(noises[0], Gaussian):
        return noises[0]
    pairs = zip(_weights(noises), noises, strict=True)
    variance = sum((Fraction(weight, _ONE) * noise.scale) ** 2 for weight, noise in pairs)
    return Gaussian(sqrt_up(variance + _ROUNDED))


def combined(columns: Sequence[np.ndarray], noises: Sequence[Noise]) -> np.ndarray:
    """Return the mean of draws, weighed by their inverse variances and rounded to whole steps.

    >>> combined([np.array([100, 7]), np.array([130, 7])], [Gaussian(10), Gaussian(20)])
    array([106,   7])
    """
    if len(columns) == 1:
        return columns[0]
    pairs = zip(columns, _weights(noises), strict=True)
    # Python's own integers: a product does not fit in 64 bits. The mean does, being between the smallest and largest.
    total = sum((column.astype(object) * weight for column, weight in pairs), start=_ONE // 2)
    return np.array(total // _ONE, np.int64)


def _weights(noises: Sequence[Noise]) -> list[int]:
    exact = [1 / noise.scale**2 for noise in noises]
    weights = [int(each / sum(exact) * _ONE) for each in exact]
    weights[weights.index(max(weights))] += _ONE - sum(weights)
    return weights


def _by_key(known: Known) -> list[Piece]:
    """Return a piece for each set of draws that showed the same keys: a key has what the draws say that showed it."""
    if len(known.draws) == 1:
        (draw,) = known.draws
        return [_together([draw], draw.noisy.keys)]
    rows = [{key: row for row, key in enumerate(draw.noisy.keys)} for draw in known.draws]
    shown = {key: tuple(number for number, keys in enumerate(rows) if key in keys) for keys in rows for key in keys}
    pieces = []
    for numbers, found in groupby(sorted(shown, key=shown.__getitem__), key=shown.__getitem__):
        keys = list(found)
        draws = [_rows_of(known.draws[number], [rows[number][key] for key in keys]) for number in numbers]
        pieces.append(_together(draws, keys))
    return pieces or [_together(known.draws, [])]


def _together(draws: Sequence[Draw], keys: list[Key]) -> Piece:
    """Return one piece from draws that have all totals, and the same keys in the same order."""
    found = []
    for place in range(draws[0].noisy.values.shape[1]):
        having = [draw for draw in draws if place in draw.noises]
        noises = [draw.noises[place if having else 0] for draw in having or draws[:1]]  # a report may be untold
        columns = [draw.noisy.values[: len(keys), place] for draw in having or draws[:1]]
        found.append((combined(columns, noises), combined_noise(noises)))
    values = np.stack([column for column, _ in found], axis=1)
    return Piece(Noisy(keys, values), tuple(noise for _, noise in found))


def _rows_of(draw: Draw, rows: list[int]) -> Draw:
    noisy = Noisy([draw.noisy.keys[row] for row in rows], draw.noisy.values[rows])
    return Draw(draw.order, draw.receipt, noisy, draw.noises, draw.paid)
