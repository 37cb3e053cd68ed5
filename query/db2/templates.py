"""DuckDB expressions that compute what Db2 would: conversions, division, LIKE."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice

from sqlglot import exp, parse_one

from catalog.errors import SqlError
from query.db2 import types as db2_types
from query.db2.calls import MAX_TEXT, VIEW_TEXT, Db2Cast, Random
from query.db2.read_only import too_complex
from query.db2.time_limit import go_on
from query.db2.types import DOUBLE, INTEGER, TEXT, Db2Type

DIVISION_BY_ZERO = "SQL0801N"
"""Text of the DuckDB error that the query raises on a division by zero."""

NOT_A_NUMBER = "SQL0420N:"
"""Prefix of the DuckDB error that the query raises on a text that is no number; the text
follows."""

_NUMERIC = "' *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)? *'"
"""Db2's numeric constants; DuckDB would take 1_000, nan, 0x1A and white space of any kind."""

WITHOUT_END_BLANKS = "CASE WHEN suffix({x}, ' ') THEN rtrim({x}, ' ') ELSE {x} END"
"""Few texts have any; RTRIM takes 0.7 microseconds of each, and to look next to nothing."""

_NOT_ZERO = f"CASE WHEN {{b}} = 0 THEN error('{DIVISION_BY_ZERO}') ELSE {{b}} END"
_INTEGERS = ("SMALLINT", "INTEGER", "BIGINT")
_NUMBER_KINDS = {
    "SMALLINT": db2_types.SMALLINT,
    "INTEGER": db2_types.INTEGER,
    "BIGINT": db2_types.BIGINT,
}
Typed = tuple[exp.Expr, Db2Type]


MAX_NODES = 100_000
"""Nodes that templates may add to one statement: filling one takes some 10 microseconds."""

_REPEATED_NODES = 40
"""Operands up to this size are repeated where a template names them more than once. Larger ones are
computed once, or each level of a nest would double the statement: 12 divisions of 76 bytes took
2.7 s to rewrite. The columns, constants and sums of usual statements have up to 20 nodes."""

_remaining_nodes: ContextVar[int] = ContextVar("nodes left")

_CONSTANTS = (exp.Literal, exp.Null)
_LONG_TEMPLATE = 2_000

TOO_LONG = "SQL0137N"
"""Text of the DuckDB error that the query raises before it makes a text beyond MAX_TEXT."""


@lru_cache(maxsize=512)
def _parsed_once(template: str) -> exp.Expr:
    return parse_one(template, dialect="duckdb")


def _parsed(template: str) -> exp.Expr:
    # Long ones, of chains, have no end: a cache of them would have none either.
    return (
        _parsed_once(template)
        if len(template) < _LONG_TEMPLATE
        else _parsed_once.__wrapped__(template)
    )


@contextmanager
def size_limited() -> Iterator[None]:
    """One statement is rewritten inside, and grows by MAX_NODES at most."""
    token = _remaining_nodes.set(MAX_NODES)
    try:
        yield
    finally:
        _remaining_nodes.reset(token)


def fill(template: str, **parts: exp.Expr) -> exp.Expr:
    """DuckDB SQL with each ``{name}`` filled by an expression, in parentheses.

    Raises:
        SqlError: SQL0101N, the statement grows too large.
    """
    stand_ins = {name: f"part_{name}" for name in parts}
    named = {stand_ins[name]: operand for name, operand in parts.items()}
    go_on()
    remaining = _remaining_nodes.get()
    sizes = {
        name: sum(1 for _ in islice(operand.walk(), remaining)) for name, operand in named.items()
    }
    tree = _parsed(template.format(**stand_ins))
    uses = Counter(column.name for column in tree.find_all(exp.Column))
    if any(
        uses[name] > 1 and (sizes[name] > _REPEATED_NODES or operand.find(exp.Rand) is not None)
        for name, operand in named.items()
    ):
        tree = _parsed(_computed_once(template, parts))
    filled = exp.Paren(this=tree.copy())
    slots = [column for column in filled.find_all(exp.Column) if column.name in named]
    remaining -= sum(sizes[slot.name] for slot in slots)
    if remaining <= 0:
        raise too_complex()
    _remaining_nodes.set(remaining)
    for slot in slots:
        exchange(slot, exp.Paren(this=named[slot.name].copy()))
    return filled


def _computed_once(template: str, parts: Mapping[str, exp.Expr]) -> str:
    """The template as a function of its operands.

    DuckDB has functions of a list's elements only: the operands are the one element of a list. They
    stay outside of the function, where they may be aggregates, windows and queries.
    """
    bound = [
        name for name, operand in parts.items() if not isinstance(operand.unnest(), _CONSTANTS)
    ]
    # Not operands.name: where the statement has a table of that name, that would be its column.
    inside = {name: f"struct_extract(operands, '{name}')" for name in bound}
    computed = template.format(**{name: inside.get(name, f"part_{name}") for name in parts})
    packed = ", ".join(f"{name} := part_{name}" for name in bound)
    return f"list_transform([struct_pack({packed})], lambda operands: {computed})[1]"


