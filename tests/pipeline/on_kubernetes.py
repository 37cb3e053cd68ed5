"""A cluster of the stand-in as an administrator has set it up for a home, for tests."""

import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.jobs.backends.kubernetes.render import rendered
from pipeline.jobs.backends.kubernetes.settings import kubernetes_settings
from pipeline.jobs.resources import Resources
from tests.kubernetes_stand_in.stand_in import ROOT, KubernetesStandIn, kubernetes_stand_in

NAMESPACE = "adas"
_UID = 41_234
_PREFIX = "/opt/framesift-python"
"""Where pods have this Python, which may lie in a folder that their user cannot enter."""
_PYTHON = f"{_PREFIX}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
_PYTHONPATH = f"{ROOT}:{sysconfig.get_path('purelib')}"


def settings_of(folder: Path, *lines: str, home: str = "") -> Path:
    """A home's backends.toml, its pods' python this one.

    Args:
        folder: Of the cluster's kubeconfig.
        lines: Further settings.
        home: The home's folder, and its claim; those of `folder_of_all` when empty.
    """
    file = folder / "backends.toml"
    file.write_text(
        f"[kubernetes]\nkubeconfig = '{folder}/kubeconfig'\nnamespace = '{NAMESPACE}'\n"
        f"image = 'registry/framesift:1'\nimages = ['missing/image:1']\n"
        f"python = '{_PYTHON}'\nuid = {_UID}\n"
        f"volumes = ['{home or f'{folder}/home=home'}', '{_PREFIX}=python::ro']\n"
        "checkpoint_seconds = 20\n" + "\n".join(lines)
    )
    return file


@contextmanager
def prepared_cluster() -> Iterator[KubernetesStandIn]:
    """A cluster of two nodes with Kueue, on which an administrator applied what is rendered.

    Its folder's neighbour "home" is a home's, which all may write.
    """
    # Pods of another user get here, which they do not to pytest's folders.
    folder = Path(tempfile.mkdtemp(prefix="framesift-kubernetes-"))
    folder.chmod(0o755)
    try:
        with kubernetes_stand_in(
            folder / "cluster",
            missing_images=["missing/image:1"],
            kueue=True,
            environment={"PYTHONPATH": _PYTHONPATH, "LD_LIBRARY_PATH": f"{_PREFIX}/lib"},
        ) as running:
            settings = kubernetes_settings(settings_of(folder), Resources())
            running.apply(*(
                thing for thing in rendered(settings, NAMESPACE)
                if thing["kind"] != "SecurityContextConstraints"
            ))  # fmt: skip
            running.claim("home", folder / "home", NAMESPACE)
            (folder / "home").chmod(0o777)
            running.claim("python", Path(sys.base_prefix), NAMESPACE)
            token = running.token("framesift", NAMESPACE)
            (folder / "kubeconfig").write_text(running.kubeconfig(token, NAMESPACE))
            yield running
    finally:
        shutil.rmtree(folder)


@contextmanager
def folder_of_all(cluster: KubernetesStandIn) -> Iterator[Path]:
    """A new folder of the home, in which pods may change what this process writes meanwhile."""
    umask = os.umask(0)
    folder = Path(tempfile.mkdtemp(dir=cluster.folder.parent / "home"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        os.umask(umask)
        shutil.rmtree(folder)


class KubernetesForHome(dict[str, str]):
    """Variables by which programs find the cluster, which are none, and what becomes of pods."""

    def __init__(self, cluster: KubernetesStandIn) -> None:
        """Of a home's cluster."""
        super().__init__()
        self.cluster, self.folder = cluster, cluster.folder

    def tasks(self) -> list[dict[str, str]]:
        """Each pod, as "job", "index", "state"."""
        return [
            {
                "job": pod["metadata"]["labels"]["job-name"],
                "index": pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index"),
                "state": pod["status"]["phase"],
            }
            for pod in self.cluster.objects("pods", NAMESPACE)
        ]

    def objects(self) -> str:
        """All that the cluster's API shows of jobs."""
        kinds = "pods", "batch/v1/jobs", "services", "events"
        return json.dumps([self.cluster.objects(kind, NAMESPACE) for kind in kinds])


@contextmanager
def cluster_for(home: Path) -> Iterator[KubernetesForHome]:
    """A cluster whose pods see a home, which the block's process and its own may share with them.

    At a real site the pods' user is the home's. Here that is root, which no pod may be.
    """
    with prepared_cluster() as cluster:
        cluster.claim("site", home, NAMESPACE)
        settings = settings_of(cluster.folder.parent, home=f"{home}=site")
        (home / "backends.toml").write_text(settings.read_text())
        for path in (home, *home.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        umask = os.umask(0)
        try:
            yield KubernetesForHome(cluster)
        finally:
            os.umask(umask)
