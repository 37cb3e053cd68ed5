"""What all backends do in a job's folder: begin an attempt, and ask one to end."""

from catalog.errors import StorageError
from pipeline.jobs.request import JobPaths, JobRequest, write_json


def begin_attempt(paths: JobPaths, request: JobRequest, *, fsync: bool = False) -> None:
    """Write the request, without what an earlier attempt said of its end and progress.

    Args:
        paths: Of the job's folder.
        request: What runs.
        fsync: Wait until it is on the disk, for machines that go on where this one loses its power.

    Raises:
        OSError, StorageError: The folder cannot be written.
    """
    paths.logs.mkdir(parents=True, exist_ok=True)
    for leftover in (paths.result, paths.progress, paths.staging):
        leftover.unlink(missing_ok=True)
    write_json(paths.request, request.to_json(), fsync=fsync)


def not_started(paths: JobPaths, error: OSError) -> StorageError:
    """The error of a submission whose folder the disk refuses."""
    message = f"{paths.folder}: the job cannot be started: {error.strerror}"
    return StorageError(message, str(paths.folder))


def ask_to_end(paths: JobPaths) -> None:
    """Leave the file that runners and scripts look for.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        paths.cancel.touch()
    except OSError as error:
        message = f"{paths.cancel}: cannot be written: {error.strerror}"
        raise StorageError(message, str(paths.cancel)) from error
