"""Where a cluster's API is, and who asks it: a pod's service account, or a kubeconfig.

Source: "Accessing the Kubernetes API from a Pod" and the reference of kubeconfig (v1) at
kubernetes.io.
"""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from catalog.storage.bounded_file import read_bounded

IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Files of a pod's service account."""
_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Cluster:
    """A cluster's API, as one user asks it."""

    server: str
    """Its address."""
    namespace: str
    """That of the user, where nothing else is said."""
    authorities: str = ""
    """Certificates that sign the server's, in PEM; those of this machine when empty."""
    is_checked: bool = True
    """Whether the server's certificate is checked."""
    token: str = ""
    """The user's."""
    token_file: str = ""
    """File of the token, which its cluster renews; read for each question."""
    certificate: bytes = b""
    """The user's certificate, in PEM."""
    key: bytes = b""
    """And its private key."""

    def headers(self) -> dict[str, str]:
        """Who asks.

        Raises:
            InvalidInput: The token's file cannot be read.
        """
        token = self.token
        if self.token_file:
            try:
                token = read_bounded(Path(self.token_file), _MOST_BYTES).decode().strip()
            except (OSError, ValueError) as error:
                raise InvalidInput(f"{self.token_file}: no token can be read: {error}") from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    def tls(self) -> ssl.SSLContext:
        """How the connection is secured.

        Raises:
            InvalidInput: The certificates are none.
        """
        try:
            context = ssl.create_default_context(cadata=self.authorities or None)
            if not self.is_checked:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.certificate:
                # OpenSSL reads a user's certificate from a file alone.
                with tempfile.NamedTemporaryFile() as file:
                    file.write(self.certificate + b"\n" + self.key)
                    file.flush()
                    context.load_cert_chain(file.name)
        except (ssl.SSLError, ValueError) as error:
            raise InvalidInput(f"cluster {self.server}: its certificates are none: {error}") from (
                error
            )
        return context


def cluster(kubeconfig: str, context: str) -> Cluster:
    """The cluster of a kubeconfig, of this pod, or of the user's own kubeconfig.

    Args:
        kubeconfig: The file; empty for the pod's, or the user's.
        context: Of the file; empty for its current one.

    Raises:
        InvalidInput: There is none, or it cannot be used.
    """
    if not kubeconfig and not context and (IN_POD / "token").exists():
        return of_pod(os.environ)
    file = Path(kubeconfig or "~/.kube/config").expanduser()
    try:
        import yaml  # 30 ms, which a pod does without

        document = yaml.safe_load(read_bounded(file, _MOST_BYTES))
    except (OSError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no YAML"
        raise InvalidInput(
            f"{file}: {reason}: expected a kubeconfig; name one in kubeconfig of [kubernetes] of "
            "backends.toml, or submit from a pod with a service account"
        ) from error
    return _of_kubeconfig(file, document if isinstance(document, dict) else {}, context)


def of_pod(environment: Mapping[str, str], folder: Path = IN_POD) -> Cluster:
    """The cluster that this process's pod runs in.

    Raises:
        InvalidInput: A pod of it has other files and variables.
    """
    try:
        host, port = (environment[f"KUBERNETES_SERVICE_{name}"] for name in ("HOST", "PORT"))
        authorities = (folder / "ca.crt").read_text(encoding="utf-8")
        namespace = (folder / "namespace").read_text(encoding="utf-8").strip()
    except (KeyError, OSError) as error:
        raise InvalidInput(
            f"service account: {error}: this pod has none; expected {folder} and "
            "KUBERNETES_SERVICE_HOST"
        ) from error
    host = f"[{host}]" if ":" in host else host
    token_file = str(folder / "token")
    return Cluster(f"https://{host}:{port}", namespace, authorities, token_file=token_file)


def _of_kubeconfig(file: Path, document: Mapping[str, Any], context: str) -> Cluster:
    context = context or document.get("current-context") or ""
    chosen = _named(file, document, "context", context)
    server = _named(file, document, "cluster", chosen.get("cluster", ""))
    user = _named(file, document, "user", chosen.get("user", ""))
    for way in ("exec", "auth-provider"):
        if way in user:
            program = user[way].get("command") or user[way].get("name")
            raise InvalidInput(
                f"{file}: user {chosen['user']} has its credentials from '{program}', which "
                "Framesift does not start; have a token made (kubectl create token framesift) and "
                "name a kubeconfig that has it"
            )
    if not str(server.get("server", "")).startswith(("https://", "http://")):
        raise InvalidInput(f"{file}: cluster {chosen.get('cluster')}: has no address of a server")
    return Cluster(
        server["server"].rstrip("/"),
        chosen.get("namespace") or "default",
        _data(file, server, "certificate-authority").decode(),
        is_checked=not server.get("insecure-skip-tls-verify"),
        token=user.get("token", ""),
        token_file="" if user.get("token") else _path(file, user.get("tokenFile", "")),
        certificate=_data(file, user, "client-certificate"),
        key=_data(file, user, "client-key"),
    )


def _named(file: Path, document: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    rows = document.get(f"{kind}s") or []
    for row in rows:
        if row.get("name") == name and isinstance(row.get(kind), dict):
            entry: dict[str, Any] = row[kind]
            return entry
    known = ", ".join(sorted(str(row.get("name")) for row in rows)) or "none"
    raise InvalidInput(f"{file}: {kind} '{name}' is not there; expected one of: {known}")


def _path(file: Path, path: str) -> str:
    """A path of a kubeconfig, which may be relative to it."""
    return str(file.parent / path) if path else ""


def _data(file: Path, entry: Mapping[str, Any], name: str) -> bytes:
    """What an entry has itself, or in a file."""
    try:
        if inline := entry.get(f"{name}-data"):
            return base64.b64decode(inline, validate=True)
        if path := entry.get(name):
            return read_bounded(Path(_path(file, path)), _MOST_BYTES)
    except (OSError, binascii.Error) as error:
        raise InvalidInput(f"{file}: {name}: cannot be read: {error}") from error
    return b""
