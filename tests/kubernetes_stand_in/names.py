"""The names of pods and services: what a cluster's DNS answers, as lines of /etc/hosts."""

from tests.kubernetes_stand_in.failures import Json
from tests.kubernetes_stand_in.store import Store

_DOMAIN = "svc.cluster.local"


def hosts_of(store: Store, pod: Json) -> str:
    """A pod's /etc/hosts: itself, and what it may ask a cluster's DNS for."""
    metadata, spec = pod["metadata"], pod["spec"]
    here = metadata["namespace"]
    own = spec.get("hostname") or metadata["name"]
    if spec.get("subdomain"):
        own = f"{own}.{spec['subdomain']}.{here}.{_DOMAIN} {own}"
    lines = ["127.0.0.1 localhost", f"{pod['status'].get('podIP', '')} {own}"]
    for service in store.all("Service"):
        lines += _of_service(store, service, here)
    return "\n".join([*lines, ""])


def _of_service(store: Store, service: Json, here: str) -> list[str]:
    spec, metadata = service["spec"], service["metadata"]
    selector, namespace = spec.get("selector"), metadata["namespace"]
    if not selector:
        return []
    lines = []
    for pod in store.all("Pod", namespace):
        labels = pod["metadata"].get("labels") or {}
        address = pod.get("status", {}).get("podIP")
        if not address or not selector.items() <= labels.items():
            continue
        if not (_is_ready(pod) or spec.get("publishNotReadyAddresses")):
            continue
        names = _names(metadata["name"], namespace, here)
        if pod["spec"].get("subdomain") == metadata["name"] and pod["spec"].get("hostname"):
            host = pod["spec"]["hostname"]
            names = [*(f"{host}.{name}" for name in names), *names]
        lines.append(f"{address} {' '.join(names)}")
    return lines


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _names(service: str, namespace: str, here: str) -> list[str]:
    names = [f"{service}.{namespace}", f"{service}.{namespace}.svc"]
    names.append(f"{service}.{namespace}.{_DOMAIN}")
    return [*names, service] if namespace == here else names
