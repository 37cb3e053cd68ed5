"""Where a cluster is, by kubeconfigs and service accounts, and what is no way to it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from api.server.self_signed import self_signed
from catalog.errors import InvalidInput
from pipeline.jobs.backends.kubernetes.cluster import cluster, of_pod


def kubeconfig(folder: Path, user: dict[str, Any], **of_cluster: Any) -> str:
    """A file with two contexts, of which the second is the current one."""
    server = {"server": "https://api.example:6443/", **of_cluster}
    file = folder / "config"
    file.write_text(json.dumps({
        "current-context": "two",
        "clusters": [
            {"name": "a", "cluster": {"server": "https://other"}},
            {"name": "c", "cluster": server},
        ],
        "users": [{"name": "b", "user": {"token": "other"}}, {"name": "u", "user": user}],
        "contexts": [
            {"name": "one", "context": {"cluster": "a", "user": "b"}},
            {"name": "two", "context": {"cluster": "c", "user": "u", "namespace": "adas"}},
        ],
    }))  # fmt: skip
    return str(file)


def test_a_kubeconfig(tmp_path: Path) -> None:
    """Its current context, or another; tokens, token files and certificates."""
    certificate, key = self_signed(tmp_path, "localhost")
    config = kubeconfig(tmp_path, {"token": "t"}, **{"certificate-authority": certificate.name})
    current = cluster(config, "")
    assert (current.server, current.namespace) == ("https://api.example:6443", "adas")
    assert current.authorities == certificate.read_text()
    assert current.headers() == {"Authorization": "Bearer t"}
    assert current.tls().check_hostname
    other = cluster(config, "one")
    assert (other.server, other.namespace) == ("https://other", "default")
    (tmp_path / "token").write_text("first\n")
    renewed = cluster(kubeconfig(tmp_path, {"tokenFile": "token"}), "")
    (tmp_path / "token").write_text("second\n")
    assert renewed.headers() == {"Authorization": "Bearer second"}
    data = {
        f"client-{name}-data": base64.b64encode(file.read_bytes()).decode()
        for name, file in (("certificate", certificate), ("key", key))
    }
    own = cluster(kubeconfig(tmp_path, data), "")
    assert own.headers() == {}
    own.tls()  # takes them


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"exec": {"command": "aws"}}, "from 'aws', which Framesift does not start"),
        ({"auth-provider": {"name": "oidc"}}, "kubectl create token framesift"),
        ({"client-certificate-data": "%"}, "client-certificate: cannot be read"),
    ],
)
def test_users_that_are_no_way_in(tmp_path: Path, user: dict[str, Any], words: str) -> None:
    """One sentence says what to do."""
    with pytest.raises(InvalidInput, match=words.replace("(", r"\(")):
        cluster(kubeconfig(tmp_path, user), "")


def test_files_that_are_none(tmp_path: Path) -> None:
    """No file, no YAML, no such context."""
    with pytest.raises(InvalidInput, match=r"none: No such file .*expected a kubeconfig"):
        cluster(str(tmp_path / "none"), "")
    (tmp_path / "bad").write_text("{")
    with pytest.raises(InvalidInput, match="is no YAML"):
        cluster(str(tmp_path / "bad"), "")
    with pytest.raises(InvalidInput, match="context 'x' is not there; expected one of: one, two"):
        cluster(kubeconfig(tmp_path, {}), "x")


def test_a_pod(tmp_path: Path) -> None:
    """Its files and variables; its token is read again for each question."""
    for name in ("ca.crt", "namespace", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    variables = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    own = of_pod(variables, tmp_path)
    assert (own.server, own.namespace) == ("https://[fd00::1]:443", "namespace")
    assert own.headers() == {"Authorization": "Bearer token"}
    with pytest.raises(InvalidInput, match="this pod has none"):
        of_pod({}, tmp_path)
