"""Traces: a request's spans, and those of the job that it orders, in one trace at a collector."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from catalog.accounts import users
from catalog.records.store import RecordStore
from tests.api.collector import Collector, collecting
from tests.api.servers import framesift, serving, wait_until
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make

PASSWORD = "a sentence is a good one"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OTHER = "5bf92f3577b34da6a3ce929d0e0e4736"
CLIENTS = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
NEVER = {"connection": "close"}


def asking_for(collector: Collector, **more: str) -> dict[str, str]:
    """Variables that send spans there soon."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        **more,
    }


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector of one test."""
    with collecting() as one:
        yield one


@pytest.mark.wide
def test_a_requests_statements_and_its_job_are_in_the_clients_trace(
    catalogued: Path, tmp_path: Path, collector: Collector
) -> None:
    """Client -> request -> statement, client -> request -> job, of a server of two processes.

    Spans name roles, and no text of a question.
    """
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    make(workspace, "all")
    workspace.close()
    records = RecordStore(home / "records" / "records.sqlite")
    users.add(records, "anna", ["admin"], PASSWORD)
    variables = asking_for(
        collector,
        OTEL_EXPORTER_OTLP_HEADERS="x-team=maps%20and%20more",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
        FRAMESIFT_CACHE=str(tmp_path / "cache"),
    )
    arguments = ("--workers", "2", "--log-format", "json", "--log-level", "info")
    with serving(home, *arguments, variables=variables, authenticates=True) as (url, process):
        login = httpx.get(f"{url}/auth/v1/token", auth=("anna", PASSWORD))
        token = login.headers["x-auth-token"]
        headers = {"Authorization": f"Bearer {token}", **CLIENTS}
        sql = "select count(*) from metaocean where filename = 'hush'"
        answer = httpx.get(
            f"{url}/db2whrest/v1/sql_query", params=sql, headers=headers, timeout=300
        )
        assert answer.status_code == 200, answer.text
        sent = httpx.post(
            f"{url}/v1/stagings",
            json={"dataset": "all@1"},
            headers={**headers, "traceparent": f"00-{OTHER}-{PARENT}-01"},
            timeout=300,
        )
        assert sent.status_code == 202, sent.text
        job = sent.json()["name"]
        wait_until(lambda: bool(collector.named("job attempt", OTHER)))

        # Of both processes: which answers is the kernel's choice.
        def asked_both() -> bool:
            httpx.get(f"{url}/v1/info", headers=headers | NEVER, timeout=300)
            return len({s.resource["process.pid"] for s in collector.named("GET /v1/info")}) == 2

        wait_until(asked_both)
        httpx.get(f"{url}/healthz")
        process.terminate()
        _, err = process.communicate(timeout=300)
    (request,) = collector.named("GET /db2whrest/v1/sql_query", TRACE)
    assert (request.parent, request.kind, request.ok) == (PARENT, 2, True)
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["user.roles"] == ["admin"]
    assert request.resource["service.name"] == "framesift"
    assert request.resource["deployment.environment.name"] == "test"
    statements = [s for s in collector.named("statement", TRACE) if s.parent == request.id]
    assert statements
    assert all(0 <= s.attributes["framesift.queue_wait_s"] < 300 for s in statements)
    assert all(0 < s.seconds <= request.seconds for s in statements)

    (ordering,) = collector.named("POST /v1/stagings", OTHER)
    (order,) = collector.named("job order", OTHER)
    assert (order.parent, order.attributes["framesift.job"]) == (ordering.id, job)
    of_job = {s.name: s for s in collector.spans if s.trace == OTHER and s.name != ordering.name}
    assert {"job order", "job submit", "job attempt", "job step", "staging"} <= of_job.keys()
    assert of_job["job attempt"].parent == order.id
    assert of_job["job attempt"].attributes["framesift.job.state"] == "done"
    assert of_job["job submit"].parent == order.id
    assert of_job["job step"].parent == order.id
    assert of_job["job step"].resource["process.pid"] not in {
        ordering.resource["process.pid"], os.getpid(),
    }  # fmt: skip
    assert of_job["staging"].parent == of_job["job step"].id
    assert of_job["staging"].attributes["framesift.dataset"] == "all@1"

    assert {each["x-team"] for each in collector.headers} == {"maps and more"}
    assert not [s for s in collector.spans if "healthz" in s.name]
    text = repr(collector.spans)
    assert "hush" not in text
    assert token not in text
    assert PASSWORD not in text
    lines = [json.loads(line) for line in err.splitlines()]
    logged = [line for line in lines if line.get("route") == "/db2whrest/v1/sql_query"]
    assert [line["trace_id"] for line in logged] == [TRACE]
    others = [line for line in lines if line.get("route") == "/healthz"]
    assert len(others[0]["trace_id"]) == 32
    assert others[0]["trace_id"] != TRACE


@pytest.mark.wide
def test_a_failed_request_says_so_and_a_collector_that_is_busy_is_asked_again(
    home: Path, collector: Collector
) -> None:
    """A span of a refused request has the status and the error's name, a 503 loses no span."""
    collector.refusals[:] = [503, 503]
    with serving(home, variables=asking_for(collector, OTEL_SERVICE_NAME="frames")) as (url, _):
        httpx.get(f"{url}/v1/datasets/nobody", headers=CLIENTS)
        httpx.post(
            f"{url}/v1/sql", json={"statement": "select 1/0 from metaocean"}, headers=CLIENTS
        )
        (missing,) = collector.wait_for("GET /v1/datasets/{name}")
        (failed,) = collector.wait_for("POST /v1/sql")
    assert (missing.attributes["http.response.status_code"], missing.ok) == (404, True)
    assert missing.resource["service.name"] == "frames"
    assert failed.attributes["http.response.status_code"] == 400
    assert not collector.refusals
    statements = collector.named("statement", TRACE)
    assert any(not s.ok and s.parent == failed.id for s in statements)


