"""Statistics by command and by server: both answer the same, and what plain SQL counts."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.http.negotiation import ROW_TYPES
from api.settings import Settings
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Job
from catalog.records.tag_definitions import recorded_class_names
from pipeline.manifest import Manifest
from query.run.run_sql import run_sql
from tests.api.servers import framesift, several
from tests.api.test_negotiation import table_of
from tests.pipeline.homes import FRAMES, SAMPLE, copy_home, open_home
from training.validation.frame_summary import FrameSummary
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.table import METRICS
from training.validation.report import build_report
from training.validation.shard_file import About, ShardResult, metrics_of, open_shard

PIXELS = 1920 * 1208


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a divided dataset, a model trained on it, and a validation of that."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("statistics"))
    run = framesift(
        home, "dataset", "create", "city", "--range", "car=1:",
        "--split", "train=0.6,validation=0.4",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    workspace = open_home(home)
    dataset = recorded_dataset(workspace.records, "city")
    model_dir = home / "jobs" / "t" / "model"
    report = home / "jobs" / "v" / "report" / "report.json"
    report.parent.mkdir(parents=True)
    report.write_text(json.dumps(a_report(Path(dataset.manifest), model_dir)))
    command = ["python", "-m", "training.main", "--split", "train", "--threads", "1"]
    request = {"stages": [{"title": "train", "commands": [command]}]}
    with workspace.records.session() as session:
        session.add_all(
            Job(
                name=name, kind=kind, backend="local", state=state, dataset_id=dataset.id,
                request=request, paths=paths,
            )
            for name, kind, state, paths in (
                ("t", "train", "done", {"model_dir": str(model_dir)}),
                ("v", "validate", "done", {"model_dir": str(model_dir), "report": str(report)}),
                ("failed", "validate", "failed", {"model_dir": str(model_dir), "report": "x"}),
                ("alone", "train", "done", {"model_dir": str(home / "other")}),
            )
        )  # fmt: skip
    return home


def a_report(manifest: Path, model_dir: Path) -> dict[str, Any]:
    """A validation's report as training writes it, of a made-up confusion matrix."""
    header = Manifest.read(manifest).header
    classes, tags = header.classes, header.class_list.tags
    random = np.random.default_rng(3)
    matrix = random.integers(0, 1000, (len(classes), len(classes)))
    matrix += np.diag(random.integers(0, 100_000, len(classes)))
    matrix[-1, :] = matrix[:, -1] = 0  # a class in neither truth nor prediction
    about = About(
        "a" * 64, str(model_dir), 300, classes, tags, tuple((tag,) for tag in tags), "city", 1, "d",
        "validation", 0, 0, 1,
    )  # fmt: skip
    metrics = {name: metric.empty(len(classes)) for name, metric in METRICS.items()}
    metrics["scores"] = Confusion(matrix, np.ones(len(classes), np.int64))
    with tempfile.TemporaryDirectory() as folder:
        shard, sums = open_shard(ShardResult(about, metrics, []).write(Path(folder)))
        return build_report([shard], metrics_of(sums, len(classes)), FrameSummary())


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[TestClient]:
    """The application on that home."""
    with TestClient(create_app(Settings(home=home, cache=None), authenticates=False)) as client:
        yield client


SOME = ["--has", "sky", "--tag", "car>5000", "--camera", "front_center"]
SOME_QUERY = {"range": "sky=1:", "where": "car > 5000", "camera": "front_center"}
SHOWN = (
    ["classes"], ["classes", "--by", "camera"], ["classes", "--by", "scene", "--quantiles"],
    ["classes", "--quantiles"], ["histogram", "car", "--log", "car"],
    ["histogram", "camera", "bicycle", "--bins", "3"], ["histogram", "front"],
    ["histogram", "mtime", "--bins", "2"], ["facets", "car", "camera", *SOME], ["correlate", "v"],
    ["gaps", "city", "--split", "validation"], ["dataset", "create", "everything"],
    ["gaps", "everything"],
)  # fmt: skip
ANSWERED = (
    ["classes"], ["classes", *SOME, "--quantiles"], ["classes", "--by", "camera"],
    ["classes", "--dataset", "city@1", "--split", "validation"],
    ["classes", "--dataset", "city@1", "--split", "train"],
    ["histogram", "car", "--log", "car", "--bins", "5"],
    ["histogram", "camera", "Bicycle", "--zero", "Bicycle", *SOME],
    ["histogram", "car", "--edges", "car=1,10000,20000"], ["facets", "car", "camera", *SOME],
    ["correlate", "v"], ["correlate", "t"], ["correlate", "v", "--dataset", "city"],
    ["gaps", "city", "--split", "validation", "--at-least", "2"],
)  # fmt: skip


