"""The SQL of every operation and every cast in Spark, as recorded in the files spark_*.txt.

That it means what the reference computes is tested on Sail (test_spark, test_spark_columns) and on Spark itself
(tests/slow). The two engines differ, so the recorded SQL must not change unnoticed, even where Sail's answers stay the
same. `DISCREET_GOLDEN=write pytest tests/matrix -k recorded` writes the current SQL; review the difference.
"""

import os
import re
import runpy
from pathlib import Path

import operations
import pytest
from strategies import INT, TEXT

from discreet.engines.reference.evaluate import lower_case, upper_case
from discreet.engines.spark import casts, dialect, text_functions
from discreet.engines.spark.literals import constant
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.sqlgen.expr_sql import write_expr, write_grid_step, write_key

HERE = Path(__file__).parent
TEXT_COLUMN = Column("t", TEXT)
LIKES = [
    *("", "a", "a%", "%a", "%a%", "a%b", "%", "%%", "ab%cd%ef", "%ab%cd%", "ab%%c", "\\%a", "É%_\\_\\\\", "a\nb%"),
    *("%a%b%c%d%e%", "a%b%c%d%ef", "a%b%c%d%", "a%b%c%d%e%", "a%b%c%d%e%f%", "%b%c%d%e", "%b%c%d%e%f"),
    *("_", "a_", "_%", "%_", "a_%", "%_b", "a_%b", "%a_b%", "_%_", "%a%b%c%d%e%f%", "a%b%c%d%e%f"),
]
NATIVES = [
    *(
        "bigint",
        "int",
        "double",
        "decimal(10,2)",
        "boolean",
        "string",
        "STRING COLLATE UNICODE_CI",
        "date",
        "timestamp",
    ),
    *("timestamp_ntz", "void"),
]


def calls_of(op):
    """Give calls of an operation on columns, for every typing and many constants."""
    for typing in operations.typings(op):
        columns = [Column(f"c{place}", kind) for place, (kind, fixed) in enumerate(typing) if not fixed]
        kinds = [kind for kind, fixed in typing if fixed]
        for held in operations.constants_of(op, kinds) if kinds else [[]]:
            yield Call(op, (*columns, *held))


def operation_lines(spark):
    some, many = Constant(3, INT), Constant(-1, INT)
    calls = [call for op in SIGNATURES if op not in {"like", "like_any_case", "matches"} for call in calls_of(op)]
    calls += [Call("divide", (Column("i", INT), Constant(value, INT))) for value in (0, -1, 7)]
    calls += [Call("divide", (Column("r", Type.REAL), Constant(value, Type.REAL))) for value in (0.0, -1.0, 2.5)]
    calls += [Call("round", (Column("r", Type.REAL), Constant(places, INT))) for places in range(-15, 16)]
    calls += [Call(op, (TEXT_COLUMN, Constant(text, TEXT))) for op in ("like", "like_any_case") for text in LIKES]
    calls += [Call("least", (some, many, some, many, some)), Call("matches", (TEXT_COLUMN, Constant("^a.$", TEXT)))]
    for call in calls:
        fixed = [repr(arg.value) for arg in call.args if isinstance(arg, Constant)]
        yield f"{call.op} {' '.join([*(arg.type.value for arg in call.args), *fixed])}: {write_expr(call, spark)}"


def dialect_lines(spark):
    yield from (f"type {kind.name}: {sql}" for kind, sql in spark.types.items())
    yield from (f"{name}: {value}" for name, value in vars(spark).items() if isinstance(value, str | int))
    yield f"key: {write_key(Column('r', Type.REAL), spark)}"
    yield from (f"grid {low}: {write_grid_step('x', Grid(low, 10, 0.5), spark)}" for low in (-10, 0))
    yield from (f"{value}: {spark.min_or_max('MIN', value, INT)}" for value in ('".u0"', '"u"', '"v"'))


def cast_lines(_spark):
    for native in NATIVES:
        kinds = [kind for kind in Type if casts.can_cast(native, kind)]
        for zone, some in (("UTC", kinds), ("Etc/UTC", kinds[-1:]), ("Europe/Berlin", kinds[-2:])):
            columns = {f"{kind.value}`": ("c", native, kind) for kind in some}
            for converted, in_range in zip(*casts.cast_columns(columns, zone), strict=True):
                yield f"{native} {zone}: {converted} | {in_range}"


@pytest.fixture
def few_letters(monkeypatch):
    """Let only these letters have two cases: the list of all depends on Python, and takes a second to compute."""
    pairs = {change: {x: change(x) for x in "AÉİéß" if change(x) != x} for change in (lower_case, upper_case)}
    monkeypatch.setattr(text_functions, "changed_letters", pairs.get)
    text_functions._translation.cache_clear()
    yield
    text_functions._translation.cache_clear()


PARTS = {"operations": operation_lines, "dialect": dialect_lines, "casts": cast_lines}


def sql_of(part, spark):
    return "".join(f"{line}\n" for line in dict.fromkeys(PARTS[part](spark)))


def recorded(part):
    return HERE / f"spark_{part}.txt"


@pytest.mark.usefixtures("few_letters")
@pytest.mark.parametrize("part", PARTS)
def test_spark_has_the_recorded_sql(part):
    now = sql_of(part, dialect.SPARK)
    if os.environ.get("DISCREET_GOLDEN") == "write":
        recorded(part).write_text(now)
    assert now == recorded(part).read_text()


@pytest.mark.usefixtures("few_letters")
@pytest.mark.parametrize("part", ["operations", "dialect"])
def test_functions_that_run_while_the_dialect_is_loaded_give_the_recorded_sql(part):
    loaded_again = runpy.run_path(dialect.__file__)["SPARK"]
    assert sql_of(part, loaded_again) == recorded(part).read_text()


@pytest.mark.parametrize("value", [True, False, 0, -7, 2**63 - 1, 0.1, -0.0, 1e300, "", "it's", "a.b", "${x}"])
def test_a_constant_reads_back_as_its_value(value):
    sql = constant(value, INT)
    match sql:
        case "TRUE" | "FALSE":
            assert (sql == "TRUE") is value
        case _ if hexadecimal := re.fullmatch(r"CAST\(X'(.*)' AS STRING\)", sql):
            assert bytes.fromhex(hexadecimal[1]).decode() == value
        case _ if number := re.fullmatch(r"CAST\('(.*)' AS (BIGINT|DOUBLE)\)", sql):
            assert {"BIGINT": int, "DOUBLE": float}[number[2]](number[1]) == value
        case _:
            assert sql == f"'{value}'"
