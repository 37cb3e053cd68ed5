"""Who sees some rows only sees those of datasets, and may build some of their own.

Reference is what each frame's scene says: the datasets are made by somebody who sees every row, and
what others are told of them must be what is counted over the frames of their scenes.
"""

import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx2 as httpx
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from api.app import create_app
from api.schemas.home_orders import Staging
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.errors import AlreadyExists, InvalidInput
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from catalog.values import Owner
from pipeline.cache.running import Announcement, StagingAbout
from pipeline.cache.stager import stager
from pipeline.jobs.command_job import submit_command
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from tests.pipeline.homes import FRAMES, open_home

SEEN = ("20260311_130314", "20260507_155109")
HIDDEN = "20260721_110506"
RULES = {scene: f"filename like '%/{scene}/%'" for scene in (*SEEN, HIDDEN)}
USERS = {"root": "admin", "dora": "dataadmin", "otto": "datauser", "cora": "collectionadmin",
         "carl": "collectionadmin", "none": "collectionadmin"}  # fmt: skip
"""carl sees the hidden scene and one of the seen ones."""

Body = dict[str, Any]


@dataclass
class Served:
    """A server, a token of each user, and what was made on it.

    Attributes:
        mixed: Of every frame, divided; by root.
        hidden: Of a scene that otto and cora do not see; by root.
        inside: Of what they see, and nothing else; by root.
    """

    client: TestClient
    home: Path
    tokens: dict[str, str]
    mixed: Body
    hidden: Body
    inside: Body

    def ask(self, user: str, method: str, path: str, **more: Any) -> httpx.Response:
        """A request of a user."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}", **more.pop("headers", {})}
        answer: httpx.Response = self.client.request(method, path, headers=headers, **more)
        return answer

    def get(self, user: str, path: str, **params: Any) -> Any:
        """What a route answers, as JSON."""
        answer = self.ask(user, "GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def make(self, user: str, path: str = "/v1/datasets", **body: Any) -> Body:
        """What a user makes."""
        answer = self.ask(user, "POST", path, json=body)
        assert answer.status_code == 201, answer.text
        dataset: Body = answer.json()
        return dataset

    def rows(self, name: str) -> list[Body]:
        """Every frame of a dataset, as root exports it."""
        text = self.ask("root", "GET", f"/v1/datasets/{name}/export?format=jsonl").text
        return [json.loads(line) for line in text.splitlines()]

    def seen_rows(self, name: str) -> list[Body]:
        """Those that otto and cora see."""
        return [row for row in self.rows(name) if row["scene"] in SEEN]


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[Served]:
    """The sample frames, users of collections, and datasets of who sees all."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    datasets = {}
    for name, role in USERS.items():
        datasets[name] = tokens.log_in(records, users.add(records, name, [role], None))
    for name, rule in RULES.items():
        row_collections.add(records, name, rule)
    for name, whose in ((SEEN[0], "otto cora carl"), (SEEN[1], "otto cora"), (HIDDEN, "carl")):
        for user in whose.split():
            row_collections.assign(records, name, user)
    app = create_app(Settings(home=shared_home, cache=None, snapshot_memory_mb=200))
    with TestClient(app) as client:
        served_home = Served(client, shared_home, datasets, {}, {}, {})
        served_home.ask("root", "GET", "/v1/classes")
        assert app.state.workspace.catalog.memory.wait(300)
        halves = {"split": "train=0.5,validation=0.25,test=0.25"}
        served_home.hidden = served_home.make("root", name="hidden", question={"scenes": [HIDDEN]})
        served_home.inside = served_home.make(
            "root", name="inside", question={"scenes": list(SEEN)}
        )
        served_home.make("root", name="mixed", question={"scenes": [HIDDEN]})
        served_home.mixed = served_home.make(
            "root", name="mixed", question={"where": "size > 0"}, **halves
        )
        yield served_home


def test_owners_are_kept(served: Served) -> None:
    """Who made it over REST."""
    assert served.get("dora", "/v1/datasets/mixed")["owner"] == "root"


