"""Find and the frame page in a browser, as somebody uses them."""

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from catalog.accounts import users
from catalog.records.store import RecordStore
from tests.api.servers import serving, until_ready, wait_until
from tests.api.web.predicted import home_with_prediction
from tests.browser.conftest import NARROW, faults_of_looks, home_with, overflow, violations
from tests.pipeline.homes import FRAMES, SAMPLE, copy_home

pytestmark = pytest.mark.browser

HOSTILE = """<img src=x onerror="document.title='taken'">'&#39; %2f;"""


def back(tab: Page) -> None:
    """Press the browser's button."""
    tab.evaluate("history.back()")


def drawn(tab: Page, which: str) -> bool:
    """Whether the pictures of a selector are there."""
    every = (
        "(which) => [...document.querySelectorAll(which)].every((each) => each.naturalWidth > 0)"
    )
    return bool(tab.evaluate(every, which))


_SHOWN = """() => ({
  matching: document.getElementById("matching").textContent,
  plots: Object.fromEntries([...document.querySelectorAll("svg.counts")].map((svg) => [
    svg.id.slice("plot-".length),
    [".within", ".beyond"].map((which) => svg.querySelector(which).getAttribute("d")),
  ])),
  numbers: Object.fromEntries([...document.querySelectorAll("output.number")].map((number) => [
    number.id.slice("n-".length), number.textContent,
  ])),
})"""
"""Numbers and plots as the page shows them, in the form of the server's answer to a field."""


def shows(tab: Page, url: str, field: str) -> bool:
    """Whether the page shows what the server answers to what its fields say."""
    value = tab.locator(f'input[name="{field}"]').input_value()
    asked: dict[str, Any] = httpx.get(
        f"{url}/drag", params={field: value}, headers={"HX-Request": "true"}, timeout=120
    ).json()
    return bool(tab.evaluate(_SHOWN) == asked)


