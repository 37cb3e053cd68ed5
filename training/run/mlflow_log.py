"""A training's metrics in MLflow, too, by its own client, where MLFLOW_TRACKING_URI says where.

MLflow watches: where it cannot be reached, the log says so once and the training goes on without.
The run's id is kept in ``mlflow.json`` in the model's folder: a run that goes on adds to it.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, installs
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json
from catalog.text.visible_text import without_user
from training.command import Interrupted, say
from training.folder_file import read_folder_file

URI_VARIABLE, EXPERIMENT_VARIABLE = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
FILE = "mlflow.json"
_EXPERIMENT = "framesift"
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
"""Settings of MLflow's client where the user sets none: each step waits for the server, too."""
_MOST_BYTES = 1 << 16
_LONGEST_PARAM = 6000
_HEADER = re.compile(r"header value.*")
_PARAMS_AT_ONCE = 100


class MlflowLog:
    """Writes the metrics of one run; only the first worker has one."""

    def __init__(self, client: Any, run_id: str) -> None:
        """Write to a run that is there; see `mlflow_log`."""
        self._client, self._run_id = client, run_id
        self._is_reached = True

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Write figures of a step."""

        def write() -> None:
            for name, value in values.items():
                self._client.log_metric(self._run_id, name, value, step=step)

        self._try(write)

    def end(self, status: str, *files: Path) -> None:
        """Write that the run ends, and add files.

        Args:
            status: FINISHED, FAILED or KILLED.
        """

        def write() -> None:
            for file in files:
                if file.exists():
                    self._client.log_artifact(self._run_id, str(file))
            self._client.set_terminated(self._run_id, status)

        self._try(write)

    def _try(self, write: Callable[[], None]) -> None:
        if self._is_reached:
            self._is_reached = _reached(write)


def mlflow_log(
    model_dir: Path, step: int, about: Mapping[str, Any], tags: Mapping[str, Any]
) -> MlflowLog | None:
    """The log of a run that begins, or goes on after ``step``; None without a store.

    Args:
        tags: Facts to search runs by; those that are None are left out.
    """
    uri = os.environ.get(URI_VARIABLE)
    if not uri:
        return None
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    logs: list[MlflowLog] = []

    def begin() -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        client = MlflowClient(tracking_uri=uri)
        if step and (run_id := _run_of(model_dir, uri)):
            client.update_run(run_id, status="RUNNING")
            logs.append(MlflowLog(client, run_id))
            return
        name = os.environ.get(EXPERIMENT_VARIABLE) or _EXPERIMENT
        known_experiment = client.get_experiment_by_name(name)
        experiment = (
            known_experiment.experiment_id if known_experiment else client.create_experiment(name)
        )
        known = {f"framesift.{key}": str(each) for key, each in tags.items() if each is not None}
        run = client.create_run(experiment, tags=known, run_name=_name_of(model_dir))
        run_id = str(run.info.run_id)
        params = [Param(key, str(each)[:_LONGEST_PARAM]) for key, each in about.items()]
        for first in range(0, len(params), _PARAMS_AT_ONCE):
            client.log_batch(run_id, params=params[first : first + _PARAMS_AT_ONCE])
        atomic_write(
            model_dir / FILE, json.dumps({"uri": without_user(uri), "run_id": run_id}), parents=True
        )
        logs.append(MlflowLog(client, run_id))

    return logs[0] if _reached(begin) else None


@contextmanager
def ending(log: MlflowLog | None, *files: Path) -> Iterator[None]:
    """At the end of the block tell MLflow how the run ended; what ended it goes on.

    Args:
        log: None where there is none to tell.
    """
    try:
        yield
    except BaseException as error:
        if log:
            goes_on = isinstance(error, Interrupted | KeyboardInterrupt)
            log.end("KILLED" if goes_on else "FAILED")
        raise
    if log:
        log.end("FINISHED", *files)


def _reached(write: Callable[[], None]) -> bool:
    """Write to MLflow; False, and a line in the log, where that cannot be."""
    try:
        from mlflow.exceptions import MlflowException
    except ImportError:
        say(
            f"warning: {URI_VARIABLE} is set, and MLflow's client is not installed: "
            + installs("mlflow")
        )
        return False
    try:
        write()
    except (MlflowException, OSError, ValueError) as error:  # requests' are OSError
        # Of MLflow's token and of a password in its URL the libraries show either.
        reason = _HEADER.sub("header value", without_user(" ".join(str(error).split())))[:300]
        say(f"warning: MLflow does not take this run's metrics any more: {reason}")
        return False
    return True


def _name_of(model_dir: Path) -> str:
    """The job's name, or the folder's."""
    where = model_dir.resolve()
    return where.parent.name if where.name == "model" else where.name


def _run_of(model_dir: Path, uri: str) -> str | None:
    """The id of the run that this one was there, when it began."""
    try:
        record = parsed_json(read_folder_file(model_dir, FILE, _MOST_BYTES))
        return str(record["run_id"]) if without_user(record["uri"]) == without_user(uri) else None
    except (BadFile, FileNotFoundError, ValueError, KeyError, TypeError):
        return None
