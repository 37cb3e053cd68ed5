"""deploy/kubernetes rendered: today's schemas, the standard "restricted", a real server."""

import copy
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest

from tests.deploy.manifests import VARIANTS, Json, one, pods, rendered, unlike_restricted
from tests.kubernetes_cluster import KubernetesCluster, eventually, kubernetes_cluster

_NEWEST = "1.37"
_NO_SCHEMA = {"Route"}
"""OpenShift's kinds."""
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/framesift/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/framesift/configmaps",
    "Service": "/api/v1/namespaces/framesift/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/framesift/persistentvolumeclaims",
    "Deployment": "/apis/apps/v1/namespaces/framesift/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/framesift/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1beta1/namespaces/framesift/poddisruptionbudgets",
    "CronJob": "/apis/batch/v1beta1/namespaces/framesift/cronjobs",
}
_OF_1_20 = {"PodDisruptionBudget": "policy/v1beta1", "CronJob": "batch/v1beta1"}
"""Kinds whose v1 came with 1.21."""


@pytest.fixture(scope="module", params=VARIANTS)
def objects(request: pytest.FixtureRequest) -> list[Json]:
    """What a variant renders to."""
    return rendered(request.param)


@pytest.mark.wide
def test_objects_are_of_todays_schemas(objects: list[Json]) -> None:
    """Strictly: an unknown field is refused."""
    assert len(objects) >= 11
    for each in objects:
        if each["kind"] not in _NO_SCHEMA:
            kubernetes_validate.validate(each, _NEWEST, strict=True)
    wrong = copy.deepcopy(one(objects, "Deployment", "framesift-server"))
    wrong["spec"]["template"]["spec"]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, _NEWEST, strict=True)


