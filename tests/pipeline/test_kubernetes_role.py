"""The role that is rendered for an administrator, against what a job's whole life asks for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.jobs.backends.kubernetes.backend import KubernetesBackend
from pipeline.jobs.backends.kubernetes.render import rendered, rules
from pipeline.jobs.backends.kubernetes.settings import kubernetes_settings
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobRequest, Stage
from pipeline.jobs.resources import Resources
from tests.kubernetes_stand_in.stand_in import KubernetesStandIn
from tests.pipeline.backend_suite import Run, eventually, shell
from tests.pipeline.on_kubernetes import NAMESPACE, folder_of_all, prepared_cluster, settings_of

pytestmark = pytest.mark.wide

USER = f"system:serviceaccount:{NAMESPACE}:framesift"


@pytest.fixture
def cluster() -> Iterator[KubernetesStandIn]:
    """A cluster of two nodes, which nobody has asked for anything."""
    with prepared_cluster() as running:
        yield running


def allowed(settings: Path) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all rules."""
    return {
        (group, resource, verb)
        for rule in rules(kubernetes_settings(settings, Resources()))
        for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    }  # fmt: skip


def test_each_right_for_mpijobs_is_used(cluster: KubernetesStandIn) -> None:
    """A launcher's MPIJob is created, looked at, and deleted by a cancel."""
    if not os.environ.get("MPIJOB_CRD"):
        pytest.skip("MPIJOB_CRD is unset: no CRD of MPIJobs here")
    backend, folder = KubernetesBackend(), cluster.folder.parent
    settings = settings_of(folder, "kind = 'mpijob'")
    cluster.apply(*rendered(kubernetes_settings(settings, Resources()), NAMESPACE))
    with folder_of_all(cluster) as jobs:
        queue = JobQueue(jobs, backends=settings)
        stage = Stage("train", ((PYTHON, "-c", "print('done')"),), ranks=2)
        ranks = Resources(ranks=2, ranks_per_node=1)
        run = Run(backend, queue, JobRequest("mpi", "train", (stage,), resources=ranks))
        mpijobs = "kubeflow.org/v2beta1/mpijobs"
        eventually(lambda: cluster.objects(mpijobs, NAMESPACE))
        asked = {("kubeflow.org", "mpijobs", verb) for verb in ("create", "get")}
        eventually(lambda: asked <= cluster.asked_by(USER))
        backend.cancel(run.handle, run.paths)
        assert run.ended().state == "cancelled", run.status
        assert cluster.objects(mpijobs, NAMESPACE) == []
        assert {row for row in cluster.asked_by(USER) if "kubeflow.org" in row} == {
            row for row in allowed(settings) if "kubeflow.org" in row
        }


def test_each_right_is_used(cluster: KubernetesStandIn) -> None:
    """By ranks in two pods, a cancel of what waits, and a look at all: no right is one too many."""
    backend, folder = KubernetesBackend(), cluster.folder.parent
    with folder_of_all(cluster) as jobs:
        settings = settings_of(folder)
        queue = JobQueue(jobs, backends=settings)
        stage = Stage("train", ((PYTHON, "-c", "print('done')"),), ranks=2)
        ranks = Resources(ranks=2, ranks_per_node=1)
        run = Run(backend, queue, JobRequest("ranks", "train", (stage,), resources=ranks))
        assert run.ended().state == "done", run.status
        many = Resources(gpus=9)
        waits = JobRequest("waits", "train", (Stage("one", (shell(":"),)),), resources=many)
        other = Run(backend, queue, waits)
        eventually(lambda: "nvidia.com/gpu" in other.status.waits)
        assert backend.find(other.name, other.paths) == other.handle
        backend.cancel(other.handle, other.paths)
        assert other.ended().state == "cancelled"
        assert cluster.asked_by(USER) == allowed(settings)
