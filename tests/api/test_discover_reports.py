"""Reports, buckets and summary tables as Spectrum Discover's clients ask for them."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.servers import serving
from tests.needed_programs import needs

AGES: dict[str, Any] = {
    "name": "Age Report Summary. 0-30 Days",
    "query": "",
    "filters": [{"key": "mtime", "operator": ">", "value": "NOW() - 30000 DAYS"}],
    "group_by": ["datasource"],
    "sort_by": [{"datasource": "asc"}],
}
ENDLESS = "size > (select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9)) + ")"
SIZE_RANGE = (
    r'[{"data": "{\"type\": \"int\", \"source_field\": \"size\", \"ranges\": {'
    r"\"extra small\": [0, 4096], \"small\": [4096, 1048576], \"medium\": [1048576, 1073741824], "
    r"\"large\": [1073741824, 1099511627776], \"extra large\": [1099511627776, \"INFINITY\"]}, "
    r'\"name\": \"SizeRange\"}", "name": "SizeRange"}]'
)


@pytest.fixture(scope="module")
def url(shared_url: str) -> str:
    """The address of its server."""
    return f"{shared_url}/db2whrest/v1"


@pytest.fixture
def report(url: str) -> Iterator[dict[str, Any]]:
    """A report that has run."""
    answer = httpx.post(f"{url}/report", content=json.dumps(AGES), timeout=300)
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    yield report
    httpx.delete(f"{url}/report/{report['report']}")


def test_a_report_as_documented(url: str, report: dict[str, Any]) -> None:
    """Fields and their order, the question as a string of JSON, the size of the file."""
    answer = httpx.get(f"{url}/report/{report['report']}")
    assert answer.json() == report
    body = (
        r"""{\"filters\": [{\"key\": \"mtime\", \"operator\": \">\", \"value\": """
        r"""\"NOW() - 30000 DAYS\"}], \"sort_by\": [{\"datasource\": \"asc\"}], \"name\": """
        r"""\"Age Report Summary. 0-30 Days\", \"query\": \"\", \"group_by\": [\"datasource\"]}"""
    )
    began = report["lastrun"]
    timestamp = began[:19].replace("T", "_")
    download = httpx.get(f"{url}/report/{report['report']}/download")
    assert answer.text == (
        f'{{"name": "Age Report Summary. 0-30 Days", "query": "{body}", '
        f'"size": {len(download.content)}, "report": "{report["report"]}", '
        f'"duration": {report["duration"]}, '
        f'"filename": "Age Report Summary. 0-30 Days-{timestamp}.csv", '
        f'"lastrun": "{began}", "status": "complete", "schedule": null}}'
    )
    assert len(began) == len("2018-11-01T18:58:14.000Z")
    assert httpx.get(f"{url}/report").json() == [report]


def test_a_summary_is_downloaded_as_documented(url: str, report: dict[str, Any]) -> None:
    """Header without the row's number, the count as 346.0, nothing quoted without need."""
    answer = httpx.get(f"{url}/report/{report['report']}/download")
    statement = "select count(*), sum(size) from metaocean"
    count, size = httpx.post(f"{url}/sql_query", content=statement).text.strip().split(",")[1:]
    assert answer.text == f"datasource,count,sum\na2d2,{count}.0,{size}\n"
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment; filename")


def test_an_empty_summary_has_its_header(url: str) -> None:
    """21 bytes, the size that the documentation shows for one."""
    request = {**AGES, "query": "owner='nobody'"}
    report = httpx.post(f"{url}/report", content=json.dumps(request), timeout=300).json()
    assert report["size"] == 21
    assert httpx.delete(f"{url}/report/{report['report']}").json() == {"status": "success"}


def test_records_have_all_columns(url: str) -> None:
    """Of a search without groups, with at most so many rows."""
    request = {"name": "a/b\r\nX: y", "query": "car > 0", "limit": 3}
    report = httpx.post(f"{url}/report", content=json.dumps(request), timeout=300).json()
    answer = httpx.get(f"{url}/report/{report['report']}/download")
    assert "x" not in answer.headers
    header, *lines = answer.text.splitlines()
    assert header.startswith("path,filename,filetype,datasource,owner,group,revision,site,")
    assert len(lines) == 3
    assert all(line.count(",") == header.count(",") for line in lines)
    assert '"limit\\": 3' in json.dumps(report["query"])
    httpx.delete(f"{url}/report/{report['report']}")


def test_a_report_runs_again_and_goes(url: str, report: dict[str, Any]) -> None:
    """PUT replaces the rows; after DELETE nothing of it is left."""
    address = f"{url}/report/{report['report']}"
    again = httpx.put(address, timeout=300).json()
    assert again["lastrun"] > report["lastrun"]
    either = {"lastrun": "", "filename": "", "duration": 0}
    assert again | either == report | either
    assert httpx.delete(address).json() == {"status": "success"}
    for method, path in (("GET", ""), ("GET", "/download"), ("PUT", ""), ("DELETE", "")):
        answer = httpx.request(method, address + path)
        assert answer.status_code == 404
        assert answer.json()["status"] == "error"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"name": "x", "query": "ownerzzz=1"}, "SQL0206N"),
        ({"name": "x", "query": "int(filename)=1"}, "SQL0420N"),
        ({"name": ""}, "name: "),
        ({"name": "x" * 300}, "name: "),
        ({"name": "x", "filters": [{"key": "a"}]}, "filters.0.operator"),
    ],
)
def test_what_cannot_run_is_not_kept(url: str, body: Any, reason: str) -> None:
    """400 with the documented reason."""
    answer = httpx.post(f"{url}/report", content=json.dumps(body), timeout=300)
    assert answer.status_code == 400
    assert reason in answer.json()["reason"]
    assert httpx.get(f"{url}/report").json() == []