def exchange(node: exp.Expr, new: exp.Expr) -> exp.Expr:
    """Put ``new`` in the place of ``node``, and return it.

    sqlglot's replace goes through the whole list where that is one of a list: 30,000 texts of an IN
    took two minutes.
    """
    parent, key, index = node.parent, node.arg_key, node.index
    siblings = parent.args.get(key) if parent is not None and key else None
    if parent is None or not isinstance(siblings, list) or index is None:
        replaced: exp.Expr = node.replace(new)
        return replaced
    siblings[index] = new
    new.parent, new.arg_key, new.index = parent, key, index
    return new


def integer_operand(text: exp.Expr) -> exp.Expr | None:
    """The integer column that a view shows as this text; None where it is other text."""
    inner = text.unnest()
    if inner.meta.get(VIEW_TEXT) in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"):
        return inner.this.copy()  # type: ignore[no-any-return]
    return None


def number(text: exp.Expr) -> exp.Expr:
    """Text as a number, as Db2 converts it beside one; blanks around it do not count."""
    integer = integer_operand(text)
    if integer is not None:
        return fill("CAST({x} AS DOUBLE)", x=integer)
    return fill(_guarded("INTEGER", "CAST({x} AS DOUBLE)", "CAST(trim({x}) AS DOUBLE)"), x=text)


def _guarded(kind: str, plain: str, other: str) -> str:
    """``plain`` for text that is just digits, as it nearly always is; else check it first."""
    return (
        f"CASE WHEN CAST(TRY_CAST({{x}} AS {kind}) AS VARCHAR) = {{x}} THEN {plain}"
        f" WHEN regexp_full_match({{x}}, {_NUMERIC}) THEN {other}"
        f" WHEN {{x}} IS NOT NULL THEN error('{NOT_A_NUMBER}' || {{x}}) END"
    )


def not_zero(divisor: exp.Expr) -> exp.Expr:
    """The divisor, or Db2's error where it is zero."""
    return fill(_NOT_ZERO, b=divisor)


def convert(cast: Db2Cast, argument: Db2Type) -> Typed:
    """INT(x) and its family, and the type it gives."""
    kind: str = cast.args["kind"]
    integer = integer_operand(cast.this)
    of_view = cast.this.unnest().meta.get(VIEW_TEXT)
    if integer is not None and kind not in ("CHAR", "VARCHAR"):
        cast.set("this", integer)
        argument = INTEGER
    if kind in _INTEGERS:
        if integer is not None and of_view == kind:  # what is no cast fails for no row
            return exp.Paren(this=integer), _NUMBER_KINDS[kind]
        if integer is not None:
            return fill(f"CAST({{x}} AS {kind})", x=integer), _NUMBER_KINDS[kind]
        return _to_integer(cast.this, kind, argument), _NUMBER_KINDS[kind]
    if kind == "DECIMAL":
        return _to_decimal(cast, argument)
    if kind == "VARCHAR":
        return _to_text(cast, argument), TEXT
    template = f"CAST({{x}} AS {kind})"
    if argument is TEXT:
        return fill(_guarded(kind, template, f"CAST(trim({{x}}) AS {kind})"), x=cast.this), DOUBLE
    return fill(template, x=cast.this), DOUBLE


def _to_integer(value: exp.Expr, kind: str, argument: Db2Type) -> exp.Expr:
    if argument.is_integer:
        return fill(f"CAST({{x}} AS {kind})", x=value)
    if argument is not TEXT:
        return fill(f"CAST(trunc({{x}}) AS {kind})", x=value)
    # Cut in the text, because DOUBLE and DECIMAL would round a long fraction up.
    cut = "regexp_replace(trim({x}), '[.][0-9]*$', '.0')"
    other = f"CAST(trunc(CAST({cut} AS DECIMAL(38, 6))) AS {kind})"
    return fill(_guarded(kind, f"CAST({{x}} AS {kind})", other), x=value)


def _to_decimal(cast: Db2Cast, argument: Db2Type) -> Typed:
    precision = _constant(cast, "precision", 15, 1, db2_types.MAX_PRECISION)
    scale = _constant(cast, "scale", 0, 0, precision)
    wide = f"DECIMAL(38, {min(38 - precision + scale, 18)})"
    result = f"CAST(trunc({{n}}, {scale}) AS DECIMAL({precision}, {scale}))"
    plain = result.replace("{n}", f"CAST({{x}} AS {wide})")
    if argument is TEXT:
        plain = _guarded(wide, plain, result.replace("{n}", f"CAST(trim({{x}}) AS {wide})"))
    return fill(plain, x=cast.this), db2_types.decimal(precision, scale)


