"""Kubernetes' objects as kustomize renders deploy/kubernetes."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
VARIANTS = ("base", "overlays/team", "overlays/openshift")
Json = dict[str, Any]


def rendered(variant: str) -> list[Json]:
    """The objects of one of VARIANTS; skips where neither kustomize nor kubectl is."""
    programs = [["kustomize", "build"], ["kubectl", "kustomize"]]
    here = [words for words in programs if shutil.which(words[0])]
    if not here:
        pytest.skip("neither kustomize nor kubectl is installed")
    done = subprocess.run(
        [*here[0], str(KUBERNETES / variant)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def one(objects: list[Json], kind: str, name: str) -> Json:
    """The object of a kind and a name, but for the hash that kustomize adds."""
    (match,) = [
        each for each in objects
        if each["kind"] == kind and each["metadata"]["name"].startswith(name)
    ]  # fmt: skip
    return match


def pods(objects: list[Json]) -> Iterator[tuple[str, Json]]:
    """Templates of pods, with the names of the objects that they belong to."""
    for each in objects:
        spec = each.get("spec", {})
        template = spec.get("jobTemplate", each).get("spec", {}).get("template")
        if template:
            yield each["metadata"]["name"], template


def unlike_restricted(pod: Json) -> list[str]:
    """What the pod security standard "restricted" refuses of a pod's spec.

    https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    of_pod = pod.get("securityContext", {})
    faults = [
        name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)
    ]  # fmt: skip
    volumes = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral",
               "persistentVolumeClaim", "projected", "secret"}  # fmt: skip
    for volume in pod.get("volumes", ()):
        faults += [f"volume {kind}" for kind in volume.keys() - {"name"} - volumes]
    for container in [*pod["containers"], *pod.get("initContainers", ())]:
        own = container.get("securityContext", {})
        context = of_pod | own
        capabilities = own.get("capabilities", {})
        if not context.get("runAsNonRoot"):
            faults.append("runAsNonRoot")
        if context.get("runAsUser") == 0:
            faults.append("runAsUser")
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            faults.append("allowPrivilegeEscalation")
        if "ALL" not in capabilities.get("drop", ()):
            faults.append("capabilities.drop")
        if set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
            faults.append("capabilities.add")
        if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            faults.append("seccompProfile")
        faults += ["hostPort" for port in container.get("ports", ()) if port.get("hostPort")]
    return faults
