"""The pages of jobs, without a browser: what they show, and what their forms do."""

import json
import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from api.app import create_app
from api.services.jobs.confused_frames import confused_frames
from api.services.session import Session
from api.settings import Settings
from api.web.run.curves import Curve, curves_of, plots_of
from catalog.errors import UnknownName
from catalog.records.tables import Job
from pipeline.jobs.request import JobPaths
from tests.api.web.jobs import HOSTILE, home_with_jobs
from tests.api.web.predicted import home_with_prediction
from tests.pipeline.homes import open_home
from training.merge_scores import FRAME_CELLS_SCHEMA

HERE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def browser(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser at a server that asks nobody who they are."""
    home = home_with_jobs(catalogued, tmp_path_factory.mktemp("jobs"))
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


def shown(browser: TestClient, path: str) -> str:
    """A page."""
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    assert HOSTILE not in answer.text
    assert " style=" not in answer.text  # the policy forbids it
    return answer.text


def test_jobs_are_listed_and_compared(browser: TestClient) -> None:
    """Each with its state and progress; those that are ticked side by side, with what differs."""
    listed = shown(browser, "/jobs")
    for name, state in (("first", "done"), ("broken", "failed"), ("v-first", "done")):
        assert f'href="/jobs/{name}"' in listed
        assert f'class="state {state}"' in listed
    compared = shown(browser, "/jobs?job=first&job=broken")
    assert re.search(r">loss</th><td[^>]*>0.42</td><td[^>]*>2.5<", compared)
    assert ">seed</th>" in compared
    assert ">batch size</th>" not in compared
    assert browser.get("/jobs?job=none").status_code == 404


def test_jobs_are_searched_and_those_ticked_stay(browser: TestClient) -> None:
    """A search takes the list alone; what is ticked stays, first, to be compared with another."""
    rows = r'name="job" value="([^"]+)"( checked)?'
    named = re.findall(rows, shown(browser, "/jobs?holding=V-FIR"))
    assert named == [("v-first", "")]
    both = re.findall(rows, shown(browser, "/jobs?holding=first"))
    assert {name for name, _ in both} == {"first", "v-first"}
    part = browser.get("/jobs?holding=v-f&job=broken", headers={"HX-Request": "true"}).text
    assert re.findall(rows, part) == [("broken", " checked"), ("v-first", "")]
    assert "Side by side" not in part
    compared = shown(browser, "/jobs?holding=v-f&job=broken&job=v-first&job=broken")
    assert re.findall(rows, compared) == [("broken", " checked"), ("v-first", " checked")]
    assert "Side by side" in compared
    assert 'name="holding" value="v-f"' in compared
    assert "No job has this in its name." in shown(browser, "/jobs?holding=zzz")
    assert browser.get(f"/jobs?holding={201 * 'z'}").status_code == 422


def test_a_job_shows_its_curves_error_and_logs(browser: TestClient) -> None:
    """What a program printed is text, whatever it looks like."""
    page = shown(browser, "/jobs/first")
    assert "loss: 0.15 at step 20" in page
    assert "mean IoU: 0.4 at step 20" in page
    assert page.count("<polyline") == 3
    assert "Resume" not in page
    broken = shown(browser, "/jobs/broken")
    assert HOSTILE in unescape(broken)
    assert 'action="/jobs/broken/resume"' in broken
    assert "step 1" in shown(browser, "/jobs/broken/output")
    assert browser.get("/jobs/none").status_code == 404
    assert browser.get("/jobs/first/events").text.startswith("retry:")


def test_a_programs_job_shows_its_curves_and_checkpoints(browser: TestClient) -> None:
    """What it logs is drawn as a training's is, beside a training, too; its names are text."""
    page = shown(browser, "/jobs/mine")
    assert "loss: 1.5 at step 3" in page
    assert "mean IoU: 0 at step 3" in page
    assert f"{HOSTILE}: 1 at step 1" in unescape(page)
    assert page.count("<polyline") == 3
    rows = re.findall(
        r'<th scope="row" class="number">([\d,]+)</th><td[^>]*>([^<]*)</td><td[^>]*>(.*?)<', page
    )
    assert [(step, unescape(path), metrics) for step, path, metrics in rows] == [
        ("1,200", f"{HOSTILE}-1200.pt", "miou 0.25"), ("1", f"{HOSTILE}-1.pt", "miou 0.25"),
    ]  # fmt: skip
    assert "1 line is left out" in page
    plots = browser.get("/curves?job=mine&job=broken").json()["plots"]
    assert [plot["name"] for plot in plots] == ["loss", "mean IoU", "images a second", HOSTILE]
    assert [run["job"] for run in plots[0]["runs"]] == ["mine", "broken"]
    assert plots[0]["runs"][0] == {"job": "mine", "steps": [1, 2, 3], "values": [9.5, 7.5, 1.5]}
    compared = shown(browser, "/jobs?job=mine&job=broken")
    assert re.search(r">loss</th><td[^>]*>1.5</td><td[^>]*>2.5<", compared)
    assert re.search(r"/static/chart\.js", page)


def test_the_least_and_greatest_of_many_values_are_sent() -> None:
    """Of 100,000 values some 2,000, the first and the last with them, by step."""
    values = [float(number % 7) for number in range(100_000)]
    values[50_001], values[50_003] = -5.0, 99.0
    (plot,) = plots_of({"one": [Curve("loss", [*range(100_000)], values)]})
    (run,) = plot["runs"]
    assert (min(run["values"]), max(run["values"])) == (-5.0, 99.0)
    assert (run["steps"][0], run["steps"][-1]) == (0, 99_999)
    assert run["steps"] == sorted(set(run["steps"]))
    assert 1_900 <= len(run["steps"]) <= 2_002
    assert all(
        values[step] == value for step, value in zip(run["steps"], run["values"], strict=True)
    )


@pytest.mark.wide
def test_curves_are_numbers_for_scripts(browser: TestClient) -> None:
    """Of each kind one plot, of each training a line; pages without curves load none of it."""
    answer = browser.get("/curves?job=first&job=broken&job=v-first")
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert not told["running"]
    assert [plot["name"] for plot in told["plots"]] == ["loss", "mean IoU", "images a second"]
    assert told["plots"][1]["runs"] == [{"job": "first", "steps": [10, 20], "values": [0.2, 0.4]}]
    assert browser.get("/curves?job=none").status_code == 404
    drawing = re.compile(r"/static/chart\.js")
    with_curves = ("/jobs/first", "/jobs?job=first&job=broken")
    assert all(drawing.search(shown(browser, path)) for path in with_curves)
    without = ("/jobs/v-first", "/jobs", "/jobs?job=v-first", "/", "/datasets")
    assert not any(drawing.search(shown(browser, path)) for path in without)


@pytest.mark.wide
def test_a_cell_of_the_confusion_matrix_leads_to_its_frames(browser: TestClient) -> None:
    """Straight from the run, most pixels first; with imported scores, in Find, too."""
    matrix = shown(browser, "/jobs/v-first")
    columns = re.findall(r'<th scope="col" title="[^"]*"><span>(.*?)</span></th>', matrix)
    (row,) = re.findall(
        r'<tr><th scope="row" title="Car">Car</th>(<td class="heat.*?)</tr>', matrix
    )
    link = row.split("</td>")[columns.index("Sky")]
    (by_places,) = re.findall(r'href="(/jobs/v-first/frames\?cell=[\d.]+)"', link)
    path = "/jobs/v-first/frames?truth=Car&predicted=Sky"
    cell = shown(browser, path)
    assert shown(browser, by_places) == cell
    assert re.search(r"<strong>3</strong> frames of this validation, 18 pixels", cell)
    assert re.findall(r"<strong>(\d) pixels</strong>", cell) == ["9", "6", "3"]
    assert cell.count('class="thumb"') == 3
    # No prediction of that model: where the label has the true class.
    assert (
        len(re.findall(r'<img class="over" src="/pictures/overlays/[^"]*classes=car"', cell)) == 3
    )
    assert "Predict this validation's frames with first" in cell
    assert "confusion%28" not in cell

    # From the third frame on, of which the catalog lacks none: a part of the page.
    part = browser.get(f"{path}&begin=2", headers={"HX-Request": "true"}).text
    assert re.findall(r"<strong>(\d) pixels</strong>", part) == ["3"]
    assert "<h1" not in part

    # Its frames are walked through in the cell's order, and from there back to the cell.
    first, second, third = re.findall(r'<a href="(/frames/[^"]*)" class="picture"', cell)
    walked = shown(browser, unescape(first))
    assert "<strong>1</strong> of 3</span>" in walked
    assert 'id="found-previous"' not in walked
    assert re.findall(r'id="found-next"[^>]* href="([^"]*)"', walked) == [second]
    last = shown(browser, unescape(third))
    assert "<strong>3</strong> of 3</span>" in last
    assert re.findall(r'id="found-previous"[^>]* href="([^"]*)"', last) == [second]
    assert 'id="found-next"' not in last
    assert "Back to <bdi>Car</bdi> taken for <bdi>Sky</bdi></a>" in last
    assert f'href="{escape(path.replace("Car", "car").replace("Sky", "sky"))}"' in last
    none = unescape(first).replace("predicted=sky", "predicted=car")
    assert "This frame is none of them" in shown(browser, none)
    assert browser.get(unescape(first).replace("v-first", "none")).status_code == 404

    form = {"truth": "car", "predicted": "sky"}
    imported = browser.post("/jobs/v-first/scores", data=form, headers=HERE)
    assert imported.status_code == 303
    found = shown(browser, imported.headers["location"])
    assert re.search(r'id="matching"[^>]*>3<', found)
    assert "pictures show car" in found
    assert "Import scores" not in shown(browser, "/jobs/v-first")
    assert imported.headers["location"] in unescape(shown(browser, path))


def test_every_score_has_its_interval(catalogued: Path, tmp_path: Path) -> None:
    """Of the whole, of classes, the calibration and objects' sizes; none where the report has none.

    A metric of the job that the report has does not stand there twice.
    """
    home = home_with_jobs(catalogued, tmp_path)
    report_file = JobPaths(home / "jobs" / "v-first").report / "report.json"
    report = json.loads(report_file.read_text())
    names = ("miou", "frequency_weighted_iou", "boundary_iou", "pixel_accuracy", "uncertainty")
    report |= dict.fromkeys(names, 0.5)
    ends = {name: [0.111 + n / 100, 0.811 + n / 100] for n, name in enumerate(names)}
    of_baseline = {"baseline_miou": [0.021, 0.043], "baseline_pixel_accuracy": None}
    report["intervals"] = {**ends, "ece": [0.0123, 0.0456], **of_baseline}
    report["baseline"] = {"class": "Sky", "miou": 0.032, "pixel_accuracy": 0.25}
    report["calibration"] = {
        "ece": 0.02,
        "bins": [{"above": 0.0, "up_to": 0.1, "pixels": 9, "confidence": 0.05, "accuracy": 0.2,
                  "accuracy_interval": [0.15, 0.25]}],
    }  # fmt: skip
    first = next(row for row in report["per_class"] if row["truth_pixels"])
    for n, name in enumerate(("iou", "recall", "precision")):
        first |= {name: 0.4, f"{name}_interval": [0.301 + n / 100, 0.601 + n / 100]}
    size = {"size": "tiny", "from_pixels": 1, "objects": 3, "found": 0.5, "recall": 0.6}
    within = {"found_interval": [0.314, 0.717], "recall_interval": None}
    report["object_sizes"] = [{**size, **within}]
    report_file.write_text(json.dumps(report))
    workspace = open_home(home)
    with workspace.records.session() as records:
        job = records.scalars(select(Job).where(Job.name == "v-first")).one()
        job.metrics = {
            **job.metrics,
            "ece_low": 0.0123,
            "ece_high": 0.0456,
            "boundary_iou_low": 0.9,
        }
    workspace.close()
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        page = shown(client, "/jobs/v-first")
    for low, high in ends.values():
        assert f"0.5000 <small>{low:.3f} to {high:.3f}</small>" in page
    for low, high in ((0.301, 0.601), (0.311, 0.611), (0.321, 0.621)):
        assert f">0.400 <small>{low:.3f} to {high:.3f}</small></td>" in page
    assert "mean IoU of always Sky</dt><dd>0.0320 <small>0.021 to 0.043</small></dd>" in page
    assert "pixel accuracy of always Sky</dt><dd>0.2500</dd>" in page
    assert "error 0.0200 (0.0123 to 0.0456)." in page
    assert "right 20.0 % (15.0 to 25.0), 9 pixels" in page
    assert ">50.0 % <small>31.4 to 71.7</small></td>" in page
    assert ">60.0 %</td>" in page
    assert "ece low" not in page
    assert "boundary iou low" not in page


def test_slices_have_their_intervals(catalogued: Path, tmp_path: Path) -> None:
    """By camera and tag; a row of one scene has none, and a report of before shows as it did."""
    home = home_with_jobs(catalogued, tmp_path)
    report_file = JobPaths(home / "jobs" / "v-first").report / "report.json"
    report = json.loads(report_file.read_text())
    row = {"frames": 4, "pixel_accuracy": 0.9, "classes_with_truth": ["Sky"]}
    ends = {"scenes": 2, "miou_interval": [0.31, 0.62], "pixel_accuracy_interval": [0.8, 0.9]}
    none = {"scenes": 1, "miou_interval": None, "pixel_accuracy_interval": None}
    report["slices"] = {
        "camera": [
            {"value": "front", "miou": 0.51, **row, **ends},
            {"value": "rear", "miou": 0.42, **row, **none},
        ],
        "scene": [{"value": "s1", "miou": 0.73, **row, **none}],
    }
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        report_file.write_text(json.dumps(report))
        page = shown(client, "/jobs/v-first")
        for of in report["slices"].values():
            for one in of:
                for name in none:
                    del one[name]
        report_file.write_text(json.dumps(report))
        older = shown(client, "/jobs/v-first")
        del report["slices"]
        report_file.write_text(json.dumps(report))
        oldest = shown(client, "/jobs/v-first")
    assert ">0.510 <small>0.310 to 0.620</small></td>" in page
    assert ">0.420</td>" in page
    assert ">0.730</td>" in page
    assert page.count("by drawing the scenes of a row alone") == 1
    assert page.count("A scene by itself has no interval.") == 1
    for value in ("0.510", "0.420", "0.730"):
        assert f">{value}</td>" in older
    assert "by drawing the scenes" not in older
    assert "A scene by itself" not in older
    assert "By camera" in older
    assert "By camera" not in oldest


def test_a_cell_without_frames_and_one_of_no_class(browser: TestClient) -> None:
    """A frame that the catalog lacks is counted; a class that the report lacks is named."""
    cell = shown(browser, "/jobs/v-first/frames?truth=sky&predicted=car")
    assert "<strong>1</strong> frame of this validation" in cell
    assert "1 frame of this cell is not in the catalog any more" in cell
    refused = browser.get("/jobs/v-first/frames?truth=nonsense&predicted=car")
    assert (refused.status_code, "nonsense" in refused.text) == (400, True)
    for place in ("999.0", "1", "1.2.3", "-1.0", "a.b", ""):
        refused = browser.get(f"/jobs/v-first/frames?cell={place}")
        assert (refused.status_code, "class" in refused.text) == (400, True), place
    assert browser.get("/jobs/first/frames?truth=car&predicted=sky").status_code == 404


def test_the_form_plans_and_begins_a_job(browser: TestClient) -> None:
    """The form shows REST's errors; a job begins and its page opens."""
    form = shown(browser, "/new-job?dataset=city")
    assert '<option value="city@1" selected>' in form
    assert "files" in shown(browser, "/new-job/plan?dataset=city@1")
    assert "no dataset" in shown(browser, "/new-job/plan?dataset=none")
    wrong = {"kind": "train", "dataset": "city", "workers": "none"}
    refused = browser.post("/new-job", data=wrong, headers=HERE)
    assert (refused.status_code, "Workers: got" in refused.text) == (400, True)
    elsewhere = browser.post("/new-job", data=wrong, headers={"Sec-Fetch-Site": "cross-site"})
    assert elsewhere.status_code == 403
    asked = {"kind": "train", "dataset": "nope", "max_steps": "1"}
    assert browser.post("/new-job", data=asked, headers=HERE).status_code == 404
    assert browser.post("/jobs/first/cancel", headers=HERE).headers["location"] == "/jobs/first"


def test_the_form_asks_machines_and_saves_a_question(browser: TestClient) -> None:
    """Resources reach the backend, whose submission is shown; a question becomes the dataset."""
    asked = {
        "kind": "train", "dataset": "city", "max_steps": "1", "wall_minutes": "5",
        "augment": "mirror,crop", "model": "small_unet", "options": "nonsense",
    }  # fmt: skip
    refused = browser.post("/new-job/dry-run", data=asked, headers=HERE)
    assert (refused.status_code, "expected NAME=VALUE" in refused.text) == (400, True)
    asked["options"] = ""
    refused = browser.post("/new-job/dry-run", data=asked, headers=HERE)
    assert (refused.status_code, "Ends after [minutes] 5: backend local" in refused.text) == (
        400,
        True,
    )
    dry = browser.post("/new-job/dry-run", data=asked | {"wall_minutes": ""}, headers=HERE)
    assert dry.status_code == 200, dry.text
    assert "training" in dry.text
    form = shown(browser, "/new-job?min.car=1000")
    assert 'name="asked" value="min.car=1000"' in form
    found = shown(browser, "/?min.car=1000")
    (count,) = re.findall(r'id="matching"[^>]*>([\d,]+)<', found)
    told = rf"at least 1,000 car pixels[^<]*: <strong>{count}</strong> frames? now\."
    assert re.search(told, form)
    assert f'data-frames="{count}"' in form
    assert 'href="/new-job?min.car=1000">Train on them' in found
    for path in ("/", "/?sort=car"):  # without a condition the form would ask for a dataset
        assert "Train on them" not in shown(browser, path), path
    asked = {"kind": "validate", "model": "none", "asked": "min.car=1000", "dataset": "cars"}
    assert browser.post("/new-job", data=asked, headers=HERE).status_code == 404
    asked = {"kind": "train", "asked": "min.car=many", "dataset": "cars"}
    refused = browser.post("/new-job", data=asked, headers=HERE)
    assert (refused.status_code, "is no number" in refused.text) == (400, True)


def test_a_curve_of_many_lines_has_few_points_and_its_last_value(tmp_path: Path) -> None:
    """A line that is being written is left out."""
    file = tmp_path / "metrics.jsonl"
    lines = "".join(f'{{"step": {step}, "loss": {step / 10}}}\n' for step in range(1, 5001))
    file.write_text(lines + '{"step": 50')
    (curve,) = curves_of([file, tmp_path / "gone.jsonl"])
    assert (curve.steps[0], curve.steps[-1], curve.values[-1]) == (1, 5000, 500.0)
    assert len(curve.points.split()) <= 400
    ((plot,), (run,)) = (plots := plots_of({"a": [curve], "none": []})), plots[0]["runs"]
    assert (plot["name"], run["job"], len(run["steps"])) == ("loss", "a", 2000)
    assert (run["steps"][-1], run["values"][-1]) == (5000, 500.0)


@pytest.mark.wide
def test_scores_of_a_prediction_answer_no_cell(catalogued: Path, tmp_path: Path) -> None:
    """A prediction compares with no truth: cells lead to Find where a validation's scores are."""
    home, _, _ = home_with_prediction(catalogued, tmp_path)
    workspace = open_home(home)
    metrics = {"model": {"name": "first", "sha256": "a" * 64}, "predicted_pixels": {}}
    report = JobPaths(workspace.jobs / "p-1").report
    (report / "metrics.json").write_text(json.dumps(metrics))
    tags = Session(workspace, is_command=True).tags
    assert tags.import_scores("p-1").model == "first"
    assert tags.validated_models() == []
    scores = pq.read_table(report / "frame_scores.parquet").append_column("accuracy", [[0.5]])
    pq.write_table(scores, report / "frame_scores.parquet")
    (report / "report.json").write_text(json.dumps(metrics))
    pq.write_table(pa.Table.from_pylist([], FRAME_CELLS_SCHEMA), report / "frame_cells.parquet")
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="p-1").update({"kind": "validate"})
    tags.import_scores("p-1")
    assert tags.validated_models() == ["first"]
    cells = report / "frame_cells.parquet"  # a layout may give a class a tag of its own
    classes = {"auto": "Car", "sky": "Sky"}
    named = confused_frames(workspace, cells, classes, ("Car", "sky"), 0, 9)
    assert (named.tags, named.classes) == (("auto", "sky"), ("Car", "Sky"))
    with pytest.raises(UnknownName, match="'car'"):
        confused_frames(workspace, cells, {"auto": "Vehicle"}, ("car", "auto"), 0, 9)
    workspace.close()
