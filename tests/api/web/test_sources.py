"""Sources on the page, without a browser: who may add which, and what their names tell."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import tokens, users
from tests.pipeline.homes import SAMPLE, open_home

HERE = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
ROLES = {"root": "admin", "dora": "dataadmin", "otto": "dataadmin", "carl": "datauser"}
SCOPES = {"root": "admin", "dora": "write", "otto": "read", "carl": "read"}

Server = tuple[TestClient, Path, dict[str, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A home without a source, its users' tokens, and a folder below which dora may name folders.

    Otto may only read, Carl sees no rows. In the folder are a2d2, empty, and others.
    """
    folder = tmp_path_factory.mktemp("sources")
    root = folder / "data"
    shutil.copytree(SAMPLE, root / "a2d2")
    (root / "empty").mkdir()
    (root / "others").mkdir()
    for number in range(3):
        (root / "others" / f"picture-{number}.png").write_bytes(b"no image")
    shutil.copytree(SAMPLE, folder / "data-private" / "a2d2")
    workspace = open_home(folder / "home")
    records, _ = workspace.records, workspace.whole_catalog
    made = {}
    for name, role in ROLES.items():
        users.add(records, name, [role], None)
        made[name] = tokens.create(records, name, "tests", SCOPES[name], timedelta(days=1))[1]
    workspace.close()
    settings = Settings(home=folder / "home", cache=None, source_roots=(root,))
    with TestClient(create_app(settings, authenticates=True), follow_redirects=False) as client:
        yield client, root, made


def ask(server: Server, user: str, path: str) -> tuple[int, str]:
    """Status and text of a page, for a user's session."""
    client, _, made = server
    client.cookies.set("framesift", made[user])
    answer = client.get(path, headers=HERE)
    return answer.status_code, unescape(answer.text)


def send(server: Server, user: str, path: str, **form: str) -> tuple[int, str, str]:
    """Status, location and text of a form's answer."""
    client, _, made = server
    client.cookies.set("framesift", made[user])
    answer = client.post(path, data=form, headers=HERE)
    return answer.status_code, answer.headers.get("location", ""), unescape(answer.text)


def test_an_empty_home_shows_the_first_steps(server: Server) -> None:
    """To those who may write with the way on, to readers without; a question is answered as ever.

    Users of collections are told of no home without frames: there may be some.
    """
    assert "No frame is catalogued yet" in ask(server, "dora", "/")[1]
    assert 'href="/operate#add"' in ask(server, "dora", "/")[1]
    seen = ask(server, "otto", "/")[1]
    assert "No frame is catalogued yet" in seen
    assert 'href="/operate#add"' not in seen
    assert "No frame is catalogued yet" not in ask(server, "otto", "/?camera=rear")[1]
    status, limited = ask(server, "carl", "/")
    assert (status, "No frame is catalogued yet" in limited) == (200, False)


def test_the_forms_are_for_those_who_may_add(server: Server) -> None:
    """An admin is told that any folder may be named, a dataadmin which, a reader sees no form."""
    root = str(server[1])
    assert "Any folder that the server can read" in ask(server, "root", "/operate")[1]
    listed = ask(server, "dora", "/operate")[1]
    assert f"below {root}." in listed
    assert "Any folder" not in listed
    seen = ask(server, "otto", "/operate")
    assert (seen[0], "<form" in seen[1].partition("<main")[2]) == (200, False)
    for path in ("/operate/sources", "/operate/sources/look", "/operate/sources/mine"):
        assert send(server, "otto", path, name="mine", uri=f"{root}/a2d2")[0] == 403, path
    assert ask(server, "carl", "/operate/sources/mine")[0] == 403


def test_names_are_looked_at_before_a_source_is_added(server: Server) -> None:
    """A layout that fits, none, and no file; a folder beside the allowed one is refused."""
    root = str(server[1])

    def look(folder: str) -> tuple[int, str]:
        status, _, text = send(server, "dora", "/operate/sources/look", uri=folder)
        return status, text

    assert (look(f"{root}/a2d2")[0], "Looks like a2d2 (" in look(f"{root}/a2d2")[1]) == (200, True)
    assert "No file is there." in look(f"{root}/empty")[1]
    others = look(f"{root}/others")[1]
    assert "No layout pairs images with labels among 3 names" in others
    assert "[" in others.partition("<pre")[2]  # a layout file to begin with
    refused = look(f"{root}-private/a2d2")
    assert refused[0] == 403
    assert "lies below none of the folders" in refused[1]
    assert "No source yet." in ask(server, "dora", "/operate")[1]


def test_a_source_is_added_and_given_another_layout(server: Server) -> None:
    """Its page has place and layout; what cannot be used is said, and adds nothing."""
    root = str(server[1])
    wrong = send(server, "dora", "/operate/sources", name="no name", uri=f"{root}/a2d2")
    assert (wrong[0], "name" in wrong[2]) == (400, True)
    assert (
        send(server, "dora", "/operate/sources", name="mine", uri=f"{root}-private/a2d2")[0] == 403
    )
    assert ask(server, "dora", "/operate/sources/mine")[0] == 404
    added = send(server, "dora", "/operate/sources", name="mine", uri=f"{root}/a2d2")
    assert added[:2] == (303, "/operate/sources/mine")
    assert "1 source" in ask(server, "dora", "/")[1]
    page = ask(server, "dora", "/operate/sources/mine")[1]
    assert f"<dd>{root}/a2d2</dd>" in page
    assert "<dd>a2d2</dd>" in page
    seen = ask(server, "otto", "/operate/sources/mine")
    assert (seen[0], "<form" in seen[1].partition("<main")[2]) == (200, False)
    assert send(server, "dora", "/operate/sources/mine", layout="cityscapes")[0] == 303
    assert "<dd>cityscapes</dd>" in ask(server, "dora", "/operate/sources/mine")[1]
    assert send(server, "dora", "/operate/sources/mine", layout="none such")[0] == 400
    assert "source mine" in ask(server, "root", "/operate/audit")[1]
