"""Db2's functions that a statement may call, as one table.

Everything that knows a function reads this table: the parser (dialect), the list of what may be
called (query.db2.read_only), types and meaning (semantics, dates), the list in docs/sql.md.

Source: Db2 for LUW SQL reference, "Built-in functions".
"""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from query.db2 import calls
from query.db2.calls import Build, Db2Aggregate, Db2Cast, Db2Function, Random
from query.db2.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    SMALLINT,
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
    """One row of the table."""

    call: str
    """How it is called; what stands before the first parenthesis is Db2's name."""
    node: type[exp.Expr]
    """What the parser makes of a call."""
    gives: Db2Type | str
    """The type of the result: a type, SAME, or in words what semantics decides."""
    words: str
    """What it gives, for the documentation."""
    example: tuple[str, str]
    """An expression, and what it gives over three rows where x is 1, 2 and 4; different values
    stand in commas.
    """
    also: tuple[str, ...] = ()
    """Other names of it."""
    build: Build | None = None
    """Makes the node of a call; None where sqlglot's parser does under this name."""
    least: int = 1
    """Fewest arguments."""
    most: int | None = 1
    """Most arguments; None where there is no limit."""
    reads: Reads = ""
    """What a text given as the first argument is read as; empty where it stays a text."""
    template: str = ""
    """The result in DuckDB's SQL, {x} being the first argument, before it is cast to ``gives``;
    empty where semantics or DuckDB's function of that node decides.
    """

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


def _regular(
    call: str, gives: Db2Type | str, words: str, example: tuple[str, str], most: int
) -> Function:
    """A function of a regular expression."""
    build = calls.function(call.partition("(")[0])
    return Function(call, Db2Function, gives, words, example, build=build, least=2, most=most)


def _over(
    call: str, gives: Db2Type | str, words: str, example: tuple[str, str], most: int
) -> Function:
    """A function of a window."""
    build = calls.aggregate(call.partition("(")[0])
    return Function(call, Db2Aggregate, gives, words, example, build=build, most=most)


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
        most=2,
    ),
    _cast(
        "CHAR(x, length)", "CHAR",
        "The text with blanks up to `length`: that of the type unless given, 11 of an INTEGER",
        ("CHAR('ab', 4) || '.'", "ab  ."), most=2,
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
    Function("TRUNCATE(x, digits)", exp.Trunc, SAME,
             "Cut to that many digits, 0 unless given; of a date or time to the begin of a year, "
             "`'YEAR'`, or of `Q`, `MONTH`, `IW` (ISO 8601's week), `DAY` (week), `DD`, `HH`, `MI`",
             ("TRUNC(2.456, 1)", "2.4"), ("TRUNC",), most=2, reads="number"),
    Function("RAND(seed)", Random, DOUBLE,
             "A random number from 0 up to 1; with a seed the same number for the same row",
             ("RAND(7) < 1", "true"), ("RANDOM",), calls.random, least=0),
)  # fmt: skip

