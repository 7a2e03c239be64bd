"""Arithmetic on doubles in PostgreSQL, with the same results as every other engine and without errors.

PostgreSQL raises an error on overflow to infinity and on underflow to zero. Both must be detected exactly before
anything is computed, by comparing numbers scaled by powers of two. For numbers of moderate size, which are nearly all,
one comparison is enough.
"""

import math
from collections.abc import Sequence

from discreet.engines.common_sql import constant_integer, largest_double_where
from discreet.kernel.expr import Expr
from discreet.kernel.sqlgen.dialect import GridFloats


def float_literal(x: float) -> str:
    """Return a double as a literal, for a context that determines its type.

    >>> float_literal(0.1), float_literal(2.0**-512)
    ("'0.1'", "'7.458340731200207e-155'")
    """
    return f"'{x!r}'" if math.isfinite(x) else "'Infinity'"


def _power_of_two(exponent: int) -> str:
    return float_literal(math.ldexp(1, exponent))


_MODERATE_SIZES = "ABS({0}) BETWEEN '1e-150' AND '1e150' AND ABS({1}) BETWEEN '1e-150' AND '1e150'"
_NOT_FINITE = "ABS({0}) >= 'Infinity' OR ABS({1}) >= 'Infinity'"  # NaN is above Infinity


def _checked_sum(sign: str) -> str:
    """Return SQL for a sum or a difference.

    Claim: it is the IEEE result, infinite where that is, and never raises.
    Proof: PostgreSQL raises where finite numbers give an infinite sum. Numbers up to 8e307 do not. Otherwise half of
        the sum, rounded, reaches 2^1023 exactly where the sum rounds to infinity; then the sum is not computed.
    Needs: PostgreSQL adds and compares doubles as IEEE does.
    Checked by: test_arithmetic_is_that_of_doubles_at_some_boundaries,
        test_arithmetic_is_that_of_doubles_at_every_boundary
    """
    return (
        f"CASE WHEN ABS({{0}}) <= '8e307' AND ABS({{1}}) <= '8e307' THEN {{0}} {sign} {{1}} "
        f"WHEN {_NOT_FINITE} OR ABS({{0}}) < 1 OR ABS({{1}}) < 1 THEN {{0}} {sign} {{1}} "
        f"WHEN ABS({{0}} * '0.5' {sign} {{1}} * '0.5') >= {_power_of_two(1023)} THEN SIGN({{0}}) * 'Infinity' "
        f"ELSE {{0}} {sign} {{1}} END"
    )


ADD, SUBTRACT = _checked_sum("+"), _checked_sum("-")


def _checked_product() -> str:
    """Return SQL for a product.

    Claim: it is the IEEE result, infinite or 0 where that is, and never raises.
    Proof: between numbers of moderate size nothing over- or underflows. Above 1, both are scaled by 2^-512: their
        product reaches 1 exactly where the result is infinite. Below 1, the comments give the exact test for 0.
    Needs: PostgreSQL multiplies and compares doubles as IEEE does.
    Checked by: test_arithmetic_is_that_of_doubles_at_some_boundaries,
        test_arithmetic_is_that_of_doubles_at_every_boundary
    """
    # The product rounds to zero if it is at most half of the least double, 2^-1074. In units of 2^-1074 the product is
    # `small` times `large`, which cannot overflow because `small` is capped at 2^-500 before scaling.
    small = f"LEAST(ABS({{0}}), ABS({{1}}), {_power_of_two(-500)}) * {_power_of_two(537)} * {_power_of_two(537)}"
    large = "GREATEST(ABS({0}), ABS({1}))"
    # If that rounds to exactly a half, the 106-bit product of the significands decides.
    digits = [
        f"CAST(4503599627370496 + CAST(CAST('x' || RIGHT(ENCODE(FLOAT8SEND({x}), 'hex'), 13) AS BIT(52)) AS BIGINT) "
        "AS NUMERIC)"
        for x in (small, large)
    ]
    return (
        f"CASE WHEN {_MODERATE_SIZES} THEN {{0}} * {{1}} "
        f"WHEN {{0}} = 0 OR {{1}} = 0 OR {_NOT_FINITE} THEN {{0}} * {{1}} "
        "WHEN ABS({0}) > 1 AND ABS({1}) > 1 THEN "
        f"CASE WHEN (ABS({{0}}) * {_power_of_two(-512)}) * (ABS({{1}}) * {_power_of_two(-512)}) >= 1 "
        "THEN SIGN({0}) * SIGN({1}) * 'Infinity' ELSE {0} * {1} END "
        "WHEN ABS({0}) < 1 AND ABS({1}) < 1 THEN "
        f"CASE WHEN {small} * {large} > '0.5' THEN {{0}} * {{1}} "
        f"WHEN {small} * {large} = '0.5' AND {digits[0]} * {digits[1]} > {2**105} THEN {{0}} * {{1}} ELSE 0 END "
        "ELSE {0} * {1} END"
    )


MULTIPLY = _checked_product()

