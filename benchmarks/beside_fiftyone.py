"""Framesift's page beside FiftyOne's app on CamVid's real frames, by the same tasks.

    CAMVID_ROOT=FOLDER .venv/bin/python -m benchmarks.beside_fiftyone

Chromium drives both; FiftyOne 1.22.1 is in .venv-fiftyone (`make test-readers` builds it), and its
database in a folder of its own. A step is a click, a text that is typed, or a key; a choice in a
list is two. Seconds are from the first step to what the task ends with, by a script that loses no
time between steps: they are the programs' part, and a person's eyes and hands come on top. Both
have their labels shown and what is found loaded before the next task begins. The model's
predictions are the labels, but in every second frame bicyclists are taken for pedestrians; they are
drawn into a folder that is removed.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from benchmarks.catalog_scale import REPOSITORY
from tests.api.servers import FRAMESIFT, environment, serving, until_ready, wait_until

_PEER = REPOSITORY / ".venv-fiftyone"
_WAIT_MS = 120_000  # that of a hang
_STEP_MS = 40_000
expect.set_options(timeout=_WAIT_MS)
_REST_MS = 3_000
"""Between two tasks: what a page still does for the one before is not the next one's."""

_FOUND = "56"
"""Frames of CamVid's 468 with 10,000 to 20,000 pixels of cars, and a bicyclist."""

_CLASSES, _PEDESTRIAN, _BICYCLIST = 12, 9, 10
"""CamVid's: how many, and two of their ids, which are their places in a confusion matrix."""

_MOST_IN_A_BIN = "12"
"""Where the axis of their pedestrians' histogram ends in FiftyOne; of all frames at 180."""

Row = dict[str, str]
"""Tasks, and what each takes, in words."""


class Data(NamedTuple):
    """What both get."""

    root: str
    predictions: Path
    """By the images' names below ``root``, class ids as the labels have them."""

    taken: int
    """Frames whose bicyclists the model takes for pedestrians."""


