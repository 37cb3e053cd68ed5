"""Lists of many: what a page shows of them, and how a part of a name finds the others."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import users
from catalog.records.question_tables import SavedQuestion
from pipeline.cache.lease import MANIFESTS
from pipeline.entry_name import HEADER_FILE
from tests.api.web.large_home import add_many
from tests.pipeline.homes import open_home


@pytest.fixture(scope="module")
def browser(shared_home: Path) -> Iterator[TestClient]:
    """A browser at a server of 122 users, 120 tokens, 121 sources, 55 questions of anna's."""
    workspace = open_home(shared_home)
    for name in ("otto", "root"):
        users.add(workspace.records, name, ["datauser"], None)
    add_many(workspace.records, 120)
    with workspace.records.session() as session:
        session.add_all(
            SavedQuestion(
                name=f"question-{number:02}", question={"where": "car > 1000"}, frames=1,
                snapshot=1, shared=number < 50, owner="anna", account="anna's",
            )
            for number in range(55)
        )  # fmt: skip
    workspace.close()
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "shown", "other"),
    [
        ("/operate", "source-00098", "source-00119"),
        ("/operate/users", "user-00097", "user-00119"),
        ("/operate/tokens", "token-00020", "token-00019"),
    ],
)
def test_a_page_lists_a_hundred_and_finds_others(
    browser: TestClient, path: str, shown: str, other: str
) -> None:
    """The first sources and users by name, and the newest tokens; a name of none is said."""
    page = browser.get(path).text
    listed = page.partition('id="listed"')[2].partition("finds others")[0]
    assert listed.count('<th scope="row">') == 100
    assert (shown in listed, other in listed) == (True, False)
    assert "a part of a name finds others" in page
    of_other = browser.get(path, params={"holding": other.upper()}).text
    assert f'value="{other.upper()}"' in of_other
    rows = of_other.partition('id="listed"')[2].partition("</table>")[0]
    assert (rows.count('<th scope="row">'), other in rows) == (1, True)
    assert "a part of a name finds others" not in of_other
    assert re.search(r"No \w+ has this in", browser.get(path, params={"holding": "zzz"}).text)
    assert browser.get(path, params={"holding": "z" * 201}).status_code == 422


def test_an_action_leads_back_to_the_list_as_it_was(browser: TestClient) -> None:
    """By htmx and without it, in each list that has forms; what was asked of others is no place.

    The address is the list's own: another's, sent as the text, stays a text.
    """
    here = {"Sec-Fetch-Site": "same-origin"}
    saved = {"asked": "min.car=1", "name": "keep-1&x=//a.b"}
    assert browser.post("/questions", data=saved, headers=here).status_code == 400
    for name in ("keep-1", "keep-12"):
        form = {"asked": "min.car=1", "name": name}
        assert browser.post("/questions", data=form, headers=here).status_code == 200
    of_page = {
        "/operate/users": ("user-0000", "user-00003", "user-00004", {"action": "disable"}),
        "/operate/tokens": ("token-0000", "token-00003", "token-00004", {}),
        "/questions": ("keep-1", "keep-1", "keep-12", {}),
    }
    for path, (holding, name, other, fields) in of_page.items():
        page = browser.get(path, params={"holding": holding}).text
        row = page[page.index(f">{name}<") :].partition("</tr>")[0]
        action = unescape(re.findall(r'action="([^"]+)"', row)[-1])
        assert action.endswith(f"?holding={holding}"), path
        form = fields | {"name": name}
        part = browser.post(action, data=form, headers=here | {"HX-Request": "true"})
        back = part.headers.get("hx-redirect", str(part.url.raw_path, "ascii"))
        assert back == f"{path}?holding={holding}", part.text
        rows = browser.get(back).text.partition('id="listed"')[2]
        assert (other in rows, "-00013" in rows, "question-0" in rows) == (True, False, False)
    for path, form in (
        ("/operate/users/change", {"name": "user-00005", "action": "enable"}),
        ("/operate/tokens/5/revoke", {}), ("/questions/keep-12/remove", {}),
    ):  # fmt: skip
        action = f"{path}?holding=//a.b/%0d%0aX:y"
        answer = browser.post(action, data=form, headers=here, follow_redirects=False)
        (start,) = [one for one in of_page if path.startswith(one)]
        assert (answer.status_code, answer.headers["location"]) == (
            303, f"{start}?holding=%2F%2Fa.b%2F%0D%0AX%3Ay",
        )  # fmt: skip
        assert browser.post(f"{path}?holding={201 * 'z'}", headers=here).status_code == 422


def test_staged_datasets_are_found_and_pinned(shared_home: Path, tmp_path: Path) -> None:
    """A hundred are listed, and those of a name; one is pinned, and the list stays as it was."""
    for number in range(120):
        folder = tmp_path / MANIFESTS / f"night-{number:03}"
        folder.mkdir(parents=True)
        (folder / HEADER_FILE).write_text("{}")
    app = create_app(Settings(home=shared_home, cache=tmp_path), authenticates=False)
    rows = r'<th scope="row"><a href="/datasets/(night-\d+)'
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        listed = client.get("/operate/cache").text
        assert len(re.findall(rows, listed)) == 100
        assert "a part of a name finds others" in listed
        page = client.get("/operate/cache?holding=NIGHT-01").text
        assert sorted(re.findall(rows, page)) == [f"night-01{n}" for n in range(10)]
        (action,) = {*re.findall(r'hx-post="([^"]+)"', page)}
        form = {"dataset": "night-013", "action": "pin"}
        pinned = client.post(action, data=form, headers={"Sec-Fetch-Site": "same-origin"})
        assert (pinned.status_code, pinned.url.raw_path) == (
            200,
            b"/operate/cache?holding=NIGHT-01",
        )
        assert pinned.text.count("<small>pinned</small>") == 1
        assert len(re.findall(rows, pinned.text)) == 10
        none = client.get("/operate/cache?holding=zzz").text
        assert "No staged dataset has this in its name." in none


def test_tokens_are_found_by_their_user(browser: TestClient) -> None:
    """All of otto's, and none of root's."""
    page = browser.get("/operate/tokens?holding=otto").text
    assert page.count('<td class="free">otto</td>') == 60
    assert '<td class="free">root</td>' not in page


def test_questions_beyond_the_page_are_found_by_name(browser: TestClient) -> None:
    """It counts fifty; Find's own list says whose a question is, and which are shared."""
    form = {"asked": "min.car=1", "name": "mine"}
    sent = browser.post("/questions", data=form, headers={"Sec-Fetch-Site": "same-origin"})
    assert sent.status_code == 200, sent.text
    page = browser.get("/questions").text
    assert page.count('<th scope="row">') == 50
    assert ("question-48" in page, "question-49" in page) == (True, False)
    assert "a part of a name finds others" in page
    of_other = browser.get("/questions?holding=QUESTION-5").text
    assert re.findall(r'href="/questions/([^"]+)">', of_other) == [
        f"question-5{n}" for n in range(5)
    ]
    assert "No question has this in its name" in browser.get("/questions?holding=zzz").text
    found = browser.get("/").text
    assert '">mine</a> <a' in found
    assert '">question-00</a> <small>of anna</small> <small>shared</small> <a' in found
