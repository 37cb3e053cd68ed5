"""Db2's functions over several rows that DuckDB has otherwise: of groups, and of windows.

Source: Db2 for LUW SQL reference, "OLAP specification" and "Aggregate functions".
"""

from collections.abc import Callable

from sqlglot import exp

from catalog.errors import SqlError
from query.db2 import types as db2_types
from query.db2.calls import Db2Aggregate
from query.db2.templates import Typed, fill, not_zero, number
from query.db2.types import DOUBLE, TEXT, Db2Type

TypeOf = Callable[[object], Db2Type]

PERCENTILES = ("PERCENTILE_CONT", "PERCENTILE_DISC")
_ORDERED = ("LAG", "LEAD", "NTILE")
_WINDOWED = (*_ORDERED, "FIRST_VALUE", "LAST_VALUE", "RATIO_TO_REPORT")
_WHOLE = (*PERCENTILES, "MEDIAN", "RATIO_TO_REPORT")
"""Functions of a whole partition: their window has no order."""

_IGNORE, _RESPECT = "IGNORE NULLS", "RESPECT NULLS"


def call(node: Db2Aggregate, of: TypeOf) -> Typed:
    """The call inside of its WITHIN GROUP and OVER, and its type.

    Raises:
        SqlError: It lacks one of them, or has an argument that it does not take.
    """
    name: str = node.args["name"]
    if name in PERCENTILES:
        if not isinstance(node.parent, exp.WithinGroup):
            raise _lacks(name, "WITHIN GROUP (ORDER BY ...)")
        return node, of(node.this)  # made with its order
    if name in _WINDOWED and not isinstance(node.parent, exp.Window):
        raise _lacks(name, "OVER (...)")
    if name == "MEDIAN":
        return _quantile(_number(node.this, of), of(node.this), "0.5"), DOUBLE
    if name == "GROUPING":
        if isinstance(node.parent, exp.Window):
            raise SqlError(-142, "42612", "The SQL statement is not supported: GROUPING with OVER.")
        return fill("CAST(grouping({x}) AS SMALLINT)", x=node.this.unnest()), db2_types.SMALLINT
    if name in ("LAG", "LEAD"):
        return _shifted(node, of)
    if name in ("FIRST_VALUE", "LAST_VALUE"):
        nulls = _nulls(node.expressions[0] if node.expressions else None, name)
        return _bare(f"{name.lower()}({{x}}{nulls})", x=node.this), of(node.this)
    if name == "NTILE":
        tiles = _integer(node.this, name, "number of tiles", 1)
        return _bare(f"ntile({tiles})"), of(node.this)
    return node, DOUBLE  # RATIO_TO_REPORT, made with its window


def percentile(node: exp.WithinGroup, of: TypeOf) -> Typed:
    """PERCENTILE_CONT and PERCENTILE_DISC with their order.

    Raises:
        SqlError: Several sort keys, or no constant from 0 to 1.
    """
    call_, keys = node.this, node.expression.expressions
    name: str = call_.args["name"]
    if len(keys) != 1:
        raise SqlError(-171, "42822", f"The ORDER BY of {name} is not valid. Expected: one number.")
    share = _share(call_.this, name)
    falling = bool(keys[0].args.get("desc"))
    kind = of(node.expression)
    key = number(keys[0].this) if kind is TEXT else keys[0].this
    if name == "PERCENTILE_CONT":
        fraction = repr(1 - float(share)) if falling else share
        return _quantile(key, kind, fraction), DOUBLE
    # DuckDB counts a negative one from the highest value on.
    fraction = share if not falling else f"-{share}" if float(share) else "1"
    return _bare(f"quantile_disc({{x}}, {fraction})", x=key), DOUBLE if kind is TEXT else kind


def _quantile(value: exp.Expr, kind: Db2Type, fraction: str) -> exp.Expr:
    """A quantile between values, in DOUBLE, as it is of integers: selecting these takes half."""
    operand = "{x}" if kind.is_integer else "CAST({x} AS DOUBLE)"
    return _bare(f"quantile_cont({operand}, {fraction})", x=value)


