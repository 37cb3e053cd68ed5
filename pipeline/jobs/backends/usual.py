"""What jobs have of each backend's machines where they ask for nothing."""

import os
from contextlib import suppress

from catalog.errors import InvalidInput, UnknownName
from pipeline.jobs.backends.registry import backend as backend_of
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.resources import Resources

_OF_QUEUES = ("lsf", "pbs", "slurm")


def usual_resources(backend: str, ranks: int, queue: JobQueue) -> dict[str, str]:
    """Numbers and names, by the names of resources; without those that the backend does not take.

    Args:
        backend: Its name.
        ranks: Processes of the job.

    Raises:
        UnknownName: There is no such backend.
    """
    backend_of(backend)
    if backend == "local":
        return {"gpus": "0", "cores": f"any of this machine's {len(os.sched_getaffinity(0))}"}
    if backend == "hosts":
        return {"ranks_per_node": _slots(queue), "options": "none"}
    resources = Resources(ranks=ranks)
    usual = {
        "ranks_per_node": str(resources.ranks_on_node(ranks)),
        "gpus": str(resources.gpus),
        "nodes": "any", "constraint": "none", "image": _image(backend, queue) or "none",
        "options": "none",
    }  # fmt: skip
    if backend in _OF_QUEUES:
        asked = f"none asked; {backend}'s queue limits it"
        return usual | {
            "cores": str(resources.cores_of_rank), "memory_mb": asked, "wall_minutes": asked,
        }  # fmt: skip
    asked = "none asked; the namespace limits it"
    return usual | {"cores": asked, "memory_mb": asked, "wall_minutes": "none"}


def _slots(queue: JobQueue) -> str:
    """Slots of the machines of backends.toml, each number once."""
    from pipeline.jobs.backends.hosts.settings import hosts_settings

    with suppress(InvalidInput, UnknownName):
        machines = hosts_settings(queue.backends, Resources()).machines
        slots = dict.fromkeys(str(machine.slots) for machine in machines)
        return " or ".join(slots) + ", its slots"
    return "its slots in backends.toml"


def _image(backend: str, queue: JobQueue) -> str:
    """The image that backends.toml names; empty for none."""
    with suppress(InvalidInput, UnknownName):
        if backend == "kubernetes":
            from pipeline.jobs.backends.kubernetes.settings import kubernetes_settings

            return kubernetes_settings(queue.backends, Resources()).image
        from pipeline.jobs.backends.batch.backend import BatchBackend

        batch = backend_of(backend)
        if isinstance(batch, BatchBackend):
            return batch.dialect.settings(queue.backends, Resources(), queue.user).image
    return ""
