"""/db2whrest/v1/search: records by conditions, as the clients of the proof of concept ask."""

import json
import time
from typing import Any, TypeVar

import pyarrow as pa
from fastapi import Request, Response
from pydantic import BaseModel, ValidationError

from api.discover.db2whrest.task_files import Output
from api.discover.db2whrest.tasks import CurrentTasks, answered
from api.discover.replies import discover_router, json_of
from api.http.dependencies import CurrentWorkspace
from api.http.openapi.discover import BECOMES_A_TASK, json_answer
from api.http.rules import READ
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.lake.snapshot import Snapshot
from catalog.lake.statement_watch import Cancellation
from query.discover.records import escaped_records
from query.discover.search import FACETS, Search, to_sql
from query.run.run_sql import SqlStream, stream_on

router = discover_router("db2whrest")

_SEARCH = {
    "rows": json.dumps([{"path": "a2d2/", "filename": "camera_lidar_semantic/x.png", "car": "1"}]),
    "facet_tree": {},
    "table": "metaocean_view",
    "query_time_secs": 5.945647,
    "count": 258,
    "doc_count": 258,
}

Kind = TypeVar("Kind", bound=BaseModel)

_EXAMPLE = {
    "query": "front=1 and center=1 and bicycle>=900 and bicycle<=1000",
    "filters": [{"key": "platform", "operator": "=", "value": "IBM COS"}],
    "group_by": [],
    "sort_by": [{"filename": "asc"}],
    "limit": 100000,
}


def body_schema(kind: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    """The description of a body that is read raw, for the OpenAPI document."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    parts = schema.pop("$defs", {})
    text = json.dumps(schema)
    for name, inner in parts.items():  # one level deep: written out where they are used
        text = text.replace(json.dumps({"$ref": f"#/components/schemas/{name}"}), json.dumps(inner))
    content = {"application/json": {"schema": json.loads(text), "example": example}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/search",
    rule=READ.but(work="search"),
    openapi_extra=body_schema(Search, _EXAMPLE),
    answers=json_answer(_SEARCH) | BECOMES_A_TASK,
)
async def post_search(
    request: Request, workspace: CurrentWorkspace, tasks: CurrentTasks
) -> Response:
    """Records that fulfil a condition and filters, or how many there are in each group.

    The rows are a JSON array inside a string. What takes longer than ten seconds is answered with
    202 and the address to ask for the result.
    """
    search = read_as(Search, await json_of(request))

    def work(output: Output, cancellation: Cancellation) -> None:
        _Writer(workspace, cancellation).write(search, output)

    return await answered(request, tasks, "application/json", work)


def read_as(kind: type[Kind], document: dict[str, Any]) -> Kind:
    """A body's object.

    Raises:
        InvalidInput: It is no such.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(key)[:80] for key in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{path}: {message}; given: {str(first['input'])[:80]}") from error


class _Writer:
    """Asks the catalog, all of it of one snapshot, and writes the reply as the answers come."""

    def __init__(self, workspace: Workspace, cancellation: Cancellation) -> None:
        self._store = workspace.catalog
        self._settings = workspace.settings
        self._cancellation = cancellation

    def write(self, search: Search, output: Output) -> None:
        """Write the reply, on one line, rows first."""
        began = time.perf_counter()
        with self._store.reading() as snapshot:
            statements = to_sql(search, snapshot.schema)
            with self._stream(snapshot, statements.rows) as stream:
                count = _write_rows(stream, output)
                all_rows = not stream.truncated and count != search.limit
            facets: dict[str, str] = {}
            total = count
            if statements.facets is not None:
                with self._stream(snapshot, statements.facets) as stream:
                    facets, total = _facets(pa.Table.from_batches(stream.batches, stream.schema))
            elif not all_rows:
                with self._stream(snapshot, statements.counting) as stream:
                    total = int(next(stream.batches).column(0)[0].as_py())
        rest = {
            "facet_tree": facets,
            "table": statements.table,
            "query_time_secs": round(time.perf_counter() - began, 6),
            "count": count,
            "doc_count": total,
        }
        output.write(f'", {json.dumps(rest)[1:]}'.encode())

    def _stream(self, snapshot: Snapshot, statement: str) -> Any:
        return stream_on(
            snapshot,
            statement,
            max_rows=self._settings.query_max_rows,
            cancellation=self._cancellation,
        )


def _write_rows(stream: SqlStream, output: Output) -> int:
    """Write the rows, and count them."""
    output.write(b'{"rows": "[')
    count = 0
    for batch in stream.batches:
        output.write((b"," if count else b"") + escaped_records(batch))
        count += batch.num_rows
    output.write(b"]")
    return count


def _facets(counts: pa.Table) -> tuple[dict[str, str], int]:
    """Each facet's values with the number of files, most first; and the number of all files."""
    numbers = pa.array([int(number) for number in counts["count"].to_pylist()], pa.int64())
    facets = {}
    for field in FACETS:
        table = pa.table({field: counts[field], "count": numbers})
        rows = table.group_by(field).aggregate([("count", "sum")]).to_pylist()
        values = [{field: row[field], "count": row["count_sum"]} for row in rows]
        values.sort(key=lambda row: (-row["count"], str(row[field])))
        facets[field.upper()] = json.dumps(values)
    return facets, sum(numbers.to_pylist())
