"""Db2's functions that a statement may call, as one table.

Everything that knows a function reads this table: the parser (dialect), the list of what may be
called (query.db2.read_only), types and meaning (semantics, dates), the list in docs/sql.md.

Source: Db2 for LUW SQL reference, "Built-in functions".
"""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from query.db2 import calls
from query.db2.calls import Build, Db2Cast, Db2Function
from query.db2.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    TEXT,
    TIME,
    TIMESTAMP,
    Db2Type,
)

SAME = "as x"
"""The result has the type of the first argument."""

Reads = Literal["", "number", "DATE", "TIME", "TIMESTAMP"]


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the table.

    Attributes:
        call: How it is called; what stands before the first parenthesis is Db2's name.
        node: What the parser makes of a call.
        gives: The type of the result: a type, SAME, or in words what semantics decides.
        words: What it gives, for the documentation.
        example: An expression, and what it gives over three rows where x is 1, 2 and 4; different
            values stand in commas.
        also: Other names of it.
        build: Makes the node of a call; None where sqlglot's parser does under this name.
        least: Fewest arguments.
        most: Most arguments; None where there is no limit.
        reads: What a text given as the first argument is read as; empty where it stays a text.
        template: The result in DuckDB's SQL, {x} being the first argument, before it is cast to
            ``gives``; empty where semantics or DuckDB's function of that node decides.
    """

    call: str
    node: type[exp.Expr]
    gives: Db2Type | str
    words: str
    example: tuple[str, str]
    also: tuple[str, ...] = ()
    build: Build | None = None
    least: int = 1
    most: int | None = 1
    reads: Reads = ""
    template: str = ""

    @property
    def name(self) -> str:
        """Db2's name."""
        return self.call.partition("(")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that it may be called by."""
        return (self.name, *self.also)


def _cast(
    call: str, kind: str, words: str, example: tuple[str, str], *also: str, most: int = 1
) -> Function:
    """A conversion to ``kind``."""
    build = calls.cast(kind)
    return Function(call, Db2Cast, kind, words, example, also, build, most=most)


def _field(
    name: str, words: str, example: tuple[str, str], reads: Reads = "DATE", template: str = ""
) -> Function:
    """A number out of a date or a time."""
    return Function(
        f"{name}(x)", Db2Function, INTEGER, words, example, build=calls.function(name),
        reads=reads, template=template or f"{name.lower()}({{x}})",
    )  # fmt: skip


_CONVERSIONS = (
    _cast("INTEGER(x)", "INTEGER", "The integer, cut at the point", ("INT(' 12.7 ')", "12"), "INT"),
    _cast("SMALLINT(x)", "SMALLINT", "The same, up to 32,767", ("SMALLINT(-1.9)", "-1")),
    _cast("BIGINT(x)", "BIGINT", "The same, of 64 bits", ("BIGINT('3000000000')", "3000000000")),
    _cast(
        "DECIMAL(x, precision, scale)", "DECIMAL",
        "The number cut at `scale` digits after the point; 15 digits and none after the point "
        "unless given", ("DECIMAL('12.789', 5, 1)", "12.7"), "DEC", most=3,
    ),
    _cast("DOUBLE(x)", "DOUBLE", "The floating-point number", ("DOUBLE('1e3') / 8", "125.0"),
          "FLOAT"),
    _cast("REAL(x)", "REAL", "The same, of 32 bits", ("REAL('0.5')", "0.5")),
    _cast("DECFLOAT(x)", "DOUBLE", "The number, calculated as DOUBLE",
          ("DECFLOAT('0.25')", "0.25")),
    _cast(
        "VARCHAR(x, length)", "VARCHAR", "The text, cut at `length`", ("VARCHAR(1208, 2)", "12"),
        "CHAR", most=2,
    ),
    _cast("DATE(x)", "DATE", "The day of a text, a timestamp, or a number of days from 0001-01-01",
          ("DATE('31.01.2020')", "2020-01-31")),
    _cast("TIME(x)", "TIME", "The time of day", ("TIME('10.11.12')", "10:11:12")),
    _cast(
        "TIMESTAMP(x, time)", "TIMESTAMP", "The time of a text, or of a date and a time",
        ("TIMESTAMP('2020-01-31-10.11.12')", "2020-01-31 10:11:12"), most=2,
    ),
)  # fmt: skip

_NUMBERS = (
    Function("ABS(x)", exp.Abs, SAME, "The value without its sign", ("ABS(-3)", "3"),
             reads="number"),
    Function("CEILING(x)", exp.Ceil, SAME, "The next integer at or above", ("CEIL(1.2)", "2"),
             ("CEIL",), reads="number"),
    Function("FLOOR(x)", exp.Floor, SAME, "The next integer at or below", ("FLOOR(-1.2)", "-2"),
             reads="number"),
    Function("MOD(x, y)", exp.Mod, SAME, "What a division leaves, with the sign of x",
             ("MOD(-7, 2)", "-1"), least=2, most=2, reads="number"),
    Function("POWER(x, y)", exp.Pow, DOUBLE, "x to the power of y", ("POWER(2, 10)", "1024.0"),
             ("POW",), least=2, most=2, reads="number"),
    Function("ROUND(x, digits)", exp.Round, SAME, "Rounded to that many digits, 0 unless given",
             ("ROUND(2.456, 1)", "2.5"), most=2, reads="number"),
    Function("SIGN(x)", exp.Sign, INTEGER, "-1, 0 or 1", ("SIGN(-3)", "-1"), ("SIGNUM",),
             reads="number"),
    Function("SQRT(x)", exp.Sqrt, DOUBLE, "The square root", ("SQRT('16')", "4.0"), reads="number"),
    Function("TRUNCATE(x, digits)", exp.Trunc, SAME, "Cut to that many digits, 0 unless given",
             ("TRUNC(2.456, 1)", "2.4"), ("TRUNC",), most=2, reads="number"),
)  # fmt: skip

_TEXTS = (
    Function("CONCAT(x, y)", exp.Concat, "VARCHAR", "Both in one; also `x || y`, `x CONCAT y`",
             ("CONCAT('a', 'b')", "ab"), build=calls.joined, least=2, most=None),
    Function("LEFT(x, length)", exp.Left, TEXT, "The first characters",
             ("LEFT('camera', 3)", "cam"), least=2, most=2),
    Function("RIGHT(x, length)", exp.Right, TEXT, "The last characters",
             ("RIGHT('camera', 3)", "era"), least=2, most=2),
    Function("SUBSTR(x, start, length)", exp.Substring, TEXT,
             "The characters from `start` on, counted from 1", ("SUBSTR('camera', 2, 3)", "ame"),
             ("SUBSTRING",), least=2, most=3),
    Function("LOWER(x)", exp.Lower, TEXT, "In small letters", ("LOWER('Car')", "car"), ("LCASE",)),
    Function("UPPER(x)", exp.Upper, TEXT, "In capitals", ("UPPER('Car')", "CAR"), ("UCASE",)),
    Function("TRIM(x)", exp.Trim, TEXT,
             "Without blanks at both ends; `TRIM(BOTH '_' FROM x)` takes another character",
             ("TRIM('  a ')", "a"), most=2),
    Function("LTRIM(x, characters)", exp.Trim, TEXT, "Without blanks, or these, at the beginning",
             ("LTRIM('__a', '_')", "a"), most=2),
    Function("RTRIM(x, characters)", exp.Trim, TEXT, "Without blanks, or these, at the end",
             ("RTRIM('left_', '_')", "left"), most=2),
    Function("REPLACE(x, old, new)", exp.Replace, "VARCHAR", "With every `old` replaced",
             ("REPLACE('a-b', '-', '_')", "a_b"), least=2, most=3),
    Function("LENGTH(x)", exp.Length, INTEGER, "Number of characters", ("LENGTH('camera')", "6"),
             ("CHAR_LENGTH", "CHARACTER_LENGTH", "LEN")),
    Function("POSSTR(x, sought)", exp.StrPosition, INTEGER,
             "Where `sought` begins, counted from 1; 0 where it is not",
             ("POSSTR('camera', 'e')", "4"), build=calls.position, least=2, most=2),
    Function("INSTR(x, sought, start)", exp.StrPosition, INTEGER, "The same, from `start` on",
             ("INSTR('camera', 'a', 3)", "6"), ("STRPOS", "STR_POSITION"), least=2, most=3),
    Function("LOCATE(sought, x, start)", exp.StrPosition, INTEGER, "The same, the other way round",
             ("LOCATE('e', 'camera')", "4"), ("POSITION", "CHARINDEX"), least=2, most=3),
)  # fmt: skip

_CHOICES = (
    Function("COALESCE(x, y, ...)", exp.Coalesce, "the common type", "The first that is not null",
             ("COALESCE(NULLIF(1, 1), 7)", "7"), ("NVL", "IFNULL"), most=None),
    Function("VALUE(x, y, ...)", exp.Coalesce, "the common type", "The same",
             ("VALUE(NULLIF(1, 1), 7)", "7"), build=calls.coalesce, least=2, most=None),
    Function("NULLIF(x, y)", exp.Nullif, SAME, "Null where both are equal, else x",
             ("COALESCE(NULLIF(7, 0), -1)", "7"), least=2, most=2),
    Function("IF(condition, x, y)", exp.If, "as x", "As CASE WHEN condition THEN x ELSE y END",
             ("IF(1 < 2, 'a', 'b')", "a"), ("IIF",), least=2, most=3),
)  # fmt: skip

_DATES = (
    Function("CURRENT DATE", exp.CurrentDate, DATE, "Today, in UTC",
             ("DAYS(CURRENT DATE) - DAYS(CURRENT DATE - 7 DAYS)", "7"), ("CURRENT_DATE",), least=0,
             most=0),
    Function("CURRENT TIME", exp.CurrentTime, TIME, "The time of day, in UTC",
             ("HOUR(CURRENT TIME) < 24", "true"), ("CURRENT_TIME",), least=0, most=0),
    Function("CURRENT TIMESTAMP", exp.CurrentTimestamp, TIMESTAMP, "Now, in UTC",
             ("CURRENT TIMESTAMP > '2020-01-31'", "true"), ("CURRENT_TIMESTAMP",), least=0, most=0),
    _field("YEAR", "The year", ("YEAR('2020-01-31')", "2020")),
    _field("QUARTER", "1 to 4", ("QUARTER('2020-04-01')", "2")),
    _field("MONTH", "1 to 12", ("MONTH('01/31/2020')", "1")),
    _field("DAY", "The day of the month", ("DAY('2020-01-31')", "31")),
    _field("DAYS", "Days since 0001-01-01, that day being 1",
          ("DAYS('2020-03-01') - DAYS('2020-02-28')", "2"),
          template="datediff('day', DATE '0001-01-01', CAST({x} AS DATE)) + 1"),
    _field("DAYOFWEEK", "1 (Sunday) to 7", ("DAYOFWEEK('2020-01-31')", "6"),
          template="dayofweek({x}) + 1"),
    _field("DAYOFWEEK_ISO", "1 (Monday) to 7", ("DAYOFWEEK_ISO('2020-01-31')", "5"),
          template="isodow({x})"),
    _field("DAYOFYEAR", "1 to 366", ("DAYOFYEAR('2020-02-01')", "32")),
    # Weeks begin on Sunday, and the first of January is in the first.
    _field("WEEK", "1 to 54; weeks begin on Sunday, the first with January 1",
          ("WEEK('2020-01-05')", "2"),
          template="(dayofyear({x}) - 1 + dayofweek(date_trunc('year', {x}))) // 7 + 1"),
    _field("WEEK_ISO", "1 to 53, the week of ISO 8601", ("WEEK_ISO('2020-01-05')", "1"),
          template="weekofyear({x})"),
    _field("HOUR", "0 to 23", ("HOUR('10:11:12')", "10"), reads="TIME"),
    _field("MINUTE", "0 to 59", ("MINUTE('10:11:12')", "11"), reads="TIME"),
    _field("SECOND", "0 to 59", ("SECOND('10:11:12')", "12"), reads="TIME"),
    _field("MICROSECOND", "0 to 999,999",
          ("MICROSECOND(TIMESTAMP('2020-01-31 10:11:12.5'))", "500000"), reads="TIME",
          template="microsecond({x}) % 1000000"),
    Function("VARCHAR_FORMAT(x, format)", Db2Function, "VARCHAR",
             "The time as text; `format` is a constant of YYYY, YY, MM, DDD, DD, HH24, HH12, HH, "
             "MI, SS, NNNNNN, FF6, AM, PM and signs",
             ("VARCHAR_FORMAT('2020-01-31 10:11:12', 'YYYY/MM')", "2020/01"), ("TO_CHAR",),
             calls.function("VARCHAR_FORMAT"), least=2, most=2, reads="TIMESTAMP"),
)  # fmt: skip

_AGGREGATES = (
    Function("COUNT(x)", exp.Count, "DECIMAL(31,0)",
             "Number of rows where x is not null; `COUNT(*)` counts all rows, `COUNT(DISTINCT x)` "
             "different values", ("COUNT(*)", "3")),
    Function("COUNT_BIG(x)", exp.Count, "DECIMAL(31,0)", "The same", ("COUNT_BIG(x)", "3"),
             build=calls.of(exp.Count)),
    Function("SUM(x)", exp.Sum, "BIGINT, DECIMAL(31,s) or DOUBLE", "The sum",
             ("SUM(x)", "7")),
    Function("AVG(x)", exp.Avg, "as x, DECIMAL(31,s) or DOUBLE",
             "The mean; of integers, cut at the point", ("AVG(x)", "2")),
    Function("MIN(x)", exp.Min, SAME, "The smallest", ("MIN(x)", "1")),
    Function("MAX(x)", exp.Max, SAME, "The largest", ("MAX(x)", "4")),
    Function("STDDEV(x)", exp.StddevPop, DOUBLE, "The standard deviation, divided by n",
             ("DECIMAL(STDDEV(x), 5, 3)", "1.247"), ("STDDEV_POP",),
             calls.of(exp.StddevPop), reads="number"),
    Function("STDDEV_SAMP(x)", exp.StddevSamp, DOUBLE, "That of a sample, divided by n - 1",
             ("DECIMAL(STDDEV_SAMP(x), 5, 3)", "1.527"), ("STDEV",),
             calls.of(exp.StddevSamp), reads="number"),
    Function("VARIANCE(x)", exp.VariancePop, DOUBLE, "The variance, divided by n",
             ("DECIMAL(VARIANCE(x), 5, 3)", "1.555"), ("VAR", "VAR_POP"),
             calls.of(exp.VariancePop), reads="number"),
    Function("VARIANCE_SAMP(x)", exp.Variance, DOUBLE, "That of a sample, divided by n - 1",
             ("DECIMAL(VARIANCE_SAMP(x), 5, 3)", "2.333"), ("VAR_SAMP",), reads="number"),
    Function("LISTAGG(x, separator)", exp.GroupConcat, "VARCHAR",
             "All in one text; with `WITHIN GROUP (ORDER BY y)` in that order",
             ("LISTAGG(x, '/') WITHIN GROUP (ORDER BY x DESC)", "4/2/1"),
             build=calls.listed, most=2),
    Function("STRING_AGG(x, separator)", exp.GroupConcat, "VARCHAR", "The same",
             ("STRING_AGG('a', '')", "aaa"), ("GROUP_CONCAT",), most=2),
)  # fmt: skip

_WINDOWS = (
    Function("ROW_NUMBER() OVER (...)", exp.RowNumber, BIGINT, "The number of the row",
             ("ROW_NUMBER() OVER (ORDER BY x DESC)", "1, 2, 3"), least=0, most=0),
    Function("RANK() OVER (...)", exp.Rank, BIGINT, "The number of the first row that is equal",
             ("RANK() OVER (ORDER BY x / 3)", "1, 3"), least=0, most=0),
    Function("DENSE_RANK() OVER (...)", exp.DenseRank, BIGINT, "The same without gaps",
             ("DENSE_RANK() OVER (ORDER BY x / 3)", "1, 2"), least=0, most=0),
)  # fmt: skip

GROUPS: dict[str, tuple[Function, ...]] = {
    "Conversions": _CONVERSIONS,
    "Numbers": _NUMBERS,
    "Text": _TEXTS,
    "Nulls and choices": _CHOICES,
    "Dates and times": _DATES,
    "Over several rows": _AGGREGATES,
    "Windows": _WINDOWS,
}
"""The rows, in the order of the documentation."""

FUNCTIONS: dict[str, Function] = {
    name: function for rows in GROUPS.values() for function in rows for name in function.names
}
"""The row of every name."""

BY_NODE: dict[type[exp.Expr], Function] = {
    function.node: function for rows in GROUPS.values() for function in rows
}
"""A row of each kind of node; those of one kind have one type of result and read text alike."""
