"""/db2whrest/v1/report: searches that are kept, run again, and downloaded as CSV."""

import csv
import io
import json
import re
import time
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from api.discover.bodies import body_as, body_schema
from api.discover.db2whrest.report_files import Report, ReportBody, ReportFiles, document
from api.discover.db2whrest.task_files import Output
from api.discover.db2whrest.tasks import CurrentTasks, Tasks, answered
from api.discover.replies import discover_router, in_json
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import BECOMES_A_TASK, json_answer, text_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.services.session import Session
from catalog.lake.statement_watch import Cancellation
from query.run.value_text import plain

router = discover_router("db2whrest")

_REPORT = {
    "name": "Files by datasource",
    "query": json.dumps({"name": "Files by datasource", "group_by": ["datasource"]}),
    "size": 39,
    "report": "8a8cd99b-b72c-4297-8d16-7dc2746f76fc",
    "duration": 0,
    "filename": "Files by datasource-2020-03-27_11:12:10.csv",
    "lastrun": "2020-03-27T11:12:10.000Z",
    "status": "complete",
    "schedule": None,
}

_EXAMPLE = {
    "name": "Age Report Summary. 0-30 Days",
    "query": "",
    "filters": [{"key": "atime", "operator": ">", "value": "NOW() - 30 DAYS"}],
    "group_by": ["datasource"],
    "sort_by": [{"datasource": "asc"}],
}


async def _reports(session: CurrentSession) -> ReportFiles:
    return ReportFiles(session.workspace.home / "reports")


_Reports = Annotated[ReportFiles, Depends(_reports)]


@router.post(
    "/report",
    rule=WRITE_ALL_ROWS.but(work="search"),
    openapi_extra=body_schema(ReportBody, _EXAMPLE),
    answers=json_answer(_REPORT) | BECOMES_A_TASK,
)
async def post_report(
    request: Request, session: CurrentSession, tasks: CurrentTasks, reports: _Reports
) -> Response:
    """Keep a search as a report and run it; the report, once it has run."""
    search = await body_as(ReportBody, request)
    new_id = await run_in_threadpool(reports.new_id)
    report = Report(id=new_id, search=search, lastrun=_time())
    return await _run(request, session, tasks, reports, report, is_new=True)


@router.get("/report", rule=READ_ALL_ROWS.but(work="search"), answers=json_answer([_REPORT]))
def get_reports(reports: _Reports) -> Response:
    """Every report."""
    return in_json([document(report) for report in reports.all()])


@router.get("/report/{report}", rule=READ_ALL_ROWS.but(work="search"), answers=json_answer(_REPORT))
def get_report(report: str, reports: _Reports) -> Response:
    """A report: what it asks for, and how its last run ended."""
    return in_json(document(reports.get(report)))


@router.put(
    "/report/{report}",
    rule=WRITE_ALL_ROWS.but(work="search"),
    answers=json_answer(_REPORT) | BECOMES_A_TASK,
)
async def put_report(
    report: str,
    request: Request,
    session: CurrentSession,
    tasks: CurrentTasks,
    reports: _Reports,
) -> Response:
    """Run a report again; the rows of the run before are kept until the new ones are there."""
    record = await run_in_threadpool(reports.get, report)
    return await _run(request, session, tasks, reports, record, is_new=False)


@router.delete(
    "/report/{report}",
    rule=WRITE_ALL_ROWS.but(work="search"),
    answers=json_answer({"status": "success"}),
)
def delete_report(report: str, reports: _Reports) -> Response:
    """Forget a report and its rows."""
    reports.delete(report)
    return in_json({"status": "success"})


@router.get(
    "/report/{report}/download",
    rule=READ_ALL_ROWS.but(work="search"),
    answers=text_answer("datasource,count,sum\na2d2,75.0,5513478\n", "text/csv"),
)
def download_report(report: str, reports: _Reports) -> Response:
    """The rows of a report's last run: CSV with a header."""
    record = reports.get(report)
    path = reports.rows(report)
    name = re.sub(r"[^\w .-]", "_", record.filename, flags=re.ASCII)
    return FileResponse(path, media_type="text/csv; charset=utf-8", filename=name)


async def _run(
    request: Request,
    session: Session,
    tasks: Tasks,
    reports: ReportFiles,
    report: Report,
    *,
    is_new: bool,
) -> Response:
    def work(output: Output, cancellation: Cancellation) -> None:
        ended = _Run(session, reports, cancellation).run(report, is_new=is_new)
        output.write(json.dumps(document(ended)).encode())

    return await answered(request, tasks, "application/json", work)


class _Run:
    """One run of a report."""

    def __init__(self, session: Session, reports: ReportFiles, cancellation: Cancellation) -> None:
        self._session, self._reports, self._cancellation = session, reports, cancellation

    def run(self, report: Report, *, is_new: bool) -> Report:
        """The report as it is afterwards; a new one that fails is not kept."""
        began = time.monotonic()
        running = report.model_copy(update={"status": "running", "lastrun": _time()})
        with self._reports.writing(running) as file:
            self._reports.put(running)
            try:
                self._write(report, file)
            except BaseException:
                if is_new:
                    self._reports.delete(report.id)
                else:
                    self._reports.put(running.model_copy(update={"status": "failed"}))
                raise
            took = int(time.monotonic() - began)
            outcome = {"status": "complete", "duration": took, "size": file.tell()}
            ended = running.model_copy(update=outcome)
            if self._reports.exists(report.id):  # or it was deleted meanwhile
                self._reports.put(ended)
        return ended

    def _write(self, report: Report, file: Any) -> None:
        text = io.TextIOWrapper(file, "utf-8", errors="replace", newline="")
        lines = csv.writer(text, lineterminator="\n")
        with (
            self._session.searches.find(report.search, self._cancellation) as answer,
            answer.rows() as stream,
        ):
            # A summary has count and sum, and no more.
            names = stream.schema.names[:-1] if answer.is_summary else stream.schema.names
            lines.writerow(names)
            for batch in stream.batches:
                columns = [_fields(name, batch.column(name), answer.is_summary) for name in names]
                lines.writerows(zip(*columns, strict=True))
        text.flush()
        text.detach()


def _fields(name: str, column: Any, is_summary: bool) -> list[Any]:
    """Values as the product's reports have them: the count of a summary as 346.0."""
    values = [plain(value) for value in column.to_pylist()]
    return [float(value) for value in values] if is_summary and name == "count" else values


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
