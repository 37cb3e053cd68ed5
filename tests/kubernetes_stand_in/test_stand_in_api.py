"""The API of the stand-in, against the words of the API reference and of Kubernetes' sources."""

import json
import os
import threading
import time
from typing import Any

import httpx
import pytest

from tests.kubernetes_stand_in.conftest import JOB, POD, Namespace, eventually, job, pod
from tests.kubernetes_stand_in.stand_in import Json, KubernetesStandIn

pytestmark = pytest.mark.wide

SERVICES = "/api/v1/namespaces/{}/services"


def bound(space: Namespace, account: str, *rules: Json) -> str:
    """A token of a service account with some rules."""
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": account, "namespace": space.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": space.name}],
    }
    metadata = {"name": account, "namespace": space.name}
    space.cluster.apply(
        {"kind": "ServiceAccount", "metadata": metadata},
        {"kind": "Role", "metadata": metadata, "rules": list(rules)}, binding,
    )  # fmt: skip
    return space.cluster.token(account, space.name)


def test_tokens_and_rules(cluster: KubernetesStandIn, space: Namespace) -> None:
    """401 without a valid token; 403 with who cannot do what, also of subresources."""
    rules = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]}
    logs = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}
    token = bound(space, "runner", rules, logs)
    jobs, pods = JOB.format(space.name), POD.format(space.name)
    who = f"system:serviceaccount:{space.name}:runner"
    with cluster.client(token) as runner:
        assert runner.post(jobs, json=job("a", ":")).status_code == 201
        assert runner.get(f"{jobs}/a").status_code == 200
        refused = runner.get(jobs)
        assert (refused.status_code, refused.json()["message"]) == (
            403,
            (
                f'jobs.batch is forbidden: User "{who}" cannot list resource "jobs" in API group '
                f'"batch" in the namespace "{space.name}"'
            ),
        )
        assert refused.json()["reason"] == "Forbidden"
        named = runner.delete(f"{jobs}/a").json()["message"]
        assert named.startswith(f'jobs.batch "a" is forbidden: User "{who}" cannot delete')
        assert runner.get(f"{pods}/none").status_code == 403
        assert runner.get(f"{pods}/none/log").json()["reason"] == "NotFound"
        assert runner.get("/api/v1/nodes").json()["message"].endswith("at the cluster scope")
        review = {"spec": {"resourceAttributes": {"verb": "get", "group": "batch",
                  "resource": "jobs", "namespace": space.name}}}  # fmt: skip
        access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        assert runner.post(access, json=review).json()["status"] == {"allowed": True}
        account = f"/api/v1/namespaces/{space.name}/serviceaccounts/runner/token"
        asked = space.made(account, {"spec": {"expirationSeconds": 600}})["status"]["token"]
        with cluster.client(asked) as again:
            assert again.get(f"{jobs}/a").status_code == 200
        cluster.expire(token)
        answer = runner.get(f"{jobs}/a")
        assert (answer.status_code, answer.json()["message"]) == (401, "Unauthorized")
    with cluster.client("") as nobody:
        assert 'User "system:anonymous"' in nobody.get(jobs).json()["message"]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"spec": {"paralelism": 2}}, 400,
         'strict decoding error: unknown field "spec.paralelism"'),
        ({"spec": {"parallelism": "2"}}, 400,
         "json: cannot unmarshal string into Go struct field spec.parallelism of type integer"),
        ({"metadata": {"name": "A_b"}}, 422,
         'metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain'),
        ({"spec": {"completionMode": "Indexed", "parallelism": 2}}, 422,
         "spec.completions: Required value: when completion mode is Indexed"),
        ({"spec": {"completionMode": "Some"}}, 422,
         'Unsupported value: "Some": supported values: "NonIndexed", "Indexed"'),
        ({"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}, 422,
         'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'),
        ({"kind": "Pod"}, 400, "the kind in the data (Pod) does not match the expected kind (Job)"),
    ],
)  # fmt: skip
def test_wrong_jobs(space: Namespace, change: Json, code: int, message: str) -> None:
    """What a Job has wrong is said by its field."""
    answer = space.post(JOB, _merged(job("a", ":"), change))
    assert answer.status_code == code
    assert message in answer.json()["message"]
    if code == 422:
        status = answer.json()
        (cause,) = status["details"]["causes"]
        assert status["message"].endswith(f"{cause['field']}: {cause['message']}")