@pytest.mark.wide
def test_a_dataset_is_what_is_seen_of_it(served: Served) -> None:
    """Counts, splits, classes, exports, pages, statistics: all are of the frames that are seen."""
    rows = served.seen_rows("mixed")
    assert 0 < len(rows) < FRAMES
    tags = list(served.mixed["class_pixels"])
    for user in ("otto", "cora"):
        answer = served.get(user, "/v1/datasets/mixed")
        assert (answer["version"], answer["snapshot"]) == (2, served.mixed["snapshot"])
        assert answer["frames"] == len(rows)
        assert answer["splits"] == dict(Counter(row["split"] for row in rows))
        assert answer["class_pixels"] == {tag: sum(row[tag] for row in rows) for tag in tags}
        assert answer["class_frames"] == {tag: sum(row[tag] > 0 for row in rows) for tag in tags}
        assert (answer["question"], answer["report"], answer["parents"]) == ({}, {}, [])
        assert (answer["seed"], answer["owner"]) == (0, "")
        assert answer["id"] not in (served.mixed["id"], served.hidden["id"])
        for name, params, expected in (
            ("mixed", {}, rows),
            ("mixed", {"split": "train"}, [row for row in rows if row["split"] == "train"]),
            ("inside", {}, served.rows("inside")),
        ):
            check_exports(served, user, name, params, expected)
        frames = served.get(user, "/v1/frames", dataset="mixed", limit=3, columns="scene")
        listed = [frame["fkey"] for frame in frames["frames"]]
        while frames["next"]:
            frames = served.get(
                user, "/v1/frames", dataset="mixed", limit=3, columns="scene", cursor=frames["next"]
            )
            listed += [frame["fkey"] for frame in frames["frames"]]
        assert sorted(listed) == sorted(row["fkey"] for row in rows)
        classes = served.get(user, "/v1/classes", dataset="mixed")
        assert classes["frames"] == len(rows)
        counted = {entry["tag"]: entry["frames"] for entry in classes["classes"]}
        assert counted == answer["class_frames"]
        table = served.get(user, "/v1/statistics/histogram", tag="scene", dataset="mixed@2")
        assert HIDDEN not in json.dumps(table)
        gaps = served.get(user, "/v1/datasets/mixed/gaps", scenes=True, at_least=10**6)
        assert gaps["frames"] == len(rows)
        assert {one["value"] for one in gaps["gaps"] if one["kind"] == "scene"} == set(SEEN)


def check_exports(served: Served, user: str, name: str, params: Body, expected: list[Body]) -> None:
    """Every format holds these frames and no other."""
    path, fkeys = f"/v1/datasets/{name}/export", [row["fkey"] for row in expected]
    expected = [
        {**row, "image": told(row["image"]), "label": told(row["label"])} for row in expected
    ]
    texts = {
        format_: served.ask(user, "GET", path, params={"format": format_, **params})
        for format_ in ("csv", "jsonl", "files", "parquet", "fiftyone")
    }
    assert [answer.status_code for answer in texts.values()] == [200] * 5
    assert [json.loads(line) for line in texts["jsonl"].text.splitlines()] == expected
    assert len(texts["csv"].text.splitlines()) == len(expected) + 1
    assert texts["files"].text.splitlines() == [row["image"] for row in expected]
    assert pq.read_table(io.BytesIO(texts["parquet"].content))["fkey"].to_pylist() == fkeys
    document = texts["fiftyone"].json()
    assert [sample["fkey"] for sample in document["samples"]] == fkeys
    for answer in texts.values():
        assert answer.content.find(HIDDEN.encode()) == -1
        for dataset in (served.mixed, served.hidden, served.inside):
            assert dataset["id"] not in answer.text


def told(path: str | None) -> str | None:
    """A file's path as who sees some rows only is told it: its key below the source's name."""
    return path and f"a2d2/camera_lidar_semantic/{path.partition('/camera_lidar_semantic/')[2]}"


def test_the_manifest_that_is_named_holds_no_more(served: Served) -> None:
    """Also as a file: neither the frames nor the question."""
    answer = served.get("otto", "/v1/datasets/mixed")
    assert not Path(answer["manifest"]).is_absolute()
    folder = manifest_read_by(served, "otto", "mixed")
    manifest = Manifest.read(folder)
    assert manifest.frames["fkey"].to_pylist() == [r["fkey"] for r in served.seen_rows("mixed")]
    written = (folder / "manifest.json").read_text(encoding="utf-8")
    for secret in (HIDDEN, "size > 0", served.mixed["id"]):
        assert secret not in written


def manifest_read_by(served: Served, user: str, name: str) -> Path:
    """The folder of what a user sees of a dataset, which is written once its frames are read."""
    export = served.ask(user, "GET", f"/v1/datasets/{name}/export")
    assert export.status_code == 200, export.text
    return served.home / str(served.get(user, f"/v1/datasets/{name}")["manifest"])


