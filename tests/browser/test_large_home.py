"""Pages of a home of many things with long and right-to-left names, as a browser shows them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.api.servers import serving, until_ready
from tests.api.web.large_home import ARABIC, LargeHome, large_home
from tests.api.web.test_page_sizes import PARTS, pages_of
from tests.browser.conftest import NARROW, faults_of_looks, overflow, unfold

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Served:
    """A server, and what stands in its home."""

    url: str
    large: LargeHome


@pytest.fixture(scope="module")
def served(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a large home, which asks nobody who they are."""
    large = large_home(catalogued, tmp_path_factory.mktemp("large"), datasets=300, models=0)
    with serving(large.home) as (url, _):
        until_ready(url)
        yield Served(url, large)


def looked_at(large: LargeHome) -> list[str]:
    """A page of each route, and of odd names two: the last of its addresses."""
    paths = []
    for route, addresses in pages_of(large).items():
        if route in PARTS | {"/curves", "/jobs/{name}/files/{path:path}", "/questions/{name}"}:
            continue
        paths += [addresses[0], *addresses[2:3], *addresses[-1:]]
    return [*dict.fromkeys(path for path in paths if "more_49" not in path)]


def test_every_page_of_odd_names_is_accessible_and_fits(served: Served, tab: Page) -> None:
    """At 390 and 1280, light and dark; names of 200 characters scroll no page sideways."""
    faults = {}
    paths = looked_at(served.large)
    assert len(paths) > 30
    for path in paths:
        tab.goto(served.url + path)
        tab.wait_for_load_state("networkidle")
        unfold(tab)
        faults[path] = faults_of_looks(tab)
    assert {path: found for path, found in faults.items() if found} == {}


def test_scenes_are_searched_as_one_types(served: Served, tab: Page) -> None:
    """Among 2,008: late answers are dropped, conditions stay, and keys are enough."""
    asked: list[str] = []
    tab.on("request", lambda one: asked.append(one.url.removeprefix(served.url)))
    tab.goto(served.url)
    scenes = tab.locator("fieldset.facet", has=tab.locator('[name="holding.scene"]'))
    boxes = scenes.get_by_role("checkbox", name=re.compile("scene_"))
    expect(scenes).to_contain_text("The most frequent of more than 200")
    expect(scenes.locator('[name="scene"]')).to_have_count(60)
    field = scenes.get_by_role("searchbox")
    field.press_sequentially("SCENE_0123", delay=20)
    expect(boxes).to_have_count(10)
    # Once somebody stops typing, and not once for each letter.
    assert 1 <= sum(one.startswith("/values?") for one in asked) < 10
    assert not any(one.startswith(("/facets", "/drag")) for one in asked)

    field.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Space")
    expect(tab.locator("#matching")).to_have_text("2")
    expect(tab).to_have_url(re.compile("holding.scene=SCENE_0123.*scene=scene_01231"))
    expect(tab.locator('[name="scene"]:focus')).to_have_value("scene_01231")
    # The list comes anew, what is ticked first: from its second place that is one key more.
    for _ in range(3):
        tab.keyboard.press("ArrowUp")
    expect(field).to_be_focused()

    # What is ticked stays in the list, whatever else is searched for.
    field.fill(ARABIC[:6])
    expect(scenes.get_by_role("checkbox", name=ARABIC)).to_be_visible()
    expect(scenes.get_by_role("checkbox", name="scene_01231")).to_be_checked()
    scenes.get_by_role("checkbox", name=ARABIC).check()
    expect(tab.locator("#matching")).to_have_text("4")
    field.fill("no such scene")
    expect(scenes.get_by_role("checkbox", checked=True)).to_have_count(2)
    field.fill("")
    expect(scenes.locator('[name="scene"]')).to_have_count(62)
    tab.reload()
    expect(tab.locator("#matching")).to_have_text("4")


def test_datasets_are_searched_as_one_types(served: Served, tab: Page) -> None:
    """Among 300: the list narrows, and the URL says what is searched for."""
    tab.goto(f"{served.url}/datasets")
    field = tab.get_by_role("searchbox")
    field.press_sequentially("MANY-0012", delay=20)
    expect(tab.locator("#listed tbody tr")).to_have_count(10)
    expect(field).to_be_focused()
    expect(tab).to_have_url(re.compile("holding=MANY-0012$"))


def test_on_a_phone_pictures_come_first(served: Served, tab: Page) -> None:
    """And forms are of use there: conditions open, are filled in, and close again."""
    tab.set_viewport_size(NARROW)  # type: ignore[arg-type]  # it is a mapping
    tab.goto(served.url)
    first = tab.locator("#gallery .thumb").first
    expect(first).to_be_visible()
    box = first.bounding_box()
    assert box is not None
    assert box["y"] < NARROW["height"]
    tab.get_by_role("button", name="Conditions").click()
    field = tab.get_by_label("Class number 10 at least", exact=True)
    field.fill("1000")
    field.press("Enter")
    expect(tab.locator("#matching")).not_to_have_text("4,024")
    tab.get_by_role("button", name="Show the frames").first.click()
    expect(first).to_be_visible()
    assert overflow(tab) <= 0
