"""Start and end a stand-in, and what tests do to it while it runs."""

import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kubernetes_stand_in.kinds import BY_NAME

ROOT = Path(__file__).parent.parent.parent
Json = dict[str, Any]


def node(
    name: str, *, gpus: int = 2, cpus: int = 16, memory: str = "64Gi",
    labels: Mapping[str, str] | None = None, taints: Sequence[Json] = (),
) -> Json:  # fmt: skip
    """A machine that is ready, with its capacity."""
    capacity = {"cpu": str(cpus), "memory": memory, "pods": "110"}
    capacity |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": capacity, "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }  # fmt: skip


class KubernetesStandIn:
    """A running cluster: where it listens, whom it knows, and how it can fail."""

    def __init__(self, folder: Path, url: str, admin_token: str) -> None:
        """One that runs in a folder."""
        self.folder, self.url, self.admin_token = folder, url, admin_token
        self.certificate = folder / "tls" / "cert.pem"
        """The API server's, and its own authority."""
        self.admin = self.client(admin_token)
        """With all rights."""

    def client(self, token: str) -> httpx.Client:
        """Of who has a token; of nobody, where it is empty."""
        head = {"Authorization": f"Bearer {token}"} if token else {}
        verify = ssl.create_default_context(cafile=self.certificate)
        return httpx.Client(base_url=self.url, headers=head, verify=verify)

    def kubeconfig(self, token: str, namespace: str = "default") -> str:
        """The text of a kubeconfig."""
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.url, "certificate-authority": str(self.certificate),
            }}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [
                {"name": "test",
                 "context": {"cluster": "test", "user": "test", "namespace": namespace}}
            ],
        }  # fmt: skip
        return json.dumps(config)

    def apply(self, *objects: Json) -> None:
        """Create objects as an admin, or put them in the place of what is there."""
        for item in objects:
            kind = BY_NAME[item["kind"]]
            base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
            namespace = item["metadata"].get("namespace", "default")
            path = f"{base}/namespaces/{namespace}/{kind.plural}"
            path = path if kind.namespaced else f"{base}/{kind.plural}"
            answer = self.admin.post(path, json=item)
            if answer.status_code == 409:
                answer = self.admin.put(f"{path}/{item['metadata']['name']}", json=item)
            assert answer.is_success, answer.text

    def objects(self, plural: str, namespace: str = "default", **query: str) -> list[Json]:
        """What there is of a kind: "pods", "batch/v1/jobs"."""
        group, _, name = plural.rpartition("/")
        base = f"/apis/{group}" if group else "/api/v1"
        answer = self.admin.get(f"{base}/namespaces/{namespace}/{name}", params=query)
        assert answer.is_success, answer.text
        items: list[Json] = answer.json()["items"]
        return items

    def fail(
        self, how: str, methods: Sequence[str] = (), *, times: int | None = None,
        seconds: float | None = None,
    ) -> None:  # fmt: skip
        """Have requests fail, so many times, so long, or until `recover`.

        Args:
            how: "429", "500", "410" (of a list's next pages alone), "hang" (no answer), "drop" (the
                connection closes without one), or "lost": carried out, and the answer lost.
            methods: Of which requests; none: of all.
            times: How many requests.
            seconds: How long.
        """
        self._do("fail", how=how, methods=list(methods), times=times, seconds=seconds)

    def recover(self) -> None:
        """Have no request fail any more."""
        self._do("recover")

    def refuse(self, seconds: float) -> None:
        """Have the server be down for so long: connections are refused, the cluster works on."""
        self._do("refuse", seconds=seconds)

    def requests(self) -> list[list[str]]:
        """Method and path of each request since the last call."""
        came: list[list[str]] = self._do("requests")
        return came

    def asked_by(self, user: str) -> set[tuple[str, str, str]]:
        """Group, resource and verb of all that somebody asked and was let do."""
        return {(group, resource, verb) for group, resource, verb in self._do("asked", user=user)}

    def token(self, account: str, namespace: str = "default", seconds: float = 3600.0) -> str:
        """A token of a service account."""
        return str(self._do("token", account=account, namespace=namespace, seconds=seconds))

    def expire(self, token: str) -> None:
        """Have a token be too old."""
        self._do("expire", token=token)

    def claim(self, name: str, folder: Path, namespace: str = "default") -> None:
        """A bound claim of a folder, whose files pods see only where they mount it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._do("claim", namespace=namespace, name=name, folder=str(folder))

    def lose_node(self, name: str) -> None:
        """A machine is gone: its processes die, its pods fail, its Node is taken away."""
        self._do("lose_node", name=name)

    def add_node(self, item: Json) -> None:
        """A machine comes (again)."""
        self._do("add_node", node=item)

    def out_of_memory(self, pod: str, namespace: str = "default") -> None:
        """The kernel kills a pod's containers."""
        self._do("out_of_memory", pod=pod, namespace=namespace)

    def admit(self, job: str, namespace: str = "default") -> None:
        """Kueue gives a Job of a queue its place."""
        self._do("kueue", namespace=namespace, name=job, suspend=False)

    def preempt(self, job: str, namespace: str = "default") -> None:
        """Kueue takes it away again."""
        self._do("kueue", namespace=namespace, name=job, suspend=True)

    def _do(self, what: str, **arguments: Any) -> Any:
        answer = self.admin.post(f"/control/{self.admin_token}", json={"do": what, **arguments})
        assert answer.is_success, answer.text
        return answer.json()


