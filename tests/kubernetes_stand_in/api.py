"""The API over HTTP: paths, verbs, lists, watches, and how it fails when a test wants it to."""

import asyncio
import base64
import copy
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from tests.kubernetes_stand_in.access import Access, Attempt, User
from tests.kubernetes_stand_in.cluster import Cluster
from tests.kubernetes_stand_in.failures import Failure, Json, not_an_object
from tests.kubernetes_stand_in.kinds import BY_PATH, Kind
from tests.kubernetes_stand_in.objects import check_change, check_metadata
from tests.kubernetes_stand_in.selectors import Matches, by_fields, by_labels
from tests.kubernetes_stand_in.store import now

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_SUBRESOURCES = {"Pod": {"status", "log", "eviction"}, "ServiceAccount": {"token"}}
_MERGE = "application/merge-patch+json"
_WARNING = (
    '299 - "child pods are preserved by default when jobs are deleted; set '
    "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this "
    'warning"'
)


@dataclass
class Fault:
    """How requests fail for a while."""

    how: str
    """ "429", "500", "410" (of a list's next pages alone), "hang" (no answer while it lasts),
    "drop" (the connection closes), or "lost": the request is carried out and its answer lost."""
    methods: tuple[str, ...] = ()
    """Which ones; none: all."""
    times: int | None = None
    until: float | None = None
    """On the loop's clock [s]."""
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Target:
    """What a path names."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


class Api:
    """Answers requests of clients, as who they are may ask."""

    def __init__(self, cluster: Cluster, access: Access) -> None:
        """One of a cluster."""
        self.cluster, self.store, self.access = cluster, cluster.store, access
        self.connections: set[Any] = set()
        """Those of the server."""
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        """Method and path of each, with its query."""

    async def answer(self, request: Request) -> Response:
        """The answer to a request, or the Status of why there is none."""
        query = f"?{request.url.query}" if request.url.query else ""
        self.requests.append((request.method, request.url.path + query))
        fault = self._fault(request)
        if fault is not None and fault.how != "lost":
            return await self._failed(fault)
        try:
            answer = await self._answer(request)
        except Failure as failure:
            answer = JSONResponse(failure.status(), failure.code)
        if fault is not None:
            return await self._failed(Fault("drop"))
        return answer

    def _fault(self, request: Request) -> Fault | None:
        clock = asyncio.get_running_loop().time()
        for fault in list(self.faults):
            if fault.until is not None and clock > fault.until:
                self.faults.remove(fault)
                fault.over.set()
            elif fault.how == "410" and "continue" not in request.query_params:
                continue
            elif not fault.methods or request.method in fault.methods:
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.faults.remove(fault)
                return fault
        return None

    async def _failed(self, fault: Fault) -> Response:
        if fault.how == "429":
            message = "Too many requests, please try again later."
            failure = Failure(429, "TooManyRequests", message, {"retryAfterSeconds": 1})
            return JSONResponse(failure.status(), 429, {"Retry-After": "1"})
        if fault.how == "410":
            message = (
                "The provided continue parameter is too old to display a consistent list result."
            )
            return JSONResponse(Failure(410, "Expired", message).status(), 410)
        if fault.how == "500":
            message = "Internal error occurred: etcdserver: request timed out"
            return JSONResponse(Failure(500, "InternalError", message).status(), 500)
        if fault.how == "hang":
            clock = asyncio.get_running_loop().time()
            wait = None if fault.until is None else max(0.0, fault.until - clock)
            try:
                await asyncio.wait_for(fault.over.wait(), wait)
            except TimeoutError:
                fault.over.set()
        return Dropped(self.connections)

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        if path in ("/healthz", "/readyz", "/livez"):
            return PlainTextResponse("ok")
        user = self.access.user(request.headers.get("authorization", ""))
        if path == "/version":
            version = {"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
            return JSONResponse({**version, "platform": "linux/amd64"})
        if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            return await self._review(request, user)
        target = _target(path)
        verb = self._verb(request, target)
        resource = target.kind.plural + (f"/{target.subresource}" if target.subresource else "")
        attempt = Attempt(verb, target.kind.group, resource, target.namespace, target.name)
        self.access.need(user, attempt)
        if verb == "watch":
            return self._watch(request, target)
        if verb == "list":
            return self._list(request, target)
        if target.subresource == "log":
            return await self._log(request, target)
        if verb == "get":
            return JSONResponse(self.store.need(target.kind, target.name, target.namespace))
        if target.subresource == "token":
            return await self._token(request, target)
        if target.subresource == "eviction":
            return self._evict(target)
        change = {
            "create": self._create, "update": self._update, "patch": self._patch,
            "delete": self._delete, "deletecollection": self._delete_all,
        }[verb]  # fmt: skip
        return await change(request, target)

    @staticmethod
    def _verb(request: Request, target: Target) -> str:
        if request.method in ("GET", "HEAD"):
            if target.name:
                return "get"
            return "watch" if request.query_params.get("watch") in ("1", "true") else "list"
        if request.method == "DELETE":
            return "delete" if target.name else "deletecollection"
        if request.method not in _VERBS or (bool(target.name) == (request.method == "POST")) != (
            target.subresource in ("token", "eviction")
        ):
            message = "the server does not allow this method on the requested resource"
            raise Failure(405, "MethodNotAllowed", message)
        return _VERBS[request.method]

    async def _review(self, request: Request, user: User) -> Response:
        review = await _body(request)
        asked = review["spec"].get("resourceAttributes", {})
        resource = "/".join(filter(None, (asked.get("resource"), asked.get("subresource"))))
        attempt = Attempt(
            asked.get("verb", ""), asked.get("group", ""), resource, asked.get("namespace", ""),
            asked.get("name", ""),
        )  # fmt: skip
        review["status"] = {"allowed": self.access.allows(user, attempt)}
        return JSONResponse(review, 201)

    def _matches(self, request: Request) -> Matches:
        labels = by_labels(request.query_params.get("labelSelector", ""))
        fields = by_fields(request.query_params.get("fieldSelector", ""))
        return lambda item: labels(item) and fields(item)

    def _list(self, request: Request, target: Target) -> Response:
        matches = self._matches(request)
        items = [
            each for each in self.store.all(target.kind.kind, target.namespace) if matches(each)
        ]
        metadata: Json = {"resourceVersion": str(self.store.version)}
        if token := request.query_params.get("continue"):
            after = tuple(json.loads(base64.b64decode(token)))
            items = [each for each in items if _key(each) > after]
        limit = int(request.query_params.get("limit") or 0)
        if limit and len(items) > limit:
            metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
            last = json.dumps(_key(items[-1])).encode()
            metadata["continue"] = base64.b64encode(last).decode()
        # A list's items do not say what they are.
        plain = [
            {name: value for name, value in each.items() if name not in ("kind", "apiVersion")}
            if target.kind.kind != "MPIJob" else each for each in items
        ]  # fmt: skip
        listed = {
            "kind": f"{target.kind.kind}List", "apiVersion": target.kind.api_version,
            "metadata": metadata, "items": plain,
        }  # fmt: skip
        return JSONResponse(listed)

    def _watch(self, request: Request, target: Target) -> Response:
        matches = self._matches(request)
        after = request.query_params.get("resourceVersion") or "0"
        seconds = float(request.query_params.get("timeoutSeconds") or 1800)
        rows: asyncio.Queue[tuple[int, str, Kind, Json]] = asyncio.Queue()
        if after == "0":
            for item in self.store.all(target.kind.kind, target.namespace):
                rows.put_nowait((0, "ADDED", target.kind, item))
        else:
            for row in self.store.since(int(after)):
                rows.put_nowait(row)
        self.store.watchers.add(rows)

        async def lines() -> AsyncIterator[bytes]:
            known: set[str] = set()
            ends = asyncio.get_running_loop().time() + seconds
            try:
                while True:
                    left = ends - asyncio.get_running_loop().time()
                    _, change, kind, item = await asyncio.wait_for(rows.get(), left)
                    metadata = item["metadata"]
                    within = target.namespace in ("", metadata.get("namespace", ""))
                    if kind != target.kind or not within:
                        continue
                    if not matches(item):
                        if metadata["uid"] not in known:
                            continue
                        change = "DELETED"
                    known.add(metadata["uid"])
                    yield json.dumps({"type": change, "object": item}).encode() + b"\n"
            except TimeoutError:
                pass
            finally:
                self.store.watchers.discard(rows)

        return StreamingResponse(lines(), media_type="application/json")

    async def _create(self, request: Request, target: Target) -> Response:
        given = await _body(request)
        metadata = given.setdefault("metadata", {})
        if metadata.get("namespace", target.namespace) != target.namespace:
            message = (
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
            raise Failure(400, "BadRequest", message)
        dry = _is_dry(request)
        made = self.cluster.create(target.kind, given, target.namespace, dry=dry)
        return JSONResponse(made, 201)

    async def _update(self, request: Request, target: Target) -> Response:
        return self._replace(request, target, await _body(request))

    async def _patch(self, request: Request, target: Target) -> Response:
        if request.headers.get("content-type", "").split(";")[0] != _MERGE:
            message = f"the stand-in takes patches of {_MERGE} alone"
            raise Failure(415, "UnsupportedMediaType", message)
        before = self.store.need(target.kind, target.name, target.namespace)
        return self._replace(request, target, _merged(before, await _body(request)))

    def _replace(self, request: Request, target: Target, given: Json) -> Response:
        kind = target.kind
        before = self.store.need(kind, target.name, target.namespace)
        version = given.get("metadata", {}).get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            message = (
                f'Operation cannot be fulfilled on {kind.resource} "{target.name}": the object has '
                "been modified; please apply your changes to the latest version and try again"
            )
            raise Failure(409, "Conflict", message, {"name": target.name, "kind": kind.plural})
        self.cluster.schemas.check(kind, given, target.name)
        after = copy.deepcopy(before)
        if target.subresource == "status":
            after["status"] = given.get("status", {})
        else:
            after = {**copy.deepcopy(given), "metadata": _metadata(before, given)}
            if kind.has_status:
                after["status"] = before.get("status", {})
            check_change(kind, before, after)
            if causes := check_metadata(kind, after):
                raise not_an_object(kind.qualified, target.name, causes)
        if _is_dry(request):
            return JSONResponse(after)
        return JSONResponse(self.store.replace(kind, after))

    async def _delete(self, request: Request, target: Target) -> Response:
        options = await _delete_options(request)
        item = self.store.need(target.kind, target.name, target.namespace)
        uid = options.get("preconditions", {}).get("uid")
        if uid and uid != item["metadata"]["uid"]:
            message = (
                f'Operation cannot be fulfilled on {target.kind.resource} "{target.name}": '
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                f"{item['metadata']['uid']}"
            )
            raise Failure(409, "Conflict", message)
        headers = {}
        if target.kind.kind == "Job" and "propagationPolicy" not in options:
            headers["Warning"] = _WARNING
        if _is_dry(request):
            return JSONResponse(item, headers=headers)
        left = self._deleted(target.kind, item, options)
        if self.store.get(target.kind.kind, target.name, target.namespace) is None and (
            target.kind.kind != "Pod"
        ):
            kind = target.kind
            details = {"name": target.name, "group": kind.group, "kind": kind.plural}
            left = {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {**details, "uid": item["metadata"]["uid"]},
            }  # fmt: skip
        return JSONResponse(left, headers=headers)

    async def _delete_all(self, request: Request, target: Target) -> Response:
        options = await _delete_options(request)
        matches = self._matches(request)
        items = [
            each for each in self.store.all(target.kind.kind, target.namespace) if matches(each)
        ]
        for item in items:
            self._deleted(target.kind, item, options)
        listed = {"kind": f"{target.kind.kind}List", "apiVersion": target.kind.api_version}
        version = {"resourceVersion": str(self.store.version)}
        return JSONResponse({**listed, "metadata": version, "items": items})

    def _deleted(self, kind: Kind, item: Json, options: Json) -> Json:
        grace = options.get("gracePeriodSeconds")
        policy = options.get("propagationPolicy", "")
        if policy not in ("", "Background", "Foreground", "Orphan"):
            message = (
                f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: '
                f'"{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
            )
            raise Failure(422, "Invalid", message)
        return self.store.delete(kind, item, grace_s=grace, propagation=policy)

    async def _log(self, request: Request, target: Target) -> Response:
        query = request.query_params
        pod = self.store.need(target.kind, target.name, target.namespace)
        names = [
            each["name"]
            for which in ("initContainers", "containers") for each in pod["spec"].get(which, ())
        ]  # fmt: skip
        container = query.get("container") or ""
        if not container:
            if len(names) > 1:
                message = (
                    f"a container name must be specified for pod {target.name}, choose one of: "
                    f"[{' '.join(names)}]"
                )
                raise Failure(400, "BadRequest", message)
            container = names[0]
        if container not in names:
            message = f"container {container} is not valid for pod {target.name}"
            raise Failure(400, "BadRequest", message)
        file = self.cluster.log_of(pod, container, previous=query.get("previous") == "true")
        if query.get("follow") == "true":
            return StreamingResponse(self._follow(file, pod), media_type="text/plain")
        lines = file.read_bytes().splitlines(keepends=True)
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :] if int(query["tailLines"]) else []
        content = b"".join(lines)[: int(query.get("limitBytes") or 2**62)]
        return Response(content, media_type="text/plain")

    async def _follow(self, file: Path, pod: Json) -> AsyncIterator[bytes]:
        with file.open("rb") as lines:
            while True:
                metadata = pod["metadata"]
                now_it = self.store.get("Pod", metadata["name"], metadata["namespace"])
                content = lines.read()
                if content:
                    yield content
                elif now_it is None or now_it["status"]["phase"] in ("Succeeded", "Failed"):
                    return
                await asyncio.sleep(0.1)

    async def _token(self, request: Request, target: Target) -> Response:
        self.store.need(target.kind, target.name, target.namespace)
        review = await _body(request)
        seconds = review.get("spec", {}).get("expirationSeconds", 3600)
        token = self.cluster.service_token(target.namespace, target.name, seconds)
        review["status"] = {"token": token, "expirationTimestamp": now(seconds)}
        return JSONResponse(review, 201)

    def _evict(self, target: Target) -> Response:
        pod = self.store.need(target.kind, target.name, target.namespace)
        self.cluster.evict(pod)
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return JSONResponse({**success, "code": 201}, 201)


class Dropped(Response):
    """Closes the connection without a word."""

    def __init__(self, connections: set[Any]) -> None:
        """One of a server's connections."""
        super().__init__()
        self.connections = connections

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Close the one on which the request came."""
        for each in self.connections:
            if each.client == tuple(scope["client"]):
                each.transport.abort()


def _key(item: Json) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _target(path: str) -> Target:
    parts = path.strip("/").split("/")
    unknown = Failure(404, "NotFound", "the server could not find the requested resource")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    name, subresource = [*rest[1:], "", ""][:2]
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise unknown
    if subresource and subresource not in _SUBRESOURCES.get(kind.kind, {"status"}):
        raise unknown
    return Target(kind, namespace, name, subresource)


async def _body(request: Request) -> Json:
    content = await request.body()
    try:
        body = json.loads(content)
    except ValueError as error:
        message = f"couldn't get version/kind; json parse error: {error}"
        raise Failure(400, "BadRequest", message) from None
    if not isinstance(body, dict):
        raise Failure(400, "BadRequest", "json: cannot unmarshal array into Go value")
    return body


async def _delete_options(request: Request) -> Json:
    options = await _body(request) if await request.body() else {}
    query = request.query_params
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if "gracePeriodSeconds" in query:
        options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
    if "dryRun" in options:
        request.state.dry = options["dryRun"]
    return options


def _is_dry(request: Request) -> bool:
    asked = request.query_params.getlist("dryRun") or getattr(request.state, "dry", [])
    if asked and asked != ["All"]:
        raise Failure(
            422, "Invalid",
            f'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: {asked}: '
            'supported values: "All"',
        )  # fmt: skip
    return bool(asked)


def _merged(before: object, patch: object) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _metadata(before: Json, given: Json) -> Json:
    """What a client may change of an object's metadata, over what it may not."""
    ours = before["metadata"]
    theirs = given.get("metadata", {})
    changeable = ("labels", "annotations", "finalizers", "ownerReferences")
    kept = {name: value for name, value in ours.items() if name not in changeable}
    return {**kept, **{name: theirs[name] for name in changeable if name in theirs}}