_TEXTS = (
    Function("CONCAT(x, y)", exp.Concat, "VARCHAR", "Both in one; also `x || y`, `x CONCAT y`",
             ("CONCAT('a', 'b')", "ab"), build=calls.joined, least=2, most=None),
    Function("LEFT(x, length)", exp.Left, TEXT, "The first characters",
             ("LEFT('camera', 3)", "cam"), least=2, most=2),
    Function("RIGHT(x, length)", exp.Right, TEXT, "The last characters",
             ("RIGHT('camera', 3)", "era"), least=2, most=2),
    Function("SUBSTR(x, start, length)", Db2Function, "VARCHAR",
             "The characters from `start` on, counted from 1; with a `length` so many, with blanks "
             "at the end where x has fewer; beyond what x may have SQL0138N",
             ("SUBSTR('camera', 2, 3)", "ame"), build=calls.substr, least=2, most=3),
    Function("SUBSTRING(x, start, length)", exp.Substring, "VARCHAR",
             "The same, of what x has: no blanks, no error",
             ("SUBSTRING('camera', 5, 3)", "ra"), least=2, most=3),
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
    Function("LPAD(x, length, pad)", Db2Function, "VARCHAR",
             "With blanks, or these, at the beginning up to `length`; cut at it",
             ("LPAD(x, 3, '0')", "001, 002, 004"), build=calls.function("LPAD"), least=2, most=3),
    Function("RPAD(x, length, pad)", Db2Function, "VARCHAR", "The same at the end",
             ("RPAD('ab', 5, '.-')", "ab.-."), build=calls.function("RPAD"), least=2, most=3),
    Function("LENGTH(x)", exp.Length, INTEGER, "Number of characters", ("LENGTH('camera')", "6"),
             ("CHAR_LENGTH", "CHARACTER_LENGTH", "LEN")),
    Function("POSSTR(x, sought)", exp.StrPosition, INTEGER,
             "Where `sought` begins, counted from 1; 0 where it is not",
             ("POSSTR('camera', 'e')", "4"), build=calls.position, least=2, most=2),
    Function("INSTR(x, sought, start)", exp.StrPosition, INTEGER, "The same, from `start` on",
             ("INSTR('camera', 'a', 3)", "6"), ("STRPOS", "STR_POSITION"), least=2, most=3),
    Function("LOCATE(sought, x, start)", exp.StrPosition, INTEGER, "The same, the other way round",
             ("LOCATE('e', 'camera')", "4"), ("POSITION", "CHARINDEX"), least=2, most=3),
    _regular("REGEXP_LIKE(x, pattern, start, flags)", "BOOLEAN", "Whether a part of x matches",
             ("REGEXP_LIKE('a2d2', '^A\\dd', 1, 'i')", "true"), 4),
    _regular("REGEXP_SUBSTR(x, pattern, start, occurrence, flags, group)", "VARCHAR",
             "The part that matches; null where none does",
             ("REGEXP_SUBSTR('a2d4', 'd(\\d)', 1, 1, 'c', 1)", "4"), 6),
    _regular("REGEXP_COUNT(x, pattern, start, flags)", INTEGER, "How many parts match",
             ("REGEXP_COUNT('a2d2', '\\d')", "2"), 4),
    _regular("REGEXP_INSTR(x, pattern, start, occurrence, after, flags)", INTEGER,
             "Where that part begins, 0 where none does; with `after` = 1 what follows it",
             ("REGEXP_INSTR('a2d2', '\\d', 1, 2)", "4"), 6),
    _regular("REGEXP_REPLACE(x, pattern, new, start, occurrence, flags)", "VARCHAR",
             "With the parts that match replaced, all or one; $0 to $9 are groups",
             ("REGEXP_REPLACE('a2d2', '([a-z])(\\d)', '$2$1')", "2a2d"), 6),
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
    Function("DECODE(x, y, then, ..., else)", Db2Function, "the common type",
             "The `then` of the first y that equals x, as null equals null; else `else`, or null",
             ("DECODE(x, 1, 'one', 2, 'two', 'many')", "many, one, two"),
             build=calls.function("DECODE"), least=3, most=None),
    Function("GREATEST(x, y, ...)", Db2Function, "the common type",
             "The largest; null where one is", ("GREATEST(x, 2)", "2, 4"),
             build=calls.function("GREATEST"), least=2, most=None),
    Function("LEAST(x, y, ...)", Db2Function, "the common type",
             "The smallest; null where one is", ("LEAST(x, 2)", "1, 2"),
             build=calls.function("LEAST"), least=2, most=None),
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
    Function("TO_DATE(x, format)", Db2Function, TIMESTAMP,
             "The time of a text in that format, YYYY-MM-DD HH24:MI:SS unless given",
             ("TO_DATE('31/01/2020', 'DD/MM/YYYY')", "2020-01-31 00:00:00"),
             ("TIMESTAMP_FORMAT", "TO_TIMESTAMP"), calls.function("TO_DATE"), most=2),
    Function("MONTHNAME(x)", Db2Function, TEXT, "The month's name in English",
             ("MONTHNAME('2020-01-31')", "January"), build=calls.function("MONTHNAME"),
             reads="DATE", template="monthname({x})"),
    Function("DAYNAME(x)", Db2Function, TEXT, "The day's name in English",
             ("DAYNAME('2020-01-31')", "Friday"), build=calls.function("DAYNAME"),
             reads="DATE", template="dayname({x})"),
    Function("ADD_MONTHS(x, months)", Db2Function, "DATE or TIMESTAMP",
             "x so many months later; the last day of a month stays one",
             ("ADD_MONTHS('2020-02-29', 4)", "2020-06-30"), build=calls.function("ADD_MONTHS"),
             least=2, most=2),
    Function("TIMESTAMPDIFF(unit, duration)", Db2Function, INTEGER,
             "A difference of timestamps in microseconds (1), seconds (2), minutes (4), hours (8), "
             "days (16), weeks (32), months (64), quarters (128) or years (256), a month having "
             "30 days and a year 365",
             ("TIMESTAMPDIFF(4, CHAR(TIMESTAMP('2020-03-01 10:00:00') - '2020-03-01 08:29:30'))",
              "90"),
             build=calls.function("TIMESTAMPDIFF"), least=2, most=2),
)  # fmt: skip