@contextmanager
def kubernetes_stand_in(
    folder: Path,
    nodes: Sequence[Json] | None = None,
    *,
    missing_images: Sequence[str] = (),
    private_images: Mapping[str, str] | None = None,
    kueue: bool = False,
    uid: int = 0,
    retry_s: float = 0.1,
    restart_s: float = 0.1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[KubernetesStandIn]:
    """A running cluster for the block; skips where this machine lets nobody mount.

    It knows MPIJobs where the variable MPIJOB_CRD names their CRD.

    Args:
        folder: Of its logs and volumes; does not need to exist. Users of pods must get there.
        nodes: Its machines; two with two GPUs each where none are given.
        missing_images: Names that no registry has; all others start with this machine's files.
        private_images: The secret that each of these names is pulled with.
        kueue: Whether Kueue manages Jobs with a queue's name: suspended until a test admits them.
        uid: Of containers whose pods name none, as OpenShift has it; their group is 0.
        retry_s: Between a pod's failure and the next one (10 s in a real one); it doubles.
        restart_s: Before a container or a pull is tried again (10 s); it doubles.
        environment: Variables of all images.
    """
    if os.getuid() != 0:
        pytest.skip("needs root: pods have mounts of their own")
    folder.mkdir(parents=True, exist_ok=True)
    _need_mounts(folder)
    token = secrets.token_hex(16)
    default = [node("node1"), node("node2")]
    settings = {
        "nodes": default if nodes is None else list(nodes), "missing_images": list(missing_images),
        "private_images": dict(private_images or {}), "kueue": kueue, "uid": uid,
        "retry_s": retry_s, "restart_s": restart_s, "environment": dict(environment or {}),
        "mpijob_crd": os.environ.get("MPIJOB_CRD", ""), "admin_token": token,
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    log = folder / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.kubernetes_stand_in.server", str(folder)], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline()
        if not port:
            raise RuntimeError(log.read_text())
        stand_in = KubernetesStandIn(folder, f"https://127.0.0.1:{int(port)}", token)
        yield stand_in
        stand_in.admin.close()
        if process.poll() is not None:
            raise RuntimeError(log.read_text())
    finally:
        process.stdin.close()
        process.wait(300)  # a machine may stand still
        process.stdout.close()


def _need_mounts(folder: Path) -> None:
    """Skip where this machine lets nobody mount, as in a container without rights."""
    probe = folder / "probe"
    probe.mkdir()
    spec = {
        "argv": ["true"], "env": {"PATH": os.environ["PATH"]}, "folder": "/", "hostname": "probe",
        "uid": 0, "gid": 0, "groups": [], "root": str(probe / "root"), "mounts": [], "hidden": [],
        "layer": str(probe / "layer"), "read_only_root": False, "error": str(probe / "error"),
    }  # fmt: skip
    command = [sys.executable, "-SEI", str(Path(__file__).with_name("container.py"))]
    run = subprocess.run(command, input=json.dumps(spec).encode(), capture_output=True, check=False)
    shutil.rmtree(probe)
    if run.returncode != 0:
        pytest.skip(f"no pods here: {run.stderr.decode()[-200:] or 'nobody may mount'}")
