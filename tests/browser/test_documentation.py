"""The documentation's site from its folder, without a server: search, a drawing, no other host."""

import pytest
from playwright.sync_api import BrowserContext, expect

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
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("preflight", delay=20)
    result = page.get_by_role("link").filter(has_text="preflight").first
    expect(result).to_be_visible()
    result.click()
    expect(page.locator("article")).to_contain_text("preflight")
    assert "architecture.html" not in page.url
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert any(url.endswith("javascripts/mermaid.js") for url in asked)
    assert faults == []
