"""Statements that nobody waits for, and what becomes of them whatever the server does."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from api.discover.db2whrest.task_files import Limits, Output, TaskFiles, is_task
from api.discover.db2whrest.tasks import Task, Tasks
from api.http.fair_queue import FairQueue
from api.http.sql_response import PATIENCE_S
from catalog.errors import InvalidInput, ServerBusy
from catalog.lake.statement_watch import Cancellation
from tests.api.servers import catch_up, counted, serving, sleep_through, wait_until
from tests.needed_programs import needs
from tests.pipeline.homes import copy_home

pytestmark = pytest.mark.wide

REAL: list[dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "query" / "real_statements.json").read_text()
)
ASYNC = [example["sql"] for example in REAL if example["endpoint"].endswith("sql_query_async")]
STATEMENTS = [example["sql"] for example in REAL if example["kind"] == "statement"]
ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9))
UNKNOWN = "9c0db090-bd33-41c5-969f-a1603ddf49ab"
SLOW = """select count(*) from metaocean a, metaocean b, metaocean c, metaocean d,
(select size from metaocean fetch first {numbers} rows only) e
where a.size + b.size * c.size - d.size + e.size <> 0.5"""
PATH = "/db2whrest/v1/sql_query_async"


def ended(address: str) -> httpx.Response:
    """What a task has come to."""
    until = time.monotonic() + 300
    while (answer := httpx.get(address)).status_code == 303:
        assert time.monotonic() < until, "the task runs on"
        time.sleep(0.05)
    return answer


def begun(url: str, statement: str, **headers: str) -> str:
    """The address of a new task."""
    answer = httpx.post(f"{url}{PATH}", content=statement, headers=headers, timeout=300)
    assert answer.status_code == 202, answer.text
    return str(answer.headers["location"])


def test_the_documented_steps_with_curl(shared_url: str) -> None:
    """The bytes that the documentation prints; then the result under the printed address."""
    needs("curl")
    run = subprocess.run(
        ["curl", "-s", "-i", "-k", "-H", "Authorization: Bearer <token>", f"{shared_url}{PATH}",
         "-X", "POST", "-d", "select filename from metaocean where owner<>'nobody'"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    head, _, body = run.stdout.replace("\r\n", "\n").partition("\n\n")
    lines = head.splitlines()
    assert lines[0].startswith("HTTP/1.1 202")
    assert body == '{"status": "work scheduled"}'
    assert "content-type: text/html; charset=utf-8" in lines
    assert "content-length: 28" in lines
    (location,) = [line for line in lines if line.startswith("Location: ")]
    address = location.removeprefix("Location: ")
    assert re.fullmatch(rf"{shared_url}/db2whrest/v1/task_status/[0-9a-f-]{{36}}", address)
    answer = ended(address)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.text.count("\n") == 75
    assert answer.text.startswith('0,"camera_lidar_semantic/')
    assert httpx.get(address).text == answer.text  # it may be fetched again
    assert httpx.get(f"{address}/peek").text == '{"status": "complete"}'


def test_the_statement_may_be_the_query_string(shared_url: str) -> None:
    """GET, as documented."""
    needs("curl")
    run = subprocess.run(
        ["curl", "-s", "-D", "-", "-o", "/dev/null", "-X", "GET",
         f"{shared_url}{PATH}?select%20count(*)%20from%20metaocean%20where%20owner%3C%3E%27x%27"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    address = run.stdout.partition("Location: ")[2].splitlines()[0]
    assert ended(address).text == "0,75\n"


@pytest.mark.parametrize("statement", ASYNC + STATEMENTS)
def test_real_statements_give_what_they_give_at_once(shared_url: str, statement: str) -> None:
    """The bytes of sql_query, in both documented formats; rows have no order unless asked for."""
    for accept, between in (("application/json", "}, {"), ("*/*", "\n")):
        headers = {"Accept": accept}
        at_once = httpx.post(
            f"{shared_url}/db2whrest/v1/sql_query", content=statement, headers=headers, timeout=300
        )
        later = ended(begun(shared_url, statement, **headers))
        assert later.status_code == at_once.status_code
        assert later.headers["content-type"] == at_once.headers["content-type"]
        assert in_order(later.text, between) == in_order(at_once.text, between)


def in_order(text: str, between: str) -> list[str]:
    """The rows of an answer without their numbers, sorted."""
    return sorted(re.sub(r"^\d+,", "", row) for row in text.strip("[{}]").split(between))


def test_a_statement_that_is_wrong_fails_as_it_would_at_once(shared_url: str) -> None:
    """400 with the documented reason, and peek says it failed."""
    address = begun(shared_url, "select ownerzzz from metaocean")
    answer = ended(address)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.text.startswith("{\"reason\": \"('42S22', '[42S22] [IBM][CLI Driver]")
    peek = httpx.get(f"{address}/peek")
    assert (peek.status_code, peek.text) == (400, '{"status": "failed"}')


def test_a_failure_on_the_way_leaves_no_rows(shared_url: str) -> None:
    """Rows that were written before are not taken for a result."""
    statement = """select filename, 1000 / (90000 - n) from (select a.filename,
        row_number() over () as n from metaocean a, t_car b, t_car c, t_car d) x"""
    answer = ended(begun(shared_url, statement))
    assert answer.status_code == 400
    assert "SQL0801N" in answer.json()["reason"]


def test_a_task_that_runs(shared_home: Path) -> None:
    """303 with nothing to follow, also for clients that follow redirects; others are served."""
    with serving(shared_home) as (url, _):  # which ends with it
        address = begun(url, ENDLESS)
        for path in (address, f"{address}/peek"):
            answer = httpx.get(path, follow_redirects=True)
            assert (answer.status_code, answer.text) == (303, '{"status": "running"}')
            assert "location" not in answer.headers
        assert ended(begun(url, "select count(*) from metaocean")).text == "0,75\n"


@pytest.mark.parametrize("task", ["x", UNKNOWN, "..%2f..%2fx", "%00", "*", f"{{{UNKNOWN}}}"])
def test_no_such_task(shared_url: str, task: str) -> None:
    """404 in the documented form, but no control characters at all; an id is never a path."""
    for path in (task, f"{task}/peek"):
        answer = httpx.get(f"{shared_url}/db2whrest/v1/task_status/{path}")
        assert answer.status_code == (400 if task == "%00" else 404)
    assert httpx.get(f"{shared_url}/db2whrest/v1/task_status/x").json()["status"] == "error"


def test_workers_share_their_tasks(shared_url: str, shared_home: Path) -> None:
    """Another server of the home knows a task that runs here, and its result."""
    with serving(shared_home) as (other, _):
        running = begun(other, ENDLESS)  # it ends with that server
        done = begun(other, "select count(*) from metaocean")
        assert ended(done).status_code == 200
        assert httpx.get(running.replace(other, shared_url)).status_code == 303
        assert httpx.get(done.replace(other, shared_url)).text == "0,75\n"


def test_a_statement_that_takes_more_than_ten_seconds(catalogued: Path, tmp_path: Path) -> None:
    """sql_query answers 202 where no row is there yet; the result is what it would have been."""
    with (
        serving(copy_home(catalogued, tmp_path)) as (url, process),
        ThreadPoolExecutor(1) as threads,
    ):
        numbers = 16
        while True:  # until it takes long enough, however fast this machine is
            answering = threads.submit(
                httpx.post,
                f"{url}/db2whrest/v1/sql_query",
                content=SLOW.format(numbers=numbers),
                timeout=120,
            )
            wait_until(partial(runs_or_is_done, url, answering))
            if not answering.done():
                sleep_through(process, PATIENCE_S)
            answer = answering.result()
            assert answer.status_code in (200, 202), answer.text
            if answer.status_code == 202:
                break
            assert answer.text == f"0,{75**4 * numbers}\n"
            numbers = min(numbers * 2, 75)
        assert answer.text == '{"status": "work scheduled"}'
        done = ended(answer.headers["location"])
        assert (done.status_code, done.text) == (200, f"0,{75**4 * numbers}\n")
        assert done.headers["content-type"] == "text/csv; charset=utf-8"


def runs_or_is_done(url: str, answering: Future[httpx.Response]) -> bool:
    """Whether a server's only statement runs, or has been answered."""
    return answering.done() or counted(url) == (1, 0)