def check(node: exp.Window, name: str) -> None:
    """Check the window of a function.

    Raises:
        SqlError: It lacks an order, or has one that the function does not take.
    """
    order = node.args.get("order")
    if name in _ORDERED and order is None:
        raise _lacks(name, "OVER (ORDER BY ...)")
    if name in _WHOLE and (order is not None or node.args.get("spec") is not None):
        raise SqlError(
            -104, "42601", f"The OVER of {name} is not valid. Expected: PARTITION BY at most."
        )


def ratio(node: exp.Window, of_value: Db2Type) -> exp.Expr:
    """RATIO_TO_REPORT(x) OVER (...): x divided by the sum of x."""
    value = node.this.this
    value = number(value) if of_value is TEXT else fill("CAST({x} AS DOUBLE)", x=value)
    total = node.copy()
    total.set("this", exp.Sum(this=value.copy()))
    return fill("{x} / {total}", x=value, total=not_zero(total))


def _shifted(node: Db2Aggregate, of: TypeOf) -> Typed:
    """LAG and LEAD."""
    name: str = node.args["name"]
    rows, default, nulls, *_ = [*node.expressions, None, None, None]
    offset = 1 if rows is None else _integer(rows, name, "offset", 0)
    kind = of(node.this)
    value: exp.Expr = node.this
    otherwise: exp.Expr = exp.Null() if default is None else default
    if not isinstance(otherwise.unnest(), exp.Null) and of(otherwise) is not kind:
        kinds = [kind, of(otherwise)]
        kind = db2_types.common(kinds)
        value, otherwise = _as(value, kinds[0], kind), _as(otherwise, kinds[1], kind)
    template = f"{name.lower()}({{x}}, {offset}, {{d}}{_nulls(nulls, name)})"
    return _bare(template, x=value, d=otherwise), kind


def _as(value: exp.Expr, kind: Db2Type, target: Db2Type) -> exp.Expr:
    """A value in the type that it has together with another."""
    if kind is target or not target.is_number:
        return value
    if kind is TEXT:
        return number(value)
    size = f"({target.precision}, {target.scale})" if target.kind == "DECIMAL" else ""
    return fill(f"CAST({{x}} AS {target.kind}{size})", x=value)


def _bare(template: str, **parts: exp.Expr) -> exp.Expr:
    """The call itself, which OVER may follow: fill puts it into parentheses."""
    inner: exp.Expr = fill(template, **parts).this
    inner.pop()
    return inner


def _number(value: exp.Expr, of: TypeOf) -> exp.Expr:
    return number(value) if of(value) is TEXT else value


def _nulls(argument: exp.Expr | None, name: str) -> str:
    """The clause about nulls inside of a call."""
    if argument is None:
        return ""
    text = argument.name.upper() if isinstance(argument, exp.Literal) else ""
    if text not in (_IGNORE, _RESPECT):
        raise SqlError(
            -171, "42815", f"The last argument of {name} is not valid. Expected: '{_IGNORE}' or "
            f"'{_RESPECT}'.",
        )  # fmt: skip
    return f" {_IGNORE}" if text == _IGNORE else ""


def _integer(node: exp.Expr, name: str, what: str, lowest: int) -> int:
    literal = node.unnest()
    text = literal.name if isinstance(literal, exp.Literal) and not literal.is_string else ""
    if not (text.isdecimal() and len(text) < 10 and int(text) >= lowest):
        raise SqlError(
            -171, "42815", f"The {what} of {name} is not valid. Expected: a constant whole number, "
            f"{lowest} or more.",
        )  # fmt: skip
    return int(text)


def _share(node: exp.Expr, name: str) -> str:
    literal = node.unnest()
    if not isinstance(literal, exp.Literal):
        raise SqlError(
            -171, "428I9", f"The percentile of {name} is not valid. Expected: a constant from 0 "
            "to 1.",
        )  # fmt: skip
    try:
        share = float(literal.name)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SqlError(
            -171, "22003", f"The percentile {literal.name[:40]} of {name} is not valid. Expected: "
            "0 to 1.",
        )  # fmt: skip
    return repr(share)


def _lacks(name: str, clause: str) -> SqlError:
    return SqlError(-104, "42601", f"{name} is not valid alone. Expected: {clause} after it.")
