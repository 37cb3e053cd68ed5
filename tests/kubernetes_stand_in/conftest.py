"""A cluster that the stand-in's own tests share, and a namespace for each."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kubernetes_stand_in.stand_in import Json, KubernetesStandIn, kubernetes_stand_in, node

_NAMES = itertools.count()
POD = "/api/v1/namespaces/{}/pods"
JOB = "/apis/batch/v1/namespaces/{}/jobs"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesStandIn]:
    """Two nodes with two GPUs each, and a third that is for others; Kueue is there."""
    folder = tmp_path_factory.mktemp("kubernetes")
    taint = {"key": "reserved", "value": "lidar", "effect": "NoSchedule"}
    nodes = [node("node1"), node("node2"), node("node3", gpus=8, taints=[taint])]
    with kubernetes_stand_in(
        folder / "cluster", nodes, kueue=True, missing_images=["registry.example/none:1"],
        private_images={"registry.example/private:1": "pull"},
    ) as running:  # fmt: skip
        yield running


class Namespace:
    """One of a test's own, as its admin sees it."""

    def __init__(self, cluster: KubernetesStandIn, name: str) -> None:
        """A new one."""
        self.cluster, self.name, self.admin = cluster, name, cluster.admin
        cluster.apply({"kind": "Namespace", "metadata": {"name": name}})

    def post(self, path: str, item: Json, **query: str) -> httpx.Response:
        """Create an object at a path with a place for the namespace."""
        return self.admin.post(path.format(self.name), json=item, params=query)

    def made(self, path: str, item: Json) -> Json:
        """An object that was created."""
        answer = self.post(path, item)
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        return made

    def get(self, path: str, name: str) -> Json:
        """An object."""
        answer = self.admin.get(f"{path.format(self.name)}/{name}")
        assert answer.is_success, answer.text
        item: Json = answer.json()
        return item

    def pods(self, job: str) -> list[Json]:
        """The pods of a Job, by name."""
        selector = {"labelSelector": f"job-name={job}"}
        return self.cluster.objects("pods", self.name, **selector)

    def log(self, pod: str, **query: str) -> str:
        """What a pod has printed."""
        return self.admin.get(f"{POD.format(self.name)}/{pod}/log", params=query).text

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of an object's events."""
        selector = {"fieldSelector": f"involvedObject.name={name}"}
        rows = self.cluster.objects("events", self.name, **selector)
        return [(row["reason"], row["message"]) for row in rows]

    def ended(self, job: str) -> Json:
        """A Job's status once it is complete or has failed."""
        return self.until(JOB, job, lambda status: {"Complete", "Failed"} & true(status).keys())

    def until(self, path: str, name: str, holds: Callable[[Json], Any]) -> Json:
        """An object's status once something holds of it."""
        eventually(lambda: holds(self.get(path, name).get("status", {})))
        status: Json = self.get(path, name)["status"]
        return status


def true(status: Json) -> dict[str, Json]:
    """The conditions that hold, by their types."""
    rows = status.get("conditions", ())
    return {each["type"]: each for each in rows if each["status"] == "True"}


def eventually(holds: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until it holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not come to hold"
        time.sleep(0.05)


@pytest.fixture
def space(cluster: KubernetesStandIn) -> Namespace:
    """A namespace."""
    return Namespace(cluster, f"space-{next(_NAMES)}")


def pod(name: str, script: str, **more: Any) -> Json:
    """A pod of one container, "main", that runs a shell script; `container` changes that one."""
    container = {"name": "main", "image": "any", "command": ["/bin/sh", "-c", script]}
    container |= more.pop("container", {})
    spec = {"restartPolicy": "Never", "containers": [container], **more}
    spec.setdefault("terminationGracePeriodSeconds", 2)  # a signal may come before its trap
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def job(name: str, script: str, *, pod_spec: Json | None = None, **more: Any) -> Json:
    """A Job of such pods."""
    template = pod(name, script, **(pod_spec or {}))
    del template["metadata"]["name"]
    return {"metadata": {"name": name}, "spec": {"template": template, "backoffLimit": 0, **more}}


@pytest.fixture
def home(cluster: KubernetesStandIn, space: Namespace, tmp_path: Path) -> Path:
    """The folder of the claim `home` of the namespace."""
    cluster.claim("home", tmp_path / "home", space.name)
    return tmp_path / "home"
