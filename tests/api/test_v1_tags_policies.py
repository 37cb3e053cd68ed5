"""Tags, families, extractions, checks of labels, maps and policies over /v1."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import audit_log, tokens, users
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from pipeline.jobs.request import JobPaths
from tests.pipeline.homes import FRAMES, SAMPLE

IMAGES = sorted(path.name for path in SAMPLE.rglob("*_camera_*.png"))


class Served:
    """An application over a copy of the sample's home, with a writer and a reader of all rows."""

    def __init__(self, client: TestClient, records: RecordStore, secrets: dict[str, str]) -> None:
        self.client, self.records, self.secrets = client, records, secrets

    def ask(self, method: str, path: str, who: str = "write", **more: Any) -> Any:
        """A request with a token of a scope."""
        headers = {"Authorization": f"Bearer {self.secrets[who]}"} | more.pop("headers", {})
        return self.client.request(method, path, headers=headers, **more)

    def last(self) -> tuple[str, str, str]:
        """Method, path and outcome of the newest entry of the audit log."""
        entry = audit_log.entries(self.records, limit=1)[0]
        return entry.what, entry.target, entry.outcome

    def ended(self, begun: Any) -> dict[str, Any]:
        """The job of an answer, once it has ended."""
        assert begun.status_code == 202, begun.text
        assert begun.headers["location"] == f"/v1/jobs/{begun.json()['name']}"
        until = time.monotonic() + 300
        while True:
            job: dict[str, Any] = self.ask("GET", begun.headers["location"]).json()
            if job["state"] in ("done", "failed", "cancelled"):
                return job
            assert time.monotonic() < until, job
            time.sleep(0.3)


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[Served]:
    """The sample frames, served."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    users.add(records, "dora", ["dataadmin"], None)
    secrets = {
        scope: tokens.create(records, "dora", scope, scope, timedelta(days=1))[1]
        for scope in ("read", "write")
    }
    users.add(records, "ede", ["datauser"], None)
    secrets["limited"] = tokens.create(records, "ede", "read", "read", timedelta(days=1))[1]
    with TestClient(create_app(Settings(home=shared_home, cache=None))) as client:
        yield Served(client, records, secrets)


@pytest.mark.wide
def test_a_tag_s_kind_changes(served: Served) -> None:
    """Where its values allow it, and nobody changed it meanwhile."""
    body = {"tag": "mood", "kind": "Restricted", "values": ["good", "bad"]}
    assert served.ask("POST", "/v1/tags", json=body).status_code == 201
    table = f"filename,mood\n{IMAGES[0]},bad\n"
    sent: dict[str, Any] = {"headers": {"Content-Type": "text/csv"}, "params": {"family": "own"}}
    assert served.ask("POST", "/v1/tags/values", content=table, **sent).json()["imported"] == 1
    before = served.ask("GET", "/v1/tags/mood")
    change = {"kind": "restricted", "values": ["bad", "good", "odd"]}
    etag = {"If-Match": before.headers["etag"]}
    changed = served.ask("PATCH", "/v1/tags/mood", json=change, headers=etag)
    assert changed.status_code == 200, changed.text
    assert changed.json() == {**before.json(), "values": ["bad", "good", "odd"]}
    assert served.last() == ("PATCH", "/v1/tags/mood", "200")
    assert served.ask("PATCH", "/v1/tags/mood", json=change, headers=etag).status_code == 412
    for path, wrong, status in (
        ("mood", {"kind": "Restricted", "values": ["good"]}, 400), ("mood", {"kind": "Free"}, 400),
        ("nope", {"kind": "Open"}, 404), ("mood", {}, 422), ("mood", {"kind": "Open", "x": 1}, 422),
    ):  # fmt: skip
        assert served.ask("PATCH", f"/v1/tags/{path}", json=wrong).status_code == status, wrong
    assert served.ask("PATCH", "/v1/tags/mood", "read", json=change).status_code == 403
    assert served.ask("GET", "/v1/tags/mood").json()["values"] == ["bad", "good", "odd"]


@pytest.mark.wide
def test_families_are_listed_and_dropped(served: Served) -> None:
    """Page by page; with their tags and values, and only once."""
    for family, tag in (("sky", "haze"), ("ground", "mud")):
        body = {"tag": tag, "family": family}
        assert served.ask("POST", "/v1/tags", json=body).status_code == 201
    families: list[Any] = []
    params: dict[str, Any] = {"limit": 1}
    while params.get("cursor", "") is not None:
        page = served.ask("GET", "/v1/families", params=params).json()
        families += page["families"]
        params["cursor"] = page["next"]
    assert [one["name"] for one in families][-2:] == ["sky", "ground"]
    assert families[-1] == {"name": "ground", "columns": {"mud": "VARCHAR"}, "rows": 0}
    one = served.ask("GET", "/v1/families/ground")
    assert one.json() == families[-1]
    refused = served.ask("DELETE", "/v1/families/ground", headers={"If-Match": '"other"'})
    assert refused.status_code == 412
    dropped = served.ask("DELETE", "/v1/families/ground", headers={"If-Match": one.headers["etag"]})
    assert dropped.json() == {"family": "ground", "rows": 0}
    assert served.last() == ("DELETE", "/v1/families/ground", "200")
    for method in ("GET", "DELETE"):
        assert served.ask(method, "/v1/families/ground").status_code == 404
    assert served.ask("GET", "/v1/tags/mud").status_code == 404
    assert served.ask("DELETE", "/v1/families/sky", "read").status_code == 403


@pytest.mark.wide
def test_a_tag_is_removed(served: Served) -> None:
    """With its values and its view, and not its family's others; older snapshots keep it."""

    def sql(statement: str, at: int | None = None) -> Any:
        params = {} if at is None else {"at": at}
        return served.ask("POST", "/v1/sql", "read", json={"statement": statement} | params)

    table = f"filename,dry,wet\n{IMAGES[0]},yes,\n{IMAGES[1]},yes,no\n"
    sent: dict[str, Any] = {"headers": {"Content-Type": "text/csv"}, "params": {"family": "air"}}
    assert served.ask("POST", "/v1/tags/values", content=table, **sent).json()["imported"] == 2
    before = served.ask("GET", "/v1/tags/dry")
    number = served.ask("GET", "/v1/info").json()["snapshot"]
    path = "/v1/tags/dry"
    assert served.ask("DELETE", path, "read").status_code == 403
    assert served.ask("DELETE", path, headers={"If-Match": '"other"'}).status_code == 412
    assert served.ask("GET", path).json() == before.json()
    removed = served.ask("DELETE", path, headers={"If-Match": before.headers["etag"]})
    assert removed.json() == {"tag": "dry", "files": 2}
    assert served.last() == ("DELETE", path, "200")
    for method in ("GET", "DELETE"):
        assert served.ask(method, path).status_code == 404
    assert served.ask("GET", "/v1/families/air").json()["columns"] == {"wet": "VARCHAR"}
    statements = [
        ("select fkey from t_dry", 2), ("select fkey from metaocean_view where dry = 'yes'", 2),
        ("select fkey from metaocean_view where wet = 'no'", 1), ("select fkey from t_wet", 1),
    ]  # fmt: skip
    for statement, rows in statements:
        now, then = sql(statement), sql(statement, number)
        assert len(then.json()) == rows, then.text
        if "dry" in statement:
            assert now.status_code == 400
        else:
            assert now.json() == then.json()
    # Another one of that name begins without values and without the kind.
    assert served.ask("POST", "/v1/tags", json={"tag": "dry", "family": "air"}).status_code == 201
    assert sql("select fkey from t_dry").json() == []
    assert [served.ask("DELETE", f"/v1/tags/{tag}").json()["files"] for tag in ("dry", "wet")] == [
        0, 1
    ]  # fmt: skip
    assert served.ask("GET", "/v1/families/air").status_code == 404
    assert len(sql("select fkey from metaocean_view where label_file is not null").json())