@pytest.mark.parametrize("others", [0, 1], ids=["it runs", "it waits its turn"])
def test_nobody_waits_for_a_task_whose_address_did_not_go_out(
    catalogued: Path, tmp_path: Path, others: int
) -> None:
    """A client that leaves while its 202 stands behind an answer that it does not read."""
    home = copy_home(catalogued, tmp_path)
    # Of two places a caller has one.
    limits = {"FRAMESIFT_WRITE_TIMEOUT_S": "300", "FRAMESIFT_STATEMENTS_AT_ONCE": "2"}
    with (
        serving(home, variables=limits) as (url, _),
        socket.socket() as other,
        socket.socket() as client,
    ):
        address = urlsplit(url)
        other.connect((address.hostname, address.port))
        body = json.dumps({"statement": ENDLESS})
        head = "POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        other.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode() * others)
        wait_until(lambda: counted(url) == (others, 0))
        # As little room on the way as there can be: the first answer has 500 kB.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        client.connect((address.hostname, address.port))
        client.sendall(
            b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
            b"POST /db2whrest/v1/sql_query HTTP/1.1\r\nHost: localhost\r\n"
            + f"Content-Length: {len(ENDLESS)}\r\n\r\n{ENDLESS}".encode()
        )
        tasks = home / "tasks"
        wait_until(lambda: tasks.exists() and list(tasks.iterdir()) != [])
        assert counted(url) == (1, others)
        catch_up(url)  # the 202 stands there
        client.close()
        wait_until(lambda: counted(url) == (others, 0))
        wait_until(lambda: list(tasks.iterdir()) == [])


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_leaves_no_task_running(shared_home: Path, how: signal.Signals) -> None:
    """Stopped or killed: the next server says that its tasks have failed, and keeps results."""
    with serving(shared_home) as (first, process):
        running, done = begun(first, ENDLESS), begun(first, "select count(*) from metaocean")
        assert ended(done).status_code == 200
        assert httpx.get(running).status_code == 303
        os.kill(process.pid, how)
        process.wait(120)
    with serving(shared_home) as (second, _):
        answer = ended(running.replace(first, second))
        assert answer.status_code == 500
        assert "send the request again" in answer.json()["reason"]
        peek = httpx.get(f"{running.replace(first, second)}/peek")
        assert (peek.status_code, peek.text) == (500, '{"status": "failed"}')
        assert httpx.get(done.replace(first, second)).text == "0,75\n"