def test_a_range_is_dragged_and_everything_follows(
    catalogued: Path, tmp_path: Path, tab: Page
) -> None:
    """By mouse and by keys; back, reload and a shared URL ask the same."""
    home = copy_home(catalogued, tmp_path)
    with serving(home) as (url, _):
        until_ready(url)
        tab.goto(url)
        matching, car = tab.locator("#matching"), tab.get_by_label("Lowest Car", exact=True)
        expect(matching).to_have_text("24")
        before = tab.locator("svg[aria-label^='Truck:']").get_attribute("aria-label")

        # By mouse: from the slider's end to its middle; numbers follow while it is held.
        box = car.bounding_box()
        assert box is not None
        field = tab.get_by_label("Car at least", exact=True)
        paths: list[str] = []
        tab.on("request", lambda request: paths.append(urlsplit(request.url).path))
        middle = box["y"] + box["height"] / 2
        tab.mouse.move(box["x"] + 8, middle)
        tab.mouse.down()
        numbers = set()
        for share in (0.3, 0.6, 0.01, 0.8):
            tab.mouse.move(box["x"] + box["width"] * share, middle, steps=4)
            wait_until(lambda: shows(tab, url, "min.car"))
            numbers.add((field.input_value(), matching.inner_text()))
        # Once, and no step asks again.
        assert [path for path in paths if not path.startswith("/pictures/")] == ["/steps"]
        assert len(numbers) == 4
        assert ("", "24") in numbers
        tab.mouse.up()
        expect(tab).to_have_url(re.compile(r"\?min\.car=\d+$"))
        assert f"min.car={field.input_value()}" in tab.url
        dragged = matching.inner_text()
        assert (field.input_value(), dragged) in numbers
        assert tab.locator("svg[aria-label^='Truck:']").get_attribute("aria-label") != before

        # By keys, and by an exact number.
        car.focus()
        tab.keyboard.press("Home")
        expect(matching).to_have_text("24")
        expect(field).to_have_value("")
        assert paths.count("/steps") == 1
        assert "/drag" not in paths
        field.fill("100000")
        field.press("Enter")
        expect(tab).to_have_url(re.compile(r"min\.car=100000$"))
        expect(tab.locator(".sentence")).to_contain_text("100,000 car pixels")

        tab.get_by_label("front_center", exact=True).check()
        expect(tab).to_have_url(re.compile("camera=front_center"))
        both = matching.inner_text()
        shared = tab.url
        tab.reload()
        expect(matching).to_have_text(both)
        expect(tab.get_by_label("front_center", exact=True)).to_be_checked()
        back(tab)
        expect(tab).to_have_url(re.compile(r"min\.car=100000$"))
        expect(tab.get_by_label("front_center", exact=True)).not_to_be_checked()
        back(tab)
        expect(tab.get_by_label("Car at least", exact=True)).to_have_value("")
        back(tab)
        expect(matching).to_have_text(dragged)
        tab.goto(shared)
        expect(matching).to_have_text(both)

        # The gallery holds what the number says; a chip takes its condition away.
        expect(tab.locator("#gallery .thumb")).to_have_count(int(both))
        tab.get_by_role("link", name="Remove: camera front_center").click()
        expect(tab).to_have_url(re.compile(r"min\.car=100000$"))
        tab.wait_for_load_state()  # its scripts hear of no field before

        # An error is shown where it happens, and goes with the next answer.
        field.fill("many")
        expect(tab.get_by_role("alert")).to_contain_text("'many' is no number")
        field.fill("5")
        expect(tab.get_by_role("alert")).to_be_empty()
        field.press("Enter")
        expect(tab.locator("#sql")).to_contain_text("car >= 5")

        # SQL is edited in its place.
        tab.get_by_text("SQL, and copies for programs").click()
        condition = tab.locator("textarea[name=where]")
        asked: list[Route] = []
        tab.route(re.compile("/facets"), lambda route: asked.append(route))
        field.fill("6")
        with tab.expect_request(re.compile("/facets")):
            field.press("Enter")
        condition.fill("car >= 100000")
        tab.route(re.compile("/facets"), lambda route: route.continue_())
        for each in asked:
            each.continue_()
        expect(tab.locator("#sql")).to_contain_text("car >= 6")
        expect(condition).to_be_focused()
        condition.press_sequentially(" and scene like '2026%'")
        expect(condition).to_have_value("car >= 100000 and scene like '2026%'")
        tab.get_by_role("button", name="Ask by SQL").click()
        expect(tab.locator("#sql")).to_contain_text("scene like '2026%'")

        # Of a snapshot that the page does not show yet a slider's field asks, step by step.
        tab.goto(url)
        frames = httpx.get(f"{url}/v1/frames?limit=1", timeout=120).json()["frames"]
        body = {"fkeys": [frames[0]["fkey"]], "values": {"quality": "bad"}}
        httpx.post(f"{url}/v1/tags/marks", json=body, timeout=120).raise_for_status()
        box = tab.get_by_label("Highest Car", exact=True).bounding_box()
        assert box is not None
        tab.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
        tab.mouse.down()
        paths.clear()
        with tab.expect_response(re.compile("/drag")):
            tab.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2, steps=4)
        expect(matching).not_to_have_text("24")
        assert "/steps" in paths
        tab.mouse.up()
        expect(tab).to_have_url(re.compile(r"\?max\.car=\d+$"))

        # A page of that snapshot has one answer for all of a move, of the other end, too.
        tab.goto(url)
        tab.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
        tab.mouse.down()
        paths.clear()
        for share in (0.7, 0.3):
            tab.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2, steps=4)
            wait_until(lambda: shows(tab, url, "max.car"))
        assert "/steps" in paths
        assert "/drag" not in paths
        tab.mouse.up()


