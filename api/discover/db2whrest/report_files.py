"""Reports: searches that are kept by name, and the file that each came to last time.

<id>.json        what is asked, and how the last run ended
<id>.csv         the rows of the last run that succeeded
<id>.csv.part    being written; whoever writes it holds a lock on it, which ends with the process
"""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from api.discover.db2whrest.task_files import is_task
from catalog.errors import InvalidInput, NotFound, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.file_lock import is_locked, open_locked
from catalog.storage.private_files import make_private_folder
from query.discover.search import Search

_MOST = 1000


class ReportBody(Search):
    """The body for a report: a search, and the report's name."""

    name: str = Field(default="report", min_length=1, max_length=256)


class Report(BaseModel):
    """One report.

    Attributes:
        id: Its id.
        search: What it asks for.
        status: How its last run ended, or that it is running.
        lastrun: When that began, UTC, as 2018-11-01T18:58:14.000Z.
        duration: How long it took [s].
        size: Bytes of the file.
    """

    id: str
    search: ReportBody
    status: Literal["running", "complete", "failed"] = "running"
    lastrun: str
    duration: int = 0
    size: int = 0

    @property
    def filename(self) -> str:
        """Name that its file has for a client."""
        return f"{self.search.name}-{self.lastrun[:19].replace('T', '_')}.csv"


class ReportFiles:
    """The folder of all reports of a home."""

    def __init__(self, folder: Path) -> None:
        """Nothing is made before the first report."""
        self.folder = folder

    def new_id(self) -> str:
        """The id of a further report.

        Raises:
            InvalidInput: There are too many.
        """
        if len(list(self.folder.glob("*.json"))) >= _MOST:
            raise InvalidInput(f"there are {_MOST:,} reports already; delete some")
        return str(uuid.uuid4())

    def all(self) -> list[Report]:
        """Every report, the oldest run first."""
        reports = []
        for path in self.folder.glob("*.json"):
            with suppress(NotFound):  # deleted meanwhile
                reports.append(self.get(path.stem))
        return sorted(reports, key=lambda report: (report.lastrun, report.id))

    def get(self, id_: str) -> Report:
        """The report of that id.

        Raises:
            NotFound: There is none.
        """
        # Before the report is read: a run writes its end first.
        running = is_task(id_) and is_locked(self.folder / f"{id_}.csv.part")
        try:
            if not is_task(id_):
                raise FileNotFoundError
            report = Report.model_validate_json((self.folder / f"{id_}.json").read_bytes())
        except (OSError, ValidationError) as error:
            raise NotFound("report", id_[:40]) from error
        if report.status == "running" and not running:
            return report.model_copy(update={"status": "failed"})  # its server ended
        return report

    def exists(self, id_: str) -> bool:
        """Return whether the report is kept."""
        return (self.folder / f"{id_}.json").exists()

    def put(self, report: Report) -> None:
        """Keep a report as it is now.

        Raises:
            StorageError: The folder cannot be written.
        """
        try:
            make_private_folder(self.folder)
        except OSError as error:
            raise self._refused(error) from error
        atomic_write(self.folder / f"{report.id}.json", report.model_dump_json(), mode=0o600)

    def rows(self, id_: str) -> Path:
        """The file with the rows of a report's last run.

        Raises:
            NotFound: There is none.
        """
        self.get(id_)
        path = self.folder / f"{id_}.csv"
        if not path.exists():
            raise NotFound("report", id_, "it has not been run to its end yet")
        return path

    def delete(self, id_: str) -> None:
        """Forget a report and its rows."""
        self.get(id_)
        for suffix in (".json", ".csv"):
            (self.folder / f"{id_}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def writing(self, report: Report) -> Iterator[IO[bytes]]:
        """The file of a run, shown at the block's end unless the report was deleted meanwhile.

        Raises:
            InvalidInput: The report is running already.
            StorageError: The folder cannot be written.
        """
        temporary = self.folder / f"{report.id}.csv.part"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A process that asks whether the report is running holds the lock for a moment.
            handle = open_locked(temporary, mode=0o600, wait_s=0.1)
            if handle is None:
                raise InvalidInput(f"report {report.id} is running already")
            with os.fdopen(handle, "rb+") as file:
                file.truncate()
                yield file
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(self.folder / f"{report.id}.csv")
                if not self.exists(report.id):
                    (self.folder / f"{report.id}.csv").unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> StorageError:
        where = str(self.folder)
        return StorageError(f"{where}: a report cannot be written: {error.strerror}", where)


def document(report: Report) -> dict[str, Any]:
    """A report as the service shows it."""
    search = report.search.model_dump()
    fields = ["filters", "sort_by", "name", "query", "group_by"]
    if report.search.limit is not None:
        fields.append("limit")
    return {
        "name": report.search.name,
        "query": json.dumps({name: search[name] for name in fields}),
        "size": report.size,
        "report": report.id,
        "duration": report.duration,
        "filename": report.filename,
        "lastrun": report.lastrun,
        "status": report.status,
        "schedule": None,
    }
