"""Datasets over REST and by commands: built, divided, extended, compared, exported."""

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from tests.api.servers import framesift, several
from tests.pipeline.homes import FRAMES, SAMPLE


@pytest.fixture(scope="module")
def client(shared_home: Path) -> Iterator[TestClient]:
    """A server of it."""
    with TestClient(create_app(Settings(home=shared_home), authenticates=False)) as client:
        yield client


def post(client: TestClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a POST makes."""
    answer = client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


METHODS: dict[str, dict[str, Any]] = {
    "sample": {"frames": 6, "stratify": ["car:1,50000"], "allocation": "equal"},
    "match": {"frames": 6, "targets": {"front": {"1": 1}}, "tolerance": 0.1},
    "cover": {"demands": [{"question": {"where": "bicycle > 0"}, "frames": 3, "name": "bikes"}]},
    "uncertain": {"tag": "car", "frames": 4, "per_scene": 1},
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_over_rest(client: TestClient, method: str) -> None:
    """The method is a discriminated union; asked again, the same dataset comes back."""
    request = {"name": method, "method": {"method": method, **METHODS[method]}, "seed": 2}
    dataset = post(client, "/v1/datasets", request)
    assert 0 < dataset["frames"] <= 6
    assert dataset["report"]["method"] == dataset["question"]["method"]["method"] == method
    assert dataset["seed"] == 2
    assert set(dataset["class_frames"]) == set(dataset["class_pixels"])
    assert post(client, "/v1/datasets", request) == dataset


@pytest.mark.parametrize(
    ("method", "status"),
    [
        ({"method": "guess", "frames": 1}, 422),
        ({"frames": 1}, 422),
        ({"method": "sample", "frames": 0}, 422),
        ({"method": "sample", "frames": 1, "stratify": ["car:x"]}, 422),
        ({"method": "sample", "frames": 1, "stratify": ["cra"]}, 400),
        ({"method": "match", "frames": 1}, 422),
        ({"method": "match", "frames": 1, "targets": {"camera": {"front_center": 0.5}}}, 422),
        ({"method": "match", "frames": 1, "like": "nobody"}, 404),
        ({"method": "cover", "demands": []}, 422),
        ({"method": "uncertain", "tag": "camera", "frames": 1}, 400),
    ],
)
def test_a_method_that_cannot_be_used(
    client: TestClient, method: dict[str, Any], status: int
) -> None:
    """A problem document, and no dataset."""
    answer = client.post("/v1/datasets", json={"name": "x", "method": method})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/v1/datasets/x").status_code == 404


def test_divided_extended_compared_and_exported(client: TestClient) -> None:
    """The life of a dataset over REST."""
    first = post(client, "/v1/datasets", {"name": "life", "question": {"where": "bicycle = 0"}})
    second = post(
        client, "/v1/datasets/life/splits",
        {"split": "train=0.6,validation=0.4", "stratify_splits": ["camera"]},
    )  # fmt: skip
    assert (second["version"], second["parents"][0]["id"]) == (2, first["id"])
    assert second["report"]["leakage"]["shared_scenes"] == 0
    gap = {
        "demands": [{"question": {"ranges": [{"tag": "bicycle", "lowest": 1}]}, "frames": 1}],
        "split": "train",
    }
    third = post(client, "/v1/datasets/life/extensions", gap)
    assert third["frames"] == first["frames"] + 1
    fourth = post(client, "/v1/datasets/life@2/reductions", {"frames": 3, "split": "train"})
    assert fourth["splits"] == second["splits"] | {"train": 3}
    refused = client.post("/v1/datasets/life/reductions", json={"frames": 3, "model": "none"})
    assert (refused.status_code, refused.json()["title"]) == (404, "NotFound")
    compared = client.get("/v1/datasets/life@2/diff", params={"other": "life@3"}).json()
    assert (compared["frames_added"], compared["frames_removed"]) == (1, 0)
    assert set(compared["class_pixels"]["distance"]) == {
        "total_variation", "jensen_shannon", "largest_difference",
    }  # fmt: skip
    for format_, lines in (("csv", third["frames"] + 1), ("jsonl", third["frames"])):
        text = client.get("/v1/datasets/life@3/export", params={"format": format_}).text
        assert len(text.splitlines()) == lines
    listed = client.get("/v1/datasets/life@3/export", params={"format": "files", "split": "train"})
    assert len(listed.text.splitlines()) == third["splits"]["train"]
    binary = client.get("/v1/datasets/life@3/export", params={"format": "parquet"}).content
    assert pq.read_table(io.BytesIO(binary)).num_rows == third["frames"]
    document = client.get("/v1/datasets/life@3/export", params={"format": "fiftyone"}).json()
    assert len(document["samples"]) == third["frames"]
    assert client.get("/v1/datasets/life@3/export", params={"format": "xml"}).status_code == 422
    assert client.get("/v1/datasets/life@3/export", params={"split": "x"}).status_code == 400
    assert client.get("/v1/datasets/life/diff", params={"other": "x"}).status_code == 404


@pytest.mark.wide
def test_exports_for_other_trainers(tmp_path: Path) -> None:
    """By the command: of a folder where it lies, of an archive from the cache; not of a server."""
    home, archive = tmp_path / "home", tmp_path / "scenes.tar"
    with tarfile.open(archive, "w") as file:
        for path in SAMPLE.iterdir():
            file.add(path, path.name)

    def run(*words: str | Path, code: int = 0) -> str:
        run = framesift(home, *words)
        assert run.returncode == code, run.stderr
        return run.stdout + run.stderr

    for name, root in (("folder", SAMPLE), ("archive", archive)):
        run("source", "add", name, root, "--layout", "a2d2")
        run("ingest", name)
        run("dataset", "create", name, "--where", f"datasource = '{name}' and bicycle > 0")
    export = ("dataset", "export", "folder", "--format", "mmseg", "--out")
    said = run(*export, tmp_path / "out", "--classes", "a2d2-8")
    frames = len([*(tmp_path / "out" / "ann_dir").rglob("*.png")])
    assert f"{frames} frames: {frames} written, 0 were there already" in said
    assert f"{frames} frames: 0 written, {frames} were" in run(
        *export, tmp_path / "out", "--classes", "a2d2-8"
    )
    assert "with other classes" in run(*export, tmp_path / "out", code=1)
    of_archive = ("dataset", "export", "archive", "--format", "hf", "--out", tmp_path / "hf")
    assert "framesift stage archive@1" in run(*of_archive, code=1)
    run("stage", "archive")
    assert f"{frames} frames: {frames} written" in run(*of_archive)
    for words, refusal in (
        (("--format", "coco"), "give one with --out"),
        (("--format", "coco", "--with-labels", "--out", tmp_path / "x"), "has its masks"),
        (("--format", "csv", "--classes", "a2d2-8"), "has neither masks nor shards"),
        (("--format", "coco", "--out", tmp_path / "x", "--split", "none"), "split 'none'"),
    ):
        assert refusal in run("dataset", "export", "folder", *words, code=1)
    server = {"FRAMESIFT_SERVER": "http://127.0.0.1:9"}
    refused = framesift(home, *export, tmp_path / "x", variables=server)
    assert "without --server" in refused.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.wide
def test_the_commands(shared_home: Path, tmp_path: Path) -> None:
    """Every option of building a set, on the command line."""
    shares, out = tmp_path / "shares.csv", tmp_path / "fiftyone"
    shares.write_text("tag,value,share\nfront,1,0.75\nfront,0,0.25\n")
    made_of = {
        "cli": ["create", "cli", "--sample", "12", "--stratify", "camera,car:1,50000",
                "--allocate", "equal", "--split", "train=0.5,validation=0.5",
                "--stratify-splits", "car", "--seed", "3"],
        "matched": ["create", "matched", "--match", str(shares), "--frames", "8"],
        "like": ["create", "like", "--match", "dataset:matched", "--match-by", "front",
                 "--frames", "4", "--disjoint-from", "cli", "--tolerance", "0.5"],
        "cover": ["create", "covering", "--cover", "bicycle=2,car:50000=3",
                  "--cover-where", "front = 0=1"],
        "unsure": ["create", "unsure", "--uncertain", "car", "--budget", "5", "--per-scene", "1"],
        "reduced": ["reduce", "cli", "--frames", "2", "--split", "train", "--seed", "1"],
        "split": ["split", "covering", "--split", "a=0.5,b=0.5", "--split-by", "frame",
                  "--allow-leakage"],
        "grown": ["extend", "covering", "--gap", f"car={FRAMES}", "--grow", "b", "--allow-leakage"],
        "diff": ["diff", "covering@1", "covering"],
    }  # fmt: skip
    show_commands = [
        *(["show", name] for name in ("covering", "matched", "cli", "unsure")),
        ["diff", "matched", "like"],
        ["export", "covering", "--format", "files", "--with-labels"],
    ]
    written = ["export", "covering", "--format", "fiftyone", "--out", str(out)]
    commands = [*([*command, "--json"] for command in made_of.values()), *show_commands, written]
    ended = several(shared_home, *[["dataset", *command] for command in commands])
    assert [(status, err) for status, _, err in ended] == [(0, "")] * len(commands)
    said = [text for _, text, _ in ended]
    datasets = {name: json.loads(text) for name, text in zip(made_of, said, strict=False)}
    cli = datasets["cli"]
    assert (cli["frames"], cli["seed"], set(cli["splits"])) == (12, 3, {"train", "validation"})
    assert datasets["matched"]["report"]["tolerance_met"] is True
    (front,) = datasets["matched"]["report"]["marginals"]
    assert {row["value"]: row["frames"] for row in front["values"]} == {"0": 2, "1": 6, "*": 0}
    assert datasets["like"]["report"]["disjoint_from"] == ["cli@1"]
    demands = datasets["cover"]["report"]["demands"]
    assert [one["demand"] for one in demands] == ["bicycle", "car:50000", "front = 0"]
    assert datasets["cover"]["report"]["unmet"] == []
    assert datasets["unsure"]["frames"] == 5
    assert datasets["reduced"]["splits"]["train"] == 2
    assert datasets["split"]["report"]["leakage"]["guard"] is False
    assert datasets["grown"]["parents"][0]["name"] == "covering@2"
    assert datasets["diff"]["frames_removed"] == 0
    for text in said[len(made_of) : -2]:
        assert len(text.splitlines()) > 4
    assert all(len(line.split("\t")) == 2 for line in said[-2].splitlines())
    assert (out / "samples.json").is_file()