def test_a_result_is_written_aside(tmp_path: Path) -> None:
    """With its owner from the beginning, and its body only when it is complete."""
    tasks = Tasks(tmp_path, FairQueue(4, 4))
    going = threading.Event()

    def work(output: Output, _: Cancellation) -> None:
        output.write(b"0,1\n")
        going.wait(120)

    task = tasks.start("anna", "text/csv", work)
    assert (tasks.files.view(task.id), tasks.files.running(task.id)) == ("anna", True)
    assert tasks.files.result(task.id) is None
    going.set()
    task.future.result(120)
    assert (tasks.files.view(task.id), tasks.files.running(task.id)) == ("anna", False)
    file = tasks.files.result(task.id)
    assert file is not None
    with file.body as body:
        assert (file.status, file.content_type, file.length) == (200, "text/csv", 4)
        assert body.read() == b"0,1\n"
    assert tasks.files.view(UNKNOWN) is None
    tasks.close()


def test_a_result_is_bounded(tmp_path: Path) -> None:
    """One that grows beyond its limit fails, and leaves only the reason on the disk."""
    tasks = Tasks(tmp_path, FairQueue(4, 4), Limits(result_bytes=1_000_000))

    def endless(output: Output, _: Cancellation) -> None:
        while True:
            output.write(b"x" * 1000)

    task = tasks.start("", "text/csv", endless)
    task.future.result(120)
    file = tasks.files.result(task.id)
    assert file is not None
    with file.body as body:
        assert file.status == 400
        assert b"more than 1,000,000 bytes" in body.read()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size < 1000
    tasks.close()


