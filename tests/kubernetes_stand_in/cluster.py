"""A cluster: what its API server admits, and the controllers that bring its objects on."""

import asyncio
import contextlib
import copy
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.kubernetes_stand_in.access import Access, User
from tests.kubernetes_stand_in.failures import Cause, Failure, Json, not_an_object, not_found
from tests.kubernetes_stand_in.jobs import Jobs
from tests.kubernetes_stand_in.kinds import BY_NAME, Kind
from tests.kubernetes_stand_in.kubelet import Image, Kubelets, set_condition
from tests.kubernetes_stand_in.objects import (
    check_job,
    check_metadata,
    check_pod_spec,
    check_service,
    default_job,
    default_pod_spec,
)
from tests.kubernetes_stand_in.quantities import amount, shown
from tests.kubernetes_stand_in.quota import check_quota, used_of
from tests.kubernetes_stand_in.scheduler import schedule
from tests.kubernetes_stand_in.schemas import Schemas
from tests.kubernetes_stand_in.store import Store, suffix

QUEUE = "kueue.x-k8s.io/queue-name"
_KUEUE = "batch/job-kueue-controller"


class Cluster:
    """Objects, controllers, nodes."""

    def __init__(self, folder: Path, settings: Json, access: Callable[[Store], Access]) -> None:
        """One with namespaces `default` and `kube-system`, and the nodes of its settings."""
        self.store = Store()
        self.access = access(self.store)
        crd = settings["mpijob_crd"]
        self.schemas = Schemas(Path(crd) if crd else None)
        self.has_kueue: bool = settings["kueue"]
        self.claims: dict[str, Path] = {}
        image = Image(
            frozenset(settings["missing_images"]), settings["private_images"], settings["uid"]
        )
        self.kubelets = Kubelets(
            self.store, folder, image, self.claims, restart_s=settings["restart_s"],
            token=self.service_token, environment=settings["environment"],
        )  # fmt: skip
        self.jobs = Jobs(self.store, self._create_pod, retry_s=settings["retry_s"])
        for name in ("default", "kube-system"):
            self.create(BY_NAME["Namespace"], {"metadata": {"name": name}}, "")
        for node in settings["nodes"]:
            self.create(BY_NAME["Node"], node, "")

    async def run(self) -> None:
        """Bring on what has changed, for ever."""
        wait = 60.0
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.store.changed.wait(), wait)
            await asyncio.sleep(0.005)  # what comes together is looked at once
            self.store.changed.clear()
            self.store.collect_garbage()
            wait = self.jobs.sync()
            schedule(self.store)
            self.kubelets.sync()
            self._quotas()

    def create(self, kind: Kind, given: Json, namespace: str, *, dry: bool = False) -> Json:
        """Admit an object as the API server does.

        Raises:
            Failure: Why not.
        """
        item = copy.deepcopy(given)
        metadata = item["metadata"]
        self._is_kind(kind, given)
        self._is_place(kind, namespace)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + suffix()
        name = metadata.get("name", "")
        item |= {"apiVersion": kind.api_version, "kind": kind.kind}
        self.schemas.check(kind, item, name)
        causes = check_metadata(kind, item)
        metadata["uid"] = str(uuid.uuid4())
        if kind.has_status and kind.kind != "Node":
            item.pop("status", None)
        if causes := causes or self._admit(kind, item, namespace):
            raise not_an_object(kind.qualified, name, causes)
        check_quota(self.store, kind, item, namespace)
        made = self.store.create(kind, item, namespace, dry=dry)
        if kind.kind == "Namespace" and not dry:
            account = {"metadata": {"name": "default"}}
            self.create(BY_NAME["ServiceAccount"], account, name)
        if kind.kind == "Job" and self._queue(item) and not dry:
            message = "Kueue managed child job suspended"
            self.store.event(made, "Suspended", message, source=_KUEUE)
        return made

    def _is_place(self, kind: Kind, namespace: str) -> None:
        if kind.namespaced and not namespace:
            message = "an empty namespace may not be set during creation"
            raise Failure(400, "BadRequest", message)
        if kind.namespaced and self.store.get("Namespace", namespace) is None:
            raise not_found("namespaces", namespace)

    @staticmethod
    def _is_kind(kind: Kind, given: Json) -> None:
        words = (("kind", "kind", kind.kind), ("apiVersion", "API version", kind.api_version))
        for name, word, ours in words:
            theirs = given.get(name, ours)
            if theirs != ours:
                message = (
                    f"the {word} in the data ({theirs}) does not match the expected {word} ({ours})"
                )
                raise Failure(400, "BadRequest", message)

    def _admit(self, kind: Kind, item: Json, namespace: str) -> list[Cause]:
        """Defaults, and faults that no schema has."""
        spec = item.get("spec") or {}
        if kind.kind == "Job":
            if self._queue(item):
                spec["suspend"] = True
            default_job(item)
            item["status"] = {}
            return check_job(item)
        if kind.kind == "MPIJob" and self._queue(item):
            spec.setdefault("runPolicy", {})["suspend"] = True
        if kind.kind == "Pod":
            return self._admit_pod(item, namespace)
        if kind.kind == "Service":
            return check_service(item)
        if kind.kind == "PersistentVolumeClaim":
            is_here = f"{namespace}/{item['metadata']['name']}" in self.claims
            item["status"] = {"phase": "Bound" if is_here else "Pending"}
        if kind.kind == "Namespace":
            item["status"] = {"phase": "Active"}
        if kind.kind == "Secret" and "stringData" not in item:
            item.setdefault("type", "Opaque")
        return []

    def _admit_pod(self, item: Json, namespace: str) -> list[Cause]:
        spec = item["spec"]
        default_pod_spec(spec)
        causes = check_pod_spec(spec, "spec")
        account = spec.setdefault("serviceAccountName", "default")
        if not causes and self.store.get("ServiceAccount", account, namespace) is None:
            name = item["metadata"]["name"]
            message = (
                f'pods "{name}" is forbidden: error looking up service account '
                f'{namespace}/{account}: serviceaccount "{account}" not found'
            )
            raise Failure(403, "Forbidden", message, {"name": name, "kind": "pods"})
        item["status"] = {"phase": "Pending"}
        return causes

    def _create_pod(self, item: Json, namespace: str) -> Json:
        return self.create(BY_NAME["Pod"], item, namespace)

    def _queue(self, item: Json) -> str | None:
        labels = item["metadata"].get("labels") or {}
        return labels.get(QUEUE) if self.has_kueue else None

    def _quotas(self) -> None:
        for quota in self.store.all("ResourceQuota"):
            hard = quota["spec"].get("hard", {})
            used = used_of(
                self.store, {name: amount(value) for name, value in hard.items()},
                quota["metadata"]["namespace"],
            )  # fmt: skip
            status = {"hard": hard, "used": {name: shown(value) for name, value in used.items()}}
            if quota.get("status") != status:
                self.store.change("ResourceQuota", quota, lambda each: each.update(status=status))  # noqa: B023

    def service_token(self, namespace: str, account: str, seconds: float) -> str:
        """A token of a service account."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        user = User(
            f"system:serviceaccount:{namespace}:{account}", (*groups, "system:authenticated")
        )
        return self.access.token(user, seconds)

    def log_of(self, pod: Json, container: str, *, previous: bool) -> Path:
        """The file of a container's output.

        Raises:
            Failure: It has none yet.
        """
        metadata = pod["metadata"]
        running = self.kubelets.running.get(metadata["uid"])
        log = running.folder / f"{container}.log" if running else None
        if log and previous:
            log = log.with_name(f"{log.name}.previous")
        if log is None or not log.exists():
            word = "previous terminated container" if previous else "container"
            message = (
                f'{word} "{container}" in pod "{metadata["name"]}" is waiting to start: '
                "ContainerCreating"
            )
            raise Failure(400, "BadRequest", message)
        return log

    def evict(self, pod: Json) -> None:
        """As the eviction API does."""
        said = "Eviction API: evicting"
        self.disrupt(pod, "EvictionByEvictionAPI", said)
        self.store.delete(BY_NAME["Pod"], self.store.get("Pod", *_place(pod)) or pod)

    def disrupt(self, pod: Json, reason: str, message: str) -> None:
        """Mark a pod as ended by no fault of its own."""
        self.store.change(
            "Pod",
            pod,
            lambda each: set_condition(each["status"], "DisruptionTarget", True, reason, message),
        )

    def lose_node(self, name: str) -> None:
        """A machine is gone: its processes die, its pods fail, its object is taken away."""
        node = self.store.get("Node", name)
        if node is None:
            raise ValueError(f"no node {name}")
        for pod in self.store.all("Pod"):
            if pod["spec"].get("nodeName") != name:
                continue
            running = self.kubelets.running.get(pod["metadata"]["uid"])
            if running:
                self.kubelets.kill(running)
            if pod["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            said = "PodGC: node no longer exists"
            self.disrupt(pod, "DeletionByPodGC", said)
            failed = self.store.change(
                "Pod", pod, lambda each: each["status"].update(phase="Failed")
            )
            self.store.event(pod, "NodeNotReady", "Node is not ready", "Warning", "node-controller")
            if failed:
                self.store.remove(BY_NAME["Pod"], failed)
        self.store.remove(BY_NAME["Node"], node)

    def kueue(self, namespace: str, name: str, *, suspend: bool) -> None:
        """Kueue admits a Job of a queue, or takes its nodes away again."""
        job = self.store.get("Job", name, namespace)
        if job is None or not self._queue(job):
            raise ValueError(f"no job {namespace}/{name} in a queue")
        self.store.change("Job", job, lambda each: each["spec"].update(suspend=suspend))
        if suspend:
            message = (
                "Preempted to accommodate a workload due to prioritization in the ClusterQueue"
            )
            self.store.event(job, "Stopped", message, source=_KUEUE)
        else:
            message = f"Admitted by clusterQueue {self._queue(job)}"
            self.store.event(job, "Started", message, source=_KUEUE)


def _place(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["name"], pod["metadata"]["namespace"]
