"""Search as the clients of Spectrum Discover send it, against a real server."""

import csv
import json
import socket
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest

from api.http.sql_response import PATIENCE_S
from catalog.accounts import users
from catalog.lake.schema import VIEW_COLUMNS
from catalog.tags.tags import add_tag
from query.discover.records import escaped_records
from query.discover.search import FACETS
from tests.api.servers import counted, serving, sleep_through, wait_until
from tests.needed_programs import needs
from tests.pipeline.homes import SAMPLE, add_source, copy_home, open_home
from tests.query.catalogs import DrawnFrame, drawn_frames, listed_files

REAL: list[dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "query" / "real_statements.json").read_text()
)
BODIES = [example["sql"] for example in REAL if example["kind"] == "where"]
PASSWORD = "no-blank-in-it:or-the-script-fails"
CARS_AHEAD = "front=1 and center=1 and car>=1000 and car<=900000"
ENDLESS = "size > (select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9)) + ")"
LIMIT_S = 20

Served = tuple[str, "subprocess.Popen[str]"]
"""URL and process of a server."""

UNKNOWN = (
    r"""('42S22', '[42S22] [IBM][CLI Driver][DB2/LINUXX8664] SQL0206N  "OWNERZZZ" is not valid """
    r"""in the context where it is used.  SQLSTATE=42703\n')"""
)
"""The documentation's own example."""

SCRIPT = r"""
set -e
TOKEN=$(curl -s -k -u $4:$5 $1/auth/v1/token -I |awk '/X-Auth-Token/ {print $2}')
QUERY_JSON='{"query": "'$2'", "filters": [], "group_by": [], "sort_by": [], "limit": 100000}'
{
  echo $TOKEN
  curl -s -k -H "Authorization: Bearer ${TOKEN}" $1/db2whrest/v1/search -X POST \
    -d "${QUERY_JSON}" -H 'Content-Type: application/json'
} > $3/res
cut -d'{' --output-delimiter=$'\n' -f1- $3/res > $3/lines
i=0
while IFS= read -r p
do
  ((i <= 2 )) && ((i=i+1)) && continue
  ( awk -F, '{print $1 "," $2 "," $4 "," $9 "," $17}' <<< $p ) >> $3/fields
done < $3/lines
names='s/path://g; s/filename://g; s/datasource://g; s/platform://g; s/state://g;'
( sed 's/\\//g; s|["'\'']||g; '"$names" $3/fields ) > $3/afm
"""
"""What the scripts of the proof of concept ask, and do with the reply."""


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[Served]:
    """URL and process of a server that gives up after LIMIT_S, with a tag of a hyphenated name."""
    workspace = open_home(shared_home)
    add_tag(workspace.whole_catalog, "u2-source", "text")
    workspace.close()
    with serving(shared_home, variables={"FRAMESIFT_QUERY_TIMEOUT_S": str(LIMIT_S)}) as served:
        yield served


def post(served: Served, body: Any, **headers: str) -> httpx.Response:
    """A search as a client sends it."""
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    url = f"{served[0]}/db2whrest/v1/search"
    return httpx.post(url, content=content, headers=headers, timeout=120)


def rows(served: Served, **search: Any) -> list[dict[str, Any]]:
    """The rows of a search, parsed twice as clients do."""
    answer = post(served, search)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = json.loads(answer.json()["rows"])
    return rows


def named(entries: list[dict[str, Any]]) -> set[str]:
    """The files of some rows."""
    return {row["filename"] for row in entries}


def cars_ahead(frames: list[DrawnFrame]) -> set[str]:
    """The files that CARS_AHEAD is true for."""
    return {
        f.key
        for f in frames
        if f.tags["front"] and f.tags["center"] and 1000 <= f.tags["car"] <= 900_000
    }