def secret(served: Served) -> list[str]:
    """Spellings of a dataset that is hidden, and the same of none."""
    return ["hidden", "hidden@1", f"hidden@{served.hidden['version']}", "mixed@1", "hidden@01"]


def without(text: str, name: str) -> str:
    """An answer without the name that was asked for and the request's number."""
    body = json.loads(text)
    body.pop("request_id")
    return json.dumps(body).replace(name, "NAME")


ONE_MORE: Body = {"demands": [{"question": {}, "frames": 1}]}

ROUTES: list[tuple[str, str, Body]] = [
    ("GET", "/v1/datasets/NAME", {}),
    ("GET", "/v1/datasets/NAME", {"headers": {"If-None-Match": "ETAG"}}),
    ("GET", "/v1/datasets/NAME/export", {}),
    ("GET", "/v1/datasets/NAME/export", {"params": {"format": "fiftyone"}}),
    ("GET", "/v1/datasets/NAME/export", {"params": {"format": "parquet", "split": "all"}}),
    ("GET", "/v1/datasets/NAME/export", {"params": {"split": "nothing"}}),
    ("GET", "/v1/datasets/NAME/gaps", {}),
    ("GET", "/v1/datasets/NAME/diff", {"params": {"other": "mixed"}}),
    ("GET", "/v1/datasets/mixed/diff", {"params": {"other": "NAME"}}),
    ("GET", "/v1/frames", {"params": {"dataset": "NAME"}}),
    ("GET", "/v1/classes", {"params": {"dataset": "NAME"}}),
    ("GET", "/v1/classes", {"params": {"dataset": "NAME", "split": "all"}}),
    ("GET", "/v1/statistics/histogram", {"params": {"dataset": "NAME", "tag": "car"}}),
    ("POST", "/v1/datasets/NAME/splits", {"json": {"split": "a=0.5,b=0.5"}}),
    ("POST", "/v1/datasets/NAME/splits", {"json": {"split": "nonsense=7"}}),
    ("POST", "/v1/datasets/NAME/extensions", {"json": ONE_MORE}),
    ("POST", "/v1/stagings", {"json": {"dataset": "NAME"}}),
    ("POST", "/v1/jobs", {"json": {"kind": "train", "dataset": "NAME"}}),
    ("POST", "/v1/jobs", {"json": {"kind": "validate", "dataset": "NAME", "model": "m"}}),
    ("GET", "/v1/stagings", {"params": {"dataset": "NAME"}}),
    ("GET", "/v1/statistics/correlation", {"params": {"dataset": "NAME", "validation": "cora~v"}}),
    ("POST", "/v1/datasets", {"json": {"name": "x", "disjoint_from": ["NAME"]}}),
    ("POST", "/v1/datasets", {"json": {"name": "x", "method": {
        "method": "match", "frames": 1, "like": "NAME", "by": ["camera"]}}}),
]  # fmt: skip
"""Every way to name a dataset."""


@pytest.mark.parametrize(("method", "path", "more"), ROUTES, ids=range(len(ROUTES)))
def test_one_that_is_not_seen_is_not_there(
    served: Served, method: str, path: str, more: Body
) -> None:
    """404, and word for word what is answered of one that was never made."""
    etag = served.ask("root", "GET", "/v1/datasets/hidden").headers["etag"]
    for name, never in zip(
        secret(served), ["nobody", "nobody@1", "nobody@1", "nobody@1", "nobody@01"], strict=True
    ):
        answers = []
        for reference in (name, never):
            sent = json.loads(json.dumps(more).replace("NAME", reference).replace('"ETAG"', "0"))
            if "headers" in sent:
                sent["headers"] = {"If-None-Match": etag}
            answers.append(served.ask("cora", method, path.replace("NAME", reference), **sent))
        assert [answer.status_code for answer in answers] == [404, 404], answers[0].text
        told = [without(a.text, n) for a, n in zip(answers, (name, never), strict=True)]
        assert told[0] == told[1]
        assert "inside" not in told[0]