@pytest.mark.wide
def test_a_class_group(served: Served) -> None:
    """Defined by writers, listed with its classes, used by a policy's condition, and removed."""
    path, body = "/v1/tags/groups", {"tag": "wheeled", "classes": ["Car", "bicycle"]}
    assert served.ask("POST", path, "read", json=body).status_code == 403
    key = {"Idempotency-Key": "g1"}
    made = served.ask("POST", path, json=body, headers=key)
    assert made.status_code == 201, made.text
    assert served.ask("POST", path, json=body, headers=key).headers["idempotency-replayed"]
    assert made.headers["location"] == "/v1/tags/wheeled"
    assert made.json()["classes"] == ["car", "bicycle"]
    listed = served.ask("GET", "/v1/tags?family=tags_class_groups", "read").json()["tags"]
    assert listed == [made.json()]
    assert served.ask("GET", "/v1/tags/car").json()["classes"] == []
    for wrong, status in (
        (body, 409), ({**body, "tag": "w", "classes": ["carr"]}, 400),
        ({**body, "tag": "w", "classes": ["wheeled"]}, 400),
        ({**body, "tag": "w", "classes": []}, 422), ({**body, "tag": "W!"}, 400),
    ):  # fmt: skip
        assert served.ask("POST", path, json=wrong).status_code == status, wrong

    def frames() -> Any:
        question = {"ranges": [{"tag": "wheeled", "lowest": 1}]}
        return served.ask("POST", "/v1/selections", "read", json=question)

    count = frames().json()["count"]
    assert count > 0
    shares = served.ask("GET", "/v1/classes", "read").json()
    of_group, of_car, of_bicycle = (
        next(one for one in shares["classes"] if one["tag"] == tag)
        for tag in ("wheeled", "car", "bicycle")
    )
    assert shares["classes"][-1] == of_group
    assert of_group["pixels"] == of_car["pixels"] + of_bicycle["pixels"]
    policy = {**POLICY, "name": "w", "condition": "wheeled >= 1 and labelled = 1"}
    assert served.ask("POST", "/v1/policies", json=policy).status_code == 201
    sets_it = {**POLICY, "name": "x", "parameters": {"tags": {"wheeled": "1"}}}
    refused = served.ask("POST", "/v1/policies", json=sets_it)
    assert refused.status_code == 400
    assert "or a class group of that; a policy sets others" in refused.json()["detail"]
    marked = {"fkeys": [frames().json()["frames"][0]["fkey"]], "values": {"wheeled": "1"}}
    assert served.ask("POST", "/v1/tags/marks", json=marked).status_code == 400
    tag = served.ask("GET", "/v1/tags/wheeled")
    etag = {"If-Match": tag.headers["etag"]}
    assert served.ask("DELETE", "/v1/tags/wheeled", headers=etag).status_code == 200
    again = {**body, "classes": ["car"]}
    assert served.ask("POST", path, json=again).status_code == 201
    # Of the same name and type, and yet another tag.
    assert served.ask("DELETE", "/v1/tags/wheeled", headers=etag).status_code == 412
    assert served.ask("DELETE", "/v1/tags/wheeled").status_code == 200
    assert frames().status_code == 400
    assert "unknown class 'wheeled'" in frames().json()["detail"]
    run = served.ended(served.ask("POST", "/v1/policies/w/runs"))
    assert run["state"] == "failed"
    assert "WHEELED" in run["error"].upper()
    assert served.ask("DELETE", "/v1/policies/w").status_code == 204


