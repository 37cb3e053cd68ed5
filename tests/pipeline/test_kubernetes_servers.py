"""What a real Kubernetes 1.20 and the stand-in say alike: docs/decisions/0100.

1.20 knows neither indexed Jobs nor podFailurePolicy, and drops both silently; no kubelet runs pods.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.errors import JobFailed
from pipeline.jobs.backends.kubernetes import api
from pipeline.jobs.backends.kubernetes import backend as of_backend
from pipeline.jobs.backends.kubernetes.api import path_of
from pipeline.jobs.backends.kubernetes.backend import KubernetesBackend
from pipeline.jobs.backends.kubernetes.names import object_name
from pipeline.jobs.backends.kubernetes.render import rendered
from pipeline.jobs.backends.kubernetes.settings import kubernetes_settings
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, Stage
from pipeline.jobs.resources import Resources
from tests.kubernetes_cluster import KubernetesCluster, eventually, kubernetes_cluster
from tests.kubernetes_stand_in.quantities import amount
from tests.kubernetes_stand_in.stand_in import KubernetesStandIn, kubernetes_stand_in, node
from tests.pipeline.backend_suite import Run, shell
from tests.pipeline.test_kubernetes_objects import SETTINGS, objects
from tests.pipeline.test_kubernetes_objects import job as of_all

NAMESPACE = "adas"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
USER = f"system:serviceaccount:{NAMESPACE}:framesift"
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"{CORE}/serviceaccounts",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
}


def settings_file(folder: Path, *lines: str) -> Path:
    """A home's backends.toml."""
    file = folder / "backends.toml"
    file.write_text(
        f"[kubernetes]\nkubeconfig = '{folder}/kubeconfig'\nnamespace = '{NAMESPACE}'\n"
        f"image = 'registry/framesift:1'\nvolumes = ['{folder}=home']\n" + "\n".join(lines) + "\n"
    )
    return file


class StandIn(KubernetesStandIn):
    """The stand-in, as tests ask the real one."""

    def made(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        """An object that an admin has created."""
        answer = self.admin.post(path, json=item)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def expired_token(self, account: str, namespace: str) -> str:
        """One that was valid before."""
        token = self.token(account, namespace)
        self.expire(token)
        return token


Server = KubernetesCluster | StandIn


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("1.20", marks=pytest.mark.kubernetes),
        pytest.param("stand-in", marks=pytest.mark.wide),
    ],
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server to which an administrator applied what is rendered, and nothing else."""
    folder = tmp_path_factory.mktemp("kubernetes")
    settings = kubernetes_settings(settings_file(folder), Resources())
    things = rendered(settings, NAMESPACE)
    if request.param == "1.20":
        with kubernetes_cluster(folder / "cluster") as running:
            running.node("node1", gpus=2)
            for thing in things:
                running.made(_PATHS[thing["kind"]], thing)
            yield running
    else:
        with kubernetes_stand_in(folder / "cluster", [node("node1", gpus=2)]) as other:
            stand_in = StandIn(other.folder, other.url, other.admin_token)
            for thing in things:
                stand_in.made(_PATHS[thing["kind"]], thing)
            yield stand_in
            stand_in.admin.close()


@pytest.fixture
def queue(cluster: Server, tmp_path: Path) -> JobQueue:
    """Jobs of a home that submits as the service account."""
    token = cluster.token("framesift", NAMESPACE)
    (tmp_path / "kubeconfig").write_text(cluster.kubeconfig(token, NAMESPACE))
    (tmp_path / "jobs").mkdir()
    return JobQueue(tmp_path / "jobs", backends=settings_file(tmp_path))


def pod(name: str, **more: Any) -> dict[str, Any]:
    """A pod of one container."""
    container = {"name": "main", "image": "any", "command": ["sleep", "600"]}
    container |= more.pop("container", {})
    spec = {"containers": [container], "restartPolicy": "Never", **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def job(name: str, **more: Any) -> dict[str, Any]:
    """A Job of such pods."""
    template = pod(name, **more)
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": template["spec"]}},
    }  # fmt: skip


@contextmanager
def made_for_now(cluster: Server, path: str, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An object that is there for the block, and counts where it is a quota."""
    made = cluster.made(path, item)
    own = f"{path}/{item['metadata']['name']}"
    if item["kind"] == "ResourceQuota":
        eventually(lambda: cluster.admin.get(own).json().get("status", {}).get("hard"))
    try:
        yield made
    finally:
        answer = cluster.admin.delete(own, params={"propagationPolicy": "Background"})
        assert answer.is_success, answer.text


