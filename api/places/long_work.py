"""Long work of a server: jobs there, whose end is waited for here."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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


def extracted(
    server: "Client", wanted: Mapping[str, Any], show: Callable[[Body], None]
) -> Sequence[Body]:
    """Have tags read from files: what `framesift tags extract --json` prints there.

    Raises:
        JobFailed: They could not be.
    """
    begun = server.call("POST", "/v1/extractions", wanted, creates=True)
    found: list[Body] = _document(server.jobs.get(begun["name"]).wait(progress=show))
    return found


def policy_run(server: "Client", name: str) -> Body:
    """Have a policy run: what `framesift policy run --json` prints there.

    Raises:
        JobFailed: The run failed.
    """
    return _printed(server.policies.get(name).run().wait(progress=False))


def _printed(job: "Job") -> Body:
    found: dict[str, Any] = _document(job)
    return found


def _document(job: "Job") -> Any:
    """The JSON document that the job's command printed; progress went before it."""
    lines = job.logs(_COMMAND).splitlines()
    # Inner lines of a document are indented.
    for start in range(len(lines) - 1, -1, -1):
        if lines[start].startswith(("{", "[")):
            with suppress(ValueError):
                return json.JSONDecoder().raw_decode("\n".join(lines[start:]))[0]
    raise InvalidInput(f"job {job.name}: printed no JSON document; see its logs")