def _to_text(cast: Db2Cast, argument: Db2Type) -> exp.Expr:
    if argument is db2_types.TIMESTAMP:
        return fill("strftime({x}, '%Y-%m-%d-%H.%M.%S.%f')", x=cast.this)
    if cast.args.get("precision") is None:
        return fill("CAST({x} AS VARCHAR)", x=cast.this)
    length = _constant(cast, "precision", 0, 1, 32_672)
    return fill(f"left(CAST({{x}} AS VARCHAR), {length})", x=cast.this)


def _constant(cast: Db2Cast, name: str, default: int, lowest: int, highest: int) -> int:
    """A length, precision or scale, which Db2 wants as a whole number written out."""
    argument = cast.args.get(name)
    if argument is None:
        return default
    text = argument.name if isinstance(argument, exp.Literal) and not argument.is_string else ""
    if not (text.isdecimal() and len(text) < 9 and lowest <= int(text) <= highest):
        raise SqlError(
            -171,
            "42815",
            f'The {name} "{argument.sql()[:40]}" of {cast.args["kind"]} is not valid. '
            f"Expected: a number from {lowest} to {highest}.",
        )
    return int(text)


def divide(node: exp.Expr, left: Db2Type, right: Db2Type, result: Db2Type) -> exp.Expr:
    """``left / right`` of numbers: integers truncate, decimals at Db2's scale."""
    parts = {"a": node.args["this"], "b": node.args["expression"]}
    # A constant needs no look, and without it the operand is named once.
    divisor = "{b}" if _is_not_zero(parts["b"]) else _NOT_ZERO
    if result.kind == "DOUBLE":
        return fill(f"{{a}}::DOUBLE / {divisor}", **parts)
    if result.is_integer:
        return fill(f"{{a}} // {divisor}", **parts)
    left, right = left.as_decimal(), right.as_decimal()
    shift = 10 ** (result.scale - left.scale + right.scale)
    shifted = (
        f"{_unscaled('{a}', left)} * {shift}::HUGEINT" if shift > 1 else _unscaled("{a}", left)
    )
    return fill(_scaled(f"({shifted} // {_unscaled(divisor, right)})", result), **parts)


def _is_not_zero(divisor: exp.Expr) -> bool:
    inner = divisor.unnest()
    return isinstance(inner, exp.Literal) and not inner.is_string and float(inner.name) != 0


def average(total: exp.Expr, count: exp.Expr, argument: Db2Type, result: Db2Type) -> exp.Expr:
    """The mean of integers, truncated, or of decimals, truncated at Db2's scale."""
    parts = {"a": total, "b": count}
    if result.is_integer:
        return fill(f"CAST({{a}} // {{b}} AS {result.kind})", **parts)
    shift = 10 ** (result.scale - argument.scale)
    summed = db2_types.decimal(db2_types.MAX_PRECISION, argument.scale)
    quotient = f"({_unscaled('{a}', summed)} * {shift}::HUGEINT // NULLIF({{b}}, 0))"
    return fill(_scaled(quotient, result), **parts)


def _unscaled(template: str, kind: Db2Type) -> str:
    """The DECIMAL as a whole number of its smallest unit."""
    if not kind.scale:
        return f"({template})::HUGEINT"
    # Through text, because DuckDB's 38-digit DECIMAL has no room to shift a 31-digit one.
    exact = f"CAST({template} AS DECIMAL(38, {kind.scale}))"
    return f"CAST(replace(CAST({exact} AS VARCHAR), '.', '') AS HUGEINT)"


def _scaled(units: str, kind: Db2Type) -> str:
    """A whole number of smallest units as the DECIMAL."""
    if not kind.scale:
        return f"CAST({units} AS DECIMAL(31, 0))"
    # Times one unit, which leaves the digits as they are, and sets the point.
    unit = f"CAST({10**-kind.scale:.{kind.scale}f} AS DECIMAL({kind.scale}, {kind.scale}))"
    return f"CAST(CAST({units} AS DECIMAL(38, 0)) * {unit} AS DECIMAL(31, {kind.scale}))"


_NARROW = 18
"""DuckDB calculates + - * of decimals with at most so many digits in 64 bits, and fails where the
result has more."""


def would_overflow(left: Db2Type, right: Db2Type, result: Db2Type) -> bool:
    """Return whether DuckDB's 64 bits may be too few for a result that Db2 can hold."""
    digits = max(left.as_decimal().precision, right.as_decimal().precision)
    return result.precision > _NARROW >= digits


def widened(operand: exp.Expr, kind: Db2Type) -> exp.Expr:
    """A number as a decimal that DuckDB calculates with in 128 bits."""
    return fill(f"CAST({{x}} AS DECIMAL({_NARROW + 1}, {kind.scale}))", x=operand)