def test_the_role_is_enough_and_no_more(cluster: Server, queue: JobQueue) -> None:
    """The service account does what the backend asks, and each other verb is refused."""
    backend = KubernetesBackend()
    request = JobRequest("first", "train", (Stage("only", (shell(":"),)),))
    run = Run(backend, queue, request)
    assert backend.submit(request, run.paths, queue, run.name) == run.handle
    name = object_name(run.paths.folder, run.name)
    eventually(lambda: cluster.admin.get(f"{CORE}/pods").json()["items"])
    assert run.status.state == "queued", run.status
    assert backend.find(run.name, run.paths) == run.handle
    backend.cancel(run.handle, run.paths)
    eventually(lambda: cluster.admin.get(f"{JOBS}/{name}").status_code == 404)
    asked = cluster.asked_by(USER)
    settings = kubernetes_settings(queue.backends, Resources())
    things = rendered(settings, NAMESPACE)
    (rules,) = (thing["rules"] for thing in things if thing["kind"] == "Role")
    allowed = {
        (group, resource, verb)
        for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
        for verb in rule["verbs"]
    }  # fmt: skip
    assert asked
    assert asked <= allowed
    token = cluster.token("framesift", NAMESPACE)
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    resources = [("", each) for each in ("pods", "secrets", "services", "events", "configmaps")]
    resources += [("batch", "jobs"), ("", "pods/exec"), ("", "persistentvolumeclaims")]
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    with cluster.client(token) as framesift:
        for group, resource in resources:
            plural, _, subresource = resource.partition("/")
            for verb in verbs:
                attributes = {"group": group, "resource": plural, "verb": verb}
                attributes |= {"namespace": NAMESPACE, "subresource": subresource}
                review = framesift.post(
                    reviews,
                    json={"apiVersion": "authorization.k8s.io/v1",
                          "kind": "SelfSubjectAccessReview",
                          "spec": {"resourceAttributes": attributes}},
                ).json()  # fmt: skip
                expected = (group, resource, verb) in allowed
                assert review["status"]["allowed"] == expected, (group, resource, verb)
        refused = framesift.get("/api/v1/namespaces/default/pods").json()
        assert refused["message"] == (
            f'pods is forbidden: User "{USER}" cannot list resource "pods" in API group "" in the '
            'namespace "default"'
        )


def test_credentials_that_do_not_do(cluster: Server, queue: JobQueue) -> None:
    """No token, an expired one, one without rights, another namespace: what to do is said."""
    config, settings = queue.folder.parent / "kubeconfig", queue.folder.parent / "backends.toml"
    request = JobRequest("refused", "train", (Stage("only", (shell(":"),)),))
    expired = cluster.expired_token("framesift", NAMESPACE)
    for token in ("none", expired):
        with cluster.client(token) as nobody:
            answer = nobody.get(JOBS)
            assert (answer.status_code, answer.json()["message"]) == (401, "Unauthorized")
    config.write_text(cluster.kubeconfig(expired, NAMESPACE))
    with pytest.raises(JobFailed, match=r"does not accept .*the token has expired.* log in again"):
        Run(KubernetesBackend(), queue, request)
    config.write_text(cluster.kubeconfig(cluster.token("default", NAMESPACE), NAMESPACE))
    with pytest.raises(JobFailed, match=r'jobs.batch.* in the namespace "adas".*--render DIR'):
        Run(KubernetesBackend(), queue, request)
    config.write_text(cluster.kubeconfig(cluster.token("framesift", NAMESPACE), NAMESPACE))
    settings.write_text(settings.read_text().replace(f"'{NAMESPACE}'", "'default'"))
    with pytest.raises(JobFailed, match=r'jobs.batch.* in the namespace "default".*--render DIR'):
        Run(KubernetesBackend(), queue, request)
    assert cluster.admin.get(JOBS).json()["items"] == []


