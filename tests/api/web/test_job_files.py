"""A job's command, files, log lines and differences; what its form says of defaults and rates."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.web.moments import duration
from api.web.run.differences import of_comparison
from api.web.run.log_lines import without_launcher
from api.web.run.report_figures import calibration_of, sizes_of
from catalog.records.tables import Job
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import JobPaths
from tests.api.web.jobs import HOSTILE, home_with_jobs
from tests.pipeline.homes import open_home


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of `home_with_jobs`; v-second finds half as much of cars, and mine made files."""
    home = home_with_jobs(catalogued, tmp_path_factory.mktemp("files"))
    workspace = open_home(home)
    report = json.loads((JobPaths(workspace.jobs / "v-first").report / "report.json").read_text())
    for score in report["per_class"]:
        if score["tag"] == "car":
            score["iou"] = score["iou"] / 2
    second = JobPaths(workspace.jobs / "v-second")
    second.report.mkdir(parents=True)
    (second.report / "report.json").write_text(json.dumps(report))
    (second.report / "report.html").write_text("<!doctype html>")
    program = JobPaths(workspace.jobs / "mine")
    output = ProgramPaths(program.folder).output
    (output / "a picture.txt").write_text("x" * 2_000)
    (output / "unnamed.txt").write_text("not listed")
    (output / "secret.txt").symlink_to(home / "settings.json")
    outputs = [{"path": path} for path in ("a picture.txt", "secret.txt", "gone.txt", HOSTILE)]
    program.result.write_text(json.dumps({"outputs": [*outputs, {"path": 3}, 4]}))
    lines = [f"[{rank}]<stdout>:step {step} {HOSTILE}" for step in range(9) for rank in (0, 1)]
    (program.logs / "train-0.log").write_text("\n".join([*lines, "[1]<stderr>:An Error here"]))
    with workspace.records.session() as session:
        session.add(
            Job(
                name="v-second", kind="validate", backend="local", state="done", metrics={},
                request={"stages": []},
                paths={"folder": str(second.folder), "logs": str(second.logs)},
            )
        )  # fmt: skip
        session.query(Job).filter_by(name="mine").update(
            {"request": {"stages": [], "settings": {"command": f"python train.py {HOSTILE}"}}}
        )
        session.query(Job).filter_by(name="first").update(
            {
                "metrics": {"images_per_s": 0.5, "step": 20},
                "request": {"stages": [], "settings": {"workers": 2}},
            }
        )
    workspace.close()
    return home


@pytest.fixture(scope="module")
def browser(home: Path) -> Iterator[TestClient]:
    """A browser at a server that asks nobody who they are."""
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        yield client


def shown(browser: TestClient, path: str) -> str:
    """A page's text, which holds none of the markup that a program wrote."""
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    assert HOSTILE not in answer.text
    return unescape(answer.text)


def test_a_programs_command_and_files_are_shown(browser: TestClient) -> None:
    """Files that it named and that are there, each to be downloaded; a link among them is none."""
    page = shown(browser, "/jobs/mine")
    assert f'id="command">python train.py {HOSTILE}</pre>' in page
    listed = dict(re.findall(r'href="(/jobs/mine/files/[^"]*)" download>([^<]*)</a>', page))
    assert listed == {
        "/jobs/mine/files/result.json": "result.json",
        "/jobs/mine/files/output/a%20picture.txt": "output/a picture.txt",
        "/jobs/mine/files/output/metrics.jsonl": "output/metrics.jsonl",
    }
    assert "2.0 kB" in page
    assert browser.get("/jobs/mine/files/output/a%20picture.txt").text == "x" * 2_000
    for name in ("unnamed.txt", "secret.txt"):
        assert browser.get(f"/jobs/mine/files/output/{name}").status_code == 404, name
    assert 'id="command"' not in shown(browser, "/jobs/first")


def test_a_logs_lines_are_searched(browser: TestClient) -> None:
    """In whatever case, the last ones of many; without what the launcher put before them."""
    part = shown(browser, "/jobs/mine/output?find=error")
    assert "1 line has this text" in part
    assert "rank 1: An Error here" not in part  # one rank alone has no need of its number
    assert ">An Error here</pre>" in part
    assert "2 lines have this text" in shown(browser, "/jobs/mine/output?find=STEP 3 ")
    assert "no line has this text" in shown(browser, "/jobs/mine?find=nothing")
    whole = shown(browser, "/jobs/mine")
    assert "rank 1: step 8" in whole
    assert "<stdout>:" not in whole
    assert browser.get("/jobs/mine/output?find=x&log=none").status_code == 400


def test_the_launchers_prefix_goes() -> None:
    """That of Horovod and of MPI, at a line's beginning alone."""
    assert without_launcher("[0]<stdout>:a [0]<stdout>:b\n[0]<stderr>:c") == "a [0]<stdout>:b\nc"
    assert without_launcher("[1,0]<stdout>:a\n[1,12]<stdout>:b") == "rank 0: a\nrank 12: b"
    assert without_launcher("[2]stdout: a") == "[2]stdout: a"