def test_a_tag_that_is_read_from_files_stays(served: Served) -> None:
    """Those of classes and frames here; of extractors in test_tags_are_extracted_by_a_job."""
    for tag, why in (("car", "a class's pixels"), ("scene", "scans give it")):
        refused = served.ask("DELETE", f"/v1/tags/{tag}")
        assert refused.status_code == 409
        assert refused.json()["title"] == "InUse"
        assert f"tag '{tag}' cannot be removed" in refused.json()["detail"]
        assert why in refused.json()["detail"]
        assert served.last() == ("DELETE", f"/v1/tags/{tag}", "409")
        assert served.ask("GET", f"/v1/tags/{tag}").status_code == 200


@pytest.mark.wide
def test_labels_are_checked_by_a_job(served: Served) -> None:
    """For whoever reads every row; of others, and of what is no scanned source, there is no job."""
    request = {"source": "a2d2", "labels": 5}
    key = {"Idempotency-Key": "l1"}
    begun = served.ask("POST", "/v1/label-checks", "read", json=request, headers=key)
    again = served.ask("POST", "/v1/label-checks", "read", json=request, headers=key)
    assert again.json()["name"] == begun.json()["name"]
    job = served.ended(begun)
    assert (job["kind"], job["state"], job["error"]) == ("labels", "done", "")
    found = served.ask("GET", f"{begun.headers['location']}/files/result.json", "read").json()
    assert (found["labels"], found["unknown_keys"], found["labels_unread"]) == (5, [], [])
    assert job["metrics"]["labels"] == 5
    for wrong, who, status in (
        (request, "limited", 403), ({**request, "source": "nope"}, "read", 404),
        ({**request, "labels": 0}, "read", 422), ({**request, "most": 1}, "read", 422),
    ):  # fmt: skip
        assert served.ask("POST", "/v1/label-checks", who, json=wrong).status_code == status, wrong
    assert len(served.ask("GET", "/v1/jobs?kind=labels").json()["jobs"]) == 1


