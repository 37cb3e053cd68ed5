"""Long work of a server: jobs there, whose end is waited for here."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.cli.going_on import going_on

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client, Job

Body = Mapping[str, Any]


def staged(server: "Client", dataset: str, workers: int, show: Callable[[Body], None]) -> Body:
    """Have a dataset copied into the server's cache: what `framesift stage --json` prints there.

    Raises:
        JobFailed: It could not be.
    """
    found = server.datasets.get(dataset)
    return _document(found.stage(workers=workers), show)


def scanned(
    server: "Client", source: str, full: bool, max_removed: float, show: Callable[[Body], None]
) -> Body:
    """Have a source scanned: what `framesift ingest --json` prints there.

    Raises:
        JobFailed: It could not be.
    """
    return _document(server.sources.get(source).scan(full=full, max_removed=max_removed), show)


def listed_problems(server: "Client", source: str) -> Body:
    """What is wrong with a source's files: what `framesift ingest --errors --json` prints there.

    Raises:
        JobFailed: It was never scanned.
    """
    wanted = {"source": source, "errors": True}
    begun = server.call("POST", "/v1/scans", wanted, creates=True)
    return _document(server.jobs.get(begun["name"]))


def extracted(
    server: "Client", wanted: Mapping[str, Any], show: Callable[[Body], None]
) -> Sequence[Body]:
    """Have tags read from files: what `framesift tags extract --json` prints there.

    Raises:
        JobFailed: They could not be.
    """
    begun = server.call("POST", "/v1/extractions", wanted, creates=True)
    found: Sequence[Body] = _result(server.jobs.get(begun["name"]), show)
    return found


def policy_run(server: "Client", name: str) -> Body:
    """Have a policy run: what `framesift policy run --json` prints there.

    Raises:
        JobFailed: The run failed.
    """
    return _document(server.policies.get(name).run())


def _document(job: "Job", show: Callable[[Body], None] | None = None) -> Body:
    found: Body = _result(job, show)
    return found


def _result(job: "Job", show: Callable[[Body], None] | None = None) -> Any:
    with going_on(job.name):
        return job.wait(progress=show or False).result()