def test_frames_are_looked_at_and_marked_by_keys(
    catalogued: Path, tmp_path: Path, tab: Page
) -> None:
    """From the gallery to a frame and its neighbour, without a mouse."""
    home = copy_home(catalogued, tmp_path)
    with serving(home) as (url, _):
        until_ready(url)
        tab.goto(f"{url}/?scene=20260616_094856&camera=front_center")
        thumbs = tab.locator("#gallery .thumb a")
        expect(thumbs).to_have_count(2)
        # How they are shown is in the URL, and plays no part in which are found.
        tab.get_by_label("Sort by").select_option("car desc")
        expect(tab).to_have_url(re.compile(r"\?sort=car\+desc&"))
        expect(tab.locator("#gallery .values-of").first).to_contain_text("car ")
        tab.get_by_label("Over the pictures").select_option("label")
        tab.get_by_label("Captions").fill("truck")
        tab.get_by_label("Captions").press("Enter")
        expect(tab.locator("#gallery .values-of").first).to_contain_text("truck ")
        expect(tab.locator("#gallery .over").first).to_be_visible()
        wait_until(lambda: drawn(tab, "#gallery .over"))
        tab.locator("#matching").click()
        tab.keyboard.press("o")
        expect(tab.locator("#gallery .over").first).to_be_hidden()
        expect(thumbs).to_have_count(2)
        thumbs.first.focus()
        tab.keyboard.press("Space")
        expect(tab.locator("#chosen")).to_have_text("1 chosen")
        tab.keyboard.press("ArrowRight")
        expect(thumbs.nth(1)).to_be_focused()
        tab.keyboard.press("Space")
        tab.keyboard.press("b")
        expect(tab.locator("#marked")).to_contain_text("Set quality=bad on 2 frames")
        thumbs.first.focus()
        tab.keyboard.press("Enter")
        expect(tab.locator("h1")).to_contain_text("front_center")
        expect(tab.get_by_label("Value")).to_have_value("bad")

        # One class alone; the label's opacity.
        overlay = tab.locator("#overlay")
        tab.get_by_role("button", name="Car", exact=True).click()
        expect(overlay).to_have_attribute("src", re.compile("classes=car$"))
        tab.get_by_label("Opacity").fill("20")
        expect(overlay).to_have_css("opacity", "0.2")
        wait_until(lambda: drawn(tab, "#overlay"))
        assert violations(tab) == []

        tab.locator("h1").click()
        expect(tab.locator("#place")).to_have_text("1 of 2")
        first = tab.locator("#fkey").text_content()
        tab.keyboard.press("ArrowRight")
        expect(tab.locator("#place")).to_have_text("2 of 2")
        tab.keyboard.press("ArrowLeft")
        expect(tab.locator("#fkey")).to_have_text(first or "")
        ahead, behind = (tab.locator(which) for which in ("#next", "#previous"))
        tab.keyboard.press("." if ahead.count() else ",")
        expect(tab.locator("#place")).to_have_text("2 of 2")
        expect(behind.or_(ahead).first).to_be_visible()
        tab.keyboard.press("c")
        expect(tab.locator("#marked")).to_contain_text("Removed quality from 1 frame")
        tab.goto(f"{url}/?is.quality=bad")
        expect(tab.locator("#matching")).to_have_text("1")
        # All but the bad one, which cannot be asked for at the same time.
        tab.get_by_label("Leave out quality bad").check()
        expect(tab.locator("#matching")).to_have_text(str(FRAMES - 1))
        expect(tab.locator('input[name="is.quality"]')).not_to_be_checked()

        # Everything found at once, and back; a note, and back.
        tab.get_by_label("everything found").check()
        tab.get_by_role("button", name="Mark", exact=True).click()
        expect(tab.locator("#marked")).to_contain_text(f"Set quality=bad on {FRAMES - 1} frames")
        expect(tab.get_by_label("everything found")).not_to_be_checked()
        tab.locator("#matching").click()
        tab.keyboard.press("z")
        expect(tab.locator("#marked")).to_contain_text(f"of {FRAMES - 1} frames is as before")
        tab.goto(f"{url}/?is.quality=bad")
        expect(tab.locator("#matching")).to_have_text("1")
        thumbs.first.click()
        tab.get_by_label("Note").fill("look again")
        tab.get_by_label("Note").press("Enter")
        expect(tab.locator("#marked")).to_contain_text("Set note=look again on 1 frame")
        tab.get_by_role("button", name="Undo").click()
        expect(tab.locator("#marked")).to_contain_text("note of 1 frame is as before")