def test_a_full_disk_is_a_failure(tmp_path: Path) -> None:
    """The reason fits where the rows did not; here the system allows no longer files."""
    tasks = Tasks(tmp_path, FairQueue(4, 4))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def endless(output: Output, _: Cancellation) -> None:
        while True:
            output.write(b"x" * 999)

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        task = tasks.start("", "text/csv", endless)
        task.future.result(120)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    file = tasks.files.result(task.id)
    assert file is not None
    with file.body as body:
        assert file.status == 507
        assert "cannot be written: File too large" in json.loads(body.read())["reason"]
    tasks.close()


def test_old_results_and_too_many_bytes_go(tmp_path: Path) -> None:
    """The oldest first; what an ended process left becomes a failure."""
    files = TaskFiles(tmp_path, Limits(kept_bytes=2500, kept_s=1000))
    ids = []
    for age in (2000, 30, 20, 10):
        output = files.new("", "text/csv")
        output.write(b"x" * 1000)
        output.finish()
        past = time.time() - age
        os.utime(tmp_path / f"{output.id}.result", (past, past))
        ids.append(output.id)
    lost = str(uuid.uuid4())
    (tmp_path / f"{lost}.part").write_bytes(b"half a li")
    files.sweep()
    names = {path.stem for path in tmp_path.glob("*.result")}
    assert names == {*ids[2:], lost}
    assert list(tmp_path.glob("*.part")) == []
    TaskFiles(tmp_path, Limits(kept=1)).sweep()
    assert {path.stem for path in tmp_path.iterdir()} == {lost}


def test_an_unexpected_error_is_a_failure(tmp_path: Path) -> None:
    """The task ends, and its server goes on."""
    tasks = Tasks(tmp_path, FairQueue(4, 4))

    def wrong(*_: object) -> None:
        raise ZeroDivisionError

    task = tasks.start("", "text/csv", wrong)
    task.future.result(120)
    file = tasks.files.result(task.id)
    assert file is not None
    with file.body as body:
        assert (file.status, json.loads(body.read())["status"]) == (500, "error")
    tasks.close()


def test_tasks_wait_their_turn_and_no_more_than_may(tmp_path: Path) -> None:
    """At most so many at once and so many waiting; stopped, each of them ends as a failure."""
    tasks = Tasks(tmp_path, FairQueue(1, 4))

    def patient(_: object, cancellation: Cancellation) -> None:
        while not cancellation.cancelled:
            time.sleep(0.01)
        raise InvalidInput("cancelled")

    started: list[Task] = [tasks.start("", "text/csv", patient) for _ in range(3)]
    with pytest.raises(ServerBusy):
        tasks.start("", "text/csv", patient)
    assert all(tasks.files.running(task.id) for task in started)
    closing = threading.Thread(target=tasks.close)
    closing.start()
    closing.join(120)
    assert not closing.is_alive()
    for task in started:
        assert not tasks.files.running(task.id)
        file = tasks.files.result(task.id)
        assert file is not None
        file.body.close()
        assert file.status == 500


def test_an_abandoned_task_leaves_nothing(tmp_path: Path) -> None:
    """Of a client that went away."""
    tasks = Tasks(tmp_path, FairQueue(4, 4))
    waiting = threading.Event()

    def until(_: object, cancellation: Cancellation) -> None:
        waiting.wait(120)

    task = tasks.start("", "text/csv", until)
    task.abandon()
    waiting.set()
    task.future.result(120)
    assert list(tmp_path.iterdir()) == []
    tasks.close()


@pytest.mark.parametrize(
    "text",
    ["", "../x", UNKNOWN.replace("-", ""), UNKNOWN.upper(), f"urn:uuid:{UNKNOWN}", f"{UNKNOWN}\n"],
)
def test_what_an_id_is(text: str) -> None:
    """Exactly a UUID in its usual form: every other spelling could be another file's name."""
    assert is_task(UNKNOWN)
    assert not is_task(text)
