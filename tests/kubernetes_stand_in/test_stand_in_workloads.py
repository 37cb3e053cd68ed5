"""Jobs, the scheduler and kubelets of the stand-in, by what Kubernetes' documentation says."""

import base64
import json
import time
from pathlib import Path

import pytest

from tests.kubernetes_stand_in.conftest import (
    JOB,
    POD,
    Namespace,
    eventually,
    job,
    pod,
    true,
)
from tests.kubernetes_stand_in.stand_in import Json, KubernetesStandIn, kubernetes_stand_in, node

pytestmark = pytest.mark.wide

MERGE = {"Content-Type": "application/merge-patch+json"}


def patch(space: Namespace, name: str, **spec: object) -> None:
    """Change a Job."""
    path = f"{JOB.format(space.name)}/{name}"
    answer = space.admin.patch(path, json={"spec": spec}, headers=MERGE)
    assert answer.is_success, answer.text


def mounts(home: Path, *more: Json) -> Json:
    """A pod's words for the claim `home` at its own path, and more mounts of it."""
    claim = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
    paths = [{"name": "home", "mountPath": str(home)}, *more]
    return {"container": {"volumeMounts": paths}, "volumes": [claim]}


def test_ranks_of_an_indexed_job_find_each_other(space: Namespace, home: Path) -> None:
    """Index, host name, and names of a headless service; only claims are shared."""
    service = {
        "metadata": {"name": "peers"}, "spec": {"clusterIP": "None", "selector": {"of": "ranks"}}
    }  # fmt: skip
    space.made("/api/v1/namespaces/{}/services", service)
    script = (
        "until getent hosts ranks-0.peers >/dev/null && "
        f"getent hosts ranks-1.peers.{space.name}.svc.cluster.local >/dev/null; do sleep 0.05; "
        "done; "
        f"getent ahostsv4 ranks-1.peers | head -n 1 > {home}/peer-$JOB_COMPLETION_INDEX; "
        # Names of a pod that has ended are gone.
        f"until [ -e {home}/peer-0 ] && [ -e {home}/peer-1 ]; do sleep 0.05; done; "
        f"echo $(hostname) $PLACE > {home}/$JOB_COMPLETION_INDEX; touch {home}/../local; ls /proc"
    )
    field = {"fieldRef": {"fieldPath": "metadata.labels['of']"}}
    words = mounts(home)
    words["container"]["env"] = [
        {"name": "OF", "valueFrom": field}, {"name": "PLACE", "value": "$(OF) $$(OF) $(NONE)"}
    ]  # fmt: skip
    item = job(
        "ranks", script, pod_spec={**words, "subdomain": "peers"}, completions=2, parallelism=2,
        completionMode="Indexed",
    )  # fmt: skip
    item["spec"]["template"]["metadata"]["labels"] = {"of": "ranks"}
    (home.parent / "hidden").touch()
    space.made(JOB, item)
    status = space.ended("ranks")
    assert true(status)["Complete"]["reason"] == "CompletionsReached", status
    assert (status["succeeded"], status["completedIndexes"]) == (2, "0-1")
    for index in range(2):
        assert (home / f"{index}").read_text() == f"ranks-{index} ranks $(OF) $(NONE)\n"
    assert (home / "peer-0").read_text() == (home / "peer-1").read_text()
    assert not (home.parent / "local").exists()
    first = space.pods("ranks")[0]
    assert first["metadata"]["name"].startswith("ranks-0-")
    assert first["spec"]["nodeName"] != space.pods("ranks")[1]["spec"]["nodeName"]
    processes = {line for line in space.log(first["metadata"]["name"]).split() if line.isdigit()}
    assert len(processes) < 10  # its own alone


