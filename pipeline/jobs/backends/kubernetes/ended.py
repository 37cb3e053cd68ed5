"""Why a stage ended, by what its pods wrote and what the cluster says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.jobs.backends.kubernetes.job import KubernetesJob
from pipeline.jobs.backends.kubernetes.notes import first_failed, notes_of_stage
from pipeline.jobs.backends.log_end import full_disk, was_killed, why_failed
from pipeline.jobs.request import Stage

_KILLED = 137
_WALL = {
    "wall": "without a checkpoint to go on from",
    "turn": "and has no further turn (most_requeues of backends.toml)",
}


@dataclass(frozen=True)
class Ended:
    """How a stage ended."""

    reason: str = ""
    """Why it failed, for people; empty where it succeeded."""
    is_lost: bool = False
    """Whether it was not by itself."""
    goes_on: bool = False
    """Whether only its wall time ended, and a next turn goes on."""


def why_ended(
    job: KubernetesJob,
    stage: Stage,
    of_cluster: Mapping[str, Any] | None,
    pods: Sequence[Mapping[str, Any]],
) -> Ended:
    """How a stage ended whose pods have all ended.

    Args:
        job: The stage's.
        stage: The stage.
        of_cluster: Its Job as the cluster had it last; None where it was deleted by hand.
        pods: Its pods.
    """
    notes = notes_of_stage(job, stage)
    failed = first_failed(notes)
    if failed is None:
        return Ended()
    attempt, what = job.request.attempt, f"{stage.title} {failed.command}"
    log = job.paths.log(stage.title, failed.command)
    if failed.code is not None and not failed.end:
        code = 128 - failed.code if failed.code > 128 else failed.code
        reason = why_failed(what, log, attempt, code)
        return Ended(reason, is_lost=was_killed(log, attempt, code))
    if failed.end in _WALL:
        reason = f"{what} was ended before its wall time did, {_WALL[failed.end]}; see {log}"
        goes_on = all(note.code == 0 or note.end == "turn" for note in notes)
        return Ended(reason, is_lost=True, goes_on=goes_on)
    full = full_disk(job.paths.folder)
    if of_cluster is None:
        reason = f"the Job of {what} was deleted by hand; nothing of it runs any more"
        return Ended(f"{reason}; see {log}{full}", is_lost=True)
    how, is_own = _how(pods)
    if is_own and all(not note.words for note in notes):
        reason = (
            f"no pod of {what} wrote a word ({how}): see that volumes of [kubernetes] in "
            f"backends.toml has the claim of {job.paths.folder}, and that uid may write there"
        )
        return Ended(reason)
    return Ended(f"Kubernetes ended {what} ({how}); see {log}{full}", is_lost=True)


def _how(pods: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """What the cluster says of pods that failed, and whether the program ended by itself."""
    for pod in pods:
        status = pod.get("status", {})
        name = f"pod {pod['metadata']['name']}"
        if node := pod.get("spec", {}).get("nodeName"):
            name += f" on node {node}"
        for condition in status.get("conditions") or ():
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
                reason, message = condition.get("reason", ""), condition.get("message", "")
                return f"{name}: {reason}: {message}".rstrip(": "), False
        if status.get("reason"):
            return f"{name}: {status['reason']}: {status.get('message', '')}".rstrip(": "), False
        for container in status.get("containerStatuses") or ():
            end = container.get("state", {}).get("terminated") or {}
            if end.get("exitCode"):
                how = f"{name}: {end.get('reason', 'Error')}, exit code {end['exitCode']}"
                return how, end["exitCode"] < _KILLED
    return "its pods are gone; a node may have gone with them", False