@pytest.fixture(scope="module")
def guarded(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server as the clients expect it: HTTPS, a certificate of its own, a password."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("guarded"))
    users.add(open_home(home).records, "sdadmin", ["dataadmin"], PASSWORD)
    with serving(home, "--tls-self-signed", authenticates=True) as (url, _):
        yield url


def test_the_scripts_of_the_proof_of_concept(guarded: str, tmp_path: Path) -> None:
    """curl, cut, awk and sed as published make the list of files to prefetch of the reply."""
    needs("curl", "awk")
    command = [guarded, CARS_AHEAD, str(tmp_path), "sdadmin", PASSWORD]
    subprocess.run(["bash", "-c", SCRIPT, "search", *command], check=True, capture_output=True)
    lines = (tmp_path / "afm").read_text().splitlines()
    expected = cars_ahead(drawn_frames())
    assert expected
    # The last line is made of what follows the rows, as with the product.
    assert {line for line in lines if line.startswith("a2d2/")} == {
        f"a2d2/,{key},a2d2,IBM COS,resdnt" for key in expected
    }
    assert len(lines) == len(expected) + 1


def test_the_python_class_of_the_proof_of_concept(guarded: str) -> None:
    """Its two calls of requests, and the paths that it makes of the rows."""
    requests = pytest.importorskip("requests")
    with warnings.catch_warnings(action="ignore"):  # the certificate, as the class does
        result = requests.get(
            guarded + "/auth/v1/token", auth=("sdadmin", PASSWORD), verify=False, timeout=300
        )
        assert result.status_code == 200
        auth = "Bearer " + result.headers["X-Auth-Token"]
        result = requests.post(
            guarded + "/db2whrest/v1/search",
            headers={"Authorization": auth, "Content-type": "application/json"},
            json={"query": " and ".join(CARS_AHEAD.split(" and ")), "filters": [], "group_by": [],
                  "sort_by": [], "limit": 100000},
            verify=False, timeout=300,
        )  # fmt: skip
    files: dict[str, list[str]] = {}
    for entry in json.loads(result.json()["rows"]):
        assert entry["path"] == "a2d2/"
        files.setdefault(entry["platform"], []).append("/gpfs/cos/" + entry["filename"])
    assert set(files) == {"IBM COS"}
    assert set(files["IBM COS"]) == {f"/gpfs/cos/{key}" for key in cars_ahead(drawn_frames())}


def test_the_reply_byte_by_byte(served: Served) -> None:
    """One line; rows first, as a string of pandas' JSON; then what is known of the search."""
    answer = post(served, {"query": "filename like '%class_list.json'", "limit": 5})
    assert answer.headers["content-type"] == "application/json"
    text = answer.text
    assert text.startswith(
        r'{"rows": "[{\"path\":\"a2d2\\/\",'
        r"\"filename\":\"camera_lidar_semantic\\/class_list.json\",\"filetype\":\"json\","
        r"\"datasource\":\"a2d2\",\"owner\":"
    )
    assert r"\"recordversion\":\"\",\"state\":\"resdnt\",\"migloc\":null" in text
    assert r"\"front\":null" in text  # no frame, so no tags
    assert "\n" not in text
    whole = json.loads(text)
    assert list(whole) == ["rows", "facet_tree", "table", "query_time_secs", "count", "doc_count"]
    seconds = whole["query_time_secs"]
    assert text.endswith(
        '}]", "facet_tree": {}, "table": "metaocean_view", '
        f'"query_time_secs": {seconds}, "count": 1, "doc_count": 1}}'
    )
    assert 0 < seconds < 60
    (row,) = json.loads(whole["rows"])
    assert list(row)[: len(VIEW_COLUMNS)] == list(VIEW_COLUMNS)
    assert isinstance(row["uid"], float)
    assert f'"uid":{row["uid"]:.1f},"gid":{row["gid"]:.1f},' in whole["rows"]
    assert isinstance(row["size"], int)
    assert datetime.fromisoformat(row["mtime"]).year > 2000
    assert len(row["mtime"]) == len("2020-09-25T20:27:37.000Z")


def test_a_record_as_the_proof_of_concept_printed_it() -> None:
    """Times, floats, nulls and slashes of the published record, and a tag's carriage return."""
    batch = pa.RecordBatch.from_pylist(
        [{
            "path": "/data2/nfs/cam_front_center/", "inode": 1084462414, "uid": 0, "gid": 0,
            "recordversion": "", "mtime": datetime(2020, 9, 25, 20, 27, 37),  # noqa: DTZ001
            "ctime": datetime(2020, 10, 6, 15, 15, 24, 31_000),  # noqa: DTZ001
            "size": 3518962,
            "collection": None, "car": "278681", "rain_dirt": "0\r",
        }]
    )  # fmt: skip
    assert escaped_records(batch) == (
        rb"{\"path\":\"\\/data2\\/nfs\\/cam_front_center\\/\",\"inode\":1084462414,"
        rb"\"uid\":0.0,\"gid\":0.0,\"recordversion\":\"\",\"mtime\":\"2020-09-25T20:27:37.000Z\","
        rb"\"ctime\":\"2020-10-06T15:15:24.031Z\",\"size\":3518962,\"collection\":null,"
        rb"\"car\":\"278681\",\"rain_dirt\":\"0\\r\"}"
    )


@pytest.mark.parametrize("text", ['"', "\\", "\\/", "ä€😀", "\x00\x1f\x7f", "'{},:", ""])
def test_every_text_comes_back(text: str) -> None:
    """Escaped twice, parsed twice, beside one that needs no escape."""
    batch = pa.RecordBatch.from_pylist([{"a/b": text, "c": 1}, {"a/b": "x/y", "c": None}])
    line = b'{"rows": "[' + escaped_records(batch) + b']"}'
    assert line.isascii()
    assert json.loads(json.loads(line)["rows"]) == batch.to_pylist()


def test_tags_are_text(served: Served) -> None:
    """Every class and position of every frame, as the files themselves say; the rest is null."""
    by_filename = {row["filename"]: row for row in rows(served)}
    assert set(by_filename) == set(listed_files())
    for frame in drawn_frames():
        row = by_filename[frame.key]
        assert {tag: row[tag] for tag in frame.tags} == {t: str(n) for t, n in frame.tags.items()}


@pytest.mark.parametrize("body", BODIES)
def test_every_real_condition(served: Served, body: str) -> None:
    """What users wrote is answered, with the same rows as the statement of the same condition."""
    answer_body = post(served, {"query": body, "filters": [], "group_by": [], "sort_by": []}).json()
    statement = f"select filename from metaocean_view where {body}"
    answer = httpx.post(f"{served[0]}/db2whrest/v1/sql_query", content=statement, timeout=300)
    lines = csv.reader(answer.text.splitlines())
    assert sorted(row["filename"] for row in json.loads(answer_body["rows"])) == sorted(
        line[1] for line in lines
    )


def test_labels_in_a_range(served: Served) -> None:
    """Text against numbers, the question of the proof of concept."""
    assert named(rows(served, query=CARS_AHEAD)) == cars_ahead(drawn_frames())


@pytest.mark.parametrize(
    ("key", "operator", "value", "count"),
    [
        ("platform", "=", "IBM COS", 75),
        ("PLATFORM", "<>", "IBM COS", 0),
        ("Filetype", "in", ["png", "json"], 75),
        ("filetype", "IN", "png", 48),
        ("filename", "like", "%_camera_%.png", 24),
        ("front", "=", 1, None),
        ("front", "=", "1", None),
        ("car", ">=", 1000, None),
        ("car", "<", 1000.5, None),
        ("group", "is", "not null", 75),
        ("car", "is", None, 51),
        ("car", "is", "NULL", 51),
        ("mtime", ">", "2000-01-01", 75),
        ("mtime", ">", "NOW() - 30000 DAYS", 75),
        ("mtime", ">", "current timestamp", 0),
        ("size", ">", -1, 75),
        ("filegroup", "=", "images", 48),
        ("owner", "=", "' or '1'='1", 0),
        ("owner", "=", "\\' or 1=1 --", 0),
    ],
)
def test_filters(
    served: Served,
    key: str,
    operator: str,
    value: Any,
    count: int | None,
) -> None:
    """Each documented operator, names in any case, values never read as SQL."""
    expected = count
    if expected is None:
        number = float(value)
        tests = {"=": float.__eq__, ">=": float.__ge__, "<": float.__lt__}
        holds = tests[operator]
        expected = sum(holds(float(f.tags[key]), number) for f in drawn_frames())
    matches = rows(served, filters=[{"key": key, "operator": operator, "value": value}])
    assert len(matches) == expected


def test_filters_and_the_condition_hold_together(
    served: Served,
) -> None:
    """An OR in the condition stays inside of it, and a comment at its end ends there."""
    only_json = [{"key": "filetype", "operator": "=", "value": "json"}]
    assert len(rows(served, query="1=1 or 1=1", filters=only_json)) == 27
    assert len(rows(served, query="1=1 or 1=1 -- all", filters=only_json)) == 27


def test_order_and_limit(served: Served) -> None:
    """sort_by by several fields; count is of the rows, doc_count of all that were found."""
    answer = post(
        served,
        {
            "query": "int(car) >= 0",
            "sort_by": [{"front": "asc"}, {"Filename": "DESC"}],
            "limit": 7,
        },
    ).json()
    assert (answer["count"], answer["doc_count"]) == (7, 24)
    expected = sorted(drawn_frames(), key=lambda frame: frame.key, reverse=True)
    expected.sort(key=lambda frame: frame.tags["front"])
    assert [row["filename"] for row in json.loads(answer["rows"])] == [f.key for f in expected[:7]]


def test_groups_as_a_published_client_reads_them(
    served: Served,
) -> None:
    """Field names in any case, answers in lower case; facets as strings of JSON; totals add up."""
    request = """{
       "query": "platform='IBM COS'",
       "filters": [
       ],
       "group_by": ["Site","Owner","Datasource","Filetype"],
       "sort_by": [{"Site": "asc"},{"Count": "desc"}],
       "limit": 100000
    }"""
    data = post(served, request).json()
    files = rows(served)
    groups = json.loads(data["rows"])
    assert [list(row) for row in groups] == 2 * [
        ["site", "owner", "datasource", "filetype", "count", "sum", "sumconsumed"]
    ]
    for row in groups:
        of_group = [f for f in files if f["filetype"] == row["filetype"]]
        assert int(row["count"]) == len(of_group)
        assert int(row["sum"]) == sum(f["size"] for f in of_group)
        assert int(row["sumconsumed"]) == sum(f["sizeconsumed"] for f in of_group)
    assert [row["filetype"] for row in groups] == ["png", "json"]
    assert list(data["facet_tree"]) == [field.upper() for field in FACETS]
    assert json.loads(data["facet_tree"]["OWNER"]) == [
        {"owner": owner, "count": n} for owner, n in Counter(f["owner"] for f in files).items()
    ]
    assert {f["filegroup"]: f["count"] for f in json.loads(data["facet_tree"]["FILEGROUP"])} == {
        "images": 48, "data": 27,
    }  # fmt: skip
    assert (data["count"], data["doc_count"]) == (2, len(files))


def test_groups_by_a_tag(served: Served) -> None:
    """What files are not frames of has no value."""
    expected: dict[str | None, int] = dict(
        Counter(str(frame.tags["front"]) for frame in drawn_frames())
    )
    groups = rows(served, group_by=["front"])
    assert {row["front"]: row["count"] for row in groups} == expected | {None: 51}


@pytest.mark.wide
def test_duplicates(served: Served, catalogued: Path, tmp_path: Path) -> None:
    """Grouped by filename, only files of which there is another of the same name and size."""
    document = post(served, {"group_by": ["Filename"]}).json()
    assert (document["table"], document["rows"], document["doc_count"]) == ("duplicates", "[]", 0)
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    add_source(workspace, "backup", SAMPLE)
    workspace.close()
    with serving(home) as twice:
        document = post(twice, {"query": "filetype='png'", "group_by": ["filename"]}).json()
        assert {row["count"] for row in json.loads(document["rows"])} == {2}
        assert (document["count"], document["doc_count"]) == (48, 96)


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ({"query": "ownerzzz='x'"}, UNKNOWN),
        ({"group_by": ["ownerzzz"]}, "SQL0206N"),
        ({"sort_by": [{"ownerzzz": "asc"}]}, "SQL0206N"),
        ({"group_by": ["owner"], "sort_by": [{"size": "asc"}]}, "SQL0206N"),
        ({"filters": [{"key": 'x" or 1=1', "operator": "=", "value": 1}]}, "SQL0206N"),
        ({"query": "1=1) or (1=1"}, "SQL0104N"),
        ({"query": "1=1; drop table metaocean"}, "SQL0104N"),
        ({"query": "1=1) union select * from metaocean --"}, "SQL0104N"),
        ({"query": "1=1 order by 1"}, "SQL0104N"),
        ({"query": "'x' in (select content from read_text('/etc/passwd'))"}, "SQL0142N"),
        ({"query": "current_setting('memory_limit') = 'x'"}, "SQL0440N"),
        ({"query": "int(filename) = 1"}, "SQL0420N"),
        ({"query": "1/(size-size) = 1"}, "SQL0801N"),
        ({"query": "x" * 1_030_000}, "SQL0101N"),
        ({"query": 5}, "query: Input should be a valid string; given: 5"),
        ({"filters": [{"key": "a"}]}, "filters.0.operator: Field required"),
        ({"filters": [{"key": "size", "operator": "~", "value": 1}]}, "expected one of"),
        ({"filters": [{"key": "size", "operator": "in", "value": []}]}, "does not go with"),
        ({"filters": [{"key": "size", "operator": "=", "value": True}]}, "neither a text"),
        ({"filters": [{"key": "size", "operator": "is", "value": "1 or 1=1"}]}, "'not null'"),
        ({"sort_by": [{"size": "up"}]}, "sort_by.0.size"),
        ({"limit": -1}, "limit: "),
        ({"limit": 1e300}, "limit: "),
        ("", "the body is no JSON"),
        ("[]", "the body is a JSON list; expected an object"),
        (b"\xff\xfe", "the body is no JSON"),
        ("[" * 100_000, "the body is no JSON"),
        ('{"limit": ' + "9" * 5000 + "}", "the body is no JSON"),
    ],
)
def test_errors_have_the_documented_form(served: Served, search: Any, reason: str) -> None:
    """400 with reason and status, whatever is wrong."""
    answer = post(served, search)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["reason", "status"]
    assert answer.json()["status"] == "error"
    assert reason in answer.json()["reason"]
    assert answer.text.startswith('{"reason": "')


