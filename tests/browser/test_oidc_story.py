"""A user logs in at their company's provider, works, and logs out of both."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import faults_of_looks
from tests.oidc.test_logins import served

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("kind", ["mock", "npm"])
def test_from_a_page_to_the_provider_and_back(
    kind: str, tmp_path: Path, context: BrowserContext
) -> None:
    """The page that was wanted opens after the login; no policy of a page stands in the way."""
    tab = context.new_page()
    # The mock's pages ask for a style sheet elsewhere.
    context.route(re.compile(r"^https?://(?!127\.0\.0\.1:)"), lambda route: route.abort())
    with served(kind, tmp_path / "home") as team:
        tab.goto(f"{team.url}/operate/tokens")
        expect(tab).to_have_url(f"{team.url}/login?next=/operate/tokens")
        assert faults_of_looks(tab) == []
        tab.get_by_role("link", name="Log in by Our company").click()
        expect(tab).to_have_url(re.compile(f"^{team.provider.url}"))
        if kind == "mock":
            tab.get_by_role("button", name="id-of-marta").click()
        else:
            tab.locator("input[name=login]").fill("marta")
            tab.locator("input[name=password]").fill("any")
            tab.locator("button[type=submit]").click()
            tab.locator("button[type=submit]").click()
        expect(tab).to_have_url(f"{team.url}/operate/tokens")
        expect(tab.locator(".who")).to_contain_text("marta")
        tab.get_by_label("Name").fill("mine")
        tab.get_by_role("button", name="Make").click()
        expect(tab.locator("main")).to_contain_text("fs_")
        tab.get_by_role("button", name="Log out").click()
        expect(tab).to_have_url(f"{team.url}/login?left=1")
        tab.get_by_role("link", name="Log out of Our company, too").click()
        expect(tab).to_have_url(re.compile(f"^{team.provider.url}"))
        tab.goto(f"{team.url}/operate/tokens")
        expect(tab).to_have_url(f"{team.url}/login?next=/operate/tokens")
