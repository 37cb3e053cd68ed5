"""Asks a cluster's API, patiently where it is busy, and says what is wrong in a sentence."""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from catalog.errors import InvalidInput
from pipeline.jobs.backends.kubernetes.cluster import Cluster

PATIENCE_S = 60.0
"""For how long a question is asked again that is not answered [s]."""
_ANSWER_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_PAGE = 500
_EXPIRED = 410
"""A list's next page is asked for too late: only a new list says what there is."""
Objects = list[dict[str, Any]]


class ClusterSilent(Exception):
    """A cluster's API did not answer, or did not do what it was asked; why, in one sentence."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code
        """Of the HTTP answer; 0 for none."""

    @property
    def may_pass(self) -> bool:
        """Whether the same question may be answered later without anybody's help."""
        return self.code in (0, _EXPIRED, *_BUSY)


class Api:
    """A cluster's API."""

    def __init__(self, cluster: Cluster, patience_s: float | None = None) -> None:
        """Connect at the first question.

        Args:
            cluster: Where, and who asks.
            patience_s: For how long a question is asked again [s]; PATIENCE_S when None.

        Raises:
            InvalidInput: The cluster's certificates are none.
        """
        self.cluster = cluster
        self.patience_s = PATIENCE_S if patience_s is None else patience_s
        verify = cluster.tls() if cluster.server.startswith("https://") else True
        self._client = httpx.Client(
            base_url=cluster.server, verify=verify, timeout=_ANSWER_S, trust_env=False
        )

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str) -> dict[str, Any] | None:
        """An object; None where there is none.

        Raises:
            ClusterSilent: It cannot be told.
        """
        return self._ask("GET", path, may_miss=True)

    def list(self, path: str, **selectors: str) -> Objects:
        """All objects of a kind that selectors select (labelSelector, fieldSelector).

        Raises:
            ClusterSilent: They cannot be told.
        """
        deadline_s = time.monotonic() + self.patience_s
        while True:
            try:
                return self._pages(path, selectors)
            except ClusterSilent as problem:
                if problem.code != _EXPIRED or time.monotonic() > deadline_s:
                    raise

    def _pages(self, path: str, selectors: Mapping[str, str]) -> Objects:
        """All pages of a list; not to be told where the server forgets it in the middle."""
        rows: Objects = []
        query: dict[str, Any] = {**selectors, "limit": _PAGE}
        while True:
            answer = self._ask("GET", path, query=query) or {}
            rows += answer.get("items") or []
            more = (answer.get("metadata") or {}).get("continue")
            if not more:
                return rows
            query["continue"] = more

    def create(self, path: str, thing: Mapping[str, Any]) -> bool:
        """Create an object; False where one of that name is there already.

        A field that the cluster does not know is an error.

        Raises:
            ClusterSilent: It is not created, or nobody knows whether it is.
        """
        query = {"fieldValidation": "Strict"}
        return self._ask("POST", path, query=query, body=thing, may_exist=True) is not None

    def delete(self, path: str) -> None:
        """Delete an object, and then what it owns; nothing happens where there is none.

        Raises:
            ClusterSilent: It is not deleted, or nobody knows whether it is.
        """
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        self._ask("DELETE", path, body=body, may_miss=True)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        may_miss: bool = False,
        may_exist: bool = False,
    ) -> dict[str, Any] | None:
        """The answer; None where an object is not there, or was there before."""
        deadline_s = time.monotonic() + self.patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_s = 0.0
            try:
                answer = self._client.request(
                    method, path, params=query, json=body, headers=self.cluster.headers()
                )
            except InvalidInput as error:  # the token's file
                raise ClusterSilent(str(error)) from error
            except httpx.HTTPError as error:
                problem = ClusterSilent(
                    f"the API server {self.cluster.server} does not answer ({_shown(error)}); "
                    "see whether the cluster and the way to it are up"
                )
            else:
                if answer.is_success:
                    return _json(answer)
                if (answer.status_code == 404 and may_miss) or (
                    answer.status_code == 409 and may_exist and _is_there(answer)
                ):
                    return None
                problem = _problem(self.cluster, method, path, answer)
                if answer.status_code not in _BUSY:
                    raise problem
                wait_s = _seconds(answer.headers.get("Retry-After", ""))
            pause = max(wait_s, pause_s * random.uniform(0.5, 1.0))  # noqa: S311  # not a secret
            if time.monotonic() + pause > deadline_s:
                raise problem
            time.sleep(pause)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def jobs_path(namespace: str, name: str = "") -> str:
    """Of the Jobs of a namespace, or one of them."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def core_path(namespace: str, kind: str, name: str = "") -> str:
    """Of pods, services or events of a namespace, or one of them."""
    return f"/api/v1/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


def path_of(thing: Mapping[str, Any], *, alone: bool = False) -> str:
    """Where objects of an object's kind are created; with ``alone``, where it is itself."""
    metadata = thing["metadata"]
    name = metadata["name"] if alone else ""
    if thing["kind"] == "Job":
        return jobs_path(metadata["namespace"], name)
    if thing["kind"] == "MPIJob":
        base = f"/apis/{thing['apiVersion']}/namespaces/{metadata['namespace']}/mpijobs"
        return base + (f"/{name}" if name else "")
    return core_path(metadata["namespace"], f"{thing['kind'].lower()}s", name)


def _is_there(answer: httpx.Response) -> bool:
    return _json(answer).get("reason") == "AlreadyExists"


def _problem(cluster: Cluster, method: str, path: str, answer: httpx.Response) -> ClusterSilent:
    message = str(_json(answer).get("message") or answer.reason_phrase or "no reason was given")
    message = " ".join(message.split())
    code = answer.status_code
    sentences: dict[int, Callable[[], str]] = {
        401: lambda: (
            f"the API server {cluster.server} does not accept these credentials ({message}): the "
            "token has expired, or is of another cluster; log in again, or name another kubeconfig "
            "in backends.toml"
        ),
        403: lambda: (
            f"{message}; wait for others' jobs to end, ask for less, or have the quota raised"
            if "exceeded quota" in message
            else f"{message}; have an administrator apply what 'framesift backend kubernetes "
            "--render DIR' writes"
        ),
        404: lambda: (
            f"{message}: {path} is not there; name another namespace in backends.toml, or have an "
            "administrator apply what 'framesift backend kubernetes --render DIR' writes"
        ),
        422: lambda: f"the cluster refuses the object: {message}; change what it names",
        400: lambda: f"the cluster refuses the object: {message}; its version may be too old",
        429: lambda: f"the API server {cluster.server} is busy ({message}); try again later",
    }
    default = f"the API server {cluster.server} answers {method} with {code}: {message}"
    return ClusterSilent(sentences[code]() if code in sentences else default, code)


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _seconds(text: str) -> float:
    return min(float(text), _LONGEST_PAUSE_S) if text.isdigit() else 0.0


def _shown(error: httpx.HTTPError) -> str:
    return " ".join(str(error).split()) or type(error).__name__