def test_the_map_stays_open_while_the_question_changes(
    catalogued: Path, tmp_path: Path, tab: Page
) -> None:
    """Its cells are links, and lead to their frames."""
    home = copy_home(catalogued, tmp_path)
    with serving(home) as (url, _):
        until_ready(url)
        frames = httpx.get(f"{url}/v1/frames?camera=front_center", timeout=120).json()["frames"]
        for place, frame in enumerate(frames[:3]):
            values = {"latitude_deg": str(48 + place / 100), "longitude_deg": f"11.5{place}"}
            body = {"fkeys": [frame["fkey"]], "values": values}
            httpx.post(f"{url}/v1/tags/marks", json=body, timeout=120).raise_for_status()
        tab.goto(url)
        tab.locator("#where summary").click()
        cells = tab.locator("#where svg a")
        expect(cells).to_have_count(3)
        assert violations(tab) == []
        field = tab.get_by_label("latitude_deg at least", exact=True)
        field.fill("48.005")
        field.press("Enter")
        expect(cells).to_have_count(2)
        cells.first.focus()
        tab.keyboard.press("Enter")
        expect(tab).to_have_url(re.compile("max.longitude_deg"))
        expect(tab.locator("#matching")).to_have_text("1")


def test_a_session_lives_through_a_restart_and_ends_by_logging_out(
    catalogued: Path, tmp_path: Path, tab: Page
) -> None:
    """While the server is away the page says so, and goes on when it is back."""
    home = copy_home(catalogued, tmp_path)
    records = RecordStore(home / "records" / "records.sqlite")
    users.add(records, "rita", ["dataadmin"], "a long password")
    users.add(records, "root", ["admin"], None)
    with serving(home, authenticates=True) as (url, _):
        tab.goto(f"{url}/?min.car=1000")
        expect(tab.get_by_role("heading", name="Log in")).to_be_visible()
        assert violations(tab) == []
        tab.get_by_label("Name").fill("rita")
        tab.get_by_label("Password").fill("a wrong one")
        tab.get_by_role("button", name="Log in by the password").click()
        expect(tab.locator("p.problem")).to_contain_text("no such user and password")
        tab.get_by_label("Name").fill("rita")
        tab.get_by_label("Password").fill("a long password")
        tab.get_by_role("button", name="Log in by the password").click()
        expect(tab).to_have_url(f"{url}/?min.car=1000")
        number = tab.locator("#matching").inner_text()
    tab.get_by_label("front_center", exact=True).check()
    expect(tab.get_by_role("alert")).to_contain_text("The server does not answer")
    port = url.rpartition(":")[2]
    with serving(home, "--port", port, "--login-link", authenticates=True) as (again, process):
        assert again == url
        tab.get_by_label("front_center", exact=True).uncheck()
        expect(tab.get_by_role("alert")).to_be_empty()
        expect(tab.locator("#matching")).to_have_text(number)
        tab.get_by_role("button", name="Log out").click()
        expect(tab.get_by_role("heading", name="Log in")).to_be_visible()
        tab.goto(url)
        expect(tab).to_have_url(re.compile("/login"))

        # The link that `serve` printed, once.
        assert process.stdout is not None
        assert "as 'root'" in process.stdout.readline()
        link = process.stdout.readline().strip()
        tab.goto(link)
        tab.locator("main form button").first.click()
        expect(tab.locator("header")).to_contain_text("root")
        tab.goto(link)
        tab.locator("main form button").first.click()
        expect(tab.locator("p.problem")).to_be_visible()


def test_pages_are_accessible_and_fit(catalogued: Path, tmp_path: Path, tab: Page) -> None:
    """Axe finds nothing at 390 and 1280, light and dark; nothing scrolls sideways."""
    home = copy_home(catalogued, tmp_path)
    with serving(home) as (url, _):
        until_ready(url)
        tab.goto(f"{url}/?min.car=1000&camera=front_center")
        tab.get_by_text("SQL, and copies for programs").click()
        expect(tab.locator("#gallery .thumb").first).to_be_visible()
        assert faults_of_looks(tab) == []
        frame = tab.locator("#gallery .thumb a").first.get_attribute("href")
        for path in (frame or "", "/?nonsense=1"):
            tab.goto(url + path)
            assert faults_of_looks(tab) == [], path