@pytest.mark.wide
def test_tags_are_extracted_by_a_job(served: Served) -> None:
    """Once for one key; unknown sources and extractors are refused before any job."""
    request = {"source": "a2d2", "extractors": ["image"]}
    key = {"Idempotency-Key": "e1"}
    begun = served.ask("POST", "/v1/extractions", json=request, headers=key)
    again = served.ask("POST", "/v1/extractions", json=request, headers=key)
    assert again.json()["name"] == begun.json()["name"]
    job = served.ended(begun)
    assert (job["kind"], job["state"], job["error"]) == ("extract", "done", "")
    assert (job["metrics"]["family"], job["metrics"]["tagged"]) == ("image", FRAMES)
    family = served.ask("GET", "/v1/families/image").json()
    assert family["rows"] == FRAMES
    assert "image_brightness" in family["columns"]
    refused = served.ask("DELETE", "/v1/tags/image_brightness")
    assert refused.status_code == 409
    assert "DELETE /v1/families/image, removes all" in refused.json()["detail"]
    jobs = len(served.ask("GET", "/v1/jobs?kind=extract").json()["jobs"])
    for wrong, status in (
        ({**request, "source": "nope"}, 404), ({**request, "extractors": ["imag"]}, 400),
        ({**request, "extractors": []}, 422), ({**request, "extractors": ["x.py:Own"]}, 400),
        ({**request, "extractors": ["--errors"]}, 400),
    ):  # fmt: skip
        assert served.ask("POST", "/v1/extractions", json=wrong).status_code == status, wrong
    assert served.ask("POST", "/v1/extractions", "read", json=request).status_code == 403
    assert len(served.ask("GET", "/v1/jobs?kind=extract").json()["jobs"]) == jobs == 1


@pytest.mark.wide
def test_a_map_is_joined(served: Served) -> None:
    """GeoJSON in the body; what is wrong with it is said of the body, and no path of the server."""
    table = (
        "filename,latitude_deg,longitude_deg\n"
        f"{IMAGES[0]},48.0,11.0\n{IMAGES[1]},48.0,11.001\n{IMAGES[2]},49.0,11.0\n"
    )
    sent: dict[str, Any] = {"headers": {"Content-Type": "text/csv"}, "params": {"family": "place"}}
    assert served.ask("POST", "/v1/tags/values", content=table, **sent).status_code == 200
    params = {"family": "bridge", "within": 100}
    geo = {"Content-Type": "application/geo+json"}
    point = {"type": "Point", "coordinates": [11.0, 48.0]}
    done = served.ask("POST", "/v1/tags/map", json=point, headers=geo, params=params)
    assert done.status_code == 200, done.text
    assert done.json() == {
        "features": 1, "frames": 3, "near": 2,
        "columns": {"near_bridge": "INTEGER", "bridge_distance_m": "DOUBLE"},
    }  # fmt: skip
    for body, status in (("{", 400), ("[" * 100_000, 400), ('{"type": "Point"}', 400), ("7", 400)):
        answer = served.ask("POST", "/v1/tags/map", content=body, headers=geo, params=params)
        assert answer.status_code == status, answer.text
        assert answer.json()["detail"].startswith("the body: ")
        assert "/tmp" not in answer.text
    assert served.ask("POST", "/v1/tags/map", json=point, params=params).status_code == 415
    for wrong in (
        {**params, "within": -1},
        {**params, "family": "B"},
        {**params, "latitude": "no"},
    ):
        answer = served.ask("POST", "/v1/tags/map", json=point, headers=geo, params=wrong)
        assert answer.status_code == 400, wrong