def test_volumes_variables_and_users(space: Namespace, home: Path) -> None:
    """Secrets, config maps, projected tokens, subPath, readOnly, memory, who runs it."""
    key = base64.b64encode(b"hidden").decode()
    space.made("/api/v1/namespaces/{}/secrets", {"metadata": {"name": "s"}, "data": {"key": key}})
    names = {"metadata": {"name": "c"}, "data": {"a": "1", "file.txt": "text"}}
    space.made("/api/v1/namespaces/{}/configmaps", names)
    script = (
        'exec 2>&1; echo "$KEY $P_a $(id -u) $(id -g) $(id -G)"; cat /config/file.txt; echo; '
        "cat /keys/key; echo; test -s /tokens/here && echo token; "
        "echo x > /sub/made; echo x > /read/no; df -k /dev/shm | tail -n 1; "
        "test -e /var/run/secrets/kubernetes.io/serviceaccount/token && echo account; "
        "pwd; echo why > /dev/termination-log; exit 3"
    )
    words = mounts(
        home,
        {"name": "home", "mountPath": "/sub", "subPath": "a/b"},
        {"name": "home", "mountPath": "/read", "readOnly": True},
        {"name": "config", "mountPath": "/config"},
        {"name": "keys", "mountPath": "/keys"},
        {"name": "tokens", "mountPath": "/tokens"},
        {"name": "shm", "mountPath": "/dev/shm"},
    )
    words["container"] |= {
        "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}}],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}], "workingDir": "/sub",
    }  # fmt: skip
    words["volumes"] += [
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "keys", "secret": {"secretName": "s"}},
        {"name": "tokens", "projected": {"sources": [{"serviceAccountToken": {"path": "here"}}]}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
    ]
    (home / "a" / "b").mkdir(parents=True)
    (home / "a" / "b").chmod(0o777)
    words["securityContext"] = {"runAsUser": 4711, "runAsGroup": 47, "fsGroup": 48}
    space.made(POD, pod("v", script, automountServiceAccountToken=False, **words))
    status = space.until(POD, "v", lambda status: status["phase"] == "Failed")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why\n")
    log = space.log("v").splitlines()
    assert log[:4] == ["hidden 1 4711 47 47 48", "text", "hidden", "token"]
    assert log[4].endswith("/read/no: Read-only file system")
    assert log[5].split()[1] == "8192"
    assert log[6:] == ["/sub"]
    made = home / "a" / "b" / "made"
    assert (made.read_text(), made.stat().st_uid) == ("x\n", 4711)


def test_process_1_and_its_grace(space: Namespace) -> None:
    """SIGTERM reaches a handler; without one process 1 runs on until its grace ends."""
    handles = "trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    follows = "for n in 1 2 3; do sleep 0.1; echo $n; done"
    space.made(POD, pod("follows", follows))
    space.until(POD, "follows", lambda status: status["phase"] != "Pending")
    assert space.log("follows", follow="true") == "1\n2\n3\n"
    assert space.log("follows", tailLines="1") == "3\n"
    for name, script in (("handles", handles), ("deaf", "echo up; while :; do sleep 0.05; done")):
        space.made(POD, pod(name, script, terminationGracePeriodSeconds=1))
        space.until(POD, name, lambda status: status["phase"] == "Running")
    eventually(lambda: space.log("handles") == space.log("deaf") == "up\n")
    pods = POD.format(space.name)
    watch = {"watch": "1", "resourceVersion": space.get(POD, "deaf")["metadata"]["resourceVersion"]}
    began = time.monotonic()
    for name in ("handles", "deaf"):
        left = space.admin.delete(f"{pods}/{name}").json()
        assert left["metadata"]["deletionGracePeriodSeconds"] == 1
    gone = {}
    with space.admin.stream("GET", pods, params=watch) as changes:
        for line in changes.iter_lines():
            change = json.loads(line)
            if change["type"] == "DELETED":
                item = change["object"]
                gone[item["metadata"]["name"]] = (
                    item["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"],
                    item["status"]["phase"],
                )
            if len(gone) == 2:
                break
    assert gone == {"handles": (5, "Failed"), "deaf": (137, "Failed")}
    assert time.monotonic() - began > 0.9


def test_failures_of_jobs(space: Namespace, home: Path) -> None:
    """Limits of failures, whole and by index, a policy by exit codes, and a deadline."""
    space.made(JOB, job("limit", "exit 1", backoffLimit=1))
    never: Json = {"backoffLimitPerIndex": 0, "completions": 2, "parallelism": 2}
    indexed = job("each", "exit $JOB_COMPLETION_INDEX", completionMode="Indexed", **never)
    del indexed["spec"]["backoffLimit"]
    space.made(JOB, indexed)
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    policy: Json = {"podFailurePolicy": {"rules": rules}, "backoffLimit": 6}
    space.made(JOB, job("policy", "exit 42", **policy))
    space.made(JOB, job("late", "sleep 60", activeDeadlineSeconds=1,
                        pod_spec={"terminationGracePeriodSeconds": 0}))  # fmt: skip
    again = f"[ -e {home}/once ] || {{ echo first; touch {home}/once; exit 7; }}"
    retried = {"restartPolicy": "OnFailure", **mounts(home)}
    space.made(JOB, job("again", again, pod_spec=retried, backoffLimit=3))
    expected = {
        "limit": ("BackoffLimitExceeded", "Job has reached the specified backoff limit", 2),
        "each": ("FailedIndexes", "Job has failed indexes", 1),
        "late": ("DeadlineExceeded", "Job was active longer than specified deadline", 0),
    }
    for name, (reason, message, failed) in expected.items():
        status = space.ended(name)
        condition = true(status)["Failed"]
        assert (condition["reason"], condition["message"]) == (reason, message), name
        assert status.get("failed", 0) == failed, (name, status)
    assert space.get(JOB, "each")["status"]["failedIndexes"] == "1"
    (only,) = space.pods("policy")
    fault = true(space.ended("policy"))["Failed"]
    assert (fault["reason"], fault["message"]) == (
        "PodFailurePolicy",
        (
            f"Container main for pod {space.name}/{only['metadata']['name']} failed with exit "
            "code 42 matching FailJob rule at index 0"
        ),
    )
    assert "Complete" in true(space.ended("again"))
    (restarted,) = space.pods("again")
    assert restarted["status"]["containerStatuses"][0]["restartCount"] == 1
    assert space.log(restarted["metadata"]["name"], previous="true") == "first\n"


