"""A question to a selection: one statement over the catalog's own tables."""

from catalog.discover_views import tag_columns
from catalog.errors import InvalidInput, UnknownName
from catalog.lake_tables import CLASS_PIXELS, FILES, FILES_COLUMNS, FRAME_TAGS
from catalog.records import TagColumn
from catalog.store import LAKE, CatalogStore, snapshot_of
from query import read_only
from query.db2_semantics import to_duckdb
from query.prepared import discover_schema
from query.run_sql import execute
from query.selection import Question, Selection

_COLUMNS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
    "frame_number", "image_width", "image_height", "image_file", "label_file", "image_size",
    "label_size",
)  # fmt: skip
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT")


def select_frames(
    store: CatalogStore,
    question: Question,
    class_names: dict[str, str],
    timeout_s: float = 600.0,
    at: int | None = None,
) -> Selection:
    """The frames that answer a question, in its order, then by fkey.

    Args:
        store: The catalog.
        question: What is wanted.
        class_names: Class name of each class tag; a range may name either.
        timeout_s: When to give up.
        at: The snapshot to ask; the newest when None.

    Raises:
        NotFound: There is no snapshot ``at``.
        UnknownName: A class, camera, scene or column that the catalog does not have.
        SqlError: The WHERE body is wrong.
    """
    with store.reading(at) as cursor:
        tags = {column.tag: column for column in tag_columns(cursor)}
        classes = tuple(tag for tag in class_names if tag in tags)
        schema = {**discover_schema(cursor), "frames": _frame_columns(tags)}
        values: list[object] = []
        conditions = [
            *_range_conditions(question, tags, class_names, values),
            *_name_conditions(question, cursor, values),
        ]
        if question.where is not None:
            conditions.append(_where_condition(question.where, schema))
        statement = _statement(tags, classes, conditions, question, schema, values)
        frames = execute(cursor, statement, timeout_s, values)
        return Selection(question, snapshot_of(cursor), frames, classes)


def _statement(
    tags: dict[str, TagColumn],
    classes: tuple[str, ...],
    conditions: list[str],
    question: Question,
    schema: read_only.Schema,
    values: list[object],
) -> str:
    of_tags = ", ".join(f'{tag.table}."{tag.tag}"' for tag in tags.values())
    files = ", ".join(f'f."{name}"' for name in FILES_COLUMNS)
    families = dict.fromkeys(tag.table for tag in tags.values())
    joins = "".join(
        f" {'' if table in (CLASS_PIXELS, FRAME_TAGS) else 'LEFT '}JOIN {LAKE}.main.{table}"
        f" ON {table}.fkey = f.fkey"
        for table in families
    )
    where = " AND ".join(f"({condition})" for condition in conditions) or "true"
    order = ", ".join([*(_order(item, schema) for item in question.order), "fkey"])
    chosen = f"SELECT * FROM frames WHERE {where}"
    if question.sample is not None:
        # md5 and not the engine's hash(): a seed must mean the same in every version.
        chosen += f" ORDER BY md5(? || ':' || fkey), fkey LIMIT {question.sample}"
        values.append(str(question.seed))
    limit = f" LIMIT {question.limit}" if question.limit is not None else ""
    columns = ", ".join(f'"{name}"' for name in (*_COLUMNS, *classes))
    return (
        f"WITH frames AS (SELECT {files}, {of_tags}, f.size AS image_size,"
        " substr(f.fkey, length(f.cluster) + length(f.datasource) + 3) AS image_file"
        f" FROM {LAKE}.main.{FILES} AS f{joins}),"
        f" chosen AS ({chosen}),"
        f" sized AS (SELECT c.*, l.size AS label_size FROM chosen AS c"
        f" JOIN {LAKE}.main.{FILES} AS l"
        " ON l.fkey = c.cluster || ':' || c.datasource || ':' || c.label_file)"
        f" SELECT {columns} FROM sized ORDER BY {order}{limit}"
    )


def _frame_columns(tags: dict[str, TagColumn]) -> dict[str, str]:
    return {**FILES_COLUMNS, **{tag: column.type for tag, column in tags.items()}}


def _range_conditions(
    question: Question,
    tags: dict[str, TagColumn],
    class_names: dict[str, str],
    values: list[object],
) -> list[str]:
    by_title = {title.lower(): tag for tag, title in class_names.items()}
    conditions = []
    for found in question.ranges:
        tag = by_title.get(found.tag.lower(), found.tag.lower())
        if tag not in tags:
            raise UnknownName("class", found.tag, {**tags, **class_names})
        if tags[tag].type not in _NUMBERS:
            raise InvalidInput(f"range {found.to_text()}: {tag} is text, not a number of pixels")
        for bound, sign in ((found.lowest, ">="), (found.highest, "<=")):
            if bound is not None:
                conditions.append(f'"{tag}" {sign} ?')
                values.append(bound)
    return conditions


def _name_conditions(question: Question, cursor: object, values: list[object]) -> list[str]:
    conditions = []
    for column, wanted in (("camera", question.cameras), ("scene", question.scenes)):
        if not wanted:
            continue
        rows = cursor.execute(  # type: ignore[attr-defined]
            f"SELECT DISTINCT {column} FROM {LAKE}.main.{FRAME_TAGS}"
        ).fetchall()
        known = {row[0] for row in rows}
        for name in wanted:
            if name not in known:
                raise UnknownName(column, name, known)
        conditions.append(f"{column} IN ({', '.join('?' * len(wanted))})")
        values.extend(wanted)
    return conditions


def _where_condition(body: str, schema: read_only.Schema) -> str:
    query = read_only.parse_condition(body)
    read_only.check(query, schema)
    return f"fkey IN ({to_duckdb(query, schema)})"


def _order(item: str, schema: read_only.Schema) -> str:
    name, _, direction = item.strip().partition(" ")
    known = schema["frames"]
    if name.lower() not in known:
        raise UnknownName("column", name, known, "It is given in the order.")
    if direction.strip().lower() not in ("", "asc", "desc"):
        raise InvalidInput(f"order '{item}': expected a name, and 'desc' for falling order")
    return f'"{name.lower()}" {direction.strip().upper() or "ASC"} NULLS LAST'
