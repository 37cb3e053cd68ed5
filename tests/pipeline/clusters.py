"""Clusters for tests of whole workflows: one of two machines, by the backend that submits to it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.batch_stand_ins.stand_in import StandIn, lsf_stand_in, pbs_stand_in
from tests.pipeline.on_kubernetes import KubernetesForHome, cluster_for

Cluster = StandIn | KubernetesForHome
_CLUSTERS: dict[str, Callable[[Path, Path], AbstractContextManager[Cluster]]] = {
    "lsf": lambda folder, _: lsf_stand_in(folder, terminate_interval_s=0.5),
    "pbs": lambda folder, _: pbs_stand_in(folder, kill_delay_s=0.5),
    "kubernetes": lambda _, home: cluster_for(home),
}
BACKENDS = tuple(_CLUSTERS)


@contextmanager
def cluster_of(backend: str, folder: Path, home: Path) -> Iterator[Cluster]:
    """A running cluster for the block, and the variables by which a process finds it.

    Args:
        backend: Which submits to it.
        folder: Of its queue; does not need to exist.
        home: Of its jobs; gets a backends.toml where the backend needs one.
    """
    with _CLUSTERS[backend](folder / backend, home) as running:
        yield running


def ended_well(cluster: Cluster) -> bool:
    """Whether the cluster has run jobs, and all of them ended well, as it says itself."""
    tasks = cluster.tasks()
    return bool(tasks) and all(task["state"] in ("DONE", "F", "Succeeded") for task in tasks)


def traces(cluster: Cluster) -> str:
    """What the cluster holds of its jobs: scripts, objects, and the variables they began with."""
    files = [path for path in cluster.folder.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode(errors="replace") for path in files]
    return "\n".join([*texts, cluster.objects() if isinstance(cluster, KubernetesForHome) else ""])