def test_pods_are_restricted(objects: list[Json]) -> None:
    """By the standard that the namespace enforces; with a read-only root, limits, no API token."""
    labels = one(objects, "Namespace", "framesift")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    templates = dict(pods(objects))
    assert set(templates) == {"framesift-server", "framesift-compact", "framesift-backup"}
    for template in templates.values():
        spec = template["spec"]
        assert unlike_restricted(spec) == []
        assert spec["automountServiceAccountToken"] is False
        (container,) = spec["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert set(container["resources"]["limits"]) == {"cpu", "memory", "ephemeral-storage"}
        writable = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {"/srv/framesift", "/tmp"} <= writable
    loose = copy.deepcopy(templates["framesift-server"]["spec"])
    del loose["containers"][0]["securityContext"]["capabilities"]
    del loose["securityContext"]["runAsNonRoot"]
    loose["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
    assert set(unlike_restricted(loose)) == {"capabilities.drop", "runAsNonRoot", "volume hostPath"}


def test_objects_select_and_name_each_other(objects: list[Json]) -> None:
    """Selectors of service, budget and policy meet the pods; claims, settings and ports exist."""
    templates = dict(pods(objects))
    server = templates["framesift-server"]["metadata"]["labels"].items()

    def selects(selector: Json, labels: Any) -> bool:
        return bool(selector) and selector.items() <= labels

    service = one(objects, "Service", "framesift-server")["spec"]
    assert selects(service["selector"], server)
    for kind in ("Deployment", "PodDisruptionBudget"):
        selector = one(objects, kind, "framesift-server")["spec"]["selector"]
        assert selects(selector["matchLabels"], server)
    policy = one(objects, "NetworkPolicy", "framesift")["spec"]
    for template in templates.values():
        labels = template["metadata"]["labels"].items()
        assert selects(policy["podSelector"]["matchLabels"], labels)
    ports = templates["framesift-server"]["spec"]["containers"][0]["ports"]
    assert [port["name"] for port in ports] == ["http"]
    assert service["ports"][0]["targetPort"] == "http"
    assert policy["ingress"][0]["ports"][0]["port"] == "http"
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for template in templates.values():
        spec = template["spec"]
        assert ("ServiceAccount", spec["serviceAccountName"]) in names
        volumes = {volume["name"] for volume in spec["volumes"]}
        for volume in spec["volumes"]:
            if claim := volume.get("persistentVolumeClaim"):
                assert ("PersistentVolumeClaim", claim["claimName"]) in names
        for container in spec["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            (source,) = container["envFrom"]
            assert ("ConfigMap", source["configMapRef"]["name"]) in names
    grace = templates["framesift-server"]["spec"]["terminationGracePeriodSeconds"]
    words = templates["framesift-server"]["spec"]["containers"][0]["args"]
    waits = [int(words[words.index(name) + 1]) for name in ("--drain", "--shutdown-timeout")]
    assert grace > sum(waits)


def test_overlays_differ_where_they_say() -> None:
    """Replicas, access modes, user numbers, secrets, the Route."""
    base, team, openshift = map(rendered, VARIANTS)
    replicas = [one(each, "Deployment", "framesift")["spec"]["replicas"]
                for each in (base, team, openshift)]  # fmt: skip
    assert replicas == [1, 2, 2]
    modes = [one(each, "PersistentVolumeClaim", "framesift-home")["spec"]["accessModes"]
             for each in (base, team)]  # fmt: skip
    assert modes == [["ReadWriteOnce"], ["ReadWriteMany"]]
    for _, template in pods(openshift):
        assert set(template["spec"]["securityContext"]) == {"runAsNonRoot", "seccompProfile",
                                                            "fsGroupChangePolicy"}  # fmt: skip
    for _, template in pods(team):
        assert "stores" in {volume["name"] for volume in template["spec"]["volumes"]}
        assert template["spec"]["securityContext"]["runAsUser"] == 10001
    route = one(openshift, "Route", "framesift-server")
    assert route["spec"]["to"]["name"] == "framesift-server"
    assert route["spec"]["port"]["targetPort"] == "http"
    assert [each for each in (*base, *team) if each["kind"] == "Route"] == []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A real Kubernetes 1.20."""
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running


@pytest.mark.kubernetes
@pytest.mark.parametrize("variant", VARIANTS[:2])
def test_a_real_server_takes_the_objects(cluster: KubernetesCluster, variant: str) -> None:
    """It keeps every field, makes the server's pods, and the budget counts them."""
    objects = rendered(variant)
    namespace = f"framesift-{variant.rpartition('/')[2]}"
    for each in objects:
        item = copy.deepcopy(each)
        path = _PATHS[item["kind"]].replace("/framesift/", f"/{namespace}/")
        item["apiVersion"] = _OF_1_20.get(item["kind"], item["apiVersion"])
        if item["kind"] == "Namespace":
            item["metadata"]["name"] = namespace
        else:
            item["metadata"]["namespace"] = namespace
        assert not_kept(item, cluster.made(path, item)) == []
    path = f"/api/v1/namespaces/{namespace}/pods"
    replicas = one(objects, "Deployment", "framesift-server")["spec"]["replicas"]
    eventually(lambda: len(cluster.admin.get(path).json()["items"]) == replicas)
    budget = f"/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets/framesift-server"
    eventually(lambda: cluster.admin.get(budget).json()["status"].get("expectedPods") == replicas)


def not_kept(sent: Any, stored: Any, at: str = "") -> list[str]:
    """Places of an object that a server has dropped or changed."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [
            place for key, value in sent.items()
            for place in not_kept(value, stored.get(key), f"{at}.{key}")
        ]  # fmt: skip
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        return [
            place for number, pair in enumerate(zip(sent, stored, strict=True))
            for place in not_kept(*pair, f"{at}[{number}]")
        ]  # fmt: skip
    return [] if sent == stored else [at]


def test_what_a_server_drops_is_found() -> None:
    """The judge of the test above tells it."""
    sent = {"a": {"b": 1, "c": [1, {"d": 2}]}}
    assert not_kept(sent, copy.deepcopy(sent) | {"more": 1}) == []
    assert not_kept(sent, {"a": {"b": 1, "c": [1, {}]}}) == [".a.c[1].d"]
    assert not_kept(sent, {"a": {"c": [1]}}) == [".a.b", ".a.c"]
