"""/db2whrest/v1/search: records by conditions, as the clients of the proof of concept ask."""

import json
import time

from fastapi import Request, Response

from api.discover.bodies import body_as, body_schema
from api.discover.db2whrest.task_files import Output
from api.discover.db2whrest.tasks import CurrentTasks, answered
from api.discover.replies import discover_router
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import BECOMES_A_TASK, json_answer
from api.http.rules import READ
from api.services.session import Session
from catalog.lake.statement_watch import Cancellation
from query.discover.records import escaped_records
from query.discover.search import Search
from query.run.run_sql import SqlStream

router = discover_router("db2whrest")

_SEARCH = {
    "rows": json.dumps([{"path": "a2d2/", "filename": "camera_lidar_semantic/x.png", "car": "1"}]),
    "facet_tree": {},
    "table": "metaocean_view",
    "query_time_secs": 5.945647,
    "count": 258,
    "doc_count": 258,
}

_EXAMPLE = {
    "query": "front=1 and center=1 and bicycle>=900 and bicycle<=1000",
    "filters": [{"key": "platform", "operator": "=", "value": "IBM COS"}],
    "group_by": [],
    "sort_by": [{"filename": "asc"}],
    "limit": 100000,
}


@router.post(
    "/search",
    rule=READ.but(work="search"),
    openapi_extra=body_schema(Search, _EXAMPLE),
    answers=json_answer(_SEARCH) | BECOMES_A_TASK,
)
async def post_search(request: Request, session: CurrentSession, tasks: CurrentTasks) -> Response:
    """Records that fulfil a condition and filters, or how many there are in each group.

    The rows are a JSON array inside a string. What takes longer than ten seconds is answered with
    202 and the address to ask for the result.
    """
    search = await body_as(Search, request)

    def work(output: Output, cancellation: Cancellation) -> None:
        _write(session, search, output, cancellation)

    return await answered(request, tasks, "application/json", work)


def _write(session: Session, search: Search, output: Output, cancellation: Cancellation) -> None:
    """Write the reply as the answers come, on one line, rows first."""
    began = time.perf_counter()
    facets: dict[str, str] = {}
    with session.searches.find(search, cancellation) as answer:
        with answer.rows() as stream:
            total = count = _write_rows(stream, output)
            all_rows = not stream.truncated and count != search.limit
        if answer.is_summary:
            values, total = answer.facets()
            facets = {field.upper(): json.dumps(listed) for field, listed in values.items()}
        elif not all_rows:
            total = answer.count()
    rest = {
        "facet_tree": facets,
        "table": answer.table,
        "query_time_secs": round(time.perf_counter() - began, 6),
        "count": count,
        "doc_count": total,
    }
    output.write(f'", {json.dumps(rest)[1:]}'.encode())


def _write_rows(stream: SqlStream, output: Output) -> int:
    """Write the rows, and count them."""
    output.write(b'{"rows": "[')
    count = 0
    for batch in stream.batches:
        output.write((b"," if count else b"") + escaped_records(batch))
        count += batch.num_rows
    output.write(b"]")
    return count