def test_two_validations_are_compared_by_class(browser: TestClient) -> None:
    """The one class that differs has a bar, on its own side; of other jobs there is no picture."""
    bars = re.findall(
        r'aria-label="([^":]+): ([-+][\d.]+)">.*?class="got" x="([\d.]+)" width="([\d.]+)"',
        shown(browser, "/jobs?job=v-second&job=v-first"),
    )
    wide = [(name, float(x), float(width)) for name, _, x, width in bars if float(width)]
    assert len(bars) > 20
    assert wide == [("Car", 0.0, 50.0)]
    turned = shown(browser, "/jobs?job=v-first&job=v-second")
    assert turned.count(">mean IoU</th>") == 1  # with the differences, and not above them, too
    three = shown(browser, "/jobs?job=v-first&job=v-second&job=first")
    assert three.count(">mean IoU</th>") == 1
    assert re.search(r'aria-label="Car: \+.*?class="got" x="50.00" width="50.00"', turned)
    for jobs in ("job=v-first&job=first", "job=v-first", "job=v-first&job=v-second&job=first"):
        assert "Differences of scores" not in shown(browser, f"/jobs?{jobs}")


def test_a_comparison_is_drawn_with_its_intervals(home: Path) -> None:
    """At the scale of what reaches farthest; a score without a value is left out."""
    report = json.loads((JobPaths(home / "jobs" / "v-first").report / "report.json").read_text())
    assert of_comparison(report) is None
    row = {"score": "car", "value": 0.5, "other": 0.6, "interval": [-0.2, 0.1], "verdict": "worse"}
    unknown = {"score": "miou", "value": None, "other": 0.6, "interval": None, "verdict": None}
    compared = {"model": {"name": "before"}, "scores": [row, unknown]}
    differences = of_comparison(report | {"comparison": compared})
    assert differences is not None
    (bar,) = differences.bars
    assert (differences.this, differences.other, differences.scale) == ("first", "before", 0.2)
    assert (bar.row.name, bar.row.verdict) == ("Car", "worse")
    assert (bar.left, bar.width) == pytest.approx((25, 25))
    assert bar.ends == pytest.approx((0, 75))


def test_a_validation_that_compares_shows_its_own_scores_once(
    home: Path, browser: TestClient
) -> None:
    """Above and below the differences, which have the other model's."""
    file = JobPaths(home / "jobs" / "v-second").report / "report.json"
    before = file.read_text()
    row = {"score": "car", "value": 0.8125, "other": 0.25, "interval": [0.5, 0.6], "verdict": ""}
    compared = {"model": {"name": "before"}, "scores": [row]}
    file.write_text(json.dumps(json.loads(before) | {"comparison": compared}))
    try:
        page = shown(browser, "/jobs/v-second")
    finally:
        file.write_text(before)
    (differences,) = re.findall(r'aria-label="Differences of scores".*?</table>', page, re.DOTALL)
    assert re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', differences)[1:] == [
        "difference", "before",
    ]  # fmt: skip
    assert "+0.562" in differences
    assert "0.250" in differences
    assert "0.812" not in differences


def test_a_validations_report_is_a_link(browser: TestClient) -> None:
    """Where its file is; each figure of it stands once on the page."""
    link = 'href="/jobs/v-second/files/report.html">The whole report'
    assert link in shown(browser, "/jobs/v-second")
    page = shown(browser, "/jobs/v-first")
    assert 'href="/jobs/v-first/files/report.json"' in page
    assert "The whole report" not in page
    assert page.count("<dt>mean IoU</dt>") == 1
    assert "<dt>miou</dt>" not in page


def test_figures_of_a_report_are_those_that_it_has() -> None:
    """Bars of bins with pixels, the mean of both weighed by them; objects by size, many first."""
    assert calibration_of({}) is None
    assert calibration_of({"calibration": {"ece": None, "bins": [{"pixels": 0}]}}) is None
    bins = [
        3, {"above": 0.0, "up_to": 0.5, "pixels": 0, "confidence": None, "accuracy": None},
        {"above": 0.0, "up_to": 0.5, "pixels": 100, "confidence": 0.4, "accuracy": 0.2},
        {"above": 0.5, "up_to": 1.0, "pixels": 300, "confidence": 0.8, "accuracy": 1.0},
    ]  # fmt: skip
    drawn = calibration_of({"calibration": {"ece": 0.2, "bins": bins}})
    assert drawn is not None
    assert [(bar.x, bar.y, bar.height) for bar in drawn.bars] == [(1, 240, 60), (151, 0, 300)]
    assert drawn.verdict == "It says 70.0 % on average, and is right in 80.0 %."
    assert drawn.bars[0].label == "says 40.0 %, right 20.0 %, 100 pixels"

    def of(objects: int) -> list[object]:
        return [3, {"size": "tiny", "objects": objects, "found": 0.5 if objects else None}]

    per_class = [{"class": name, "object_sizes": of(n)} for name, n in (("Car", 2), ("Bus", 9))]
    rows = sizes_of({"object_sizes": of(11), "per_class": [*per_class, {"class": "Sky"}]})
    assert [(row.name, row.objects, row.found) for row in rows] == [
        ("all", 11, 0.5), ("Bus", 9, 0.5), ("Car", 2, 0.5),
    ]  # fmt: skip
    assert sizes_of({}) == []


