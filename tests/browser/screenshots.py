"""Pictures of the web page for the README: ``make screenshots``.

    python -m tests.browser.screenshots FOLDER --demo demo/home
    python -m tests.browser.screenshots FOLDER --every

Those of the README show sample frames, and the validation that `make demo` ran. With --every each
page at 1280 and 390 pixels, light and dark: to be looked at.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from api.services.accounts.callers import NOBODY_ASKED
from api.services.session import Session
from tests.api.servers import serving, until_ready
from tests.api.web.jobs import home_with_jobs
from tests.pipeline.homes import SAMPLE, make_home, open_home

PAGES = {
    "find": "/?min.car=1000&min.bicycle=1",
    "frame": "/frames/local:a2d2:camera_lidar_semantic/20260418_100155/camera/cam_front_center/"
    "20260418100155_camera_frontcenter_000000155.png",
    "gallery": "/gallery?min.car=1000",
    "questions": "/questions",
    "datasets": "/datasets",
    "dataset": "/datasets/balanced",
    "gaps": "/datasets/balanced/gaps",
    "new_dataset": "/new-dataset?min.car=1000",
    "diff": "/datasets/city@1/diff?other=city@2",
    "jobs": "/jobs?job=first&job=broken",
    "job": "/jobs/first",
    "validation": "/jobs/v-first",
    "cell": "/jobs/v-first/frames?truth=car&predicted=sky",
    "new_job": "/new-job?dataset=city",
    "sources": "/operate",
    "source": "/operate/sources/a2d2",
    "scan": "/operate/scans/1",
    "cache": "/operate/cache",
    "snapshots": "/operate/snapshots",
    "tokens": "/operate/tokens",
    "users": "/operate/users",
    "audit": "/operate/audit",
}
"""Path of each page by the name of its picture."""

SHOWN = ("find", "frame", "dataset")
"""Those of the sample frames that the README shows."""

SHOWN_OF_DEMO = {"validation": "/jobs/demo-validate"}
"""Those of the demo's home that the README shows."""

MATRIX_OF_DEMO = "jobs/demo-validate/report/confusion_matrix.png"
"""The picture of that home which the README shows beside what the demo prints."""

_WITH_MATRIX: ViewportSize = {"width": 1280, "height": 1400}
"""A window that shows a validation from its worst frames down into its matrix."""

_SIZES = {"wide": (1280, 900), "narrow": (390, 844)}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def sample_home(folder: Path, catalogued: Path | None = None) -> Path:
    """A home whose pages have something to show.

    Args:
        folder: Where it is made.
        catalogued: A home with the sample frames catalogued, which is copied; made when None.
    """
    if catalogued is None:
        catalogued = folder / "catalogued"
        make_home(catalogued, SAMPLE)
    home = home_with_jobs(catalogued, folder)
    workspace = open_home(home)
    session = Session(workspace, NOBODY_ASKED)
    session.saved_questions.save("cars", {"where": "car > 1000"}, shared=True)
    datasets = session.datasets
    datasets.create("city", split="train=0.7,validation=0.3", split_by="frame", allow_leakage=True)
    targets = {"camera": {"front_center": 0.5, "*": 0.5}, "car:1000": {":1000": 0.5, "1000:": 0.5}}
    datasets.create(
        "balanced", split="train=0.75,validation=0.25",
        method={"method": "match", "frames": 12, "targets": targets},
    )  # fmt: skip
    workspace.close()
    return home


def _viewport(size: str) -> ViewportSize:
    width, height = _SIZES[size]
    return {"width": width, "height": height}


def picture(tab: Page, url: str, file: Path, *, whole: bool = True) -> None:
    """Write a page's picture, or that of its first window, once all of it is there."""
    tab.goto(url)
    tab.wait_for_load_state("networkidle")
    tab.screenshot(path=file, full_page=whole)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", action="store_true", help="each page, size and scheme")
    parser.add_argument("--only", nargs="*", help="these pages")
    parser.add_argument("--demo", type=Path, help="the home that `make demo` made")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.demo is not None:
        with serving(options.demo.resolve()) as (url, _), chromium() as browser:
            until_ready(url)
            tab = browser.new_page(viewport=_WITH_MATRIX)
            for name, path in SHOWN_OF_DEMO.items():
                picture(tab, url + path, options.folder / f"page_{name}.png", whole=False)
        shutil.copy(options.demo / MATRIX_OF_DEMO, options.folder)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(sample_home(Path(folder))) as (url, _),
        chromium() as browser,
    ):
        until_ready(url)
        for size in _SIZES:
            for scheme in ("light", "dark"):
                tab = browser.new_page(
                    viewport=_viewport(size),
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                for name, path in PAGES.items():
                    if options.only and name not in options.only:
                        continue
                    if options.every:
                        picture(tab, url + path, options.folder / f"{name}-{size}-{scheme}.png")
                    elif name in SHOWN and (size, scheme) == ("wide", "light"):
                        file = options.folder / f"page_{name}.png"
                        picture(tab, url + path, file, whole=False)
                tab.close()


if __name__ == "__main__":
    main()