_ROLLED_UP = (
    "(SELECT SUM(g) FROM (SELECT GROUPING(k) AS g FROM (VALUES 1, 2) AS v(k) GROUP BY ROLLUP(k)) w)"
)

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
    Function("MEDIAN(x)", Db2Aggregate, DOUBLE, "The number in the middle, or between two",
             ("MEDIAN(x)", "2.0"), build=calls.aggregate("MEDIAN")),
    Function("PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY x)", Db2Aggregate, DOUBLE,
             "The number that such a share of x lies below, between two where none is there",
             ("PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY x)", "3.0"),
             build=calls.aggregate("PERCENTILE_CONT")),
    Function("PERCENTILE_DISC(share) WITHIN GROUP (ORDER BY x)", Db2Aggregate, SAME,
             "The first of x that such a share of x does not exceed",
             ("PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY x)", "4"),
             build=calls.aggregate("PERCENTILE_DISC")),
    Function("CORR(x, y)", exp.Corr, DOUBLE,
             "The correlation, -1 to 1; null where x or y is the same everywhere",
             ("DECIMAL(CORR(x, x * x), 5, 3)", "0.989"), ("CORRELATION",), calls.of_two(exp.Corr),
             least=2, most=2),
    Function("ANY_VALUE(x)", exp.Min, SAME, "Any that is not null: the smallest",
             ("ANY_VALUE('a')", "a"), build=calls.of(exp.Min)),
    Function("GROUPING(x)", Db2Aggregate, SMALLINT,
             "1 in a row over all values of x, which ROLLUP, CUBE and GROUPING SETS make; else 0",
             (_ROLLED_UP, "1"), build=calls.aggregate("GROUPING")),
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
    _over("LAG(x, rows, default, 'IGNORE NULLS') OVER (...)", SAME,
          "x of the row before, or so many rows before; `default` where there is none",
          ("LAG(x, 1, 0) OVER (ORDER BY x)", "0, 1, 2"), 4),
    _over("LEAD(x, rows, default, 'IGNORE NULLS') OVER (...)", SAME, "The same of a row after",
          ("LEAD(x, 1, 0) OVER (ORDER BY x)", "0, 2, 4"), 4),
    _over("FIRST_VALUE(x, 'IGNORE NULLS') OVER (...)", SAME, "x of the window's first row",
          ("FIRST_VALUE(x) OVER (ORDER BY x DESC)", "4"), 2),
    _over("LAST_VALUE(x, 'IGNORE NULLS') OVER (...)", SAME,
          "x of its last row: the row itself, unless the window goes on",
          ("LAST_VALUE(x) OVER (ORDER BY x)", "1, 2, 4"), 2),
    _over("NTILE(n) OVER (...)", SAME, "The number of the row's part, of n parts",
          ("NTILE(2) OVER (ORDER BY x)", "1, 2"), 1),
    _over("RATIO_TO_REPORT(x) OVER (...)", DOUBLE, "x divided by the sum of x",
          ("DECIMAL(RATIO_TO_REPORT(x) OVER (), 5, 3)", "0.142, 0.285, 0.571"), 1),
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
