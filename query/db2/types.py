"""Db2's result types: what an expression is, decides how its division and comparisons work.

Source: Db2 for LUW SQL reference, "Expressions" and "Aggregate functions", with
LARGE_AGGREGATION=YES, the default of the Db2 warehouses that Spectrum Discover runs on
(COUNT is DECIMAL(31,0), SUM(INTEGER) is BIGINT).
"""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from catalog.errors import SqlError

MAX_PRECISION = 31

Kind = Literal[
    "SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "DOUBLE", "TEXT", "DATE", "TIME", "TIMESTAMP",
    "OTHER",
]  # fmt: skip


@dataclass(frozen=True)
class Db2Type:
    """A Db2 data type."""

    kind: Kind
    """DECFLOAT, REAL and DOUBLE are DOUBLE; OTHER is anything without arithmetic."""
    precision: int = 0
    scale: int = 0

    @property
    def is_number(self) -> bool:
        """True where arithmetic works without a conversion."""
        return self.is_integer or self.kind in ("DECIMAL", "DOUBLE")

    @property
    def is_integer(self) -> bool:
        """True for an integer type, where division truncates."""
        return self.kind in ("SMALLINT", "INTEGER", "BIGINT")

    @property
    def is_datetime(self) -> bool:
        """True for a date, a time or both."""
        return self.kind in ("DATE", "TIME", "TIMESTAMP")

    def as_decimal(self) -> "Db2Type":
        """The DECIMAL that an integer counts as beside a DECIMAL."""
        if self.kind == "SMALLINT":
            return decimal(5, 0)
        if self.kind == "INTEGER":
            return decimal(11, 0)
        if self.kind == "BIGINT":
            return decimal(19, 0)
        return self


SMALLINT = Db2Type("SMALLINT")
INTEGER = Db2Type("INTEGER")
BIGINT = Db2Type("BIGINT")
DOUBLE = Db2Type("DOUBLE")
TEXT = Db2Type("TEXT")
DATE = Db2Type("DATE")
TIME = Db2Type("TIME")
TIMESTAMP = Db2Type("TIMESTAMP")
OTHER = Db2Type("OTHER")


def decimal(precision: int, scale: int) -> Db2Type:
    """DECIMAL(precision, scale), cut to Db2's 31 digits."""
    return Db2Type("DECIMAL", min(MAX_PRECISION, precision), min(MAX_PRECISION, scale))


COUNT = decimal(31, 0)


def of_number(text: str) -> Db2Type:
    """The type of a numeric constant; a decimal's leading zeros count.

    >>> of_number("1920").kind
    'INTEGER'
    >>> of_number("12.50")
    Db2Type(kind='DECIMAL', precision=4, scale=2)

    Raises:
        SqlError: SQL0103N, it is none; SQL0405N, it has more than 31 digits or is beyond DOUBLE.
    """
    if "e" in text.lower():
        if not text[-1].isdigit():  # sqlglot takes "0E" for a number
            raise SqlError(-103, "42604", f'The numeric literal "{text[:40]}" is not valid.')
        return DOUBLE if isfinite(float(text)) else _too_large(text)
    integer_digits, point, fraction = text.partition(".")
    digits = len(integer_digits if point else integer_digits.lstrip("0")) + len(fraction)
    if digits > MAX_PRECISION:
        return _too_large(text)
    if point:
        return decimal(digits, len(fraction))
    value = int(integer_digits)
    if value < 2**31:
        return INTEGER
    return BIGINT if value < 2**63 else decimal(digits, 0)


def _too_large(text: str) -> Db2Type:
    raise SqlError(
        -405, "42820", f'The numeric literal "{text[:40]}" is not valid: its value is out of range.'
    )


def of_engine(name: str) -> Db2Type:
    """The type of a column that DuckDB reports as ``name``.

    >>> of_engine("DECIMAL(26,0)")
    Db2Type(kind='DECIMAL', precision=26, scale=0)
    """
    if name in ("TINYINT", "SMALLINT"):
        return SMALLINT
    if name == "INTEGER":
        return INTEGER
    if name == "BIGINT":
        return BIGINT
    if name == "HUGEINT":
        return COUNT
    if name in ("FLOAT", "DOUBLE"):
        return DOUBLE
    if name == "VARCHAR":
        return TEXT
    if name in ("DATE", "TIME", "TIMESTAMP"):
        return {"DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP}[name]
    if name.startswith("DECIMAL("):
        precision, scale = name[8:-1].split(",")
        return decimal(int(precision), int(scale))
    return OTHER


def of_arithmetic(operator: str, left: Db2Type, right: Db2Type) -> Db2Type:
    """The type of ``left operator right`` for + - * /, both being numbers.

    Raises:
        SqlError: SQL0419N, a decimal division whose result would have a negative scale.
    """
    if "DOUBLE" in (left.kind, right.kind):
        return DOUBLE
    if left.is_integer and right.is_integer:
        return BIGINT if "BIGINT" in (left.kind, right.kind) else INTEGER
    left, right = left.as_decimal(), right.as_decimal()
    if operator == "*":
        return decimal(left.precision + right.precision, left.scale + right.scale)
    if operator == "/":
        scale = MAX_PRECISION - left.precision + left.scale - right.scale
        if scale < 0:
            raise SqlError(
                -419,
                "42911",
                "A decimal divide operation is not valid because the result would have a "
                "negative scale.",
            )
        return decimal(MAX_PRECISION, scale)
    scale = max(left.scale, right.scale)
    integer_digits = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(integer_digits + scale + 1, scale)


def of_sum(argument: Db2Type) -> Db2Type:
    """The type of SUM over a column of that type."""
    if argument.kind in ("SMALLINT", "INTEGER"):
        return BIGINT
    if argument.kind == "BIGINT":
        return decimal(31, 0)
    if argument.kind == "DECIMAL":
        return decimal(31, argument.scale)
    return DOUBLE


def of_average(argument: Db2Type) -> Db2Type:
    """The type of AVG: integers stay integers, decimals gain all the digits there are."""
    if argument.kind == "DECIMAL":
        return decimal(31, MAX_PRECISION - argument.precision + argument.scale)
    if argument.kind == "SMALLINT":
        return INTEGER
    return argument if argument.is_integer else DOUBLE


def common(types: list[Db2Type]) -> Db2Type:
    """The type that holds all of them, as for CASE, COALESCE and UNION: text yields to numbers."""
    numbers = [kind for kind in types if kind.is_number]
    if not numbers:
        times = {kind for kind in types if kind.is_datetime}
        if times:
            return times.pop() if len(times) == 1 else TIMESTAMP
        return TEXT if TEXT in types else OTHER
    if TEXT in types:
        return DOUBLE
    result = numbers[0]
    for kind in numbers[1:]:
        result = result if result == kind else _wider(result, kind)
    return result


def _wider(one: Db2Type, other: Db2Type) -> Db2Type:
    for kind in (DOUBLE, BIGINT, INTEGER):
        alone = kind is DOUBLE or (one.is_integer and other.is_integer)
        if alone and kind in (one, other):
            return kind
    one, other = one.as_decimal(), other.as_decimal()
    scale = max(one.scale, other.scale)
    return decimal(max(one.precision - one.scale, other.precision - other.scale) + scale, scale)