class Ended:
    """Commands that have run."""

    def __init__(self, home: Path, *commands: list[str]) -> None:
        """Run them in one process: starting Python takes seconds."""
        self._ended = dict(zip(map(tuple, commands), several(home, *commands), strict=True))

    def shown(self, *words: str) -> list[str]:
        """The lines that a person sees."""
        status, out, err = self._ended[words]
        assert (status, err) == (0, "")
        return str(out).splitlines()

    def answered(self, *words: str) -> Any:
        """The JSON document that a program gets."""
        return json.loads("\n".join(self.shown(*words, "--json")))

    def failed(self, *words: str) -> str:
        """The one line of a command that failed."""
        status, out, err = self._ended[words]
        assert (status, out, err.count("\n")) == (1, "", 1), (words, out, err)
        return str(err)


@pytest.fixture(scope="module")
def ended(home: Path) -> Ended:
    """SHOWN on that home, and ANSWERED with --json."""
    return Ended(home, *SHOWN, *([*words, "--json"] for words in ANSWERED))


def get(client: TestClient, path: str, **query: Any) -> Any:
    """The answer of the server."""
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def counted(home: Path, statement: str) -> int:
    """What a statement over Discover's views counts."""
    (row,) = run_sql(open_home(home).catalog, statement).rows.to_pylist()
    return int(next(iter(row.values())))


@pytest.mark.wide
def test_classes(home: Path, client: TestClient, ended: Ended) -> None:
    """Plain, of a question, by camera, with quantiles, of a dataset's split."""
    plain = ended.answered("classes")
    some = ended.answered("classes", *SOME, "--quantiles")
    by = ended.answered("classes", "--by", "camera")
    split = ended.answered("classes", "--dataset", "city@1", "--split", "validation")
    assert get(client, "/v1/classes") == {"classes": plain}
    assert get(client, "/v1/classes", quantiles="true", **SOME_QUERY) == some
    assert get(client, "/v1/classes", by="camera") == by
    assert get(client, "/v1/classes", dataset="city", split="validation") == split
    tree = {"kind": "all", "of": [
        {"kind": "has", "tag": "sky"}, {"kind": "tag", "tag": "car", "op": ">", "value": 5000}
    ]}  # fmt: skip
    question = json.dumps({"condition": tree, "cameras": ["front_center"]})
    assert get(client, "/v1/classes", question=question, quantiles="true") == some
    statement = (
        "select count(*) from t_car, t_sky, t_camera where t_car.fkey = t_sky.fkey and t_car.fkey "
        "= t_camera.fkey and int(t_car.value) > 5000 and int(t_sky.value) >= 1 and "
        "t_camera.value = 'front_center'"
    )
    assert some["frames"] == counted(home, statement) > 0
    car = some["classes"][0]
    assert (car["tag"], car["presence"]) == ("car", 1.0)
    assert car["pixel_quantiles"]["min"] > 5000
    assert car["share_quantiles"]["max"] == car["pixel_quantiles"]["max"] / PIXELS
    assert [c["share"] for c in by["classes"]] == [c["share"] for c in plain]
    assert sum(group["frames"] for group in by["groups"]) == by["frames"] == FRAMES
    dataset = recorded_dataset(open_home(home).records, "city")
    assert split["frames"] == dataset.splits["validation"]
    assert split["snapshot"] == dataset.snapshot


@pytest.mark.wide
def test_classes_on_the_terminal(home: Path, ended: Ended) -> None:
    """Every class in a line with its share; groups side by side; quantiles of what is there."""
    names = recorded_class_names(open_home(home).records)
    assert [line.split()[0] for line in ended.shown("classes")[1:]] == list(names)
    head, *lines, last = ended.shown("classes", "--by", "camera")
    assert head.split()[:3] == ["share", "%", "all"]
    assert [line.split()[0] for line in lines] == list(names)
    assert last.split()[:2] == ["frames", str(FRAMES)]
    scenes = ended.shown("classes", "--by", "scene", "--quantiles")
    assert sum(line.startswith("== ") for line in scenes) == 8
    quantiles = ended.shown("classes", "--quantiles")
    assert not any(line.startswith("rain_dirt") for line in quantiles)
    assert quantiles[-1] == f"{FRAMES} frames, snapshot 3"


