"""Several server processes on one socket: they are one server, and any of them may die."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from multiprocessing import RawValue, get_context
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.server import supervisor
from api.server.worker import Serving
from api.settings import Settings
from api.workspace import Workspace
from catalog.accounts import tokens, users
from catalog.memory.keeper import MemoryKeeper
from catalog.records.store import RecordStore
from tests.api.servers import counted, serving, until_ready, wait_until

pytestmark = pytest.mark.wide

PASSWORD = "a sentence is a good one"
SQL = "/db2whrest/v1/sql_query"
SECONDS = (
    "select count(*) from metaocean a, metaocean b, metaocean c, metaocean d, metaocean e, "
    "(select fkey from t_car fetch first 3 rows only) f"
)
"""Some seconds on one core or two."""

ask = httpx.Client(
    timeout=120, limits=httpx.Limits(max_keepalive_connections=0), headers={"Connection": "close"}
)
"""A connection for each request, so that any worker may answer it."""

ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9))


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[tuple[str, "subprocess.Popen[str]", RecordStore]]:
    """A server of three processes that authenticates, and its records."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    users.add(records, "root", ["admin"], PASSWORD)
    with serving(shared_home, "--workers", "3", authenticates=True) as (url, process):
        wait_until(lambda: len(workers_of(process.pid)) == 3)
        yield url, process, records


def workers_of(pid: int) -> set[int]:
    """The processes that serve, of a server's process."""
    pids = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                pids.add(int(child))
    return pids


def token_of(records: RecordStore, name: str) -> dict[str, str]:
    """Headers with a new token of the user root."""
    _, token = tokens.create(records, "root", name, "admin", timedelta(days=1))
    return {"Authorization": f"Bearer {token}"}


def test_a_killed_worker_is_replaced_and_the_others_serve_on(
    served: tuple[str, "subprocess.Popen[str]", RecordStore],
) -> None:
    """No request fails but those that the killed one was answering, of which there are none."""
    url, process, _ = served
    before = workers_of(process.pid)
    os.kill(min(before), signal.SIGKILL)
    for _ in range(50):
        assert ask.get(f"{url}/healthz").status_code == 200
    wait_until(lambda: len(workers_of(process.pid)) == 3)
    assert len(workers_of(process.pid) & before) == 2


def test_a_worker_that_hangs_is_replaced(home: Path) -> None:
    """The others serve meanwhile; it is logged and counted.

    Lines of all processes come out of one stderr, each whole, with the process that wrote it.
    """
    arguments = ["--workers", "2", "--log-format", "json", "--log-level", "info"]
    variables = {"FRAMESIFT_WORKER_TIMEOUT_S": "6"}
    with serving(home, *arguments, variables=variables) as (url, process):
        log: list[str] = []
        assert process.stderr is not None
        reader = threading.Thread(target=log.extend, args=(process.stderr,))
        reader.start()
        wait_until(lambda: len(workers_of(process.pid)) == 2)
        until_ready(url, ask)
        before = workers_of(process.pid)
        with contextlib.ExitStack() as stack:
            # Connections that stay open, so that one process does not answer them all.
            clients = [
                stack.enter_context(httpx.Client(base_url=url, timeout=120)) for _ in range(40)
            ]
            for client in clients:
                assert client.get("/v1/sources").status_code == 200
        # A line is written after its answer is sent: a process that is stopped between the two
        # takes the line with it.
        wait_until(lambda: len(_requests_for_sources(log)) == 40)
        hung = min(before)
        os.kill(hung, signal.SIGSTOP)
        until = time.monotonic() + 300
        while hung in workers_of(process.pid):
            assert time.monotonic() < until, "it is not replaced"
            assert ask.get(f"{url}/healthz").status_code == 200
            time.sleep(0.2)
        wait_until(lambda: len(workers_of(process.pid)) == 2)
        assert len(workers_of(process.pid) & before) == 1
        line = 'framesift_workers_replaced_total{why="hung"} 1.0'
        wait_until(lambda: line in ask.get(f"{url}/metrics").text)
        process.terminate()
        process.wait(timeout=300)
        reader.join(timeout=300)
    assert f"worker {hung} has stood still" in "".join(log)
    requests = _requests_for_sources(log)
    assert len(requests) == 40
    assert {line["process"] for line in requests} <= before


