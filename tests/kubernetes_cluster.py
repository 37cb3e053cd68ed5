"""A real Kubernetes 1.20 for tests, without kubelets, which tests play."""

import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.ingest.s3_server import free_port

_HERE = Path(__file__).parent
PROGRAMS = Path(
    os.environ.get("FRAMESIFT_TEST_KUBERNETES") or Path.home() / ".cache/framesift-tests/kubernetes"
)
"""Where kubernetes_build.sh has put its programs."""
_NAMES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
Json = dict[str, Any]


class KubernetesCluster:
    """A running one."""

    def __init__(self, folder: Path) -> None:
        """One that has been started in a folder."""
        self.folder = folder
        self.url = next(
            word.strip('"},') for word in (folder / "kubeconfig").read_text().split()
            if word.startswith('"https://')
        )  # fmt: skip
        self.certificate = folder / "certs" / "apiserver.crt"
        self.admin = self.client("admin-token")

    def client(self, token: str) -> httpx.Client:
        """Of who has a token."""
        verify = ssl.create_default_context(cafile=self.certificate)
        head = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=head, verify=verify)

    def kubeconfig(self, token: str, namespace: str) -> str:
        """The text of a kubeconfig."""
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.url, "certificate-authority": str(self.certificate)}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {
                "cluster": "test", "user": "test", "namespace": namespace}}],
        })  # fmt: skip

    def made(self, path: str, item: Json) -> Json:
        """An object that an admin has created."""
        answer = self.admin.post(path, json=item)
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        return made

    def token(self, account: str, namespace: str, seconds: int = 3600) -> str:
        """A token of a service account, as the API gives it (TokenRequest)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        review = self.made(path, {"spec": {"expirationSeconds": seconds}})
        return str(review["status"]["token"])

    def expired_token(self, account: str, namespace: str) -> str:
        """One that was valid an hour ago: the server gives none that expires within 10 minutes."""
        token = self.token(account, namespace)
        with self.client(self._aged(token, 60)) as valid:
            assert valid.get("/api").is_success
        return self._aged(token, 7200)

    def _aged(self, token: str, seconds: int) -> str:
        """A token as the server would have signed it so long ago."""
        key = serialization.load_pem_private_key((self.folder / "sa.key").read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        head, claims, _ = token.split(".")
        document = json.loads(base64.urlsafe_b64decode(f"{claims}=="))
        document |= {name: document[name] - seconds for name in ("iat", "nbf", "exp")}
        signed = f"{head}.{_base64(json.dumps(document).encode())}"
        signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """For the block the API server takes questions and answers none."""
        server = int((self.folder / "run" / "api.pid").read_text())
        os.kill(server, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(server, signal.SIGCONT)

    def node(self, name: str, gpus: int) -> None:
        """A machine that is ready."""
        node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        self.made("/api/v1/nodes", node)
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        head = {"Content-Type": "application/merge-patch+json"}
        status = {"capacity": amounts, "allocatable": amounts,
                  "conditions": [{"type": "Ready", "status": "True"}]}  # fmt: skip
        for path, patch in (
            (f"/api/v1/nodes/{name}/status", {"status": status}),
            (f"/api/v1/nodes/{name}", {"spec": {"taints": None}}),  # not-ready, by admission
        ):
            answer = self.admin.patch(path, json=patch, headers=head)
            assert answer.is_success, answer.text

    def asked_by(self, user: str) -> set[tuple[str, str, str]]:
        """Group, resource and verb of all that somebody asked and was let do, by the audit log."""
        rows = map(json.loads, (self.folder / "audit.log").read_text().splitlines())
        return {
            (row["objectRef"].get("apiGroup", ""), row["objectRef"]["resource"], row["verb"])
            for row in rows
            if row["user"]["username"] == user and row["stage"] == "ResponseComplete"
            and row["annotations"]["authorization.k8s.io/decision"] == "allow"
            and "objectRef" in row
        }  # fmt: skip


def _base64(content: bytes) -> str:
    """As JSON Web Tokens have it."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def eventually(holds: Callable[[], Any], seconds: float = 300.0) -> None:
    """Wait until it holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not come to hold"
        time.sleep(0.2)


@contextmanager
def kubernetes_cluster(folder: Path) -> Iterator[KubernetesCluster]:
    """A running Kubernetes for the block; skips where it has not been built."""
    missing = [name for name in _NAMES if not (PROGRAMS / name).exists()]
    if missing or shutil.which("etcd") is None:
        pytest.skip(
            f"no Kubernetes here: apt-get install etcd-server, and tests/kubernetes_build.sh "
            f"{PROGRAMS} (7 minutes of CPU)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        script = _HERE / "kubernetes_up.sh"
        subprocess.run([script, folder, PROGRAMS, str(free_port(5))], check=True)
        cluster = KubernetesCluster(folder)
        default = "/api/v1/namespaces/default/serviceaccounts/default"
        eventually(lambda: cluster.admin.get(default).json().get("secrets"))
        yield cluster
        cluster.admin.close()
    finally:
        for file in sorted((folder / "run").glob("*.pid"), reverse=True):
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)