@pytest.mark.wide
def test_histograms(home: Path, client: TestClient, ended: Ended) -> None:
    """The counts add up to the frames and are what SQL counts."""
    one = ended.answered("histogram", "car", "--log", "car", "--bins", "5")
    two = ended.answered("histogram", "camera", "Bicycle", "--zero", "Bicycle", *SOME)
    edges = ended.answered("histogram", "car", "--edges", "car=1,10000,20000")
    path = "/v1/statistics/histogram"
    assert get(client, path, tag="car", log="car", bins=5) == one
    both = {"tag": ["camera", "Bicycle"], "zero": "Bicycle", **SOME_QUERY}
    assert get(client, path, **both) == two
    assert get(client, path, tag="car", edges="car=1,10000,20000") == edges
    assert sum(one["counts"]) == one["frames"] == FRAMES
    assert sum(map(sum, two["counts"])) == two["frames"] < FRAMES
    assert [bin_["kind"] for bin_ in edges["axes"][0]["bins"]] == [
        "null", "below", "range", "range", "above"
    ]  # fmt: skip
    conditions = ("< 1", ">= 1 and {} < 10000", ">= 10000 and {} <= 20000", "> 20000")
    assert edges["counts"] == [0] + [
        counted(home, f"select count(*) from t_car where {c} {condition.format(c)}")
        for condition in conditions
        for c in ("int(t_car.value)",)
    ]


def test_facets(client: TestClient, ended: Ended) -> None:
    """By command and by server: the histogram of each tag under the other conditions, in one."""
    question = {
        "condition": {"kind": "all", "of": [
            {"kind": "has", "tag": "sky"},
            {"kind": "tag", "tag": "car", "op": ">", "value": 5000},
            {"kind": "camera", "names": ["front_center"]},
        ]},
    }  # fmt: skip
    asked = {"question": question, "tags": ["car", "camera"]}
    answer = client.post("/v1/statistics/facets", json=asked).json()
    told = ended.answered("facets", "car", "camera", *SOME)
    for each in (answer, told):
        each.pop("note")
        each.pop("in_memory")
    assert answer == told
    camera, car = answer["facets"]
    assert (camera["tag"], car["name"], car["asked"]) == ("camera", "Car", True)
    under = {"range": "sky=1:", "camera": "front_center"}
    by_itself = client.get("/v1/statistics/histogram", params={"tag": "car", **under}).json()
    assert sum(car["counts"]) == by_itself["frames"] > answer["matching"] > 0
    last = ended.shown("facets", "car", "camera", *SOME)[-1]
    assert last.startswith(f"{answer['matching']} of 24 frames")
    rows = client.post("/v1/statistics/facets", json=asked, headers={"Accept": "text/csv"}).text
    assert rows.splitlines()[0] == '"tag","kind","low","high","value","of_all","frames"'
    ordered = client.post("/v1/statistics/facets", json={"question": {"limit": 3}})
    assert (ordered.status_code, "limit" in ordered.text) == (400, True)


def test_histograms_on_the_terminal(ended: Ended) -> None:
    """Bins below each other with bars; of two tags a table with sums."""
    lines = ended.shown("histogram", "car", "--log", "car")
    assert lines[0].split() == ["car", "frames", "%"]
    assert lines[1].split()[0] == "0"
    assert any(line.endswith("\N{FULL BLOCK}" * 20) for line in lines)
    assert lines[-1] == f"{FRAMES} frames, snapshot 3"
    two = ended.shown("histogram", "camera", "bicycle", "--bins", "3")
    cameras = [line for line in two if line.startswith(("front", "side", "rear"))]
    assert sum(int(line.split()[-1]) for line in cameras) == FRAMES
    assert [line.split()[0] for line in ended.shown("histogram", "front")[1:3]] == ["0", "1"]
    times = ended.shown("histogram", "mtime", "--bins", "2")
    assert times[1].startswith("20")