def test_names_are_taken_once(cluster: Server) -> None:
    """409 AlreadyExists, in the words that the backend and the stand-in go by."""
    cluster.made(JOBS, job("twice"))
    again = cluster.admin.post(JOBS, json=job("twice"))
    assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
    assert again.json()["message"] == 'jobs.batch "twice" already exists'
    answer = cluster.admin.delete(f"{JOBS}/twice", params={"propagationPolicy": "Background"})
    assert answer.json()["status"] == "Success"
    eventually(lambda: cluster.admin.get(f"{JOBS}/twice").status_code == 404)


def test_a_quota(cluster: Server, queue: JobQueue) -> None:
    """A pod over it is refused with numbers, and so is a Job's, as an event; our job waits."""
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "1"}},
    }  # fmt: skip
    path = f"{CORE}/resourcequotas"
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    said = (
        "exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: "
        "requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1"
    )
    with made_for_now(cluster, path, quota):
        refused = cluster.admin.post(f"{CORE}/pods", json=pod("much", container=limits))
        assert refused.status_code == 403
        assert refused.json()["message"] == f'pods "much" is forbidden: {said}'

        def messages() -> list[str]:
            selector = {"fieldSelector": "involvedObject.name=much,reason=FailedCreate"}
            rows = cluster.admin.get(f"{CORE}/events", params=selector).json()["items"]
            return [row["message"] for row in rows]

        with made_for_now(cluster, JOBS, job("much", container=limits)):
            eventually(messages)
        assert messages()[0].startswith('Error creating: pods "much-')
        assert messages()[0].endswith(said)
    quota |= {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    with made_for_now(cluster, path, quota):
        request = JobRequest("quota", "train", (Stage("only", (shell(":"),)),))
        run = Run(KubernetesBackend(), queue, request)
        eventually(lambda: "exceeded quota: none" in run.status.waits)
        assert run.status.state == "queued"
        assert run.status.waits.endswith("ask for less, or have the quota raised")
        run.backend.cancel(run.handle, run.paths)


def test_reasons_of_the_scheduler(cluster: Server, queue: JobQueue) -> None:
    """What a pod waits for is in its condition: too few GPUs, a claim that is not bound.

    Our job says it, and what to do.
    """
    cluster.made(f"{CORE}/pods", pod("gpus", container={
        "resources": {"limits": {"nvidia.com/gpu": "3"}}}))  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late"},
        "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "",
                 "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    cluster.made(f"{CORE}/persistentvolumeclaims", claim)
    request = JobRequest("claim", "train", (Stage("only", (shell(":"),)),))
    run = Run(KubernetesBackend(), queue, request)
    eventually(lambda: 'persistentvolumeclaim "home" not found' in run.status.waits)
    assert run.status.waits.endswith(
        "; have the claim made and bound, or name another in backends.toml"
    )
    of_home = {**claim, "metadata": {"name": "home"}}
    with made_for_now(cluster, f"{CORE}/persistentvolumeclaims", of_home):
        eventually(lambda: "pod has unbound immediate PersistentVolumeClaims" in run.status.waits)
        assert run.status.waits.endswith("name another in backends.toml")
    run.backend.cancel(run.handle, run.paths)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "late"}}
    cluster.made(f"{CORE}/pods", pod("claim", volumes=[volume]))

    def condition(name: str) -> dict[str, str]:
        rows = cluster.admin.get(f"{CORE}/pods/{name}").json()["status"].get("conditions", [])
        return next((row for row in rows if row["type"] == "PodScheduled"), {})

    eventually(lambda: condition("gpus") and condition("claim"))
    for name, words in (
        ("gpus", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu"),
        ("claim", "pod has unbound immediate PersistentVolumeClaims"),
    ):
        assert condition(name)["reason"] == "Unschedulable"
        assert words in condition(name)["message"]


def test_claims_are_bound_to_their_volumes(cluster: Server, tmp_path: Path) -> None:
    """As `--storage` writes both, by NFS and by a driver; nobody else's claim gets a volume."""
    if isinstance(cluster, StandIn):
        pytest.skip("the stand-in binds no claims: tests say where a claim's files lie")
    file = settings_file(tmp_path)
    file.write_text(file.read_text().replace("=home'", "=files', '/data=gpfs'"))
    storage = ["files=nfs:nas.example:/export", "gpfs=scale:1;2;path=/gpfs/ess/adas"]
    things = rendered(kubernetes_settings(file, Resources()), NAMESPACE, storage)[-4:]
    claims = f"{CORE}/persistentvolumeclaims"
    for volume in (thing for thing in things if thing["kind"] == "PersistentVolume"):
        cluster.made("/api/v1/persistentvolumes", volume)
    names = [thing["metadata"]["name"] for thing in things if "claimRef" not in thing["spec"]]
    assert names == ["files", "gpfs"]
    other = next(thing for thing in things if thing["metadata"]["name"] == "files")
    without_name = {name: value for name, value in other["spec"].items() if name != "volumeName"}
    cluster.made(claims, {**other, "metadata": {"name": "other"}, "spec": without_name})
    for thing in things:
        if thing["kind"] == "PersistentVolumeClaim":
            cluster.made(claims, thing)

    def phase(name: str) -> str:
        return str(cluster.admin.get(f"{claims}/{name}").json()["status"].get("phase"))

    eventually(lambda: [phase(name) for name in names] == ["Bound", "Bound"])
    assert phase("other") == "Pending"


def test_deletion_with_grace(cluster: Server) -> None:
    """A pod that a node has stays for its grace, until the kubelet says that it has ended."""
    cluster.made(f"{CORE}/pods", pod("ends", terminationGracePeriodSeconds=120))
    path = f"{CORE}/pods/ends"
    eventually(lambda: cluster.admin.get(path).json()["spec"].get("nodeName") == "node1")
    if isinstance(cluster, StandIn):  # whose kubelet runs it
        eventually(lambda: cluster.admin.get(path).json()["status"]["phase"] == "Running")
    began = time.time()
    metadata = cluster.admin.delete(path).json()["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 120
    assert cluster.admin.get(path).json()["metadata"]["deletionTimestamp"]
    assert cluster.admin.delete(path, params={"gracePeriodSeconds": 5}).json()["metadata"][
        "deletionGracePeriodSeconds"
    ] == 5  # fmt: skip
    assert time.time() - began < 100
    assert cluster.admin.delete(path, params={"gracePeriodSeconds": 0}).is_success
    assert cluster.admin.get(path).status_code == 404


@pytest.mark.parametrize(
    ("version", "variable", "lacks"),
    [
        ("v2beta1", "MPIJOB_CRD", set()),
        # Operator 0.3.0 stores all as v2beta1, which has these in its runPolicy.
        ("v1alpha2", "MPIJOB_V1ALPHA2_CRD", {".backoffLimit", ".cleanPodPolicy"}),
    ],
)
def test_an_mpijob_of_ours_is_one(
    cluster: Server, queue: JobQueue, version: str, variable: str, lacks: set[str]
) -> None:
    """The operator's CRD takes what `kind = "mpijob"` makes, and which fields it drops."""
    file = os.environ.get(variable, "")
    if not Path(file).is_file():
        pytest.skip(f"{variable} is unset: no CRD of such MPIJobs here")
    path = f"/apis/kubeflow.org/{version}/namespaces/{NAMESPACE}/mpijobs"
    lines = ("kind = 'mpijob'", f"mpi_version = '{version}'")
    settings = settings_file(queue.folder.parent, *lines)
    resources = Resources(ranks=2)
    stage = Stage("train", (shell(":"),), ranks=2)
    request = JobRequest("mpi", "train", (stage,), parallel=1, resources=resources)
    backend = KubernetesBackend()
    paths = JobPaths(queue.folder / "mpi")
    with_mpi = JobQueue(queue.folder, backends=settings)
    text = backend.describe(request, paths, with_mpi, "mpi-1")
    (ours,) = (each for each in yaml.safe_load_all(text) if each and each["kind"] == "MPIJob")
    wrong = {**ours, "metadata": {"name": "wrong"}, "spec": {**ours["spec"], "slotsPerWorker": "x"}}
    with mpijobs(cluster, Path(file)):
        eventually(lambda: cluster.admin.get(path).status_code == 200)
        made = cluster.made(path, ours)
        assert dropped(ours["spec"], made["spec"]) == lacks
        refused = cluster.admin.post(path, json=wrong)
        assert refused.status_code in (400, 422)


@contextmanager
def mpijobs(cluster: Server, file: Path) -> Iterator[None]:
    """The real server knows MPIJobs by a CRD for the block; the stand-in has v2beta1 always."""
    if isinstance(cluster, StandIn):
        if file != Path(os.environ.get("MPIJOB_CRD", "")):
            pytest.skip("the stand-in knows the MPIJobs of MPIJOB_CRD")
        yield
        return
    (crd,) = filter(None, yaml.safe_load_all(file.read_text()))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with made_for_now(cluster, path, crd):
        yield
    own = f"{path}/{crd['metadata']['name']}"
    eventually(lambda: cluster.admin.get(own).status_code == 404)


OF_LATER = {
    ".completionMode", ".suspend", ".podFailurePolicy", ".podReplacementPolicy",
    ".backoffLimitPerIndex", ".ttlSecondsAfterFinished",
}  # fmt: skip
"""Fields of a Job that 1.20 drops without a word."""


def test_objects_of_a_job_are_admitted(cluster: Server) -> None:
    """With all that settings and a job can ask; the pods that come of them, too."""
    if isinstance(cluster, StandIn):
        pytest.skip("the stand-in plays no affinities; its schemas take these objects in a test")
    things = objects(of_all(SETTINGS))
    assert [each["kind"] for each in things] == ["Job", "Job", "Service", "Job", "Job"]
    lacks = set()
    for each in things:
        selector = {"labelSelector": f"job-name={each['metadata']['name']}"}

        def pods(query: dict[str, str] = selector) -> list[dict[str, Any]]:
            answer = cluster.admin.get(f"{CORE}/pods", params=query)
            rows: list[dict[str, Any]] = answer.json()["items"]
            return rows

        with made_for_now(cluster, path_of(each), each) as made:
            lacks |= dropped(each["spec"], made["spec"])
            if each["kind"] == "Job":
                eventually(pods)
                template, (pod, *_) = each["spec"]["template"], pods()
                assert dropped(template["spec"], pod["spec"]) == set()
                assert template["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
        eventually(lambda of_job=pods: not of_job())  # type: ignore[misc]
    assert lacks == OF_LATER


def test_a_job_that_is_deleted_by_hand(cluster: Server, queue: JobQueue) -> None:
    """Before it began: a lost attempt, in the words that say so."""
    request = JobRequest("deleted", "train", (Stage("only", (shell(":"),)),))
    run = Run(KubernetesBackend(), queue, request)
    assert run.status.state == "queued"
    path = f"{JOBS}/{object_name(run.paths.folder, run.name)}"
    assert cluster.admin.delete(path, params={"propagationPolicy": "Background"}).is_success
    eventually(lambda: run.status.state == "failed")
    assert run.status.is_lost
    assert "deleted by hand" in run.status.error


def test_a_server_that_stands_still(
    cluster: Server, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is unknown meanwhile, none is submitted, and none begins later."""
    if isinstance(cluster, StandIn):
        pytest.skip("the suite of the backend asks the stand-in: all its ways to be silent")
    request = JobRequest("silent", "train", (Stage("only", (shell(":"),)),))
    run = Run(KubernetesBackend(), queue, request)
    with monkeypatch.context() as patched:
        for module, name in ((api, "PATIENCE_S"), (api, "_ANSWER_S"), (of_backend, "_LOOK_S")):
            patched.setattr(module, name, 1.0)
        with cluster.standing_still():
            assert run.status.state == "unknown"
            assert "does not answer" in run.status.error
            with pytest.raises(JobFailed, match="does not answer"):
                Run(KubernetesBackend(), queue, replace(request, name="not"))
    eventually(lambda: run.status.state == "queued")
    run.backend.cancel(run.handle, run.paths)
    eventually(lambda: cluster.admin.get(JOBS).json()["items"] == [])


def dropped(ours: Any, theirs: Any, at: str = "") -> set[str]:
    """Fields that a server has not kept: 4000M that is 4G now is kept."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {
            each
            for name, value in ours.items()
            for each in (
                dropped(value, theirs[name], f"{at}.{name}") if name in theirs else {f"{at}.{name}"}
            )
        }
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) <= len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=False))
        return {each for number, pair in pairs for each in dropped(*pair, f"{at}[{number}]")}
    with suppress(ValueError):
        return set() if amount(ours) == amount(theirs) else {at}
    return set() if ours == theirs else {at}