def test_hostile_names_are_texts(tmp_path: Path, tab: Page) -> None:
    """A folder's name and a mark's value that would be scripts are shown, and run nothing."""
    root = tmp_path / "source"
    inner = root / HOSTILE.replace("/", "")
    scene = "camera_lidar_semantic/20260616_094856"
    shutil.copytree(SAMPLE / scene, inner / scene)
    shutil.copy(SAMPLE / "camera_lidar_semantic/class_list.json", root / "class_list.json")
    shutil.copy(
        SAMPLE / "camera_lidar_semantic/class_list.json",
        inner / "camera_lidar_semantic/class_list.json",
    )
    with serving(home_with(root, tmp_path / "home")) as (url, _):
        until_ready(url)
        tab.goto(url)
        thumbs = tab.locator("#gallery .thumb")
        expect(thumbs).to_have_count(3)
        tab.get_by_role("button", name="All shown").click()
        tab.locator("#marks input[name=value]").fill(HOSTILE)
        tab.get_by_role("button", name="Mark", exact=True).click()
        expect(tab.locator("#marked")).to_contain_text(f"quality={HOSTILE}")
        tab.reload()
        expect(tab.locator(".badge").first).to_have_text(HOSTILE)
        for picture in tab.locator("#gallery img").all():
            picture.scroll_into_view_if_needed()
        wait_until(lambda: drawn(tab, "#gallery img"))
        thumbs.first.locator("a").click()
        expect(tab.locator("#fkey")).to_contain_text(HOSTILE.replace("/", ""))
        assert "taken" not in tab.title()


def test_a_models_prediction_and_errors_lie_over_the_image(
    catalogued: Path, tmp_path: Path, tab: Page
) -> None:
    """By mouse and by keys; the classes that are chosen stay chosen."""
    home, frame, _ = home_with_prediction(catalogued, tmp_path)
    with serving(home) as (url, _):
        until_ready(url)
        tab.goto(f"{url}/frames/{frame.fkey}")
        overlay = tab.locator("#overlay")
        label = tab.get_by_role("radio", name="Label", exact=True)
        expect(label).to_be_checked()
        expect(overlay).to_have_attribute("src", re.compile("^/pictures/overlays/"))
        tab.get_by_role("radio", name=re.compile("^Prediction of first")).check()
        expect(overlay).to_have_attribute("src", re.compile("^/pictures/predictions/.*job=p-1$"))
        expect(overlay).to_have_attribute("alt", "Prediction of first over the camera image")
        wait_until(lambda: drawn(tab, "#overlay"))
        tab.get_by_role("button", name="Car", exact=True).click()
        expect(overlay).to_have_attribute("src", re.compile("job=p-1&classes=car$"))
        tab.get_by_role("radio", name=re.compile("^Prediction of first")).focus()
        tab.keyboard.press("ArrowDown")
        expect(tab.get_by_role("radio", name=re.compile("^Errors of first"))).to_be_checked()
        expect(overlay).to_have_attribute("src", re.compile("errors=true&classes=car$"))
        wait_until(lambda: drawn(tab, "#overlay"))
        # The label beside it, at the same zoom; and what lies under the pointer.
        tab.keyboard.press("s")
        beside = tab.locator("#second .overlaid")
        expect(beside).to_have_attribute("src", re.compile("^/pictures/overlays/.*classes=car$"))
        tab.keyboard.press("+")
        expect(beside).to_have_attribute("src", re.compile("width=8192"))
        shapes = "each => [...each].map((one) => one.style.transform)"
        zooms = tab.eval_on_selector_all(".pictures img", shapes)
        assert len(set(zooms)) == 1
        assert zooms[0].endswith("scale(1.6)")
        tab.keyboard.press("0")
        tab.keyboard.press("s")
        corner = tab.locator(".pictures").first
        corner.scroll_into_view_if_needed()
        under = tab.locator("#under")

        def points() -> bool:
            corner.hover(position={"x": 4, "y": 4})
            corner.hover(position={"x": 5, "y": 5})
            return bool(re.fullmatch(r"Sky, [\d,]+ pixels; predicted: Car", under.inner_text()))

        wait_until(points)
        tab.keyboard.press("f")
        expect(overlay).to_have_css("visibility", "hidden")
        expect(overlay).to_have_css("visibility", "visible")
        tab.keyboard.press("f")
        assert violations(tab) == []
        tab.set_viewport_size(NARROW)  # type: ignore[arg-type]  # it is a mapping
        assert overflow(tab) <= 0
