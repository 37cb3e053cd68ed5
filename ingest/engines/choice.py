"""Opens the engine that was chosen."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.errors import EngineFailed, InvalidInput, not_installed
from ingest.scan.engine import Engine
from ingest.scan.thread_engine import ThreadEngine

if TYPE_CHECKING:
    from distributed import Client

ENGINES = ("threads", "dask")
CLUSTERS = ("local", "slurm", "lsf")

_WORKER_WAIT_S = 600
_SUBMIT = {"slurm": "sbatch", "lsf": "bsub"}
_JOB_DEFAULTS = {"cores": 1, "processes": 1, "memory": "2 GiB"}


@dataclass(frozen=True)
class EngineChoice:
    """The choice of an engine, and its size."""

    engine: str = "threads"
    """One of ENGINES."""
    workers: int | None = None
    """Threads, or Dask workers (jobs, on a cluster); the machine's cores when None."""
    scheduler: str = ""
    """Address of a running Dask scheduler, such as "tls://host:8786"; its workers are used as they
    are.
    """
    cluster: str = "local"
    """Where Dask workers are started: one of CLUSTERS."""
    unit_frames: int = 2_000
    """Frames of a unit that goes to a Dask worker."""
    insecure: bool = False
    """Use a scheduler that does not ask for certificates."""


@contextmanager
def open_engine(choice: EngineChoice) -> Iterator[Engine]:
    """The chosen engine for the block; workers that were started for it end with the block.

    Raises:
        InvalidInput: There is no such engine or cluster, options contradict each other, or the
            extra 'dask' is not installed.
        EngineFailed: The scheduler cannot be reached, or no worker came.
    """
    if choice.engine == "threads":
        if choice.scheduler or choice.cluster != "local":
            raise InvalidInput("--scheduler and --cluster are the Dask engine's: add --engine dask")
        yield ThreadEngine(choice.workers or os.cpu_count() or 1)
        return
    if choice.engine != "dask":
        raise InvalidInput(f"engine '{choice.engine}': expected one of {', '.join(ENGINES)}")
    if choice.scheduler and choice.cluster != "local":
        raise InvalidInput("--scheduler and --cluster exclude each other")
    if choice.scheduler and not choice.scheduler.startswith("tls://") and not choice.insecure:
        raise InvalidInput(
            f"scheduler {choice.scheduler}: expected tls://host:port, with certificates in Dask's "
            "configuration: without them everybody who reaches it or its workers runs code as "
            "their user; --insecure uses it nevertheless"
        )
    try:
        from ingest.engines.dask import DaskEngine
    except ImportError as error:
        raise not_installed(str(error.name), "dask") from error
    with _client(choice) as client:
        try:
            client.wait_for_workers(1, timeout=_WORKER_WAIT_S)
        except TimeoutError as error:
            raise EngineFailed(
                f"no Dask worker came within {_WORKER_WAIT_S} s; see the cluster's queue "
                "(squeue, bjobs) and the workers' logs"
            ) from error
        yield DaskEngine(client, choice.unit_frames)


@contextmanager
def _client(choice: EngineChoice) -> "Iterator[Client]":
    from distributed import Client

    if choice.scheduler:
        try:
            client = Client(choice.scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise EngineFailed(
                f"Dask's scheduler at {choice.scheduler} does not answer: {error}"
            ) from error
        with client:
            yield client
        return
    with _cluster(choice) as cluster, Client(cluster) as client:
        yield client


def _cluster(choice: EngineChoice) -> Any:
    workers = choice.workers or os.cpu_count() or 1
    if choice.cluster == "local":
        from distributed import LocalCluster

        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            security=True,
        )
    if choice.cluster not in CLUSTERS:
        raise InvalidInput(f"cluster '{choice.cluster}': expected one of {', '.join(CLUSTERS)}")
    return _job_cluster(choice.cluster, workers)


def _job_cluster(kind: str, jobs: int) -> Any:
    """Workers as batch jobs; queue, time and memory come from Dask's own configuration.

    Who connects shows a key that was made for this cluster. The jobs read it, and other users do
    not, in the configuration's shared-temp-directory, or else in the current folder.
    """
    submit = _SUBMIT[kind]
    if shutil.which(submit) is None:
        raise EngineFailed(
            f"Dask workers cannot be started on {kind}: there is no {submit} here; run this where "
            "jobs are submitted, or start workers yourself and give --scheduler"
        )
    import dask
    from dask_jobqueue import LSFCluster, SLURMCluster

    defaults = {**_JOB_DEFAULTS, "shared-temp-directory": str(Path.cwd())}
    missing = {
        name.replace("-", "_"): value
        for name, value in defaults.items()
        if dask.config.get(f"jobqueue.{kind}.{name}", None) is None
    }
    own = dask.config.get(f"jobqueue.{kind}.scheduler-options", None) or {}
    try:
        cluster = {"slurm": SLURMCluster, "lsf": LSFCluster}[kind](
            security=True,
            # Dask's own default shows it to the network.
            scheduler_options={"dashboard_address": "127.0.0.1:8787", **own},
            **missing,
        )
        cluster.scale(jobs=jobs)
    except (ValueError, OSError, RuntimeError) as error:
        raise EngineFailed(
            f"Dask workers cannot be started on {kind}: {error}; set jobqueue.{kind} in Dask's "
            "configuration (https://jobqueue.dask.org/en/latest/configuration.html)"
        ) from error
    return cluster
