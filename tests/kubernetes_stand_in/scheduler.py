"""Gives pods nodes, or says why none fits, in the scheduler's words."""

from collections import Counter
from fractions import Fraction

from tests.kubernetes_stand_in.failures import Json
from tests.kubernetes_stand_in.kubelet import condition, set_condition
from tests.kubernetes_stand_in.quantities import amount, pod_requests
from tests.kubernetes_stand_in.store import Store

_NO_VICTIMS = "No preemption victims found for incoming pod."
_NOT_HELPFUL = "Preemption is not helpful for scheduling."


def schedule(store: Store) -> None:
    """Bind each pod that waits and fits somewhere."""
    for pod in store.all("Pod"):
        waits = pod["status"]["phase"] == "Pending" and not pod["spec"].get("nodeName")
        if waits and not pod["metadata"].get("deletionTimestamp"):
            _place(store, pod)


def _place(store: Store, pod: Json) -> None:
    nodes = store.all("Node")
    fault = _claims(store, pod)
    if fault:
        detail = f"0/{len(nodes)} nodes are available: {len(nodes)} {_NOT_HELPFUL}"
        _unschedulable(store, pod, f"{fault}. preemption: {detail}")
        return
    reasons: Counter[str] = Counter()
    fitting = []
    for node in nodes:
        why = _unfit(store, pod, node)
        reasons.update(why)
        if not why:
            fitting.append(node["metadata"]["name"])
    if not fitting:
        if not nodes:
            _unschedulable(store, pod, "no nodes available to schedule pods")
            return
        said = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        helpless = sum(1 for node in nodes if not all(map(_is_amount, _unfit(store, pod, node))))
        parts = [f"{len(nodes) - helpless} {_NO_VICTIMS[:-1]}"] if helpless < len(nodes) else []
        parts += [f"{helpless} {_NOT_HELPFUL[:-1]}"] if helpless else []
        available = f"0/{len(nodes)} nodes are available"
        _unschedulable(
            store, pod, f"{available}: {said}. preemption: {available}: {', '.join(parts)}."
        )
        return
    pods = Counter(each["spec"].get("nodeName") for each in store.all("Pod"))
    chosen = min(fitting, key=lambda name: (pods[name], name))

    def bind(each: Json) -> None:
        each["spec"]["nodeName"] = chosen
        set_condition(each["status"], "PodScheduled", True)

    store.change("Pod", pod, bind)
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    message = f"Successfully assigned {where} to {chosen}"
    store.event(pod, "Scheduled", message, source="default-scheduler")


def _unschedulable(store: Store, pod: Json, message: str) -> None:
    before = [
        each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"
    ]
    if not before or before[0].get("message") != message:
        condition(store, pod, "PodScheduled", False, "Unschedulable", message)
        store.event(pod, "FailedScheduling", message, "Warning", "default-scheduler")


def _claims(store: Store, pod: Json) -> str:
    """Why the claims of a pod are not there for it, empty if they are."""
    total = len(store.all("Node"))
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" not in volume:
            continue
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = store.get("PersistentVolumeClaim", name, pod["metadata"]["namespace"])
        if claim is None:
            return f'0/{total} nodes are available: persistentvolumeclaim "{name}" not found'
        if claim["status"].get("phase") != "Bound":
            return (
                f"0/{total} nodes are available: pod has unbound immediate PersistentVolumeClaims"
            )
    return ""


def _is_amount(reason: str) -> bool:
    return reason.startswith(("Insufficient", "Too many"))


def _unfit(store: Store, pod: Json, node: Json) -> list[str]:
    """Why a node is none for a pod."""
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    ready = [
        each["status"] for each in node["status"].get("conditions", ()) if each["type"] == "Ready"
    ]
    taints = [*node["spec"].get("taints", ())]
    if ready != ["True"]:
        taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    if node["spec"].get("unschedulable"):
        return ["node(s) were unschedulable"]
    for taint in taints:
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(taint, spec):
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return ["node(s) didn't match Pod's node affinity/selector"]
    used: dict[str, Fraction] = {}
    count = 0
    for each in store.all("Pod"):
        phase = each["status"]["phase"]
        if each["spec"].get("nodeName") == node["metadata"]["name"] and phase not in (
            "Succeeded", "Failed"
        ):  # fmt: skip
            count += 1
            for name, value in pod_requests(each["spec"]).items():
                used[name] = used.get(name, Fraction(0)) + value
    there = node["status"]["allocatable"]
    reasons = [
        f"Insufficient {name}" for name, value in pod_requests(spec).items()
        if value and used.get(name, Fraction(0)) + value > amount(there.get(name, "0"))
    ]  # fmt: skip
    if count + 1 > amount(there.get("pods", "110")):
        reasons.append("Too many pods")
    return reasons


def _tolerated(taint: Json, spec: Json) -> bool:
    for each in spec.get("tolerations", ()):
        same_key = each.get("key") in (None, "", taint["key"])
        same_effect = each.get("effect") in (None, "", taint["effect"])
        exists = each.get("operator") == "Exists"
        if same_key and same_effect and (exists or each.get("value") == taint.get("value")):
            return True
    return False