def _merged(item: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    return {**item, **{name: _merged(item.get(name, {}), value) for name, value in change.items()}}


def test_wrong_pods(space: Namespace) -> None:
    """Several faults at once, each with its field; what nobody plays is not taken silently."""
    limits = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "2"}}
    mount = {"name": "none", "mountPath": "/a", "subPath": "../b"}
    container = {"image": "", "resources": limits, "volumeMounts": [mount]}
    status = space.post(POD, pod("a", ":", container=container)).json()
    at = "spec.containers[0]"
    assert {(each["field"], each["reason"]) for each in status["details"]["causes"]} == {
        (f"{at}.image", "FieldValueRequired"), (f"{at}.resources.requests", "FieldValueInvalid"),
        (f"{at}.volumeMounts[0].name", "FieldValueNotFound"),
        (f"{at}.volumeMounts[0].subPath", "FieldValueInvalid"),
    }  # fmt: skip
    unplayed = space.post(POD, pod("a", ":", affinity={"nodeAffinity": {}, "podAffinity": {}}))
    assert unplayed.status_code == 501
    missing = space.post(POD, pod("a", ":", serviceAccountName="none"))
    assert missing.status_code == 403
    assert missing.json()["message"].endswith('serviceaccount "none" not found')


def test_names_and_versions(space: Namespace) -> None:
    """409 of a name and an old version, 404, generated names, immutable fields, merge patches."""
    assert space.post(JOB, job("a", ":", suspend=True)).status_code == 201
    again = space.post(JOB, job("a", ":")).json()
    assert (again["code"], again["reason"]) == (409, "AlreadyExists")
    assert again["message"] == 'jobs.batch "a" already exists'
    jobs = JOB.format(space.name)
    missing = space.admin.get(f"{jobs}/b").json()
    assert (missing["code"], missing["message"]) == (404, 'jobs.batch "b" not found')
    nowhere = space.admin.post(JOB.format("none"), json=job("a", ":")).json()
    assert nowhere["message"] == 'namespaces "none" not found'
    assert space.admin.get("/apis/batch/v2/namespaces/default/jobs").status_code == 404
    old = space.get(JOB, "a")
    head = {"Content-Type": "application/merge-patch+json"}
    labels = {"metadata": {"labels": {"turn": "2", "none": None}}}
    patched = space.admin.patch(f"{jobs}/a", json=labels, headers=head).json()
    assert patched["metadata"]["labels"] == {"turn": "2"}
    conflict = space.admin.put(f"{jobs}/a", json=old)
    assert (conflict.status_code, conflict.json()["reason"]) == (409, "Conflict")
    fixed = {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}
    refused = space.admin.patch(f"{jobs}/a", json=fixed, headers=head)
    assert (refused.status_code, "field is immutable" in refused.text) == (422, True)
    generated = {"metadata": {"generateName": "s-"}, "data": {"a": "b"}}
    made = space.made("/api/v1/namespaces/{}/configmaps", generated)
    assert len(made["metadata"]["name"]) == 7
    service: Json = {"metadata": {"name": "peers"}, "spec": {"selector": {"app": "a"}}}
    assert space.post(SERVICES, service).json()["details"]["causes"][0]["field"] == "spec.ports"
    service["spec"]["clusterIP"] = "None"
    assert space.post(SERVICES, service).status_code == 201


