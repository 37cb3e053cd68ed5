"""A question's conditions as SQL over the frames."""

from collections.abc import Mapping

import duckdb

from catalog.errors import InvalidInput, UnknownName
from catalog.lake_tables import FRAME_TAGS
from catalog.store import LAKE
from query import read_only
from query.db2_semantics import to_duckdb
from query.frames_relation import FramesRelation
from query.prepared import discover_schema
from query.selection import Question

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT")


def question_where(
    question: Question,
    relation: FramesRelation,
    cursor: duckdb.DuckDBPyConnection,
    class_names: Mapping[str, str],
) -> tuple[str, list[object]]:
    """The condition that holds for the frames a question wants, and the values bound in it.

    Args:
        question: What is wanted; its order, limit and sample are left out.
        relation: The cursor's frames, which the condition calls ``frames``.
        cursor: Of CatalogStore.reading.
        class_names: Class name of each class tag; a range may name either.

    Raises:
        UnknownName: A class, camera, scene or column that the catalog does not have.
        SqlError: The WHERE body is wrong.
    """
    values: list[object] = []
    conditions = [
        *_range_conditions(question, relation, class_names, values),
        *_name_conditions(question, cursor, values),
    ]
    if question.where is not None:
        conditions.append(_where_condition(question.where, relation, cursor))
    return " AND ".join(f"({condition})" for condition in conditions) or "true", values


def _range_conditions(
    question: Question,
    relation: FramesRelation,
    class_names: Mapping[str, str],
    values: list[object],
) -> list[str]:
    by_title = {title.lower(): tag for tag, title in class_names.items()}
    conditions = []
    for found in question.ranges:
        tag = by_title.get(found.tag.lower(), found.tag.lower())
        if tag not in relation.tags:
            raise UnknownName("class", found.tag, {**relation.tags, **class_names})
        if relation.tags[tag].type not in _NUMBERS:
            raise InvalidInput(f"range {found.to_text()}: {tag} is text, not a number of pixels")
        for bound, sign in ((found.lowest, ">="), (found.highest, "<=")):
            if bound is not None:
                conditions.append(f'"{tag}" {sign} ?')
                values.append(bound)
    return conditions


def _name_conditions(
    question: Question, cursor: duckdb.DuckDBPyConnection, values: list[object]
) -> list[str]:
    conditions = []
    for column, wanted in (("camera", question.cameras), ("scene", question.scenes)):
        if not wanted:
            continue
        rows = cursor.execute(f"SELECT DISTINCT {column} FROM {LAKE}.main.{FRAME_TAGS}").fetchall()
        known = {row[0] for row in rows}
        for name in wanted:
            if name not in known:
                raise UnknownName(column, name, known)
        conditions.append(f"{column} IN ({', '.join('?' * len(wanted))})")
        values.extend(wanted)
    return conditions


def _where_condition(body: str, relation: FramesRelation, cursor: duckdb.DuckDBPyConnection) -> str:
    schema: read_only.Schema = {**discover_schema(cursor), "frames": relation.columns}
    query = read_only.parse_condition(body)
    read_only.check(query, schema)
    return f"fkey IN ({to_duckdb(query, schema)})"