def test_correlation(home: Path, client: TestClient, ended: Ended, tmp_path: Path) -> None:
    """Of a validation, of a model's newest, of its report; shares are the training split's."""
    report = home / "jobs" / "v" / "report" / "report.json"
    iou = {entry["tag"]: entry["iou"] for entry in json.loads(report.read_text())["per_class"]}
    plain = tmp_path / "iou.json"
    titles = recorded_class_names(open_home(home).records)
    plain.write_text(json.dumps({titles[tag]: value for tag, value in iou.items()}))
    files = Ended(home, *(["correlate", str(path), "--json"] for path in (report, plain)))
    of_job, of_model = ended.answered("correlate", "v"), ended.answered("correlate", "t")
    of_file = files.answered("correlate", str(report))
    of_plain = files.answered("correlate", str(plain))
    of_all = ended.answered("correlate", "v", "--dataset", "city")
    shares = ended.answered("classes", "--by", "camera")
    train = ended.answered("classes", "--dataset", "city@1", "--split", "train")
    path = "/v1/statistics/correlation"
    assert get(client, path, validation="v") == get(client, path, validation="t") == of_job
    assert of_model == of_job
    assert of_file == {**of_job, "validation": str(report)}
    assert (of_job["dataset"], of_job["split"]) == ("city@1", "train")
    assert {c["tag"]: c["iou"] for c in of_job["classes"]} == iou
    assert {c["tag"]: c["share"] for c in of_job["classes"]} == {
        c["tag"]: c["share"] for c in train["classes"]
    }
    assert (of_all["dataset"], of_all["split"]) == ("city@1", None)
    # A file that names no model: the whole catalog's shares.
    assert (of_plain["dataset"], of_plain["split"], of_plain["snapshot"]) == (None, None, 3)
    assert {c["tag"]: c["frames"] for c in of_plain["classes"]} == {
        c["tag"]: c["frames"] for c in shares["classes"]
    }
    scored = [c for c in of_job["classes"] if c["iou"] is not None]
    assert of_job["scored"] == len(scored) == len(iou) - 1
    assert [c["iou"] for c in scored] == sorted(c["iou"] for c in scored)
    x, y = np.array([(c["share"], c["iou"]) for c in scored]).T
    assert of_job["pearson"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert -1 <= of_job["spearman"] <= 1
    table = ended.shown("correlate", "v")
    assert table[1].split()[0] == scored[0]["tag"]
    assert table[-1].startswith(f"v: IoU of {len(scored)} classes against their share in split tr")


@pytest.mark.wide
def test_gaps(home: Path, client: TestClient, ended: Ended) -> None:
    """What the validation split lacks: true counts, and commands that find the frames."""
    gaps = ended.answered("gaps", "city", "--split", "validation", "--at-least", "2")
    assert get(client, "/v1/datasets/city/gaps", split="validation", at_least=2) == gaps
    dataset = recorded_dataset(open_home(home).records, "city")
    manifest = Manifest.read(Path(dataset.manifest))
    fkeys = manifest.frames["fkey"].to_pylist()
    assert gaps["frames"] == dataset.splits["validation"]
    assert {gap["kind"] for gap in gaps["gaps"]} == {"class", "camera"}
    classes = [gap for gap in gaps["gaps"] if gap["kind"] == "class" and gap["catalog_frames"]]
    assert classes
    listed = ", ".join(f"'{fkey}'" for fkey in fkeys)
    for gap in classes:
        assert gap["frames"] < 2
        having = f"select count(*) from t_{gap['value']} where int(value) > 0"
        assert gap["catalog_frames"] == counted(home, having)
        assert gap["new_frames"] == counted(home, f"{having} and fkey not in ({listed})")
    words = classes[0]["command"].split()[1:]
    selection = Ended(home, [*words, "--json"]).answered(*words)
    assert selection["count"] == classes[0]["catalog_frames"]
    assert selection["question"] == classes[0]["question"]
    scenes = get(client, "/v1/datasets/city@1/gaps", split="validation", scenes="true")
    everywhere = {path.name for path in (SAMPLE / "camera_lidar_semantic").iterdir()}
    here = set(manifest.split("validation").frames["scene"].to_pylist())
    missing = {gap["value"] for gap in scenes["gaps"] if gap["kind"] == "scene"}
    assert missing == {name for name in everywhere if name[:8].isdigit()} - here


def test_gaps_on_the_terminal(ended: Ended) -> None:
    """A line for each, with the command."""
    lacking = ended.shown("gaps", "city", "--split", "validation")
    assert lacking[0].split()[0] == "lacks"
    assert any("framesift select --range " in line for line in lacking)
    assert lacking[-1].startswith("split validation of city@1")
    assert not any(line.startswith("camera ") for line in ended.shown("gaps", "everything"))


@pytest.mark.wide
@pytest.mark.usefixtures("ended")
def test_tables(client: TestClient) -> None:
    """A class, a gap, a frame that differs are a row each, with JSON's values; or there is none."""
    correlation = get(client, "/v1/statistics/correlation", validation="v")["classes"]
    gaps = get(client, "/v1/datasets/city/gaps", split="validation", at_least=2, scenes="true")
    diff = get(client, "/v1/datasets/city/diff", other="everything@1")
    lacking = [
        {"question": None, "command": None, **gap}
        | {"question": gap.get("question") and json.dumps(gap["question"])}
        for gap in gaps["gaps"]
    ]
    assert {gap["question"] is None for gap in lacking} == {True, False}
    changed = [("added", fkey) for fkey in diff["added"]]
    changed += [("removed", fkey) for fkey in diff["removed"]]
    changed += [("moved", moved["fkey"]) for moved in diff["moved"]]
    assert len({change for change, _ in changed}) > 1
    for kind in ROW_TYPES[1:]:
        accept = {"Accept": kind}

        def rows(path: str, accept: dict[str, str] = accept, **params: Any) -> list[Any]:
            answer = client.get(path, params=params, headers=accept)
            assert "accept" in answer.headers["vary"].lower()
            entries: list[dict[str, Any]] = table_of(answer).to_pylist()
            # No cell of CSV tells null from an empty text.
            return [{key: value or None for key, value in row.items()} for row in entries]

        scores = rows("/v1/statistics/correlation", validation="v")
        assert scores == [{k: v or None for k, v in score.items()} for score in correlation]
        params: dict[str, Any] = {"split": "validation", "at_least": 2, "scenes": "true"}
        entries = rows("/v1/datasets/city/gaps", **params)
        assert entries == [{k: gap[k] or None for k in entries[0]} for gap in lacking]
        entries = rows("/v1/datasets/city/diff", other="everything@1")
        assert [(row["change"], row["fkey"]) for row in entries] == changed
        sides = {"added": (False, True), "removed": (True, False), "moved": (True, True)}
        for row in entries:
            assert (bool(row["before"]), bool(row["after"])) == sides[row["change"]]
        few = rows("/v1/datasets/city/diff", other="everything@1", limit=1)
        assert [row["change"] for row in few] == list(
            dict.fromkeys(change for change, _ in changed)
        )
        if kind not in ("text/csv", "application/x-ndjson"):
            none = client.get("/v1/datasets/city/diff", params={"other": "city"}, headers=accept)
            assert table_of(none).schema.names == ["fkey", "change", "before", "after"]
    for path, query in (
        ("/v1/statistics/correlation", {"validation": "v"}), ("/v1/datasets/city/gaps", {}),
        ("/v1/datasets/city/diff", {"other": "city"}),
    ):  # fmt: skip
        answer = client.get(path, params=query, headers={"Accept": "application/pdf"})
        assert answer.status_code == 406
        assert "text/csv" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "query", "status", "title", "detail"),
    [
        ("/v1/classes", {"by": "weather"}, 422, "InvalidRequest", "query.by: "),
        ("/v1/classes", {"bye": "camera"}, 422, "InvalidRequest", "query.bye: "),
        ("/v1/classes", {"at": "0"}, 422, "InvalidRequest", "query.at: "),
        ("/v1/classes", {"range": "car"}, 400, "InvalidInput", "range 'car': expected"),
        ("/v1/classes", {"range": "cra=1:"}, 400, "UnknownName", "unknown class 'cra'"),
        ("/v1/classes", {"where": "car >"}, 400, "SqlError", "SQL0104N"),
        ("/v1/classes", {"camera": "nose"}, 400, "UnknownName", "unknown camera 'nose'"),
        ("/v1/classes", {"dataset": "nobody"}, 404, "NotFound", "no dataset named 'nobody'"),
        ("/v1/classes", {"question": "{"}, 400, "InvalidInput", "question: "),
        ("/v1/classes", {"question": '{"limit": 3}'}, 400, "InvalidInput", "statistics are of all"),
        (
            "/v1/classes", {"question": "{}", "range": "car=1:"},
            400, "InvalidInput", "question: it takes the place of range",
        ),
        (
            "/v1/classes", {"question": '{"snapshot": 2}', "at": 3},
            400, "InvalidInput", "snapshot 3: the question is asked of snapshot 2",
        ),
        ("/v1/classes", {"split": "x"}, 400, "InvalidInput", "split x: of which dataset"),
        ("/v1/classes", {"dataset": "city", "split": "x"}, 400, "UnknownName", "unknown split"),
        ("/v1/statistics/histogram", {}, 422, "InvalidRequest", "query.tag: "),
        ("/v1/statistics/histogram", {"tag": ["a", "b", "c"]}, 422, "InvalidRequest", "query.tag"),
        ("/v1/statistics/histogram", {"tag": "carr"}, 400, "UnknownName", "unknown tag 'carr'"),
        ("/v1/statistics/histogram", {"tag": "car", "bins": 0}, 422, "InvalidRequest", "query.bi"),
        (
            "/v1/statistics/histogram", {"tag": "car", "edges": "car=2,1"},
            400, "InvalidInput", "edges of car: expected 2 to 1001 rising numbers, got 2, 1",
        ),
        (
            "/v1/statistics/histogram", {"tag": "car", "edges": "1,2"},
            400, "InvalidInput", "edges '1,2': expected TAG=EDGE,EDGE,...",
        ),
        (
            "/v1/statistics/histogram", {"tag": "car", "log": "bicycle"},
            400, "UnknownName", "unknown tag 'bicycle'",
        ),
        ("/v1/statistics/correlation", {}, 422, "InvalidRequest", "query.validation: "),
        (
            "/v1/statistics/correlation", {"validation": "/etc/hostname"},
            404, "NotFound", "no validation named '/etc/hostname'",
        ),
        (
            "/v1/statistics/correlation", {"validation": "failed"},
            400, "InvalidInput", "validation failed is failed",
        ),
        (
            "/v1/statistics/correlation", {"validation": "alone"},
            400, "InvalidInput", "model alone has no finished validation",
        ),
        (
            "/v1/statistics/correlation", {"validation": "v", "split": "train"},
            400, "InvalidInput", "split train: of which dataset",
        ),
        ("/v1/datasets/nobody/gaps", {}, 404, "NotFound", "no dataset named 'nobody'"),
        ("/v1/datasets/city/gaps", {"split": "x"}, 400, "UnknownName", "unknown split 'x'"),
        ("/v1/datasets/city/gaps", {"at_least": 0}, 422, "InvalidRequest", "query.at_least"),
        ("/v1/datasets/city/gaps", {"at": 99}, 404, "NotFound", "no snapshot named '99'"),
    ],
)  # fmt: skip
def test_problems(
    client: TestClient, path: str, query: dict[str, Any], status: int, title: str, detail: str
) -> None:
    """Each a problem document that says what was wrong."""
    answer = client.get(path, params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status, "application/problem+json",
    )  # fmt: skip
    body = answer.json()
    assert body["title"] == title
    assert body["detail"].startswith(detail), body["detail"]


