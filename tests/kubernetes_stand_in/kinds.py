"""The kinds of objects that the stand-in keeps: their groups, names in paths, and schemas."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind, as the API names it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    has_status: bool = False
    """Whether `/status` is written by itself, and only there."""

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As messages name it: jobs.batch, pods."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """As messages of an invalid object name it: Job.batch, Pod."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


_RBAC = "rbac.authorization.k8s.io"
KINDS = (
    Kind("", "v1", "ConfigMap", "configmaps"),
    Kind("", "v1", "Event", "events"),
    Kind("", "v1", "Namespace", "namespaces", namespaced=False, has_status=True),
    Kind("", "v1", "Node", "nodes", namespaced=False, has_status=True),
    Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False, has_status=True),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", has_status=True),
    Kind("", "v1", "Pod", "pods", has_status=True),
    Kind("", "v1", "ResourceQuota", "resourcequotas", has_status=True),
    Kind("", "v1", "Secret", "secrets"),
    Kind("", "v1", "Service", "services", has_status=True),
    Kind("", "v1", "ServiceAccount", "serviceaccounts"),
    Kind("batch", "v1", "Job", "jobs", has_status=True),
    Kind("kubeflow.org", "v2beta1", "MPIJob", "mpijobs", has_status=True),
    Kind(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
    Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind(_RBAC, "v1", "Role", "roles"),
    Kind(_RBAC, "v1", "RoleBinding", "rolebindings"),
)
BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
BY_NAME = {kind.kind: kind for kind in KINDS}
