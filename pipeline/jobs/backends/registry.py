"""Backends by name, each imported when first used."""

from importlib import import_module

from catalog.errors import UnknownName
from pipeline.jobs.backends.interface import Backend

BACKENDS = {
    "local": "pipeline.jobs.backends.local:LocalBackend",
    "hosts": "pipeline.jobs.backends.hosts.backend:HostsBackend",
    "slurm": "pipeline.jobs.backends.slurm.backend:SlurmBackend",
    "lsf": "pipeline.jobs.backends.lsf.backend:LsfBackend",
    "pbs": "pipeline.jobs.backends.pbs.backend:PbsBackend",
    "kubernetes": "pipeline.jobs.backends.kubernetes.backend:KubernetesBackend",
}
"""Name -> module and class."""


def backend(name: str) -> Backend:
    """The backend of that name.

    Raises:
        UnknownName: There is none.
    """
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    module, _, attribute = BACKENDS[name].partition(":")
    loaded: Backend = getattr(import_module(module), attribute)()
    return loaded