def test_reports_that_cannot_be_used(home: Path, tmp_path: Path) -> None:
    """One line that names the file and what was expected."""
    contents = {
        "cut.json": '{"per_class": [{"tag": "car", "io',
        "list.json": "[1]",
        "large.json": '{"car": 41.0}',
        "entry.json": '{"per_class": [{"tag": "car"}]}',
        "nan.json": '{"car": NaN}',
        "bytes.json": "",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "others.json").write_text('{"moon": 0.5}')
    commands = [
        ["correlate", str(tmp_path / name)] for name in [*contents, "others.json", "no.json"]
    ]
    ended = Ended(home, *commands)
    for words in commands:
        line = ended.failed(*words)
        assert line.startswith("error: ")
        assert Path(words[1]).name in line


@pytest.mark.wide
def test_the_description_has_schemas_and_examples(client: TestClient) -> None:
    """/openapi.json: a response model for each, with examples."""
    description = client.get("/openapi.json").json()
    for path in (
        "/v1/classes", "/v1/statistics/histogram", "/v1/statistics/correlation",
        "/v1/datasets/{name}/gaps",
    ):  # fmt: skip
        answer = description["paths"][path]["get"]["responses"]["200"]
        name = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert description["components"]["schemas"][name]["properties"]
    schemas = description["components"]["schemas"]
    assert schemas["Gap"]["properties"]["sentence"]["examples"]
    names = {
        parameter["name"] for parameter in description["paths"]["/v1/classes"]["get"]["parameters"]
    }
    assert names >= {"by", "quantiles", "range", "where", "camera", "scene", "dataset", "at"}
