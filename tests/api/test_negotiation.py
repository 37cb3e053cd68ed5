"""What Accept wants is what is sent, or 406 says what there is."""

import io
import json
from collections.abc import Iterator

import httpx
import httpx2
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image

from api.http.negotiation import ROW_TYPES, wanted
from tests.pipeline.homes import FRAMES
from tests.query.workbooks import workbook_columns

J, C, N = "application/json", "text/csv", "application/x-ndjson"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", J), ("*/*", J), ("application/*", J), (C, C), (f"{C}, {J}", C), (f"{J}, {C}", J),
        (f"{C};q=0.1, {N};q=0.9", N), (f"{J};q=0, */*", C), (f"{J};q=0", None),
        ("text/html, */*;q=0.1", J), ("text/html", None), ("text/*", C), (f"{C};q=0, text/*", None),
        (f"*/*;q=0, {C}", C), (f"*/*;q=0, {J};q=0.001", J), ("*/*;q=0", None),
        (f"{C}; header=present; q=1", C), (f" {C.upper()} ", C), (f"{J};q=x, {C}", C),
        (f"*/*, {C}", C), (f"*/*;q=0.5, {C};q=0.4", J), ("text/csv;q=1.5, */*", J), (",,", J),
    ],
)  # fmt: skip
def test_what_is_wanted(accept: str, kind: str | None) -> None:
    """By quality, then by the order of names; the most specific range counts."""
    assert wanted(accept, ROW_TYPES) == kind


@pytest.fixture(scope="module")
def client(shared_url: str) -> Iterator[httpx.Client]:
    """A client of a server of the sample frames."""
    with httpx.Client(base_url=shared_url, timeout=300) as client:
        yield client


def table_of(answer: httpx.Response | httpx2.Response) -> pa.Table:
    """The rows of an answer, by its Content-Type."""
    body = io.BytesIO(answer.content)
    kind = answer.headers["content-type"].partition(";")[0]
    if kind == C:
        return pyarrow.csv.read_csv(body)
    if kind == N:
        return pa.Table.from_pylist([json.loads(line) for line in body])
    if kind == "application/vnd.apache.parquet":
        return pyarrow.parquet.read_table(body)
    if kind == "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
        return pa.table(workbook_columns(answer.content))
    if kind == "application/vnd.apache.arrow.stream":
        return pa.ipc.open_stream(body).read_all()
    assert kind == "application/vnd.apache.arrow.file"
    return pa.ipc.open_file(body).read_all()


@pytest.mark.wide
def test_rows(client: httpx.Client) -> None:
    """Pages and selections in each format: the rows of JSON, and the next page in Link."""
    params = {"limit": "10", "columns": "car,scene", "range": "car=0:"}
    page = client.get("/v1/frames", params=params)
    assert page.headers["vary"].lower().count("accept") == 2  # and Accept-Encoding
    selection = client.post("/v1/selections", json={}).json()
    for kind in ROW_TYPES[1:]:
        accept = {"Accept": kind}
        answer = client.get("/v1/frames", params=params, headers=accept)
        assert table_of(answer).to_pylist() == page.json()["frames"], kind
        assert answer.headers["framesift-snapshot"] == str(page.json()["snapshot"])
        seen = 10
        while "next" in answer.links:
            answer = client.get(answer.links["next"]["url"], headers=accept)
            seen += table_of(answer).num_rows
        assert seen == FRAMES
        answer = client.post("/v1/selections", json={}, headers=accept)
        assert table_of(answer)["fkey"].to_pylist() == [
            frame["fkey"] for frame in selection["frames"]
        ]
        sql = {"statement": "select filename from metaocean order by filename"}
        answer = client.post("/v1/sql", json=sql, headers={"Accept": f"{kind};q=0.5, x/y"})
        assert answer.headers["content-type"].startswith(kind)
    for answer in (
        client.get("/v1/frames", headers={"Accept": "application/pdf"}),
        client.post("/v1/selections", json={}, headers={"Accept": "image/png"}),
        client.post("/v1/sql", json=sql, headers={"Accept": f"{J};q=0"}),
        client.get("/v1/classes", headers={"Accept": "application/pdf"}),
        client.get("/v1/statistics/histogram?tag=car", headers={"Accept": "image/*"}),
    ):
        assert answer.status_code == 406
        assert "text/csv" in answer.json()["detail"]


def test_statistics(client: httpx.Client) -> None:
    """Tables of classes and bins have a row each, with the same numbers."""
    for kind in ROW_TYPES[1:]:
        classes = table_of(client.get("/v1/classes", headers={"Accept": kind})).to_pylist()
        known = client.get("/v1/classes").json()["classes"]
        assert [(row["tag"], row["frames"]) for row in classes] == [
            (row["tag"], row["frames"]) for row in known
        ]
        path = "/v1/statistics/histogram?tag=car&bins=4"
        bins = table_of(client.get(path, headers={"Accept": kind})).to_pylist()
        assert sum(row["frames"] for row in bins) == FRAMES
        path = "/v1/statistics/histogram?tag=car&tag=camera&bins=4"
        cells = table_of(client.get(path, headers={"Accept": kind})).to_pylist()
        assert sum(row["frames"] for row in cells) == FRAMES


@pytest.mark.wide
def test_pictures(client: httpx.Client) -> None:
    """The file where PNG may be, else made again; of several formats the one that is wanted."""
    fkey = client.get("/v1/frames").json()["frames"][0]["fkey"]
    browser = "image/avif,image/webp,image/apng,*/*;q=0.8"
    for path, accept, kind in (
        (f"images/{fkey}", "*/*", "PNG"), (f"images/{fkey}", browser, "PNG"),
        (f"images/{fkey}", "image/webp", "WEBP"), (f"images/{fkey}", "image/jpeg", "JPEG"),
        (f"images/{fkey}?width=20", browser, "WEBP"), (f"images/{fkey}?width=20", "", "JPEG"),
        (f"images/{fkey}?width=20&format=png", "image/webp", "PNG"),
        (f"labels/{fkey}", "image/webp", "WEBP"), (f"labels/{fkey}?width=20", "*/*", "PNG"),
        (f"overlays/{fkey}", "image/png;q=0.9, image/webp;q=0.1", "PNG"),
    ):  # fmt: skip
        answer = client.get(f"/v1/{path}", headers={"Accept": accept})
        assert answer.status_code == 200, answer.text
        assert Image.open(io.BytesIO(answer.content)).format == kind, (path, accept)
        assert answer.headers["content-type"] == f"image/{kind.lower()}"
        assert "accept" in answer.headers["vary"].lower()
    answer = client.get(f"/v1/labels/{fkey}?width=9", headers={"Accept": "image/jpeg"})
    assert answer.status_code == 406
    assert "image/webp" in answer.json()["detail"]
