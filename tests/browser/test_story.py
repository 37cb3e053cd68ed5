"""The whole story in a browser: range, dataset, training, validation, confusion matrix, frames."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from catalog.accounts import users
from catalog.records.store import RecordStore
from tests.api.servers import serving, until_ready
from tests.api.web.jobs import home_with_jobs
from tests.browser.conftest import faults_of_looks, unfold, violations
from tests.browser.screenshots import PAGES, sample_home
from tests.pipeline.homes import copy_home

pytestmark = pytest.mark.browser

TRAINED = 240_000  # that of a hang [ms]


def same_after_reload(tab: Page, text: str) -> None:
    """The page holds a text, and again when it is loaded again."""
    expect(tab.locator("main")).to_contain_text(text)
    tab.reload()
    expect(tab.locator("main")).to_contain_text(text)


def test_from_a_range_to_the_confusion_matrix(catalogued: Path, tmp_path: Path, tab: Page) -> None:
    """With reload and back at each step, and a server that restarts in between."""
    home = copy_home(catalogued, tmp_path)
    users.add(
        RecordStore(home / "records" / "records.sqlite"), "rita", ["admin"], "a long password"
    )
    with serving(home, authenticates=True) as (url, _):
        tab.goto(url)
        tab.get_by_label("Name").fill("rita")
        tab.get_by_label("Password").fill("a long password")
        tab.get_by_role("button", name="Log in by the password").click()

        # A range, by its exact number.
        field = tab.get_by_label("Car at least", exact=True)
        field.fill("1000")
        field.press("Enter")
        expect(tab).to_have_url(re.compile(r"min\.car=1000$"))
        number = tab.locator("#matching").inner_text()
        same_after_reload(tab, "1,000 car pixels")

        # A dataset: the form shows an error and keeps what was typed.
        tab.get_by_role("link", name="Save as a dataset").click()
        same_after_reload(tab, f"{number} of 24 frames")
        tab.get_by_label("Name").fill("not / a name")
        tab.get_by_text("Splits, and what it is kept apart from").click()
        tab.get_by_label("Splits", exact=True).fill("train=0.7,validation=0.3")
        tab.get_by_label("What stays on one side").fill("scene")
        tab.get_by_role("button", name="Save").click()
        expect(tab.locator("#new-dataset .problem")).to_contain_text("expected letters, digits")
        tab.get_by_label("Name").fill("streets")
        tab.get_by_role("button", name="Save").click()
        expect(tab).to_have_url(f"{url}/datasets/streets@1")
        expect(tab.locator("#gaps")).to_contain_text("Find")
        same_after_reload(tab, f"{number} frames")
        tab.go_back()
        expect(tab.get_by_label("Name")).to_be_visible()
        tab.go_forward()

        # A training, followed as it runs.
        tab.get_by_role("link", name="Train or validate").click()
        form = tab.get_by_role("form", name="Train a network")
        expect(form.locator(".plan")).to_contain_text("files")
        form.get_by_label("Steps", exact=True).fill("none")
        form.get_by_role("button", name="Train").click()
        expect(form.locator(".of-field")).to_contain_text("Steps: got 'none', expected")
        form.get_by_label("Steps", exact=True).fill("4")
        form.get_by_label("Height [pixels]").fill("32")
        form.get_by_label("Width [pixels]").fill("64")
        form.get_by_text("Resources").click()
        form.get_by_label("Workers", exact=True).fill("1")
        form.get_by_label("Name", exact=True).fill("first")
        form.get_by_role("button", name="Train").click()
        expect(tab).to_have_url(f"{url}/jobs/first")
    # The server restarts while the job runs: the page goes on when it is back.
    with serving(home, "--port", url.rpartition(":")[2], authenticates=True) as (again, _):
        assert again == url
        expect(tab.locator("#state")).to_have_text("done", timeout=TRAINED)
        expect(tab.locator("#charts svg.chart").first).to_be_visible()  # without a reload
        expect(tab.locator("#charts figcaption").first).to_contain_text("at step 4")
        same_after_reload(tab, "step")
        assert violations(tab) == []

        # Its validation, and the frames behind a cell of the matrix.
        tab.get_by_role("link", name="Validate").click()
        form = tab.get_by_role("form", name="Validate a model")
        form.get_by_text("Resources").click()
        form.get_by_label("Workers", exact=True).fill("1")
        form.get_by_label("Name", exact=True).fill("v-first")
        form.get_by_role("button", name="Validate").click()
        expect(tab.locator("#state")).to_have_text("done", timeout=TRAINED)
        same_after_reload(tab, "Confusion matrix")
        cell = tab.locator(".matrix td a").first
        said = cell.get_attribute("title")
        assert said
        cell.hover()
        expect(cell).to_have_attribute("title", re.compile(f" taken for .*: {said}$"))
        cell.click()
        expect(tab).to_have_url(re.compile("/jobs/v-first/frames"))
        same_after_reload(tab, "of this validation")
        expect(tab.locator(".gallery .thumb").first).to_be_visible()
        frames = tab.locator("#cell strong").inner_text()
        tab.get_by_role("button", name="Import scores, and ask Find").click()
        expect(tab).to_have_url(re.compile("confusion"))
        expect(tab.locator("#matching")).to_have_text(frames)
        expect(tab.locator("#gallery .thumb").first).to_be_visible()
        tab.go_back()
        expect(tab.locator("h1")).to_contain_text("taken for")
        tab.go_back()
        expect(tab.locator(".matrix td a").first).to_have_attribute("title", said)

        # An error lies over its pictures without another job.
        tab.locator(".matrix td:not(.right) a").first.click()
        expect(tab.locator("main")).to_contain_text("small copies that the validation keeps")
        over = tab.locator(".gallery img.over").first
        expect(over).to_have_attribute("src", re.compile("job=v-first&errors=true"))
        over.evaluate("(image) => image.decode()")
        assert violations(tab) == []

        # Side by side.
        tab.goto(f"{url}/jobs")
        tab.get_by_label("Compare first", exact=True).check()
        tab.get_by_label("Compare v-first", exact=True).check()
        tab.get_by_role("button", name="Compare those that are ticked").click()
        expect(tab.get_by_role("heading", name="Side by side")).to_be_visible()
        same_after_reload(tab, "mean IoU")


def test_curves_are_read_and_zoomed(
    catalogued: Path, tmp_path: Path, tab: Page, chromium: Browser
) -> None:
    """By mouse and by keys; without scripts the server's drawings stand in their place."""
    with serving(home_with_jobs(catalogued, tmp_path)) as (url, _):
        until_ready(url)
        tab.goto(f"{url}/jobs/first")
        expect(tab.locator("#charts svg.chart")).to_have_count(3)
        expect(tab.locator("#job .curves")).to_be_hidden()
        expect(tab.locator("#charts figcaption").first).to_contain_text("0.15 at step 20")
        loss = tab.get_by_role("group", name="loss by step")
        said = loss.locator(".legend td")

        loss.focus()
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowRight")
        expect(said).to_have_text(["2", "1.5"])
        tab.get_by_role("button", name="Zoom in").click()
        loss.focus()
        for _ in range(20):
            tab.keyboard.press("ArrowRight")
        expect(said.first).to_have_text("11")
        tab.get_by_role("button", name="All steps").click()
        loss.focus()
        for _ in range(20):
            tab.keyboard.press("ArrowRight")
        expect(said).to_have_text(["20", "0.15"])

        # Across the middle of the plot: it zooms, and with it the others.
        box = loss.locator("svg.chart").bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        left, width = box["x"] + 62, box["width"] - 74  # without the axis and the margin
        tab.mouse.move(left + width * 0.3, middle)
        expect(said.first).to_have_text("7")
        tab.mouse.down()
        tab.mouse.move(left + width * 0.6, middle, steps=4)
        tab.mouse.up()
        speed = tab.get_by_role("group", name="images a second by step")
        speed.focus()
        for _ in range(20):
            tab.keyboard.press("ArrowRight")
        expect(speed.locator(".legend td").first).to_have_text("12")
        assert violations(tab) == []

        tab.goto(f"{url}/jobs?job=first&job=broken")
        lines = tab.get_by_role("group", name="loss by step").locator(".legend th")
        expect(lines).to_have_text(["step", "first", "broken"])

        # Steps are told to the last digit; what a finger read stays when it is lifted.
        steps = [12_341, 12_345, 12_349]
        plots = [
            {"name": "loss", "runs": [{"job": "first", "steps": steps, "values": [3, 2, 1]}]},
            {"name": "mean IoU", "runs": [{"job": "first", "steps": [12_349], "values": [0.5]}]},
        ]
        hand = chromium.new_context(has_touch=True, viewport={"width": 390, "height": 844})
        phone = hand.new_page()
        curves = {"plots": plots, "running": False}
        phone.route("**/curves?*", lambda route: route.fulfill(json=curves))
        phone.goto(f"{url}/jobs/first")
        expect(phone.locator("#charts figcaption").first).to_contain_text(
            "1 at step 12,349, between 1 and 3 since step 12,341"
        )
        touched = phone.get_by_role("group", name="loss by step")
        axis = touched.locator("svg.chart text[text-anchor=middle]").all_text_contents()
        assert len(axis) == len(set(axis))
        touched.scroll_into_view_if_needed()
        picture = touched.locator("svg.chart").bounding_box()
        assert picture is not None
        phone.touchscreen.tap(picture["x"] + 62 + (picture["width"] - 74) / 2, picture["y"] + 90)
        expect(touched.locator(".legend td")).to_have_text(["12,345", "2"])
        hand.close()

        plain = chromium.new_context(java_script_enabled=False)
        without = plain.new_page()
        without.goto(f"{url}/jobs/first")
        expect(without.locator("#job .curves polyline")).to_have_count(3)
        expect(without.locator("#job .curves")).to_be_visible()
        expect(without.locator("#charts")).to_be_hidden()
        plain.close()