def test_suspended_jobs_and_queues(cluster: KubernetesStandIn, space: Namespace) -> None:
    """Suspension ends the pods and counts none as failed; Kueue suspends what has a queue."""
    ends = "trap 'exit 9' TERM; while :; do sleep 0.05; done"
    item = job("queued", ends)
    item["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    assert space.made(JOB, item)["spec"]["suspend"] is True
    status = space.until(JOB, "queued", lambda status: "Suspended" in true(status))
    assert true(status)["Suspended"]["reason"] == "JobSuspended"
    assert space.pods("queued") == []
    cluster.admit("queued", space.name)
    space.until(JOB, "queued", lambda status: status.get("ready") == 1)
    cluster.preempt("queued", space.name)
    status = space.until(JOB, "queued", lambda status: "Suspended" in true(status))
    eventually(lambda: space.pods("queued") == [])
    assert ("failed" in status, "startTime" in status) == (False, False)
    assert ("Started", "Admitted by clusterQueue gpus") in space.events("queued")
    patch(space, "queued", suspend=False)
    space.until(JOB, "queued", lambda status: status.get("ready") == 1)
    assert "Suspended" not in true(space.get(JOB, "queued")["status"])


def test_deletion_of_jobs(space: Namespace) -> None:
    """Pods stay where no policy is said (batch/v1), go with it, or before it; and after a time."""
    jobs = JOB.format(space.name)
    ends = "trap 'exit 9' TERM; while :; do sleep 0.05; done"
    for name in ("orphans", "background", "foreground"):
        space.made(JOB, job(name, ends))
        space.until(JOB, name, lambda status: status.get("ready") == 1)
    answer = space.admin.delete(f"{jobs}/orphans")
    assert "child pods are preserved by default" in answer.headers["Warning"]
    assert answer.json()["status"] == "Success"
    params = {"propagationPolicy": "Background"}
    assert space.admin.delete(f"{jobs}/background", params=params).json()["status"] == "Success"
    body = {"propagationPolicy": "Foreground", "kind": "DeleteOptions", "apiVersion": "v1"}
    left = space.admin.request("DELETE", f"{jobs}/foreground", json=body).json()
    assert left["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: not space.pods("background") and not space.pods("foreground"))
    eventually(lambda: space.admin.get(f"{jobs}/foreground").status_code == 404)
    (orphan,) = space.pods("orphans")
    assert orphan["metadata"]["ownerReferences"] == []
    space.made(JOB, job("short", ":", ttlSecondsAfterFinished=0))
    eventually(lambda: space.admin.get(f"{jobs}/short").status_code == 404)
    wrong = {"propagationPolicy": "Later"}
    assert space.admin.delete(f"{jobs}/orphans", params=wrong).status_code in (404, 422)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"container": {"resources": {"limits": {"nvidia.com/gpu": "3"}}}},
         ("1 node(s) had untolerated taint {reserved: lidar}, 2 Insufficient nvidia.com/gpu. "
         "preemption: 0/3 nodes are available: 2 No preemption victims found for incoming pod, 1 "
         "Preemption is not helpful for scheduling.")),
        ({"nodeSelector": {"gpu": "h200"}, "tolerations": [{"operator": "Exists"}]},
         ("3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are "
         "available: 3 Preemption is not helpful for scheduling.")),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}]},
         ("pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: "
         "3 Preemption is not helpful for scheduling.")),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
         ('persistentvolumeclaim "none" not found. preemption: 0/3 nodes are available: 3 '
         "Preemption is not helpful for scheduling.")),
    ],
)  # fmt: skip
def test_pods_that_no_node_takes(space: Namespace, words: Json, message: str) -> None:
    """The reason is the condition's and an event's."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = "/api/v1/namespaces/{}/persistentvolumeclaims"
    space.made(claims, {"metadata": {"name": "late"}, "spec": claim})
    space.made(POD, pod("waits", ":", **words))
    status = space.until(POD, "waits", lambda status: status.get("conditions"))
    (condition,) = (each for each in status["conditions"] if each["type"] == "PodScheduled")
    said = f"0/3 nodes are available: {message}"
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == said
    assert space.events("waits") == [("FailedScheduling", said)]


@pytest.mark.parametrize(
    ("container", "reason", "message"),
    [
        ({"image": "registry.example/none:1"}, "ErrImagePull", "example/none:1: not found"),
        ({"image": "registry.example/private:1"}, "ErrImagePull", "401 Unauthorized"),
        ({"envFrom": [{"secretRef": {"name": "none"}}]}, "CreateContainerConfigError",
         'secret "none" not found'),
        ({"securityContext": {"runAsNonRoot": True}}, "CreateContainerConfigError",
         "container has runAsNonRoot and image will run as root"),
    ],
)  # fmt: skip
def test_containers_that_cannot_start(
    space: Namespace, container: Json, reason: str, message: str
) -> None:
    """They wait with a reason; pulls are tried again."""
    space.made(POD, pod("stuck", ":", container=container))

    def waiting(status: Json) -> Json:
        states = status.get("containerStatuses") or [{"state": {}}]
        waits: Json = states[0]["state"].get("waiting", {})
        return waits

    status = space.until(POD, "stuck", lambda status: waiting(status).get("reason") == reason)
    assert message in waiting(status)["message"]
    assert status["phase"] == "Pending"
    if reason == "ErrImagePull":
        space.until(
            POD, "stuck", lambda status: waiting(status).get("reason") == "ImagePullBackOff"
        )
    answer = space.admin.get(f"{POD.format(space.name)}/stuck/log")
    assert (answer.status_code, "is waiting to start" in answer.text) == (400, True)


def test_a_command_that_is_not_there(space: Namespace) -> None:
    """It has an exit code and a reason of its own; logs of initial containers are kept, too."""
    first = {"name": "first", "image": "any", "command": ["echo", "first"]}
    words = {"container": {"command": ["/none/program"]}, "initContainers": [first]}
    space.made(POD, pod("wrong", "", **words))
    status = space.until(POD, "wrong", lambda status: status["phase"] == "Failed")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert "'/none/program'" in ended["message"]
    assert "choose one of: [first main]" in space.log("wrong")
    assert space.log("wrong", container="first") == "first\n"


def test_disruptions(tmp_path: Path) -> None:
    """A node that goes, an eviction, memory that is out: what a Job makes of each."""
    with kubernetes_stand_in(tmp_path / "cluster", [node("first"), node("second")]) as cluster:
        space = Namespace(cluster, "space")
        sleeps = "trap 'exit 143' TERM; while :; do sleep 0.05; done"
        ignores = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
        policy = {"podFailurePolicy": {"rules": ignores}}
        space.made(JOB, job("counts", sleeps))
        space.made(JOB, job("ignores", sleeps, **policy))
        for name in ("counts", "ignores"):
            space.until(JOB, name, lambda status: status.get("ready") == 1)
        (before,) = space.pods("ignores")
        (counted,) = space.pods("counts")
        for item in {each["spec"]["nodeName"] for each in (before, counted)}:
            cluster.lose_node(item)
        assert true(space.ended("counts"))["Failed"]["reason"] == "BackoffLimitExceeded"
        eventually(lambda: [each["metadata"]["uid"] for each in space.pods("ignores")]
                   != [before["metadata"]["uid"]])  # fmt: skip
        cluster.add_node(node("third"))
        space.until(JOB, "ignores", lambda status: status.get("ready") == 1)
        (now,) = space.pods("ignores")
        pods = POD.format(space.name)
        space.admin.post(f"{pods}/{now['metadata']['name']}/eviction", json={
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": now["metadata"]["name"]},
        })  # fmt: skip
        eventually(lambda: [each["metadata"]["uid"] for each in space.pods("ignores")]
                   not in ([], [now["metadata"]["uid"]]))  # fmt: skip
        space.until(JOB, "ignores", lambda status: status.get("ready") == 1)
        assert "failed" not in space.get(JOB, "ignores")["status"]
        (now,) = space.pods("ignores")
        cluster.out_of_memory(now["metadata"]["name"], space.name)
        assert "Failed" in true(space.ended("ignores"))
        (now,) = space.pods("ignores")
        ended = now["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
