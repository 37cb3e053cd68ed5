"""The loop in a browser: a validation, the frames that come next, the report, recent questions."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from catalog.accounts import tokens, users
from catalog.records.datasets import recorded_dataset
from catalog.records.store import RecordStore
from pipeline.manifest import Manifest
from tests.api.servers import serving, until_ready
from tests.api.web.loop import home_with_loop
from tests.browser.conftest import NARROW, faults_of_looks
from tests.pipeline.homes import open_home

pytestmark = pytest.mark.browser

PASSWORD = "a long password"


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of `home_with_loop`, with the users rita, and vera and vera2, whose name begins so."""
    home = home_with_loop(catalogued, tmp_path_factory.mktemp("loop"))
    records = RecordStore(home / "records" / "records.sqlite")
    for name, role in (("rita", "admin"), ("vera", "dataadmin"), ("vera2", "dataadmin")):
        users.add(records, name, [role], PASSWORD)
    return home


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    """A server of that home, which users log in to."""
    with serving(home, authenticates=True) as (url, _):
        until_ready(url)
        yield url


def log_in(tab: Page, url: str, name: str) -> None:
    """Begin a session of a user."""
    tab.goto(f"{url}/login")
    tab.get_by_label("Name").fill(name)
    tab.get_by_label("Password").fill(PASSWORD)
    tab.get_by_role("button", name="Log in by the password").click()
    expect(tab.get_by_role("button", name="Log out")).to_be_visible()


def test_next_frames_are_proposed_dropped_and_trained_on(
    home: Path, url: str, tab: Page, chromium: Browser
) -> None:
    """From a validation by its form to a page of frames; keys drop one, totals follow, it is saved.

    The label list is downloaded; the form of the training is filled in; without scripts a button
    counts again.
    """
    log_in(tab, url, "rita")
    tab.goto(f"{url}/jobs/v-night")
    expect(tab.get_by_role("heading", name="Calibration")).to_be_visible()
    expect(tab.get_by_role("img", name="Reliability diagram")).to_be_visible()
    expect(tab.get_by_role("region", name="Sizes of objects").last).to_contain_text("Car")
    worst = tab.get_by_role("region", name="Worst frames").locator(".thumb")
    expect(worst).to_have_count(6)
    expect(worst.first).to_contain_text("mean IoU 0.9")
    assert faults_of_looks(tab) == []

    form = tab.get_by_role("form", name="Which frames next")
    form.get_by_label("Labelled frames to add").fill("5")
    form.get_by_label("Unlabelled frames to list").fill("3")
    form.get_by_label("Chosen for the classes").fill("car")
    form.get_by_role("button", name="Propose frames").click()
    adding = tab.get_by_role("form", name="To add")
    expect(adding).to_contain_text("5 of 5 frames kept")
    thumbs = tab.get_by_role("group", name="Frames to add").locator(".thumb")
    expect(thumbs.first.locator("img.over")).to_be_visible()
    assert thumbs.first.locator("img.over").evaluate("(e) => e.decode().then(() => e.naturalWidth)")
    assert faults_of_looks(tab) == []
    dropped = thumbs.nth(1).locator("input").get_attribute("value")
    thumbs.first.locator("a").focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Space")
    expect(adding).to_contain_text("4 of 5 frames kept")
    expect(tab.locator("[data-class=car]")).to_have_text("4")
    tab.keyboard.press("o")
    expect(thumbs.first.locator("img.over")).to_be_hidden()

    listed = tab.get_by_role("group", name="Frames to label").locator(".thumb")
    expect(listed.first).to_contain_text("predicted 2,100 pixels of car, 61 % uncertain")
    listed.first.locator("input").uncheck()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save the label list").click()
    assert download.value.suggested_filename == "night-to-label.txt"
    kept = listed.nth(1).locator("input").get_attribute("value")
    assert Path(download.value.path()).read_text().splitlines() == [kept]

    address = tab.url
    plain = chromium.new_context(java_script_enabled=False)
    plain.add_cookies(tab.context.cookies())  # type: ignore[arg-type]  # as it gives them
    without = plain.new_page()
    without.goto(address)
    without.get_by_role("group", name="Frames to add").locator("input").nth(2).uncheck()
    without.get_by_role("form", name="To add").get_by_role("button", name="Count again").click()
    expect(without.get_by_role("form", name="To add")).to_contain_text("4 of 5 frames kept")
    plain.close()

    tab.get_by_role("button", name="Save, and train on it").click()
    expect(tab).to_have_url(f"{url}/new-job?dataset=taught%402&again=night")
    training = tab.get_by_role("form", name="Train a network")
    expect(training.locator("select[name=dataset]")).to_have_value("taught@2")
    expect(training.locator(".plan")).to_contain_text("taught@2")
    expect(training.locator(".estimate")).to_contain_text("No earlier job here is like it")
    workspace = open_home(home)
    rows = [
        Manifest.read(Path(recorded_dataset(workspace.records, name).manifest)).frames["fkey"]
        for name in ("taught@1", "taught@2")
    ]
    workspace.close()
    assert len(rows[1]) == len(rows[0]) + 4
    assert dropped not in rows[1].to_pylist()


def test_a_phone_shows_pictures_first(url: str, tab: Page) -> None:
    """In its first window: of a validation the worst frames, and those that come next."""
    log_in(tab, url, "rita")
    tab.set_viewport_size(NARROW)  # type: ignore[arg-type]  # it is a mapping
    for path in ("/jobs/v-night", "/jobs/v-night/next-frames?frames=5&label=3&classes=car"):
        tab.goto(url + path)
        picture = tab.locator("main img").first
        expect(picture).to_be_visible()
        box = picture.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < NARROW["height"], path
        assert faults_of_looks(tab) == []