def test_content_types_do_not_matter(served: Served) -> None:
    """Curl -d without a header calls the body a form."""
    for kind in ("application/x-www-form-urlencoded", "application/json", "text/plain", ""):
        assert post(served, {"limit": 1}, **{"Content-Type": kind}).json()["count"] == 1


def test_the_catalog_is_asked_anew(served: Served) -> None:
    """A tag that was added under the server is there, and may be named with its hyphen."""
    assert rows(served, query="u2-source LIKE ('%annotated%')") == []
    assert "u2-source" in rows(served, limit=1)[0]


@pytest.mark.wide
def test_what_takes_ten_seconds_becomes_asynchronous(
    served: Served,
) -> None:
    """202 with the task's address, 303 while it runs, then the answer; others are served."""
    url, process = served
    with ThreadPoolExecutor(1) as threads:
        answering = threads.submit(post, served, {"query": ENDLESS})
        wait_until(lambda: counted(url) == (1, 0))
        sleep_through(process, PATIENCE_S)
        answer = answering.result()
    assert (answer.status_code, answer.text) == (202, '{"status": "work scheduled"}')
    assert rows(served, limit=1)
    address = answer.headers["Location"]
    assert address.startswith(f"{url}/db2whrest/v1/task_status/")
    if (status := httpx.get(address)).status_code == 303:
        assert status.text == '{"status": "running"}'
        sleep_through(process, LIMIT_S - PATIENCE_S)
    wait_until(lambda: httpx.get(address).status_code != 303)
    status = httpx.get(address)
    assert status.status_code == 400
    assert "SQL0952N" in status.json()["reason"]  # the server's own limit


@pytest.mark.wide
def test_a_client_that_goes_away_stops_its_search(catalogued: Path, tmp_path: Path) -> None:
    """Nobody knows the task's name, so nothing is computed any more, and nothing is left."""
    with serving(copy_home(catalogued, tmp_path)) as (url, process):  # with ten minutes' limit
        address, body = urlsplit(url), json.dumps({"query": ENDLESS})
        with socket.create_connection((address.hostname, address.port)) as client:
            head = (
                "POST /db2whrest/v1/search HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            client.sendall((head + body).encode())
            wait_until(lambda: counted(url) == (1, 0))
        wait_until(lambda: counted(url) == (0, 0))
        assert rows((url, process), limit=1)
