"""ResourceQuotas: what a namespace may have, in the words in which the API refuses more."""

from fractions import Fraction

from tests.kubernetes_stand_in.failures import Failure, Json
from tests.kubernetes_stand_in.kinds import KINDS, Kind
from tests.kubernetes_stand_in.quantities import amount, pod_limits, pod_requests, shown
from tests.kubernetes_stand_in.store import Store

_MUST_BE_SAID = ("cpu", "memory")


def check_quota(store: Store, kind: Kind, item: Json, namespace: str) -> None:
    """Refuse an object that a namespace has no room for.

    Raises:
        Failure: 403 with what was requested, is used, and is the limit.
    """
    wanted = _amounts(kind, item)
    for quota in store.all("ResourceQuota", namespace):
        hard = {name: amount(value) for name, value in quota["spec"].get("hard", {}).items()}
        name = quota["metadata"]["name"]
        _all_said(kind, hard, wanted, item["metadata"]["name"], name)
        used = used_of(store, hard, namespace)
        over = [
            each for each in sorted(wanted)
            if each in hard and wanted[each] and used[each] + wanted[each] > hard[each]
        ]  # fmt: skip
        if over:
            said = [
                f"{word}: " + ",".join(f"{each}={shown(amounts[each])}" for each in over)
                for word, amounts in (("requested", wanted), ("used", used), ("limited", hard))
            ]
            message = f"exceeded quota: {name}, {', '.join(said)}"
            raise _forbidden(kind, item["metadata"]["name"], message)


def used_of(store: Store, hard: dict[str, Fraction], namespace: str) -> dict[str, Fraction]:
    """How much of a quota's amounts are used."""
    used = dict.fromkeys(hard, Fraction(0))
    for kind in KINDS:
        for item in store.all(kind.kind, namespace) if kind.namespaced else ():
            if item.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                continue
            for name, value in _amounts(kind, item).items():
                if name in used:
                    used[name] += value
    return used


def _amounts(kind: Kind, item: Json) -> dict[str, Fraction]:
    one = Fraction(1)
    amounts = {f"count/{kind.resource}": one}
    if kind.kind != "Pod":
        return amounts | {kind.plural: one}
    amounts["pods"] = one
    for which, of in (("requests", pod_requests), ("limits", pod_limits)):
        for name, value in of(item["spec"]).items():
            amounts[f"{which}.{name}"] = value
            if which == "requests" and name in _MUST_BE_SAID:
                amounts[name] = value
    return amounts


def _all_said(
    kind: Kind, hard: dict[str, Fraction], wanted: dict[str, Fraction], name: str, quota: str
) -> None:
    unsaid = [
        each for each in sorted(hard)
        if kind.kind == "Pod" and each.split(".")[-1] in _MUST_BE_SAID and each not in wanted
    ]  # fmt: skip
    if unsaid:
        message = f"failed quota: {quota}: must specify {','.join(unsaid)}"
        raise _forbidden(kind, name, message)


def _forbidden(kind: Kind, name: str, message: str) -> Failure:
    details = {"name": name, "kind": kind.plural, "group": kind.group}
    details = {key: value for key, value in details.items() if value}
    return Failure(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {message}', details)