def test_plans_are_asked_for_once(url: str, tab: Page) -> None:
    """Three forms have one dataset: one plan; each form has an estimate of its own."""
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url.partition("/new-job/")[2]))
    log_in(tab, url, "rita")
    tab.goto(f"{url}/new-job?dataset=taught@1")
    for form in ("Train a network", "Validate a model", "Study how training scales"):
        parts = tab.get_by_role("form", name=form)
        expect(parts.locator(".plan")).to_contain_text("taught@1")
        expect(parts.locator(".estimate")).to_contain_text("earlier job")
    assert sum(one.startswith("plan") for one in asked) == 1
    assert sum(one.startswith("estimate") for one in asked) == 3
    training = tab.get_by_role("form", name="Train a network")
    training.get_by_label("Width [pixels]").fill("480")
    training.get_by_label("Width [pixels]").press("Tab")
    expect(training.locator(".estimate")).to_contain_text("480x152")
    training.locator("select[name=dataset]").select_option("held@1")
    expect(training.locator(".plan")).to_contain_text("held@1")
    assert sum(one.startswith("plan") for one in asked) == 2


def test_who_only_reads_opens_the_report(home: Path, url: str, tab: Page) -> None:
    """With a token to read the link opens it, styled in the dark; no proposal is offered."""
    records = RecordStore(home / "records" / "records.sqlite")
    _, secret = tokens.create(records, "rita", "look", "read", timedelta(days=1))
    tab.goto(f"{url}/login")
    tab.get_by_label("Token").fill(secret)
    tab.get_by_role("button", name="Log in by the token").click()
    expect(tab.get_by_role("button", name="Log out")).to_be_visible()
    tab.emulate_media(color_scheme="dark")
    tab.goto(f"{url}/jobs/v-night")
    worst = tab.get_by_role("region", name="Worst frames").locator(".thumb")
    expect(worst).to_have_count(6)
    layer = worst.first.locator("img.over").get_attribute("src") or ""
    kind = "errors" if "errors=true" in layer else "label"
    expect(worst.first.locator("a.picture")).to_have_attribute(
        "href", re.compile(f"[?]over={kind}")
    )
    expect(tab.get_by_role("form", name="Which frames next")).to_have_count(0)
    tab.get_by_role("link", name="The whole report").click()
    expect(tab.get_by_role("heading", name="Validation of night on held v1")).to_be_visible()
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 25, 30)"
    picture = tab.locator("main img").first
    assert picture.evaluate("(e) => e.naturalWidth") > 0
    report = tab.content()
    tab.goto(f"{url}/jobs/v-night/next-frames")
    expect(tab.locator("main")).not_to_contain_text("Propose frames")
    # The report's own policy lets no script run, not even this one's: its copy has none.
    tab.goto("about:blank")
    tab.set_content(report)
    assert faults_of_looks(tab) == []


def test_the_documentation_of_rest(url: str, tab: Page) -> None:
    """It is read on a phone and in the dark, and leads back."""
    tab.goto(f"{url}/docs")
    tab.locator("summary").first.click()
    assert faults_of_looks(tab) == []
    tab.get_by_role("link", name="Back to Find").click()
    tab.wait_for_url(f"{url}/**")


def test_recent_questions_are_this_browsers(url: str, tab: Page) -> None:
    """Newest first, each once, twelve at most; by user; removed one by one, and all."""
    asked: list[str] = []
    log_in(tab, url, "vera")
    tab.on("request", lambda request: asked.append(request.post_data or ""))
    recent = tab.get_by_role("region", name="Recent questions")
    expect(tab.locator("#matching")).to_be_visible()
    expect(recent).to_be_hidden()
    for pixels in (*range(1, 14), 3):
        tab.goto(f"{url}/?min.car={pixels}")
        expect(tab.locator("#matching")).to_be_visible()
    tab.goto(f"{url}/?min.car=3&sort=car")  # the same question in another order
    expect(tab.locator("#matching")).to_be_visible()
    expect(recent).to_be_hidden()
    tab.goto(f"{url}/")
    links = recent.get_by_role("link")
    expect(links).to_have_count(12)
    expect(links.first).to_have_attribute("href", "/?min.car=3&sort=car")
    expect(links.nth(1)).to_have_attribute("href", "/?min.car=13")
    expect(links.first).to_have_text("frames with at least 3 car pixels")
    assert faults_of_looks(tab) == []
    recent.get_by_role("button", name="Remove:").first.click()
    expect(links).to_have_count(11)
    expect(links.first).to_have_attribute("href", "/?min.car=13")
    links.first.click()
    expect(tab).to_have_url(f"{url}/?min.car=13")
    assert not any("min.car" in one for one in asked)  # of what is kept, nothing is sent
    tab.get_by_role("button", name="Log out").click()
    log_in(tab, url, "vera2")
    expect(tab.locator("#matching")).to_be_visible()
    expect(recent).to_be_hidden()
    tab.get_by_role("button", name="Log out").click()
    log_in(tab, url, "vera")
    expect(links).to_have_count(11)
    recent.get_by_role("button", name="Clear").click()
    expect(recent).to_be_hidden()
    tab.reload()
    expect(tab.locator("#matching")).to_be_visible()
    expect(recent).to_be_hidden()
