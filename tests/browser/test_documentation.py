"""The documentation's site from its folder, without a server: search, a drawing, no other host."""

import re

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.api.servers import wait_until
from tests.pipeline.homes import REPOSITORY

SITE = REPOSITORY / "build" / "site"

pytestmark = pytest.mark.browser


@pytest.mark.skipif(not SITE.is_dir(), reason="make docs builds build/site")
def test_search_and_drawing_from_files(context: BrowserContext) -> None:
    """A word leads to its page; scripts meet no error, and nothing is loaded but files."""
    page = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((SITE / "docs" / "architecture.html").as_uri())
    expect(page.locator("div.mermaid").first).to_be_visible()

    def opened() -> bool:
        for key in ("s", "/"):  # the page's scripts take them once they are loaded
            page.keyboard.press(key)
            page.wait_for_timeout(1000)
        return page.locator("input:focus").count() > 0

    wait_until(opened)
    page.keyboard.type("preflight", delay=20)
    result = page.locator("a:has(mark)").first
    expect(result).to_contain_text(re.compile("preflight", re.IGNORECASE))
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert any(url.endswith("javascripts/mermaid.js") for url in asked)
    assert faults == []