def test_lists_and_their_cursors(served: Served) -> None:
    """Neither an entry nor a page more than what is seen; others' cursors help nobody."""
    listed = served.get("otto", "/v1/datasets")
    names = [(one["name"], one["version"]) for one in listed["datasets"]]
    assert ("inside", 1) in names
    assert ("mixed", 2) in names
    assert all(name not in ("hidden",) and (name, v) != ("mixed", 1) for name, v in names)
    assert served.get("otto", "/v1/datasets", name="hidden") == {"datasets": [], "next": None}
    assert served.get("none", "/v1/datasets") == {"datasets": [], "next": None}
    everything = [served.get("root", "/v1/datasets", limit=1)]
    while everything[-1]["next"]:
        everything.append(
            served.get("root", "/v1/datasets", limit=1, cursor=everything[-1]["next"])
        )
    for page in everything[:-1]:
        after = served.get("otto", "/v1/datasets", cursor=page["next"])
        assert {(one["name"], one["version"]) for one in after["datasets"]} <= set(names)
    paged, cursor = [], None
    while True:
        page = served.get("otto", "/v1/datasets", limit=1, **({"cursor": cursor} if cursor else {}))
        paged += [(one["name"], one["version"]) for one in page["datasets"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert paged == names
    assert all(earlier < later for earlier, later in pairwise(names))


def test_states_are_of_what_is_seen(served: Served) -> None:
    """The ETag of who sees all fits nothing, and who sees other rows has another one."""
    tags = {
        user: served.ask(user, "GET", "/v1/datasets/mixed").headers["etag"]
        for user in ("root", "otto", "carl")
    }
    assert len(set(tags.values())) == 3
    for user, tag in tags.items():
        for other in ("root", "otto", "carl"):
            again = served.ask(other, "GET", "/v1/datasets/mixed", headers={"If-None-Match": tag})
            assert again.status_code == (304 if user == other else 200)


def test_comparing(served: Served) -> None:
    """Of both only what is seen counts."""
    difference = served.get("otto", "/v1/datasets/mixed/diff", other="inside")
    rows = {name: served.seen_rows(name) for name in ("mixed", "inside")}
    assert (difference["frames_before"], difference["frames_after"]) == tuple(
        map(len, rows.values())
    )
    before, after = ({row["fkey"] for row in some} for some in rows.values())
    assert difference["added"] == sorted(after - before)
    assert difference["removed"] == sorted(before - after)
    assert HIDDEN not in json.dumps(difference)
    assert {value["value"] for value in difference["scenes"]["values"]} == set(SEEN)


@pytest.mark.wide
def test_sets_of_one_s_own(served: Served) -> None:
    """Built by every method, of what is seen; divided, extended, and seen by their maker whole."""
    built: list[Body] = [
        {"method": "sample", "frames": 4, "stratify": ["camera"]},
        {"method": "match", "frames": 4, "like": "mixed", "by": ["camera"], "tolerance": 1},
        {"method": "cover", "demands": [{"question": {"where": "car > 0"}, "frames": 2}]},
        {"method": "uncertain", "tag": "car", "frames": 3},
    ]
    for number, method in enumerate(built):
        dataset = served.make("cora", name=f"built{number}", method=method, seed=3)
        assert dataset["name"] == f"cora~built{number}"
        shown = served.get("cora", f"/v1/datasets/cora~built{number}")
        assert shown == dataset | {"layouts": [{"layout": "a2d2", "sources": ["a2d2"]}]}
        assert (
            dataset["question"]["method"]["method"]
            == dataset["report"]["method"]
            == method["method"]
        )
        assert {row["scene"] for row in served.rows(dataset["name"])} <= set(SEEN)
        assert dataset["owner"] == "cora"
    apart = served.make("cora", name="apart", disjoint_from=["cora~built2"], allow_leakage=True)
    assert HIDDEN not in json.dumps(apart)
    whole = served.make("cora", name="whole")
    assert whole["frames"] == len(served.seen_rows("mixed"))
    answer = served.ask("cora", "POST", "/v1/datasets", json={"name": "whole"})
    assert answer.json() == whole
    assert answer.headers["location"] == "/v1/datasets/cora~whole@1"
    divided = served.make(
        "cora", "/v1/datasets/cora~whole/splits", split="a=0.5,b=0.5", split_by="frame",
        allow_leakage=True,
    )  # fmt: skip
    assert (divided["version"], divided["parents"][0]["name"]) == (2, "cora~whole@1")
    piece = served.make("cora", name="cora~part", question={"scenes": [SEEN[0]]})
    assert piece["name"] == "cora~part"
    grown = served.make(
        "cora", "/v1/datasets/cora~part/extensions", allow_leakage=True,
        demands=[{"question": {"scenes": [SEEN[1]]}, "frames": 2}],
    )  # fmt: skip
    assert grown["frames"] == piece["frames"] + 2


def test_of_an_older_snapshot(served: Served) -> None:
    """The catalog is kept still for who may not write it, too."""
    before = served.get("cora", "/v1/frames", limit=1)["snapshot"]
    tag = served.ask("root", "POST", "/v1/tags", json={"tag": "mood"})
    assert tag.status_code == 201, tag.text
    assert served.get("cora", "/v1/frames", limit=1)["snapshot"] > before
    dataset = served.make("cora", f"/v1/datasets?at={before}", name="old")
    assert dataset["snapshot"] == before
    assert dataset["frames"] == len(served.seen_rows("mixed"))


def test_names_tell_of_nobody_s_datasets(served: Served) -> None:
    """A name that is taken where it is not seen is as free as any; others' names cannot be had."""
    for name in ("hidden", "mixed", "free"):
        dataset = served.make("cora", name=name, question={"scenes": [SEEN[0]]}, seed=77)
        assert (dataset["name"], dataset["version"], dataset["parents"]) == (f"cora~{name}", 1, [])
    for user, name in (("cora", "carl~x"), ("root", "cora~x"), ("cora", "~x"), ("cora", "../x")):
        answer = served.ask(user, "POST", "/v1/datasets", json={"name": name})
        assert answer.status_code == 400, name
    assert served.ask("otto", "POST", "/v1/datasets", json={"name": "x"}).status_code == 403
    assert served.ask("none", "POST", "/v1/datasets", json={"name": "x"}).status_code == 400


def test_what_needs_every_frame(served: Served) -> None:
    """403 that says how many are seen; and what is somebody else's is not changed."""
    seen = len(served.seen_rows("mixed"))
    change = {"splits": {"split": "a=0.5,b=0.5"}, "extensions": ONE_MORE}
    for path, body in (
        *((f"/v1/datasets/mixed/{kind}", body) for kind, body in change.items()),
        ("/v1/stagings", {"dataset": "mixed"}),
        ("/v1/jobs", {"kind": "train", "dataset": "mixed"}),
        ("/v1/jobs", {"kind": "validate", "dataset": "mixed", "model": "m"}),
    ):
        refused = served.ask("cora", "POST", path, json=body)
        assert refused.status_code == 403
        assert f"sees {seen:,} only" in refused.json()["detail"]
        assert str(FRAMES) not in refused.json()["detail"]
        assert served.ask("otto", "POST", path, json=body).status_code == 403
    for kind, body in change.items():
        refused = served.ask("cora", "POST", f"/v1/datasets/inside/{kind}", json=body)
        assert refused.status_code == 403
        assert "did not make it" in refused.json()["detail"]


@pytest.mark.wide
def test_jobs_are_seen_by_who_began_them(served: Served) -> None:
    """Also of a dataset that is seen whole; its stagings are seen by who sees it whole."""
    # Of whichever tests came earlier.
    mine = [one["name"] for one in served.get("cora", "/v1/jobs")["jobs"]]
    models = served.get("cora", "/v1/models")
    begun = served.ask("cora", "POST", "/v1/stagings", json={"dataset": "inside"})
    assert begun.status_code == 202, begun.text
    name = begun.json()["name"]
    deadline = time.monotonic() + 300
    while (job := served.get("cora", f"/v1/jobs/{name}"))["state"] not in ("done", "failed"):
        assert time.monotonic() < deadline, job
        time.sleep(0.2)
    assert job["state"] == "done", job
    by_root = served.ask("root", "POST", "/v1/stagings", json={"dataset": "mixed"}).json()["name"]
    listed = [one["name"] for one in served.get("cora", "/v1/jobs")["jobs"]]
    assert sorted(listed) == sorted([name, *mine])
    assert {name, by_root} <= {one["name"] for one in served.get("root", "/v1/jobs")["jobs"]}
    for user, of in (("otto", name), ("carl", name), ("cora", by_root), ("carl", by_root)):
        for path in ("", "/logs", "/events", "/report", "/files/report.html"):
            answer = served.ask(user, "GET", f"/v1/jobs/{of}{path}")
            assert answer.status_code == 404
            assert "no job named" in answer.text
        if user != "otto":
            assert served.ask(user, "POST", f"/v1/jobs/{of}/cancel").status_code == 404
    assert served.get("otto", "/v1/jobs") == {"jobs": [], "next": None}
    for user, count in (("cora", 1), ("otto", 1), ("carl", 0), ("none", 0)):
        listed = served.get(user, "/v1/stagings")["stagings"]
        assert [one["dataset"] for one in listed] == ["inside@1"] * count
    assert_running_is_seen_as_done_is(served)
    number = served.get("cora", "/v1/stagings")["stagings"][0]["staging"]
    assert served.ask("cora", "GET", f"/v1/stagings/{number}").status_code == 200
    assert served.ask("carl", "GET", f"/v1/stagings/{number}").status_code == 404
    assert served.get("cora", "/v1/models") == models


def assert_running_is_seen_as_done_is(served: Served) -> None:
    """Prove that users see the running stagings of what they see whole, and cancel none of them."""
    cache, found = served.home / "cache", {}
    records = RecordStore(served.home / "records" / "records.sqlite")
    with ExitStack() as stack:
        for name in ("inside", "mixed"):
            of = recorded_dataset(records, name).content_id
            found[name] = stack.enter_context(stager(cache))
            Announcement(found[name], StagingAbout(f"{name}@1", of, "", "root", 2, 9, 2, 9))
        for user, wanted in (
            ("root", {"inside", "mixed"}), ("cora", {"inside"}), ("carl", set[str]()),
        ):  # fmt: skip
            running = served.get(user, "/v1/stagings/running")["running"]
            ours = {one["name"]: one for one in running if one["job"] is None}
            assert set(ours) == {found[name].name for name in wanted}
            assert {one["user"] for one in ours.values()} <= {"root" if user == "root" else ""}
        for name, status in (("inside", 403), ("mixed", 404)):
            path = f"/v1/stagings/running/{found[name].name}"
            assert served.ask("cora", "POST", f"{path}/cancel").status_code == status
            assert not (found[name].folder / "cancel").exists()


def test_a_job_s_name_tells_of_no_other_s(served: Served) -> None:
    """One that somebody else gave is free; a validation is of one's own model."""
    records = RecordStore(served.home / "records" / "records.sqlite")
    owner = Owner("cora", users.recorded(records, "cora").account)
    mine = ("cora~model", *astuple(owner))
    with records.session() as session:
        for name, owner_name, account in (("model", "", ""), mine):
            folder = served.home / "jobs" / name
            of = select(Dataset.id).where(Dataset.name == "inside")
            session.add(
                Job(
                    name=name, kind="train", backend="local", state="done", request={},
                    paths={"folder": str(folder), "logs": str(folder), "model_dir": str(folder)},
                    owner=owner_name, account=account, dataset_id=session.scalar(of),
                )
            )  # fmt: skip
    assert [one["name"] for one in served.get("cora", "/v1/models")["models"]] == ["cora~model"]
    assert served.ask("cora", "GET", "/v1/models/model").status_code == 404
    body = {"kind": "validate", "dataset": "inside", "split": "all"}
    for model in ("model", "never"):
        answer = served.ask("cora", "POST", "/v1/jobs", json={**body, "model": model})
        assert answer.status_code == 404
    for model in ("cora~model", "cora~model@7", "cora~model@best"):
        answer = served.ask("cora", "POST", "/v1/jobs", json={**body, "model": model})
        assert "model cora~model: holds no trained model" in answer.json()["detail"]
        assert str(served.home) not in answer.text
    for model in ("model", "never"):
        answer = served.ask(
            "cora", "GET", "/v1/statistics/correlation", params={"validation": model}
        )
        assert answer.status_code == 404
    workspace = cast(FastAPI, served.client.app).state.workspace.limited_to((), owner)

    def named(name: str) -> Job:
        order = Staging(dataset="none").as_json()
        return submit_command(workspace.records, workspace.job_queue, order, "x", name=name)

    assert (named("mine").name, named("cora~yours").name) == ("cora~mine", "cora~yours")
    with pytest.raises(AlreadyExists, match="cora~model"):
        named("model")
    with pytest.raises(InvalidInput):
        named("carl~x")


@pytest.mark.wide
def test_a_preflight_reads_no_folder_for_a_limited_user(served: Served, tmp_path: Path) -> None:
    """Not below a root that others may name, either, nor over the page; nothing begins."""
    (tmp_path / "team").mkdir()
    settings = Settings(home=served.home, cache=None, source_roots=(tmp_path,))
    body = {"kind": "preflight", "path": str(tmp_path / "team"), "backend": "nowhere"}
    with TestClient(create_app(settings)) as client:
        here = replace(served, client=client)
        for user in ("cora", "carl"):
            for path, sent in (("/v1/jobs", {"json": body}), ("/new-job", {"data": body})):
                headers = {"Sec-Fetch-Site": "same-origin"}
                answer = here.ask(user, "POST", path, headers=headers, **sent)
                assert answer.status_code == 403, answer.text
                assert "users who see every row" in answer.text
        for user in ("dora", "root"):  # there is no such backend: the folder is no matter
            assert "nowhere" in here.ask(user, "POST", "/v1/jobs", json=body).text
        outside = here.ask("dora", "POST", "/v1/jobs", json=body | {"path": str(tmp_path.parent)})
        assert (outside.status_code, "FRAMESIFT_SOURCE_ROOTS" in outside.text) == (403, True)
        assert here.get("root", "/v1/jobs", kind="preflight")["jobs"] == []


def test_what_others_make_of_one_s_own(served: Served) -> None:
    """A version that holds more is seen in part, and does not tell what it was chosen from."""
    served.make("cora", name="shared", question={"scenes": [SEEN[0]]})
    grown = served.make(
        "dora", "/v1/datasets/cora~shared/extensions", allow_leakage=True,
        demands=[{"question": {"scenes": [HIDDEN]}, "frames": 2}],
    )  # fmt: skip
    assert (grown["owner"], grown["version"]) == ("dora", 2)
    answer = served.get("cora", "/v1/datasets/cora~shared")
    assert answer["frames"] == grown["frames"] - 2
    assert (answer["question"], answer["report"], answer["parents"]) == ({}, {}, [])
    demands = {"demands": [{"question": {"scenes": [SEEN[1]]}, "frames": 1}], "allow_leakage": True}
    path = "/v1/datasets/cora~shared/extensions"
    assert served.ask("cora", "POST", path, json=demands).status_code == 403
    # The same frames again, as somebody else chose them: their report is not told.
    by_dora = served.make("dora", "/v1/datasets/cora~shared@1/extensions", **demands)
    by_cora = served.make("cora", "/v1/datasets/cora~shared@1/extensions", **demands)
    assert by_dora["version"] == by_cora["version"] == 3
    assert by_dora["report"]["demands"][0]["available"] > 0
    assert (by_cora["report"], by_cora["owner"]) == ({}, "")
    # Another user of the same scene sees her dataset, and not its question.
    carl = served.get("carl", "/v1/datasets/cora~shared@1")
    assert (carl["frames"], carl["question"], carl["owner"]) == (answer["frames"], {}, "")


@pytest.mark.wide
def test_repeated_requests(served: Served) -> None:
    """A key is its user's; nobody else gets the answer that it is kept with."""
    key = {"Idempotency-Key": "a-key-of-root-s"}
    body = {"name": "keyed", "question": {"scenes": [HIDDEN]}}
    first = served.ask("root", "POST", "/v1/datasets", json=body, headers=key)
    assert first.status_code == 201
    other = served.ask("cora", "POST", "/v1/datasets", json=body, headers=key)
    assert other.status_code == 400  # she sees no such scene
    assert "idempotency-replayed" not in other.headers
    assert first.json()["id"] not in other.text
    assert served.ask("carl", "POST", "/v1/datasets", json=body, headers=key).json()["name"] == (
        "carl~keyed"
    )


def test_what_is_seen_follows_the_collections(served: Served) -> None:
    """Withdrawn, a scene's frames are gone from datasets too, one's own included."""
    dataset = served.make("carl", name="mine", question={"scenes": [SEEN[0], HIDDEN]})
    assert set(dataset["question"]["scenes"]) == {SEEN[0], HIDDEN}
    records = RecordStore(served.home / "records" / "records.sqlite")
    with records.session() as session:
        of = select(Dataset.id).where(Dataset.name == dataset["name"])
        session.add(
            Job(name="carl~job", kind="validate", backend="local", state="done", request={},
                owner="carl", account=users.recorded(records, "carl").account,
                dataset_id=session.scalar(of))
        )  # fmt: skip
    assert served.get("carl", "/v1/jobs/carl~job")["state"] == "done"
    path = f"/v1/collections/{HIDDEN}/users/carl"
    assert served.ask("root", "DELETE", path).status_code == 200
    try:
        answer = served.get("carl", "/v1/datasets/carl~mine")
        assert 0 < answer["frames"] < dataset["frames"]
        assert (answer["question"], answer["report"], answer["owner"]) == ({}, {}, "carl")
        assert HIDDEN not in json.dumps(answer)
        split = served.ask(
            "carl", "POST", "/v1/datasets/carl~mine/splits", json={"split": "a=0.5,b=0.5"}
        )
        assert split.status_code == 403
        for gone in (
            "datasets/hidden",
            "jobs/carl~job",
            "jobs/carl~job/files/frame_scores.parquet",
        ):
            assert served.ask("carl", "GET", f"/v1/{gone}").status_code == 404
    finally:
        assert served.ask("root", "PUT", path).status_code == 200
    shown = served.get("carl", "/v1/datasets/carl~mine")
    assert shown == dataset | {"layouts": [{"layout": "a2d2", "sources": ["a2d2"]}]}
    assert served.get("carl", "/v1/datasets/hidden")["frames"] == served.hidden["frames"]


def test_damaged_and_lost_manifests(served: Served) -> None:
    """What was written for one's eyes is made again; of what is damaged nothing is seen."""
    answer = served.get("otto", "/v1/datasets/mixed")
    folder = manifest_read_by(served, "otto", "mixed")
    written = {file.name: file.read_bytes() for file in folder.iterdir()}
    for name in written:
        (folder / name).unlink()
    assert served.get("otto", "/v1/datasets/mixed") == answer
    assert manifest_read_by(served, "otto", "mixed") == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == written
    dataset = served.make("root", name="damaged", question={"scenes": list(SEEN)})
    frames = Path(dataset["manifest"], "frames.parquet")
    whole = frames.read_bytes()
    frames.write_bytes(b"no table")
    assert served.ask("otto", "GET", "/v1/datasets/damaged").status_code == 404
    assert served.get("otto", "/v1/datasets", name="damaged")["datasets"] == []
    frames.write_bytes(whole)
    assert served.get("otto", "/v1/datasets/damaged")["frames"] == dataset["frames"]


def test_a_snapshot_that_is_gone(served: Served) -> None:
    """Then the newest says what is seen."""
    served.make("root", name="lost", question={"where": "size > 1"})
    records = RecordStore(served.home / "records" / "records.sqlite")
    with records.session() as session:
        session.execute(update(Dataset).where(Dataset.name == "lost").values(snapshot=10**6))
    assert served.get("otto", "/v1/datasets/lost")["frames"] == len(served.seen_rows("mixed"))


def test_a_user_whose_name_is_an_address(served: Served) -> None:
    """The "@" in it is none of a version."""
    records = RecordStore(served.home / "records" / "records.sqlite")
    name = "ann@example.org"
    served.tokens[name] = tokens.log_in(
        records, users.add(records, name, ["collectionadmin"], None)
    )
    row_collections.assign(records, SEEN[0], name)
    dataset = served.make(name, name="hers")
    assert dataset["name"] == f"{name}~hers"
    for user in (name, "otto", "root"):
        for spelled in (dataset["name"], f"{dataset['name']}@1"):
            assert served.get(user, f"/v1/datasets/{spelled}")["frames"] == dataset["frames"]
    assert served.ask(name, "GET", f"/v1/datasets/{dataset['name']}@2").status_code == 404


@pytest.mark.wide
def test_a_frame_without_its_label_is_not_seen(served: Served) -> None:
    """As in selections: neither image nor label alone makes a frame."""
    records = RecordStore(served.home / "records" / "records.sqlite")
    for name, rule in (
        ("images", "filename like '%_camera_%.png'"), ("labels", "filename like '%_label_%.png'"),
    ):  # fmt: skip
        row_collections.add(records, name, rule)
        user = users.add(records, name, ["datauser"], None)
        served.tokens[name] = tokens.log_in(records, user)
        row_collections.assign(records, name, name)
        assert served.get(name, "/v1/datasets") == {"datasets": [], "next": None}
        assert served.ask(name, "GET", "/v1/datasets/mixed").status_code == 404
    row_collections.assign(records, "labels", "images")
    served.tokens["images"] = tokens.log_in(records, users.recorded(records, "images"))
    assert served.get("images", "/v1/datasets/mixed@2")["frames"] == FRAMES


@pytest.mark.wide
def test_many_at_once(served: Served) -> None:
    """Two processes' worth of stores, asked by threads before anything was looked at."""
    workspaces = [open_home(served.home) for _ in range(2)]
    rule = f"{RULES[SEEN[0]]} and size >= 0"  # nobody asked by it before

    def look(number: int) -> list[tuple[str, int, str]]:
        records = workspaces[number % 2].limited_to((rule,), Owner(f"u{number}", "1")).records
        answers = []
        for dataset in recorded_datasets(records):
            manifest = read_manifest(records, dataset)
            assert set(manifest.frames["scene"].to_pylist()) == {SEEN[0]}
            answers.append((dataset.name, len(manifest), dataset.content_id))
        return answers

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(look, range(8)))
    assert answers[0]
    assert all(answer == answers[0] for answer in answers)
    for workspace in workspaces:
        workspace.close()