@pytest.mark.wide
def test_a_validation_s_scores_are_tags_of_its_model(served: Served, tmp_path: Path) -> None:
    """What a report says of frames is asked by the model's name, and dropped as one family."""
    fkeys = [row["fkey"] for row in served.ask("GET", "/v1/frames").json()["frames"]]
    report = JobPaths(tmp_path / "v-1").report
    report.mkdir(parents=True)
    model = {"name": "t-1", "sha256": "a" * 64}
    (report / "report.json").write_text(json.dumps({"model": model}))
    scores = {"fkey": fkeys, "uncertainty": [n / len(fkeys) for n in range(len(fkeys))]}
    scores["accuracy"] = [0.5 for _ in fkeys]
    pq.write_table(pa.table(scores), report / "frame_scores.parquet")
    with served.records.session() as session:
        for kind, name in (("validate", "v-1"), ("predict", "p-1"), ("train", "t-1")):
            paths = {"folder": str(tmp_path / name), "logs": str(tmp_path)}
            more: dict[str, Any] = {"request": {"stages": []}, "metrics": {}}
            session.add(
                Job(name=name, kind=kind, backend="local", state="done", paths=paths, **more)
            )
    cell = {"truth": "car", "predicted": "sky", "pixels": 9}
    pq.write_table(
        pa.Table.from_pylist([{"fkey": fkeys[1], **cell}]), report / "frame_cells.parquet"
    )
    answer = served.ask("POST", "/v1/tags/scores", json={"job": "v-1"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "model": "t-1", "family": "scores_t_1", "prefix": "t_1", "frames": len(fkeys),
        "scores": ["accuracy", "uncertainty"], "unknown": 0, "unlabelled": 0, "cells": 1,
    }  # fmt: skip
    predicted = JobPaths(tmp_path / "p-1").report
    predicted.mkdir(parents=True)
    # A class may have the name of a score that predictions lack.
    told = {"model": model, "predicted_pixels": {"loss": 9, "sky": 0}}
    (predicted / "metrics.json").write_text(json.dumps(told))
    found = {"fkey": fkeys, "uncertainty": [0.5 for _ in fkeys], "sky": [0 for _ in fkeys]}
    found["loss"] = [9, *(0 for _ in fkeys[1:])]
    pq.write_table(pa.table(found), predicted / "frame_scores.parquet")
    imported = served.ask("POST", "/v1/tags/scores", json={"job": "p-1"}).json()
    assert (imported["frames"], imported["cells"]) == (len(fkeys), 1)
    sql = "select frame, truth, predicted, pixels from confusion_cells order by pixels, frame"
    rows = served.ask("POST", "/v1/sql", json={"statement": sql}).json()
    assert [[*row.values()] for row in rows] == [
        [fkeys[0], None, "loss", 9],
        [fkeys[1], "car", "sky", 9],
    ]
    question = {"model": "t-1", "where": "confusion(Car, sky) >= 9 and uncertainty > 0"}
    found = served.ask("POST", "/v1/selections", json=question).json()
    assert [frame["fkey"] for frame in found["frames"]] == [fkeys[1]]
    assert found["question"]["model"] == "t-1"
    assert served.ask("DELETE", "/v1/families/scores_t_1").json()["rows"] == len(fkeys)
    assert served.ask("POST", "/v1/selections", json=question).status_code == 400
    for job, status in (("t-1", 400), ("none", 404)):
        assert served.ask("POST", "/v1/tags/scores", json={"job": job}).status_code == status
    refused = served.ask("POST", "/v1/tags/scores", "read", json={"job": "v-1"})
    assert refused.status_code == 403


POLICY: dict[str, Any] = {
    "name": "left",
    "action": "AUTOTAG",
    "parameters": {"tags": {"turn": "left"}},
    "condition": "filename like '%front_left%'",
}


@pytest.mark.wide
def test_a_policy_from_the_first_request_to_the_last(served: Served) -> None:
    """Made, seen by Discover's clients too, run as a job, changed, removed; in the audit log."""
    response = served.ask("POST", "/v1/policies", json=POLICY, headers={"Idempotency-Key": "p1"})
    assert response.status_code == 201, response.text
    assert response.headers["location"] == "/v1/policies/left"
    body = response.json()
    assert {**body, **POLICY} == body
    assert (body["schedule"], body["state"], body["owner"], body["last_run"]) == (
        None, "active", "dora", None,
    )  # fmt: skip
    again = served.ask("POST", "/v1/policies", json=POLICY, headers={"Idempotency-Key": "p1"})
    assert again.headers["idempotency-replayed"] == "true"
    assert served.ask("POST", "/v1/policies", json=POLICY).status_code == 409
    theirs = served.ask("GET", "/policyengine/v1/policies/left").json()
    assert (theirs["pol_id"], theirs["schedule"], theirs["pol_status"]) == (
        "left", "NOW", "never run",
    )  # fmt: skip
    before = served.ask("GET", "/v1/policies/left")
    assert before.json() == body

    job = served.ended(served.ask("POST", "/v1/policies/left/runs"))
    assert (job["kind"], job["state"]) == ("policy", "done"), job
    (run,) = served.ask("GET", "/v1/policies/left/runs").json()["runs"]
    assert (run["state"], run["job"], run["policy"]) == ("complete", job["name"], "left")
    assert run["total"] == run["completed"] > 0
    assert served.ask("GET", "/v1/policies/left").json()["last_run"] == run
    statement = {"statement": "select count(*) as n from metaocean_view where turn = 'left'"}
    assert served.ask("POST", "/v1/sql", json=statement).json() == [{"n": run["total"]}]

    known = {"If-Match": before.headers["etag"]}
    change = {"state": "inactive", "schedule": {"hour": 5}}
    changed = served.ask("PATCH", "/v1/policies/left", json=change, headers=known).json()
    assert served.ask("PATCH", "/v1/policies/left", json=change, headers=known).status_code == 412
    assert (changed["state"], changed["schedule"]) == ("inactive", {"hour": 5})
    assert changed["condition"] == POLICY["condition"]
    assert "inactive" in served.ask("POST", "/v1/policies/left/runs").json()["detail"]
    always = {"schedule": None, "state": "active"}
    assert served.ask("PATCH", "/v1/policies/left", json=always).json()["schedule"] is None
    policies = served.ask("GET", "/v1/policies", params={"action": "AUTOTAG"}).json()
    assert [one["name"] for one in policies["policies"]] == ["left"]
    assert served.ask("GET", "/v1/policies?state=inactive").json()["policies"] == []
    assert served.ask("POST", "/v1/policies/due").json() == {"started": []}
    assert served.ask("DELETE", "/v1/policies/left").status_code == 204
    assert served.last() == ("DELETE", "/v1/policies/left", "204")
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/runs")):
        answer = served.ask(method, f"/v1/policies/left{path}", json={})
        assert answer.status_code == 404, (method, path)


def test_what_no_policy_can_be(served: Served) -> None:
    """Refused with a reason, and nothing kept; reading needs the scope read, the rest write."""
    for wrong, status in (
        ({**POLICY, "name": "a/b"}, 400), ({**POLICY, "action": "NOPE"}, 422),
        ({**POLICY, "parameters": {}}, 400), ({**POLICY, "condition": "turn >"}, 400),
        ({**POLICY, "condition": "1=1) or (1=1; drop table x"}, 400),
        ({**POLICY, "schedule": {"hour": 25}}, 400), ({**POLICY, "schedule": {}}, 400),
        ({**POLICY, "schedule": "NOW"}, 422), ({**POLICY, "state": "odd"}, 422),
        ({**POLICY, "pol_id": "x"}, 422), ({"name": "x"}, 422),
    ):  # fmt: skip
        answer = served.ask("POST", "/v1/policies", json=wrong)
        assert answer.status_code == status, (wrong, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    assert served.ask("GET", "/v1/policies", "read").json() == {"policies": [], "next": None}
    for method, path in (("POST", ""), ("POST", "/due"), ("POST", "/x/runs"), ("PATCH", "/x")):
        answer = served.ask(method, f"/v1/policies{path}", "read", json=POLICY)
        assert answer.status_code == 403, path