def exact(node: exp.Expr, result: Db2Type, scale: int) -> exp.Expr:
    """Decimal + - * in Db2's type; ``scale`` is what DuckDB's result has."""
    cut = f"trunc({{x}}, {result.scale})" if scale > result.scale else "{x}"
    return fill(f"CAST({cut} AS DECIMAL({result.precision}, {result.scale}))", x=node)


def like(node: exp.Like, escape: str) -> exp.Expr:
    """LIKE with a constant pattern, in time that grows with the text and no faster.

    DuckDB's own LIKE takes exponential time, and cannot be stopped, where % and _ are mixed.
    """
    pattern = node.expression.unnest()
    expression = _regular_expression(pattern.name, escape)
    if not escape and ("_" not in pattern.name or pattern.name.count("%") <= 2):
        return node
    match = fill("regexp_full_match({x}, {p}, 's')", x=node.this, p=exp.Literal.string(expression))
    return exp.Not(this=match) if node.args.get("negate") else match


def _regular_expression(pattern: str, escape: str) -> str:
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape) or not escaped:
                raise SqlError(
                    -130, "22025", f'The escape character "{escape}" is not followed by % or _.'
                )
            parts.append(re.escape(escaped))
        elif character == "%":
            parts.append(".*" if parts[-1:] != [".*"] else "")
        else:
            parts.append("." if character == "_" else re.escape(character))
    return "".join(parts)


def concatenated(parts: Sequence[exp.Expr]) -> exp.Expr:
    """``a || b``, null where a part is, and Db2's error before it would be too long."""
    named = {f"p{n}": operand for n, operand in enumerate(parts)}
    length = " + ".join(f"strlen(CAST({{{name}}} AS VARCHAR))" for name in named)
    joined = " || ".join(f"{{{name}}}" for name in named)
    return fill(_unless_long(length, joined), **named)


def replaced(text: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    """REPLACE, and Db2's error before the text would be too long."""
    matches = "(strlen({x}) - strlen(replace({x}, {o}, ''))) // greatest(strlen({o}), 1)"
    length = f"strlen({{x}}) + {matches} * (strlen({{n}}) - strlen({{o}}))"
    return fill(_unless_long(length, "replace({x}, {o}, {n})"), x=text, o=old, n=new)


def list_of(value: exp.Expr, separator: exp.Expr | None, order: Sequence[exp.Expr]) -> exp.Expr:
    """LISTAGG, and Db2's error where the text is too long.

    Raises:
        SqlError: SQL0171N, the separator is no constant.
    """
    if isinstance(value, exp.Distinct):
        value, separator, *_ = [*value.expressions, separator]
        text: exp.Expr = exp.Distinct(expressions=[fill("CAST({x} AS VARCHAR)", x=value)])
    else:
        text = fill("CAST({x} AS VARCHAR)", x=value)
    if separator is None:
        separator = exp.Literal.string("")
    if not (isinstance(separator, exp.Literal) and separator.is_string):
        raise SqlError(
            -171, "42815", "The separator of LISTAGG is not valid. Expected: a constant in quotes."
        )
    if order:
        text = exp.Order(this=text, expressions=[term.copy() for term in order])
    joined = exp.GroupConcat(this=text, separator=separator.copy())
    return fill(_unless_long("strlen({x})", "{x}"), x=joined)


def _unless_long(length: str, text: str) -> str:
    return f"CASE WHEN {length} > {MAX_TEXT} THEN error('{TOO_LONG}') ELSE {text} END"


def joined_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands that a chain of || joins, from left to right."""
    pending = [node]
    while pending:
        operand = pending.pop()
        inner = operand.unnest()
        if isinstance(inner, exp.DPipe):
            pending += [inner.expression, inner.this]
        elif isinstance(inner, exp.Concat):
            pending += reversed(inner.expressions)
        else:
            yield operand


def random(node: Random) -> exp.Expr:
    """The number in DuckDB's SQL, from 0 up to 1, DOUBLE."""
    seed, columns = node.this, node.expressions
    if seed is None and not node.args.get("table"):
        return fill("random()")
    parts = {f"c{index}": column for index, column in enumerate(columns)}
    # The text of a null would be left out: rows (null, 'a') and ('a', null) differ.
    texts = "".join(f", coalesce(CAST({{{name}}} AS VARCHAR), '~')" for name in parts)
    # Without a seed one number for the statement: a query is computed once.
    start = "(SELECT random())" if seed is None else "{s}"
    hashed = f"md5_number_lower(concat_ws(':', {start}{texts}))"
    named = parts if seed is None else {"s": seed, **parts}
    return fill(f"CAST({hashed} AS DOUBLE) / 18446744073709551616.0", **named)
