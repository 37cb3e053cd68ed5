"""The folder in which the processes of one server count together."""

import os

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_folders: list[str] = []


def count_together(folder: str) -> None:
    """Count there in this process; to be called before api.server.metrics is imported.

    prometheus_client takes the folder from the environment and from nowhere else.
    """
    os.environ[_VARIABLE] = folder
    _folders.append(folder)


def shared_folder() -> str | None:
    """The folder; None where this process is the whole server."""
    return _folders[-1] if _folders else None