def test_a_report_whose_server_was_killed_has_failed(shared_home: Path) -> None:
    """While it runs a second run is refused; afterwards it has failed, and says so."""
    with serving(shared_home) as (base, process):
        reports = f"{base}/db2whrest/v1/report"
        said: list[dict[str, Any]] = []

        def kill_it() -> None:
            while not (reports_json := httpx.get(reports).json()):
                time.sleep(0.1)
            said.append(httpx.put(f"{reports}/{reports_json[0]['report']}").json())
            os.kill(process.pid, signal.SIGKILL)

        killing = threading.Thread(target=kill_it)
        killing.start()
        with pytest.raises(httpx.HTTPError):
            httpx.post(reports, content=json.dumps({"query": ENDLESS}))
        killing.join(120)
        assert "is running already" in said[0]["reason"]
    with serving(shared_home) as (base, _):
        reports = f"{base}/db2whrest/v1/report"
        (report,) = httpx.get(reports).json()
        assert report["status"] == "failed"
        assert httpx.delete(f"{reports}/{report['report']}").status_code == 200


def test_the_buckets(url: str) -> None:
    """The documented bytes; the other two in the same shape; 404 for others."""
    answer = httpx.get(f"{url}/buckets/SizeRange", headers={"Accept": "application/json"})
    assert answer.text == SIZE_RANGE
    for name, field in (("TimeSinceAccess", "atime"), ("FileGroup", "filetype")):
        (bucket,) = httpx.get(f"{url}/buckets/{name}").json()
        data = json.loads(bucket["data"])
        assert (bucket["name"], data["name"], data["source_field"]) == (name, name, field)
    answer = httpx.get(f"{url}/buckets/nope")
    assert (answer.status_code, answer.json()["status"]) == (404, "error")


def test_every_size_is_in_one_range(url: str) -> None:
    """The bucket that searches count by is the one that is shown."""
    (bucket,) = httpx.get(f"{url}/buckets/SizeRange").json()
    ranges = json.loads(bucket["data"])["ranges"]
    answer = httpx.post(f"{url}/search", content='{"group_by": ["SizeRange"]}', timeout=300).json()
    for row in json.loads(answer["rows"]):
        low, high = ranges[row["sizerange"]]
        statement = f"select count(*) from metaocean where size >= {low}"
        statement += "" if high == "INFINITY" else f" and size < {high}"
        count = httpx.post(f"{url}/sql_query", content=statement).text
        assert count == f"0,{row['count']}\n"


def test_the_summary_tables(url: str) -> None:
    """What the published aliases send, and what they see after it."""
    needs("curl")
    tables = httpx.get(f"{url}/summary_tables").json()
    assert list(tables) == ["duplicates", "mrcapacity"]
    assert list(tables["mrcapacity"]) == [
        "enabled", "last_duration", "last_updated_time", "schedule", "update_running",
        "update_start_time",
    ]  # fmt: skip
    for table, setting in (("duplicates", "false"), ("duplicates", "true")):
        run = subprocess.run(
            ["curl", "-s", "-k", "-H", "Authorization: Bearer t", "-H",
             "Content-type: application/json", f"{url}/summary_tables/{table}", "-X", "PUT",
             f'-d{{"enabled": {setting}}}'],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stdout == '{"status": "success"}'
        table_json = httpx.get(f"{url}/summary_tables/{table}").json()
        assert table_json["enabled"] is (setting == "true")
    change = '{"enabled": true, "schedule": {"hour": 0, "minute": "14"}}'
    httpx.put(f"{url}/summary_tables/mrcapacity", content=change)
    bodies = httpx.get(f"{url}/summary_tables").json()
    assert bodies["mrcapacity"]["schedule"] == {"hour": 0, "minute": "14"}
    assert bodies["duplicates"]["schedule"] == {"minute": "*/5"}
    answer = httpx.put(f"{url}/summary_tables/mrcapacity/start")
    assert answer.text == '{"status": "success"}'


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "nope", "", 404),
        ("PUT", "nope", "{}", 404),
        ("PUT", "nope/start", "", 404),
        ("PUT", "duplicates", "", 400),
        ("PUT", "duplicates", '{"enabled": 7}', 400),
        ("PUT", "duplicates", '{"schedule": {"minute": [1]}}', 400),
        ("PUT", "duplicates", '{"schedule": {"__class__": "1"}}', 400),
        ("PUT", "duplicates", '{"other": 1}', 400),
    ],
)
def test_summary_tables_refuse_the_rest(
    url: str, method: str, path: str, body: str, status: int
) -> None:
    """In the documented form."""
    answer = httpx.request(method, f"{url}/summary_tables/{path}", content=body)
    assert (answer.status_code, answer.json()["status"]) == (status, "error")