def test_a_command_traces_its_order_by_the_variable(
    home: Path, collector: Collector, tmp_path: Path
) -> None:
    """TRACEPARENT of a script is the parent of what a command does, and sends at its end."""
    workspace = open_home(home)
    make(workspace, "all")
    workspace.close()
    variables = asking_for(
        collector,
        OTEL_BSP_SCHEDULE_DELAY="60000",
        FRAMESIFT_CACHE=str(tmp_path / "cache"),
        TRACEPARENT=CLIENTS["traceparent"],
    )
    done = framesift(home, "stage", "all", variables=variables)
    assert done.returncode == 0, done.stderr
    (staging,) = collector.named("staging")
    assert (staging.trace, staging.parent) == (TRACE, PARENT)
    assert staging.attributes["framesift.files"] > 0


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin: expected otlp or none"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "expected http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "10s"}, "expected milliseconds"),
        ({"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem"}, "/nowhere.pem"),
        ({"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "one of none, gzip"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "expected a URL"),
    ],
)
def test_what_cannot_be_is_said_once_and_ends_nothing(variables: dict[str, str], says: str) -> None:
    """A line names the variable; the process goes on without traces."""
    program = (
        "from catalog.traces.spans import begin, span\n"
        "with span('a') as one, span('b'):\n"
        "    one.set({'x': 1})\n"
        "    begin('c', {}).end()\n"
        "print('on it goes')\n"
    )
    out, err = ran(program, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"} | variables)
    assert out == "on it goes\n"
    assert says in err
    assert err.count("no traces: ") == 1, err


def test_without_the_extra_a_line_says_how_to_install_it(tmp_path: Path) -> None:
    """The variables ask, the packages are not there: one line, and the process goes on."""
    program = (
        "import sys\n"
        "sys.modules['opentelemetry.sdk'] = None\n"
        "from catalog.traces.spans import span\n"
        "with span('a'), span('b'):\n"
        "    print('on it goes')\n"
    )
    out, err = ran(program, {"OTEL_TRACES_EXPORTER": "otlp"})
    assert out == "on it goes\n"
    assert "opentelemetry.sdk" in err
    assert "--extra traces" in err
    assert err.count("no traces: ") == 1, err


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        {"OTEL_SDK_DISABLED": "TRUE", "OTEL_TRACES_EXPORTER": "otlp"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " ", "OTEL_SERVICE_NAME": "frames"},
    ],
)
def test_nothing_is_imported_while_traces_are_off(variables: dict[str, str]) -> None:
    """Off by default, and by each variable that turns them off."""
    program = (
        "import sys\n"
        "from catalog.traces.spans import begin, begin_traces, end_traces, span, trace_id\n"
        "begin_traces()\n"
        "with span('a', {'x': 1}) as one:\n"
        "    one.name('b')\n"
        "    one.fail('Wrong')\n"
        "    begin('c', {}).end()\n"
        "    assert trace_id() == ''\n"
        "end_traces()\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'httpx'))])\n"
    )
    assert ran(program, variables) == ("[]\n", "")


def ran(program: str, variables: dict[str, str]) -> tuple[str, str]:
    """Output and errors of a program in a process with these variables of OpenTelemetry."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept | variables, capture_output=True, text=True,
        timeout=300, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
