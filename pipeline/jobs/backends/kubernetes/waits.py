"""Why pods do not begin, in a sentence that says what to do, by their conditions and events."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.jobs.backends.kubernetes.objects import QUEUE_LABEL

Object = Mapping[str, Any]
_NODES = re.compile(r"\d+/\d+ nodes are available: (.*?)\.?( preemption: .*)?")
_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
     "ImageInspectError"}
)  # fmt: skip
_CONFIGURED = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_BEGINS = frozenset({"", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True)
class Wait:
    """What a pod waits for."""

    reason: str
    """For people."""
    is_mistake: bool = False
    """Whether it is something that no other job's end changes."""


def is_active(pod: Object) -> bool:
    """Return whether a pod runs, or may yet."""
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def wait_of(job: Object, pods: Sequence[Object], events: Sequence[Object]) -> Wait | None:
    """What a Job's pods wait for; None where all of them have begun.

    Args:
        job: The Job, or MPIJob.
        pods: Its pods.
        events: Of its namespace.
    """
    spec = job.get("spec", {})
    if spec.get("suspend") or spec.get("runPolicy", {}).get("suspend"):
        queue = job["metadata"].get("labels", {}).get(QUEUE_LABEL)
        if queue:
            return Wait(f"for Kueue: queue {queue} has not admitted it")
        return Wait("for Kubernetes: somebody suspended it; resume it by 'kubectl edit'")
    waiting = [pod for pod in pods if pod.get("status", {}).get("phase", "Pending") == "Pending"]
    if not pods:
        problem = _last(events, job["metadata"]["name"], "FailedCreate")
        return Wait(f"for Kubernetes: {_created(problem) if problem else 'a pod'}")
    for pod in waiting:
        if (wait := _of_pod(pod, events)) is not None:
            return wait
    return Wait("for Kubernetes: its pods begin") if waiting else None


def _of_pod(pod: Object, events: Sequence[Object]) -> Wait | None:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Wait(f"for Kubernetes: {_scheduled(condition)}")
    for container in status.get("containerStatuses") or ():
        state = container.get("state", {}).get("waiting") or {}
        reason, message = state.get("reason", ""), _line(state.get("message", ""))
        if reason in _IMAGE:
            return Wait(
                f"image {container.get('image')} cannot be pulled ({_both(reason, message)}); name "
                "one that is there, or its pull secret, in backends.toml",
                is_mistake=True,
            )
        if reason in _CONFIGURED:
            hint = "see uid, secrets and volumes of [kubernetes] in backends.toml"
            return Wait(
                f"pod {name} cannot begin ({_both(reason, message)}); {hint}", is_mistake=True
            )
        if reason not in _BEGINS:
            return Wait(f"for Kubernetes: {_both(reason, message)}")
    if problem := _last(events, name, "FailedMount", "FailedAttachVolume"):
        return Wait(
            f"for Kubernetes: {problem}; see that the claim's volume can be mounted on its node"
        )
    return None


def _scheduled(condition: Object) -> str:
    """Why a pod has no node."""
    message = _line(condition.get("message", ""))
    match = _NODES.fullmatch(message)
    reason = _both(condition.get("reason", ""), match[1] if match else message)
    if "persistentvolumeclaim" in message.lower():
        return f"{reason}; have the claim made and bound, or name another in backends.toml"
    return reason


def _created(message: str) -> str:
    """Why a Job has no pod."""
    if "exceeded quota" in message:
        return f"{message}; wait for others' jobs to end, ask for less, or have the quota raised"
    if "serviceaccount" in message.lower() and "not found" in message:
        return (
            f"{message}; have an administrator apply what 'framesift backend kubernetes --render "
            "DIR' writes"
        )
    if "violates PodSecurity" in message or "security context constraint" in message:
        return f"{message}; have the namespace allow it, or set nccl = 'tcp' and a uid of its range"
    return message


def _last(events: Sequence[Object], name: str, *reasons: str) -> str:
    """The newest message about an object; empty where there is none."""
    own = [
        event
        for event in events
        if event.get("involvedObject", {}).get("name") == name and event.get("reason") in reasons
    ]
    own.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return _both(own[-1]["reason"], _line(own[-1].get("message", ""))) if own else ""


def _both(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
