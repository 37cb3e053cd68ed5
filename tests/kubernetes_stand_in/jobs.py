"""The controller of Jobs: their pods, indexes, failures, deadlines, suspension and end."""

import copy
import time
from dataclasses import dataclass, field

from tests.kubernetes_stand_in.failures import Failure, Json
from tests.kubernetes_stand_in.kinds import BY_NAME, Kind
from tests.kubernetes_stand_in.kubelet import set_condition
from tests.kubernetes_stand_in.store import Store, now, suffix

_INDEX = "batch.kubernetes.io/job-completion-index"
_MOST_DELAY_S = 600.0
_SOURCE = "job-controller"


@dataclass
class Known:
    """What the controller knows of a Job beside its object."""

    counted: set[str] = field(default_factory=set)
    """Pods whose end has been counted, or is not to be."""
    removed: list[Json] = field(default_factory=list)
    """Pods that went before they were counted."""
    completed: set[int] = field(default_factory=set)
    failed_indexes: dict[int, int] = field(default_factory=dict)
    """How often each index has failed."""
    given_up: set[int] = field(default_factory=set)
    started: float | None = None
    finished: float | None = None
    failures: int = 0
    """Since the last success."""
    next_pod: float = 0.0
    """Before which no pod is created."""


class Jobs:
    """All of them."""

    def __init__(self, store: Store, create_pod: object, *, retry_s: float) -> None:
        """None is known yet.

        Args:
            store: With the jobs and pods.
            create_pod: Creates a pod in a namespace, as the API would.
            retry_s: Between a pod's failure and the next pod; it doubles.
        """
        self.store, self.retry_s = store, retry_s
        self.create_pod = create_pod
        self.known: dict[str, Known] = {}
        store.on_remove.append(self._removed)

    def _removed(self, kind: Kind, item: Json) -> None:
        if kind.kind == "Pod":
            for owner in item["metadata"].get("ownerReferences", ()):
                known = self.known.get(owner["uid"])
                if known and item["metadata"]["uid"] not in known.counted:
                    known.removed.append(item)

    def sync(self) -> float:
        """Bring each Job on; after how many seconds one has to be looked at again."""
        return min([60.0, *(self._sync(job) for job in self.store.all("Job"))])

    def _sync(self, job: Json) -> float:
        metadata, spec = job["metadata"], job["spec"]
        known = self.known.setdefault(metadata["uid"], Known())
        if metadata.get("deletionTimestamp"):
            return 60.0
        status = copy.deepcopy(job.get("status") or {})
        if _is(status, "Complete") or _is(status, "Failed"):
            return self._forget(job, known)
        pods = [pod for kind, pod in self.store.dependents(job) if kind.kind == "Pod"]
        wait = 60.0
        if not spec["suspend"] and known.started is None:
            known.started = time.monotonic()
            status["startTime"] = now()
        fault = self._count(job, known, status, pods)
        active = [pod for pod in pods if _active(pod)]
        ending = [pod for pod in pods if _alive(pod) and not _active(pod)]
        if not fault and known.started is not None:
            fault, wait = self._fault(job, known, status, active)
        if fault and not _is(status, "FailureTarget"):
            set_condition(status, "FailureTarget", True, *fault)
        if not _is(status, "FailureTarget") and self._is_complete(job, known, status, active):
            said = "Reached expected number of succeeded pods"
            set_condition(status, "SuccessCriteriaMet", True, "CompletionsReached", said)
        if _is(status, "FailureTarget") or _is(status, "SuccessCriteriaMet"):
            self._delete(job, known, active)
            if not active and not ending:
                self._end(job, known, status)
        elif spec["suspend"]:
            self._suspend(job, known, status, active)
        else:
            self._resumed(job, status)
            wait = min(wait, self._create(job, known, active, ending))
        self._write(job, known, status)
        return wait

    def _resumed(self, job: Json, status: Json) -> None:
        if _is(status, "Suspended"):
            set_condition(status, "Suspended", False, "JobResumed", "Job resumed")
            self.store.event(job, "Resumed", "Job resumed", source=_SOURCE)

    def _write(self, job: Json, known: Known, status: Json) -> None:
        pods = [pod for kind, pod in self.store.dependents(job) if kind.kind == "Pod"]
        active = [pod for pod in pods if _active(pod)]
        status["active"] = len(active)
        status["ready"] = sum(
            any(
                each["type"] == "Ready" and each["status"] == "True"
                for each in pod["status"].get("conditions", ())
            )
            for pod in active
        )
        status["terminating"] = sum(_alive(pod) and not _active(pod) for pod in pods)
        status["uncountedTerminatedPods"] = {}
        if job["spec"]["completionMode"] == "Indexed":
            status["completedIndexes"] = _ranges(known.completed)
            if "backoffLimitPerIndex" in job["spec"]:
                status["failedIndexes"] = _ranges(known.given_up)
        if not active:
            del status["active"]
        self.store.change("Job", job, lambda each: each.update(status=status))

    def _forget(self, job: Json, known: Known) -> float:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None or known.finished is None:
            return 60.0
        left: float = known.finished + seconds - time.monotonic()
        if left <= 0:
            self.store.delete(BY_NAME["Job"], job, propagation="Background")
        return max(0.01, left)

    def _count(
        self, job: Json, known: Known, status: Json, pods: list[Json]
    ) -> tuple[str, str] | None:
        """Count pods that have ended; why the Job fails by one of them."""
        fault = None
        removed, known.removed = known.removed, []
        gone = {pod["metadata"]["uid"] for pod in removed}
        for pod in [*removed, *pods]:
            uid = pod["metadata"]["uid"]
            replaces = job["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"
            is_over = not _alive(pod) or uid in gone or (replaces and not _active(pod))
            if uid in known.counted or not is_over:
                continue
            known.counted.add(uid)
            index = _index_of(pod)
            if pod["status"]["phase"] == "Succeeded":
                is_new = index is None or index not in known.completed
                status["succeeded"] = status.get("succeeded", 0) + is_new
                known.failures = 0
                if index is not None:
                    known.completed.add(index)
                continue
            action, said = _action(job, pod)
            if action == "Ignore":
                continue
            status["failed"] = status.get("failed", 0) + 1
            known.failures += 1
            delay = min(_MOST_DELAY_S, self.retry_s * 2 ** (known.failures - 1))
            known.next_pod = time.monotonic() + delay
            if action == "FailJob":
                fault = ("PodFailurePolicy", said)
            if index is not None and "backoffLimitPerIndex" in job["spec"]:
                known.failed_indexes[index] = known.failed_indexes.get(index, 0) + 1
                limit = job["spec"]["backoffLimitPerIndex"]
                if action == "FailIndex" or known.failed_indexes[index] > limit:
                    known.given_up.add(index)
        return fault

    def _fault(
        self, job: Json, known: Known, status: Json, active: list[Json]
    ) -> tuple[tuple[str, str] | None, float]:
        """Why a Job fails as a whole, and after which time to ask again."""
        spec = job["spec"]
        restarts = sum(
            each["restartCount"]
            for pod in active
            for each in pod["status"].get("containerStatuses", ())
        )
        limit = spec["backoffLimit"]
        if status.get("failed", 0) > limit or restarts > limit or (restarts and restarts == limit):
            reason = "BackoffLimitExceeded"
            return (reason, "Job has reached the specified backoff limit"), 60.0
        most = spec.get("maxFailedIndexes")
        if most is not None and len(known.given_up) > most:
            said = "Job has exceeded the specified maximal number of failed indexes"
            return ("MaxFailedIndexesExceeded", said), 60.0
        done = len(known.completed | known.given_up)
        if known.given_up and done >= (spec.get("completions") or 0) and not active:
            return ("FailedIndexes", "Job has failed indexes"), 60.0
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and known.started is not None and not spec["suspend"]:
            left = known.started + deadline - time.monotonic()
            if left <= 0:
                said = "Job was active longer than specified deadline"
                return ("DeadlineExceeded", said), 60.0
            return None, max(0.01, left)
        return None, 60.0

    def _end(self, job: Json, known: Known, status: Json) -> None:
        """All pods have ended: the Job has failed or is complete."""
        known.finished = time.monotonic()
        for each in list(status["conditions"]):
            if each["type"] == "FailureTarget":
                set_condition(status, "Failed", True, each["reason"], each["message"])
                self.store.event(job, each["reason"], each["message"], "Warning", _SOURCE)
                return
        said = "Reached expected number of succeeded pods"
        set_condition(status, "Complete", True, "CompletionsReached", said)
        status["completionTime"] = now()
        self.store.event(job, "Completed", "Job completed", source=_SOURCE)

    def _is_complete(self, job: Json, known: Known, status: Json, active: list[Json]) -> bool:
        spec = job["spec"]
        wanted = spec.get("completions")
        if spec["completionMode"] == "Indexed":
            return not known.given_up and len(known.completed) >= wanted
        if wanted is None:
            return bool(status.get("succeeded")) and not active
        return bool(status.get("succeeded", 0) >= wanted)

    def _suspend(self, job: Json, known: Known, status: Json, active: list[Json]) -> None:
        self._delete(job, known, active)
        if not _is(status, "Suspended"):
            set_condition(status, "Suspended", True, "JobSuspended", "Job suspended")
            self.store.event(job, "Suspended", "Job suspended", source=_SOURCE)
        status.pop("startTime", None)
        known.started = None

    def _delete(self, job: Json, known: Known, active: list[Json]) -> None:
        """Pods that the controller itself ends are not counted as failed."""
        for pod in active:
            known.counted.add(pod["metadata"]["uid"])
            self.store.delete(BY_NAME["Pod"], pod)
            name = pod["metadata"]["name"]
            self.store.event(job, "SuccessfulDelete", f"Deleted pod: {name}", source=_SOURCE)

    def _create(self, job: Json, known: Known, active: list[Json], ending: list[Json]) -> float:
        """Create the pods that are missing; after how many seconds to try again."""
        spec = job["spec"]
        missing = self._missing(job, known, active, ending)
        if not missing and len(active) > spec["parallelism"]:
            self._delete(job, known, active[spec["parallelism"] :])
        if not missing:
            return 60.0
        left = known.next_pod - time.monotonic()
        if left > 0:
            return left
        for index in missing:
            pod = _pod(job, index)
            try:
                made = self.create_pod(pod, job["metadata"]["namespace"])  # type: ignore[operator]
            except Failure as failure:
                said = f"Error creating: {failure.message}"
                self.store.event(job, "FailedCreate", said, "Warning", _SOURCE)
                known.next_pod = time.monotonic() + max(0.2, self.retry_s)
                return max(0.2, self.retry_s)
            said = f"Created pod: {made['metadata']['name']}"
            self.store.event(job, "SuccessfulCreate", said, source=_SOURCE)
        return 60.0

    def _missing(
        self, job: Json, known: Known, active: list[Json], ending: list[Json]
    ) -> list[int | None]:
        """The indexes of pods to create; None for those of a Job without."""
        spec = job["spec"]
        waits_for = [] if spec["podReplacementPolicy"] == "TerminatingOrFailed" else ending
        if spec["completionMode"] == "Indexed":
            there = {_index_of(pod) for pod in [*active, *waits_for]}
            out = known.completed | known.given_up
            wanted = [
                each for each in range(spec["completions"]) if each not in out and each not in there
            ]
            return [*wanted[: max(0, spec["parallelism"] - len(there))]]
        status = job.get("status") or {}
        count: int = spec["parallelism"]
        if spec.get("completions") is not None:
            count = min(count, spec["completions"] - status.get("succeeded", 0))
        elif status.get("succeeded"):
            count = 0
        return [None] * max(0, count - len(active) - len(waits_for))


def _pod(job: Json, index: int | None) -> Json:
    name = job["metadata"]["name"]
    template: Json = copy.deepcopy(job["spec"]["template"])
    metadata, spec = template["metadata"], template["spec"]
    base = name if index is None else f"{name}-{index}"
    metadata["generateName"] = f"{base[:57]}-"
    metadata["name"] = metadata["generateName"] + suffix()
    metadata["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"],
         "controller": True, "blockOwnerDeletion": True}
    ]  # fmt: skip
    if index is not None:
        metadata.setdefault("annotations", {})[_INDEX] = str(index)
        metadata["labels"][_INDEX] = str(index)
        spec["hostname"] = f"{name}-{index}"
        path = f"metadata.labels['{_INDEX}']"
        variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            container["env"] = [*container.get("env", ()), variable]
    return template