def _requests_for_sources(log: list[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in list(log)]
    return [line for line in lines if line.get("route") == "/v1/sources"]


def ended_worker(since: float) -> supervisor._Worker:
    """A worker that began then, and whose process has ended."""
    process = get_context("fork").Process(target=int)
    process.start()
    process.join()
    return supervisor._Worker(process, RawValue("Q", 0), since)  # type: ignore[arg-type]


def test_a_worker_hangs_by_looks_and_by_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three looks in a row without a beat, of half a second each, are more than one second.

    Where the machine stood still for an hour between two looks, nobody has hung.
    """
    worker = ended_worker(time.monotonic())
    assert [worker.looked_at(1.0) for _ in range(4)] == [False] * 4  # it may take long to begin
    worker.beat.value = 1
    assert [worker.looked_at(1.0) for _ in range(4)] == [False, False, False, True]
    worker.beat.value = 2
    monkeypatch.setattr(time, "monotonic", lambda: 1e9)
    assert [worker.looked_at(1.0) for _ in range(2)] == [False, False]
    worker.beat.value = 3
    assert [worker.looked_at(1.0) for _ in range(4)] == [False, False, False, True]


def test_each_death_at_the_start_doubles_the_pause(tmp_path: Path) -> None:
    """Up to 30 s; one that had served for long is replaced at once."""
    settings = Settings(home=tmp_path)
    serving_three = Serving(settings=settings, workers=3, folder=str(tmp_path))
    with socket.socket() as listener:
        workers = supervisor._Workers(serving_three, listener)
    pauses = []
    for _ in range(8):
        worker = ended_worker(time.monotonic())
        workers._running[worker.process.sentinel] = worker
        assert workers._bury()
        pauses.append(workers._pause_s)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert not workers._bury()
    worker = ended_worker(time.monotonic() - 3600)
    workers._running[worker.process.sentinel] = worker
    assert workers._bury()
    assert workers._pause_s == 0


def test_a_task_is_every_worker_s(
    served: tuple[str, "subprocess.Popen[str]", RecordStore],
) -> None:
    """Whichever is asked, the task is known, and its result the same."""
    url, _, records = served
    headers = token_of(records, "tasks")
    answer = ask.post(f"{url}{SQL}_async", content="select count(*) from t_car", headers=headers)
    assert answer.status_code == 202
    location = answer.headers["location"]
    wait_until(lambda: ask.get(location, headers=headers).status_code != 303)
    answers = {ask.get(location, headers=headers).text for _ in range(20)}
    assert answers == {"0,24\n"}


def test_all_workers_answer_and_their_figures_are_one(
    served: tuple[str, "subprocess.Popen[str]", RecordStore],
) -> None:
    """A hundred requests are counted as a hundred, whoever answered them and is asked for it."""
    url, process, records = served
    headers = token_of(records, "metrics")
    line = r'framesift_requests_total\{method="GET",route="/auth/v1/roles",status="200"\} (\d+)'
    for _ in range(100):
        assert ask.get(f"{url}/auth/v1/roles", headers=headers).status_code == 200
    wait_until(lambda: len(workers_of(process.pid)) == 3)

    def count() -> int:
        match = re.search(line, ask.get(f"{url}/metrics", headers=headers).text)
        return int(match[1]) if match else 0

    wait_until(lambda: count() == 100)  # a process counts a request after it has answered
    assert [count() for _ in range(5)] == [100] * 5


def test_a_revoked_token_counts_for_none_of_them(
    served: tuple[str, "subprocess.Popen[str]", RecordStore],
) -> None:
    """At once, though each remembers for a while who has asked it."""
    url, _, records = served
    root, other = token_of(records, "root"), token_of(records, "revoked")
    for _ in range(20):
        assert ask.get(f"{url}/auth/v1/roles", headers=other).status_code == 200
    number = next(
        token["id"]
        for token in ask.get(f"{url}/v1/tokens", headers=root).json()["tokens"]
        if token["name"] == "revoked"
    )
    answer = ask.delete(f"{url}/v1/tokens/{number}", headers=root)
    assert answer.status_code in (200, 204), answer.text
    statuses = {ask.get(f"{url}/auth/v1/roles", headers=other).status_code for _ in range(20)}
    assert statuses == {401}


def test_guessing_is_counted_by_all_of_them_together(
    served: tuple[str, "subprocess.Popen[str]", RecordStore],
) -> None:
    """Five free guesses are five, not fifteen."""
    url, _, records = served
    users.add(records, "guessed", ["datauser"], PASSWORD)
    statuses = [
        ask.get(f"{url}/auth/v1/token", auth=("guessed", f"wrong {n}")).status_code
        for n in range(9)
    ]
    assert statuses[:5] == [401] * 5
    assert 429 in statuses[5:]  # after 1, 2, 4 or 8 s: however slow the machine is


def test_a_report_of_one_worker_is_downloaded_from_others(
    served: tuple[str, "subprocess.Popen[str]", RecordStore],
) -> None:
    """Reports are files."""
    url, _, records = served
    headers = token_of(records, "reports")
    body = {"name": "r", "query": "", "filters": [], "group_by": [], "sort_by": [], "limit": 3}
    report = ask.post(f"{url}/db2whrest/v1/report", json=body, headers=headers).json()
    downloads = {
        ask.get(f"{url}/db2whrest/v1/report/{report['report']}/download", headers=headers).text
        for _ in range(10)
    }
    assert len(downloads) == 1
    assert len(downloads.pop().splitlines()) == 4


def test_workers_end_with_the_process_that_watches_over_them(home: Path, tmp_path: Path) -> None:
    """Killed, it leaves nobody behind who holds the port; the next one clears what they counted.

    The next one's workers speak TLS, all of them with the one certificate.
    """
    (temporary := tmp_path / "temporary").mkdir()
    variables = {"TMPDIR": str(temporary)}
    with serving(home, "--workers", "2", variables=variables) as (url, process):
        wait_until(lambda: len(workers_of(process.pid)) == 2)
        assert ask.get(f"{url}/healthz").status_code == 200
        left = workers_of(process.pid)
        process.kill()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
        with pytest.raises(httpx.ConnectError):
            ask.get(f"{url}/healthz")
    (counted,) = temporary.glob("framesift-*/metrics/*/")
    assert list(counted.glob("*.db"))
    with serving(home, "--workers", "2", "--tls-self-signed", variables=variables) as (
        url,
        process,
    ):
        wait_until(lambda: len(workers_of(process.pid)) == 2)
        for _ in range(10):
            with httpx.Client(verify=False, timeout=120) as client:  # its name is another matter
                assert client.get(f"{url}/metrics").status_code == 200
        (folder,) = temporary.glob("framesift-*/metrics/*/")
        assert folder != counted
    assert list(temporary.glob("framesift-*/metrics/*/")) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_lets_a_running_query_finish(home: Path, workers: str) -> None:
    """Its answer arrives whole, new connections are refused meanwhile, and then all is over."""
    arguments = ["--workers", workers, "--shutdown-timeout", "600"]
    with serving(home, *arguments) as (url, process):
        until_ready(url, ask)
        answers: list[httpx.Response] = []
        # Where a long statement stays an answer, and does not become a task after ten seconds.
        body = {"statement": SECONDS}
        asking = threading.Thread(
            target=lambda: answers.append(ask.post(f"{url}/v1/sql", json=body))
        )
        asking.start()
        wait_until(lambda: counted(url)[0] == 1)
        assert not answers, "the statement was too short"
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: refused(url))
        asking.join(600)
        assert answers[0].status_code == 200, answers[0].text
        assert [list(row.values()) for row in answers[0].json()] == [[75**5 * 3]]
        process.wait(120)
        assert process.returncode == 0


def refused(url: str) -> bool:
    """Whether nobody listens there."""
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_query_that_does_not_finish_is_cut_at_the_limit(home: Path, workers: str) -> None:
    """One that would run for ever does not keep the server from its end."""
    with serving(home, "--workers", workers, "--shutdown-timeout", "1") as (url, process):
        until_ready(url, ask)

        def long() -> None:
            with contextlib.suppress(httpx.HTTPError):
                ask.post(url + SQL, content=ENDLESS)

        asking = threading.Thread(target=long, daemon=True)
        asking.start()
        wait_until(lambda: counted(url)[0] == 1)
        assert asking.is_alive()
        process.send_signal(signal.SIGTERM)
        process.wait(300)
        assert process.returncode == 0
        asking.join(300)
        assert not asking.is_alive()


def test_a_draining_server_says_so_and_serves_on(home: Path) -> None:
    """So that a load balancer looks elsewhere before connections are refused."""
    for drain_s in ("4", "30", "120"):
        with serving(home, "--drain", drain_s) as (url, process):
            until_ready(url, ask)
            process.send_signal(signal.SIGTERM)
            # Where this machine stands still for as long, it has ended before all is asked.
            with contextlib.suppress(httpx.ConnectError):
                wait_until(partial(is_stopping, url))
                assert ask.get(f"{url}/readyz").json()["title"] == "Stopping"
                assert ask.get(f"{url}/healthz").status_code == 200
                assert ask.post(url + SQL, content="select count(*) from t_car").text == "0,24\n"
                process.wait(300)
                return
    pytest.fail("it refused connections while it drained")


def is_stopping(url: str) -> bool:
    """Whether a server says that it should be asked no more."""
    return ask.get(f"{url}/readyz").status_code == 503


def test_the_snapshot_in_memory_is_divided(home: Path) -> None:
    """What a server may hold is shared by its processes."""
    settings = Settings(home=home, snapshot_memory_mb=400)
    workspace = Workspace(settings, serves=True, processes=4)
    assert isinstance(workspace.whole_catalog.memory, MemoryKeeper)
    assert workspace.whole_catalog.memory._budget_mb == 100
    workspace.close()


def test_workers_that_cannot_start_are_not_tried_without_end(tmp_path: Path, home: Path) -> None:
    """Each death at the start is said, with its reason, and the server goes on trying."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "fastapi.py").write_text("raise ImportError('broken on purpose')")
    variables = {"PYTHONPATH": os.pathsep.join([str(broken), os.environ.get("PYTHONPATH", "")])}
    with serving(home, "--workers", "2", "--log-format", "json", variables=variables) as (
        _,
        process,
    ):
        assert process.stderr is not None
        lines: list[str] = []
        reading = threading.Thread(target=lines.extend, args=(process.stderr,))
        reading.start()
        wait_until(lambda: sum("starting another" in line for line in lines) >= 3)
        assert process.poll() is None
        process.terminate()
        reading.join(300)
    said = [json.loads(line) for line in lines if line.startswith("{")]
    deaths = [line for line in said if "starting another" in line["message"]]
    assert any("broken on purpose" in line for line in lines)
    assert len(deaths) >= 3
