"""A real browser, the system's Chromium; tests skip where there is none."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

WIDE, NARROW = {"width": 1280, "height": 1000}, {"width": 390, "height": 844}

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_TOLD = ("Failed to load resource", "Response Status Error Code", "htmx:")
"""Begin what the browser and htmx say of refusals, and of requests that a later one cancels."""

WAIT_MS = 120_000  # that of a hang
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, for all tests of a run."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser without a past."""
    context = chromium.new_context(viewport=WIDE)  # type: ignore[arg-type]  # it is a mapping
    context.set_default_timeout(WAIT_MS)
    yield context
    context.close()


@pytest.fixture
def tab(context: BrowserContext) -> Iterator[Page]:
    """A page whose scripts meet no error, and that asks no other host for anything.

    Errors of the answers that a test provokes are the page's to show, and no fault of its own.
    """
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"script: {error}"))
    page.on(
        "console",
        lambda said: (
            faults.append(said.text)
            if said.type == "error" and not said.text.startswith(_TOLD)
            else None
        ),
    )
    page.on(
        "request",
        lambda asked: (
            faults.append(f"asks {asked.url}")
            if not asked.url.startswith(("http://127.0.0.1:", "data:"))
            else None
        ),
    )
    yield page
    page.close()
    assert faults == []


_LOOK_RULES = ("color-contrast", "link-in-text-block")
"""The rules whose outcome depends on colours."""


def violations(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What axe finds in a page, its best practices included: rule and place; by all, or by some."""
    from axe_playwright_python.base import AXE_SCRIPT

    # The page's policy allows no script of ours: the tab's own evaluation is beyond it.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"]} | ({"runOnly": [*rules]} if rules else {})
    found = page.evaluate("async (options) => (await axe.run(options)).violations", options)
    return [f"{each['id']}: {[node['target'] for node in each['nodes']][:5]}" for each in found]


def overflow(page: Page) -> int:
    """Pixels by which a page is wider than its window."""
    wider: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wider


def unfold(page: Page) -> None:
    """Open all that a page folds."""
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.wait_for_load_state("networkidle")


def faults_of_looks(page: Page) -> list[str]:
    """What is wrong with a loaded page at each width, light and dark: too wide, or by axe's rules.

    All of them at each width, those of colours in each scheme.
    """
    faults: list[str] = []
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # it is a mapping
        if (pixels := overflow(page)) > 0:
            faults.append(f"{size['width']}: {pixels} pixels too wide")
        rules: Sequence[str] = ()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            faults += [f"{size['width']}, {scheme}: {fault}" for fault in violations(page, rules)]
            rules = _LOOK_RULES
    return faults


def home_with(root: Path, home: Path) -> Path:
    """A home whose one source lies below ``root``."""
    from tests.pipeline.homes import make_home

    make_home(home, root)
    return home
