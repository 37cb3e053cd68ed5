"""From an empty home to frames, in a browser: a source is added, its scan watched, frames found."""

import re
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from catalog.accounts import tokens, users
from tests.api.servers import serving, until_ready
from tests.browser.conftest import faults_of_looks
from tests.pipeline.homes import SAMPLE, open_home

pytestmark = pytest.mark.browser


def log_in(tab: Page, url: str, token: str) -> None:
    """Begin a session by a token."""
    tab.context.clear_cookies()
    tab.goto(url)
    tab.get_by_label("Token").fill(token)
    tab.get_by_role("button", name="Log in by the token").click()
    expect(tab.locator("header nav")).to_be_visible()


def test_a_source_is_added_scanned_and_found(tmp_path: Path, tab: Page) -> None:
    """By an operator, step by step; a reader sees the same pages without the forms."""
    root = tmp_path / "data"
    shutil.copytree(SAMPLE, root / "a2d2")
    broken = min((root / "a2d2").rglob("*_label_*.png"))
    broken.write_bytes(broken.read_bytes()[:200])
    home = tmp_path / "home"
    workspace = open_home(home)
    records, _ = workspace.records, workspace.whole_catalog
    made = {}
    for name, scope in (("dora", "write"), ("otto", "read")):
        users.add(records, name, ["dataadmin"], None)
        made[name] = tokens.create(records, name, "tests", scope, timedelta(days=1))[1]
    workspace.close()
    roots = {"FRAMESIFT_SOURCE_ROOTS": str(root)}
    with serving(home, variables=roots, authenticates=True) as (url, _):
        until_ready(url)
        log_in(tab, url, made["dora"])
        expect(tab.get_by_role("heading", name="No frame is catalogued yet")).to_be_visible()
        assert faults_of_looks(tab) == []
        tab.get_by_role("link", name="Add a source").click()
        form = tab.get_by_role("form", name="A folder of this server")
        form.get_by_label("Folder", exact=True).fill(f"{tmp_path}/elsewhere")
        form.get_by_role("button", name="Look at its names").click()
        expect(form.get_by_role("alert")).to_contain_text("lies below none of the folders")
        form.get_by_label("Folder", exact=True).fill(f"{root}/a2d2")
        form.get_by_role("button", name="Look at its names").click()
        expect(form.locator(".looked")).to_contain_text("Looks like a2d2")
        assert faults_of_looks(tab) == []
        form.get_by_label("Name", exact=True).fill("mine")
        form.get_by_role("button", name="Add the source").click()

        # The scan's job, which the page follows to its end.
        expect(tab).to_have_url(re.compile(r"/jobs/scan-mine-1$"))
        expect(tab.locator("#state")).to_have_text("done")
        expect(tab.get_by_role("progressbar")).to_be_visible()
        expect(tab.get_by_role("region", name="Files with problems")).to_contain_text(broken.name)
        assert faults_of_looks(tab) == []
        tab.get_by_role("link", name="Source mine").click()
        expect(tab.get_by_role("region", name="Files with problems")).to_contain_text(broken.name)
        assert faults_of_looks(tab) == []
        tab.get_by_role("link", name="Find its frames").click()
        expect(tab.locator("#matching")).to_have_text("23")

        log_in(tab, url, made["otto"])
        expect(tab.locator("#matching")).to_have_text("23")
        for path in ("/operate", "/operate/sources/mine", "/operate/scans/1"):
            tab.goto(url + path)
            expect(tab.locator("main button")).to_have_count(0)
            assert faults_of_looks(tab) == []
