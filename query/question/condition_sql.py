"""Conditions as the body of a WHERE in Db2's SQL: what is run is what is shown."""

from collections.abc import Iterable

from catalog.errors import InvalidInput
from query.question.condition import (
    SHARE_DIGITS,
    CameraIn,
    Group,
    Has,
    Leaf,
    PixelRange,
    SceneIn,
    ShareRange,
    TagIs,
    TimeRange,
    Without,
    earliest,
    latest,
)
from query.question.operators import OPERATORS, operators_of
from query.question.tag_value import Value, quoted, sql_value, value_of
from query.question.vocabulary import Column, Vocabulary


def conjuncts(conditions: Iterable[Leaf | Group], vocabulary: Vocabulary) -> list[str]:
    """Each condition as one that can stand in an AND, over metaocean_view's names."""
    return [_sql(condition, vocabulary) for condition in conditions]


def _sql(condition: Leaf | Group, vocabulary: Vocabulary) -> str:
    if isinstance(condition, Group):
        return _group(condition, vocabulary)
    if isinstance(condition, PixelRange):
        x = vocabulary.numeric_column(condition.tag).sql
        return _range(x, _text(condition.lowest), _text(condition.highest))
    if isinstance(condition, ShareRange):
        return _share(condition, vocabulary)
    if isinstance(condition, Has):
        return f"{vocabulary.class_tag(condition.tag).sql} >= {condition.pixels}"
    if isinstance(condition, Without):
        return f"{vocabulary.class_tag(condition.tag).sql} < {condition.pixels}"
    if isinstance(condition, CameraIn | SceneIn):
        return _names(condition)
    if isinstance(condition, TimeRange):
        return _time(condition)
    column, values = tag_values(condition, vocabulary)
    operator = OPERATORS[condition.op]
    texts = [sql_value(value, operator) for value in values]
    first, second, *_ = [*texts, "", ""]
    return operator.sql.format(x=column.sql, v=first, w=second, many=", ".join(texts))


def tag_values(condition: TagIs, vocabulary: Vocabulary) -> tuple[Column, list[Value]]:
    """The tag that is compared, and its values as its type has them.

    Raises:
        InvalidInput: The operator or a value does not fit it.
    """
    column = vocabulary.tag(condition.tag)
    operator = OPERATORS[condition.op]
    if column.type not in operator.types:
        raise InvalidInput(
            f"tag {column.name} is a {column.type}: '{condition.op}' takes a "
            f"{' or '.join(operator.types)}; a {column.type} takes "
            f"{', '.join(operators_of(column.type))}"
        )
    values = [value_of(column.name, column.type, value) for value in condition.values]
    if operator.shape == "two" and values[0] > values[1]:  # type: ignore[operator]
        raise InvalidInput(
            f"tag {column.name}: between {condition.values[0]} and {condition.values[1]} holds for "
            "nothing; swap them"
        )
    return column, values


def _group(group: Group, vocabulary: Vocabulary) -> str:
    members = conjuncts(group.of, vocabulary)
    word = " and " if group.kind == "all" else " or "
    joined = f"({word.join(members)})"
    return f"not {joined}" if group.kind == "none" else joined


def _range(x: str, low: str, high: str) -> str:
    if low and high:
        return f"{x} = {low}" if low == high else f"{x} between {low} and {high}"
    return f"{x} >= {low}" if low else f"{x} <= {high}"


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _share(condition: ShareRange, vocabulary: Vocabulary) -> str:
    # Products of decimals are exact in Db2, where a quotient would be cut at some digit.
    image_pixels = "int(image_width) * int(image_height)"
    low, high = (
        "" if end is None else f"{_decimal(end)} * {image_pixels}"
        for end in (condition.lowest, condition.highest)
    )
    return _range(f"int({vocabulary.class_tag(condition.tag).sql})", low, high)


def _names(condition: CameraIn | SceneIn) -> str:
    names = [quoted(name) for name in condition.names]
    if len(names) == 1:
        return f"{condition.kind} = {names[0]}"
    return f"{condition.kind} in ({', '.join(names)})"


def _time(condition: TimeRange) -> str:
    bounds = []
    if condition.start is not None:
        bounds.append(f"scene >= '{_stamp(earliest(condition.start).isoformat())}'")
    if condition.end is not None:
        bounds.append(f"scene <= '{_stamp(latest(condition.end).isoformat())}'")
    return " and ".join(bounds)


def _stamp(time: str) -> str:
    """The ISO time as a scene is named after it."""
    return time.replace("-", "").replace(":", "").replace("T", "_")


def _decimal(share: float) -> str:
    text = f"{share:.{SHARE_DIGITS}f}".rstrip("0")
    return text + "0" if text.endswith(".") else text
