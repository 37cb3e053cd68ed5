"""Scans and stagings of a server: jobs there, whose end is waited for here."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from catalog.errors import InvalidInput

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client, Job

Body = Mapping[str, Any]
_COMMAND = "command-0"


def staged(server: "Client", dataset: str, workers: int, show: Callable[[Body], None]) -> Body:
    """Have a dataset copied into the server's cache: what `framesift stage --json` prints there.

    Raises:
        JobFailed: It could not be.
    """
    found = server.datasets.get(dataset)
    return found.stage(workers=workers).wait(progress=show).metrics


def scanned(server: "Client", source: str, full: bool, show: Callable[[Body], None]) -> Body:
    """Have a source scanned: what `framesift ingest --json` prints there.

    Raises:
        JobFailed: It could not be.
    """
    return _printed(server.sources.get(source).scan(full=full).wait(progress=show))


def listed_problems(server: "Client", source: str) -> Body:
    """What is wrong with a source's files: what `framesift ingest --errors --json` prints there.

    Raises:
        JobFailed: It was never scanned.
    """
    wanted = {"source": source, "errors": True}
    begun = server.call("POST", "/v1/scans", wanted, creates=True)
    return _printed(server.jobs.get(begun["name"]).wait(progress=False))


def _printed(job: "Job") -> Body:
    """The JSON document that the job's command printed; progress went before it."""
    text = job.logs(_COMMAND)
    start = text.rfind("\n{\n") + 1 if not text.startswith("{\n") else 0
    try:
        found = json.loads(text[start:])
    except ValueError as error:
        raise InvalidInput(f"job {job.name}: printed no JSON document; see its logs") from error
    return dict(found)