def test_a_form_says_splits_defaults_and_earlier_rates(browser: TestClient) -> None:
    """The usual values are numbers and names; a pass takes what it would have taken before."""
    form = shown(browser, "/new-job")
    assert "the usual" not in form
    assert 'name="height" inputmode="numeric" placeholder="default: 152"' in form
    assert re.search(r'name="precision">\s*<option value="">default: auto</option>', form)
    for backend in ("local", "slurm", "lsf"):
        assert f"<option>{backend}</option>" in form or f"<option selected>{backend}" in form
    plan = shown(browser, "/new-job/plan?dataset=city")
    frames = int(re.findall(r"train</bdi> (\d+)", plan)[0])
    asked = "/new-job/estimate?kind=train&dataset=city&workers=2"
    one = shown(browser, asked)
    assert f"split train ({frames} frames): about {2 * frames:.0f} s, by one earlier job" in one
    assert "(small_unet at 240x152, 2 processes, backend local): 0.5 frames a second" in one
    assert 'href="/jobs/first"' in one
    # All of a training: its epochs, its steps, or the usual length; not of fields that go wrong.
    for length, steps in (("&epochs=3", -(-3 * frames // 10)), ("&max_steps=7", 7), ("", 300)):
        told = shown(browser, f"{asked}&batch_size=5{length}")
        times = f"{steps:,} steps, {10 * steps:,} frames, each as often as it comes)"
        assert f"{times}: about {duration(20 * steps)}, without its start" in told, length
    for wrong in ("&epochs=3&max_steps=7", "&epochs=0", "&batch_size=x", "&max_steps=-1"):
        assert "All of the training" not in shown(browser, asked + wrong), wrong
    of_question = shown(browser, "/new-job/estimate?kind=train&frames=40&workers=2&epochs=1")
    assert f"Once over the dataset (40 frames): about {duration(80)}" in of_question
    study = shown(browser, asked.replace("train", "scaling") + "&epochs=3&ranks=2")
    assert ("Once over split train" in study, "All of the training" in study) == (True, False)
    for other in ("&height=64", "&backend=slurm", "&model=deeplabv3plus_resnet50", "&workers=4"):
        none = shown(browser, asked + other)
        assert "No earlier job here is like it" in none, other
        assert "frames a second" not in none, other
    assert "earlier job" not in shown(browser, "/new-job/estimate?kind=preflight&dataset=city")
    assert "earlier job" not in shown(browser, "/new-job/estimate?kind=train&dataset=none")
    # A validation is like those of models of the same network and size; another split is longer.
    validation = "/new-job/estimate?kind=validate&dataset=city&model=first&workers=2"
    assert "small_unet at 240x152" in shown(browser, validation)


def test_an_estimate_is_the_median_of_jobs_alike(catalogued: Path, tmp_path: Path) -> None:
    """The newest ten of them, with their range; one of another size, and one that failed, not."""
    home = home_with_jobs(catalogued, tmp_path)
    workspace = open_home(home)
    rates = [100.0, 100.0, *range(1, 11)]
    with workspace.records.session() as session:
        first = session.query(Job).filter_by(name="first").one()
        values = {n: getattr(first, n) for n in ("kind", "backend", "paths", "dataset_id")}
        alike = {"stages": [], "settings": {"workers": 2, "height": 152, "model": "small_unet"}}
        wider = {"stages": [], "settings": {"workers": 2, "width": 480}}
        for number, rate in enumerate(rates):
            session.add(
                Job(
                    **values, name=f"t-{number}", state="done", metrics={"images_per_s": rate},
                    request=alike,
                )
            )  # fmt: skip
        metrics = {"images_per_s": 1000.0}
        session.add(Job(**values, name="t-wider", state="done", metrics=metrics, request=wider))
        session.add(Job(**values, name="t-failed", state="failed", metrics=metrics, request=alike))
    workspace.close()
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        told = shown(client, "/new-job/estimate?kind=train&dataset=city&workers=2")
    assert "the 10 newest earlier jobs like it" in told
    assert "5.5 frames a second in the median, 1 to 10" in told
    assert 'href="/jobs/t-11"' in told
