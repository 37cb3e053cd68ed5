"""The objects of a cluster: versions, watches, deletion with what belongs to an object."""

import asyncio
import copy
import random
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from tests.kubernetes_stand_in.failures import Failure, Json, not_found
from tests.kubernetes_stand_in.kinds import BY_NAME, Kind

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_EVENTS_KEPT = 2000
_FOREGROUND = "foregroundDeletion"


def now(after_s: float = 0.0) -> str:
    """The time as the API writes it."""
    time = datetime.now(UTC) + timedelta(seconds=after_s)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def suffix() -> str:
    """Five letters, as names are generated with."""
    return "".join(random.choices(_LETTERS, k=5))


class Store:
    """All objects of all kinds. Each change is told to watchers and wakes the controllers."""

    def __init__(self) -> None:
        """An empty one."""
        self.version = 100
        self.changed = asyncio.Event()
        self.watchers: set[asyncio.Queue[tuple[int, str, Kind, Json]]] = set()
        self.history: deque[tuple[int, str, Kind, Json]] = deque(maxlen=_EVENTS_KEPT)
        self.on_remove: list[Callable[[Kind, Json], None]] = []
        self._items: dict[tuple[str, str, str], Json] = {}

    def get(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """An object, which callers may not change."""
        return self._items.get((kind, namespace, name))

    def need(self, kind: Kind, name: str, namespace: str = "") -> Json:
        """An object that is there.

        Raises:
            Failure: 404.
        """
        item = self.get(kind.kind, name, namespace)
        if item is None:
            raise not_found(kind.resource, name)
        return item

    def all(self, kind: str, namespace: str = "") -> list[Json]:
        """The objects of a kind, of one namespace or of all, by name."""
        rows = [
            (within, name, item) for (of, within, name), item in self._items.items()
            if of == kind and namespace in ("", within)
        ]  # fmt: skip
        return [item for *_, item in sorted(rows, key=lambda row: row[:2])]

    def create(self, kind: Kind, item: Json, namespace: str = "", *, dry: bool = False) -> Json:
        """Add an object, which gets its metadata; where it is dry, only that.

        Raises:
            Failure: 409, as there is one of this name.
        """
        item = copy.deepcopy(item)
        item |= {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = item["metadata"]
        key = (kind.kind, namespace, metadata["name"])
        if key in self._items:
            details = {"name": key[2], "group": kind.group, "kind": kind.plural}
            message = f'{kind.resource} "{key[2]}" already exists'
            raise Failure(409, "AlreadyExists", message, details)
        metadata |= {"uid": metadata.get("uid") or str(uuid.uuid4()), "creationTimestamp": now()}
        if namespace:
            metadata["namespace"] = namespace
        if kind.kind in ("Job", "Pod", "MPIJob"):
            metadata["generation"] = 1
        if not dry:
            self._keep(kind, key, item, "ADDED")
        return item

    def replace(self, kind: Kind, item: Json) -> Json:
        """Put an object in the place of the one of its name, as a new version."""
        metadata = item["metadata"]
        key = (kind.kind, metadata.get("namespace", ""), metadata["name"])
        before = self._items[key]
        if {**before, "metadata": None} == {**item, "metadata": None}:
            same = {**metadata, "resourceVersion": before["metadata"]["resourceVersion"]}
            if same == before["metadata"]:
                return before
        item = copy.deepcopy(item)
        if item.get("spec") != before.get("spec") and "generation" in metadata:
            item["metadata"]["generation"] = before["metadata"]["generation"] + 1
        is_free = metadata.get("deletionTimestamp") and not metadata.get("finalizers")
        if is_free and kind.kind != "Pod":
            self.remove(kind, item)
            return item
        self._keep(kind, key, item, "MODIFIED")
        return item

    def change(self, kind: str, item: Json, change: Callable[[Json], object]) -> Json | None:
        """Change the newest version of an object, if it is still the same one."""
        metadata = item["metadata"]
        newest = self.get(kind, metadata["name"], metadata.get("namespace", ""))
        if newest is None or newest["metadata"]["uid"] != metadata["uid"]:
            return None
        newest = copy.deepcopy(newest)
        change(newest)
        return self.replace(BY_NAME[kind], newest)

    def remove(self, kind: Kind, item: Json) -> None:
        """Take an object away, and what belongs to it alone with it."""
        metadata = item["metadata"]
        key = (kind.kind, metadata.get("namespace", ""), metadata["name"])
        if self._items.pop(key, None) is None:
            return
        item = copy.deepcopy(item)
        self._say("DELETED", kind, item)
        for each in self.on_remove:
            each(kind, item)

    def delete(
        self, kind: Kind, item: Json, *, grace_s: float | None = None, propagation: str = ""
    ) -> Json:
        """Delete as the API does; what is there after, with its deletionTimestamp where it stays.

        A pod that has a node stays until its kubelet has ended it; an object whose dependents go
        first stays until they have gone.
        """
        if kind.kind == "Pod":
            return self._delete_pod(kind, item, grace_s)
        if propagation == "Orphan" or (not propagation and kind.kind == "Job"):
            for of, dependent in self.dependents(item):
                self.change(of.kind, dependent, lambda each: _disown(each, item))
        if propagation == "Foreground" and any(self.dependents(item)):
            stays = self.change(kind.kind, item, _going_with(_FOREGROUND))
            assert stays is not None
            for of, dependent in list(self.dependents(item)):
                self.delete(of, dependent, propagation="Foreground")
            return stays
        if item["metadata"].get("finalizers"):
            return self.change(kind.kind, item, _going_with()) or item
        self.remove(kind, item)
        return item

    def _delete_pod(self, kind: Kind, item: Json, grace_s: float | None) -> Json:
        spec, phase = item["spec"], item.get("status", {}).get("phase")
        grace = spec.get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
        if not spec.get("nodeName") or phase in ("Succeeded", "Failed") or grace == 0:
            self.remove(kind, item)
            return item
        metadata = item["metadata"]
        if metadata.get("deletionGracePeriodSeconds", grace + 1) <= grace:
            return item

        def going(pod: Json) -> None:
            pod["metadata"]["deletionTimestamp"] = now(grace)
            pod["metadata"]["deletionGracePeriodSeconds"] = int(grace)

        return self.change("Pod", item, going) or item

    def dependents(self, owner: Json) -> Iterator[tuple[Kind, Json]]:
        """What an object owns."""
        uid, namespace = owner["metadata"]["uid"], owner["metadata"].get("namespace", "")
        for (kind, within, _), item in list(self._items.items()):
            if namespace in ("", within) and uid in owners_of(item):
                yield BY_NAME[kind], item

    def collect_garbage(self) -> None:
        """Delete what nothing owns any more, owners that waited for that, what namespaces had."""
        there = {item["metadata"]["uid"] for item in self._items.values()}
        for (name, namespace, _), item in list(self._items.items()):
            kind, metadata = BY_NAME[name], item["metadata"]
            if namespace and self.get("Namespace", namespace) is None:
                self.delete(kind, item, grace_s=0, propagation="Background")
                continue
            owners = owners_of(item)
            if owners and not owners & there and not metadata.get("deletionTimestamp"):
                self.delete(kind, item, propagation="Background")
            if _FOREGROUND in metadata.get("finalizers", ()) and not any(self.dependents(item)):
                self.change(name, item, _without_foreground)

    def event(
        self, about: Json, reason: str, message: str, kind: str = "Normal", source: str = ""
    ) -> None:
        """An Event of an object; one that repeats counts up."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        for each in self.all("Event", namespace):
            same = each["involvedObject"]["uid"] == metadata["uid"]
            if same and (each["reason"], each["message"]) == (reason, message):
                self.change("Event", each, _again)
                return
        item: Json = {
            "metadata": {"name": f"{metadata['name']}.{uuid.uuid4().hex[:16]}"},
            "involvedObject": {
                "kind": about["kind"], "apiVersion": about["apiVersion"], "namespace": namespace,
                "name": metadata["name"], "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "reason": reason, "message": message, "type": kind, "count": 1,
            "firstTimestamp": now(), "lastTimestamp": now(), "source": {"component": source},
            "reportingComponent": source, "reportingInstance": "",
        }  # fmt: skip
        self.create(BY_NAME["Event"], item, namespace)

    def since(self, version: int) -> Iterable[tuple[int, str, Kind, Json]]:
        """What has changed after a version.

        Raises:
            Failure: 410, as that is forgotten.
        """
        if self.history and version < self.history[0][0] - 1 and len(self.history) == _EVENTS_KEPT:
            message = f"too old resource version: {version} ({self.history[0][0]})"
            raise Failure(410, "Expired", message)
        return [each for each in self.history if each[0] > version]

    def _keep(self, kind: Kind, key: tuple[str, str, str], item: Json, change: str) -> None:
        self._items[key] = item
        self._say(change, kind, item)

    def _say(self, change: str, kind: Kind, item: Json) -> None:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        row = (self.version, change, kind, item)
        self.history.append(row)
        for each in self.watchers:
            each.put_nowait(row)
        self.changed.set()


def _again(event: Json) -> None:
    event |= {"count": event["count"] + 1, "lastTimestamp": now()}


def owners_of(item: Json) -> set[str]:
    """The uids of what owns an object."""
    return {each["uid"] for each in item["metadata"].get("ownerReferences", ())}


def _disown(item: Json, owner: Json) -> None:
    rest = [
        each
        for each in item["metadata"].get("ownerReferences", ())
        if each["uid"] != owner["metadata"]["uid"]
    ]
    item["metadata"]["ownerReferences"] = rest


def _going_with(*finalizers: str) -> Callable[[Json], None]:
    def going(item: Json) -> None:
        metadata = item["metadata"]
        metadata.setdefault("deletionTimestamp", now())
        metadata["deletionGracePeriodSeconds"] = 0
        metadata["finalizers"] = [*dict.fromkeys([*metadata.get("finalizers", ()), *finalizers])]

    return going


def _without_foreground(item: Json) -> None:
    metadata = item["metadata"]
    metadata["finalizers"] = [each for each in metadata["finalizers"] if each != _FOREGROUND]