# A quotient of doubles is never so close below 2^1024 that it would round up to it.
DIVIDE = (
    f"CASE WHEN {_MODERATE_SIZES} THEN {{0}} / {{1}} WHEN {{1}} = 0 THEN NULL "
    "WHEN ABS({1}) = 'Infinity' AND ABS({0}) < 'Infinity' THEN 0 "
    f"WHEN {{0}} = 0 OR {_NOT_FINITE} THEN {{0}} / {{1}} "
    f"WHEN ABS({{1}}) < 1 AND ABS({{0}}) >= {_power_of_two(-50)} THEN "
    f"CASE WHEN ABS({{0}}) * {_power_of_two(-512)} >= ABS({{1}}) * {_power_of_two(512)} "
    "THEN SIGN({0}) * SIGN({1}) * 'Infinity' ELSE {0} / {1} END "
    f"WHEN ABS({{1}}) > 1 AND ABS({{0}}) < {_power_of_two(-51)} THEN "
    f"CASE WHEN ABS({{0}}) * {_power_of_two(537)} * {_power_of_two(538)} <= ABS({{1}}) THEN 0 ELSE {{0}} / {{1}} END "
    "ELSE {0} / {1} END"
)

# The logarithm decides whether a power overflows or underflows, with a margin for its own error.
POWER = (
    f"CASE WHEN {_NOT_FINITE} THEN NULL "
    "WHEN {0} = 0 THEN CASE WHEN {1} > 0 THEN 0 WHEN {1} = 0 THEN 1 END "
    "WHEN {0} < 0 AND {1} <> FLOOR({1}) THEN NULL "
    "WHEN ABS({0}) = 1 THEN POWER({0}, {1}) "
    "WHEN ABS({1}) > '708' / ABS(LN(ABS({0}))) THEN CASE WHEN ({1} > 0) <> (ABS({0}) > 1) THEN 0 END "
    "WHEN ABS(POWER({0}, {1})) > '1e307' THEN NULL "
    "WHEN ABS(POWER({0}, {1})) < '1e-307' THEN 0 ELSE POWER({0}, {1}) END"
)


def round_to_places(texts: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return SQL that rounds a number to a constant number of decimal places, halves away from zero.

    >>> from discreet.kernel.expr import Constant, Type
    >>> round_to_places(["x", ""], [Constant(None, Type.REAL), Constant(0, Type.INTEGER)])
    "CASE WHEN ABS(x) <= '1.7976931348623157e+308' THEN (TRUNC(x) + TRUNC((x - TRUNC(x)) * 2)) ELSE x END"
    """
    x, places = texts[0], constant_integer(exprs[1])
    factor = float(10 ** abs(places))
    if places >= 0:
        largest_safe = largest_double_where(lambda size: math.isfinite(size * factor))
        scaled = f"{x} * {float_literal(factor)}" if places else x
        back = f" / {float_literal(factor)}" if places else ""
        return (
            f"CASE WHEN ABS({x}) <= {float_literal(largest_safe)} THEN ({_round_half_away(scaled)}){back} ELSE {x} END"
        )
    largest_safe = largest_double_where(lambda size: math.isfinite(size / factor * factor))
    rounded = f"({_round_half_away(f'{x} / {float_literal(factor)}')}) * {float_literal(factor)}"
    return (
        f"CASE WHEN ABS({x}) < {float_literal(factor / 4)} THEN 0 "
        f"WHEN ABS({x}) <= {float_literal(largest_safe)} THEN {rounded} "
        f"WHEN ABS({x}) < 'Infinity' THEN 0 ELSE {x} END"
    )


def _round_half_away(x: str) -> str:
    return f"TRUNC({x}) + TRUNC(({x} - TRUNC({x})) * 2)"


def finite_or_null(value: str) -> str:
    """Return SQL for a number, or NULL if it is not finite.

    >>> finite_or_null("x")
    "NULLIF(NULLIF(NULLIF(x, 'NaN'), 'Infinity'), '-Infinity')"
    """
    return f"NULLIF(NULLIF(NULLIF({value}, 'NaN'), 'Infinity'), '-Infinity')"


def nearest_step(value: str, grid: GridFloats) -> str:
    """Return SQL for the index of the nearest step; a step above 1 is scaled so that tiny numbers cannot underflow.

    Claim: it is Grid.index of the value, or NULL if that is not finite, and never raises.
    Proof: the value is clamped to the ends first, so that the quotient is below 2^40. For a step above 1 both sides of
        the sum are multiplied by a power of two, which changes no digit, and divided by it afterwards.
    Needs: Grid, finite_or_null.
    Checked by: test_the_steps_of_a_grid_are_the_kernels_own

    >>> nearest_step("x", (0.0, 5.0, 0.5)).partition("'-Infinity')")[2]
    ", '0.0'), '5.0') / '0.5' + '0.5') AS BIGINT)"
    """
    low, high, step = grid
    clipped = finite_or_null(f"CAST({value} AS DOUBLE PRECISION)")
    # Unlike LEAST and GREATEST, these functions return NULL for NULL.
    clipped = f"float8smaller(float8larger({clipped}, {float_literal(low)}), {float_literal(high)})"
    if step <= 1:
        return f"CAST(FLOOR({clipped} / {float_literal(step)} + '0.5') AS BIGINT)"
    fraction, bits = math.frexp(step)
    scaled = f"({clipped} / {float_literal(fraction)} + {_power_of_two(bits - 1)}) * {_power_of_two(-bits)}"
    return f"CAST(FLOOR({scaled}) AS BIGINT)"
