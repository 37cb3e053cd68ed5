"""Who listens to a job's events: each as far as their rights go, and only as long as they last."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from catalog.accounts import row_collections, tokens, users
from catalog.records.tables import Job
from tests.api.servers import serving, wait_until
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make

pytestmark = pytest.mark.wide

HOUR = timedelta(hours=1)


@dataclass
class Listener:
    """A stream of a job's events, read by a thread.

    Attributes:
        documents: The events' data so far.
    """

    url: str
    token: str
    documents: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """True once the server has ended the stream."""
        return not self._thread.is_alive()

    def _read(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.stream("GET", self.url, headers=headers, timeout=300) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    self.documents.append(line.removeprefix("data: "))


@dataclass(frozen=True)
class Served:
    """A server of a home with a job that runs for ever.

    Attributes:
        url: The server's.
        home: Its folder.
        told: Changes the job's progress.
        token: A new token of a user.
    """

    url: str
    home: Path
    told: Callable[[str], None]
    token: Callable[[str, str], tuple[int, str]]

    def listen(self, token: str) -> Listener:
        """A listener that has had the first event."""
        listener = Listener(f"{self.url}/v1/jobs/cora~endless/events", token)
        wait_until(lambda: bool(listener.documents))
        return listener

    def ask(self, token: str, method: str, path: str, **more: object) -> int:
        """The status of an answer."""
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.request(method, f"{self.url}{path}", headers=headers, timeout=300, **more)  # type: ignore[arg-type]
        return answer.status_code


@pytest.fixture
def served(shared_home: Path) -> Iterator[Served]:
    """Its admins are root and root-2; cora sees every row by her one collection."""
    workspace = open_home(shared_home)
    records = workspace.records
    dataset = make(workspace, "all")
    row_collections.add(records, "every", "size >= 0")
    for name, role in (("root", "admin"), ("root-2", "admin"), ("cora", "collectionadmin")):
        users.add(records, name, [role], None)
    row_collections.assign(records, "every", "cora")
    folder = str(workspace.jobs / "cora~endless")
    with records.session() as session:
        job = Job(
            name="cora~endless", kind="scan", backend="of another version", state="running",
            request={}, paths={"folder": folder, "logs": f"{folder}/logs"}, dataset_id=dataset.id,
            owner="cora", user="cora", account=users.recorded(records, "cora").account,
        )  # fmt: skip
        session.add(job)

    def told(word: str) -> None:
        with records.session() as session:
            session.get_one(Job, job.id).metrics = {"word": word}

    def token(user: str, name: str) -> tuple[int, str]:
        made, text = tokens.create(records, user, name, "admin", HOUR)
        return made.id, text

    with serving(shared_home, authenticates=True) as (url, _):
        yield Served(url, shared_home, told, token)
    workspace.close()


def test_events_are_of_the_listener_s_rights_as_they_are(served: Served) -> None:
    """An admin and a limited user at once: only the admin's hold paths of the server.

    A stream ends when its token is revoked, its user disabled, or limited to other collections;
    others', by a token of a like name and of a user of a like name, go on.
    """
    number, revoked = served.token("root", "t")
    _, other_token = served.token("root", "t-2")
    _, of_other = served.token("root-2", "t")
    _, of_cora = served.token("cora", "t")
    first = served.listen(revoked)
    limited = served.listen(of_cora)
    others = [served.listen(token) for token in (other_token, of_other)]
    served.told("for all")
    for listener in (first, limited, *others):
        wait_until(lambda: "for all" in listener.documents[-1])  # noqa: B023
    assert str(served.home) in first.documents[-1]
    assert not any(str(served.home) in document for document in limited.documents)
    assert json.loads(limited.documents[-1])["metrics"] == {"word": "for all"}

    assert served.ask(of_other, "DELETE", f"/v1/tokens/{number}") == 200
    assert served.ask(of_other, "DELETE", "/v1/collections/every/users/cora") == 200
    wait_until(lambda: first.is_over and limited.is_over)
    served.told("after")
    for listener in others:
        wait_until(lambda: "after" in listener.documents[-1])  # noqa: B023
    assert "after" not in first.documents[-1] + limited.documents[-1]
    change = {"json": {"disabled": True}}
    assert served.ask(of_other, "PATCH", "/v1/users/root", **change) == 200
    wait_until(lambda: others[0].is_over)
    served.told("last")
    wait_until(lambda: "last" in others[1].documents[-1])
    assert not others[1].is_over
