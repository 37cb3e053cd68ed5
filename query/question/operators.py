"""The operators that conditions on a tag can have, as a table.

Everything that knows an operator reads this table: questions and their JSON schema, the SQL they
become, the sentence, the command line, GET /v1/selections/operators, docs/selections.md.
"""

from dataclasses import dataclass
from typing import Literal

TagType = Literal["number", "text", "boolean", "time"]
Shape = Literal["none", "one", "two", "many"]

TYPES: dict[TagType, tuple[str, ...]] = {
    "number": (
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UBIGINT", "FLOAT", "DOUBLE",
    ),
    "text": ("VARCHAR",),
    "boolean": ("BOOLEAN",),
    "time": ("TIMESTAMP",),
}  # fmt: skip
"""Type of a tag -> DuckDB's types that are it."""

SHAPES: dict[Shape, str] = {
    "none": "no value",
    "one": "one value",
    "two": "two values",
    "many": "one value or more",
}
"""Number of values that an operator takes, in words."""

_EVERY: tuple[TagType, ...] = ("number", "text", "boolean", "time")
_ORDERED: tuple[TagType, ...] = ("number", "time")
_TEXT: tuple[TagType, ...] = ("text",)


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the table."""

    name: str
    """As a question writes it."""
    types: tuple[TagType, ...]
    """Types of the tags that it takes."""
    shape: Shape
    """How many values it takes."""
    sql: str
    """The condition in Db2's SQL; {x} is the tag, {v} the value, {v} and {w} two values, {many} any
    number of them, in commas.
    """
    words: str
    """The condition in English, after the tag's name."""
    pattern: str = ""
    """The LIKE pattern that a value becomes, in place of {}; its own % and _ count as themselves.
    Empty where the value is taken as it is.
    """


NOT_KNOWN_TO_BE = "not_known_to_be"
"""The operator that chooses frames of another value, and those of none."""

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Operator("=", _EVERY, "one", "{x} = {v}", "is {v}"),
        Operator("!=", _EVERY, "one", "{x} <> {v}", "is not {v}"),
        Operator(
            NOT_KNOWN_TO_BE, _EVERY, "one", "({x} is null or {x} <> {v})", "is not known to be {v}"
        ),
        Operator("<", _ORDERED, "one", "{x} < {v}", "is below {v}"),
        Operator("<=", _ORDERED, "one", "{x} <= {v}", "is at most {v}"),
        Operator(">", _ORDERED, "one", "{x} > {v}", "is above {v}"),
        Operator(">=", _ORDERED, "one", "{x} >= {v}", "is at least {v}"),
        Operator("between", _ORDERED, "two", "{x} between {v} and {w}", "is {v} to {w}"),
        Operator("in", ("number", "text", "time"), "many", "{x} in ({many})", "is {many}"),
        Operator(
            "not_in", ("number", "text", "time"), "many", "{x} not in ({many})", "is none of {many}"
        ),
        Operator("starts_with", _TEXT, "one", "{x} like {v}", "starts with {v}", "{}%"),
        Operator("contains", _TEXT, "one", "{x} like {v}", "contains {v}", "%{}%"),
        Operator("like", _TEXT, "one", "{x} like {v}", "is like {v}"),
        Operator("is_null", _EVERY, "none", "{x} is null", "is unknown"),
        Operator("is_not_null", _EVERY, "none", "{x} is not null", "is known"),
    )
}
"""Every operator, by its name."""


def type_of(engine_type: str) -> TagType:
    """The type of a tag whose column has that DuckDB type; what is not known counts as text."""
    return next((name for name, kinds in TYPES.items() if engine_type in kinds), "text")


def operators_of(tag_type: TagType) -> list[str]:
    """Names of the operators that take such a tag."""
    return [operator.name for operator in OPERATORS.values() if tag_type in operator.types]