class Hands:
    """Clicks, texts and keys in a page, counted; and the time since a task began."""

    def __init__(self, page: Page) -> None:
        """Nothing is done yet."""
        self.page, self.steps, self.row = page, 0, Row()

    def click(self, place: Locator) -> None:
        """One step."""
        self.steps += 1
        place.click()

    def click_at(self, place: Locator, across: float, down: float) -> None:
        """One step, at a point of a place in shares of its width and height."""
        self.steps += 1
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        assert box is not None
        place.click(position={"x": across * box["width"], "y": down * box["height"]})

    def type(self, place: Locator, text: str, key: str = "Enter") -> None:
        """A click, a text and a key."""
        self.steps += 3 if key else 2
        place.click()
        place.fill(text)
        if key:
            place.press(key)

    def choose(self, place: Locator, value: str) -> None:
        """Open a list, and click what it has."""
        self.steps += 2
        place.select_option(value)

    def press(self, key: str) -> None:
        """One step."""
        self.steps += 1
        self.page.keyboard.press(key)

    def task(self, name: str, work: Callable[[], None]) -> None:
        """Do a task, and keep what it took."""
        self.page.wait_for_timeout(_REST_MS)
        self.steps, began = 0, time.perf_counter()
        try:
            work()
        except PlaywrightError as error:
            print(f"{name}: {error.message[:400]}", file=sys.stderr, flush=True)
            self.row[name] = "the script did not do it"
            return
        steps = f"{self.steps} step{'' if self.steps == 1 else 's'}"
        self.row[name] = f"{steps}; {time.perf_counter() - began:.1f} s"
        print(f"{name}: {self.row[name]}", file=sys.stderr, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--only", choices=("framesift", "fiftyone"))
    options = parser.parse_args()
    root, program = os.environ.get("CAMVID_ROOT", ""), shutil.which(options.chromium)
    if not Path(root, "labels").is_dir():
        raise SystemExit(f"CAMVID_ROOT={root}: expected the folder with CamVid's images and labels")
    if program is None or not _PEER.exists():
        raise SystemExit("expected Chromium, and .venv-fiftyone, which make test-readers builds")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        data = _predicted(root, Path(folder, "predictions"))
        columns = {
            title: measure(browser, data, Path(folder, title))
            for title, measure in (("Framesift", _framesift), ("FiftyOne", _fiftyone))
            if options.only in (None, title.lower())
        }
        browser.close()
    print(f"| | {' | '.join(columns)} |")
    print("|---" * (1 + len(columns)) + "|")
    for name in next(iter(columns.values())):
        print(f"| {name} | {' | '.join(column[name] for column in columns.values())} |")


def _predicted(root: str, predictions: Path) -> Data:
    """Draw a model's predictions."""
    taken = 0
    for number, label in enumerate(sorted(Path(root).glob("labels/*/*.png"))):
        ids = np.array(Image.open(label))
        if number % 2 == 0:
            riders = ids == _BICYCLIST
            taken += bool(riders.any())
            ids[riders] = _PEDESTRIAN
        file = predictions / "images" / label.parent.name / label.name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(ids).save(file)
    return Data(root, predictions, taken)


def _framesift(browser: Browser, data: Data, home: Path) -> Row:
    given = ["--predictions", str(data.predictions), "--model-name", "model"]
    everything = ["--limit", "1000"]
    row = {
        _SET_UP: _commands(
            home, ["source", "add", "camvid", data.root, "--layout", "camvid"], ["ingest", "camvid"]
        ),
        _SCORES: _commands(home, ["validate", *everything, *given, "--name", "model-scores"]),
    }
    began = time.perf_counter()
    with serving(home) as (url, _):
        until_ready(url)
        row[_START] = f"{time.perf_counter() - began:.1f} s"
        page, row[_FIRST_PAGE] = _opened(browser, url, "#gallery .thumb img")
        does = _Framesift(Hands(page))
        does.hands.task(_FIND, does.find)
        does.hands.task(_LABELS, does.labels)
        does.hands.task(_SORT, does.sort)
        does.hands.task(_HISTOGRAM, does.histogram)
        asked = page.url
        does.hands.task(_MARK, does.mark)
        does.hands.task(_UNDO, does.undo)
        does.hands.task(_WALK, does.walk)
        page.goto(asked)
        does.hands.task(_SAVE, does.save)
        page.goto(asked)
        does.hands.task(_SPLIT, does.divide)
        page.goto(asked)
        does.hands.task(_CELL, lambda: does.cell(data.taken))
        page.close()
    return row | does.hands.row


def _commands(home: Path, *commands: list[str]) -> str:
    began = time.perf_counter()
    for command in commands:
        subprocess.run(
            [FRAMESIFT, *command], env=environment(home), check=True, capture_output=True
        )
    number = f"{len(commands)} command{'' if len(commands) == 1 else 's'}"
    return f"{number}; {time.perf_counter() - began:.0f} s"


class _Framesift:
    def __init__(self, hands: Hands) -> None:
        self.hands, self.page = hands, hands.page

    def find(self) -> None:
        self.hands.type(self.page.get_by_label("Car at least", exact=True), "10000")
        self.hands.type(self.page.get_by_label("Car at most", exact=True), "20000")
        self.hands.click(self.page.locator('input[name="has.bicyclist"]'))
        expect(self.page.locator("#matching")).to_have_text(_FOUND)

    def labels(self) -> None:
        self.hands.choose(self.page.get_by_label("Over the pictures"), "label")
        wait_until(lambda: bool(self.page.evaluate(_DRAWN)))

    def sort(self) -> None:
        self.hands.choose(self.page.get_by_label("Sort by"), "car desc")
        expect(self.page.locator("#gallery .values-of").first).to_contain_text("car ")

    def histogram(self) -> None:
        expect(self.page.locator("svg[aria-label^='Pedestrian:']")).to_have_count(1)

    def mark(self) -> None:
        self.hands.click(self.page.get_by_label("everything found"))
        self.hands.click(self.page.get_by_role("button", name="Mark", exact=True))
        expect(self.page.locator("#marked")).to_contain_text(f"on {_FOUND} frames")

    def undo(self) -> None:
        self.hands.click(self.page.get_by_role("button", name="Undo"))
        expect(self.page.locator("#marked")).to_contain_text("as before")

    def walk(self) -> None:
        self.hands.click(self.page.locator("#gallery .thumb a").first)
        expect(self.page.locator("#place")).to_have_text(f"1 of {_FOUND}")
        self.hands.press("ArrowRight")
        expect(self.page.locator("#place")).to_have_text(f"2 of {_FOUND}")

    def save(self) -> None:
        self.hands.click(self.page.get_by_text("Save the question"))
        self.hands.type(self.page.get_by_label("Name of the question"), "riders", key="")
        self.hands.click(self.page.get_by_label("Share it with all users"))
        self.hands.click(self.page.get_by_role("button", name="Save", exact=True))
        self.page.wait_for_url("**/questions")
        expect(self.page.get_by_role("link", name="riders")).to_be_visible()

    def divide(self) -> None:
        self.hands.click(self.page.get_by_role("link", name="Save as a dataset"))
        self.hands.type(self.page.get_by_label("Name", exact=True), "riders", key="")
        self.hands.click(self.page.get_by_text("Splits, and what it is kept apart from"))
        splits = self.page.get_by_label("Splits", exact=True)
        self.hands.type(splits, "train=0.8,validation=0.2", key="")
        self.hands.click(self.page.get_by_role("button", name="Save"))
        self.page.wait_for_url("**/datasets/riders@1")

    def cell(self, taken: int) -> None:
        self.hands.click(self.page.get_by_role("link", name="Run", exact=True))
        self.hands.click(self.page.get_by_role("link", name="model-scores", exact=True))
        riders = self.page.locator(".matrix tr:has(th[title=Bicyclist]) td")
        self.hands.click(riders.nth(_PEDESTRIAN).locator("a"))
        expect(self.page.locator("#cell strong")).to_have_text(str(taken))
        expect(self.page.locator(".gallery .thumb img").first).to_be_visible()


def _fiftyone(browser: Browser, data: Data, folder: Path) -> Row:
    with _app(data, folder) as (url, timed, start_s):
        made_s = timed["import_s"] + timed["dataset_s"]
        page, opened = _opened(browser, f"{url}/datasets/camvid", "[data-cy=looker]")
        row = {
            _SET_UP: f"{timed['dataset_lines']} lines of Python; {made_s:.0f} s",
            _SCORES: f"{timed['evaluate_lines']} lines of Python; {timed['evaluate_s']:.0f} s",
            _START: f"{start_s - made_s - timed['split_s'] - timed['evaluate_s']:.1f} s",
            _FIRST_PAGE: opened,
            _SPLIT: f"{timed['split_lines']} lines of Python; {timed['split_s']:.1f} s",
        }
        # It comes once, and covers the page; no task's step.
        page.get_by_text("Dismiss").click()
        does = _FiftyOne(Hands(page))
        does.hands.task(_FIND, does.find)
        does.hands.task(_LABELS, does.labels)
        does.hands.task(_MARK, does.mark)
        does.hands.task(_UNDO, does.undo)
        does.hands.task(_WALK, does.walk)
        page.keyboard.press("Escape")
        does.hands.task(_SAVE, does.save)
        does.hands.task(_SORT, does.sort)
        does.hands.task(_HISTOGRAM, does.histogram)
        # The panel takes the conditions away.
        does.hands.task(_CELL, lambda: does.cell(data.taken))
        page.close()
    return row | does.hands.row


class _FiftyOne:
    def __init__(self, hands: Hands) -> None:
        self.hands, self.page = hands, hands.page

    def part(self, name: str) -> Locator:
        return self.page.locator(f"[data-cy='{name}']").first

    def end(self, field: str, which: str) -> Locator:
        return self.page.locator(
            f"[data-cy=numeric-slider-container-{field}] input[placeholder={which}]"
        )

    def find(self) -> None:
        self.hands.click(self.part("sidebar-field-arrow-enabled-car"))
        self.hands.type(self.end("car", "min"), "10000")
        self.hands.type(self.end("car", "max"), "20000")
        self.hands.click(self.part("sidebar-field-arrow-enabled-bicyclist"))
        self.hands.type(self.end("bicyclist", "min"), "1")
        expect(self.part("entry-counts")).to_contain_text(f"{_FOUND} samples")
        expect(self.part("looker")).to_be_visible()

    def labels(self) -> None:
        self.hands.click(self.part("checkbox-ground_truth"))
        expect(self.page.locator("[data-cy=checkbox-ground_truth] input").first).to_be_checked()

    def sort(self) -> None:
        self.hands.click(self.part("selector-Sort by"))
        results = self.part("selector-results-container")
        self.hands.click(results.get_by_text("car", exact=True))
        self.hands.click(self.page.locator("[data-testid=ArrowUpwardIcon]").first)
        expect(self.part("looker")).to_be_visible()

    def histogram(self) -> None:
        self.hands.click(self.part("new-panel-btn"))
        self.hands.click(self.page.get_by_text("Histograms", exact=True))
        self.hands.click(self.part("selector-histograms"))
        self.hands.click(self.part("selector-result-pedestrian"))
        ends = self.page.locator("#histogram-pedestrian .yAxis tspan").last
        expect(ends).to_have_text(_MOST_IN_A_BIN)

    def cell(self, taken: int) -> None:
        # In the half where the histogram is, so that the pictures stay in sight.
        self.hands.click(self.page.locator("[data-cy=new-panel-btn]").last)
        self.hands.click(self.page.get_by_text("Model Evaluation", exact=True))
        self.hands.click(self.page.locator("p").get_by_text("model", exact=True))
        self.hands.click(self.page.get_by_text("Confusion Matrices", exact=True))
        matrix = self.page.locator(".js-plotly-plot:has(.heatmaplayer .hm) .nsewdrag")
        across, down = ((each + 0.5) / _CLASSES for each in (_PEDESTRIAN, _BICYCLIST))
        self.hands.click_at(matrix, across, down)
        expect(self.part("entry-counts")).to_contain_text(f"{taken} samples")
        expect(self.part("looker")).to_be_visible()

    def mark(self) -> None:
        self.hands.click(self.part("action-tag-sample-labels"))
        self.hands.type(self.part("sample-tag-input"), "bad")
        self.apply()

    def undo(self) -> None:
        self.page.keyboard.press("Escape")  # what is left of the list of before
        self.hands.click(self.part("action-tag-sample-labels"))
        self.page.wait_for_timeout(_REST_MS)  # the list is drawn several times: a click is lost
        self.hands.click(self.page.get_by_text("bad", exact=True).last)
        self.apply()

    def apply(self) -> None:
        self.hands.click(self.page.get_by_text("Apply", exact=True))
        expect(self.part("sample-tag-input")).to_be_hidden()
        # Its icon is gone while it works, and a click on it is lost.
        icon = self.part("action-tag-sample-labels").locator("[data-testid=LocalOfferIcon]")
        expect(icon).to_be_visible()

    def walk(self) -> None:
        self.hands.click(self.part("looker"))
        expect(self.part("modal")).to_be_visible()
        self.hands.press("ArrowRight")

    def save(self) -> None:
        self.hands.click(self.part("saved-views-selection"))
        self.hands.click(self.page.get_by_text("Save current filters as view"))
        self.hands.type(self.part("saved-views-input-name"), "riders", key="")
        self.hands.click(self.part("saved-views-btn-save"))
        expect(self.part("saved-views-input-name")).to_be_hidden()


_DRAWN = """() => [...document.querySelectorAll("#gallery .over")]
  .some((each) => each.naturalWidth > 0)"""
_SET_UP = "from files to a catalog, to a dataset with pixel counts"
_SCORES = "a model's predictions scored"
_START = "start of the server"
_FIRST_PAGE = "first page with pictures; transfer"
_FIND = "find: 10,000 to 20,000 pixels of cars, a bicyclist"
_LABELS = "labels over the pictures"
_SORT = "sort by pixels of cars, most first"
_HISTOGRAM = "histogram of pedestrians under these conditions"
_MARK = "mark all that is found"
_UNDO = "take the mark away again"
_WALK = "open the first frame, go on to the second"
_SAVE = "save the question under a name"
_SPLIT = "a set of two splits"
_CELL = "from a cell of the confusion matrix to its frames"


def _opened(browser: Browser, url: str, picture: str) -> tuple[Page, str]:
    """A page, and how long it takes until its first pictures stand there, and what is sent."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(_STEP_MS)
    page = context.new_page()
    wire, sent = context.new_cdp_session(page), 0

    def ended(event: dict[str, float]) -> None:
        nonlocal sent
        sent += int(event["encodedDataLength"])

    wire.on("Network.loadingFinished", ended)
    wire.send("Network.enable")
    began = time.perf_counter()
    page.goto(url, wait_until="load")
    page.locator(picture).first.wait_for()
    seconds = time.perf_counter() - began
    page.wait_for_timeout(3000)  # an app that keeps a stream open is never idle
    return page, f"{seconds:.1f} s; {sent / 1000:,.0f} KB"


@contextmanager
def _app(data: Data, folder: Path) -> Iterator[tuple[str, dict[str, float], float]]:
    """FiftyOne's app: its URL, what it timed, and seconds until it answers."""
    folder.mkdir()
    kept, port, app_port = folder / "mongo", _free_port(), _free_port()
    kept.mkdir()
    (mongod,) = _PEER.glob("lib/python*/site-packages/fiftyone/db/bin/mongod")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    call = [mongod, "--dbpath", kept, "--port", str(port), "--bind_ip", "127.0.0.1",
            "--nounixsocket"]  # fmt: skip
    environ = os.environ | {
        "FIFTYONE_DATABASE_URI": f"mongodb://127.0.0.1:{port}",
        "FIFTYONE_DO_NOT_TRACK": "true",
        "HOME": str(folder),
    }
    script = REPOSITORY / "benchmarks/fiftyone_app.py"
    given = [data.root, str(data.predictions), str(app_port)]
    program = [str(_PEER / "bin/python"), str(script), *given]
    with subprocess.Popen(call, **quiet) as database:  # type: ignore[call-overload]
        wait_until(lambda: _listens(port))
        began = time.perf_counter()
        with subprocess.Popen(
            program, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as app:
            try:
                assert app.stdout is not None
                lines = (line for line in app.stdout if line.startswith("timed "))
                line = next(lines, None)
                if line is None:
                    raise SystemExit("benchmarks/fiftyone_app.py ended: run it by itself")
                wait_until(lambda: _listens(app_port))
                start_s = time.perf_counter() - began
                yield f"http://127.0.0.1:{app_port}", json.loads(line[6:]), start_s
            finally:
                app.terminate()
                database.terminate()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