def test_every_page_is_accessible_and_fits(catalogued: Path, tmp_path: Path, tab: Page) -> None:
    """Axe finds nothing at 390 and 1280, light and dark; nothing scrolls sideways."""
    with serving(sample_home(tmp_path, catalogued)) as (url, _):
        until_ready(url)
        faults = {}
        for path in PAGES.values():
            tab.goto(url + path)
            tab.wait_for_load_state("networkidle")
            unfold(tab)
            faults[path] = faults_of_looks(tab)
        for name in pages_of_forms(tab, url):
            faults[name] = faults_of_looks(tab)
        assert {path: found for path, found in faults.items() if found} == {}
        tab.goto(f"{url}/datasets")
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("link", name="Skip to content")).to_be_focused()


def pages_of_forms(tab: Page, url: str) -> Iterator[str]:
    """Show the pages that answer forms sent without scripts, and an error below its field."""
    tab.goto(url)
    tab.locator(".gallery input[name=fkey]").first.check()
    sent_plainly(tab, "#marks")
    expect(tab.get_by_role("heading", name="Marked")).to_be_visible()
    yield "marked"
    sent_plainly(tab, "form[action='/marks/undo']")
    expect(tab.get_by_role("heading", name="Undone")).to_be_visible()
    yield "undone"
    tab.goto(f"{url}/new-job?dataset=city")
    sent_plainly(tab, "form:has([formaction='/new-job/dry-run'])", "/new-job/dry-run")
    expect(tab.get_by_role("heading", name="What would be submitted")).to_be_visible()
    yield "dry run"
    tab.goto(f"{url}/new-job?dataset=city")
    form = tab.locator("form:has([name=max_steps])").first
    form.evaluate("form => { form.noValidate = true; }")
    form.locator("[name=max_steps]").evaluate("field => { field.value = '-5'; }")
    form.get_by_role("button", name="What would be submitted").click()
    expect(form.locator(".of-field")).to_be_visible()
    yield "an error of a field"


def sent_plainly(tab: Page, form: str, action: str = "") -> None:
    """Send the first such form as a browser without scripts does."""
    tab.locator(form).first.evaluate(
        "(form, action) => { if (action) form.action = action; form.submit(); }", action
    )
    tab.wait_for_load_state("networkidle")