def test_mpijobs_by_their_crd(space: Namespace) -> None:
    """Fields of v1alpha2 are refused, as are wrong ones; the operator writes the status."""
    if not os.environ.get("MPIJOB_CRD"):
        pytest.skip("MPIJOB_CRD is unset: no CRD of MPIJobs here")
    path = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
    template = pod("a", ":")["spec"]
    del template["restartPolicy"]
    replica = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": template}}
    replicas = {"Launcher": replica, "Worker": {**replica, "replicas": 2}}
    spec: Json = {"mpiReplicaSpecs": replicas, "runPolicy": {"cleanPodPolicy": "All"}}
    item: Json = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": spec}
    item["metadata"] = {"name": "mpi", "labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
    old = {**item, "spec": {**spec, "cleanPodPolicy": "All"}}
    answer = space.post(path, old)
    assert (answer.status_code, answer.json()["message"].split(": ")[-1]) == (
        400, 'unknown field "spec.cleanPodPolicy"'
    )  # fmt: skip
    slots = space.post(path, {**item, "spec": {**spec, "slotsPerWorker": "x"}})
    assert "spec.slotsPerWorker of type integer" in slots.json()["message"]
    made = space.made(path, item)
    assert made["spec"]["runPolicy"]["suspend"] is True
    made["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    url = f"{path.format(space.name)}/mpi/status"
    assert space.admin.put(url, json=made).json()["status"] == made["status"]


def test_dry_run_keeps_nothing(space: Namespace) -> None:
    """It answers as the object would be, or why it could not be."""
    answer = space.post(JOB, job("a", ":"), dryRun="All")
    assert answer.status_code == 201
    assert answer.json()["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
    assert space.cluster.objects("batch/v1/jobs", space.name) == []
    assert space.post(JOB, job("a", ":", parallelism=-1), dryRun="All").status_code == 422


def test_lists_and_watches(space: Namespace) -> None:
    """Selectors, portions, and changes after a version, also those out of a selector."""
    for name in ("a", "b", "c"):
        labels = {"turn": "1" if name == "a" else "2", "of": "x"}
        item = {"metadata": {"name": name, "labels": labels}, "data": {}}
        space.made("/api/v1/namespaces/{}/configmaps", item)
    path = f"/api/v1/namespaces/{space.name}/configmaps"

    def names(**query: str) -> list[str]:
        answer = space.admin.get(path, params=query).json()
        assert answer["kind"] == "ConfigMapList"
        return [each["metadata"]["name"] for each in answer["items"]]

    assert names(labelSelector="turn=2,of") == ["b", "c"]
    assert names(labelSelector="turn in (1, 3)") == ["a"]
    assert names(labelSelector="turn!=1,!none") == ["b", "c"]
    assert names(fieldSelector="metadata.name=b") == ["b"]
    assert space.admin.get(path, params={"fieldSelector": "data.a=1"}).status_code == 400
    first = space.admin.get(path, params={"limit": "2"}).json()
    more = {"limit": "2", "continue": first["metadata"]["continue"]}
    rest = space.admin.get(path, params=more).json()
    assert [each["metadata"]["name"] for each in rest["items"]] == ["c"]
    since = {"watch": "1", "resourceVersion": rest["metadata"]["resourceVersion"]}
    since |= {"labelSelector": "turn=2", "timeoutSeconds": "30"}
    with space.admin.stream("GET", path, params=since) as changes:
        head = {"Content-Type": "application/merge-patch+json"}
        for name, turn in (("a", "2"), ("b", "3"), ("a", "4")):
            body = {"metadata": {"labels": {"turn": turn}}}
            space.admin.patch(f"{path}/{name}", json=body, headers=head)
        space.admin.delete(f"{path}/c")
        lines = changes.iter_lines()
        told = [json.loads(next(lines)) for _ in range(3)]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in told] == [
        ("MODIFIED", "a"), ("DELETED", "a"), ("DELETED", "c"),
    ]  # fmt: skip


def test_quotas(space: Namespace) -> None:
    """A pod over the quota is refused with numbers; a Job tells it as an event."""
    quota = {
        "metadata": {"name": "gpus"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "1", "count/jobs.batch": "1"}},
    }
    space.made("/api/v1/namespaces/{}/resourcequotas", quota)
    limits = {"container": {"resources": {"limits": {"nvidia.com/gpu": "2"}}}}
    said = (
        "exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: "
        "requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1"
    )
    refused = space.post(POD, pod("a", ":", **limits)).json()
    assert refused["message"] == f'pods "a" is forbidden: {said}'
    space.made(JOB, job("a", ":", pod_spec=limits))
    eventually(lambda: space.events("a"))
    ((reason, message),) = space.events("a")
    assert reason == "FailedCreate"
    assert message.startswith('Error creating: pods "a-')
    assert message.endswith(said)
    second = space.post(JOB, job("b", ":")).json()
    assert "exceeded quota: gpus, requested: count/jobs.batch=1" in second["message"]


def test_a_server_that_fails(cluster: KubernetesStandIn, space: Namespace) -> None:
    """429 with a time, 500, silence, a closed line, and an answer that is lost after the deed."""
    jobs = JOB.format(space.name)
    cluster.fail("429", times=1)
    busy = space.admin.get(jobs)
    assert (busy.status_code, busy.headers["Retry-After"]) == (429, "1")
    cluster.fail("500", ["POST"], times=1)
    assert space.admin.get(jobs).status_code == 200
    assert space.post(JOB, job("a", ":")).json()["reason"] == "InternalError"
    cluster.fail("lost", ["POST"], times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        space.post(JOB, job("a", ":"))
    assert space.get(JOB, "a")["metadata"]["name"] == "a"
    cluster.fail("drop", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        space.admin.get(jobs)
    cluster.fail("hang")
    threading.Timer(0.3, cluster.recover).start()
    began = time.monotonic()
    with pytest.raises(httpx.RemoteProtocolError):
        space.admin.get(jobs)
    assert time.monotonic() - began > 0.25
    assert space.admin.get(jobs).status_code == 200