def _action(job: Json, pod: Json) -> tuple[str, str]:
    """What a Job's podFailurePolicy does for a pod that has failed."""
    policy = job["spec"].get("podFailurePolicy") or {}
    where = f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
    for number, rule in enumerate(policy.get("rules", ())):
        codes = rule.get("onExitCodes")
        for each in pod["status"].get("containerStatuses", ()) if codes else ():
            code = each["state"].get("terminated", {}).get("exitCode", 0)
            named = codes.get("containerName") in (None, each["name"])
            if named and code and (code in codes["values"]) == (codes["operator"] == "In"):
                return rule["action"], (
                    f"Container {each['name']} for pod {where} failed with exit code {code} "
                    f"matching {rule['action']} rule at index {number}"
                )
        for wanted in rule.get("onPodConditions", ()):
            status = wanted.get("status", "True")
            for each in pod["status"].get("conditions", ()):
                if (each["type"], each["status"]) == (wanted["type"], status):
                    return rule["action"], (
                        f"Pod {where} has condition {each['type']} matching {rule['action']} rule "
                        f"at index {number}"
                    )
    return "Count", ""


def _is(status: Json, condition: str) -> bool:
    conditions = status.get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _alive(pod: Json) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed")


def _active(pod: Json) -> bool:
    return _alive(pod) and not pod["metadata"].get("deletionTimestamp")


def _index_of(pod: Json) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(_INDEX)
    return None if text is None else int(text)


def _ranges(indexes: set[int]) -> str:
    """As 0,2-4."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
